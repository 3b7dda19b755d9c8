//! What the next start would change of the platform's and auth's schemas. Nothing is changed here.

use super::ledger::Ledger;
use super::platform::ROLES;
use super::runner::{Plan, Set, Unit, WhenChanged};
use super::session::Session;
use super::{MigrateError, files};

/// The files that would run, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// New ones, and those whose text has changed since they ran.
    pub platform: Vec<String>,
    pub auth: Vec<String>,
}

/// Compares the database at `url` with the files of this binary.
pub async fn pending(url: &str) -> Result<Pending, MigrateError> {
    let session = Session::connect(url).await?;
    let (platform, auth) = (files::platform()?, files::auth()?);
    let known = Ledger::Platform.read(&session).await?;
    let set = Set { files: &platform, ledger: Ledger::Platform, when_changed: WhenChanged::RunAgain, unit: Unit::File };
    let mut plan = Plan::against(set, &known)?;
    let roles = "select count(*) from pg_catalog.pg_roles where rolname = any ($1)";
    let roles: i64 = session.client.query_one(roles, &[&ROLES.as_slice()]).await?.get(0);
    if roles < ROLES.len() as i64 {
        plan.run_all();
    }
    let known = Ledger::Auth.read(&session).await?;
    let set = Set { files: &auth, ledger: Ledger::Auth, when_changed: WhenChanged::Keep, unit: Unit::File };
    Ok(Pending { platform: plan.files(), auth: Plan::against(set, &known)?.files() })
}
