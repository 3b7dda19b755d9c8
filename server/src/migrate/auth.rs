//! The schema `auth`: runs the files of `sql/auth` once each. Each can run on any state between Supabase Auth's of 2023
//! and ours.

use super::ledger::Ledger;
use super::runner::{Applied, Plan, Set, Unit, WhenChanged, unwatched};
use super::session::Session;
use super::{MigrateError, files};

/// Brings schema `auth` of the database at `url` up to date. `url` logs in as `supabase_auth_admin`, who owns the schema.
pub async fn auth(url: &str) -> Result<Applied, MigrateError> {
    let files = files::auth()?;
    let session = Session::connect_alone(url).await?;
    let set = Set { files: &files, ledger: Ledger::Auth, when_changed: WhenChanged::Keep, unit: Unit::File };
    Plan::of(&session, set).await?.carry_out(&session, &unwatched).await
}
