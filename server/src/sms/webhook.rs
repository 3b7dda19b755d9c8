//! `POST /sms/v1/twilio`: Twilio's webhook for people's answers. STOP ends texts, START allows them again.
//!
//! The request needs no API key; its `X-Twilio-Signature` authenticates it
//! (<https://www.twilio.com/docs/usage/security#validating-requests>).

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::web::{self, Data, Form, FormConfig, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha1::Sha1;

use super::{outgoing, words};
use crate::config::{Secret, SmsConfig};
use crate::db::{DbError, Pool};

/// Twilio sends some thirty fields and at most 1,600 characters of text.
const MAX_BYTES: usize = 32 * 1024;
/// An empty TwiML answer: nothing is sent back.
const NOTHING: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

/// What the webhook needs.
#[derive(Clone)]
pub struct Webhook {
    token: Secret,
    /// The webhook's URL, without a query.
    url: String,
    pool: Pool,
}

impl Webhook {
    /// `None` if Twilio is not the provider. `api_url` is the API's public URL; `pool` logs in as the owner of the STOP
    /// rows.
    pub fn new(config: &SmsConfig, api_url: &str, pool: Pool) -> Option<Self> {
        let is_twilio = matches!(config.provider.as_str(), "twilio" | "twilio_verify") && config.twilio.is_complete();
        let url = format!("{}/sms/v1/twilio", api_url.trim_end_matches('/'));
        is_twilio.then(|| Self { token: config.twilio.auth_token.clone(), url, pool })
    }

    /// Mounts the route at the root.
    pub fn configure(self, service: &mut ServiceConfig) {
        service.service(
            web::resource("/sms/v1/twilio")
                .app_data(Data::new(self))
                .app_data(FormConfig::default().limit(MAX_BYTES))
                .route(web::post().to(receive)),
        );
    }

    /// Whether the account's token signed this: base64 of HMAC-SHA1 over the address and the sorted fields.
    fn is_signed(&self, query: &str, fields: &[(String, String)], signature: &str) -> bool {
        let (Ok(given), Ok(mut mac)) =
            (STANDARD.decode(signature), Hmac::<Sha1>::new_from_slice(self.token.reveal().as_bytes()))
        else {
            return false;
        };
        mac.update(self.url.as_bytes());
        if !query.is_empty() {
            mac.update(b"?");
            mac.update(query.as_bytes());
        }
        let mut sorted: Vec<&(String, String)> = fields.iter().collect();
        sorted.sort();
        sorted.dedup();
        for (name, value) in sorted {
            mac.update(name.as_bytes());
            mac.update(value.as_bytes());
        }
        mac.verify_slice(&given).is_ok()
    }
}

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
enum WebhookError {
    #[error("the signature is missing or wrong")]
    Unsigned,
    #[error("the database cannot be reached")]
    Database(#[from] DbError),
}

impl ResponseError for WebhookError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unsigned => StatusCode::FORBIDDEN,
            Self::Database(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn error_response(&self) -> HttpResponse {
        tracing::warn!(error = %self, "the webhook of text messages refused a call");
        HttpResponse::build(self.status_code()).json(serde_json::json!({ "message": self.to_string() }))
    }
}

async fn receive(
    webhook: Data<Webhook>,
    request: HttpRequest,
    fields: Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebhookError> {
    let signature = request.headers().get("x-twilio-signature").and_then(|value| value.to_str().ok());
    if !webhook.is_signed(request.query_string(), &fields, signature.unwrap_or_default()) {
        return Err(WebhookError::Unsigned);
    }
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    // Twilio's own interpretation, if it handles such words.
    let wish = match field("OptOutType") {
        "STOP" => Some(true),
        "START" => Some(false),
        _ => words::wish(field("Body")),
    };
    let from = field("From");
    if let Some(stopped) = wish.filter(|_| from.starts_with('+')) {
        outgoing::stop(&webhook.pool, from, stopped).await?;
        tracing::info!(stopped, "a number answered about texts");
    }
    Ok(HttpResponse::Ok().content_type(ContentType::xml()).body(NOTHING))
}
