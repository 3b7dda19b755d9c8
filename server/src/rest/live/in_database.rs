//! Configuration stored in the database: `pgrst.*` settings of the login role, and settings of roles.
//!
//! Queries outside a transaction take one round trip and prepare nothing: behind a transaction pooler the next round trip may
//! reach another session.
//!
//! Reference: PostgREST `Config/Database.hs`.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use crate::config::rest::{FunctionName, IN_DATABASE};
use crate::db::Client;
use crate::schema_cache::IsolationLevel;

/// The settings of each role that the login role may switch to.
#[derive(Clone, Debug, Default)]
pub struct RoleSettings {
    roles: HashMap<Box<str>, Arc<RoleSetting>>,
}

/// The settings of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleSetting {
    /// (name, value) in name order, set before the role itself.
    pub settings: Vec<(String, String)>,
    /// The role's `default_transaction_isolation`.
    pub isolation: Option<IsolationLevel>,
}

impl RoleSettings {
    pub fn find(&self, role: &str) -> Option<&Arc<RoleSetting>> {
        self.roles.get(role)
    }

    fn from_rows(rows: impl IntoIterator<Item = (String, String, String)>) -> Self {
        let mut roles: HashMap<Box<str>, RoleSetting> = HashMap::new();
        for (role, name, value) in rows {
            let setting = roles.entry(role.into()).or_default();
            if name == "default_transaction_isolation" {
                setting.isolation = Some(IsolationLevel::parse(&value));
            } else {
                setting.settings.push((name, value));
            }
        }
        Self { roles: roles.into_iter().map(|(role, setting)| (role, Arc::new(setting))).collect() }
    }
}

/// (name without `pgrst.`, value), after `pre_config` has run.
pub async fn load_settings(client: &Client, pre_config: Option<&FunctionName>) -> Result<Vec<(String, String)>, Error> {
    let names: Vec<String> = IN_DATABASE.iter().map(|name| format!("pgrst.{name}")).collect();
    // The function's settings last for its transaction, so they are read in it. It is then rolled back.
    client.batch_execute("begin isolation level read committed read only").await?;
    let read = async {
        if let Some(function) = pre_config {
            client.batch_execute(&format!("select {}()", quoted(function))).await?;
        }
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&names, Type::TEXT_ARRAY), (&pre_config.is_some(), Type::BOOL)];
        client.query_typed(include_str!("database_settings.sql"), &parameters).await
    };
    let rows = read.await;
    let ended = client.batch_execute("rollback").await;
    let rows = rows?;
    ended?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Two sessions start with the same settings if and only if this text is equal.
pub async fn load_session_defaults(client: &Client) -> Result<String, Error> {
    client.query_typed_one(include_str!("session_defaults.sql"), &[]).await?.try_get(0)
}

pub async fn load_role_settings(client: &Client) -> Result<RoleSettings, Error> {
    let version = client.query_typed_one("select current_setting('server_version_num')::int", &[]).await?.try_get(0)?;
    let rows = client.query_typed(&role_settings_query(version), &[]).await?;
    let mut rows: Vec<(String, String, String)> =
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect::<Result<_, Error>>()?;
    rows.sort_unstable();
    Ok(RoleSettings::from_rows(rows))
}

/// `version` is PostgreSQL's, such as 150004. Privileges on parameters came with version 15.
fn role_settings_query(version: i32) -> String {
    let granted = if version < 150_000 { "" } else { " or has_parameter_privilege(current_user, s.name, 'set')" };
    format!("{}{granted}", include_str!("role_settings.sql").trim_end())
}

fn quoted(function: &FunctionName) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    match &function.schema {
        Some(schema) => format!("{}.{}", quote(schema), quote(&function.name)),
        None => quote(&function.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_isolation_level_is_separated_from_other_settings() {
        let row = |role: &str, name: &str, value: &str| (role.to_owned(), name.to_owned(), value.to_owned());
        let roles = RoleSettings::from_rows([
            row("a", "default_transaction_isolation", "serializable"),
            row("a", "statement_timeout", "5s"),
            row("b", "work_mem", "1MB"),
        ]);
        let a = roles.find("a").expect("role");
        assert_eq!(a.isolation, Some(IsolationLevel::Serializable));
        assert_eq!(a.settings, [("statement_timeout".to_owned(), "5s".to_owned())]);
        assert_eq!(roles.find("b").and_then(|b| b.isolation), None);
        assert!(roles.find("c").is_none());
    }

    #[test]
    fn parameter_privileges_are_checked_if_supported() {
        assert!(!role_settings_query(140_011).contains("has_parameter_privilege"));
        assert!(
            role_settings_query(150_000).ends_with("'user' or has_parameter_privilege(current_user, s.name, 'set')")
        );
    }

    #[test]
    fn function_names_are_quoted() {
        let name = FunctionName { schema: Some("my\"s".to_owned()), name: "F".to_owned() };
        assert_eq!(quoted(&name), r#""my""s"."F""#);
    }
}
