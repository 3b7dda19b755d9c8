//! Parses the cases in `cases/*.case`.
//!
//! ```text
//! % PGRST_DB_MAX_ROWS=2            settings of the server, before the first case
//! %% create table …                statements of the owner, before the server starts
//! § 2.3                            section of the contract that the cases below are about, until the next one
//! = a name that states behaviour
//! ! 13                             the trap of the contract's list that the case is about, if it is one
//! GET /stars?id=eq.1               method and target, byte for byte
//! @member                          who asks: visitor (default), member, curator, or claims as JSON, where
//!                                  "now-20" is the second twenty seconds ago
//! Prefer: count=exact              headers of the request
//! < {"a": 1}                       lines of the body
//! -> 200 [{"id": 1}]               status and body
//! Content-Range: 0-0/1             headers of the answer
//! ```
//!
//! A body is JSON and compared as values, whatever the order of keys; `~{…}` asks only for the members named;
//! `text …` is compared as it is, with `\n` for a line break, `\xNN` for a byte, `\\` for a backslash; `*` takes anything; none is an
//! empty body. A header's value may begin with `~` to be contained. Of the headers in [`WATCHED`] no other may be there.

#![allow(clippy::expect_used)]

use serde_json::Value;

use crate::rest::house::House;
use crate::support::wire::{Reply, send};

pub const ADA: &str = "a0000000-0000-4000-8000-000000000001";

/// Headers that a case must name if they are sent, with the value that need not be named.
const WATCHED: [(&str, &str); 17] = [
    ("content-range", ""),
    ("content-type", "application/json; charset=utf-8"),
    ("content-profile", "sky"),
    ("location", ""),
    ("preference-applied", ""),
    ("allow", ""),
    ("vary", "Accept, Prefer, Range"),
    ("warning", ""),
    ("www-authenticate", ""),
    ("retry-after", ""),
    ("server-timing", ""),
    ("access-control-allow-origin", ""),
    ("access-control-allow-credentials", ""),
    ("access-control-allow-methods", ""),
    ("access-control-allow-headers", ""),
    ("access-control-max-age", ""),
    ("access-control-expose-headers", ""),
];

/// A file of cases.
pub struct Suite {
    pub settings: Vec<(String, String)>,
    pub statements: Option<String>,
    pub cases: Vec<Case>,
}

#[derive(Debug, Default)]
pub struct Case {
    pub name: String,
    pub line: usize,
    pub section: String,
    pub traps: Vec<u32>,
    method: String,
    target: String,
    who: String,
    headers: Vec<(String, String)>,
    body: Vec<String>,
    status: u16,
    answer: String,
    answer_headers: Vec<(String, String)>,
}

pub fn parse(text: &str) -> Suite {
    let mut suite = Suite { settings: Vec::new(), statements: None, cases: Vec::new() };
    let mut section = String::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("= ") {
            let section = section.clone();
            suite.cases.push(Case { name: name.to_owned(), line: number + 1, section, ..Case::default() });
            continue;
        }
        if let Some(heading) = line.strip_prefix("§ ") {
            section = heading.to_owned();
            continue;
        }
        if let Some(statement) = line.strip_prefix("%% ") {
            let statements = suite.statements.get_or_insert_default();
            statements.push_str(statement);
            statements.push('\n');
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(setting) = line.strip_prefix("% ") {
            let (name, value) = setting.split_once('=').expect("name=value");
            suite.settings.push((name.to_owned(), value.to_owned()));
            continue;
        }
        let case = suite.cases.last_mut().unwrap_or_else(|| panic!("line {}: no case yet", number + 1));
        case.read_line(line).unwrap_or_else(|problem| panic!("line {}: {problem}: {line}", number + 1));
    }
    suite
}

impl Case {
    fn read_line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(answer) = line.strip_prefix("-> ") {
            let (status, body) = answer.split_once(' ').unwrap_or((answer, ""));
            self.status = status.parse().map_err(|_| "not a status")?;
            self.answer = body.to_owned();
        } else if let Some(traps) = line.strip_prefix("! ") {
            self.traps =
                traps.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| "not a trap")?;
        } else if let Some(who) = line.strip_prefix('@') {
            self.who = who.to_owned();
        } else if let Some(body) = line.strip_prefix('<') {
            self.body.push(body.strip_prefix(' ').unwrap_or(body).to_owned());
        } else if self.method.is_empty() {
            let (method, target) = line.split_once(' ').ok_or("no target")?;
            (self.method, self.target) = (method.to_owned(), target.to_owned());
        } else {
            let (name, value) = line.split_once(':').ok_or("not a header")?;
            let header = (name.to_owned(), value.trim_start().to_owned());
            if self.status == 0 { self.headers.push(header) } else { self.answer_headers.push(header) }
        }
        Ok(())
    }

    pub async fn ask(&self, house: &House) -> Reply {
        let mut headers = self.headers.clone();
        if let Some(claims) = self.claims() {
            headers.push(("Authorization".to_owned(), format!("Bearer {}", House::token(&claims))));
        }
        let body = unescape(&self.body.join("\n"), false);
        send(&house.address, &self.method, &self.target, &headers, &body).await
    }

    fn claims(&self) -> Option<String> {
        match self.who.as_str() {
            "" => None,
            claims if claims.starts_with('{') => Some(with_times(claims)),
            role => Some(format!(r#"{{"role":"sky_{role}","sub":"{ADA}"}}"#)),
        }
    }

    /// How the answer differs from the expectation; empty if it does not.
    pub fn faults(&self, reply: &Reply) -> Vec<String> {
        let mut faults = Vec::new();
        if reply.status != self.status {
            faults.push(format!("status {} instead of {}", reply.status, self.status));
        }
        if let Some(fault) = self.body_fault(reply) {
            faults.push(fault);
        }
        for (name, wanted) in &self.answer_headers {
            let found = reply.header(&name.to_ascii_lowercase());
            let holds = match (wanted.as_str(), &found) {
                ("-", found) => found.is_none(),
                (wanted, Some(found)) => match wanted.strip_prefix('~') {
                    Some(part) => found.contains(part),
                    None => found == wanted,
                },
                (_, None) => false,
            };
            if !holds {
                faults.push(format!("{name}: {found:?} instead of {wanted}"));
            }
        }
        for (name, usual) in WATCHED {
            let named = self.answer_headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            match reply.header(name) {
                Some(value) if !named && value != usual => faults.push(format!("{name}: {value} was not expected")),
                _ => {}
            }
        }
        faults.extend(error_fault(reply));
        faults
    }

    fn body_fault(&self, reply: &Reply) -> Option<String> {
        let wrong = || Some(format!("body {} instead of {}", reply.text(), self.answer));
        if self.answer == "*" {
            return None;
        }
        if let Some(text) = self.answer.strip_prefix("text ") {
            return if reply.body == unescape(text, true) { None } else { wrong() };
        }
        if self.answer.is_empty() {
            return if reply.body.is_empty() { None } else { wrong() };
        }
        let Ok(found) = serde_json::from_slice::<Value>(&reply.body) else { return wrong() };
        let (part, is_part) = match self.answer.strip_prefix('~') {
            Some(part) => (part, true),
            None => (self.answer.as_str(), false),
        };
        let wanted: Value = serde_json::from_str(part).expect("the expected body is JSON");
        let holds = if is_part { contains(&found, &wanted) } else { found == wanted };
        if holds { None } else { wrong() }
    }

    pub fn has_answer(&self) -> bool {
        self.status != 0
    }

    /// The lines for this answer, for recording cases.
    pub fn answer_of(&self, reply: &Reply) -> String {
        let body = match serde_json::from_slice::<Value>(&reply.body) {
            Ok(value) => value.to_string(),
            Err(_) if reply.body.is_empty() => String::new(),
            Err(_) => format!("text {}", escape(&reply.body)),
        };
        let mut text = format!("-> {} {body}", reply.status).trim_end().to_owned();
        for (name, usual) in WATCHED {
            if let Some(value) = reply.header(name).filter(|value| value != usual) {
                text.push_str(&format!("\n{name}: {value}"));
            }
        }
        text
    }
}

/// Replaces `"now-20"` and `"now+20"` by numbers.
fn with_times(claims: &str) -> String {
    let mut parts = claims.split("\"now");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (offset, rest) = part.split_once('"').expect("a closing quote");
        let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().expect("seconds") };
        text.push_str(&(chrono::Utc::now().timestamp() + offset).to_string());
        text.push_str(rest);
    }
    text
}

/// An error's code must be both in its body and in `Proxy-Status`. Successful answers have neither.
fn error_fault(reply: &Reply) -> Option<String> {
    let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let code = body.as_ref().and_then(|body| body.get("code")).and_then(Value::as_str);
    match (reply.status >= 400 || reply.status == 300, code, reply.header("proxy-status")) {
        // An offset beyond a known total is answered with the headers of a read.
        (true, Some("PGRST103"), None) => None,
        (true, Some(code), Some(proxy)) if proxy == format!("PostgREST; error={code}") => None,
        // HEAD, and answers whose status is set in SQL.
        (true, None, _) | (false, _, None) => None,
        (_, code, proxy) => Some(format!("Proxy-Status {proxy:?} beside the code {code:?}")),
    }
}

fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value)))
        }
        _ => found == wanted,
    }
}

/// `backslashes`: whether a backslash is written as two, which would be tedious in JSON bodies.
fn unescape(text: &str, backslashes: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'\\', [b'\\', after @ ..]) if backslashes => (bytes.push(b'\\'), rest = after).1,
            (b'\\', [b'n', after @ ..]) => (bytes.push(b'\n'), rest = after).1,
            (b'\\', [b'x', a, b, after @ ..]) => {
                let digits = [*a, *b];
                let digits = std::str::from_utf8(&digits).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
                rest = after;
            }
            (other, _) => bytes.push(*other),
        }
    }
    bytes
}

fn escape(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace('\\', "\\\\").replace('\n', "\\n"),
        Err(_) => bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
    }
}
