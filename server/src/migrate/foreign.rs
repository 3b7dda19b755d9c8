//! `create extension` on a server whose files are not ours (`DATABASE_URL`) and that lacks the extension. What is installed there is
//! used. Otherwise our SQL makes the extension: through pg_tle if the server has it, else as plain objects, which PostgreSQL does not
//! list as an extension and `_supavisor.extensions` records. `drop extension` drops these. Compiled extensions are refused.

use tokio_postgres::{Client, Error};

use super::emulated::{CreateExtension, DropExtension, literal};
use crate::extensions::Extension;

/// Ours that need a file in the cluster's folder, or write files there.
const OF_OUR_CLUSTER: [&str; 3] = ["supabase_vault", "pgsodium", "pg_tle"];

/// Makes the script of `http` leave out what only the embedded PostgreSQL can do.
const FOREIGN: &str = "select pg_catalog.set_config('ferrobase.is_foreign', 'on', true);\n";

/// Lists the objects of a database.
const OBJECTS: &str = include_str!("foreign_objects.sql");

/// The objects before a script runs.
const BEFORE: &str = "pg_temp.ferrobase_before";

/// Types of objects, as `pg_identify_object` has them, that are dropped by themselves. Others go with these.
const DROPPED: &str =
    "'table', 'view', 'materialized view', 'sequence', 'foreign table', 'function', 'procedure', 'aggregate', 'type',
    'operator', 'cast', 'schema', 'foreign-data wrapper', 'event trigger'";

/// What runs in place of `create extension` on a server that has no such extension; `None` leaves the answer to PostgreSQL.
pub async fn instead_of(client: &Client, wanted: &CreateExtension) -> Result<Option<String>, Error> {
    // The embedded PostgreSQL has ours as files.
    let state = "select exists (select from pg_catalog.pg_available_extensions where comment like '%Ferrobase%'),
                        pg_catalog.to_regclass('_supavisor.extensions') is not null,
                        exists (select from pg_catalog.pg_extension where extname = 'pg_tle'),
                        coalesce(pg_catalog.current_schema(), 'public'), pg_catalog.current_setting('search_path')";
    let row = client.query_one(state, &[]).await?;
    let (is_embedded, has_record, has_tle): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if is_embedded || !has_record {
        return Ok(None);
    }
    let ours = Extension::find(&wanted.name).filter(|found| !OF_OUR_CLUSTER.contains(&found.name.as_str()));
    let Some(ours) = ours else { return Ok(Some(refusal(&wanted.name))) };
    if has_tle {
        return Ok(Some(through_pg_tle(&ours, wanted)));
    }
    if is_recorded(client, &ours.name).await? {
        let is_there = format!("extension \"{}\" already exists", ours.name);
        return Ok(Some(if wanted.only_if_absent() { "select 1".to_owned() } else { raise(&is_there, "42710") }));
    }
    let schema = wanted.schema().unwrap_or_else(|| row.get(3));
    let path: String = row.get(4);
    let mut text = FOREIGN.to_owned();
    let mut schemas = Vec::new();
    for required in &ours.requires {
        let found = "select n.nspname::text from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
                     where e.extname = $1
                     union all select schema from _supavisor.extensions where name = $1";
        match client.query_opt(found, &[required]).await? {
            Some(row) => schemas.push((required, row.get(0))),
            None => {
                schemas.push((required, schema.clone()));
                match Extension::find(required) {
                    Some(required) => text.push_str(&objects(&required, &schema, &[])),
                    None => {
                        text.push_str(&format!("create extension {} schema {};\n", quoted(required), quoted(&schema)))
                    }
                }
            }
        }
    }
    text.push_str(&objects(&ours, &schema, &schemas));
    text.push_str(&format!("select pg_catalog.set_config('search_path', {}, true)", literal(&path)));
    tracing::info!(
        extension = ours.name,
        "the server has no such extension: its objects are created without it, and PostgreSQL will not list it"
    );
    Ok(Some(text))
}

/// Whether the extension's objects were created without it.
pub async fn is_recorded(client: &Client, name: &str) -> Result<bool, Error> {
    let recorded = "select exists (select from _supavisor.extensions where name = $1)";
    Ok(client.query_one(recorded, &[&name]).await?.get(0))
}

/// What runs in place of `drop extension`; `None` if PostgreSQL knows all that it names.
pub async fn dropped(client: &Client, wanted: &DropExtension) -> Result<Option<String>, Error> {
    let recorded = "select array(select name from _supavisor.extensions where name = any ($1))";
    let recorded: Vec<String> = client.query_one(recorded, &[&wanted.names]).await?.get(0);
    if recorded.is_empty() {
        return Ok(None);
    }
    let mut text: String = recorded.iter().map(|name| removal(name, wanted.cascades)).collect();
    let others: Vec<String> =
        wanted.names.iter().filter(|name| !recorded.contains(name)).map(|name| quoted(name)).collect();
    if !others.is_empty() {
        let (may_lack, cascades) =
            (if wanted.only_if_there { "if exists " } else { "" }, if wanted.cascades { " cascade" } else { "" });
        text.push_str(&format!("drop extension {may_lack}{}{cascades}", others.join(", ")));
    }
    Ok(Some(text))
}

/// Drops the recorded objects of an extension. Without `cascade` it fails if anything else would go with them.
fn removal(name: &str, cascades: bool) -> String {
    format!(
        r#"do $ferrobase$
declare
  made text[];
  statement text;
  others text;
begin
  select objects into made from _supavisor.extensions where name = {name};
  if made is null then
    raise exception 'the objects of extension % were created by an earlier version, which did not record them: drop them one by one', {quoted}
      using errcode = '0A000';
  end if;
  create temporary table ferrobase_before on commit drop as
    select objects.*, o.type || ' ' || o.identity as told
    from ({OBJECTS}) as objects, pg_catalog.pg_identify_object(classid, objid, objsubid) as o;
  for statement in
    select pg_catalog.format('drop %s if exists %s cascade', replace(o.type, '-', ' '), o.identity)
    from unnest(made) with ordinality as list (told, place)
    join {BEFORE} b using (told), pg_catalog.pg_identify_object(b.classid, b.objid, b.objsubid) as o
    where o.type in ({DROPPED})
    order by list.place
  loop
    execute statement;
  end loop;
  select pg_catalog.string_agg(b.told, ', ') into others from {BEFORE} b
  where b.told <> all (made)
    and not exists (select from ({OBJECTS}) as now where (now.classid, now.objid, now.objsubid) = (b.classid, b.objid, b.objsubid));
  drop table {BEFORE};
  if others is not null and not {cascades} then
    raise exception 'cannot drop extension % because other objects depend on it: %', {quoted}, others
      using errcode = '2BP01', hint = 'Use DROP ... CASCADE to drop the dependent objects too.';
  end if;
  delete from _supavisor.extensions where name = {name};
end $ferrobase$;
"#,
        name = literal(name),
        quoted = literal(&quoted(name)),
    )
}

/// Statements that create the objects and record them, leaving the search path changed.
fn objects(extension: &Extension, schema: &str, required: &[(&String, String)]) -> String {
    let mut text = format!("create temporary table ferrobase_before on commit drop as {OBJECTS};\n");
    let schema = extension.schema.as_deref().unwrap_or(schema);
    if extension.schema.is_some() {
        text.push_str(&format!("create schema if not exists {};\n", quoted(schema)));
    }
    // An error of PostgreSQL's if there is none.
    text.push_str(&format!("select {}::pg_catalog.regnamespace;\n", literal(&quoted(schema))));
    text.push_str(&format!(
        "select pg_catalog.set_config('search_path', {}, true);\n",
        literal(&format!("{}, pg_catalog, pg_temp", quoted(schema)))
    ));
    // Only an extension has rows that dumps leave out.
    let script: String =
        extension.script.split_inclusive('\n').filter(|line| !line.contains("pg_extension_config_dump(")).collect();
    let mut script = script.replace("@extschema@", &quoted(schema));
    for (name, schema) in required {
        script = script.replace(&format!("@extschema:{name}@"), &quoted(schema));
    }
    text.push_str(&script);
    text.push_str(&format!(
        ";\ninsert into _supavisor.extensions (name, version, schema, objects)
         select {}, {}, {}, array(
           select o.type || ' ' || o.identity
           from ({OBJECTS}) as now, pg_catalog.pg_identify_object(classid, objid, objsubid) as o
           where not exists (select from {BEFORE} b
                             where (b.classid, b.objid, b.objsubid) = (now.classid, now.objid, now.objsubid))
           order by objid desc);\ndrop table {BEFORE};\n",
        literal(&extension.name),
        literal(&extension.version),
        literal(schema)
    ));
    text
}

/// Through pg_tle the extension is a real one, made by `create extension` from now on, whoever runs it.
fn through_pg_tle(ours: &Extension, wanted: &CreateExtension) -> String {
    let requires: Vec<String> = ours.requires.iter().map(|name| literal(name)).collect();
    let mut text = format!(
        "{FOREIGN}select pgtle.install_extension({name}, {version}, {comment}, {script}, array[{requires}]::text[])
         where not exists (select from pgtle.available_extensions() where name = {name});\n",
        name = literal(&ours.name),
        version = literal(&ours.version),
        comment = literal(&ours.comment),
        script = literal(&ours.script),
        requires = requires.join(", "),
    );
    let mut create = wanted.statement(None);
    if let Some(schema) = &ours.schema {
        text.push_str(&format!("create schema if not exists {};\n", quoted(schema)));
        create = wanted.statement(Some(schema));
    }
    text + &create
}

fn refusal(name: &str) -> String {
    raise(
        &format!(
            "extension \"{name}\" cannot be had on this server: it is compiled, or keeps a key in the cluster, so whoever runs the \
             server has to install it"
        ),
        "0A000",
    )
}

fn raise(message: &str, code: &str) -> String {
    let message = message.replace('%', "%%");
    format!(
        "do {} language plpgsql",
        literal(&format!("begin raise exception {} using errcode = '{code}'; end", literal(&message)))
    )
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_become_statements_of_a_schema() {
        let pgjwt = Extension::find("pgjwt").expect("one of ours");
        let required = "pgcrypto".to_owned();
        let text = objects(&pgjwt, "my \"schema", &[(&required, "extensions".to_owned())]);
        assert!(text.contains("set search_path = \"my \"\"schema\", \"extensions\", pg_catalog"), "{text}");
        assert!(!text.contains("@extschema"), "{text}");
        assert!(text.contains("select 'pgjwt', '0.2.0', 'my \"schema', array("), "{text}");
        let pgmq = objects(&Extension::find("pgmq").expect("one of ours"), "public", &[]);
        assert!(pgmq.contains("create schema if not exists \"pgmq\";") && !pgmq.contains("config_dump"), "{pgmq}");
    }

    #[test]
    fn pg_tle_gets_the_script_and_creates_the_extension() {
        let pgmq = Extension::find("pgmq").expect("one of ours");
        let wanted =
            CreateExtension::of("create extension if not exists pgmq with schema public version '1'").expect("one");
        let text = through_pg_tle(&pgmq, &wanted);
        assert!(text.contains("pgtle.install_extension('pgmq', '1.5.1', "), "{text}");
        assert!(
            text.ends_with(
                "create schema if not exists \"pgmq\";\ncreate extension if not exists pgmq schema \"pgmq\""
            ),
            "{text}"
        );
    }
}
