//! The rules for a new password. Reference: supabase/auth `internal/api/password.go`.

use super::leaked::LeakedPasswords;
use crate::auth::error::{AuthError, AuthResult};
use crate::auth::outside::OutboundContext;
use crate::config::PasswordConfig;

/// bcrypt ignores further bytes.
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

    /// Refuses a weak password, with every reason, and one longer than bcrypt can distinguish.
    pub async fn check(&self, away: &OutboundContext, password: &str) -> AuthResult<()> {
        let (mut messages, mut reasons) = self.form(password)?;
        if let Some(leaked) = &self.leaked {
            match leaked.contains(away, password).await {
                Ok(false) => {}
                Ok(true) => {
                    reasons.push("pwned");
                    messages.push(
                        "Password is known to be weak and easy to guess, please choose a different one.".to_owned(),
                    );
                }
                Err(error) if self.fail_closed => {
                    let message = "Unable to perform password strength check with HaveIBeenPwned.org.";
                    return Err(AuthError::internal(message).caused_by(error));
                }
                Err(error) => {
                    tracing::warn!(cause = %error, "leaked passwords could not be looked up; none is refused for it");
                }
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(AuthError::WeakPassword { message: messages.join(" "), reasons }) }
    }

    /// The rules that the password breaks by itself.
    fn form(&self, password: &str) -> AuthResult<(Vec<String>, Vec<&'static str>)> {
        if password.len() > LONGEST {
            return Err(AuthError::invalid(format!("Password cannot be longer than {LONGEST} characters")));
        }
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
        Ok((messages, reasons))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(min_length: usize, required: &[&str]) -> PasswordRules {
        let required = required.iter().map(|set| (*set).to_owned()).collect();
        PasswordRules { min_length, required, leaked: None, fail_closed: false }
    }

    #[test]
    fn every_broken_rule_is_named() {
        let (messages, reasons) = rules(10, &["abc", "012"]).form("xyz").expect("not too long");
        assert_eq!(reasons, ["length", "characters"]);
        assert_eq!(
            messages.join(" "),
            "Password should be at least 10 characters. \
             Password should contain at least one character of each: abc, 012."
        );
    }

    #[test]
    fn length_counts_bytes_and_72_is_the_most() {
        let is_fine = |password: &str| rules(6, &[]).form(password).is_ok_and(|(_, reasons)| reasons.is_empty());
        assert!(is_fine("äöü"));
        assert!(is_fine(&"x".repeat(72)));
        assert!(matches!(rules(6, &[]).form(&"x".repeat(73)), Err(AuthError::Api { .. })));
    }
}
