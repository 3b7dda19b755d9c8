//! `/rest/v1`: PostgREST's API. The stages are `ApiRequest → Plan → Sql → ResultSet → HttpResponse`.
//!
//! [`request`] parses the request, [`plan`] resolves it against the schema cache, [`sql`] writes the statement. These three are pure.
//! [`execute`] runs the transaction and [`response`] turns its single row into an answer. [`authenticate`] finds the role, [`live`]
//! holds the configuration and schema cache, which change while the server runs.

pub mod access_log;
pub mod admin;
pub mod authenticate;
mod body;
pub mod cors;
mod costs;
pub mod error;
pub mod execute;
pub mod live;
pub mod openapi;
pub mod plan;
pub mod request;
pub mod response;
mod routes;
mod spool;
pub mod sql;
mod state;
mod streaming;

pub use routes::configure;
pub use state::{COMPATIBLE_VERSION, Rest};
