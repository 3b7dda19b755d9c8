//! The caller, as seen by the database.

/// The role and the claims that policies read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub role: String,
    /// The token's claims as JSON text; becomes `request.jwt.claims`.
    pub claims: String,
}

impl Caller {
    /// A caller without a token, with only a role.
    pub fn anonymous(role: &str) -> Self {
        Self { role: role.to_owned(), claims: serde_json::json!({ "role": role }).to_string() }
    }

    /// The user's id, if the claims name one.
    pub fn subject(&self) -> Option<String> {
        let claims: serde_json::Value = serde_json::from_str(&self.claims).ok()?;
        claims.get("sub")?.as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::Caller;

    #[test]
    fn the_subject_comes_from_the_claims() {
        let caller = Caller { role: "authenticated".into(), claims: r#"{"sub":"u1","role":"authenticated"}"#.into() };
        assert_eq!(caller.subject().as_deref(), Some("u1"));
        assert_eq!(Caller::anonymous("anon").subject(), None);
    }
}
