//! Errors of the database: SQLSTATE to HTTP status, and errors shaped by SQL itself (`PTnnn`, `PGRST`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::db::{DbError, RETRY_AFTER, RETRY_AFTER_OVERLOAD};

/// An error of PostgreSQL or of the connection to it.
#[derive(Debug)]
pub enum DatabaseFault {
    /// The server refused a statement.
    Refused {
        code: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
        /// Whether the role is not the anonymous one: 42501 is then 403, else 401.
        authenticated: bool,
    },
    /// No connection could be made.
    Unreachable(String),
    /// All connections stayed busy.
    PoolTimeout,
    /// The queue for connections is full.
    PoolBusy,
    /// The connection broke in use.
    Broken(String),
}

/// Why a `RAISE SQLSTATE 'PGRST'` is invalid.
#[derive(Debug)]
pub enum RaiseFault {
    Message(String),
    Detail(String),
    NoDetail,
}

struct RaisedMessage {
    code: String,
    message: String,
    details: Option<String>,
    hint: Option<String>,
}

struct RaisedDetail {
    status: u16,
    status_text: Option<String>,
    headers: BTreeMap<String, String>,
}

impl DatabaseFault {
    pub fn from_db(error: DbError, authenticated: bool) -> Self {
        match error {
            DbError::PoolTimeout => Self::PoolTimeout,
            DbError::PoolBusy => Self::PoolBusy,
            DbError::Refused(refusal) => Self::Refused {
                code: refusal.code,
                message: refusal.message,
                detail: refusal.detail,
                hint: refusal.hint,
                authenticated,
            },
            DbError::Broken(text) => Self::Broken(text),
            DbError::Postgres(error) => Self::from_postgres(&error, authenticated),
            other => Self::Unreachable(other.to_string()),
        }
    }

    /// Whether the statement took longer than its role may, or was cancelled.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "57014")
    }

    /// A missing privilege of the role.
    pub fn forbidden(message: String, authenticated: bool) -> Self {
        Self::Refused { code: "42501".to_owned(), message, detail: None, hint: None, authenticated }
    }

    pub fn from_postgres(error: &tokio_postgres::Error, authenticated: bool) -> Self {
        match error.as_db_error() {
            Some(db) => Self::Refused {
                code: db.code().code().to_owned(),
                message: db.message().to_owned(),
                detail: db.detail().map(str::to_owned),
                hint: db.hint().map(str::to_owned),
                authenticated,
            },
            None => Self::Broken(error.to_string()),
        }
    }

    /// `RAISE SQLSTATE 'PGRST'`: MESSAGE and DETAIL carry the whole response.
    fn raised(&self) -> Option<Result<(RaisedMessage, RaisedDetail), RaiseFault>> {
        let Self::Refused { code, message, detail, .. } = self else { return None };
        if code != "PGRST" {
            return None;
        }
        Some(read_raise(message, detail.as_deref()))
    }

    pub fn status(&self) -> u16 {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::PoolBusy => 503,
            Self::PoolTimeout => 504,
            Self::Refused { code, message, authenticated, .. } => match self.raised() {
                Some(Ok((_, detail))) => valid_status(detail.status),
                Some(Err(_)) => 500,
                None => status_of(code, message, *authenticated),
            },
        }
    }

    pub fn code(&self) -> String {
        match self {
            Self::Unreachable(_) => "PGRST000".to_owned(),
            Self::Broken(_) => "PGRST001".to_owned(),
            Self::PoolTimeout | Self::PoolBusy => "PGRST003".to_owned(),
            Self::Refused { code, .. } => match self.raised() {
                Some(Ok((message, _))) => message.code,
                Some(Err(_)) => "PGRST121".to_owned(),
                None => code.clone(),
            },
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::Unreachable(_) => "Database connection error.".to_owned(),
            Self::Broken(_) => "Database client error. Retrying the connection.".to_owned(),
            Self::PoolBusy => "Too many requests wait for a database connection.".to_owned(),
            Self::PoolTimeout => "Timed out acquiring connection from connection pool.".to_owned(),
            Self::Refused { message, .. } => match self.raised() {
                Some(Ok((raised, _))) => raised.message,
                Some(Err(_)) => "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error".to_owned(),
                None => message.clone(),
            },
        }
    }

    pub fn details(&self) -> Option<String> {
        match self {
            Self::Unreachable(text) | Self::Broken(text) => Some(text.clone()),
            Self::PoolTimeout | Self::PoolBusy => None,
            Self::Refused { detail, .. } => match self.raised() {
                Some(Ok((raised, _))) => raised.details,
                Some(Err(RaiseFault::Message(text))) => Some(format!("Invalid JSON value for MESSAGE: '{text}'")),
                Some(Err(RaiseFault::Detail(text))) => Some(format!("Invalid JSON value for DETAIL: '{text}'")),
                Some(Err(RaiseFault::NoDetail)) => Some("DETAIL is missing in the RAISE statement".to_owned()),
                None => detail.clone(),
            },
        }
    }

    pub fn hint(&self) -> Option<String> {
        let Self::Refused { hint, .. } = self else { return None };
        match self.raised() {
            Some(Ok((raised, _))) => raised.hint,
            Some(Err(RaiseFault::Message(_))) => Some(
                "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: \
                 'details', 'hint'."
                    .to_owned(),
            ),
            Some(Err(_)) => Some(
                "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: \
                 'status_text'."
                    .to_owned(),
            ),
            None => hint.clone(),
        }
    }

    pub fn headers(&self) -> Vec<(String, String)> {
        match self.raised() {
            Some(Ok((_, detail))) => detail.headers.into_iter().collect(),
            Some(Err(_)) => Vec::new(),
            None if matches!(self, Self::PoolBusy) => vec![("Retry-After".to_owned(), RETRY_AFTER_OVERLOAD.to_owned())],
            // Only if the database cannot be reached. PostgreSQL's own refusals with 503 get upstream's `Retry-After:
            // 0` (`routes.rs`).
            None if matches!(self, Self::Unreachable(_) | Self::Broken(_)) => {
                vec![("Retry-After".to_owned(), RETRY_AFTER.to_owned())]
            }
            None if self.status() == 401 => vec![("WWW-Authenticate".to_owned(), "Bearer".to_owned())],
            None => Vec::new(),
        }
    }

    pub fn reason(&self) -> Option<String> {
        match self.raised() {
            Some(Ok((_, detail))) => detail.status_text,
            Some(Err(_)) => None,
            None => match self {
                Self::Refused { code, message, .. } if custom_status(code).is_some() => Some(message.clone()),
                _ => None,
            },
        }
    }
}

fn read_raise(message: &str, detail: Option<&str>) -> Result<(RaisedMessage, RaisedDetail), RaiseFault> {
    let raised = read_message(message).ok_or_else(|| RaiseFault::Message(message.to_owned()))?;
    let detail = detail.ok_or(RaiseFault::NoDetail)?;
    let response = read_detail(detail).ok_or_else(|| RaiseFault::Detail(detail.to_owned()))?;
    Ok((raised, response))
}

fn read_message(text: &str) -> Option<RaisedMessage> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    Some(RaisedMessage {
        code: object.get("code")?.as_str()?.to_owned(),
        message: object.get("message")?.as_str()?.to_owned(),
        details: optional_text(&object, "details")?,
        hint: optional_text(&object, "hint")?,
    })
}

fn read_detail(text: &str) -> Option<RaisedDetail> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    // `400.0` is valid too; numbers that are not HTTP statuses are replaced later.
    let number = object.get("status")?.as_f64().filter(|number| number.fract() == 0.0)?;
    let headers = object.get("headers")?.as_object()?.iter();
    Some(RaisedDetail {
        status: number.clamp(0.0, f64::from(u16::MAX)) as u16,
        status_text: optional_text(&object, "status_text")?,
        headers: headers
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
    })
}

/// A text that may be missing or null; `None` for other types.
fn optional_text(object: &Map<String, Value>, key: &str) -> Option<Option<String>> {
    match object.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    }
}

/// A status that HTTP can carry; others become 500.
fn valid_status(status: u16) -> u16 {
    if (100..=999).contains(&status) { status } else { 500 }
}

/// The status of `PTnnn`.
fn custom_status(code: &str) -> Option<u16> {
    let number = code.strip_prefix("PT")?;
    number.parse().ok().map(valid_status)
}

fn status_of(code: &str, message: &str, authenticated: bool) -> u16 {
    match code {
        "23503" | "23505" => 409,
        "25006" => 405,
        "21000" => {
            if message.ends_with("requires a WHERE clause") {
                400
            } else {
                500
            }
        }
        "22023" => {
            if message.starts_with("role") && message.ends_with("does not exist") {
                401
            } else {
                400
            }
        }
        "53400" => 500,
        "57P01" => 503,
        "P0001" => 400,
        "42883" => {
            if message.starts_with("function xmlagg(") {
                406
            } else {
                404
            }
        }
        "42P01" => 404,
        "42P17" => 500,
        "42501" => {
            if authenticated {
                403
            } else {
                401
            }
        }
        _ if code.starts_with("PT") => custom_status(code).unwrap_or(500),
        _ => match code.get(..2).unwrap_or_default() {
            "08" | "53" => 503,
            "0L" | "0P" | "28" => 403,
            "09" | "25" | "2D" | "38" | "39" | "3B" | "40" | "54" | "55" | "57" | "58" | "F0" | "HV" | "P0" | "XX" => {
                500
            }
            _ => 400,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, message: &str, detail: Option<&str>) -> DatabaseFault {
        DatabaseFault::Refused {
            code: code.to_owned(),
            message: message.to_owned(),
            detail: detail.map(str::to_owned),
            hint: None,
            authenticated: false,
        }
    }

    #[test]
    fn sqlstates_have_their_statuses() {
        let cases = [
            ("23505", "", 409),
            ("22P02", "", 400),
            ("42501", "", 401),
            ("25006", "", 405),
            ("25001", "", 500),
            ("22023", "role \"x\" does not exist", 401),
            ("22023", "bad zone", 400),
            ("21000", "DELETE requires a WHERE clause", 400),
            ("21000", "more than one row", 500),
            ("42883", "function f() does not exist", 404),
            ("PT418", "teapot", 418),
            ("PTabc", "", 500),
            ("53300", "", 503),
            ("P0002", "", 500),
            ("57014", "", 500),
        ];
        for (code, message, status) in cases {
            assert_eq!(refused(code, message, None).status(), status, "{code} {message}");
        }
    }

    #[test]
    fn a_full_queue_sends_retry_after() {
        let fault = DatabaseFault::from_db(DbError::PoolBusy, true);
        assert_eq!((fault.status(), fault.code().as_str()), (503, "PGRST003"));
        assert_eq!(fault.headers(), [("Retry-After".to_owned(), "1".to_owned())]);
        assert_eq!(DatabaseFault::from_db(DbError::PoolTimeout, true).status(), 504);
    }

    #[test]
    fn an_unreachable_database_sends_retry_after() {
        for fault in [DatabaseFault::Unreachable("no route".to_owned()), DatabaseFault::Broken("reset".to_owned())] {
            assert_eq!(fault.status(), 503);
            assert_eq!(fault.headers(), [("Retry-After".to_owned(), RETRY_AFTER.to_owned())]);
        }
    }

    #[test]
    fn a_raise_with_pgrst_is_the_whole_response() {
        let fault = refused(
            "PGRST",
            r#"{"code":"123","message":"m","hint":"h"}"#,
            Some(r#"{"status":332,"headers":{"X-Header":"y"}}"#),
        );
        assert_eq!((fault.status(), fault.code(), fault.message()), (332, "123".into(), "m".into()));
        assert_eq!((fault.details(), fault.hint()), (None, Some("h".into())));
        assert_eq!(fault.headers(), [("X-Header".to_owned(), "y".to_owned())]);
        let whole = refused("PGRST", r#"{"code":"1","message":"m"}"#, Some(r#"{"status":418.0,"headers":{}}"#));
        assert_eq!(whole.status(), 418);
        let list = refused("PGRST", r#"["1","m",null,null]"#, Some(r#"[400,null,{}]"#));
        assert_eq!((list.status(), list.code()), (500, "PGRST121".into()));
        let broken = refused("PGRST", "no json", None);
        assert_eq!((broken.status(), broken.code()), (500, "PGRST121".into()));
        assert_eq!(broken.details().as_deref(), Some("Invalid JSON value for MESSAGE: 'no json'"));
    }
}
