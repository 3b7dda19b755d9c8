//! The provider's token endpoint. Reference: RFC 6749 §4.1.3.

use std::time::Duration;

use actix_web::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::oidc::{read_body, transport};
use super::provider::Provider;
use crate::auth::error::Fault;
use crate::auth::outside::Providers;

/// The result of exchanging a code.
#[derive(Clone, Debug, Default)]
pub struct ProviderTokens {
    pub access_token: String,
    pub refresh_token: String,
    pub id_token: Option<String>,
    /// The whole answer: some providers put the profile into it.
    pub answer: Map<String, Value>,
}

/// Exchanges `code`. The client authenticates in the header, or in the body if the provider does not accept that.
pub async fn exchange(
    http: Providers<'_>,
    provider: &Provider,
    code: &str,
    verifier: Option<&str>,
) -> Result<ProviderTokens, Fault> {
    let mut form =
        vec![("grant_type", "authorization_code"), ("code", code), ("redirect_uri", provider.redirect_uri.as_str())];
    if let Some(verifier) = verifier {
        form.push(("code_verifier", verifier));
    }
    let in_body = [("client_id", provider.client_id.as_str()), ("client_secret", provider.secret.as_str())];
    match provider.name.as_str() {
        "apple" => {
            form.extend([("client_id", provider.client_id.as_str()), ("secret", provider.secret.as_str())]);
            form.push(("client_secret", provider.secret.as_str()));
            post(http, provider, &form, false).await
        }
        "kakao" => {
            form.extend(in_body);
            post(http, provider, &form, false).await
        }
        _ => match post(http, provider, &form, true).await {
            Ok(tokens) => Ok(tokens),
            Err(_) => {
                form.extend(in_body);
                post(http, provider, &form, false).await
            }
        },
    }
}

async fn post(
    http: Providers<'_>,
    provider: &Provider,
    form: &[(&str, &str)],
    by_header: bool,
) -> Result<ProviderTokens, Fault> {
    let mut request = http
        .post(&provider.token_url)?
        .timeout(Duration::from_secs(10))
        .header("accept", "application/json")
        .header("user-agent", "ferrobase")
        .form(form);
    if by_header {
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        request = request.basic_auth(encode(&provider.client_id), Some(encode(&provider.secret)));
    }
    let answer = request.send().await.map_err(transport)?;
    let (status, kind) = (answer.status(), answer.headers().get(CONTENT_TYPE.as_str()).cloned());
    let body = read_body(answer).await?;
    if !status.is_success() {
        return Err(Fault::new(format!("the token endpoint of {} answered {status}", provider.name)));
    }
    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let answer: Map<String, Value> = if kind.starts_with("application/x-www-form-urlencoded")
        || kind.starts_with("text/plain")
    {
        url::form_urlencoded::parse(&body).map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect()
    } else {
        serde_json::from_slice(&body).map_err(|error| Fault::new(error.to_string()))?
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let access_token = text("access_token");
    if access_token.is_empty() {
        return Err(Fault::new("the provider's answer has no access_token"));
    }
    Ok(ProviderTokens {
        access_token,
        refresh_token: text("refresh_token"),
        id_token: Some(text("id_token")).filter(|token| !token.is_empty()),
        answer,
    })
}
