//! Runs a dump's statements on the target database in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Client;

use super::classify::{Action, By, Keep, Rows, classify, identifier, one_line};
use super::stream::Stream;
use super::words::{Qualified, list, qualified, words};
use crate::migrate::split_statements;

/// Session settings of the import: names are qualified, function bodies are not checked, and there is no timeout.
const SESSION_SETTINGS: &str = "begin; set local search_path = ''; set local check_function_bodies = off; \
    set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local client_min_messages = warning; \
    set local row_security = off; set local xmloption = content; set local standard_conforming_strings = on";

/// The project's migration history, as the Supabase CLI creates it.
const HISTORY: &str = "create schema if not exists supabase_migrations; \
    create table if not exists supabase_migrations.schema_migrations \
      (version text not null primary key, statements text[], name text)";

/// How statements run: as which role, and whether without triggers and foreign keys.
type Acting = (By, bool);

pub struct Loader {
    client: Client,
    /// `None` if the administrator is the owner.
    owner: Option<String>,
    acting: Acting,
    /// Parts of the dump that were not imported.
    pub left_out: BTreeSet<String>,
    /// A function of `auth` or `storage` whose owner the next statement sets.
    held: Option<(Qualified, String)>,
    /// Insertable columns of platform tables.
    columns: BTreeMap<(String, String), Vec<String>>,
    has_history: bool,
    /// Statements that set sequences, and the role that runs them.
    sequences: Vec<(By, String)>,
    roles: BTreeSet<String>,
    /// Statements that revoke the memberships granted to the owner for the import.
    lent: Vec<String>,
    is_lent: bool,
}

impl Loader {
    /// `admin` is a connection of the platform's administrator; `owner` is the role that owns the project's objects.
    pub async fn begin(admin: Client, owner: &str) -> anyhow::Result<Self> {
        admin.batch_execute(SESSION_SETTINGS).await?;
        let is_one: bool = admin.query_one("select current_user = $1", &[&owner]).await?.get(0);
        Ok(Self {
            client: admin,
            owner: (!is_one).then(|| owner.to_owned()),
            acting: (By::Admin, false),
            left_out: BTreeSet::new(),
            held: None,
            columns: BTreeMap::new(),
            has_history: false,
            sequences: Vec::new(),
            roles: BTreeSet::new(),
            lent: Vec::new(),
            is_lent: false,
        })
    }

    /// Removes what is in the database.
    pub async fn clear(&mut self) -> anyhow::Result<()> {
        self.client.batch_execute(include_str!("clear.sql")).await.context("the database cannot be emptied")
    }

    /// Runs a whole dump. `name` is for messages.
    pub async fn load(&mut self, name: &str, stream: &mut Stream) -> anyhow::Result<()> {
        while let Some(text) = stream.text()? {
            let statements = split_statements(&text.sql);
            let count = statements.len();
            for (place, statement) in statements.iter().enumerate() {
                let rows = if text.has_rows && place + 1 == count { Some(&mut *stream) } else { None };
                self.statement(statement.text, rows).await.with_context(|| {
                    let before = statement.text.as_ptr() as usize - text.sql.as_ptr() as usize;
                    let line = text.line + text.sql[..before].matches('\n').count();
                    format!("{name}, line {line}: {}", one_line(statement.text))
                })?;
            }
        }
        Ok(())
    }

    async fn statement(&mut self, sql: &str, rows: Option<&mut Stream>) -> anyhow::Result<()> {
        let held = self.held.take();
        match classify(sql) {
            Action::Skip => {}
            Action::LeaveOut(what) => {
                self.left_out.insert(what);
            }
            Action::Hold(function) => self.held = Some((function, sql.to_owned())),
            Action::Owner { of, role } => {
                if let Some((function, create)) = held
                    && (&function.schema, &function.name) == (&of.schema, &of.name)
                    && (role == "postgres" || self.roles.contains(&role))
                    && !self.has_function(&of).await?
                {
                    self.act(By::Admin, false).await?;
                    self.lenient(&format!("{create}; {sql}"), &create).await?;
                }
            }
            Action::CreateRole { name, sql } => {
                self.act(By::Admin, false).await?;
                let there =
                    self.client.query_opt("select from pg_catalog.pg_roles where rolname = $1", &[&name]).await?;
                if there.is_none() {
                    self.client.batch_execute(&sql).await?;
                }
                self.roles.insert(name);
            }
            Action::SetSequence { sql, by } => self.sequences.push((by, sql)),
            Action::Run { sql, by, is_lenient } => {
                self.act(by, false).await?;
                if is_lenient {
                    self.lenient(&sql, &sql).await?;
                } else {
                    self.client.batch_execute(&sql).await?;
                }
            }
            Action::Rows(head) => self.rows(&head, sql, rows).await?,
        }
        Ok(())
    }

    /// Runs a statement that may fail; a failure is reported as `what`.
    async fn lenient(&mut self, sql: &str, what: &str) -> anyhow::Result<()> {
        self.client.batch_execute("savepoint lenient").await?;
        match self.client.batch_execute(sql).await {
            Ok(()) => self.client.batch_execute("release lenient").await?,
            Err(error) => {
                let Some(told) = error.as_db_error() else { return Err(error.into()) };
                self.left_out.insert(format!("{} ({})", one_line(what), told.message()));
                self.client.batch_execute("rollback to lenient; release lenient").await?;
            }
        }
        Ok(())
    }

    /// Switches to the role of the next statement. In replica mode PostgreSQL fires no triggers and checks no foreign keys.
    async fn act(&mut self, by: By, as_replica: bool) -> anyhow::Result<()> {
        if by == By::Owner && !self.is_lent {
            self.is_lent = true;
            self.lend().await?;
        }
        if self.acting == (by, as_replica) {
            return Ok(());
        }
        let role = if as_replica { "replica" } else { "origin" };
        let mut sql = format!("reset role; set local session_replication_role = {role}");
        if let (By::Owner, Some(owner)) = (by, &self.owner) {
            sql.push_str(&format!("; set local role {}", identifier(owner)));
        }
        self.client.batch_execute(&sql).await?;
        self.acting = (by, as_replica);
        Ok(())
    }

    /// Makes the owner a member of the roles that own some of the project's objects.
    async fn lend(&mut self) -> anyhow::Result<()> {
        let Some(owner) = self.owner.clone() else { return Ok(()) };
        // Before version 16, the creator of a role did not need this.
        let is_old = "select current_setting('server_version_num')::int < 160000";
        if self.client.query_one(is_old, &[]).await?.get(0) {
            return Ok(());
        }
        let roles: Vec<&String> = self.roles.iter().collect();
        let rows = self
            .client
            .query(
                "select r.rolname::text, m.oid is not null, coalesce(m.inherit_option, false), coalesce(m.set_option, false)
                 from pg_catalog.pg_roles r
                 left join pg_catalog.pg_auth_members m on m.roleid = r.oid and m.member = $2::text::regrole
                   and m.grantor = current_user::regrole
                 where r.rolname = any ($1) and not (pg_has_role($2::text::name, r.oid, 'USAGE')
                   and pg_has_role($2::text::name, r.oid, 'SET'))",
                &[&roles, &owner],
            )
            .await?;
        for row in rows {
            let (role, was): (String, bool) = (identifier(&row.get::<_, String>(0)), row.get(1));
            let owner = identifier(&owner);
            self.client.batch_execute(&format!("grant {role} to {owner} with inherit true, set true")).await?;
            self.lent.push(if was {
                let (inherits, sets): (bool, bool) = (row.get(2), row.get(3));
                format!("grant {role} to {owner} with inherit {inherits}, set {sets}")
            } else {
                format!("revoke {role} from {owner}")
            });
        }
        Ok(())
    }

    async fn has_function(&self, function: &Qualified) -> anyhow::Result<bool> {
        let there =
            "select exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
                       where n.nspname = $1 and p.proname = $2)";
        Ok(self.client.query_one(there, &[&function.schema, &function.name]).await?.get(0))
    }

    async fn rows(&mut self, head: &Rows, sql: &str, rows: Option<&mut Stream>) -> anyhow::Result<()> {
        anyhow::ensure!(head.is_copy == rows.is_some(), "only rows that follow a COPY … FROM stdin are read");
        match head.keep {
            Keep::Skip => skip(rows).map(drop),
            Keep::LeaveOut => {
                let table = &head.table;
                if skip(rows)? || !head.is_copy {
                    self.left_out.insert(format!(
                        "rows of {}.{}: they are only useful in the old project",
                        table.schema, table.name
                    ));
                }
                Ok(())
            }
            Keep::Projects => {
                self.act(By::Owner, true).await?;
                self.put(sql, rows).await
            }
            Keep::Platforms => self.platform_rows(head, sql, rows).await,
        }
    }

    /// Runs `sql` with the rows that follow it.
    async fn put(&self, sql: &str, rows: Option<&mut Stream>) -> anyhow::Result<()> {
        let Some(stream) = rows else { return Ok(self.client.batch_execute(sql).await?) };
        let sink = self.client.copy_in::<_, Bytes>(sql).await?;
        let mut sink = std::pin::pin!(sink);
        while let Some(rows) = stream.rows()? {
            sink.send(Bytes::from(rows)).await?;
        }
        sink.finish().await?;
        Ok(())
    }

    /// Inserts rows into a table that may have other columns here: only columns that both tables have are imported.
    async fn platform_rows(&mut self, head: &Rows, sql: &str, rows: Option<&mut Stream>) -> anyhow::Result<()> {
        let (schema, name) = (&head.table.schema, &head.table.name);
        if schema == "supabase_migrations" && name == "schema_migrations" && !self.has_history {
            self.act(By::Owner, false).await?;
            self.client.batch_execute(&format!("{HISTORY}; truncate supabase_migrations.schema_migrations")).await?;
            self.has_history = true;
        }
        self.act(By::Admin, true).await?;
        let here = self.columns_of(schema, name).await?;
        if here.is_empty() {
            if skip(rows)? || !head.is_copy {
                self.left_out.insert(format!("rows of {schema}.{name}: the table does not exist here"));
            }
            return Ok(());
        }
        if head.columns.iter().all(|column| here.contains(column)) {
            return self.put(sql, rows).await;
        }
        let table = format!("{}.{}", identifier(schema), identifier(name));
        let (shared, unknown): (Vec<&String>, Vec<&String>) =
            head.columns.iter().partition(|column| here.contains(column));
        let names = shared.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", ");
        let mut make = format!("create temp table incoming on commit drop as select {names} from {table} limit 0;");
        for column in &unknown {
            make.push_str(&format!(" alter table pg_temp.incoming add column {} text;", identifier(column)));
        }
        self.client.batch_execute(&make).await?;
        self.put(&redirected(sql, head), rows).await?;
        // Other tools store more columns in the migration history; these are not reported.
        let told = unknown.into_iter().filter(|_| schema != "supabase_migrations");
        for column in told {
            let values = format!("select count({}) from pg_temp.incoming", identifier(column));
            let count: i64 = self.client.query_one(&values, &[]).await?.get(0);
            if count > 0 && !self.is_generated(schema, name, column).await? {
                self.left_out
                    .insert(format!("{count} values of {schema}.{name}.{column}: the column does not exist here"));
            }
        }
        let take = format!(
            "insert into {table} ({names}) overriding system value select {names} from pg_temp.incoming; drop table pg_temp.incoming"
        );
        Ok(self.client.batch_execute(&take).await?)
    }

    async fn columns_of(&mut self, schema: &str, table: &str) -> anyhow::Result<Vec<String>> {
        let key = (schema.to_owned(), table.to_owned());
        if let Some(known) = self.columns.get(&key) {
            return Ok(known.clone());
        }
        let text = "select a.attname::text from pg_catalog.pg_attribute a
                    join pg_catalog.pg_class c on c.oid = a.attrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                    where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p') and a.attnum > 0
                      and not a.attisdropped and a.attgenerated = ''";
        let rows = self.client.query(text, &[&schema, &table]).await?;
        let columns: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        self.columns.insert(key, columns.clone());
        Ok(columns)
    }

    async fn is_generated(&self, schema: &str, table: &str, column: &str) -> anyhow::Result<bool> {
        let text = "select exists (select from information_schema.columns where table_schema = $1 and table_name = $2
                      and column_name = $3 and is_generated = 'ALWAYS')";
        Ok(self.client.query_one(text, &[&schema, &table, &column]).await?.get(0))
    }

    /// Runs `sql` as the administrator and commits. Returns what was left out.
    pub async fn commit(mut self, sql: &str) -> anyhow::Result<(Client, BTreeSet<String>)> {
        for (by, sequence) in std::mem::take(&mut self.sequences) {
            self.act(by, false).await?;
            self.lenient(&sequence, &sequence).await?;
        }
        self.act(By::Admin, false).await?;
        let back = self.lent.join("; ");
        self.client.batch_execute(&format!("{back}; {sql}; notify pgrst, 'reload schema'; commit")).await?;
        Ok((self.client, self.left_out))
    }
}

/// Skips rows. Returns whether there were any.
fn skip(rows: Option<&mut Stream>) -> anyhow::Result<bool> {
    let mut were_any = false;
    if let Some(stream) = rows {
        while stream.rows()?.is_some() {
            were_any = true;
        }
    }
    Ok(were_any)
}

/// The same statement, for the staging table.
fn redirected(sql: &str, head: &Rows) -> String {
    let words = words(sql, 20_000);
    let after = qualified(&words, 1).and_then(|table| list(&words, table.end)).map_or(sql.len(), |(_, end)| end);
    let names = head.columns.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", ");
    let verb = if head.is_copy { "copy" } else { "insert into" };
    format!("{verb} pg_temp.incoming ({names}){}", &sql[after..])
}
