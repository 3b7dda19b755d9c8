//! Composes a mail for a user and sends it through the hook, the mail server or the outbox. Reference:
//! supabase/auth `internal/api/mail.go` (`sendEmail`).

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value, json};
use tokio_postgres::types::Json as SqlJson;

use super::links::{ActionLink, action_link};
use crate::auth::door::address::check_authorized;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::store::Db;
use crate::auth::models::user::User;
use crate::auth::outside::hooks::{self, Hook};
use crate::mail::{MailError, Message, Sender};

/// How mails are sent.
#[derive(Clone)]
pub enum Delivery {
    /// At once, within the request.
    Direct(Arc<dyn Sender>),
    /// As a row of the outbox in the request's transaction; the server delivers it after commit.
    Outbox,
}

/// The kind of a mail, with its own data.
#[derive(Clone, Copy, Debug)]
pub enum Mail<'a> {
    Confirmation {
        otp: &'a str,
    },
    Invite {
        otp: &'a str,
    },
    Recovery {
        otp: &'a str,
    },
    MagicLink {
        otp: &'a str,
    },
    /// `otp_current` is empty when only the new address confirms.
    EmailChange {
        otp_new: &'a str,
        otp_current: &'a str,
    },
    Reauthentication {
        otp: &'a str,
    },
    Notification(Notification<'a>),
}

/// A change that the user is notified of.
#[derive(Clone, Copy, Debug)]
pub enum Notification<'a> {
    PasswordChanged,
    EmailChanged { old_email: &'a str },
    PhoneChanged { old_phone: &'a str },
    IdentityLinked { provider: &'a str },
    IdentityUnlinked { provider: &'a str, recipient: &'a str },
    FactorEnrolled { factor_type: &'a str },
    FactorUnenrolled { factor_type: &'a str },
}

impl Notification<'_> {
    /// The name of its template, setting and hook action.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PasswordChanged => "password_changed_notification",
            Self::EmailChanged { .. } => "email_changed_notification",
            Self::PhoneChanged { .. } => "phone_changed_notification",
            Self::IdentityLinked { .. } => "identity_linked_notification",
            Self::IdentityUnlinked { .. } => "identity_unlinked_notification",
            Self::FactorEnrolled { .. } => "mfa_factor_enrolled_notification",
            Self::FactorUnenrolled { .. } => "mfa_factor_unenrolled_notification",
        }
    }
}

impl Mail<'_> {
    /// The name of its template.
    fn template(&self) -> &'static str {
        match self {
            Self::Confirmation { .. } => "confirmation",
            Self::Invite { .. } => "invite",
            Self::Recovery { .. } => "recovery",
            Self::MagicLink { .. } => "magic_link",
            Self::EmailChange { .. } => "email_change",
            Self::Reauthentication { .. } => "reauthentication",
            Self::Notification(notification) => notification.name(),
        }
    }

    /// `email_action_type` of the hook and `type` of the link.
    fn action(&self) -> &'static str {
        match self {
            Self::Confirmation { .. } => "signup",
            Self::Invite { .. } => "invite",
            Self::Recovery { .. } => "recovery",
            Self::MagicLink { .. } => "magiclink",
            Self::EmailChange { .. } => "email_change",
            Self::Reauthentication { .. } => "reauthentication",
            Self::Notification(notification) => notification.name(),
        }
    }

    /// The message for a failure to send.
    fn failure(&self) -> String {
        let what = match self {
            Self::Confirmation { .. } => "confirmation",
            Self::Invite { .. } => "invite",
            Self::Recovery { .. } => "recovery",
            Self::MagicLink { .. } => "magic link",
            Self::EmailChange { .. } => "email change",
            Self::Reauthentication { .. } => "reauthentication",
            Self::Notification(_) => "notification",
        };
        format!("Error sending {what} email")
    }
}

/// One copy of a mail: recipient, code and hash.
struct Copy<'a> {
    to: &'a str,
    otp: &'a str,
    hash: &'a str,
}

/// Sends a mail about `user`, whose token columns are already set.
///
/// Errors: 400 `email_address_not_authorized`, 429 `over_email_send_rate_limit`, 500 if it cannot be sent.
pub fn send<'a>(
    request: &'a Request,
    db: &'a Db,
    user: &'a User,
    mail: Mail<'a>,
) -> LocalBoxFuture<'a, AuthResult<()>> {
    Box::pin(send_now(request, db, user, mail))
}

async fn send_now(request: &Request, db: &Db, user: &User, mail: Mail<'_>) -> AuthResult<()> {
    let auth = &request.auth;
    let config = &auth.config;
    let authorized = &config.external.email_authorized_addresses;
    let two_copies = config.mailer.secure_email_change && !user.email.is_empty();
    let recipient = match mail {
        Mail::Notification(Notification::IdentityUnlinked { recipient, .. }) => recipient,
        Mail::Notification(Notification::EmailChanged { old_email }) => old_email,
        _ => &user.email,
    };
    if let Mail::EmailChange { .. } = mail {
        if !user.email_change.is_empty() {
            check_authorized(&user.email_change, authorized)?;
        }
        if two_copies {
            check_authorized(&user.email, authorized)?;
        }
    } else if !user.email.is_empty() {
        check_authorized(&user.email, authorized)?;
    }
    // Counted once, even if the transaction is repeated.
    let about = format!("may mail {} {}", mail.template(), user.id);
    let limited = auth.limits.emails_are_off()
        || (!config.mailer.autoconfirm && !request.once_loaded(&about, auth.limits.allow_email()).await?);
    if limited {
        return Err(AuthError::too_many_requests(Code::OverEmailSendRateLimit, "email rate limit exceeded"));
    }
    let redirect_to = request.redirect_target();
    let external = request.external_url();
    if config.hooks.send_email.is_some() {
        let input = json!({ "user": user, "email_data": hook_data(user, mail, two_copies, &redirect_to, &external_text(request, &external)) });
        hooks::run(request, Some(db), Hook::SendEmail, input).await?;
        return Ok(());
    }
    let copies = match mail {
        Mail::Confirmation { otp } | Mail::Invite { otp } => {
            vec![Copy { to: recipient, otp, hash: &user.confirmation_token }]
        }
        Mail::Recovery { otp } | Mail::MagicLink { otp } => {
            vec![Copy { to: recipient, otp, hash: &user.recovery_token }]
        }
        Mail::Reauthentication { otp } => vec![Copy { to: recipient, otp, hash: "" }],
        Mail::EmailChange { otp_new, otp_current } => {
            let mut copies = vec![Copy { to: &user.email_change, otp: otp_new, hash: &user.email_change_token_new }];
            if two_copies {
                copies.push(Copy { to: &user.email, otp: otp_current, hash: &user.email_change_token_current });
            }
            copies
        }
        Mail::Notification(_) => vec![Copy { to: recipient, otp: "", hash: "" }],
    };
    let template = mail.template();
    if auth.templates.is_due(template) {
        request
            .ask(format!("template {template}"), |away| async move {
                away.leave()?;
                away.auth().templates.refresh(template).await;
                Ok(Value::Null)
            })
            .await?;
    }
    let templates = auth.templates.get(template).ok_or_else(|| AuthError::internal(mail.failure()))?;
    for copy in copies {
        let path = match mail {
            Mail::Confirmation { .. } => &config.mailer.url_path_confirmation,
            Mail::Invite { .. } => &config.mailer.url_path_invite,
            Mail::EmailChange { .. } => &config.mailer.url_path_email_change,
            _ => &config.mailer.url_path_recovery,
        };
        let link = action_link(
            &external,
            &ActionLink { path, token_hash: copy.hash, kind: mail.action(), redirect_to: &redirect_to },
        );
        let data = template_data(&config.site_url, user, mail, &copy, &link, &redirect_to);
        let rendered = templates
            .render(&data)
            .map_err(|error| AuthError::internal(mail.failure()).caused_by(Fault::new(error.to_string())))?;
        let message = Message {
            to: copy.to.to_owned(),
            subject: rendered.subject,
            text: rendered.text,
            html: rendered.html,
            headers: headers(&config.smtp.headers, mail.template()),
        };
        deliver(request, db, message).await.or_internal(&mail.failure())?;
    }
    Ok(())
}

/// The external URL as it was configured: a parsed one would gain a slash.
fn external_text(request: &Request, external: &url::Url) -> String {
    let auth = &request.auth;
    if *external == auth.external_url {
        auth.config.external_url.clone()
    } else {
        external.as_str().trim_end_matches('/').to_owned()
    }
}

/// Sends a notification if its setting is on and the user has an address. It never fails its request.
pub async fn notify(request: &Request, db: &Db, user: &User, notification: Notification<'_>) {
    let enabled = request.auth.config.mailer.notifications.get(notification.name()).copied().unwrap_or(false);
    if !enabled || user.email.is_empty() {
        return;
    }
    if let Err(error) = send(request, db, user, Mail::Notification(notification)).await {
        tracing::warn!(notification = notification.name(), cause = error.message(), "a notification could not be sent");
    }
}

/// For an address that gets no mail: counts, fails and takes as long as sending one would. `mail` is the mail that a
/// known address would get.
///
/// Errors: as those of [`send`].
pub async fn send_nobody(request: &Request, address: &str, mail: Mail<'_>) -> AuthResult<()> {
    request.auth.limits.count_unsent(request, address).await?;
    wait_as_if_sent(request, mail).await
}

/// The same for a mail that is not counted, because its address was mailed a moment ago.
pub async fn wait_as_if_sent(request: &Request, mail: Mail<'_>) -> AuthResult<()> {
    let away = request.away();
    away.leave()?;
    let auth = away.auth();
    let waiting = auth.paces.mails.wait();
    let sender = match &auth.delivery {
        Delivery::Direct(sender) if auth.config.hooks.send_email.is_none() => sender,
        Delivery::Direct(_) | Delivery::Outbox => {
            waiting.await;
            return Ok(());
        }
    };
    let (ready, ()) = futures_util::join!(sender.rehearse(), waiting);
    ready.map_err(|error| Fault::new(fault_of(&error))).or_internal(&mail.failure())
}

/// Sends `message` before this returns, or writes it as a row in `db`'s transaction.
pub async fn deliver(request: &Request, db: &Db, message: Message) -> AuthResult<()> {
    match &request.auth.delivery {
        Delivery::Direct(sender) => {
            let about = format!("mail {} {} {}", message.to, message.subject, message.text);
            let sender = Arc::clone(sender);
            let sent = request.ask(about, |away| async move {
                away.leave()?;
                let sent = away.auth().paces.mails.measured(sender.send(&message)).await;
                sent.map(|()| Value::Null).map_err(|error| Fault::new(fault_of(&error)).into())
            });
            sent.await.map(drop)
        }
        Delivery::Outbox => {
            let headers: Map<String, Value> =
                message.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            db.execute(
                "select ferrobase.send_mail($1, $2, $3, $4, $5)",
                &[&message.to, &message.subject, &message.text, &message.html, &SqlJson(headers)],
            )
            .await?;
            Ok(())
        }
    }
}

/// For the log, where addresses do not belong.
fn fault_of(error: &MailError) -> String {
    format!("the mail server: {}", error.outline())
}

/// The configured headers. A header with several values has them in one line, as those of Supabase Auth.
fn headers(configured: &[(String, Vec<String>)], template: &str) -> Vec<(String, String)> {
    let kind = if template == "reauthentication" { "reauthenticate" } else { template };
    let named = configured.iter().filter(|(name, _)| !name.is_empty());
    let joined = named.map(|(name, values)| {
        let values = values.iter().filter(|value| !value.is_empty());
        let values: Vec<_> = values.map(|value| value.replace("$messageType", kind)).collect();
        (name.clone(), values.join(", "))
    });
    joined.filter(|(_, value)| !value.is_empty()).collect()
}

fn template_data(
    site_url: &str,
    user: &User,
    mail: Mail<'_>,
    copy: &Copy<'_>,
    link: &str,
    redirect_to: &str,
) -> Map<String, Value> {
    let mut data = Map::new();
    let mut set = |key: &str, value: &str| {
        data.insert(key.to_owned(), json!(value));
    };
    set("SiteURL", site_url);
    set("Email", &user.email);
    match mail {
        Mail::Reauthentication { otp } => set("Token", otp),
        Mail::Notification(notification) => match notification {
            Notification::PasswordChanged => {}
            Notification::EmailChanged { old_email } => set("OldEmail", old_email),
            Notification::PhoneChanged { old_phone } => {
                set("Phone", &user.phone);
                set("OldPhone", old_phone);
            }
            Notification::IdentityLinked { provider } => set("Provider", provider),
            Notification::IdentityUnlinked { provider, recipient } => {
                set("Provider", provider);
                set("Email", recipient);
            }
            Notification::FactorEnrolled { factor_type } | Notification::FactorUnenrolled { factor_type } => {
                set("FactorType", factor_type);
            }
        },
        Mail::Confirmation { .. }
        | Mail::Invite { .. }
        | Mail::Recovery { .. }
        | Mail::MagicLink { .. }
        | Mail::EmailChange { .. } => {
            set("ConfirmationURL", link);
            set("Token", copy.otp);
            set("TokenHash", copy.hash);
            set("RedirectTo", redirect_to);
            if let Mail::EmailChange { .. } = mail {
                set("NewEmail", &user.email_change);
                set("SendingTo", copy.to);
            }
        }
    }
    data.insert("Data".to_owned(), user.user_metadata.clone().map_or(Value::Null, Value::Object));
    data
}

/// `email_data` of the hook. For a change of address confirmed by both, the hashes are crossed: `token` is the
/// code of the current address and `token_hash` the hash for the new one. Receivers rely on it.
fn hook_data(user: &User, mail: Mail<'_>, two_copies: bool, redirect_to: &str, site_url: &str) -> Value {
    let (token, hash) = match mail {
        Mail::Confirmation { otp } | Mail::Invite { otp } => (otp, user.confirmation_token.as_str()),
        Mail::Recovery { otp } | Mail::MagicLink { otp } => (otp, user.recovery_token.as_str()),
        Mail::Reauthentication { otp } => (otp, user.reauthentication_token.as_str()),
        Mail::EmailChange { otp_new, otp_current } => {
            (if two_copies { otp_current } else { otp_new }, user.email_change_token_new.as_str())
        }
        Mail::Notification(_) => ("", ""),
    };
    let mut data = json!({
        "token": token, "token_hash": hash, "redirect_to": redirect_to, "email_action_type": mail.action(),
        "site_url": site_url, "token_new": "", "token_hash_new": "", "old_email": "", "old_phone": "",
        "provider": "", "factor_type": "",
    });
    match mail {
        Mail::EmailChange { otp_new, .. } if two_copies => {
            data["token_new"] = json!(otp_new);
            data["token_hash_new"] = json!(user.email_change_token_current);
        }
        Mail::Notification(Notification::EmailChanged { old_email }) => data["old_email"] = json!(old_email),
        Mail::Notification(Notification::PhoneChanged { old_phone }) => data["old_phone"] = json!(old_phone),
        Mail::Notification(
            Notification::IdentityLinked { provider } | Notification::IdentityUnlinked { provider, .. },
        ) => data["provider"] = json!(provider),
        Mail::Notification(
            Notification::FactorEnrolled { factor_type } | Notification::FactorUnenrolled { factor_type },
        ) => data["factor_type"] = json!(factor_type),
        _ => {}
    }
    data
}
