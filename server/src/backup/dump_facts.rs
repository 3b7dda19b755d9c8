//! What belongs to a database but not to its dump: memberships and settings of roles, settings of the database, and what only superusers
//! may own. A restored copy is compared with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use super::error::BackupError;

const FACTS: &str = include_str!("dump_facts.sql");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Of a role, or of the database if the name is empty.
    Setting,
    Member,
    EventTrigger,
    /// One for all tables.
    Publication,
}

/// One of them: its kind, its name, and what belongs to it, such as `work_mem=5MB` or the granted role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact(pub Kind, pub String, pub String);

impl Fact {
    pub async fn read_all(client: &Client) -> Result<BTreeSet<Self>, BackupError> {
        let rows = client.query(FACTS, &[]).await?;
        let fact = |row: &tokio_postgres::Row| {
            let kind = match row.get(0) {
                "setting" => Kind::Setting,
                "member" => Kind::Member,
                "event trigger" => Kind::EventTrigger,
                _ => Kind::Publication,
            };
            Self(kind, row.get(1), row.get(2))
        };
        Ok(rows.iter().map(fact).collect())
    }

    /// Whether this line of `pg_restore --list` restores it. Such objects are made without the dump, because it gives them to their
    /// former owner, who is no superuser after a restore.
    fn is_in(&self, line: &str) -> bool {
        // `2826; 3466 17170 EVENT TRIGGER - name owner`, and the same of its comment.
        let entry = line.splitn(4, ' ').nth(3).unwrap_or_default();
        let entry = entry.strip_prefix("COMMENT - ").map_or_else(
            || entry.replacen("EVENT TRIGGER - ", "EVENT TRIGGER ", 1).replacen("PUBLICATION - ", "PUBLICATION ", 1),
            str::to_owned,
        );
        let Self(kind, name, _) = self;
        let kind = match kind {
            Kind::EventTrigger => "EVENT TRIGGER",
            Kind::Publication => "PUBLICATION",
            Kind::Setting | Kind::Member => return false,
        };
        // Only comments have names in quotes.
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let rest = entry.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' '));
        let owner = |name: &str| rest?.strip_prefix(name)?.strip_prefix(' ');
        // The rest of a longer name would be taken for an owner.
        owner(name).or_else(|| owner(&quoted)).is_some_and(|owner| !owner.contains(' '))
    }
}

/// A list for `pg_restore --use-list` without what `facts` name.
pub fn without(facts: &BTreeSet<Fact>, listed: &str) -> String {
    let kept = listed.lines().filter(|line| !facts.iter().any(|fact| fact.is_in(line)));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// Whether any is made without the dump.
pub fn has_objects(facts: &BTreeSet<Fact>) -> bool {
    facts.iter().any(|Fact(kind, ..)| matches!(kind, Kind::EventTrigger | Kind::Publication))
}

/// What of `facts` the restored database lacks, a sentence each. The settings of roles in `former`, which were there before, are theirs.
pub async fn missing(
    client: &Client,
    facts: &BTreeSet<Fact>,
    former: &BTreeSet<String>,
) -> Result<Vec<String>, BackupError> {
    let superusers = roles(client, "rolsuper").await?;
    // Superusers that own nothing are not made.
    let there = roles(client, "true").await?;
    let found = Fact::read_all(client).await?;
    // A value may be a secret.
    let of = |what: &str| what.split('=').next().unwrap_or_default().to_owned();
    let lacks = facts.difference(&found).filter_map(|Fact(kind, name, what)| match kind {
        Kind::Setting if name.is_empty() => Some(format!("the database's setting {} was not restored", of(what))),
        Kind::Setting | Kind::Member if !there.contains(name) => None,
        Kind::Setting if former.contains(name) || superusers.contains(name) => None,
        Kind::Setting => Some(format!("role {name}: its setting {} was not restored", of(what))),
        // Nobody becomes a member of a superuser.
        Kind::Member if superusers.contains(what.trim_end_matches(" with admin option")) => None,
        Kind::Member => Some(format!("role {name}: its membership in {what} was not restored")),
        Kind::EventTrigger => Some(format!("event trigger {name} was not restored")),
        Kind::Publication => Some(format!("publication {name} was not restored")),
    });
    Ok(lacks.collect())
}

/// Names of the roles for which `condition` is true.
pub async fn roles(client: &Client, condition: &str) -> Result<BTreeSet<String>, BackupError> {
    let names = format!("select rolname::text from pg_catalog.pg_roles where {condition}");
    Ok(client.query(&names, &[]).await?.iter().map(|row| row.get(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_made_without_the_dump_is_left_out_of_its_list() {
        let fact = |kind, name: &str| Fact(kind, name.to_owned(), String::new());
        let facts = [fact(Kind::EventTrigger, "watch"), fact(Kind::Publication, "all of it"), fact(Kind::Setting, "x")];
        let kept = "; Archive created at 2026-01-01\n\n215; 1259 16555 TABLE public x dbadmin\n\
            3472; 6104 16555 PUBLICATION - all dbadmin\n3474; 6106 16919 PUBLICATION TABLE realtime all of it dbadmin\n\
            3475; 0 0 COMMENT - EVENT TRIGGER watch_more dbadmin\n3476; 6104 16920 PUBLICATION - all of it too dbadmin\n";
        let left_out = "2826; 3466 17170 EVENT TRIGGER - watch dbadmin\n3480; 0 0 COMMENT - EVENT TRIGGER watch dbadmin\n\
            3473; 6104 16918 PUBLICATION - all of it dbadmin\n3481; 0 0 COMMENT - PUBLICATION \"all of it\" dbadmin\n";
        assert_eq!(without(&facts.into(), &format!("{kept}{left_out}")), kept);
    }
}
