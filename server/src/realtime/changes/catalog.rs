//! Tables and types from the catalog, and what roles may read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::json::{Kind, Types, built_in};
use crate::db::{DbError, ExclusivePool, Param, Part, Refusal, Row, Step};
use crate::jwt::caller::Caller;
use crate::realtime::policies::{array, text};

/// A table.
#[derive(Debug)]
pub struct Table {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub columns: Vec<TableColumn>,
    /// Whether row level security was on when it was loaded.
    pub had_rls: bool,
    pub types: Types,
    /// Types that are enumerations.
    pub enums: HashSet<u32>,
    /// Returns which of the rows with these keys (an array per column of the primary key) are visible, as numbers from
    /// 1.
    pub visible_sql: Option<Arc<str>>,
}

#[derive(Debug)]
pub struct TableColumn {
    pub name: String,
    pub kind: u32,
    /// `pg_type.typname`.
    pub type_name: String,
    /// Quoted for SQL.
    pub sql_type: String,
    pub is_deterministic: bool,
    /// Part of the primary key.
    pub is_key: bool,
}

impl Table {
    pub fn keys(&self) -> impl Iterator<Item = &TableColumn> {
        self.columns.iter().filter(|column| column.is_key)
    }

    pub fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Runs a single statement.
pub async fn ask(db: &ExclusivePool, sql: &str, params: Vec<Param>) -> Result<Vec<Row>, DbError> {
    let step = Step { text: sql.into(), params, role: "".into() };
    match db.run_each("", &[vec![step]]).await?.pop() {
        Some(Ok(mut rows)) => Ok(rows.pop().unwrap_or_default()),
        Some(Err(refusal)) => Err(DbError::Refused(refusal)),
        None => Ok(Vec::new()),
    }
}

/// Runs several statements in one round trip. Each is answered or refused on its own.
pub async fn ask_each(db: &ExclusivePool, steps: Vec<Step>) -> Result<Vec<Result<Vec<Row>, Box<Refusal>>>, DbError> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let parts: Vec<Part> = steps.into_iter().map(|step| vec![step]).collect();
    let answers = db.run_each("", &parts).await?;
    Ok(answers.into_iter().map(|answer| answer.map(|mut rows| rows.pop().unwrap_or_default())).collect())
}

/// The step that makes the following ones run as the caller.
pub fn act_as(caller: &Caller, search_path: &str) -> Step {
    let subject = caller.subject().unwrap_or_default();
    Step {
        text: "select set_config('statement_timeout', '5s', true), set_config('search_path', $1, true), \
               set_config('request.jwt.claims', $2, true), set_config('request.jwt.claim.sub', $3, true), \
               set_config('request.jwt.claim.role', $4, true), set_config('role', $5, true)"
            .into(),
        params: vec![text(search_path), text(&caller.claims), text(&subject), text(&caller.role), text(&caller.role)],
        role: "".into(),
    }
}

fn oids(oids: impl IntoIterator<Item = u32>) -> Param {
    let list: Vec<String> = oids.into_iter().map(|oid| oid.to_string()).collect();
    text(&format!("{{{}}}", list.join(",")))
}

fn oid(row: &Row, column: usize) -> Result<u32, DbError> {
    let number = row.int8(column)?.unwrap_or_default();
    u32::try_from(number).map_err(|_| DbError::Broken(format!("{number} is no oid")))
}

fn flag(row: &Row, column: usize) -> bool {
    row.slice(column) == Some(&[1])
}

fn word(row: &Row, column: usize) -> Result<String, DbError> {
    Ok(row.text(column)?.unwrap_or_default())
}

/// A table of the publication.
#[derive(Clone, Debug)]
pub struct Published {
    pub oid: u32,
    /// Its published columns; `None` before PostgreSQL 15, which has no column lists.
    columns: Option<Vec<String>>,
}

impl Published {
    pub fn has(&self, column: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.iter().any(|name| name == column))
    }
}

/// The tables of the publication that a subscription names. `*` stands for all.
pub async fn published(db: &ExclusivePool, schema: &str, table: &str) -> Result<Vec<Published>, DbError> {
    const SQL: &str = "select c.oid::int8,
            case when pg_catalog.to_jsonb(p) ? 'attnames' then
                array(select pg_catalog.jsonb_array_elements_text(pg_catalog.to_jsonb(p) -> 'attnames'))
            end
        from pg_catalog.pg_publication_tables p
        join pg_catalog.pg_namespace n on n.nspname = p.schemaname
        join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
        where p.pubname = 'supabase_realtime' and ($1 = '*' or p.schemaname = $1) and ($2 = '*' or p.tablename = $2)";
    let rows = ask(db, SQL, vec![text(schema), text(table)]).await?;
    rows.iter().map(|row| Ok(Published { oid: oid(row, 0)?, columns: row.texts(1)? })).collect()
}

/// All tables of the publication: (schema, table).
pub async fn all_published(db: &ExclusivePool) -> Result<HashSet<(String, String)>, DbError> {
    const SQL: &str = "select p.schemaname::text, p.tablename::text
        from pg_catalog.pg_publication_tables p where p.pubname = 'supabase_realtime'";
    ask(db, SQL, Vec::new()).await?.iter().map(|row| Ok((word(row, 0)?, word(row, 1)?))).collect()
}

/// Loads tables with all types of their columns. Missing tables are left out.
pub async fn tables(db: &ExclusivePool, wanted: &[u32]) -> Result<Vec<Table>, DbError> {
    const SQL: &str = "select c.oid::int8, n.nspname::text, c.relname::text, c.relrowsecurity,
            a.attname::text, a.atttypid::int8, t.typname::text,
            pg_catalog.format('%I.%I', tn.nspname, t.typname),
            coalesce(co.collisdeterministic, true), coalesce(a.attnum = any (k.conkey), false)
        from pg_catalog.pg_class c
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        join pg_catalog.pg_type t on t.oid = a.atttypid
        join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
        left join pg_catalog.pg_collation co on co.oid = a.attcollation
        left join pg_catalog.pg_constraint k on k.conrelid = c.oid and k.contype = 'p'
        where c.oid = any ($1::oid[])
        order by c.oid, a.attnum";
    let rows = ask(db, SQL, vec![oids(wanted.iter().copied())]).await?;
    let mut found: Vec<Table> = Vec::new();
    for row in &rows {
        let oid = oid(row, 0)?;
        if found.last().is_none_or(|table| table.oid != oid) {
            found.push(Table {
                oid,
                schema: word(row, 1)?,
                name: word(row, 2)?,
                columns: Vec::new(),
                had_rls: flag(row, 3),
                types: Types::new(),
                enums: HashSet::new(),
                visible_sql: None,
            });
        }
        if let Some(table) = found.last_mut() {
            table.columns.push(TableColumn {
                name: word(row, 4)?,
                kind: self::oid(row, 5)?,
                type_name: word(row, 6)?,
                sql_type: word(row, 7)?,
                is_deterministic: flag(row, 8),
                is_key: flag(row, 9),
            });
        }
    }
    let kinds = found.iter().flat_map(|table| table.columns.iter().map(|column| column.kind)).collect();
    let (types, enums) = types(db, kinds).await?;
    for table in &mut found {
        table.types = types.clone();
        table.enums = enums.clone();
        table.visible_sql = visible_sql(table);
    }
    Ok(found)
}

/// Loads these types, and the types that they consist of.
async fn types(db: &ExclusivePool, mut wanted: HashSet<u32>) -> Result<(Types, HashSet<u32>), DbError> {
    // A composite's attributes come as two arrays; `typelem` counts only for true arrays.
    const SQL: &str = "select t.oid::int8, t.typtype::text, t.typbasetype::int8,
            case when t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc then t.typelem::int8 else 0 end,
            coalesce(e.typdelim::text, ','),
            array(select a.attname::text from pg_catalog.pg_attribute a
                  where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped order by a.attnum),
            array(select a.atttypid::text from pg_catalog.pg_attribute a
                  where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped order by a.attnum)
        from pg_catalog.pg_type t left join pg_catalog.pg_type e on e.oid = t.typelem
        where t.oid = any ($1::oid[])";
    let (mut types, mut enums) = (Types::new(), HashSet::new());
    let is_known = |types: &Types, oid: u32| oid == 0 || types.contains_key(&oid) || built_in(oid).is_some();
    loop {
        wanted.retain(|oid| !is_known(&types, *oid));
        if wanted.is_empty() {
            return Ok((types, enums));
        }
        let rows = ask(db, SQL, vec![oids(wanted.iter().copied())]).await?;
        let mut next = HashSet::new();
        for row in &rows {
            let (id, class, base, element) = (oid(row, 0)?, word(row, 1)?, oid(row, 2)?, oid(row, 3)?);
            let kind = match class.as_str() {
                "d" => Kind::Domain(base),
                "c" => {
                    let names = row.texts(5)?.unwrap_or_default();
                    let kinds = row.texts(6)?.unwrap_or_default();
                    let kinds = kinds.iter().map(|kind| kind.parse().unwrap_or_default());
                    Kind::Composite(names.into_iter().zip(kinds).collect())
                }
                "e" => {
                    enums.insert(id);
                    Kind::Text
                }
                _ if element != 0 => Kind::Array(element, word(row, 4)?.chars().next().unwrap_or(',')),
                _ => Kind::Text,
            };
            match &kind {
                Kind::Domain(base) => drop(next.insert(*base)),
                Kind::Array(element, _) => drop(next.insert(*element)),
                Kind::Composite(attributes) => next.extend(attributes.iter().map(|(_, kind)| *kind)),
                _ => {}
            }
            types.insert(id, kind);
        }
        // A type that is gone meanwhile is not loaded again.
        for oid in wanted.drain() {
            types.entry(oid).or_insert(Kind::Text);
        }
        wanted = next;
    }
}

/// A name for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// SQL for the keys of rows that meet `conditions` (of columns quoted by [`quoted`]): at most `most`, as text in
/// the log's format. `None` without a primary key.
pub fn keys_sql(table: &Table, conditions: &[String], most: usize) -> Option<String> {
    let keys: Vec<String> =
        table.keys().map(|key| format!("pg_catalog.format('%s', t.{})", quoted(&key.name))).collect();
    if keys.is_empty() {
        return None;
    }
    let conditions: String = conditions.iter().map(|condition| format!(" and {condition}")).collect();
    let (schema, name) = (quoted(&table.schema), quoted(&table.name));
    Some(format!("select {} from {schema}.{name} t where true{conditions} limit {most}", keys.join(", ")))
}

fn visible_sql(table: &Table) -> Option<Arc<str>> {
    let keys: Vec<_> = table.keys().collect();
    if keys.is_empty() {
        return None;
    }
    let arrays: Vec<_> = keys.iter().enumerate().map(|(n, key)| format!("${}::{}[]", n + 1, key.sql_type)).collect();
    let names: Vec<_> = (0..keys.len()).map(|n| format!("k{n}")).collect();
    let equal: Vec<_> = keys.iter().enumerate().map(|(n, key)| format!("t.{} = u.k{n}", quoted(&key.name))).collect();
    let sql = format!(
        "select u.n::int4 from unnest({}) with ordinality as u({}, n) join {}.{} t on {}",
        arrays.join(", "),
        names.join(", "),
        quoted(&table.schema),
        quoted(&table.name),
        equal.join(" and ")
    );
    Some(sql.into())
}

/// What a role may read of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    pub rls: bool,
    /// Names of columns; empty if the role may not use the schema.
    pub columns: HashSet<String>,
}

/// The query for what roles may read of a table; see [`read_rights`].
pub fn rights_step(table: u32, roles: &[&str]) -> Step {
    const SQL: &str = "select r.rolname::text, c.relrowsecurity,
            case when pg_catalog.has_schema_privilege(r.oid, c.relnamespace, 'usage') then
                array(select a.attname::text from pg_catalog.pg_attribute a
                      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                        and pg_catalog.has_column_privilege(r.oid, c.oid, a.attnum, 'select'))
            end
        from pg_catalog.pg_class c, pg_catalog.pg_roles r
        where c.oid = $1::oid and r.rolname = any ($2::text[])";
    Step { text: SQL.into(), params: vec![text(&table.to_string()), array(roles.iter().copied())], role: "".into() }
}

/// Rights by role; a role that does not exist has none.
pub fn read_rights(rows: &[Row]) -> Result<HashMap<String, Rights>, DbError> {
    rows.iter()
        .map(|row| {
            let columns = row.texts(2)?.unwrap_or_default().into_iter().collect();
            Ok((word(row, 0)?, Rights { rls: flag(row, 1), columns }))
        })
        .collect()
}
