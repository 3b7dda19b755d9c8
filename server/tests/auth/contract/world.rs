//! Outside services: hooks, captchas, SMS and identity providers. They answer as the case says and record their
//! requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use hmac::Mac as _;
use serde_json::{Map, Value, json};

use crate::support::outside;

/// The secret of every hook, as `v1,whsec_…`.
pub const HOOK_SECRET: &str = "v1,whsec_Y2FzZXMgb2YgdGhlIGNvbnRyYWN0IDAxMjM0NTY3ODk=";

/// The path at which Twilio's API accepts messages for the account `sid`.
const MESSAGES: &str = "/2010-04-01/Accounts/sid/Messages.json";

#[derive(Default)]
struct State {
    answers: BTreeMap<String, (u16, String)>,
    asked: Vec<(String, Value)>,
}

pub struct World {
    pub base: String,
    /// The same services over https.
    pub secure: String,
    state: Arc<Mutex<State>>,
}

impl World {
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let base = outside::serve(move |request, body| {
            let mut state = shared.lock().expect("lock");
            let path = request.path().to_owned();
            state.asked.push((path.clone(), heard(&request, &body)));
            let found = state.answers.get(&path).cloned();
            async move {
                let (status, body) = found.unwrap_or((404, String::new()));
                let status = actix_web::http::StatusCode::from_u16(status).expect("status");
                let mut response = HttpResponse::build(status);
                if !body.is_empty() {
                    response.content_type("application/json");
                }
                response.body(body)
            }
        });
        Self { secure: outside::secure(&base), base, state }
    }

    /// Resets everything; messages are accepted.
    pub fn reset(&self) {
        *self.state.lock().expect("lock") = State::default();
        self.answer(MESSAGES, 201, r#"{"sid":"SM1","status":"queued"}"#);
    }

    /// Sets the answer at `path`.
    pub fn answer(&self, path: &str, status: u16, body: &str) {
        self.state.lock().expect("lock").answers.insert(path.to_owned(), (status, body.to_owned()));
    }

    /// Takes the newest request to `path` and discards older ones.
    pub fn take(&self, path: &str) -> Option<Value> {
        let mut state = self.state.lock().expect("lock");
        let newest = state.asked.iter().rev().find(|(known, _)| known == path).map(|(_, heard)| heard.clone());
        state.asked.retain(|(known, _)| known != path);
        newest
    }
}

/// A request in recorded form: parsed JSON or form body, and whether the hook signature is valid.
fn heard(request: &HttpRequest, body: &str) -> Value {
    let read = serde_json::from_str(body).unwrap_or_else(|_| pairs(body));
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    json!({
        "method": request.method().as_str(),
        "query": pairs(request.query_string()),
        "authorization": header("authorization"),
        "signed": is_signed(&header, body),
        "body": read,
    })
}

/// Standard Webhooks: `webhook-signature` is an HMAC over id, time and body.
fn is_signed<'a>(header: &impl Fn(&str) -> &'a str, body: &str) -> bool {
    let engine = base64::engine::general_purpose::STANDARD;
    let key = engine.decode(HOOK_SECRET.trim_start_matches("v1,whsec_")).expect("base64");
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(&key).expect("key");
    mac.update(format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    let wanted = format!("v1,{}", engine.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|signature| signature == wanted)
}

/// The pairs of a form or query.
pub fn pairs(text: &str) -> Value {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    Value::Object(pairs.map(|(name, value)| (name.into_owned(), json!(value))).collect::<Map<_, _>>())
}
