//! Statements of a project that PostgreSQL refuses and Supabase serves. What PostgreSQL keeps for superusers becomes calls of the
//! platform's functions (`sql/platform/70_reload.sql`, `72_foreign_wrappers.sql`), also inside of `do` blocks; versions and schemas of extensions are those that are here.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// An option of `create extension`.
const EXTENSION_OPTION: &str =
    r#"\b(?:(schema)\s*("(?:[^"]|"")+"|[A-Za-z_][\w$]*)|(version)\s*("(?:[^"]|"")+"|'[^']*'|[\w.]+)|(cascade))"#;

/// A name, quoted or not; a string without quotes inside.
const NAME: &str = r#"("(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)"#;

/// The name of a function, perhaps with its schema.
const FUNCTION: &str = r#"((?:(?:"(?:[^"]|"")+"|[A-Za-z_]\w*)\s*\.\s*)?(?:"(?:[^"]|"")+"|[A-Za-z_]\w*))"#;

struct Patterns {
    create: Regex,
    drop: Regex,
    alter: Regex,
    create_wrapper: Regex,
    drop_wrapper: Regex,
    own_wrapper: Regex,
    wrapper_option: Regex,
    /// The publication of realtime's own messages.
    messages: Regex,
    /// A block of PL/pgSQL in dollar quotes, and a statement in it that may be one of these.
    block: Regex,
    in_block: Regex,
    extension: Regex,
    extension_option: Regex,
    drop_extension: Regex,
    move_extension: Regex,
    publication_of_all: Regex,
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
        create_wrapper: regex(format!(
            r"create\s+foreign\s+data\s+wrapper\s+{NAME}(?:\s+(?:no\s+handler|handler\s+{FUNCTION}))?(?:\s+(?:no\s+validator|validator\s+{FUNCTION}))?(?:\s+options\s*\((.*)\))?"
        ))?,
        drop_wrapper: regex(format!(
            r"drop\s+foreign\s+data\s+wrapper\s+(if\s+exists\s+)?{NAME}(\s+cascade|\s+restrict)?"
        ))?,
        own_wrapper: regex(format!(r"alter\s+foreign\s+data\s+wrapper\s+{NAME}\s+owner\s+to\s+.*"))?,
        wrapper_option: Regex::new(&format!(r"(?s)^\s*{NAME}\s+'((?:[^']|'')*)'\s*(?:,|$)")).ok()?,
        messages: regex(r#"(?:create|alter)\s+publication\s+"?supabase_realtime_messages_publication"?(?:\s.*)?"#.to_owned())?,
        block: Regex::new(r"(?is)^do\s+(?:language\s+plpgsql\s+)?\$").ok()?,
        in_block: Regex::new(
            r"(?is)((?:\b(?:begin|then|else|loop)\b|;)(?:\s|--[^\n]*\n)+)((?:create|drop|alter)\s+(?:event\s+trigger|foreign\s+data\s+wrapper)\b[^;]*)",
        )
        .ok()?,
        extension: regex(format!(
            r"(create\s+extension\s+(?:if\s+not\s+exists\s+)?){NAME}((?:\s*\bwith\b)?)((?:\s*{EXTENSION_OPTION})*)\s*"
        ))?,
        extension_option: Regex::new(&format!("(?is){EXTENSION_OPTION}")).ok()?,
        move_extension: regex(format!(r"alter\s+extension\s+{NAME}\s+set\s+schema\s+{NAME}"))?,
        publication_of_all: regex(format!(
            r"create\s+publication\s+{NAME}\s+for\s+all\s+tables(?:\s+with\s*\(\s*publish\s*=\s*'([^']*)'\s*\))?"
        ))?,
        drop_extension: regex(format!(
            r"drop\s+extension\s+(if\s+exists\s+)?({NAME}(?:\s*,\s*{NAME})*)(\s+cascade|\s+restrict)?\s*"
        ))?,
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
    if head.starts_with("do") && PATTERNS.as_ref()?.block.is_match(statement) {
        return block(statement);
    }
    let has = |word: &str| head.contains(word);
    let found = if has("event") { event_trigger(statement) } else { None };
    let found = found.or_else(|| if has("wrapper") { wrapper(statement) } else { None });
    let found = found.or_else(|| if has("publication") { publication(statement) } else { None });
    let found = found.or_else(|| if has("extension") { moved_extension(statement) } else { None });
    found.or_else(|| grant(statement))
}

/// A dump grants on every function of the extensions in the project's schemas. In another version some of these may be gone.
fn grant(statement: &str) -> Option<String> {
    let function = statement.strip_prefix("GRANT ALL ON FUNCTION \"")?;
    let schema = literal(function.split('"').next()?);
    (!statement.contains("$ferrobase$")).then(|| {
        format!(
            "do $ferrobase$ begin\n{statement};\nexception when undefined_function then\n\
             if not exists (select from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace \
             where n.nspname = {schema}) then raise; end if;\nend $ferrobase$"
        )
    })
}

/// What `db pull` of 2025 writes. Where the migrations run first, realtime has not made its publication yet; here it is the platform's.
fn publication(statement: &str) -> Option<String> {
    let patterns = PATTERNS.as_ref()?;
    if let Some(found) = patterns.publication_of_all.captures(statement) {
        let publish = found.get(2).map_or_else(|| "null".to_owned(), |list| literal(list.as_str()));
        return Some(format!("select ferrobase.create_publication_of_all({}, {publish})", literal(&name(&found[1]))));
    }
    patterns.messages.is_match(statement).then(|| "select 1".to_owned())
}

/// The objects of an extension are the platform's, so its owner alone cannot move it.
fn moved_extension(statement: &str) -> Option<String> {
    let found = PATTERNS.as_ref()?.move_extension.captures(statement)?;
    Some(format!("select ferrobase.move_extension({}, {})", literal(&name(&found[1])), literal(&name(&found[2]))))
}

/// A `do` block whose statements have been replaced.
fn block(statement: &str) -> Option<String> {
    let replaced = PATTERNS.as_ref()?.in_block.replace_all(statement, |found: &Captures<'_>| {
        let inner = found[2].trim_end();
        let instead = event_trigger(inner).or_else(|| wrapper(inner));
        match instead.as_deref().and_then(|instead| instead.strip_prefix("select ")) {
            Some(call) => format!("{}perform {call}", &found[1]),
            None => found[0].to_owned(),
        }
    });
    (replaced != statement).then(|| replaced.into_owned())
}

fn wrapper(statement: &str) -> Option<String> {
    let patterns = PATTERNS.as_ref()?;
    if let Some(found) = patterns.create_wrapper.captures(statement) {
        let function = |index: usize, arguments: &str| {
            found
                .get(index)
                .map_or_else(|| "null".to_owned(), |name| literal(&format!("{}({arguments})", name.as_str())))
        };
        let mut options = Vec::new();
        let mut rest = found.get(4).map_or("", |options| options.as_str());
        while !rest.trim().is_empty() {
            let option = patterns.wrapper_option.captures(rest)?;
            // The value keeps its doubled quotes.
            options.push(format!("{}, '{}'", literal(&name(&option[1])), &option[2]));
            rest = rest.get(option[0].len()..)?;
        }
        return Some(format!(
            "select ferrobase.create_foreign_data_wrapper({}, {}, {}, array[{}]::text[])",
            literal(&name(&found[1])),
            function(2, ""),
            function(3, "text[], oid"),
            options.join(", "),
        ));
    }
    if let Some(found) = patterns.drop_wrapper.captures(statement) {
        let wrapper = literal(&name(&found[2]));
        let cascades = found.get(3).is_some_and(|option| option.as_str().trim().eq_ignore_ascii_case("cascade"));
        let only_if = if found.get(1).is_some() {
            format!(" where exists (select from pg_catalog.pg_foreign_data_wrapper where fdwname = {wrapper})")
        } else {
            String::new()
        };
        return Some(format!("select ferrobase.drop_foreign_data_wrapper({wrapper}, {cascades}){only_if}"));
    }
    // Its owner can only be a superuser.
    patterns.own_wrapper.is_match(statement).then(|| "select 1".to_owned())
}

fn event_trigger(statement: &str) -> Option<String> {
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

/// A `create extension`.
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
    /// `None` for other statements.
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
        Some(extension)
    }

    /// Whether it may exist already.
    pub fn only_if_absent(&self) -> bool {
        self.head.to_ascii_lowercase().contains("exists")
    }

    /// The name of the schema that it asks for.
    pub fn schema(&self) -> Option<String> {
        self.schema.as_deref().map(name)
    }

    /// The statement without its version, and in `schema` if given.
    pub fn statement(&self, schema: Option<&str>) -> String {
        let schema =
            schema.map(|schema| format!("\"{}\"", schema.replace('"', "\"\""))).or_else(|| self.schema.clone());
        self.with(schema.as_deref(), None)
    }

    /// What creates it where there is another version alone, or where it lies in a schema of its own.
    pub fn adjusted(&self, has_version: bool, has_own_schema: bool) -> Option<String> {
        if (has_version || self.version.is_none()) && (!has_own_schema || self.schema.is_none()) {
            return None;
        }
        let version = self.version.as_deref().filter(|_| has_version);
        Some(self.with(self.schema.as_deref().filter(|_| !has_own_schema), version))
    }

    /// `schema` as it is written.
    fn with(&self, schema: Option<&str>, version: Option<&str>) -> String {
        let mut statement = format!("{}{}", self.head, self.identifier);
        if let Some(schema) = schema {
            statement.push_str(&format!(" schema {schema}"));
        }
        if let Some(version) = version {
            statement.push_str(&format!(" version {}", literal(version)));
        }
        if self.cascades {
            statement.push_str(" cascade");
        }
        statement
    }
}

/// A `drop extension`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropExtension {
    pub names: Vec<String>,
    pub only_if_there: bool,
    pub cascades: bool,
}

impl DropExtension {
    pub fn of(statement: &str) -> Option<Self> {
        let head = statement.get(..4)?;
        let found =
            head.eq_ignore_ascii_case("drop").then(|| PATTERNS.as_ref()?.drop_extension.captures(statement))??;
        Some(Self {
            // No name of an extension has a comma in it.
            names: found[2].split(',').map(|part| name(part.trim())).collect(),
            only_if_there: found.get(1).is_some(),
            cascades: found.get(5).is_some_and(|word| word.as_str().trim().eq_ignore_ascii_case("cascade")),
        })
    }
}

/// The extension that `comment on extension` is about, as dumps write it.
pub fn commented_extension(statement: &str) -> Option<String> {
    let mut words = statement.split_whitespace();
    let head = [words.next()?, words.next()?, words.next()?];
    let is_comment =
        head.iter().zip(["comment", "on", "extension"]).all(|(word, wanted)| word.eq_ignore_ascii_case(wanted));
    is_comment.then(|| words.next().map(name)).flatten()
}

/// The name that an identifier stands for.
fn name(identifier: &str) -> String {
    match identifier.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => identifier.to_lowercase(),
    }
}

pub fn literal(text: &str) -> String {
    // `standard_conforming_strings` is always on, so a backslash needs no escape.
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_supabases_postgres_may_do_becomes_calls_of_the_platform() {
        for (statement, call) in [
            (
                "create publication supabase_realtime for all tables",
                "select ferrobase.create_publication_of_all('supabase_realtime', null)",
            ),
            (
                "CREATE PUBLICATION \"powersync\"\n  FOR ALL TABLES WITH (publish = 'insert, update')",
                "select ferrobase.create_publication_of_all('powersync', 'insert, update')",
            ),
            (
                "alter extension \"pg_trgm\" set schema extensions",
                "select ferrobase.move_extension('pg_trgm', 'extensions')",
            ),
        ] {
            assert_eq!(emulated(statement).as_deref(), Some(call), "{statement}");
        }
        for statement in
            ["create publication p for table t", "alter extension x update", "alter extension x add function f()"]
        {
            assert_eq!(emulated(statement), None, "{statement}");
        }
    }

    #[test]
    fn drops_of_extensions_are_read() {
        let read = |text| DropExtension::of(text).map(|drop| (drop.names.join(" "), drop.only_if_there, drop.cascades));
        for (text, names, only_if_there, cascades) in [
            ("drop extension pgjwt", "pgjwt", false, false),
            ("DROP EXTENSION IF EXISTS \"uuid-ossp\" , Pg_Cron\n CASCADE ", "uuid-ossp pg_cron", true, true),
            ("drop extension a,b restrict", "a b", false, false),
        ] {
            assert_eq!(read(text), Some((names.to_owned(), only_if_there, cascades)), "{text}");
        }
        for text in ["drop extensions a", "drop table extension", "create extension a", "", "dro\u{f6}p"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

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
        for other in [
            "create table event_trigger ()",
            "do $$ begin perform 'create event trigger x'; end $$",
            "comment on event trigger x is 'y'",
            "select 1",
        ] {
            assert_eq!(emulated(other), None, "{other}");
        }
    }

    #[test]
    fn foreign_data_wrappers_become_calls_of_the_platform() {
        for (statement, expected) in [
            (
                "create foreign data wrapper stripe_wrapper\n  handler stripe_fdw_handler\n  validator extensions.stripe_fdw_validator",
                "select ferrobase.create_foreign_data_wrapper('stripe_wrapper', 'stripe_fdw_handler()', 'extensions.stripe_fdw_validator(text[], oid)', array[]::text[])",
            ),
            (
                "CREATE FOREIGN DATA WRAPPER \"It's\" HANDLER \"extensions\".\"s3_fdw_handler\" NO VALIDATOR OPTIONS (a 'x, ''y''', \"B\" '2')",
                "select ferrobase.create_foreign_data_wrapper('It''s', '\"extensions\".\"s3_fdw_handler\"()', null, array['a', 'x, ''y''', 'B', '2']::text[])",
            ),
            (
                "drop foreign data wrapper if exists a cascade",
                "select ferrobase.drop_foreign_data_wrapper('a', true) where exists (select from pg_catalog.pg_foreign_data_wrapper where fdwname = 'a')",
            ),
            ("drop foreign data wrapper a", "select ferrobase.drop_foreign_data_wrapper('a', false)"),
            ("alter foreign data wrapper a owner to postgres", "select 1"),
        ] {
            assert_eq!(emulated(statement).as_deref(), Some(expected), "{statement}");
        }
        for other in ["create table wrapper ()", "create foreign data wrapper a options (b 'c'); drop table x"] {
            assert_eq!(emulated(other), None, "{other}");
        }
    }

    #[test]
    fn the_publication_of_realtimes_messages_stays_as_it_is() {
        for statement in [
            "CREATE PUBLICATION \"supabase_realtime_messages_publication\" WITH (publish = 'insert')",
            "ALTER PUBLICATION supabase_realtime_messages_publication OWNER TO \"postgres\"",
        ] {
            assert_eq!(emulated(statement).as_deref(), Some("select 1"), "{statement}");
        }
        for other in ["create publication supabase_realtime", "drop publication supabase_realtime_messages_publication"]
        {
            assert_eq!(emulated(other), None, "{other}");
        }
    }

    #[test]
    fn grants_of_a_dump_on_functions_of_extensions_are_tried() {
        let granted = "GRANT ALL ON FUNCTION \"public\".\"gone\"(\"a\" \"text\") TO \"anon\"";
        let instead = emulated(granted).expect("a block");
        assert!(instead.contains(granted) && instead.contains("n.nspname = 'public'"), "{instead}");
        assert_eq!(emulated("grant all on function f() to anon"), None);
    }

    #[test]
    fn do_blocks_call_the_platform_instead_of_the_statement() {
        let block = "DO $do$\nBEGIN\n  IF NOT EXISTS (SELECT 1) THEN -- first\n    CREATE EVENT TRIGGER t ON sql_drop EXECUTE FUNCTION f();\n    drop event trigger u;\n  END IF;\nEND $do$";
        let expected = "DO $do$\nBEGIN\n  IF NOT EXISTS (SELECT 1) THEN -- first\n    perform ferrobase.create_event_trigger('t', 'sql_drop', null, 'f()');\n    perform ferrobase.change_event_trigger('u', 'drop');\n  END IF;\nEND $do$";
        assert_eq!(emulated(block).as_deref(), Some(expected));
    }

    #[test]
    fn extensions_are_created_as_provided_here() {
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
            ("create extension pg_trgm", false, true, None),
        ] {
            let found = CreateExtension::of(statement).expect("an extension");
            assert_eq!(found.adjusted(has_version, has_own_schema).as_deref(), expected, "{statement}");
        }
        for other in
            ["create extensions pg_trgm", "alter extension x set schema y", "drop extension if exists x", "select 1"]
        {
            assert_eq!(CreateExtension::of(other), None, "{other}");
        }
    }

    #[test]
    fn comments_on_extensions_are_found() {
        let found = commented_extension("COMMENT ON EXTENSION \"pgjwt\" IS 'JSON Web Token'");
        assert_eq!(found.as_deref(), Some("pgjwt"));
        assert_eq!(commented_extension("comment on table extension is 'x'"), None);
    }

    #[test]
    fn sequences_of_the_platform_may_be_absent() {
        let statement = "SELECT pg_catalog.setval('\"pgsodium\".\"key_key_id_seq\"', 1, false)";
        let expected = "select pg_catalog.setval(pg_catalog.to_regclass('\"pgsodium\".\"key_key_id_seq\"'), 1, false)";
        assert_eq!(emulated(statement).as_deref(), Some(expected));
        assert_eq!(emulated("select setval('public.tasks_id_seq', 3)"), None);
    }
}
