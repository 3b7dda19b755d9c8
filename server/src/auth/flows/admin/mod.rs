//! Endpoints for administrators: users, invitations, links, single sign-on providers, the audit log.

mod audit;
mod factors;
mod invite;
mod link;
mod paging;
pub(in crate::auth) mod sso;
mod users;

pub(in crate::auth) use audit::audit_log;
pub(in crate::auth) use factors::{delete_factor, list_factors, update_factor};
pub(in crate::auth) use invite::invite;
pub(in crate::auth) use link::generate_link;
pub(in crate::auth) use users::{create_user, delete_user, list_users, load_user, update_user};
