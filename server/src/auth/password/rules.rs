//! What a new password must be like. Reference: supabase/auth `internal/api/password.go`.

use super::leaked::LeakedPasswords;
use crate::auth::error::{AuthError, AuthResult, Fault};
use crate::config::PasswordConfig;

/// bcrypt reads no more bytes than these.
const LONGEST: usize = 72;

pub struct PasswordRules {
    min_length: usize,
    required: Vec<String>,
    leaked: Option<LeakedPasswords>,
    fail_closed: bool,
}

impl PasswordRules {
    pub fn new(config: &PasswordConfig) -> Result<Self, reqwest::Error> {
        Ok(Self {
            min_length: config.min_length,
            required: config.required_characters.clone(),
            leaked: LeakedPasswords::new(config)?,
            fail_closed: config.hibp_fail_closed,
        })
    }

    /// Refuses a weak password with every reason, and one longer than bcrypt can tell apart.
    pub async fn check(&self, password: &str) -> AuthResult<()> {
        if password.len() > LONGEST {
            return Err(AuthError::invalid(format!("Password cannot be longer than {LONGEST} characters")));
        }
        let (mut messages, mut reasons) = self.form(password);
        if let Some(leaked) = &self.leaked {
            match leaked.contains(password).await {
                Ok(false) => {}
                Ok(true) => {
                    reasons.push("pwned");
                    messages.push(
                        "Password is known to be weak and easy to guess, please choose a different one.".to_owned(),
                    );
                }
                Err(error) if self.fail_closed => {
                    let message = "Unable to perform password strength check with HaveIBeenPwned.org.";
                    return Err(AuthError::internal(message).caused_by(Fault::new(error.without_url().to_string())));
                }
                Err(error) => {
                    tracing::warn!(cause = %error.without_url(), "leaked passwords could not be looked up; none is refused for it");
                }
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(AuthError::WeakPassword { message: messages.join(" "), reasons }) }
    }

    fn form(&self, password: &str) -> (Vec<String>, Vec<&'static str>) {
        let (mut messages, mut reasons) = (Vec::new(), Vec::new());
        if password.len() < self.min_length {
            reasons.push("length");
            messages.push(format!("Password should be at least {} characters.", self.min_length));
        }
        if self.required.iter().any(|set| !password.chars().any(|c| set.contains(c))) {
            reasons.push("characters");
            messages
                .push(format!("Password should contain at least one character of each: {}.", self.required.join(", ")));
        }
        (messages, reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(min_length: usize, required: &[&str]) -> PasswordRules {
        let required = required.iter().map(|set| (*set).to_owned()).collect();
        PasswordRules { min_length, required, leaked: None, fail_closed: false }
    }

    #[tokio::test]
    async fn every_broken_rule_is_named() {
        let error = rules(10, &["abc", "012"]).check("xyz").await.expect_err("weak");
        let AuthError::WeakPassword { message, reasons } = error else { panic!("not weak") };
        assert_eq!(reasons, ["length", "characters"]);
        assert_eq!(
            message,
            "Password should be at least 10 characters. \
             Password should contain at least one character of each: abc, 012."
        );
    }

    #[tokio::test]
    async fn length_counts_bytes_and_72_is_the_most() {
        assert!(rules(6, &[]).check("äöü").await.is_ok());
        assert!(rules(6, &[]).check(&"x".repeat(72)).await.is_ok());
        assert!(matches!(rules(6, &[]).check(&"x".repeat(73)).await, Err(AuthError::Api { .. })));
    }
}
