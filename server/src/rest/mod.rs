//! `/rest/v1`: PostgREST's API. The road: `ApiRequest → Plan → Sql → ResultSet → HttpResponse`.
//!
//! [`request`] parses what came, [`plan`] resolves it against the schema cache, [`sql`] writes the statement;
//! these three are pure. [`execute`] runs the transaction, [`response`] turns its one row into an answer.
//! [`authenticate`] says as whom, [`live`] holds what may change while the server runs.

pub mod access_log;
pub mod admin;
pub mod authenticate;
pub mod cors;
pub mod error;
pub mod execute;
pub mod live;
pub mod openapi;
pub mod plan;
pub mod request;
pub mod response;
mod routes;
pub mod sql;
mod state;
mod streaming;

pub use routes::configure;
pub use state::{COMPATIBLE_VERSION, Rest};
