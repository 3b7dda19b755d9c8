//! The rows of the catalog queries, a struct per query. Equal names are shared.

use std::collections::{HashMap, HashSet};

use tokio_postgres::types::{Oid, Type};
use tokio_postgres::{Error, Row};

use super::reader::Reader;
use crate::schema_cache::Name;

/// A relation of an exposed schema.
pub struct RelationRow {
    pub oid: Oid,
    pub schema: Name,
    pub name: Name,
    pub kind: char,
    pub row_type: Oid,
    /// Bits of `pg_relation_is_updatable`.
    pub events: i32,
    pub description: Option<Name>,
}

pub struct ColumnRow {
    pub relation: Oid,
    pub number: i16,
    pub name: Name,
    pub type_oid: Oid,
    pub type_modifier: i32,
    /// Spelled with its modifier, if it has one.
    pub type_with_modifier: Option<Name>,
    pub not_null: bool,
    pub default: Option<Name>,
    pub has_own_default: bool,
    pub description: Option<Name>,
}

pub struct TypeRow {
    pub oid: Oid,
    pub spelled: Name,
    /// Spelled as a column's type without modifier: `bpchar` where `spelled` is `character`.
    pub unmodified: Name,
    pub schema: Name,
    pub name: Name,
    pub kind: char,
    /// 0 unless a domain.
    pub base: Oid,
    /// A domain's own modifier of its base type; -1 if none.
    pub modifier: i32,
    pub not_null: bool,
    pub default: Option<Name>,
    /// The row type of a partition.
    pub is_partition: bool,
}

/// A primary key, unique constraint or foreign key.
pub struct ConstraintRow {
    pub kind: char,
    pub name: Name,
    pub relation: Oid,
    pub columns: Vec<i16>,
    /// 0 unless a foreign key.
    pub target: Oid,
    pub target_columns: Vec<i16>,
    /// Not inherited from a partitioned parent's constraint.
    pub is_own: bool,
}

pub struct FunctionRow {
    pub schema: Name,
    pub name: Name,
    pub description: Option<Name>,
    /// Of all parameters; none if no parameter has a name.
    pub names: Option<Vec<Name>>,
    pub input_types: Vec<Oid>,
    /// Of all parameters; none if all are IN.
    pub modes: Option<Vec<char>>,
    pub defaults: i16,
    pub return_type: Oid,
    pub returns_set: bool,
    pub volatility: char,
    pub one_row: bool,
    pub isolation: Option<String>,
    /// `name=value`
    pub hoisted: Vec<String>,
    /// By the role that reads the catalogs.
    pub executable: bool,
}

/// (media type, handler schema, handler, target schema, target)
pub type MediaHandlerRow = (Name, Name, Name, Name, Name);

/// Gives equal texts one allocation.
#[derive(Default)]
pub struct Interner {
    seen: HashSet<Name>,
}

impl Interner {
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.seen.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        self.seen.insert(name.clone());
        name
    }

    fn column(&mut self, row: &Row, index: usize) -> Result<Name, Error> {
        Ok(self.name(row.try_get(index)?))
    }

    fn nullable(&mut self, row: &Row, index: usize) -> Result<Option<Name>, Error> {
        Ok(row.try_get::<_, Option<&str>>(index)?.map(|text| self.name(text)))
    }
}

fn letter(row: &Row, index: usize) -> Result<char, Error> {
    Ok(char::from(row.try_get::<_, i8>(index)? as u8))
}

pub async fn relations(
    client: Reader<'_>,
    schemas: &[String],
    names: &mut Interner,
) -> Result<Vec<RelationRow>, Error> {
    let rows = client.rows(include_str!("relations.sql"), &[(&schemas, Type::NAME_ARRAY)]).await?;
    rows.iter()
        .map(|row| {
            Ok(RelationRow {
                oid: row.try_get(0)?,
                schema: names.column(row, 1)?,
                name: names.column(row, 2)?,
                kind: letter(row, 3)?,
                row_type: row.try_get(4)?,
                events: row.try_get(5)?,
                description: names.nullable(row, 6)?,
            })
        })
        .collect()
}

pub async fn columns(client: Reader<'_>, schemas: &[String], names: &mut Interner) -> Result<Vec<ColumnRow>, Error> {
    let rows = client.rows(include_str!("columns.sql"), &[(&schemas, Type::NAME_ARRAY)]).await?;
    let mut columns = rows
        .iter()
        .map(|row| {
            Ok(ColumnRow {
                relation: row.try_get(0)?,
                number: row.try_get(1)?,
                name: names.column(row, 2)?,
                type_oid: row.try_get(3)?,
                type_modifier: row.try_get(4)?,
                type_with_modifier: names.nullable(row, 5)?,
                not_null: row.try_get(6)?,
                default: names.nullable(row, 7)?,
                has_own_default: row.try_get(8)?,
                description: names.nullable(row, 9)?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    columns.sort_unstable_by_key(|column| (column.relation, column.number));
    Ok(columns)
}

/// What `columns` and `functions` are made of, and all domains.
pub async fn types(
    client: Reader<'_>,
    columns: &[ColumnRow],
    functions: &[FunctionRow],
    names: &mut Interner,
) -> Result<HashMap<Oid, TypeRow>, Error> {
    let of_columns = columns.iter().map(|column| column.type_oid);
    let of_functions = functions.iter().flat_map(|f| f.input_types.iter().copied().chain([f.return_type]));
    let mut wanted: Vec<Oid> = of_columns.chain(of_functions).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let rows = client.rows(include_str!("types.sql"), &[(&wanted, Type::OID_ARRAY)]).await?;
    rows.iter()
        .map(|row| {
            let row = TypeRow {
                oid: row.try_get(0)?,
                spelled: names.column(row, 1)?,
                unmodified: names.column(row, 2)?,
                schema: names.column(row, 3)?,
                name: names.column(row, 4)?,
                kind: letter(row, 5)?,
                base: row.try_get(6)?,
                modifier: row.try_get(7)?,
                not_null: row.try_get(8)?,
                default: names.nullable(row, 9)?,
                is_partition: row.try_get(10)?,
            };
            Ok((row.oid, row))
        })
        .collect()
}

/// Labels by enum type, in their order.
pub async fn enum_labels(client: Reader<'_>, names: &mut Interner) -> Result<HashMap<Oid, Vec<Name>>, Error> {
    let mut labels: HashMap<Oid, Vec<Name>> = HashMap::new();
    for row in &client.rows(include_str!("enum_labels.sql"), &[]).await? {
        labels.entry(row.try_get(0)?).or_default().push(names.column(row, 1)?);
    }
    Ok(labels)
}

pub async fn constraints(client: Reader<'_>, names: &mut Interner) -> Result<Vec<ConstraintRow>, Error> {
    let rows = client.rows(include_str!("constraints.sql"), &[]).await?;
    let mut constraints = rows
        .iter()
        .map(|row| {
            Ok(ConstraintRow {
                kind: letter(row, 0)?,
                name: names.column(row, 1)?,
                relation: row.try_get(2)?,
                columns: row.try_get::<_, Option<Vec<i16>>>(3)?.unwrap_or_default(),
                target: row.try_get(4)?,
                target_columns: row.try_get::<_, Option<Vec<i16>>>(5)?.unwrap_or_default(),
                is_own: row.try_get(6)?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    constraints.sort_by(|a, b| (a.relation, &a.name).cmp(&(b.relation, &b.name)));
    Ok(constraints)
}

/// (view, text of its rewrite rule)
pub async fn views(client: Reader<'_>, schemas: &[String]) -> Result<Vec<Row>, Error> {
    client.rows(include_str!("views.sql"), &[(&schemas, Type::NAME_ARRAY)]).await
}

pub async fn functions(
    client: Reader<'_>,
    schemas: &[String],
    hoisted: &[String],
    names: &mut Interner,
) -> Result<Vec<FunctionRow>, Error> {
    let rows = client
        .rows(include_str!("functions.sql"), &[(&schemas, Type::NAME_ARRAY), (&hoisted, Type::TEXT_ARRAY)])
        .await?;
    rows.iter()
        .map(|row| {
            Ok(FunctionRow {
                schema: names.column(row, 0)?,
                name: names.column(row, 1)?,
                description: names.nullable(row, 2)?,
                names: row
                    .try_get::<_, Option<Vec<&str>>>(3)?
                    .map(|list| list.into_iter().map(|text| names.name(text)).collect()),
                input_types: row.try_get(4)?,
                modes: row
                    .try_get::<_, Option<Vec<i8>>>(5)?
                    .map(|list| list.into_iter().map(|mode| char::from(mode as u8)).collect()),
                defaults: row.try_get(6)?,
                return_type: row.try_get(7)?,
                returns_set: row.try_get(8)?,
                volatility: letter(row, 9)?,
                one_row: row.try_get(10)?,
                isolation: row.try_get(11)?,
                hoisted: row.try_get(12)?,
                executable: row.try_get(13)?,
            })
        })
        .collect()
}

/// (source type, target type, function)
pub async fn representations(client: Reader<'_>, names: &mut Interner) -> Result<Vec<(Name, Name, Name)>, Error> {
    let rows = client.rows(include_str!("representations.sql"), &[]).await?;
    rows.iter().map(|row| Ok((names.column(row, 0)?, names.column(row, 1)?, names.column(row, 2)?))).collect()
}

pub async fn media_handlers(
    client: Reader<'_>,
    schemas: &[String],
    names: &mut Interner,
) -> Result<Vec<MediaHandlerRow>, Error> {
    let rows = client.rows(include_str!("media_handlers.sql"), &[(&schemas, Type::NAME_ARRAY)]).await?;
    rows.iter()
        .map(|row| {
            Ok((
                names.column(row, 0)?,
                names.column(row, 1)?,
                names.column(row, 2)?,
                names.column(row, 3)?,
                names.column(row, 4)?,
            ))
        })
        .collect()
}

pub async fn schema_comments(
    client: Reader<'_>,
    schemas: &[String],
    names: &mut Interner,
) -> Result<HashMap<Name, Name>, Error> {
    let rows = client.rows(include_str!("schema_comments.sql"), &[(&schemas, Type::NAME_ARRAY)]).await?;
    rows.iter().map(|row| Ok((names.column(row, 0)?, names.column(row, 1)?))).collect()
}
