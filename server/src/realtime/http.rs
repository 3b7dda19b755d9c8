//! Routes: the socket's handshake, and broadcasts by HTTP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix_http::ws::handshake;
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::hub::World;
use super::limits::{NoPlace, Place, Visit};
use super::persistence::{self, InvalidTtl, Ttl};
use super::policies::{Asked, Extension, writable};
use super::protocol::{Broadcast, UserPayload, Version};
use super::session::{self, Handshake, Listed};
use super::token::{self, Identity, TokenError, identify};
use super::{Inner, Mode, Realtime};
use crate::http::{cors, takeover};

/// Longest body of a batch, bytes.
const MAX_BATCH: usize = 32 << 20;
/// The most messages in a batch, since policies may have to be checked for each.
const MAX_MESSAGES: usize = 1000;
const TOO_MANY: &str = "Too many messages to broadcast, please reduce the batch size";
/// Indexes of messages in a batch that the policies refused.
const REFUSED: HeaderName = HeaderName::from_static("x-refused-messages");

/// Mounts the routes at the paths of upstream's gateway or of its container.
pub fn configure(realtime: Realtime, service: &mut ServiceConfig) {
    let paths: [&str; 2] = match realtime.inner.mode {
        Mode::Full => ["/websocket", "/api"],
        Mode::DropIn => ["/socket/websocket", "/api"],
    };
    service
        .app_data(web::Data::new(realtime))
        .app_data(web::PayloadConfig::new(MAX_BATCH))
        .route(paths[0], web::get().to(open_socket))
        .route(&format!("{}/ping", paths[1]), web::get().to(ping))
        .route(&format!("{}/broadcast", paths[1]), web::post().to(broadcast_batch))
        .route(&format!("{}/broadcast", paths[1]), web::method(actix_web::http::Method::OPTIONS).to(preflight))
        .route(&format!("{}/broadcast/{{topic}}/events/{{event}}", paths[1]), web::post().to(broadcast_one))
        .route(
            &format!("{}/broadcast/{{topic}}/events/{{event}}", paths[1]),
            web::method(actix_web::http::Method::OPTIONS).to(preflight),
        )
        .default_service(web::to(unknown));
}

async fn ping() -> HttpResponse {
    allowed(HttpResponse::Ok().json(json!({ "message": "Success" })))
}

async fn preflight(request: HttpRequest) -> HttpResponse {
    cors::preflight(request.headers())
}

async fn unknown() -> HttpResponse {
    allowed(HttpResponse::NotFound().json(json!({ "message": "Not found" })))
}

/// Pages of every origin may read the answer.
fn allowed(mut response: HttpResponse) -> HttpResponse {
    cors::allow(response.headers_mut());
    response
}

/// Why a socket is not opened.
enum Refused {
    NoKey,
    Token(TokenError),
    TooManyUsers,
    TooManyJoins,
    Restarting,
    Handshake(&'static str),
}

impl Refused {
    fn response(self) -> HttpResponse {
        let (status, error) = match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, "API key is missing".to_owned()),
            Self::Token(error @ TokenError::Expired(_)) => {
                tracing::debug!(%error, "a handshake was refused");
                (StatusCode::UNAUTHORIZED, "Token has expired".to_owned())
            }
            Self::Token(error) => (StatusCode::UNAUTHORIZED, error.to_string()),
            Self::TooManyUsers => (StatusCode::TOO_MANY_REQUESTS, "Too many connected users".to_owned()),
            Self::TooManyJoins => (StatusCode::TOO_MANY_REQUESTS, "Too many joins per second".to_owned()),
            Self::Restarting => (StatusCode::SERVICE_UNAVAILABLE, "Realtime is restarting".to_owned()),
            Self::Handshake(text) => (StatusCode::BAD_REQUEST, text.to_owned()),
        };
        allowed(HttpResponse::build(status).json(json!({ "error": error })))
    }
}

/// `GET …/websocket`: opens a socket for clients with a key.
async fn open_socket(realtime: web::Data<Realtime>, request: HttpRequest, body: web::Payload) -> HttpResponse {
    match admit(&realtime.inner, &request) {
        Ok((handshake, response)) => {
            let listed = Listed::new(&realtime.inner);
            let begin =
                move |taken| -> LocalBoxFuture<'static, ()> { Box::pin(session::run(listed, handshake, body, taken)) };
            let answer = takeover::answer(&request, response, begin);
            answer.unwrap_or_else(|| Refused::Handshake("the handshake failed").response())
        }
        Err(refused) => refused.response(),
    }
}

fn admit(inner: &Inner, request: &HttpRequest) -> Result<(Handshake, actix_http::ResponseBuilder), Refused> {
    if inner.is_stopping() {
        return Err(Refused::Restarting);
    }
    let query = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let from_query = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let version = Version::parse(from_query("vsn")).ok_or(Refused::Handshake("the protocol's version is unknown"))?;
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    // The gateway has exchanged the key for its token.
    let token = bearer(request.headers()).filter(|_| inner.mode == Mode::Full);
    let token = token.or_else(|| header("x-api-key")).or_else(|| from_query("apikey"));
    let token = token.filter(|token| !token.is_empty()).ok_or(Refused::NoKey)?;
    identify(token, &inner.keys, token::now()).map_err(Refused::Token)?;
    let config = &inner.config;
    let count = inner.sockets.lock().len();
    let is_full = |limit: usize| limit > 0 && count >= limit;
    if is_full(config.max_sockets) || (config.max_users > 0 && inner.users.load(Ordering::Acquire) >= config.max_users)
    {
        return Err(Refused::TooManyUsers);
    }
    if inner.joins.is_exceeded_by(0) {
        return Err(Refused::TooManyJoins);
    }
    let response = handshake(request.head()).map_err(|_| Refused::Handshake("a WebSocket's handshake is wanted"))?;
    let handshake = Handshake {
        version,
        token: token.into(),
        headers: headers_as_json(request.headers()).into(),
        place: place(inner, request)?,
    };
    Ok((handshake, response))
}

/// The client's address, which the gateway has verified.
fn address_of(inner: &Inner, request: &HttpRequest) -> Option<IpAddr> {
    let forwarded = request.headers().get("x-forwarded-for").and_then(|value| value.to_str().ok());
    let address: Option<IpAddr> = match inner.mode {
        Mode::Full => forwarded.and_then(|address| address.parse().ok()),
        Mode::DropIn => None,
    };
    address.or_else(|| request.peer_addr().map(|peer| peer.ip()))
}

/// Counts a socket of the client's address.
fn place(inner: &Inner, request: &HttpRequest) -> Result<Option<Place>, Refused> {
    let Some(address) = address_of(inner, request) else { return Ok(None) };
    let config = &inner.config;
    match inner.addresses.enter(address, config.max_sockets_per_address, config.max_refusals_per_address) {
        Ok(place) => Ok(Some(place)),
        Err(NoPlace::TooManySockets) => Err(Refused::TooManyUsers),
        Err(NoPlace::TooManyRefusals) => Err(Refused::TooManyJoins),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        Some(_) => None,
        None => Some(value),
    }
}

fn headers_as_json(headers: &HeaderMap) -> String {
    let mut all = Map::new();
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            all.insert(name.as_str().to_owned(), Value::from(value));
        }
    }
    Value::Object(all).to_string()
}

/// Why a broadcast by HTTP is refused.
enum BroadcastError {
    Unauthorized,
    Forbidden,
    MediaType,
    /// Per message of the batch: field and error.
    Invalid(Value),
    Limit(&'static str),
}

impl BroadcastError {
    fn response(self) -> HttpResponse {
        let (status, body) = match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, json!({ "message": "Unauthorized" })),
            Self::Forbidden => (StatusCode::FORBIDDEN, json!({ "message": "Unauthorized" })),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, json!({ "message": "Unsupported media type" })),
            Self::Invalid(errors) => (StatusCode::UNPROCESSABLE_ENTITY, json!({ "errors": errors })),
            Self::Limit(text) => (StatusCode::TOO_MANY_REQUESTS, json!({ "message": text })),
        };
        HttpResponse::build(status).json(body)
    }
}

/// The caller, from `Authorization` or the key.
fn caller(inner: &Inner, request: &HttpRequest) -> Result<Arc<Identity>, BroadcastError> {
    let key = || request.headers().get("apikey").and_then(|value| value.to_str().ok());
    let token = bearer(request.headers()).or_else(key).ok_or(BroadcastError::Unauthorized)?;
    identify(token, &inner.keys, token::now()).map_err(|_| BroadcastError::Unauthorized)
}

/// What a request shares with the sockets of its address.
fn visit(inner: &Inner, request: &HttpRequest) -> Visit {
    let config = &inner.config;
    let address = address_of(inner, request).filter(|_| config.max_sockets_per_address > 0);
    inner.addresses.visit(address, config.max_refusals_per_address)
}

/// Adds the rest of the project's rate limit.
fn answered(inner: &Inner, outcome: Result<HttpResponse, BroadcastError>) -> HttpResponse {
    let mut response = allowed(outcome.unwrap_or_else(BroadcastError::response));
    if inner.events.limit() > 0 {
        let (limit, mean) = (inner.events.limit(), inner.events.mean());
        for (name, value) in
            [("x-rate-rolling", mean), ("x-rate-limit", limit), ("x-rate-limit-remaining", limit.saturating_sub(mean))]
        {
            response.headers_mut().insert(HeaderName::from_static(name), value.into());
        }
    }
    response
}

fn check_rate(inner: &Inner, messages: usize) -> Result<(), BroadcastError> {
    if inner.events.is_exceeded_by(0) {
        return Err(BroadcastError::Limit("You have exceeded your rate limit"));
    }
    if messages > MAX_MESSAGES || inner.events.is_exceeded_by(messages) {
        return Err(BroadcastError::Limit(TOO_MANY));
    }
    Ok(())
}

/// `POST …/api/broadcast`: several messages at once. Private ones that the policies refuse are left out.
async fn broadcast_batch(realtime: web::Data<Realtime>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let inner = &realtime.inner;
    answered(inner, send_batch(inner, &request, &body).await)
}

struct BatchMessage {
    topic: String,
    private: bool,
    text: Broadcast,
}

async fn send_batch(inner: &Inner, request: &HttpRequest, body: &[u8]) -> Result<HttpResponse, BroadcastError> {
    let identity = caller(inner, request)?;
    let messages = parse_batch(body, inner.config.max_payload())?;
    check_rate(inner, messages.len())?;
    let (headers, visit) = (headers_as_json(request.headers()), visit(inner, request));
    let mut allowed: Vec<(&str, bool)> = Vec::new();
    let mut refused = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        if message.private {
            let known = allowed.iter().find(|(topic, _)| *topic == message.topic).map(|(_, allowed)| *allowed);
            let may = match known {
                Some(may) => may,
                None => {
                    let asked = Asked { identity: &identity, topic: &message.topic, headers: &headers };
                    let _turn = visit.shared().turn(&inner.checks).await;
                    let may = writable(&inner.db, asked, Extension::Broadcast).await.unwrap_or_else(|error| {
                        tracing::warn!(%error, "the policies on realtime.messages could not be asked");
                        false
                    });
                    allowed.push((&message.topic, may));
                    may
                }
            };
            if !may {
                inner.metrics.unauthorized.fetch_add(1, Ordering::Relaxed);
                refused.push(place.to_string());
            }
        }
    }
    for (place, message) in messages.into_iter().enumerate() {
        if !refused.contains(&place.to_string()) {
            inner.events.add(1);
            inner.broadcast(&World::new(&message.topic, message.private), message.text, None);
        }
    }
    let mut response = HttpResponse::Accepted();
    if !refused.is_empty() {
        response.insert_header((REFUSED, refused.join(",")));
    }
    Ok(response.finish())
}

/// The body of a batch. Its parts are parsed one by one: parsed as a whole it may take sixty times its memory.
#[derive(Default, Deserialize)]
struct BatchBody<'a> {
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
}

/// A message of a batch. Null counts as missing.
#[derive(Default, Deserialize)]
struct BatchItem<'a> {
    #[serde(borrow, default)]
    topic: Option<&'a RawValue>,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    private: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// An object's members; anything else has none.
fn members<'a, T: Default + Deserialize<'a>>(raw: &'a RawValue) -> T {
    let object = Some(raw.get()).filter(|text| text.starts_with('{'));
    object.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The items of a list, at most one more than [`MAX_MESSAGES`].
struct BatchItems<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for BatchItems<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() <= MAX_MESSAGES
                    && let Some(item) = list.next_element()?
                {
                    items.push(item);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Items).map(Self)
    }
}

/// The messages of a batch, or the errors of each.
fn parse_batch(body: &[u8], longest: usize) -> Result<Vec<BatchMessage>, BroadcastError> {
    const BLANK: &str = "can't be blank";
    const INVALID: &str = "is invalid";
    let invalid = |sentence: &str| BroadcastError::Invalid(json!({ "messages": [sentence] }));
    let body: &RawValue = serde_json::from_slice(body).map_err(|_| invalid(BLANK))?;
    let list = members::<BatchBody<'_>>(body).messages.ok_or_else(|| invalid(BLANK))?;
    let BatchItems(items) = serde_json::from_str(list.get()).map_err(|_| invalid(INVALID))?;
    if items.is_empty() {
        return Err(invalid(BLANK));
    }
    if items.len() > MAX_MESSAGES {
        return Err(BroadcastError::Limit(TOO_MANY));
    }
    let mut messages = Vec::with_capacity(items.len());
    let mut errors = Vec::with_capacity(items.len());
    for item in items {
        let item: BatchItem<'_> = members(item);
        let mut wrong = Map::new();
        let mut word = |name: &str, raw: Option<&RawValue>| {
            let text = raw.map(|raw| serde_json::from_str::<String>(raw.get()));
            let sentence = match text {
                Some(Ok(text)) if !text.trim().is_empty() => return text,
                None | Some(Ok(_)) => BLANK,
                Some(Err(_)) => INVALID,
            };
            wrong.insert(name.to_owned(), json!([sentence]));
            String::new()
        };
        let (topic, event) = (word("topic", item.topic), word("event", item.event));
        let private = match item.private.map(RawValue::get) {
            None | Some("false" | r#""false""# | r#""0""#) => false,
            Some("true" | r#""true""# | r#""1""#) => true,
            Some(_) => {
                wrong.insert("private".to_owned(), json!([INVALID]));
                false
            }
        };
        let payload = item.payload.map(RawValue::get);
        let sentence = match payload {
            None => Some(BLANK),
            Some(text) if !text.starts_with('{') => Some(INVALID),
            Some(text) if text.len() > longest => Some("Payload size exceeds tenant limit"),
            Some(_) => None,
        };
        if let Some(sentence) = sentence {
            wrong.insert("payload".to_owned(), json!([sentence]));
        }
        if wrong.is_empty() {
            let (event, payload) = (Value::from(event), payload.unwrap_or_default());
            let text = format!(r#"{{"event":{event},"payload":{payload},"type":"broadcast"}}"#);
            messages.push(BatchMessage { topic, private, text: Broadcast::Text(text.into()) });
        }
        errors.push(wrong);
    }
    let is_valid = errors.iter().all(Map::is_empty);
    if is_valid { Ok(messages) } else { Err(BroadcastError::Invalid(json!({ "messages": errors }))) }
}

/// `POST …/api/broadcast/{topic}/events/{event}`: one message, the body being its payload.
async fn broadcast_one(realtime: web::Data<Realtime>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let inner = &realtime.inner;
    answered(inner, send_one(inner, &request, &body).await)
}

async fn send_one(inner: &Arc<Inner>, request: &HttpRequest, body: &Bytes) -> Result<HttpResponse, BroadcastError> {
    let identity = caller(inner, request)?;
    let part = |name: &str| {
        let raw = request.match_info().query(name);
        percent_encoding::percent_decode_str(raw).decode_utf8().map(|text| text.into_owned()).unwrap_or_default()
    };
    let (topic, event) = (part("topic"), part("event"));
    let invalid = |name: &str, sentence: &str| {
        let mut errors = Map::new();
        errors.insert(name.to_owned(), json!([sentence]));
        BroadcastError::Invalid(Value::Object(errors))
    };
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let payload = match kind.as_str() {
        "application/octet-stream" => UserPayload::Binary(body.clone()),
        "application/json" => {
            let text = std::str::from_utf8(body).map_err(|_| invalid("payload", "is invalid"))?;
            let text = if text.trim().is_empty() { "{}" } else { text };
            serde_json::from_str::<&RawValue>(text).map_err(|_| invalid("payload", "is invalid"))?;
            UserPayload::Json(text.into())
        }
        _ => return Err(BroadcastError::MediaType),
    };
    if event.is_empty() || topic.is_empty() {
        return Err(invalid(if event.is_empty() { "event" } else { "topic" }, "can't be blank"));
    }
    if payload.len() > inner.config.max_payload() {
        return Err(invalid("payload", "Payload size exceeds tenant limit"));
    }
    check_rate(inner, 1)?;
    let private = request.query_string().split('&').any(|pair| pair == "private=true");
    let ttl = ttl_of(request.query_string()).map_err(|InvalidTtl| invalid("persist", "is invalid"))?;
    if ttl.is_some() && !private {
        return Err(invalid("persist", "can only be used on private channels"));
    }
    let world = World::new(&topic, private);
    let mut id = None;
    if private {
        let visit = visit(inner, request);
        let turn = visit.shared().turn(&inner.checks).await;
        let headers = headers_as_json(request.headers());
        let asked = Asked { identity: &identity, topic: &topic, headers: &headers };
        if writable(&inner.db, asked, Extension::Broadcast).await != Ok(true) {
            inner.metrics.unauthorized.fetch_add(1, Ordering::Relaxed);
            return Err(BroadcastError::Forbidden);
        }
        if let Some(ttl) = ttl.filter(|_| inner.config.persistence)
            && writable(&inner.db, asked, Extension::Persistence).await == Ok(true)
        {
            id = persistence::keep_and_send(inner, turn, &world, &event, &payload, ttl, None).await;
        }
    }
    inner.events.add(1);
    if id.is_none() {
        let message = Broadcast::User { event: event.into(), payload, meta: None };
        inner.broadcast(&world, message, None);
    }
    Ok(HttpResponse::Accepted().finish())
}

/// `persist=true` or `persist[ttl]=60` of a query.
fn ttl_of(query: &str) -> Result<Option<Ttl>, InvalidTtl> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query).map(web::Query::into_inner).unwrap_or_default();
    let value = |name: &str| pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (value("persist[ttl]"), value("persist")) {
        (Some(seconds), _) => Ttl::parse(Some(&json!({ "ttl": seconds }))),
        (None, Some(word)) => Ttl::parse(Some(&json!(word))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(body: &str) -> Value {
        match parse_batch(body.as_bytes(), 100) {
            Err(BroadcastError::Invalid(errors)) => errors,
            _ => panic!("{body} passes"),
        }
    }

    #[test]
    fn missing_fields_are_reported_per_message_of_a_batch() {
        assert_eq!(errors("{}"), json!({ "messages": ["can't be blank"] }));
        assert_eq!(
            errors(r#"{"messages":[{"topic":"t","event":"e","payload":{}},{"topic":"t","event":"e"}]}"#),
            json!({ "messages": [{}, { "payload": ["can't be blank"] }] })
        );
        let long = format!(r#"{{"messages":[{{"topic":"t","event":"e","payload":{{"a":"{}"}}}}]}}"#, "x".repeat(100));
        assert_eq!(errors(&long), json!({ "messages": [{ "payload": ["Payload size exceeds tenant limit"] }] }));
        let fine = r#"{"messages":[{"topic":"t","event":"e","payload":{"a":1},"private":true}]}"#;
        assert!(parse_batch(fine.as_bytes(), 100).is_ok_and(|messages| messages[0].private));
    }

    #[test]
    fn batches_are_read_leniently() {
        for blank in ["", "{", "null", "[]", "7", r#"["messages"]"#, r#"{"messages":null}"#, r#"{"messages":[]}"#] {
            assert_eq!(errors(blank), json!({ "messages": ["can't be blank"] }), "{blank}");
        }
        for invalid in [r#"{"messages":{}}"#, r#"{"messages":"x"}"#] {
            assert_eq!(errors(invalid), json!({ "messages": ["is invalid"] }), "{invalid}");
        }
        let all = |sentence: &str| json!({ "topic": [sentence], "event": [sentence], "payload": [sentence] });
        let odd =
            r#"{"messages":[7,["t","e"],{"topic":null,"event":" "},{"topic":1,"event":[],"payload":[],"private":2}]}"#;
        let mut last = all("is invalid");
        last["private"] = json!(["is invalid"]);
        let blank = all("can't be blank");
        assert_eq!(errors(odd), json!({ "messages": [blank, blank, blank, last] }));
    }

    #[test]
    fn payloads_of_a_batch_are_sent_as_they_were_written() {
        let body = r#" { "more": [1], "messages": [
            { "x": 1, "topic": "\u0074", "event": "\"e", "payload": {"a":[{"":0}, 1.50 ]}, "private": "1" } ] } "#;
        let messages = parse_batch(body.as_bytes(), 100).unwrap_or_default();
        let [BatchMessage { topic, private: true, text: Broadcast::Text(text) }] = &messages[..] else {
            panic!("one private message")
        };
        assert_eq!(topic, "t");
        assert_eq!(&**text, r#"{"event":"\"e","payload":{"a":[{"":0}, 1.50 ]},"type":"broadcast"}"#);
    }

    #[test]
    fn messages_are_counted_before_they_are_read() {
        let body = |count: usize| format!(r#"{{"messages":[{}]}}"#, vec!["0"; count].join(","));
        assert!(matches!(errors(&body(MAX_MESSAGES))["messages"].as_array(), Some(all) if all.len() == MAX_MESSAGES));
        let refused = parse_batch(body(MAX_MESSAGES + 1).as_bytes(), 100);
        assert!(matches!(refused, Err(BroadcastError::Limit(TOO_MANY))));
    }
}
