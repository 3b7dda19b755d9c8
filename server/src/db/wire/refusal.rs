//! PostgreSQL's error responses.

/// The fields of an `ErrorResponse` that the server uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{severity}: {message}")]
pub struct Refusal {
    /// `ERROR`, `FATAL` or `PANIC`; after the latter two the connection is gone.
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Whether a prepared statement was refused before it ran, possibly because the schema has changed its parameters'
    /// types.
    pub(crate) in_binding: bool,
}

impl Refusal {
    /// Reads the body of an `ErrorResponse`: (field type, text, NUL) … NUL.
    pub(super) fn parse(mut body: &[u8]) -> Self {
        let mut refusal = Self::default();
        while let Some((&kind, rest)) = body.split_first() {
            let Some(end) = rest.iter().position(|b| *b == 0) else { break };
            let text = || String::from_utf8_lossy(&rest[..end]).into_owned();
            match kind {
                // The untranslated severity replaces the translated one.
                b'S' if refusal.severity.is_empty() => refusal.severity = text(),
                b'V' => refusal.severity = text(),
                b'C' => refusal.code = text(),
                b'M' => refusal.message = text(),
                b'D' => refusal.detail = Some(text()),
                b'H' => refusal.hint = Some(text()),
                _ => {}
            }
            body = &rest[end + 1..];
        }
        refusal
    }

    /// Whether a prepared statement may no longer fit the schema, or was deallocated. It has not run, so it can be
    /// parsed and sent again.
    pub fn may_be_stale(&self) -> bool {
        // Values of the wrong type or changed names, but not a lock timeout.
        let is_of_type = ["22", "42", "XX"].iter().any(|class| self.code.starts_with(class));
        (self.in_binding && is_of_type)
            || (self.code == "0A000" && self.message.contains("cached plan"))
            || self.code == "26000"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_letters() {
        let refusal = Refusal::parse(b"SFEHLER\0VERROR\0C23505\0Mdoppelt\0DKey exists\0Hfind another\0Ltable.c\0\0");
        assert_eq!((refusal.severity.as_str(), refusal.code.as_str()), ("ERROR", "23505"));
        assert_eq!(refusal.message, "doppelt");
        assert_eq!(refusal.detail.as_deref(), Some("Key exists"));
        assert_eq!(refusal.hint.as_deref(), Some("find another"));
        assert_eq!(Refusal::parse(b"Mcut off"), Refusal::default());
    }

    #[test]
    fn stale_statements_are_distinguished_from_other_errors() {
        let refusal = |code: &str, message: &str| Refusal {
            code: code.to_owned(),
            message: message.to_owned(),
            ..Refusal::default()
        };
        assert!(refusal("0A000", "cached plan must not change result type").may_be_stale());
        assert!(refusal("26000", "prepared statement \"s1\" does not exist").may_be_stale());
        assert!(!refusal("0A000", "cross-database references are not implemented").may_be_stale());
        let binding = |code: &str| Refusal { in_binding: true, ..refusal(code, "") };
        assert!(binding("22P02").may_be_stale() && binding("42883").may_be_stale());
        assert!(!refusal("22P02", "").may_be_stale() && !binding("57014").may_be_stale());
    }
}
