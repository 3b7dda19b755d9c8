//! Last stage: a result becomes status, headers and body.
//!
//! Reference: PostgREST `src/library/PostgREST/Response.hs`, `RangeQuery.hs` (`rangeStatusHeader`).

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::{ApiError, RangeFault};
use super::execute::{LongBody, Outcome, ResultSet};
use super::openapi::{self, Offer};
use super::plan::{DatabasePlan, Work};
use super::request::media::MediaType;
use super::request::prefer::{Count, Preferences, Resolution, Return};
use super::request::{ApiRequest, CallMethod, Mutation};
use crate::config::RestConfig;
use crate::schema_cache::SchemaCache;

/// A response, ready to be sent.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    /// The reason phrase, if SQL chose one.
    pub reason: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Sent instead of `body`.
    pub long: Option<LongBody>,
    /// Without a body and without `Content-Length`: HEAD.
    pub headers_only: bool,
}

impl Response {
    /// A status and nothing else yet.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn optional(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// An error response. For HEAD too, with the length of the body that GET would get.
    pub fn from_error(error: &ApiError, minimal: bool) -> Self {
        if let ApiError::NotUtf8 = error {
            let response = Self::new(error.status()).header("Content-Type", "text/plain; charset=utf-8");
            return response.with_body(Bytes::from(error.message()));
        }
        let mut response = Self::new(error.status())
            .header("Content-Type", "application/json; charset=utf-8")
            .header("Proxy-Status", format!("PostgREST; error={}", error.code()))
            .with_body(Bytes::from(error.body(minimal)));
        response.headers.extend(error.headers());
        response.reason = error.reason();
        response
    }
}

/// The answer to OPTIONS.
pub fn info(allow: &str) -> Response {
    Response::new(200).header("Access-Control-Allow-Origin", "*").header("Allow", allow)
}

/// The document at the root.
pub fn document(request: &ApiRequest, offer: &Offer, cache: &SchemaCache, config: &RestConfig, head: bool) -> Response {
    let mut response = typed(Response::new(200), &MediaType::OpenApi, request);
    response.headers_only = head;
    if !head {
        response.body = Bytes::from(openapi::document(offer, cache, config).to_string());
    }
    response
}

/// The answer of a finished transaction. `minimal`: errors show code and message only.
pub fn respond(
    request: &ApiRequest,
    plan: &DatabasePlan,
    outcome: Outcome,
    minimal: bool,
) -> Result<Response, ApiError> {
    match outcome {
        Outcome::Explained(text) => Ok(typed(Response::new(200), &plan.media, request).with_body(text)),
        Outcome::Long { result, body } => {
            let mut response = respond(request, plan, Outcome::Rows(result), minimal)?;
            response.long = Some(body);
            Ok(response)
        }
        Outcome::Rows(result) => {
            let response = match &plan.work {
                Work::Read { relation, head } => {
                    let mut location = format!("/{}", relation.name);
                    if !request.query.canonical.is_empty() {
                        location.push('?');
                        location.push_str(&request.query.canonical);
                    }
                    let (status, range) = range_status(request, &result);
                    let response =
                        Response::new(status).header("Content-Range", range).header("Content-Location", location);
                    let response = typed(response, &plan.media, request);
                    let response = response.optional("Preference-Applied", applied(request, plan));
                    paged(response, request, &result, *head, minimal)
                }
                Work::Write { mutation, .. } => respond_to_write(request, plan, *mutation, &result),
                Work::Call { call, method } => {
                    let (status, range) = range_status(request, &result);
                    let status = if call.function.returns_void() { 204 } else { status };
                    let response = Response::new(status)
                        .header("Content-Range", range)
                        .optional("Preference-Applied", applied(request, plan));
                    if call.function.returns_void() {
                        response
                    } else {
                        let response = typed(response, &plan.media, request);
                        paged(response, request, &result, *method == CallMethod::Head, minimal)
                    }
                }
            };
            overridden(response, &result)
        }
    }
}

/// The body of a page, or the error of an offset beyond the total.
fn paged(mut response: Response, request: &ApiRequest, result: &ResultSet, head: bool, minimal: bool) -> Response {
    response.headers_only = head;
    if response.status == 416 {
        let fault = RangeFault::OutOfBounds { offset: request.range.lower, total: result.total.unwrap_or(0) };
        if !head {
            response.body = Bytes::from(ApiError::Range(fault).body(minimal));
        }
    } else if !head {
        response.body = result.body.clone();
    }
    response
}

fn respond_to_write(request: &ApiRequest, plan: &DatabasePlan, mutation: Mutation, result: &ResultSet) -> Response {
    let preferences = &request.preferences;
    let represented = preferences.returning == Some(Return::Representation);
    let total = preferences.count.filter(|count| count.counts()).map(|_: Count| result.page);
    let applied = applied(request, plan);
    match mutation {
        Mutation::Insert => {
            let merges = preferences.resolution == Some(Resolution::MergeDuplicates);
            let status = match result.inserted {
                Some(inserted) if inserted <= 0 && merges => 200,
                Some(_) => 201,
                // No count: not an upsert, or one without rows.
                None if merges => 200,
                None => 201,
            };
            let response = Response::new(status)
                .optional("Location", location(plan, result))
                .header("Content-Range", content_range(1, 0, total))
                .optional("Preference-Applied", applied);
            if represented { typed(response, &plan.media, request).with_body(result.body.clone()) } else { response }
        }
        Mutation::Update | Mutation::Delete => {
            let range = match mutation {
                Mutation::Update => content_range(0, i128::from(result.page) - 1, total),
                _ => content_range(1, 0, total),
            };
            let response = Response::new(if represented { 200 } else { 204 })
                .header("Content-Range", range)
                .optional("Preference-Applied", applied);
            if represented { typed(response, &plan.media, request).with_body(result.body.clone()) } else { response }
        }
        Mutation::SingleUpsert if represented => {
            let status = if result.inserted.is_some_and(|inserted| inserted > 0) { 201 } else { 200 };
            typed(Response::new(status), &plan.media, request)
                .optional("Preference-Applied", applied)
                .with_body(result.body.clone())
        }
        Mutation::SingleUpsert => Response::new(204).optional("Preference-Applied", applied),
    }
}

fn typed(response: Response, media: &MediaType, request: &ApiRequest) -> Response {
    response
        .header("Content-Type", media.content_type())
        .optional("Content-Profile", request.profiled.then(|| request.schema.clone()))
}

fn range_status(request: &ApiRequest, result: &ResultSet) -> (u16, String) {
    let lower = request.range.lower;
    let upper = lower + i128::from(result.page) - 1;
    let status = match result.total.map(i128::from) {
        Some(total) if lower > total => 416,
        Some(total) if i128::from(result.page) < total => 206,
        Some(_) | None => 200,
    };
    (status, content_range(lower, upper, result.total))
}

fn content_range(lower: i128, upper: i128, total: Option<i64>) -> String {
    let range = if total != Some(0) && lower <= upper { format!("{lower}-{upper}") } else { "*".to_owned() };
    match total {
        Some(total) => format!("{range}/{total}"),
        None => format!("{range}/*"),
    }
}

/// `/name?key=eq.value`
fn location(plan: &DatabasePlan, result: &ResultSet) -> Option<String> {
    // The characters that the reference's library does not escape in a query string.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let Work::Write { relation, .. } = &plan.work else { return None };
    if result.location.is_empty() {
        return None;
    }
    let pairs: Vec<String> = result
        .location
        .iter()
        .map(|(key, value)| format!("{}={}", utf8_percent_encode(key, ESCAPED), utf8_percent_encode(value, ESCAPED)))
        .collect();
    Some(format!("/{}?{}", relation.name, pairs.join("&")))
}

/// `Preference-Applied`: the preferences that apply to this request.
fn applied(request: &ApiRequest, plan: &DatabasePlan) -> Option<String> {
    use super::plan::mutate::WriteKind;
    let (mut resolution, mut returning, mut missing, mut max_affected) = (None, None, None, None);
    let asked = &request.preferences;
    match &plan.work {
        Work::Read { .. } => {}
        Work::Write { mutation, write, .. } => {
            returning = asked.returning;
            let has_target = match &write.kind {
                WriteKind::Insert { primary_key, .. } => !primary_key.is_empty() || request.query.on_conflict.is_some(),
                _ => false,
            };
            match mutation {
                Mutation::Insert => {
                    resolution = asked.resolution.filter(|_| has_target);
                    missing = asked.missing;
                }
                Mutation::Update => {
                    missing = asked.missing;
                    max_affected = asked.max_affected;
                }
                Mutation::Delete => max_affected = asked.max_affected,
                Mutation::SingleUpsert => {}
            }
        }
        Work::Call { .. } => max_affected = asked.max_affected,
    }
    let shown = Preferences {
        resolution,
        returning,
        missing,
        max_affected,
        count: asked.count,
        tx: asked.tx,
        handling: asked.handling,
        timezone: asked.timezone.clone(),
        unknown: Vec::new(),
    };
    shown.applied()
}

/// Status and headers that SQL set replace ours.
fn overridden(mut response: Response, result: &ResultSet) -> Result<Response, ApiError> {
    if let Some(status) = &result.status {
        let digits: String = status.chars().take_while(char::is_ascii_digit).collect();
        let status: u16 = digits.parse().map_err(|_| ApiError::ResponseStatus)?;
        if !(100..=999).contains(&status) {
            return Err(ApiError::ResponseStatus);
        }
        response.status = status;
    }
    if let Some(headers) = &result.headers {
        let headers = response_headers(headers).ok_or(ApiError::ResponseHeaders)?;
        response.headers.retain(|(name, _)| !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        response.headers.extend(headers);
    }
    Ok(response)
}

/// `[{"name": "value"}, …]`
fn response_headers(json: &str) -> Option<Vec<(String, String)>> {
    let items: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(json).ok()?;
    items
        .into_iter()
        .map(|item| {
            let mut entries = item.into_iter();
            match (entries.next(), entries.next()) {
                (Some((name, serde_json::Value::String(value))), None) => Some((name, value)),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_range_shows_stars_for_unknown_or_empty_ranges() {
        let cases = [
            ((0, 9, None), "0-9/*"),
            ((0, 9, Some(20)), "0-9/20"),
            ((0, -1, None), "*/*"),
            ((0, -1, Some(0)), "*/0"),
            ((1, 0, Some(3)), "*/3"),
        ];
        for ((lower, upper, total), text) in cases {
            assert_eq!(content_range(lower, upper, total), text);
        }
    }

    #[test]
    fn response_headers_are_a_list_of_single_key_objects() {
        let pairs = response_headers(r#"[{"Set-Cookie":"a"},{"Set-Cookie":"b"}]"#).expect("headers");
        assert_eq!(pairs.len(), 2);
        for wrong in ["{}", r#"[{"a":1}]"#, r#"[{"a":"1","b":"2"}]"#, "nonsense", "[{}]"] {
            assert_eq!(response_headers(wrong), None, "{wrong}");
        }
    }
}
