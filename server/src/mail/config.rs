//! Settings of outgoing mail.

use crate::config::{Reader, Secret};

/// The sender of every mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromAddress {
    /// `SMTP_SENDER_NAME`; may be empty.
    pub name: String,
    /// `SMTP_ADMIN_EMAIL`.
    pub address: String,
}

impl std::fmt::Display for FromAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() { f.write_str(&self.address) } else { write!(f, "{}, {}", self.name, self.address) }
    }
}

/// A mail server.
#[derive(Clone, Debug)]
pub struct SmtpConfig {
    /// `SMTP_HOST`.
    pub host: String,
    /// `SMTP_PORT`, default 587. On 465 TLS begins at once, on other ports by STARTTLS.
    pub port: u16,
    /// `SMTP_USER` and `SMTP_PASS`; given together or not at all.
    pub login: Option<(String, Secret)>,
    pub from: FromAddress,
}

/// What happens to outgoing mail.
#[derive(Clone, Debug)]
pub enum MailConfig {
    Smtp(SmtpConfig),
    /// The development inbox.
    Inbox(FromAddress),
    /// Accepted and forgotten.
    Drop,
}

impl MailConfig {
    /// Reads `SMTP_*` (each also as `GOTRUE_SMTP_*`, which wins) and `FERROBASE_MAIL` (`smtp`, `inbox` or `drop`).
    ///
    /// Without either, development uses the inbox. Elsewhere that is an error, because mail would silently be lost.
    pub fn read(reader: &mut Reader<'_>, development: bool, default_address: &str) -> Self {
        let from = FromAddress {
            name: reader.text_or(&["GOTRUE_SMTP_SENDER_NAME", "SMTP_SENDER_NAME"], ""),
            address: reader.text_or(&["GOTRUE_SMTP_ADMIN_EMAIL", "SMTP_ADMIN_EMAIL"], default_address),
        };
        let host = reader.text(&["GOTRUE_SMTP_HOST", "SMTP_HOST"]);
        let choice = reader.text(&["FERROBASE_MAIL"]);
        match (choice.as_deref(), host) {
            (Some("drop"), _) => Self::Drop,
            (Some("inbox"), _) | (None, None) if development => Self::Inbox(from),
            (Some("inbox"), _) => {
                reader.problem("FERROBASE_MAIL=inbox is for development only (FERROBASE_DEV=true)");
                Self::Drop
            }
            (None | Some("smtp"), Some(host)) => Self::Smtp(smtp(reader, host, from)),
            (None, None) => {
                reader.problem("SMTP_HOST is not set: name a mail server, or set FERROBASE_MAIL=drop to send no mail");
                Self::Drop
            }
            (Some("smtp"), None) => {
                reader.problem("FERROBASE_MAIL=smtp needs SMTP_HOST");
                Self::Drop
            }
            (Some(_), _) => {
                reader.problem("FERROBASE_MAIL must be smtp, inbox or drop");
                Self::Drop
            }
        }
    }
}

fn smtp(reader: &mut Reader<'_>, host: String, from: FromAddress) -> SmtpConfig {
    let user = reader.text(&["GOTRUE_SMTP_USER", "SMTP_USER"]);
    let password = reader.secret(&["GOTRUE_SMTP_PASS", "SMTP_PASS"]);
    let login = match (user, password) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        _ => {
            reader.problem("SMTP_USER and SMTP_PASS must be set together");
            None
        }
    };
    if from.address.parse::<lettre::Address>().is_err() {
        reader.problem("SMTP_ADMIN_EMAIL must be an e-mail address");
    }
    let port = reader.parse_or(&["GOTRUE_SMTP_PORT", "SMTP_PORT"], "a port", 587);
    SmtpConfig { host, port, login, from }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source};

    fn read(development: bool, pairs: &[(&str, &str)]) -> Result<MailConfig, Problems> {
        let source = Source::from_pairs(pairs.iter().copied());
        let mut reader = Reader::new(&source);
        let config = MailConfig::read(&mut reader, development, "support@x.example");
        reader.finish(config)
    }

    #[test]
    fn without_a_mail_server_development_has_the_inbox_and_production_refuses() {
        assert!(matches!(read(true, &[]), Ok(MailConfig::Inbox(_))));
        assert!(read(false, &[]).expect_err("refused").to_string().contains("FERROBASE_MAIL=drop"));
        assert!(matches!(read(false, &[("FERROBASE_MAIL", "drop")]), Ok(MailConfig::Drop)));
        assert!(read(false, &[("FERROBASE_MAIL", "inbox")]).is_err());
        assert!(read(true, &[("FERROBASE_MAIL", "pigeon")]).is_err());
    }

    #[test]
    fn a_mail_server_is_used_wherever_one_is_named() {
        for development in [true, false] {
            let config = read(development, &[("SMTP_HOST", "mail"), ("GOTRUE_SMTP_PORT", "25"), ("SMTP_PORT", "26")]);
            let Ok(MailConfig::Smtp(smtp)) = config else { panic!("{config:?}") };
            assert_eq!((smtp.host.as_str(), smtp.port, smtp.login.is_none()), ("mail", 25, true));
        }
        assert!(read(false, &[("SMTP_HOST", "mail"), ("SMTP_USER", "me")]).is_err());
    }
}
