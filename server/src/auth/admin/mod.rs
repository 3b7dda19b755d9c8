//! What administrators do: users, invitations, links, the audit log.

mod audit;
mod factors;
mod invite;
mod link;
mod paging;
mod users;

pub(super) use audit::audit_log;
pub(super) use factors::{delete_factor, list_factors, update_factor};
pub(super) use invite::invite;
pub(super) use link::generate_link;
pub(super) use users::{create_user, delete_user, list_users, load_user, update_user};
