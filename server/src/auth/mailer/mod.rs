//! The mails of this API: their links, their templates and the way they leave.
//!
//! In a drop-in a mail is sent within the request and its failure is the request's. In the full server it
//! becomes an outbox row in the request's transaction and leaves after commit, so that a known and an unknown
//! address cost the same time. Reference: supabase/auth `internal/mailer/`.

mod defaults;
mod go_template;
mod links;
mod sending;
mod templates;

pub use go_template::Template;
pub use links::{ActionLink, action_link};
pub use sending::{Delivery, Mail, Notification, deliver, notify, send};
pub use templates::TemplateStore;
