//! One request of the authentication API, with its caller and the headers of its answer.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::auth::Auth;
use crate::auth::door::claims::Claims;
use crate::auth::door::params::Params;
use crate::auth::door::query::Pairs;
use crate::auth::error::{AuthError, AuthResult, Code, json_response};
use crate::auth::models::session::Grant;
use crate::auth::models::store::Db;
use crate::auth::outside::{Memory, OutboundContext};
use crate::config::AuthMode;
use crate::http::client::{client_address, parse_entry};

/// The maximum size of a body, in bytes.
pub const BODY_LIMIT: usize = 1 << 20;

/// A body as it arrived.
pub enum Body {
    Bytes(Vec<u8>),
    /// More than [`BODY_LIMIT`] bytes: an error only if the body is read.
    TooLarge,
}

/// A request with the state that serves it.
pub struct Request {
    pub auth: Arc<Auth>,
    http: HttpRequest,
    path: String,
    query: Pairs,
    body: Body,
    pub id: String,
    /// Headers that token issuing adds to the answer.
    extra: RefCell<Vec<(HeaderName, String)>>,
    /// Calls to other services, and the connections to give back before them.
    memory: Arc<Memory>,
}

impl Request {
    pub fn new(auth: Arc<Auth>, http: HttpRequest, path: String, body: Body, id: String) -> Self {
        let query = Pairs::parse(http.uri().query().unwrap_or("").as_bytes());
        Self { auth, http, path, query, body, id, extra: RefCell::default(), memory: Arc::default() }
    }

    pub fn method(&self) -> &Method {
        self.http.method()
    }

    /// The path below the mount, still percent-encoded.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn headers(&self) -> &HeaderMap {
        self.http.headers()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.http.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The first value of a query key.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name)
    }

    /// The first value of a key of the form in the body, if it is one, else of the query.
    pub fn form_or_query(&self, name: &str) -> Option<String> {
        let kind = self.header("content-type").unwrap_or("").split(';').next().unwrap_or("").trim();
        let form = match &self.body {
            Body::Bytes(body) if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") => Pairs::parse(body),
            _ => Pairs::default(),
        };
        form.get(name).or(self.query(name)).map(str::to_owned)
    }

    /// Whether a pair of the query was malformed.
    pub fn has_malformed_query(&self) -> bool {
        self.query.is_malformed
    }

    /// Every pair of the query, decoded, in order.
    pub fn query_pairs(&self) -> &[(String, String)] {
        &self.query.pairs
    }

    /// Every value of a query key, in order.
    pub fn query_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn body(&self) -> AuthResult<&[u8]> {
        match &self.body {
            Body::Bytes(bytes) => Ok(bytes),
            Body::TooLarge => Err(AuthError::new(
                actix_web::http::StatusCode::PAYLOAD_TOO_LARGE,
                Code::RequestEntityTooLarge,
                format!("Request body too large (max {BODY_LIMIT} bytes)"),
            )),
        }
    }

    /// The body as a JSON object.
    pub fn params(&self) -> AuthResult<Params> {
        Params::parse(self.body()?)
    }

    /// A connection for this request.
    pub async fn db(&self) -> AuthResult<Db> {
        Db::acquire_for(&self.auth.pool, Arc::clone(&self.memory)).await
    }

    /// For calls to other services outside of transactions.
    pub fn away(&self) -> OutboundContext {
        OutboundContext::new(Arc::clone(&self.auth), Arc::clone(&self.memory))
    }

    /// Calls another service without holding a connection; see [`outside`](crate::auth::outside). `about` names
    /// everything that the answer depends on: a repeated transaction reuses the answer with the same `about`.
    pub async fn ask<C>(&self, about: String, call: impl FnOnce(OutboundContext) -> C) -> AuthResult<Value>
    where
        C: Future<Output = AuthResult<Value>> + Send + 'static,
    {
        if let Some(answer) = self.memory.answer(&about) {
            return answer;
        }
        let away = self.away();
        // Boxed so that callers' futures stay small.
        let call = Box::pin(call(away.clone()));
        if self.memory.give_back() { call.await } else { Err(away.defer(about, call)) }
    }

    /// Draws a random value that leaves the server (a code, a session's id). It is the same in every repetition of a
    /// transaction.
    pub fn once<T: Clone + Send + 'static>(&self, about: &str, draw: impl FnOnce() -> T) -> T {
        self.memory.once(about, draw)
    }

    /// Like [`Request::once`], for asynchronous values.
    pub async fn once_loaded<T: Clone + Send + 'static>(
        &self,
        about: &str,
        load: impl Future<Output = AuthResult<T>>,
    ) -> AuthResult<T> {
        if let Some(known) = self.memory.recall(about) {
            return Ok(known);
        }
        let loaded = load.await?;
        self.memory.keep(about, loaded.clone());
        Ok(loaded)
    }

    /// The client's address, according to trusted proxies. A drop-in without configured proxies trusts any
    /// `X-Forwarded-For`, as upstream does.
    pub fn client_ip(&self) -> Option<IpAddr> {
        if self.auth.config.security.sb_forwarded_for
            && let Some(address) = self.sb_forwarded_for()
        {
            return Some(address);
        }
        let proxies = &self.auth.trusted_proxies;
        match self.auth.config.mode {
            AuthMode::DropIn if proxies.is_none() => self
                .header("x-forwarded-for")
                .unwrap_or("")
                .split(',')
                .find_map(parse_entry)
                .or_else(|| self.http.peer_addr().map(|peer| peer.ip())),
            AuthMode::DropIn | AuthMode::Full => client_address(&self.http, proxies),
        }
    }

    /// `Sb-Forwarded-For`, the header of Supabase's edge.
    pub fn sb_forwarded_for(&self) -> Option<IpAddr> {
        parse_entry(self.header("sb-forwarded-for")?.split(',').next()?)
    }

    /// The address as text, `""` when unknown.
    pub fn client_ip_text(&self) -> String {
        self.client_ip().map(|ip| ip.to_string()).unwrap_or_default()
    }

    /// What a session opened by this request stores about its client.
    pub fn grant(&self) -> Grant {
        Grant {
            user_agent: self.header("user-agent").unwrap_or("").to_owned(),
            ip: self.client_ip(),
            ..Grant::default()
        }
    }

    /// The audience in which users are looked up: `X-JWT-AUD`, else the token's (except for administrators),
    /// else the configured one.
    pub fn audience(&self, claims: Option<&Claims>) -> String {
        let jwt = &self.auth.config.jwt;
        if let Some(header) = self.header("x-jwt-aud").filter(|value| !value.is_empty()) {
            return header.to_owned();
        }
        match claims {
            Some(claims) if !jwt.admin_roles.contains(&claims.role) && !claims.first_audience().is_empty() => {
                claims.first_audience().to_owned()
            }
            _ => jwt.aud.clone(),
        }
    }

    /// The URL under which clients reach this API, for links. A forwarded host counts only if it is listed,
    /// so that headers cannot change links.
    pub fn external_url(&self) -> Url {
        let hosts = &self.auth.config.mailer.external_hosts;
        let forwarded = self.header("x-forwarded-host").unwrap_or("");
        if !forwarded.is_empty() && hosts.iter().any(|host| host == forwarded) {
            let plain = forwarded == "localhost" && self.header("x-forwarded-proto") == Some("http");
            let scheme = if plain { "http" } else { "https" };
            if let Ok(url) = Url::parse(&format!("{scheme}://{forwarded}")) {
                return url;
            }
        }
        self.auth.external_url.clone()
    }

    /// The requested redirect target, if it is allowed.
    pub fn redirect_target(&self) -> String {
        self.auth.redirects.choose(self)
    }

    /// Adds a header to the answer.
    pub fn add_header(&self, name: &'static str, value: impl Into<String>) {
        self.extra.borrow_mut().push((HeaderName::from_static(name), value.into()));
    }

    /// Puts the added headers on a finished answer.
    pub fn finish(&self, response: &mut HttpResponse) {
        for (name, value) in self.extra.borrow_mut().drain(..) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
    }
}

/// 200 with a JSON body.
pub fn ok(body: &impl Serialize) -> AuthResult<HttpResponse> {
    Ok(json_response(actix_web::http::StatusCode::OK, body))
}

/// 200 `{}`.
pub fn empty() -> AuthResult<HttpResponse> {
    ok(&serde_json::json!({}))
}
