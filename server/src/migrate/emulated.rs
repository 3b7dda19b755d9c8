//! Statements that PostgreSQL reserves for superusers but that Supabase's `postgres` may run. They are replaced by
//! calls of the platform's functions (`sql/platform/70_reload.sql`).

use std::sync::LazyLock;

use regex::Regex;

/// A name, quoted or not; a string without quotes inside.
const NAME: &str = r#"("(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)"#;

struct Patterns {
    create: Regex,
    drop: Regex,
    alter: Regex,
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
    })
});

/// The replacement for `statement`, if it is one of these.
pub fn emulated(statement: &str) -> Option<String> {
    // Hardly any statement is.
    if !statement.get(..40.min(statement.len())).unwrap_or(statement).to_ascii_lowercase().contains("event") {
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
}
