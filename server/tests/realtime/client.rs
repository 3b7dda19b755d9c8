//! A client of the Phoenix protocol, version 2.0.0 by default.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::TestApp;

/// Deadline for an expected message.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long to wait for a message that must not arrive, after one that must.
const SILENCE: Duration = Duration::from_millis(600);

/// A received message of either version.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    pub join_ref: Value,
    pub reference: Value,
    pub topic: String,
    pub event: String,
    pub payload: Value,
    /// The payload of a binary broadcast.
    pub bytes: Option<Vec<u8>>,
}

pub struct Client {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    is_v1: bool,
    next: u64,
    /// Read but not consumed yet.
    kept: Vec<Got>,
    pub closed: Option<u16>,
}

impl Client {
    pub async fn open(app: &TestApp) -> Self {
        Self::with_key(app, &app.anon_key).await
    }

    pub async fn with_key(app: &TestApp, key: &str) -> Self {
        Self::with(app, key, "2.0.0").await
    }

    pub async fn with(app: &TestApp, key: &str, version: &str) -> Self {
        Self::at(&socket_url(app, key, version)).await
    }

    pub async fn at(url: &str) -> Self {
        let (stream, response) = connect_async(url).await.expect("the handshake");
        assert_eq!(response.status(), 101);
        Self { stream, is_v1: url.ends_with("vsn=1.0.0"), next: 1, kept: Vec::new(), closed: None }
    }

    fn reference(&mut self) -> String {
        self.next += 1;
        self.next.to_string()
    }

    pub async fn send_text(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.expect("sent");
    }

    /// Sends a text if the socket is still open.
    pub async fn try_send_text(&mut self, text: &str) {
        let _ = self.stream.send(Message::text(text)).await;
    }

    pub async fn send_binary(&mut self, bytes: Vec<u8>) {
        self.stream.send(Message::binary(bytes)).await.expect("sent");
    }

    /// Sends a message with this join's reference. Returns the message's own reference.
    pub async fn push(&mut self, join_ref: &str, topic: &str, event: &str, payload: Value) -> String {
        let reference = self.reference();
        let text = if self.is_v1 {
            json!({ "topic": topic, "event": event, "payload": payload, "ref": reference, "join_ref": join_ref })
        } else {
            json!([join_ref, reference, topic, event, payload])
        };
        self.send_text(&text.to_string()).await;
        reference
    }

    /// Sends a message and returns the payload of its reply.
    pub async fn ask(&mut self, join_ref: &str, topic: &str, event: &str, payload: Value) -> Value {
        let reference = self.push(join_ref, topic, event, payload).await;
        self.reply(&reference).await
    }

    pub async fn reply(&mut self, reference: &str) -> Value {
        self.wait_for(|got| got.event == "phx_reply" && got.reference == reference).await.payload
    }

    /// Joins `realtime:<name>`. Returns the join's reference and the reply.
    pub async fn try_join(&mut self, name: &str, config: Value, token: Option<&str>) -> (String, Value) {
        let reference = self.reference();
        let topic = format!("realtime:{name}");
        let mut payload = json!({ "config": config });
        if let Some(token) = token {
            payload["access_token"] = token.into();
        }
        let text = if self.is_v1 {
            json!({ "topic": topic, "event": "phx_join", "payload": payload, "ref": reference, "join_ref": reference })
        } else {
            json!([reference, reference, topic, "phx_join", payload])
        };
        self.send_text(&text.to_string()).await;
        let answer = self.reply(&reference).await;
        (reference, answer)
    }

    pub async fn join(&mut self, name: &str, config: Value) -> String {
        self.join_as(name, config, None).await
    }

    pub async fn join_as(&mut self, name: &str, config: Value, token: Option<&str>) -> String {
        let (reference, answer) = self.try_join(name, config, token).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        reference
    }

    /// The first matching message. Earlier ones are kept.
    pub async fn wait_for(&mut self, mut fits: impl FnMut(&Got) -> bool) -> Got {
        if let Some(place) = self.kept.iter().position(&mut fits) {
            return self.kept.remove(place);
        }
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            let read = tokio::time::timeout_at(deadline, self.read()).await;
            match read {
                Ok(Some(got)) if fits(&got) => return got,
                Ok(Some(got)) => self.kept.push(got),
                Ok(None) => panic!("the socket is closed; came: {:?}", self.kept),
                Err(_) => panic!("what was expected did not come; came: {:?}", self.kept),
            }
        }
    }

    /// Whether such an event has been read but not consumed yet.
    pub fn has_read(&self, event: &str) -> bool {
        self.kept.iter().any(|got| got.event == event)
    }

    pub async fn wait_for_event(&mut self, event: &str) -> Got {
        self.wait_for(|got| got.event == event).await
    }

    /// The payload of the next change.
    pub async fn change(&mut self) -> Value {
        self.wait_for_event("postgres_changes").await.payload
    }

    /// All messages until no more arrive.
    pub async fn rest(&mut self) -> Vec<Got> {
        while let Ok(Some(got)) = tokio::time::timeout(SILENCE, self.read()).await {
            self.kept.push(got);
        }
        std::mem::take(&mut self.kept)
    }

    /// Closes the socket and waits for the server's end of it.
    pub async fn close(&mut self) {
        self.stream.close(None).await.expect("sent");
        self.wait_for_close().await;
    }

    /// Waits until the server closes the socket. Returns its close code.
    pub async fn wait_for_close(&mut self) -> Option<u16> {
        tokio::time::timeout(DEADLINE, async {
            while let Some(got) = self.read().await {
                self.kept.push(got)
            }
        })
        .await
        .expect("the socket is closed");
        self.closed
    }

    async fn read(&mut self) -> Option<Got> {
        loop {
            match self.stream.next().await? {
                Ok(Message::Text(text)) => return Some(self.parse_text(&text)),
                Ok(Message::Binary(bytes)) => return Some(parse_binary(&bytes)),
                Ok(Message::Close(frame)) => self.closed = frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    fn parse_text(&self, text: &str) -> Got {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        if self.is_v1 {
            let object = value.as_object().expect("an object");
            let names: Vec<_> = object.keys().map(String::as_str).collect();
            assert_eq!(names, ["topic", "event", "payload", "ref"], "exactly these");
            return Got {
                join_ref: Value::Null,
                reference: value["ref"].clone(),
                topic: text(&value["topic"]),
                event: text(&value["event"]),
                payload: value["payload"].clone(),
                bytes: None,
            };
        }
        let [join_ref, reference, topic, event, payload] = value.as_array().expect("an array").as_slice() else {
            panic!("five parts: {value}")
        };
        Got {
            join_ref: join_ref.clone(),
            reference: reference.clone(),
            topic: text(topic),
            event: text(event),
            payload: payload.clone(),
            bytes: None,
        }
    }
}

/// The URL of an app's sockets.
pub fn socket_url(app: &TestApp, key: &str, version: &str) -> String {
    let base = app.base.replacen("http", "ws", 1);
    format!("{base}/realtime/v1/websocket?apikey={key}&vsn={version}")
}

/// Kind 4, or Phoenix' own kind 2.
fn parse_binary(bytes: &[u8]) -> Got {
    if let [2, topic, event, rest @ ..] = bytes {
        let (topic, rest) = rest.split_at(usize::from(*topic));
        let (event, rest) = rest.split_at(usize::from(*event));
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).expect("text");
        return Got {
            join_ref: Value::Null,
            reference: Value::Null,
            topic: text(topic),
            event: text(event),
            payload: Value::Null,
            bytes: Some(rest.to_vec()),
        };
    }
    assert_eq!(bytes[0], 4, "a user's broadcast");
    let lengths: Vec<usize> = bytes[1..4].iter().map(|length| usize::from(*length)).collect();
    let (encoding, mut rest) = (bytes[4], &bytes[5..]);
    let mut text = |length: usize| {
        let (part, left) = rest.split_at(length);
        rest = left;
        String::from_utf8(part.to_vec()).expect("text")
    };
    let (topic, event, meta) = (text(lengths[0]), text(lengths[1]), text(lengths[2]));
    let mut payload = json!({ "type": "broadcast", "event": event });
    if !meta.is_empty() {
        payload["meta"] = serde_json::from_str(&meta).expect("meta");
    }
    let bytes = match encoding {
        1 => {
            payload["payload"] = serde_json::from_slice(rest).expect("JSON");
            None
        }
        _ => Some(rest.to_vec()),
    };
    Got { join_ref: Value::Null, reference: Value::Null, topic, event: "broadcast".to_owned(), payload, bytes }
}

/// A broadcast as supabase-js sends it: kind 3.
pub fn push_frame(join_ref: &str, reference: &str, topic: &str, event: &str, payload: &[u8], is_json: bool) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("short");
    let mut frame = vec![3, length(join_ref), length(reference), length(topic), length(event), 0, u8::from(is_json)];
    for part in [join_ref, reference, topic, event] {
        frame.extend_from_slice(part.as_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}

/// A token with these claims, signed with the server's key.
pub fn token(claims: Value) -> String {
    let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token")
}

/// The token of a signed-in user, valid for an hour.
pub fn user_token(subject: &str) -> String {
    let exp = chrono::Utc::now().timestamp() + 3600;
    token(json!({ "role": "authenticated", "sub": subject, "exp": exp }))
}
