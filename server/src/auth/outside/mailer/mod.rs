//! The mails of the auth API: links, templates and delivery.
//!
//! `serve --only auth` sends a mail within the request, and a failure fails the request. The full server writes an outbox row in
//! the request's transaction and sends the mail after the commit, so known and unknown addresses take the same time.
//! Reference: supabase/auth `internal/mailer/`.

mod defaults;
mod go_template;
mod links;
mod sending;
mod templates;

pub use go_template::Template;
pub use links::{ActionLink, action_link};
pub use sending::{Delivery, Mail, Notification, deliver, notify, send, send_nobody, wait_as_if_sent};
pub use templates::TemplateStore;
