//! Rewrites `pg_dump`'s statements so that a project's database can run them: drops what the platform creates itself, and makes
//! conditional what may exist already. Rules: supabase/cli `pkg/migration/scripts`.

use std::borrow::Cow;

use super::{ADMIN, RESERVED_ROLES};
use crate::migrate::{Statement, split_statements};

/// Settings of reserved roles that projects may change.
const FREE_SETTINGS: [&str; 5] =
    ["pgaudit.*", "pgrst.*", "session_replication_role", "statement_timeout", "track_io_timing"];

/// Beginnings of statements, and their replacements.
const CONDITIONAL: [(&str, &str); 6] = [
    ("CREATE SCHEMA \"", "CREATE SCHEMA IF NOT EXISTS \""),
    ("CREATE TABLE \"", "CREATE TABLE IF NOT EXISTS \""),
    ("CREATE SEQUENCE \"", "CREATE SEQUENCE IF NOT EXISTS \""),
    ("CREATE VIEW \"", "CREATE OR REPLACE VIEW \""),
    ("CREATE FUNCTION \"", "CREATE OR REPLACE FUNCTION \""),
    ("CREATE TRIGGER \"", "CREATE OR REPLACE TRIGGER \""),
];

/// Beginnings of statements that need the platform's administrator, or that older servers do not know.
const LEFT_OUT: [&str; 10] = [
    "ALTER DEFAULT PRIVILEGES FOR ROLE \"supabase_admin\"",
    "ALTER EVENT TRIGGER ",
    "ALTER PUBLICATION \"supabase_realtime_",
    "ALTER TABLE \"cron\"",
    "COMMENT ON EXTENSION ",
    "COMMENT ON EVENT TRIGGER ",
    "CREATE EVENT TRIGGER ",
    "CREATE POLICY \"cron_job_",
    "CREATE PUBLICATION \"supabase_realtime",
    "SET transaction_timeout = 0",
];

/// Extensions that create a schema of their own.
const WITH_OWN_SCHEMA: [&str; 3] = ["pg_tle", "pgsodium", "pgmq"];

/// The schema dump without the objects in schemas for which `is_excluded` is true.
pub fn schema(dump: &str, has_comments: bool, is_excluded: impl Fn(&str) -> bool) -> String {
    render(&split_statements(dump), has_comments, |text| {
        let text = &*without_column_versions(text)?;
        if LEFT_OUT.iter().any(|start| text.starts_with(start)) || text.ends_with(&format!(" OWNER TO \"{ADMIN}\"")) {
            return None;
        }
        if text.starts_with("ALTER FOREIGN DATA WRAPPER ") && text.contains(" OWNER TO ") {
            return None;
        }
        if text.starts_with("GRANT ") || text.starts_with("REVOKE ") {
            // The restoring role is postgres, which needs no grants to itself. The platform creates the schema of functions.
            let is_the_platforms =
                text.contains(" ON SCHEMA \"functions\" ") || text.ends_with(" TO \"postgres\" WITH GRANT OPTION");
            if is_the_platforms || grants_on(text).is_some_and(&is_excluded) {
                return None;
            }
        }
        for name in WITH_OWN_SCHEMA {
            let create = format!("CREATE EXTENSION IF NOT EXISTS \"{name}\"");
            if text.starts_with(&create) {
                return Some(create);
            }
        }
        let conditional = CONDITIONAL
            .iter()
            .find_map(|(start, becomes)| text.strip_prefix(start).map(|rest| format!("{becomes}{rest}")));
        Some(conditional.unwrap_or_else(|| text.to_owned()))
    })
}

/// The statement without the option that PostgreSQL sets on columns itself since its releases of November 2026; `None` if it sets no
/// other. `pg_dump` of a release before them takes it for a user's, and servers of such releases do not know it.
pub fn without_column_versions(statement: &str) -> Option<Cow<'_, str>> {
    const VERSION: &str = "pg_attver=";
    let options = statement.rfind(" SET (").filter(|_| statement.starts_with("ALTER "));
    let Some(at) = options.map(|at| at + " SET (".len()) else { return Some(Cow::Borrowed(statement)) };
    let Some(options) = statement[at..].strip_suffix(')') else { return Some(Cow::Borrowed(statement)) };
    if !options.contains(VERSION) {
        return Some(Cow::Borrowed(statement));
    }
    let others: Vec<&str> = options.split(", ").filter(|option| !option.starts_with(VERSION)).collect();
    (!others.is_empty()).then(|| Cow::Owned(format!("{}{})", &statement[..at], others.join(", "))))
}

/// The project's own roles, and the settings that it may change on any role.
pub fn roles(dump: &str, has_comments: bool) -> String {
    let mut dump = render(&split_statements(dump), has_comments, |text| {
        let name = |start: &str| text.strip_prefix(start).and_then(|rest| rest.split('"').next());
        if let Some(role) = name("CREATE ROLE \"") {
            return (!is_reserved(role)).then(|| text.to_owned());
        }
        if let Some(role) = name("ALTER ROLE \"") {
            if is_reserved(role) && !setting(text).is_some_and(is_free) {
                return None;
            }
            // Only a superuser may use these words, even negated.
            return Some(text.replace(" NOSUPERUSER", "").replace(" NOREPLICATION", ""));
        }
        if text.starts_with("GRANT ") {
            let member = text.split_once(" TO \"").and_then(|(_, rest)| rest.split('"').next());
            if member.is_some_and(is_reserved) {
                return None;
            }
            return Some(text.replace(&format!(" GRANTED BY \"{ADMIN}\""), ""));
        }
        Some(text.to_owned())
    });
    dump.push_str("RESET ALL;\n");
    dump
}

fn render(statements: &[Statement<'_>], has_comments: bool, rewrite: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    for statement in statements {
        let comments = statement.commented.strip_suffix(statement.text).unwrap_or_default();
        if has_comments {
            text.push_str(comments.trim_start());
        }
        match rewrite(statement.text) {
            Some(kept) => {
                text.push_str(&kept);
                text.push_str(";\n\n");
            }
            None if has_comments => {
                for line in statement.text.lines() {
                    text.push_str(&format!("-- {line}\n"));
                }
                text.push('\n');
            }
            None => {}
        }
    }
    text
}

/// Whether a role belongs to the platform or to an extension.
pub fn is_reserved(role: &str) -> bool {
    RESERVED_ROLES.iter().any(|reserved| match reserved.strip_suffix('*') {
        Some(start) => role.starts_with(start),
        None => role == *reserved,
    })
}

/// `ALTER ROLE "x" SET "setting" TO 'value'` → `setting`, also with `IN DATABASE`.
fn setting(text: &str) -> Option<&str> {
    text.split_once(" SET \"")?.1.split('"').next()
}

/// Whether a project may change this setting of a reserved role.
pub fn is_free(setting: &str) -> bool {
    FREE_SETTINGS.iter().any(|free| match free.strip_suffix('*') {
        Some(start) => setting.starts_with(start),
        None => setting == *free,
    })
}

/// The schema that a `GRANT` applies to, directly or through its object.
fn grants_on(text: &str) -> Option<&str> {
    let object = text.split_once(" ON ")?.1;
    object.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_columns_are_left_out() {
        let start = r#"ALTER TABLE ONLY "app"."t" ALTER COLUMN "id" SET ("#;
        for (options, kept) in [
            ("pg_attver=26981816", None),
            ("n_distinct=5, pg_attver=26981816", Some("n_distinct=5")),
            ("n_distinct=5", Some("n_distinct=5")),
        ] {
            let kept = kept.map(|kept| format!("{start}{kept})"));
            let statement = format!("{start}{options})");
            assert_eq!(without_column_versions(&statement).as_deref(), kept.as_deref(), "{options}");
            let dumped = schema(&format!("{statement};\n"), false, |_| false);
            assert_eq!(dumped, kept.map_or(String::new(), |kept| format!("{kept};\n\n")));
        }
        let other = "COMMENT ON TABLE \"app\".\"t\" IS 'see SET (pg_attver=1)'";
        assert_eq!(without_column_versions(other).as_deref(), Some(other));
    }

    const DUMP: &str = r#"--
-- PostgreSQL database dump
--

\restrict abc
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';

--
-- Name: app; Type: SCHEMA
--

CREATE SCHEMA "app";
ALTER SCHEMA "app" OWNER TO "postgres";
CREATE SCHEMA "functions";
ALTER SCHEMA "functions" OWNER TO "supabase_admin";
CREATE EXTENSION IF NOT EXISTS "pgmq" WITH SCHEMA "pgmq";
COMMENT ON EXTENSION "pgmq" IS 'queues; and more';
CREATE FUNCTION "app"."f"() RETURNS integer
    LANGUAGE "plpgsql"
    AS $$
begin
-- stays; it is the body's
  return 1;
end $$;
CREATE TABLE "app"."t" (
    "id" integer
);
CREATE EVENT TRIGGER "pgrst_ddl_watch" ON "ddl_command_end"
   EXECUTE FUNCTION "extensions"."pgrst_ddl_watch"();
ALTER EVENT TRIGGER "pgrst_ddl_watch" OWNER TO "supabase_admin";
CREATE PUBLICATION "supabase_realtime" WITH (publish = 'insert');
ALTER PUBLICATION "supabase_realtime" ADD TABLE ONLY "app"."t";
GRANT ALL ON FUNCTION "extensions"."armor"("bytea") TO "postgres";
GRANT ALL ON SCHEMA "extensions" TO "app_role";
GRANT USAGE ON SCHEMA "functions" TO "anon";
GRANT ALL ON TABLE "app"."t" TO "postgres" WITH GRANT OPTION;
GRANT ALL ON TABLE "app"."t" TO "extensions";
ALTER DEFAULT PRIVILEGES FOR ROLE "supabase_admin" IN SCHEMA "public" GRANT ALL ON TABLES TO "anon";
\unrestrict abc
"#;

    #[test]
    fn a_schema_dump_keeps_the_projects_objects() {
        let expected = r#"SET client_encoding = 'UTF8';

CREATE SCHEMA IF NOT EXISTS "app";

ALTER SCHEMA "app" OWNER TO "postgres";

CREATE SCHEMA IF NOT EXISTS "functions";

CREATE EXTENSION IF NOT EXISTS "pgmq";

CREATE OR REPLACE FUNCTION "app"."f"() RETURNS integer
    LANGUAGE "plpgsql"
    AS $$
begin
-- stays; it is the body's
  return 1;
end $$;

CREATE TABLE IF NOT EXISTS "app"."t" (
    "id" integer
);

ALTER PUBLICATION "supabase_realtime" ADD TABLE ONLY "app"."t";

GRANT ALL ON TABLE "app"."t" TO "extensions";

"#;
        assert_eq!(schema(DUMP, false, |schema| schema == "extensions"), expected);
        let commented = schema(DUMP, true, |schema| schema == "extensions");
        assert!(
            commented.contains("-- Name: app; Type: SCHEMA\n--\n\nCREATE SCHEMA IF NOT EXISTS \"app\";"),
            "{commented}"
        );
        assert!(commented.contains("-- COMMENT ON EXTENSION \"pgmq\" IS 'queues; and more'\n"), "{commented}");
        assert!(!commented.contains("restrict"), "{commented}");
    }

    #[test]
    fn a_roles_dump_omits_the_platforms_roles() {
        let dump = r#"SET default_transaction_read_only = off;
CREATE ROLE "anon";
ALTER ROLE "anon" WITH NOSUPERUSER INHERIT NOCREATEROLE;
ALTER ROLE "anon" SET "statement_timeout" TO '3s';
ALTER ROLE "authenticator" SET "pgrst.db_schemas" TO 'public, app';
ALTER ROLE "authenticator" SET "session_preload_libraries" TO 'safeupdate';
CREATE ROLE "reporter";
ALTER ROLE "reporter" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS;
CREATE ROLE "supabase_anything";
GRANT "anon" TO "reporter" WITH INHERIT TRUE GRANTED BY "supabase_admin";
GRANT "reporter" TO "postgres" WITH ADMIN OPTION, INHERIT FALSE, SET FALSE GRANTED BY "supabase_admin";
"#;
        let expected = r#"SET default_transaction_read_only = off;

ALTER ROLE "anon" SET "statement_timeout" TO '3s';

ALTER ROLE "authenticator" SET "pgrst.db_schemas" TO 'public, app';

CREATE ROLE "reporter";

ALTER ROLE "reporter" WITH INHERIT NOCREATEROLE NOCREATEDB LOGIN NOBYPASSRLS;

GRANT "anon" TO "reporter" WITH INHERIT TRUE;

RESET ALL;
"#;
        assert_eq!(roles(dump, false), expected);
    }
}
