//! Statements of a project that PostgreSQL refuses and Supabase serves. What PostgreSQL keeps for superusers becomes calls of the
//! platform's functions (`sql/platform/70_reload.sql`); versions and schemas of extensions are those that are here.

use std::sync::LazyLock;

use regex::Regex;

/// An option of `create extension`.
const EXTENSION_OPTION: &str =
    r#"\b(?:(schema)\s*("(?:[^"]|"")+"|[A-Za-z_][\w$]*)|(version)\s*("(?:[^"]|"")+"|'[^']*'|[\w.]+)|(cascade))"#;

/// A name, quoted or not; a string without quotes inside.
const NAME: &str = r#"("(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)"#;

struct Patterns {
    create: Regex,
    drop: Regex,
    alter: Regex,
    extension: Regex,
    extension_option: Regex,
    sequence: Regex,
}

/// `None` if a pattern does not compile, which a test rules out.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let regex = |text: String| Regex::new(&format!("(?is)^{text}$")).ok();
    Some(Patterns {
        create: regex(format!(
            r#"create\s+event\s+trigger\s+{NAME}\s+on\s+"?(\w+)"?\s*(?:when\s+tag\s+in\s*\(([^)]*)\)\s*)?execute\s+(?:function|procedure)\s+([\w."$]+)\s*\(\s*\)"#
        ))?,
        drop: regex(format!(r"drop\s+event\s+trigger\s+(if\s+exists\s+)?{NAME}(?:\s+cascade|\s+restrict)?"))?,
        alter: regex(format!(
            r"alter\s+event\s+trigger\s+{NAME}\s+(disable|enable(?:\s+replica|\s+always)?|rename\s+to\s+{NAME}|owner\s+to\s+.*)"
        ))?,
        extension: regex(format!(
            r"(create\s+extension\s+(?:if\s+not\s+exists\s+)?){NAME}((?:\s*\bwith\b)?)((?:\s*{EXTENSION_OPTION})+)\s*"
        ))?,
        extension_option: Regex::new(&format!("(?is){EXTENSION_OPTION}")).ok()?,
        sequence: regex(
            r#"select\s+(?:pg_catalog\.)?setval\s*\(\s*('"?(?:pgsodium|supabase_functions|cron|net|pgmq|graphql|vault)"?\.[^']+')\s*,(.*)\)"#
                .to_owned(),
        )?,
    })
});

/// The replacement for `statement`, if it is one of these.
pub fn emulated(statement: &str) -> Option<String> {
    // Nearly no statement is.
    let head = statement.get(..statement.floor_char_boundary(40)).unwrap_or(statement).to_ascii_lowercase();
    if head.contains("setval") {
        return sequence_of_the_platform(statement);
    }
    if !head.contains("event") {
        return None;
    }
    let patterns = PATTERNS.as_ref()?;
    if let Some(found) = patterns.create.captures(statement) {
        let tags = found.get(3).map_or_else(|| "null".to_owned(), |tags| format!("array[{}]::text[]", tags.as_str()));
        return Some(format!(
            "select ferrobase.create_event_trigger({}, {}, {tags}, {})",
            literal(&name(&found[1])),
            literal(&found[2].to_lowercase()),
            literal(&format!("{}()", &found[4])),
        ));
    }
    if let Some(found) = patterns.drop.captures(statement) {
        let trigger = literal(&name(&found[2]));
        let only_if = if found.get(1).is_some() {
            format!(" where exists (select from pg_catalog.pg_event_trigger where evtname = {trigger})")
        } else {
            String::new()
        };
        return Some(format!("select ferrobase.change_event_trigger({trigger}, 'drop'){only_if}"));
    }
    let found = patterns.alter.captures(statement)?;
    let trigger = literal(&name(&found[1]));
    let change = found[2].split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    if change.starts_with("owner") {
        // Its function determines whose rights it runs with.
        return Some("select 1".to_owned());
    }
    Some(match found.get(3) {
        Some(new) => {
            format!("select ferrobase.change_event_trigger({trigger}, 'rename', {})", literal(&name(new.as_str())))
        }
        None => format!("select ferrobase.change_event_trigger({trigger}, {})", literal(&change)),
    })
}

/// A dump of a project's rows ends with the state of all sequences, also of the extensions that the project had where it was made:
/// of one that is not here nothing is to be set.
fn sequence_of_the_platform(statement: &str) -> Option<String> {
    let found = PATTERNS.as_ref()?.sequence.captures(statement)?;
    Some(format!("select pg_catalog.setval(pg_catalog.to_regclass({}),{})", &found[1], &found[2]))
}

/// A `create extension` that says in which schema or in which version.
#[derive(Debug, PartialEq, Eq)]
pub struct CreateExtension {
    pub name: String,
    pub version: Option<String>,
    head: String,
    identifier: String,
    schema: Option<String>,
    cascades: bool,
}

impl CreateExtension {
    /// `None` for other statements, and for one that says neither.
    pub fn of(statement: &str) -> Option<Self> {
        let head = statement.get(..statement.floor_char_boundary(24)).unwrap_or(statement).to_ascii_lowercase();
        if !head.contains("extension") {
            return None;
        }
        let patterns = PATTERNS.as_ref()?;
        let found = patterns.extension.captures(statement)?;
        let mut extension = Self {
            name: name(&found[2]),
            version: None,
            head: found[1].to_owned(),
            identifier: found[2].to_owned(),
            schema: None,
            cascades: false,
        };
        for option in patterns.extension_option.captures_iter(&found[4]) {
            if let Some(schema) = option.get(2) {
                extension.schema = Some(schema.as_str().to_owned());
            } else if let Some(version) = option.get(4) {
                let version = version.as_str();
                let text = version.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                extension.version = Some(text.map_or_else(|| name(version), str::to_owned));
            } else {
                extension.cascades = true;
            }
        }
        (extension.version.is_some() || extension.schema.is_some()).then_some(extension)
    }

    /// What creates it where there is another version alone, or where it lies in a schema of its own.
    pub fn adjusted(&self, has_version: bool, has_own_schema: bool) -> Option<String> {
        if (has_version || self.version.is_none()) && (!has_own_schema || self.schema.is_none()) {
            return None;
        }
        let mut statement = format!("{}{}", self.head, self.identifier);
        if let Some(schema) = self.schema.as_ref().filter(|_| !has_own_schema) {
            statement.push_str(&format!(" schema {schema}"));
        }
        if let Some(version) = self.version.as_ref().filter(|_| has_version) {
            statement.push_str(&format!(" version {}", literal(version)));
        }
        if self.cascades {
            statement.push_str(" cascade");
        }
        Some(statement)
    }
}

/// The name that an identifier stands for.
fn name(identifier: &str) -> String {
    match identifier.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => identifier.to_lowercase(),
    }
}

fn literal(text: &str) -> String {
    // `standard_conforming_strings` is always on, so a backslash needs no escape.
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_triggers_become_calls_of_the_platform() {
        for (statement, expected) in [
            (
                "CREATE EVENT TRIGGER \"ensure_rls\" ON ddl_command_end\n WHEN TAG IN ('CREATE TABLE', 'SELECT INTO') EXECUTE FUNCTION public.f()",
                "select ferrobase.create_event_trigger('ensure_rls', 'ddl_command_end', array['CREATE TABLE', 'SELECT INTO']::text[], 'public.f()')",
            ),
            (
                "create event trigger Watch on sql_drop execute procedure f ( )",
                "select ferrobase.create_event_trigger('watch', 'sql_drop', null, 'f()')",
            ),
            (
                "drop event trigger if exists it cascade",
                "select ferrobase.change_event_trigger('it', 'drop') where exists (select from pg_catalog.pg_event_trigger where evtname = 'it')",
            ),
            ("alter event trigger it enable  always", "select ferrobase.change_event_trigger('it', 'enable always')"),
            (
                "alter event trigger \"It's\" rename to \"b\"",
                "select ferrobase.change_event_trigger('It''s', 'rename', 'b')",
            ),
            ("alter event trigger it owner to postgres", "select 1"),
        ] {
            assert_eq!(emulated(statement).as_deref(), Some(expected), "{statement}");
        }
        for other in ["create table event_trigger ()", "comment on event trigger x is 'y'", "select 1"] {
            assert_eq!(emulated(other), None, "{other}");
        }
    }

    #[test]
    fn extensions_are_created_as_they_are_here() {
        for (statement, has_version, has_own_schema, expected) in [
            (
                "create extension if not exists \"vector\" with schema \"public\" version '0.8.0'",
                false,
                false,
                Some("create extension if not exists \"vector\" schema \"public\""),
            ),
            (
                "CREATE EXTENSION pgmq WITH VERSION \"1.4\" SCHEMA extensions CASCADE",
                true,
                true,
                Some("CREATE EXTENSION pgmq version '1.4' cascade"),
            ),
            ("create extension if not exists pg_trgm with schema extensions", true, false, None),
            ("create extension x version 1.0", true, false, None),
        ] {
            let found = CreateExtension::of(statement).expect("an extension");
            assert_eq!(found.adjusted(has_version, has_own_schema).as_deref(), expected, "{statement}");
        }
        for other in
            ["create extension pg_trgm", "alter extension x set schema y", "drop extension if exists x", "select 1"]
        {
            assert_eq!(CreateExtension::of(other), None, "{other}");
        }
    }

    #[test]
    fn sequences_of_the_platform_may_be_absent() {
        let statement = "SELECT pg_catalog.setval('\"pgsodium\".\"key_key_id_seq\"', 1, false)";
        let expected = "select pg_catalog.setval(pg_catalog.to_regclass('\"pgsodium\".\"key_key_id_seq\"'), 1, false)";
        assert_eq!(emulated(statement).as_deref(), Some(expected));
        assert_eq!(emulated("select setval('public.tasks_id_seq', 3)"), None);
    }
}
