//! First stage: an HTTP request becomes an [`ApiRequest`].
//!
//! This stage parses everything and looks nothing up. Names are kept as written; the plan checks whether relations, columns and
//! functions exist.
//!
//! Reference: PostgREST `src/library/PostgREST/ApiRequest.hs`.

mod combinators;
mod csv;
mod grammar;
pub mod media;
pub mod payload;
mod plain;
pub mod prefer;
pub mod query;
pub mod range;
pub mod types;

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use percent_encoding::percent_decode;

use super::error::{ApiError, RangeFault};
use media::MediaType;
use payload::{Payload, Purpose};
use prefer::Preferences;
use query::QueryParams;
use range::RowRange;

/// A raw request; its path is without the prefix under which the API is mounted.
#[derive(Clone, Debug, Default)]
pub struct RawRequest<'a> {
    pub method: &'a str,
    /// Begins with `/`.
    pub path: &'a str,
    pub query: &'a str,
    /// Names in lower case, in order, repetitions kept.
    pub headers: Vec<(&'a str, &'a [u8])>,
    pub body: Bytes,
}

impl<'a> RawRequest<'a> {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<Cow<'a, str>> {
        self.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| lossy(value))
    }
}

/// The text of a header. ASCII, the common case, is checked many bytes at a time.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The configuration that parsing depends on.
#[derive(Clone, Debug)]
pub struct RequestRules<'a> {
    /// Exposed schemas; the first is the default.
    pub schemas: &'a [String],
    /// The function served at `/` instead of the OpenAPI document.
    pub root_function: Option<&'a str>,
    /// `openapi-mode=disabled`.
    pub root_disabled: bool,
    /// Whether `Prefer: tx=…` is obeyed.
    pub tx_override: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    Insert,
    Update,
    /// PUT.
    SingleUpsert,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMethod {
    Post,
    Get,
    Head,
}

/// The action and its target in the request's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Read {
        relation: String,
        head: bool,
    },
    Mutate {
        relation: String,
        mutation: Mutation,
    },
    Call {
        function: String,
        method: CallMethod,
    },
    /// The OpenAPI document.
    Root {
        head: bool,
    },
    /// OPTIONS.
    RelationInfo {
        relation: String,
    },
    FunctionInfo {
        function: String,
    },
    RootInfo,
}

/// A request, parsed.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub action: Action,
    pub method: String,
    pub path: String,
    pub schema: String,
    /// Whether answers have `Content-Profile`.
    pub profiled: bool,
    pub query: QueryParams,
    /// The range of the top level: header, `limit` and `offset` together.
    pub range: RowRange,
    pub payload: Option<Payload>,
    /// The columns (or arguments) that the body or `columns` names.
    pub columns: BTreeSet<String>,
    pub preferences: Preferences,
    pub accept: Vec<MediaType>,
    pub content_type: MediaType,
    /// JSON objects for `request.headers` and `request.cookies`.
    pub headers_json: String,
    pub cookies_json: String,
}

enum Resource {
    Root,
    Relation(String),
    Function(String),
}

/// Parses `raw`. The order of the checks is the order in which errors take precedence.
pub fn parse(raw: &RawRequest<'_>, rules: &RequestRules<'_>) -> Result<ApiRequest, ApiError> {
    let resource = resource(raw.path, rules)?;
    let (schema, profiled) = schema(raw, rules)?;
    let action = action(resource, raw.method)?;
    let reading_call = matches!(action, Action::Call { method: CallMethod::Get | CallMethod::Head, .. });
    let mut query = query::parse(raw.query.as_bytes(), reading_call)?;
    let range = ranges(raw, &mut query)?;
    let content_type = raw.header("content-type").map_or(MediaType::Json, |value| MediaType::parse(&value));
    let (payload, columns) = payload(raw, &action, &content_type, &query)?;
    let prefer: Vec<_> =
        raw.headers.iter().filter(|(name, _)| *name == "prefer").map(|(_, value)| lossy(value)).collect();
    Ok(ApiRequest {
        action,
        method: raw.method.to_owned(),
        path: raw.path.to_owned(),
        schema,
        profiled,
        query,
        range,
        payload,
        columns,
        preferences: prefer::parse(prefer.iter().map(|value| &**value), rules.tx_override),
        accept: raw.header("accept").map_or_else(|| vec![MediaType::Any], |value| media::parse_accept(&value)),
        content_type,
        headers_json: headers_json(raw),
        cookies_json: cookies_json(raw),
    })
}

/// The schema and action of a request, from its head alone. Errors have the same precedence as in [`parse`].
pub fn target(raw: &RawRequest<'_>, rules: &RequestRules<'_>) -> Result<(String, Action), ApiError> {
    let resource = resource(raw.path, rules)?;
    let (schema, _) = schema(raw, rules)?;
    Ok((schema, action(resource, raw.method)?))
}

fn resource(path: &str, rules: &RequestRules<'_>) -> Result<Resource, ApiError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return match (rules.root_disabled, rules.root_function) {
            (true, _) => Err(ApiError::RootDisabled),
            (false, Some(function)) => Ok(Resource::Function(function.to_owned())),
            (false, None) => Ok(Resource::Root),
        };
    }
    let mut segments = path.split('/').map(|part| percent_decode(part.as_bytes()).decode_utf8_lossy().into_owned());
    match (segments.next(), segments.next(), segments.next()) {
        (Some(relation), None, _) => Ok(Resource::Relation(relation)),
        (Some(rpc), Some(function), None) if rpc == "rpc" => Ok(Resource::Function(function)),
        _ => Err(ApiError::Path),
    }
}

fn schema(raw: &RawRequest<'_>, rules: &RequestRules<'_>) -> Result<(String, bool), ApiError> {
    let header = match raw.method {
        "POST" | "PATCH" | "PUT" | "DELETE" => "content-profile",
        _ => "accept-profile",
    };
    match raw.header(header) {
        Some(wanted) if rules.schemas.iter().any(|schema| *schema == wanted) => Ok((wanted.into_owned(), true)),
        Some(wanted) => Err(ApiError::Schema { requested: wanted.into_owned(), exposed: rules.schemas.to_vec() }),
        None => Ok((rules.schemas.first().cloned().unwrap_or_default(), rules.schemas.len() != 1)),
    }
}

fn action(resource: Resource, method: &str) -> Result<Action, ApiError> {
    Ok(match (resource, method) {
        (Resource::Function(function), "HEAD") => Action::Call { function, method: CallMethod::Head },
        (Resource::Function(function), "GET") => Action::Call { function, method: CallMethod::Get },
        (Resource::Function(function), "POST") => Action::Call { function, method: CallMethod::Post },
        (Resource::Function(function), "OPTIONS") => Action::FunctionInfo { function },
        (Resource::Function(_), other) => return Err(ApiError::RpcMethod(other.to_owned())),
        (Resource::Relation(relation), "HEAD") => Action::Read { relation, head: true },
        (Resource::Relation(relation), "GET") => Action::Read { relation, head: false },
        (Resource::Relation(relation), "POST") => Action::Mutate { relation, mutation: Mutation::Insert },
        (Resource::Relation(relation), "PUT") => Action::Mutate { relation, mutation: Mutation::SingleUpsert },
        (Resource::Relation(relation), "PATCH") => Action::Mutate { relation, mutation: Mutation::Update },
        (Resource::Relation(relation), "DELETE") => Action::Mutate { relation, mutation: Mutation::Delete },
        (Resource::Relation(relation), "OPTIONS") => Action::RelationInfo { relation },
        (Resource::Root, "HEAD") => Action::Root { head: true },
        (Resource::Root, "GET") => Action::Root { head: false },
        (Resource::Root, "OPTIONS") => Action::RootInfo,
        (_, other) => return Err(ApiError::Method(other.to_owned())),
    })
}

/// Combines `Range`, `limit` and `offset` of the top level; also stores the result in `query.ranges`.
fn ranges(raw: &RawRequest<'_>, query: &mut QueryParams) -> Result<RowRange, ApiError> {
    let header = match (raw.method, raw.header("range")) {
        ("GET", Some(value)) => range::parse_range_header(&value),
        _ => RowRange::ALL,
    };
    let asked = query.ranges.get("limit").copied().unwrap_or(RowRange::ALL);
    let top = if asked.is_limit_zero() { RowRange::NONE } else { header.intersect(asked) };
    if (top.is_empty() || header.is_empty() || asked.is_empty()) && !asked.is_limit_zero() {
        let fault = if header.is_empty() { RangeFault::LowerAboveUpper } else { RangeFault::NegativeLimit };
        return Err(ApiError::Range(fault));
    }
    if raw.method == "PUT" && top != RowRange::ALL {
        return Err(ApiError::PutRange);
    }
    query.ranges.insert("limit".to_owned(), top);
    Ok(top)
}

fn payload(
    raw: &RawRequest<'_>,
    action: &Action,
    content_type: &MediaType,
    query: &QueryParams,
) -> Result<(Option<Payload>, BTreeSet<String>), ApiError> {
    let (purpose, columns) = match action {
        Action::Mutate { mutation: Mutation::Insert | Mutation::Update, .. } => (Purpose::Rows, &query.columns),
        Action::Mutate { mutation: Mutation::SingleUpsert, .. } => (Purpose::Rows, &None),
        Action::Call { method: CallMethod::Post, .. } => (Purpose::Arguments, &query.columns),
        _ => return Ok((None, BTreeSet::new())),
    };
    let (payload, keys) = payload::parse(raw.body.clone(), content_type, purpose, columns.as_deref())?;
    Ok((Some(payload), keys))
}

/// All headers except cookies. A repeated header has its last value, at the position of the first.
fn headers_json(raw: &RawRequest<'_>) -> String {
    let mut headers: Vec<(&str, &[u8])> = Vec::with_capacity(raw.headers.len());
    for &(name, value) in raw.headers.iter().filter(|(name, _)| *name != "cookie") {
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => headers.push((name, value)),
        }
    }
    let mut json = String::with_capacity(headers.iter().map(|(name, value)| name.len() + value.len() + 8).sum());
    for (name, value) in headers {
        json.push(if json.is_empty() { '{' } else { ',' });
        json_string(&mut json, name);
        json.push(':');
        json_string(&mut json, &lossy(value));
    }
    json.push_str(if json.is_empty() { "{}" } else { "}" });
    json
}

/// `text` in quotes.
fn json_string(out: &mut String, text: &str) {
    // No early exit, so that many bytes are checked at a time.
    let needs_escapes = text.bytes().fold(false, |found, b| found | (b < b' ') | (b == b'"') | (b == b'\\'));
    if !needs_escapes {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

/// As the reference's library reads them: blanks are kept except before a name, and only a pair of quotes is removed.
fn cookies_json(raw: &RawRequest<'_>) -> String {
    let Some(header) = raw.header("cookie") else { return "{}".to_owned() };
    // A trailing semicolon does not start another cookie.
    let parts = header.strip_suffix(';').unwrap_or(&header).split(';').filter(|_| !header.is_empty());
    let cookies: serde_json::Map<String, serde_json::Value> = parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let unquoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
            (name.trim_start_matches(' ').to_owned(), unquoted.into())
        })
        .collect();
    serde_json::Value::Object(cookies).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_an_object_with_the_last_value_of_each() {
        let json = |headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
            headers_json(&RawRequest { headers, ..RawRequest::default() })
        };
        assert_eq!(json(&[]), "{}");
        assert_eq!(json(&[("a", "1"), ("cookie", "c=2"), ("b", "2"), ("a", "3")]), r#"{"a":"3","b":"2"}"#);
        assert_eq!(json(&[("a", "\"q\"\t\\ü")]), r#"{"a":"\"q\"\t\\ü"}"#);
    }

    #[test]
    fn cookie_values_keep_spaces_and_single_quotes() {
        let json = |cookie: &str| {
            let headers = vec![("cookie", cookie.as_bytes())];
            let json = cookies_json(&RawRequest { headers, ..RawRequest::default() });
            serde_json::from_str::<serde_json::Value>(&json).expect("JSON")
        };
        assert_eq!(json("a=1; b=\"2\""), serde_json::json!({ "a": "1", "b": "2" }));
        assert_eq!(json("a=1 ;b=\"2;c=\"\"3\"\""), serde_json::json!({ "a": "1 ", "b": "\"2", "c": "\"3\"" }));
        assert_eq!(json("a=1;a=2;b;c=d=e;"), serde_json::json!({ "a": "2", "b": "", "c": "d=e" }));
        assert_eq!(json("a=1;;b=2"), serde_json::json!({ "a": "1", "": "", "b": "2" }));
        assert_eq!(json(""), serde_json::json!({}));
    }
}
