//! Mailpit's API, for end-to-end tests written for `supabase start`.
//!
//! | route | answer |
//! |---|---|
//! | `GET /api/v1/messages?start=&limit=` | summaries, newest first |
//! | `GET /api/v1/search?query=&start=&limit=` | those that match, see [`super::search`] |
//! | `PUT /api/v1/messages` | marks `IDs`, those that match `Search`, or all as `Read` |
//! | `DELETE /api/v1/messages` | removes `IDs`, or all |
//! | `DELETE /api/v1/search?query=` | removes those that match |
//! | `GET /api/v1/message/{id}` | one message, read from now on; `latest` is the newest |
//! | `GET /api/v1/message/{id}/headers`, `/raw` | its headers, its source |
//! | `GET /api/v1/message/{id}/part/{part}` | an attachment or another part of a mail that came by SMTP |
//! | `GET /view/{id}.html`, `.txt` | its parts |
//! | `GET /api/v1/info`, `/tags`, `/livez`, `/readyz` | what clients request at start |
//!
//! Only mails that came by SMTP have attachments, copies and addresses for replies; none has tags. Reference: axllent/mailpit
//! `server/apiv1`, `internal/storage/search.go`.

use std::sync::LazyLock;
use std::time::Instant;

use actix_web::http::{StatusCode, header};
use actix_web::web::{self, Bytes, Data, Path, Query};
use actix_web::{HttpResponse, ResponseError};
use chrono::SecondsFormat;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::InboxError;
use super::queries::{self, Selected, Stored};
use super::search::{Term, time};
use crate::db::Pool;

/// The maximum size of a snippet, in bytes.
const SNIPPET: usize = 200;
/// The default limit of messages.
const LIMIT: i64 = 50;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

pub fn routes(service: &mut web::ServiceConfig) {
    LazyLock::force(&STARTED);
    service
        .route("/api/v1/messages", web::get().to(list))
        .route("/api/v1/messages", web::put().to(mark))
        .route("/api/v1/messages", web::delete().to(delete))
        .route("/api/v1/search", web::get().to(search))
        .route("/api/v1/search", web::delete().to(delete_found))
        .route("/api/v1/message/{id}", web::get().to(one))
        .route("/api/v1/message/{id}/headers", web::get().to(headers))
        .route("/api/v1/message/{id}/raw", web::get().to(source))
        .route("/api/v1/message/{id}/part/{part}", web::get().to(part))
        .route("/api/v1/info", web::get().to(info))
        .route("/api/v1/tags", web::get().to(tags))
        .route("/livez", web::get().to(ok))
        .route("/readyz", web::get().to(ok))
        .route("/view/{file}", web::get().to(view));
}

/// Answered as plain text.
#[derive(Debug, thiserror::Error)]
enum MailpitError {
    #[error("404 page not found")]
    Unknown,
    #[error("{0}")]
    Invalid(&'static str),
    #[error(transparent)]
    Inbox(InboxError),
}

impl ResponseError for MailpitError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Inbox(error) => error.status_code(),
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Inbox(error) = self {
            tracing::warn!(%error, "the inbox cannot be read");
        }
        HttpResponse::build(self.status_code()).content_type("text/plain").body(self.to_string())
    }
}

impl From<InboxError> for MailpitError {
    fn from(error: InboxError) -> Self {
        match error {
            InboxError::Unknown => Self::Unknown,
            error @ InboxError::Database(_) => Self::Inbox(error),
        }
    }
}

type Answer = Result<HttpResponse, MailpitError>;

/// All as text, because invalid numbers count as absent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    query: String,
    start: String,
    limit: String,
    before: String,
}

impl Asked {
    fn start(&self) -> i64 {
        self.start.parse().unwrap_or(0).max(0)
    }

    fn limit(&self) -> i64 {
        self.limit.parse().ok().filter(|limit| *limit >= 0).unwrap_or(LIMIT)
    }

    /// The terms of `before` and `after`.
    fn bounds(&self) -> Vec<Term> {
        time(&self.before).map(|time| Term::new("before", time, false)).into_iter().collect()
    }

    fn terms(&self) -> Result<Vec<Term>, MailpitError> {
        if self.query.trim().is_empty() {
            return Err(MailpitError::Invalid("Error: no search query"));
        }
        Ok(Term::parse_all(&self.query))
    }
}

async fn list(pool: Data<Pool>, asked: Query<Asked>) -> Answer {
    // `None` means all.
    let limit = Some(asked.limit()).filter(|limit| *limit > 0);
    let selected = queries::select(&pool, &asked.bounds(), asked.start(), limit).await?;
    let Selected { total, unread, .. } = selected;
    Ok(summaries(&asked, &Selected { matching: total, matching_unread: unread, ..selected }))
}

async fn search(pool: Data<Pool>, asked: Query<Asked>) -> Answer {
    let mut terms = asked.terms()?;
    terms.extend(asked.bounds());
    let selected = queries::select(&pool, &terms, asked.start(), Some(asked.limit())).await?;
    Ok(summaries(&asked, &selected))
}

fn summaries(asked: &Asked, selected: &Selected) -> HttpResponse {
    let messages: Vec<Value> = selected.messages.iter().map(summary).collect();
    HttpResponse::Ok().json(json!({
        "total": selected.total,
        "unread": selected.unread,
        "count": messages.len(),
        "messages_count": selected.matching,
        "messages_unread": selected.matching_unread,
        "start": asked.start(),
        "tags": [],
        "messages": messages,
    }))
}

fn summary(message: &Stored) -> Value {
    json!({
        "ID": message.id,
        "MessageID": message_id(message),
        "Read": message.opened,
        "From": from(message),
        "To": to(message),
        "Cc": some(detail(message, "Cc")),
        "Bcc": some(detail(message, "Bcc")),
        "ReplyTo": list_of(message, "ReplyTo"),
        "Subject": message.subject,
        "Created": message.received_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "Username": "",
        "Tags": [],
        "Size": size(message),
        "Attachments": list_of(message, "Attachments").as_array().map_or(0, Vec::len),
        "Snippet": snippet(message),
    })
}

fn whole(message: &Stored) -> Value {
    let from = from(message);
    let sent = detail(message, "Date").and_then(Value::as_str).map(str::to_owned);
    let header = |name: &str| header_of(message, name).unwrap_or_default();
    let unsubscribe = header("List-Unsubscribe");
    let links: Vec<&str> = unsubscribe.split(',').map(|link| link.trim().trim_matches(['<', '>'])).collect();
    json!({
        "ID": message.id,
        "MessageID": message_id(message),
        "From": from,
        "To": to(message),
        "Cc": list_of(message, "Cc"),
        "Bcc": list_of(message, "Bcc"),
        "ReplyTo": list_of(message, "ReplyTo"),
        "ReturnPath": detail(message, "ReturnPath").unwrap_or(&from["Address"]),
        "Subject": message.subject,
        "ListUnsubscribe": {
            "Header": unsubscribe,
            "Links": links.into_iter().filter(|link| !link.is_empty()).collect::<Vec<_>>(),
            "Errors": "",
            "HeaderPost": header("List-Unsubscribe-Post"),
        },
        "Date": sent.unwrap_or_else(|| message.received_at.to_rfc3339_opts(SecondsFormat::Millis, true)),
        "Tags": [],
        "Username": "",
        "Text": message.text,
        "HTML": message.html,
        "Size": size(message),
        "Inline": list_of(message, "Inline"),
        "Attachments": list_of(message, "Attachments"),
    })
}

/// What only a mail that came by SMTP has.
fn detail<'m>(message: &'m Stored, name: &str) -> Option<&'m Value> {
    message.details.as_ref()?.get(name).filter(|value| !value.is_null())
}

fn list_of(message: &Stored, name: &str) -> Value {
    detail(message, name).cloned().unwrap_or_else(|| json!([]))
}

/// Summaries have null for an empty list.
fn some(list: Option<&Value>) -> Option<&Value> {
    list.filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
}

fn from(message: &Stored) -> Value {
    detail(message, "From").cloned().unwrap_or_else(|| address(&message.from))
}

fn to(message: &Stored) -> Value {
    detail(message, "To").cloned().unwrap_or_else(|| json!([address(&message.to)]))
}

fn size(message: &Stored) -> usize {
    message.size.and_then(|size| size.try_into().ok()).unwrap_or_else(|| raw(message).len())
}

fn header_of(message: &Stored, name: &str) -> Option<String> {
    if let Some(headers) = detail(message, "Headers") {
        return headers.get(name)?.get(0)?.as_str().map(str::to_owned);
    }
    let headers = message.headers.as_object()?;
    let (_, value) = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    value.as_str().map(str::to_owned)
}

fn message_id(message: &Stored) -> String {
    let own = detail(message, "MessageID").and_then(Value::as_str).filter(|id| !id.is_empty());
    own.map_or_else(|| format!("{}@ferrobase", message.id), str::to_owned)
}

/// `Name, address` as senders are stored, or only an address.
fn address(text: &str) -> Value {
    let (name, address) = text.rsplit_once(", ").unwrap_or(("", text));
    json!({ "Name": name, "Address": address })
}

/// The form in a header.
fn named(text: &str) -> String {
    match text.rsplit_once(", ") {
        Some((name, address)) => format!("\"{}\" <{address}>", name.replace('"', "\\\"")),
        None => format!("<{text}>"),
    }
}

/// The beginning of the readable text.
fn snippet(message: &Stored) -> String {
    let text = plain(&message.html);
    let text = if text.is_empty() { message.text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text };
    if text.len() <= SNIPPET {
        return text;
    }
    let end = (0..=SNIPPET).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// The text of an HTML part, in one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let hidden = ["style", "script", "head", "title"].into_iter().find(|name| {
            let follows = tag.get(name.len()..).is_some_and(|after| after.starts_with(['>', ' ', '\n']));
            follows && tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        });
        let tag = hidden
            .and_then(|name| tag.to_ascii_lowercase().find(&format!("</{name}")).and_then(|end| tag.get(end + 1..)))
            .unwrap_or(tag);
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    for (entity, letter) in
        [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        text = text.replace(entity, letter);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The headers in the order of their names, each with its values.
fn all_headers(message: &Stored) -> Map<String, Value> {
    if let Some(headers) = detail(message, "Headers").and_then(Value::as_object) {
        return headers.clone();
    }
    let own = message.headers.as_object().into_iter().flatten();
    let own = own.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
    let known = [
        ("Date", message.received_at.to_rfc2822()),
        ("From", named(&message.from)),
        ("Message-ID", format!("<{}>", message_id(message))),
        ("Subject", message.subject.clone()),
        ("To", message.to.clone()),
    ];
    let known = known.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut all: Vec<(String, String)> = own.chain(known).filter(|(_, value)| !value.is_empty()).collect();
    all.sort();
    all.into_iter().map(|(name, value)| (name, json!([value]))).collect()
}

/// The message in RFC 5322 format.
fn raw(message: &Stored) -> String {
    use std::fmt::Write;
    const BOUNDARY: &str = "ferrobase-inbox-part";
    let mut text = String::new();
    for (name, values) in all_headers(message) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{name}: {}\r\n", values[0].as_str().unwrap_or_default());
    }
    text.push_str("MIME-Version: 1.0\r\n");
    let parts: Vec<(&str, &str)> = [("plain", &*message.text), ("html", &*message.html)]
        .into_iter()
        .filter(|(_, part)| !part.is_empty())
        .collect();
    let of =
        |kind: &str| format!("Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
    if let [(kind, part)] = parts[..] {
        return text + &of(kind) + part;
    }
    let _ = write!(text, "Content-Type: multipart/alternative; boundary={BOUNDARY}\r\n\r\n");
    for (kind, part) in parts {
        let _ = write!(text, "--{BOUNDARY}\r\n{}{part}\r\n", of(kind));
    }
    text + "--" + BOUNDARY + "--\r\n"
}

/// A message by its number or `latest`, optionally among those that match `query`.
async fn find(pool: &Pool, id: &str, query: &str) -> Result<Stored, MailpitError> {
    if id != "latest" {
        return Ok(super::find(pool, id).await?);
    }
    let selected = queries::select(pool, &Term::parse_all(query), 0, Some(1)).await?;
    selected.messages.into_iter().next().ok_or(MailpitError::Unknown)
}

async fn one(pool: Data<Pool>, id: Path<String>, asked: Query<Asked>) -> Answer {
    let message = find(&pool, &id, &asked.query).await?;
    queries::mark_opened(&pool, &message).await?;
    Ok(HttpResponse::Ok().json(whole(&message)))
}

async fn headers(pool: Data<Pool>, id: Path<String>, asked: Query<Asked>) -> Answer {
    Ok(HttpResponse::Ok().json(all_headers(&find(&pool, &id, &asked.query).await?)))
}

async fn source(pool: Data<Pool>, id: Path<String>, asked: Query<Asked>) -> Answer {
    let message = find(&pool, &id, &asked.query).await?;
    let source = queries::source(&pool, &message).await?.unwrap_or_else(|| raw(&message).into_bytes());
    Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(source))
}

/// As a download: a part may be a page with scripts, and would run in the inbox's origin.
async fn part(pool: Data<Pool>, path: Path<(String, String)>, asked: Query<Asked>) -> Answer {
    let (id, number) = path.into_inner();
    let message = find(&pool, &id, &asked.query).await?;
    let source = queries::source(&pool, &message).await?.ok_or(MailpitError::Unknown)?;
    let part = web::block(move || super::mime::part(&source, &number)).await;
    let part = part.ok().flatten().ok_or(MailpitError::Unknown)?;
    let is_sound = !part.content_type.is_empty() && part.content_type.bytes().all(|byte| byte.is_ascii_graphic());
    let content_type = if is_sound { part.content_type } else { "application/octet-stream".to_owned() };
    let name: String = part.name.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '_' }).collect();
    Ok(HttpResponse::Ok()
        .content_type(content_type)
        .insert_header((
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", name.replace(['"', '\\'], "_")),
        ))
        .insert_header((header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(part.bytes))
}

/// Scripts are disabled, because the page has the inbox's origin.
async fn view(pool: Data<Pool>, file: Path<String>, asked: Query<Asked>) -> Answer {
    let (id, kind) = file.rsplit_once('.').ok_or(MailpitError::Unknown)?;
    let message = find(&pool, id, &asked.query).await?;
    queries::mark_opened(&pool, &message).await?;
    let body = match kind {
        "html" if !message.html.is_empty() => message.html,
        "txt" => message.text,
        _ => return Err(MailpitError::Unknown),
    };
    let kind = if kind == "txt" { "text/plain; charset=utf-8" } else { "text/html; charset=utf-8" };
    Ok(HttpResponse::Ok()
        .content_type(kind)
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; font-src data:; form-action 'none'; \
             base-uri 'none'; frame-ancestors 'none'",
        ))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(body))
}

/// The body of a request to mark or delete.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Chosen {
    #[serde(rename = "Read")]
    read: bool,
    #[serde(rename = "IDs")]
    ids: Vec<String>,
    #[serde(rename = "Search")]
    search: String,
}

impl Chosen {
    /// Anything but a number names no message.
    fn ids(&self) -> Vec<i64> {
        self.ids.iter().filter_map(|id| id.parse().ok()).collect()
    }
}

async fn mark(pool: Data<Pool>, body: Bytes) -> Answer {
    let chosen: Chosen = serde_json::from_slice(&body).map_err(|_| MailpitError::Invalid("the body is not JSON"))?;
    match (chosen.ids.is_empty(), chosen.search.trim().is_empty()) {
        (false, false) => {
            return Err(MailpitError::Invalid("You may specify either IDs or a search query, not both"));
        }
        (false, true) => queries::mark(&pool, Some(&chosen.ids()), &[], chosen.read).await?,
        (true, _) => queries::mark(&pool, None, &Term::parse_all(&chosen.search), chosen.read).await?,
    }
    Ok(ok().await)
}

/// Deletes all messages, unless the body names some.
async fn delete(pool: Data<Pool>, body: Bytes) -> Answer {
    let chosen: Chosen = serde_json::from_slice(&body).unwrap_or_default();
    let ids = chosen.ids();
    queries::delete(&pool, (!chosen.ids.is_empty()).then_some(&ids[..]), &[]).await?;
    Ok(ok().await)
}

async fn delete_found(pool: Data<Pool>, asked: Query<Asked>) -> Answer {
    queries::delete(&pool, None, &asked.terms()?).await?;
    Ok(ok().await)
}

async fn info(pool: Data<Pool>) -> Answer {
    let selected = queries::select(&pool, &[], 0, Some(0)).await?;
    Ok(HttpResponse::Ok().json(json!({
        "Version": concat!("ferrobase ", env!("CARGO_PKG_VERSION")),
        "LatestVersion": "disabled",
        "Database": "",
        "DatabaseSize": 0,
        "Messages": selected.total,
        "Unread": selected.unread,
        "Tags": {},
        "RuntimeStats": {
            "Uptime": STARTED.elapsed().as_secs(),
            "Memory": 0,
            "MessagesDeleted": 0,
            "SMTPAccepted": selected.total,
            "SMTPAcceptedSize": 0,
            "SMTPRejected": 0,
            "SMTPIgnored": 0,
        },
    })))
}

async fn tags() -> HttpResponse {
    HttpResponse::Ok().json([""; 0])
}

async fn ok() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("ok")
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;

    #[test]
    fn addresses_have_a_name_or_none() {
        assert_eq!(address("Ada, B., a@b.c"), json!({"Name": "Ada, B.", "Address": "a@b.c"}));
        assert_eq!(address("a@b.c"), json!({"Name": "", "Address": "a@b.c"}));
    }

    #[test]
    fn a_snippet_is_the_beginning_of_the_visible_text() {
        let html = "<html><head><title>T</title></head><style>p {}</style><p>Hello&nbsp;<b>you</b> &amp; me</p></html>";
        assert_eq!(plain(html), "Hello you & me");
        let message = |html: &str, text: &str| Stored {
            id: "1".to_owned(),
            from: String::new(),
            to: String::new(),
            subject: String::new(),
            text: text.to_owned(),
            html: html.to_owned(),
            headers: json!({}),
            received_at: Utc::now(),
            opened: false,
            details: None,
            size: None,
        };
        assert_eq!(snippet(&message("", "some \n text")), "some text");
        assert_eq!(snippet(&message(&"é".repeat(150), "")), format!("{}...", "é".repeat(100)));
    }
}
