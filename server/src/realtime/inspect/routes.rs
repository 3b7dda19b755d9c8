//! The inspector's routes, on the admin listener: `GET /realtime`, `?topic=` the topic shown.
//!
//! Frames contain what people write to each other. In development they are shown to requests from this machine. All
//! others need the `service_role` key, as the password of HTTP basic authentication or as a bearer token.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use actix_web::http::header::{self, HeaderValue};
use actix_web::web::{self, Data, Query, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::page::{self, Channel, Shown, Topic, View};
use crate::http::loopback::is_loopback_host;
use crate::http::page::STYLE;
use crate::realtime::changes::State;
use crate::realtime::hub::{Member, World};
use crate::realtime::token::{self, identify};
use crate::realtime::{Inner, Realtime};

/// Topics in the list.
const LISTED: usize = 100;
/// Channels of the shown topic.
const CHANNELS: usize = 100;

/// Mounts the routes. `is_development`: requests of this machine need no key.
pub fn configure(realtime: Realtime, is_development: bool, service: &mut ServiceConfig) {
    let door = Data::new(Door { inner: realtime.inner, is_development });
    service
        .app_data(door)
        .route("/realtime", web::get().to(show))
        .route("/realtime.css", web::get().to(style))
        .route("/realtime.js", web::get().to(script));
}

struct Door {
    inner: Arc<Inner>,
    is_development: bool,
}

impl Door {
    fn admits(&self, request: &HttpRequest) -> bool {
        let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // A request under a foreign host name comes from a foreign page (DNS rebinding).
        let is_near = request.peer_addr().is_some_and(|peer| peer.ip().is_loopback()) && is_loopback_host(host);
        (self.is_development && is_near)
            || request.headers().get(header::AUTHORIZATION).is_some_and(|value| self.knows(value))
    }

    fn knows(&self, authorization: &HeaderValue) -> bool {
        let Some((scheme, value)) = authorization.to_str().ok().and_then(|value| value.split_once(' ')) else {
            return false;
        };
        let key = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => value.trim().to_owned(),
            "basic" => {
                let pair = STANDARD.decode(value.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
                pair.and_then(|pair| pair.split_once(':').map(|(_, key)| key.to_owned())).unwrap_or_default()
            }
            _ => return false,
        };
        identify(&key, &self.inner.keys, token::now()).is_ok_and(|identity| identity.caller.role == "service_role")
    }
}

#[derive(Deserialize)]
struct Asked {
    topic: Option<String>,
}

async fn show(door: Data<Door>, request: HttpRequest, asked: Query<Asked>) -> HttpResponse {
    if !door.admits(&request) {
        return HttpResponse::Unauthorized()
            .insert_header((header::WWW_AUTHENTICATE, r#"Basic realm="Ferrobase", charset="UTF-8""#))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body("Sign in with any name and the service_role key as the password.\n");
    }
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(page::render(&view(&door.inner, asked.topic.as_deref())))
}

fn view(inner: &Inner, topic: Option<&str>) -> View {
    let mut topics: Vec<Topic> = inner
        .hub
        .rooms()
        .into_iter()
        .map(|(world, channels, presences)| Topic {
            name: world.topic.to_string(),
            private: world.private,
            channels,
            presences,
        })
        .collect();
    topics.sort_by(|one, other| other.channels.cmp(&one.channels).then_with(|| one.name.cmp(&other.name)));
    let has_more = topics.len() > LISTED;
    topics.truncate(LISTED);
    let stream = match inner.changes.state() {
        State::Idle => "The database's log is read once somebody joins.".to_owned(),
        State::Starting => "The database's log is being opened.".to_owned(),
        State::Running { .. } => "The database's log is being read.".to_owned(),
        State::Unavailable(reason) => format!("{reason}."),
    };
    let load = |figure: &AtomicI64| figure.load(Ordering::Relaxed);
    let (sockets, channels) = (load(&inner.metrics.sockets), load(&inner.metrics.channels));
    // Topics are shown without the protocol's prefix.
    let topic = topic.map(|topic| topic.strip_prefix("realtime:").unwrap_or(topic)).filter(|topic| !topic.is_empty());
    let shown = topic.map(|topic| Shown {
        name: topic.to_owned(),
        channels: [false, true].into_iter().flat_map(|private| members(inner, &World::new(topic, private))).collect(),
        frames: inner.inspector.look(topic),
    });
    View { sockets, channels, stream, topics, has_more, shown }
}

fn members(inner: &Inner, world: &World) -> Vec<Channel> {
    let members = inner.hub.members_of(world, CHANNELS);
    let channel = |member: &Arc<Member>| {
        let identity = member.identity.load();
        Channel {
            number: member.id,
            private: world.private,
            role: identity.caller.role.clone(),
            subject: identity.caller.subject().unwrap_or_default(),
            version: member.version.name(),
            changes: inner.changes.described(member.id),
        }
    };
    members.iter().map(channel).collect()
}

async fn style() -> HttpResponse {
    HttpResponse::Ok().content_type("text/css; charset=utf-8").body(format!("{STYLE}{}", include_str!("inspect.css")))
}

async fn script() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(include_str!("inspect.js"))
}
