//! Decides what happens to each statement of a dump. The platform's objects exist here already; the project's objects and rows
//! are imported.

use super::words::{Kind, Qualified, Word, list, qualified, words};
use crate::cli::project::dump::{PLATFORM_TABLES, is_free_setting, is_platform, is_reserved, without_column_versions};

/// The role that runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The role that owns the project's objects.
    Owner,
    /// The platform's administrator, for what the owner may not do. Only used if the form of the statement shows its whole
    /// effect.
    Admin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A platform object, a session setting, or of no use here.
    Skip,
    /// Left out; the user is shown this text.
    LeaveOut(String),
    Run {
        sql: String,
        by: By,
        /// On failure, the user is told and the import continues.
        is_lenient: bool,
    },
    /// Sets a sequence. A rollback does not undo that, so it runs after everything else has succeeded.
    SetSequence {
        sql: String,
        by: By,
    },
    CreateRole {
        name: String,
        sql: String,
    },
    /// A function in `auth` or `storage`. The next statement, which sets its owner, tells whether it is the project's.
    Hold(Qualified),
    /// Sets the owner of a function in `auth` or `storage`.
    Owner {
        of: Qualified,
        role: String,
    },
    Rows(Rows),
}

/// The head of a `COPY` or `INSERT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub table: Qualified,
    /// Empty if the statement names none.
    pub columns: Vec<String>,
    pub is_copy: bool,
    pub keep: Keep,
}

/// Which rows are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Projects,
    /// The project's rows in a platform table, which may have other columns here.
    Platforms,
    /// Rows that are useful only in the source database.
    LeaveOut,
    Skip,
}

/// Platform schemas in which a project may have functions, policies or triggers.
const MANAGED: [&str; 3] = ["auth", "realtime", "storage"];

/// Enough words to recognize any statement except those that insert rows or list columns.
const MOST_WORDS: usize = 4000;

pub fn classify(sql: &str) -> Action {
    let Some(sql) = without_column_versions(sql) else { return Action::Skip };
    let sql = &*sql;
    let words = words(sql, MOST_WORDS);
    let is = |place: usize, keyword: &str| words.get(place).is_some_and(|word| word.is(keyword));
    let has = |keyword: &str| words.iter().any(|word| word.depth == 0 && word.is(keyword));
    let object = qualified(&words, 1);
    let is_platforms = object.as_ref().is_some_and(|object| is_platform(&object.schema));
    match words.first().map(|word| word.text.as_str()).unwrap_or_default() {
        // `pg_dump --clean` drops objects before creating them. Here, the database is cleared beforehand.
        "set" | "reset" | "begin" | "commit" | "start" | "drop" => Action::Skip,
        "alter" if has("drop") || words.windows(2).any(|two| two[0].is("trigger") && two[1].is("all")) => Action::Skip,
        "select" => selected(sql, &words),
        "copy" | "insert" => rows(&words, object, is(0, "copy")),
        "create" => created(sql, &words, object.as_ref()),
        "alter" => altered(sql, &words, object),
        "comment" if is(2, "extension") || is(2, "database") || is_platforms => Action::Skip,
        "comment" if is(2, "schema") && named(&words, 3).is_none_or(|name| is_platform(&name)) => Action::Skip,
        "comment" => run(sql, By::Admin, true),
        "grant" | "revoke" if !has("on") => membership(sql, &words),
        "grant" | "revoke" => rights(sql, &words, object),
        "refresh" => run(sql, By::Owner, true),
        _ => leave_out(sql),
    }
}

/// Decides about `GRANT … ON … TO …`.
fn rights(sql: &str, words: &[Word], object: Option<Qualified>) -> Action {
    let on = words.iter().position(|word| word.depth == 0 && word.is("on")).unwrap_or(0);
    let is_schema = words.get(on + 1).is_some_and(|word| word.is("schema"));
    let schema = if is_schema { named(words, on + 2) } else { object.map(|found| found.schema) };
    let grantee = words.iter().rposition(|word| word.depth == 0 && (word.is("to") || word.is("from")));
    let grantee = grantee.and_then(|place| words.get(place + 1));
    let is_known = grantee.is_none_or(|word| word.is("public") || is_reserved(&word.text));
    match schema {
        Some(schema) if is_platform(&schema) && is_known => Action::Skip,
        // A dump must not grant access to PostgreSQL's own functions.
        Some(schema) if schema.starts_with("pg_") || ["ferrobase", "_supavisor"].contains(&schema.as_str()) => {
            leave_out(sql)
        }
        Some(_) => run(sql, By::Admin, true),
        None if words.get(on + 1).is_some_and(|word| word.is("parameter")) => Action::Skip,
        None => run(sql, By::Owner, true),
    }
}

fn created(sql: &str, words: &[Word], object: Option<&Qualified>) -> Action {
    let is = |place: usize, keyword: &str| words.get(place).is_some_and(|word| word.is(keyword));
    let kind = if is(1, "or") { 3 } else { 1 };
    let schema = object.map(|object| object.schema.as_str());
    let is_platforms = schema.is_some_and(is_platform);
    let is_managed = schema.is_some_and(|schema| MANAGED.contains(&schema));
    if is(1, "schema") {
        return match name_after_conditions(words, 2) {
            Some(name) if name == "public" || is_platform(&name) => Action::Skip,
            Some(name) => run(&format!("create schema if not exists {}", identifier(&name)), By::Owner, false),
            None => leave_out(sql),
        };
    }
    if is(1, "extension") {
        return match name_after_conditions(words, 2) {
            Some(name) if name == "plpgsql" => Action::Skip,
            // These extensions create a schema of their own.
            Some(name) if ["pg_tle", "pgsodium", "pgmq"].contains(&name.as_str()) => {
                run(&format!("create extension if not exists {}", identifier(&name)), By::Owner, true)
            }
            _ => run(sql, By::Owner, true),
        };
    }
    if is(1, "role") || is(1, "user") && !is(2, "mapping") {
        return match named(words, 2) {
            Some(name) if !is_reserved(&name) => match without_attributes(sql) {
                Some(sql) => Action::CreateRole { name, sql },
                None => leave_out(sql),
            },
            _ => Action::Skip,
        };
    }
    if is(1, "publication") {
        let is_ours = named(words, 2).is_some_and(|name| name.starts_with("supabase_realtime"));
        return if is_ours { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is(1, "event") {
        return if is_platforms { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is(1, "policy") {
        return match (is_managed, is_platforms) {
            (true, _) => run(sql, By::Admin, true),
            (false, true) => Action::Skip,
            (false, false) => run(sql, By::Owner, false),
        };
    }
    if is(kind, "trigger") || is(kind, "constraint") && is(kind + 1, "trigger") {
        let called = words.iter().rposition(|word| word.is("execute")).and_then(|place| qualified(words, place));
        let calls_platform = called.is_some_and(|function| is_platform(&function.schema));
        return match (is_managed, is_platforms) {
            (true, _) if !calls_platform => run(sql, By::Admin, true),
            (_, true) => Action::Skip,
            _ => run(sql, By::Owner, false),
        };
    }
    if is(1, "subscription") || is(1, "database") || is(1, "tablespace") {
        return leave_out(sql);
    }
    match object {
        Some(object) if is_platforms => {
            let is_function = is(kind, "function") || is(kind, "procedure");
            // A function in a compiled language could do anything on the machine.
            let is_plain =
                after(words, "language").is_some_and(|language| ["sql", "plpgsql"].contains(&language.as_str()));
            if is_function && is_plain && ["auth", "storage"].contains(&object.schema.as_str()) {
                Action::Hold(object.clone())
            } else {
                Action::Skip
            }
        }
        Some(_) => run(sql, By::Owner, false),
        // Casts, servers, languages, user mappings: some of them need a superuser.
        None => run(sql, By::Owner, true),
    }
}

fn altered(sql: &str, words: &[Word], object: Option<Qualified>) -> Action {
    let is = |place: usize, keyword: &str| words.get(place).is_some_and(|word| word.is(keyword));
    let is_platforms = object.as_ref().is_some_and(|object| is_platform(&object.schema));
    if is(1, "role") {
        return role_altered(sql, words);
    }
    if is(1, "default") {
        let role = after(words, "role");
        let schema = after(words, "schema");
        let is_the_platforms = role.is_some_and(|role| role != "postgres" && is_reserved(&role));
        let is_skipped = is_the_platforms || schema.is_some_and(|schema| is_platform(&schema));
        return if is_skipped { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is(1, "database") || is(1, "system") {
        return leave_out(sql);
    }
    let owner = words.windows(3).find(|three| three[0].depth == 0 && three[0].is("owner") && three[1].is("to"));
    if let Some([.., role]) = owner {
        let role = role.text.clone();
        let schema = if is(1, "schema") { named(words, 2) } else { None };
        return match object {
            Some(of) if is_platforms => {
                let is_function = is(1, "function") || is(1, "procedure");
                if is_function { Action::Owner { of, role } } else { Action::Skip }
            }
            _ if schema.is_some_and(|name| is_platform(&name) || name == "public") || is(1, "event") => Action::Skip,
            // Objects that the platform's administrator created for a project become the owner's.
            _ if role != "postgres" && is_reserved(&role) => Action::Skip,
            _ => run(sql, By::Admin, true),
        };
    }
    if is(1, "event") {
        let is_ours = named(words, 3).is_some_and(|name| name.starts_with("pgrst_") || name.starts_with("issue_"));
        return if is_ours { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is(1, "publication") {
        let is_ours = named(words, 2).is_some_and(|name| name.starts_with("supabase_realtime_"));
        return if is_ours || is_platforms { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is_platforms { Action::Skip } else { run(sql, By::Owner, object.is_none()) }
}

/// Settings that make PostgreSQL load a library at login. If the library is missing, every login fails.
fn is_preload(setting: &str) -> bool {
    setting.ends_with("_preload_libraries")
}

fn role_altered(sql: &str, words: &[Word]) -> Action {
    let Some(role) = named(words, 2) else { return Action::Skip };
    let place = words.iter().position(|word| word.depth == 0 && word.is("set"));
    if let Some(setting) = place.map(|place| setting_name(&words[place + 1..])) {
        if is_preload(&setting) {
            return leave_out(sql);
        }
        return if is_reserved(&role) && !is_free_setting(&setting) { Action::Skip } else { run(sql, By::Admin, true) };
    }
    if is_reserved(&role) {
        return Action::Skip;
    }
    without_attributes(sql).map_or_else(|| leave_out(sql), |sql| run(&sql, By::Admin, true))
}

/// Parses `pgrst.db_schemas` or `"pgrst.db_schemas"`.
fn setting_name(words: &[Word]) -> String {
    words.iter().take_while(|word| !word.is("to") && word.text != "=").map(|word| word.text.as_str()).collect()
}

/// Removes the attributes that would make a role a superuser; `None` if it is written in a form that `pg_dump` does not use.
fn without_attributes(sql: &str) -> Option<String> {
    let mut kept = sql.to_owned();
    for attribute in [" NOSUPERUSER", " SUPERUSER", " NOREPLICATION", " REPLICATION"] {
        kept = kept.replace(attribute, "");
    }
    let is_left = words(&kept, MOST_WORDS).iter().any(|word| word.is("superuser") || word.is("replication"));
    (!is_left).then_some(kept)
}

/// Roles of the platform and of PostgreSQL that a project may grant to its own roles.
const GIVEN_FREELY: [&str; 9] = [
    "anon",
    "authenticated",
    "service_role",
    "postgres",
    "pg_monitor",
    "pg_read_all_data",
    "pg_read_all_settings",
    "pg_read_all_stats",
    "pg_signal_backend",
];

/// `GRANT a TO b`: a role of the project may be granted to a platform role such as authenticator.
fn membership(sql: &str, words: &[Word]) -> Action {
    let Some(role) = named(words, 1) else { return leave_out(sql) };
    let is_theirs = is_reserved(&role) || role.starts_with("pg_");
    if is_theirs && after(words, "to").is_none_or(|member| is_reserved(&member)) {
        return Action::Skip;
    }
    if is_theirs && !GIVEN_FREELY.contains(&role.as_str()) {
        return leave_out(sql);
    }
    let by = words.windows(2).position(|two| two[0].is("granted") && two[1].is("by"));
    let end = by.and_then(|place| words.get(place.checked_sub(1)?)).map_or(sql.len(), |word| word.end);
    run(&sql[..end], By::Admin, true)
}

fn rows(words: &[Word], table: Option<Qualified>, is_copy: bool) -> Action {
    let Some(table) = table else { return Action::LeaveOut("rows of a table without a schema".to_owned()) };
    let columns = list(words, table.end).map(|(columns, _)| columns).unwrap_or_default();
    let name = format!("{}.{}", table.schema, table.name);
    let keep = match table.schema.as_str() {
        _ if PLATFORM_TABLES.contains(&name.as_str()) => Keep::Skip,
        "auth" | "storage" | "supabase_migrations" => Keep::Platforms,
        "cron" if table.name == "job" => Keep::Platforms,
        "vault" | "pgmq" | "pgsodium" | "pgtle" => Keep::LeaveOut,
        schema if is_platform(schema) => Keep::Skip,
        _ => Keep::Projects,
    };
    Action::Rows(Rows { table, columns, is_copy, keep })
}

fn selected(sql: &str, words: &[Word]) -> Action {
    let call = qualified(words, 1).filter(|call| call.schema == "pg_catalog").map(|call| call.name).unwrap_or_default();
    match call.as_str() {
        "set_config" => Action::Skip,
        "setval" => {
            let sequence = words.iter().find(|word| word.kind == Kind::Text).map(|word| self::words(&word.text, 3));
            let schema = sequence.as_deref().and_then(|words| words.first()).map(|word| word.text.clone());
            match schema.as_deref() {
                Some("auth" | "cron" | "storage") => Action::SetSequence { sql: sql.to_owned(), by: By::Admin },
                Some(schema) if is_platform(schema) => Action::Skip,
                _ => Action::SetSequence { sql: sql.to_owned(), by: By::Owner },
            }
        }
        _ => leave_out(sql),
    }
}

fn named(words: &[Word], place: usize) -> Option<String> {
    words.get(place).filter(|word| word.is_name()).map(|word| word.text.clone())
}

/// The name, after an optional `IF NOT EXISTS`.
fn name_after_conditions(words: &[Word], place: usize) -> Option<String> {
    let place = if words.get(place).is_some_and(|word| word.is("if")) { place + 3 } else { place };
    named(words, place)
}

/// The name after the last `keyword`.
fn after(words: &[Word], keyword: &str) -> Option<String> {
    words.iter().rposition(|word| word.depth == 0 && word.is(keyword)).and_then(|place| named(words, place + 1))
}

pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn run(sql: &str, by: By, is_lenient: bool) -> Action {
    Action::Run { sql: sql.to_owned(), by, is_lenient }
}

fn leave_out(sql: &str) -> Action {
    Action::LeaveOut(one_line(sql))
}

/// The beginning of a statement, on one line.
pub fn one_line(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `skip`, `out`, `hold`, `rows …`, or the role that runs it; with `?` if it may fail.
    fn shown(action: &Action) -> String {
        match action {
            Action::Skip => "skip".to_owned(),
            Action::LeaveOut(_) => "out".to_owned(),
            Action::Hold(_) => "hold".to_owned(),
            Action::Owner { role, .. } => format!("owner {role}"),
            Action::CreateRole { name, .. } => format!("role {name}"),
            Action::Rows(rows) => format!("{:?} {}", rows.keep, rows.columns.join("+")),
            Action::SetSequence { by, .. } => format!("{by:?} last"),
            Action::Run { by, is_lenient, .. } => format!("{by:?}{}", if *is_lenient { "?" } else { "" }),
        }
    }

    #[test]
    fn each_statement_of_a_dump_is_classified() {
        for (sql, action) in [
            ("SET transaction_timeout = 0", "skip"),
            ("SELECT pg_catalog.set_config('search_path', '', false)", "skip"),
            ("SELECT pg_catalog.setval('public.tasks_id_seq', 3, true)", "Owner last"),
            ("SELECT pg_catalog.setval('\"auth\".\"refresh_tokens_id_seq\"', 3, true)", "Admin last"),
            ("SELECT pg_catalog.setval('net.http_request_queue_id_seq', 3, true)", "skip"),
            ("SELECT pg_read_file('/etc/passwd')", "out"),
            ("DO $$ begin end $$", "out"),
            ("CREATE SCHEMA app", "Owner"),
            ("CREATE SCHEMA auth", "skip"),
            ("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA extensions", "Owner?"),
            ("COMMENT ON EXTENSION vector IS 'x'", "skip"),
            ("CREATE TABLE public.t (id auth.aal_level)", "Owner"),
            ("CREATE TABLE public.subscription (id uuid)", "Owner"),
            ("CREATE VIEW realtime.subscription AS SELECT 1", "skip"),
            ("CREATE TABLE auth.users (id uuid)", "skip"),
            ("CREATE UNIQUE INDEX i ON auth.users USING btree (id)", "skip"),
            ("CREATE INDEX i ON public.t USING gin (lower(a.b))", "Owner"),
            ("ALTER TABLE ONLY public.t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES auth.users(id)", "Owner"),
            ("ALTER TABLE ONLY auth.users ADD CONSTRAINT k PRIMARY KEY (id)", "skip"),
            ("ALTER TABLE ONLY public.t DROP CONSTRAINT f", "skip"),
            ("ALTER TABLE public.t DISABLE TRIGGER ALL", "skip"),
            ("ALTER TABLE public.t DISABLE TRIGGER mine", "Owner"),
            ("ALTER TABLE public.t OWNER TO supabase_admin", "skip"),
            ("ALTER TABLE public.t OWNER TO clerk", "Admin?"),
            ("CREATE POLICY p ON public.t USING (true)", "Owner"),
            ("CREATE POLICY p ON storage.objects USING (true)", "Admin?"),
            ("CREATE POLICY cron_job_policy ON cron.job USING (true)", "skip"),
            ("CREATE TRIGGER t AFTER INSERT ON auth.users FOR EACH ROW EXECUTE FUNCTION public.greet()", "Admin?"),
            (
                "CREATE TRIGGER t BEFORE UPDATE ON storage.objects FOR EACH ROW EXECUTE FUNCTION storage.update()",
                "skip",
            ),
            (
                "CREATE TRIGGER t AFTER INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION supabase_functions.http_request()",
                "Owner",
            ),
            ("CREATE FUNCTION auth.tenant() RETURNS text LANGUAGE sql AS $$ select 1 $$", "hold"),
            ("CREATE FUNCTION auth.run() RETURNS text LANGUAGE c AS '/tmp/x.so', 'x'", "skip"),
            (
                "CREATE FUNCTION extensions.grant_pg_net_access() RETURNS event_trigger LANGUAGE plpgsql AS $$ $$",
                "skip",
            ),
            ("ALTER FUNCTION auth.tenant() OWNER TO postgres", "owner postgres"),
            (
                "CREATE EVENT TRIGGER pgrst_ddl_watch ON ddl_command_end EXECUTE FUNCTION extensions.pgrst_ddl_watch()",
                "skip",
            ),
            (
                "CREATE EVENT TRIGGER w ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.w()",
                "Admin?",
            ),
            ("CREATE PUBLICATION supabase_realtime WITH (publish = 'insert')", "skip"),
            ("ALTER PUBLICATION supabase_realtime ADD TABLE ONLY public.t", "Admin?"),
            ("ALTER PUBLICATION supabase_realtime_messages_publication ADD TABLE ONLY realtime.messages", "skip"),
            ("ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin IN SCHEMA public GRANT ALL ON TABLES TO anon", "skip"),
            ("ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA public REVOKE ALL ON TABLES FROM anon", "Admin?"),
            ("GRANT ALL ON TABLE public.t TO anon", "Admin?"),
            ("GRANT ALL ON TABLE auth.users TO dashboard_user", "skip"),
            ("GRANT USAGE ON SCHEMA auth TO clerk", "Admin?"),
            ("GRANT ALL ON FUNCTION pg_catalog.pg_read_file(text) TO clerk", "out"),
            ("GRANT SET ON PARAMETER \"pgrst.db_schemas\" TO postgres", "skip"),
            ("CREATE ROLE anon", "skip"),
            ("CREATE ROLE clerk", "role clerk"),
            ("create role clerk superuser", "out"),
            ("ALTER ROLE clerk WITH SUPERUSER LOGIN", "Admin?"),
            ("ALTER ROLE anon WITH LOGIN", "skip"),
            ("ALTER ROLE authenticator SET session_preload_libraries TO 'safeupdate'", "out"),
            ("ALTER ROLE authenticator SET \"pgrst.db_schemas\" TO 'public, app'", "Admin?"),
            ("ALTER ROLE authenticator SET lock_timeout TO '8s'", "skip"),
            ("GRANT clerk TO authenticator GRANTED BY supabase_admin", "Admin?"),
            ("GRANT anon TO clerk", "Admin?"),
            ("GRANT supabase_admin TO clerk", "out"),
            ("GRANT pg_execute_server_program TO clerk", "out"),
            ("GRANT anon TO authenticator", "skip"),
            ("COPY auth.users (id, email) FROM stdin", "Platforms id+email"),
            ("COPY auth.schema_migrations (version) FROM stdin", "Skip version"),
            ("COPY realtime.messages_2026_01_01 (id) FROM stdin", "Skip id"),
            ("COPY vault.secrets (id) FROM stdin", "LeaveOut id"),
            ("INSERT INTO public.t (id) VALUES (1)", "Projects id"),
            ("REFRESH MATERIALIZED VIEW public.m", "Owner?"),
            ("ALTER DATABASE postgres SET x TO 'y'", "out"),
        ] {
            assert_eq!(shown(&classify(sql)), action, "{sql}");
        }
    }

    #[test]
    fn the_grantor_of_a_membership_is_left_out() {
        let Action::Run { sql, .. } =
            classify("GRANT clerk TO authenticator WITH INHERIT TRUE GRANTED BY supabase_admin")
        else {
            panic!("it runs");
        };
        assert_eq!(sql, "GRANT clerk TO authenticator WITH INHERIT TRUE");
    }
}
