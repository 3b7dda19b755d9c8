//! From catalog rows to the cache's parts; no I/O.

use std::collections::{HashMap, HashSet};

use super::keys::{self, RawRelationship, RawShape, ViewColumns};
use super::node_tree::Origin;
use super::rows::{ColumnRow, ConstraintRow, FunctionRow, MediaHandlerRow, RelationRow, TypeRow};
use crate::schema_cache::{
    CacheParts, Cardinality, Column, ColumnPair, Function, HandlerTarget, IsolationLevel, Junction, MediaHandler, Name,
    Parameter, QualifiedName, Relationship, Representations, ReturnKind, ReturnType, Table, TableKind, Volatility,
};

/// All that was read.
pub struct Rows {
    /// The exposed ones.
    pub schemas: Vec<String>,
    pub relations: Vec<RelationRow>,
    pub columns: Vec<ColumnRow>,
    pub types: HashMap<u32, TypeRow>,
    pub enum_labels: HashMap<u32, Vec<Name>>,
    pub constraints: Vec<ConstraintRow>,
    pub views: HashMap<u32, Vec<Origin>>,
    pub functions: Vec<FunctionRow>,
    pub representations: Vec<(Name, Name, Name)>,
    pub media_handlers: Vec<MediaHandlerRow>,
    pub schema_comments: HashMap<Name, Name>,
}

pub fn assemble(rows: Rows) -> CacheParts {
    let views = ViewColumns::resolve(&rows.views);
    let primary_keys = keys::primary_keys(&rows.constraints, &views);
    let relations: HashMap<u32, &RelationRow> = rows.relations.iter().map(|row| (row.oid, row)).collect();
    let column_names: HashMap<keys::Attribute, &Name> =
        rows.columns.iter().map(|row| ((row.relation, row.number), &row.name)).collect();
    let naming = Naming { relations: &relations, columns: &column_names, constraints: &rows.constraints };

    let raw = keys::relationships(&rows.constraints, &views, &primary_keys, |oid| relations.contains_key(&oid));
    let mut relationships: Vec<Relationship> = raw.iter().filter_map(|r| naming.relationship(r)).collect();
    let computed = computed_relationships(&rows);
    let overridden: HashSet<(QualifiedName, QualifiedName)> = computed
        .iter()
        .filter_map(|r| match r {
            Relationship::Computed { origin, function, .. } => Some((origin.clone(), function.clone())),
            Relationship::Detected { .. } => None,
        })
        .collect();
    if !overridden.is_empty() {
        relationships.retain(|r| !overridden.contains(&(r.origin().clone(), r.target().clone())));
    }
    relationships.extend(computed);

    let types = Types { types: &rows.types, enum_labels: &rows.enum_labels };
    let functions = rows.functions.iter().filter_map(|row| types.function(row)).collect();
    let media_handlers = media_handlers(&rows.media_handlers);
    let mut representations = Representations::default();
    for (source, target, function) in rows.representations {
        representations.insert(source, target, function);
    }

    let mut columns_of: HashMap<u32, Vec<Column>> = HashMap::with_capacity(rows.relations.len());
    for row in &rows.columns {
        columns_of.entry(row.relation).or_default().push(types.column(row));
    }
    let tables = rows
        .relations
        .iter()
        .map(|row| {
            let mut key: Vec<Name> = primary_keys
                .get(&row.oid)
                .into_iter()
                .flatten()
                .filter_map(|number| column_names.get(&(row.oid, *number)))
                .map(|name| (*name).clone())
                .collect();
            key.sort();
            key.dedup();
            let kind = TableKind {
                is_view: matches!(row.kind, 'v' | 'm'),
                insertable: row.events & 8 != 0,
                updatable: row.events & 4 != 0,
                deletable: row.events & 16 != 0,
            };
            let columns = columns_of.remove(&row.oid).unwrap_or_default();
            let name = QualifiedName { schema: row.schema.clone(), name: row.name.clone() };
            let mut table = Table::new(name, &kind, key, columns);
            table.description = row.description.clone();
            table
        })
        .collect();

    CacheParts {
        tables,
        relationships,
        functions,
        representations,
        media_handlers,
        schema_comments: rows.schema_comments,
    }
}

/// The callable ones among `rows`.
pub fn functions(rows: &[FunctionRow], types: &HashMap<u32, TypeRow>) -> Vec<Function> {
    let types = Types { types, enum_labels: &HashMap::new() };
    rows.iter().filter_map(|row| types.function(row)).collect()
}

/// Resolves OIDs and numbers to names. Objects without a name were dropped while the catalogs were read, and are left
/// out.
struct Naming<'a> {
    relations: &'a HashMap<u32, &'a RelationRow>,
    columns: &'a HashMap<keys::Attribute, &'a Name>,
    constraints: &'a [ConstraintRow],
}

impl Naming<'_> {
    fn relation(&self, oid: u32) -> Option<QualifiedName> {
        let row = self.relations.get(&oid)?;
        Some(QualifiedName { schema: row.schema.clone(), name: row.name.clone() })
    }

    fn is_view(&self, oid: u32) -> bool {
        self.relations.get(&oid).is_some_and(|row| matches!(row.kind, 'v' | 'm'))
    }

    fn pairs(&self, left: u32, right: u32, columns: &[(i16, i16)]) -> Option<Vec<ColumnPair>> {
        columns
            .iter()
            .map(|(a, b)| Some(((*self.columns.get(&(left, *a))?).clone(), (*self.columns.get(&(right, *b))?).clone())))
            .collect()
    }

    fn relationship(&self, raw: &RawRelationship) -> Option<Relationship> {
        let constraint_name = |index: usize| self.constraints[index].name.clone();
        let cardinality = match &raw.shape {
            RawShape::ToParent { constraint, unique, columns } => {
                let columns = self.pairs(raw.origin, raw.target, columns)?;
                let constraint = constraint_name(*constraint);
                if *unique {
                    Cardinality::OneToOne { constraint, columns, is_parent: false }
                } else {
                    Cardinality::ManyToOne { constraint, columns }
                }
            }
            RawShape::ToChild { constraint, unique, columns } => {
                let columns = self.pairs(raw.origin, raw.target, columns)?;
                let constraint = constraint_name(*constraint);
                if *unique {
                    Cardinality::OneToOne { constraint, columns, is_parent: true }
                } else {
                    Cardinality::OneToMany { constraint, columns }
                }
            }
            RawShape::Junction { table, origin_constraint, target_constraint, origin_columns, target_columns } => {
                Cardinality::ManyToMany(Junction {
                    table: self.relation(*table)?,
                    origin_constraint: constraint_name(*origin_constraint),
                    target_constraint: constraint_name(*target_constraint),
                    origin_columns: self.pairs(raw.origin, *table, origin_columns)?,
                    target_columns: self.pairs(raw.target, *table, target_columns)?,
                })
            }
        };
        Some(Relationship::Detected {
            origin: self.relation(raw.origin)?,
            target: self.relation(raw.target)?,
            is_self: raw.is_self,
            cardinality,
            origin_is_view: self.is_view(raw.origin),
            target_is_view: self.is_view(raw.target),
        })
    }
}

/// Functions of one argument from a row of one exposed relation to rows of another. Partitions count too, although
/// they are not resources.
fn computed_relationships(rows: &Rows) -> Vec<Relationship> {
    let by_row_type: HashMap<u32, &RelationRow> = rows.relations.iter().map(|row| (row.row_type, row)).collect();
    let relation = |row_type: u32| {
        let (schema, name) = match by_row_type.get(&row_type) {
            Some(row) => (&row.schema, &row.name),
            None => {
                let row = rows.types.get(&row_type).filter(|row| row.is_partition)?;
                (&row.schema, &row.name)
            }
        };
        let is_exposed = rows.schemas.iter().any(|exposed| **exposed == **schema);
        is_exposed.then(|| QualifiedName { schema: schema.clone(), name: name.clone() })
    };
    rows.functions
        .iter()
        .filter_map(|function| {
            let [argument] = function.input_types.as_slice() else { return None };
            Some(Relationship::Computed {
                function: QualifiedName { schema: function.schema.clone(), name: function.name.clone() },
                origin: relation(*argument)?,
                target: relation(function.return_type)?,
                to_one: !function.returns_set || function.one_row,
                is_self: *argument == function.return_type,
            })
        })
        .collect()
}

fn media_handlers(rows: &[MediaHandlerRow]) -> crate::schema_cache::MediaHandlers {
    let mut handlers = crate::schema_cache::MediaHandlers::default();
    for (media_type, schema, name, target_schema, target_name) in rows {
        let target = QualifiedName { schema: target_schema.clone(), name: target_name.clone() };
        let target = if target.is("pg_catalog", "anyelement") {
            HandlerTarget::AnyElement
        } else {
            HandlerTarget::Named(target)
        };
        let content_type =
            if &**media_type == "*/*" { Name::from("application/octet-stream") } else { media_type.clone() };
        let function = QualifiedName { schema: schema.clone(), name: name.clone() };
        handlers.insert(media_type.to_lowercase().into(), MediaHandler { function, target, content_type });
    }
    handlers
}

/// Resolves types of columns, parameters and results.
struct Types<'a> {
    types: &'a HashMap<u32, TypeRow>,
    enum_labels: &'a HashMap<u32, Vec<Name>>,
}

impl<'a> Types<'a> {
    /// The type below all domains.
    fn base(&self, oid: u32) -> Option<&'a TypeRow> {
        let mut row = self.types.get(&oid)?;
        while row.base != 0 {
            row = self.types.get(&row.base)?;
        }
        Some(row)
    }

    fn column(&self, row: &ColumnRow) -> Column {
        let unknown = || Name::from("unknown");
        let declared = self.types.get(&row.type_oid);
        let base = self.base(row.type_oid);
        let nominal =
            row.type_with_modifier.clone().unwrap_or_else(|| declared.map_or_else(unknown, |t| t.unmodified.clone()));
        let is_domain = declared.is_some_and(|t| t.kind == 'd');
        let built_in = base.filter(|t| &*t.schema == "pg_catalog");
        let base_type = match built_in {
            Some(base) => base.spelled.clone(),
            None => nominal.clone(),
        };
        let domain_default = || declared.filter(|_| is_domain && !row.has_own_default).and_then(|t| t.default.clone());
        Column {
            name: row.name.clone(),
            description: row.description.clone(),
            nullable: !row.not_null && !declared.is_some_and(|t| is_domain && t.not_null),
            base_type,
            nominal_type: nominal,
            type_oid: row.type_oid,
            base_type_oid: base.map_or(row.type_oid, |t| t.oid),
            max_length: match declared {
                Some(domain) if is_domain => max_length(domain.base, domain.modifier),
                _ => max_length(row.type_oid, row.type_modifier),
            },
            default: row.default.clone().or_else(domain_default),
            enum_labels: base.and_then(|t| self.enum_labels.get(&t.oid)).cloned().unwrap_or_default(),
        }
    }

    /// `None` for trigger functions, for functions with unnamed parameters other than a single one that a body can
    /// fill, and for those whose types were dropped meanwhile.
    fn function(&self, row: &FunctionRow) -> Option<Function> {
        let returned = self.base(row.return_type)?;
        if returned.oid == TRIGGER {
            return None;
        }
        let parameters = self.parameters(row)?;
        // If any parameter is named, even an OUT parameter, the others count as named by the empty name.
        if row.names.is_none() && !parameters.is_empty() {
            let [only] = parameters.as_slice() else { return None };
            if !matches!(&*only.type_name, "bytea" | "json" | "jsonb" | "text" | "xml") {
                return None;
            }
        }
        let has_out = row.modes.as_ref().is_some_and(|modes| modes.iter().any(|mode| matches!(mode, 't' | 'b' | 'o')));
        let returned_name = QualifiedName { schema: returned.schema.clone(), name: returned.name.clone() };
        let kind = if returned.kind == 'c' || has_out {
            ReturnKind::Composite { name: returned_name, alias: returned.oid != row.return_type }
        } else {
            ReturnKind::Scalar(returned_name)
        };
        Some(Function {
            name: QualifiedName { schema: row.schema.clone(), name: row.name.clone() },
            description: row.description.clone(),
            has_variadic: parameters.iter().any(|p| p.variadic),
            parameters,
            returns: if row.returns_set { ReturnType::SetOf(kind) } else { ReturnType::Single(kind) },
            volatility: match row.volatility {
                'i' => Volatility::Immutable,
                's' => Volatility::Stable,
                _ => Volatility::Volatile,
            },
            isolation: row.isolation.as_deref().map(IsolationLevel::parse),
            hoisted_settings: row
                .hoisted
                .iter()
                .filter_map(|setting| setting.split_once('='))
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        })
    }

    fn parameters(&self, row: &FunctionRow) -> Option<Vec<Parameter>> {
        let count = row.input_types.len();
        let all_in = vec!['i'; count];
        let modes = row.modes.as_deref().unwrap_or(&all_in);
        let names = row.names.as_deref().unwrap_or_default();
        modes
            .iter()
            .enumerate()
            .filter(|(_, mode)| matches!(mode, 'i' | 'b' | 'v'))
            .zip(&row.input_types)
            .enumerate()
            .map(|(index, ((position, mode), type_oid))| {
                let type_name = self.types.get(type_oid)?.spelled.clone();
                let bind_type = match &*type_name {
                    "bit" => "bit varying".into(),
                    "bit[]" => "bit varying[]".into(),
                    "character" => "character varying".into(),
                    "character[]" => "character varying[]".into(),
                    _ => type_name.clone(),
                };
                Some(Parameter {
                    name: names.get(position).cloned().unwrap_or_else(|| "".into()),
                    type_name,
                    bind_type,
                    required: index + usize::try_from(row.defaults).unwrap_or_default() < count,
                    variadic: *mode == 'v',
                })
            })
            .collect()
    }
}

const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const BIT: u32 = 1560;
const VARBIT: u32 = 1562;
const TRIGGER: u32 = 2279;

/// The declared length in characters or bits.
fn max_length(type_oid: u32, modifier: i32) -> Option<i32> {
    match type_oid {
        _ if modifier < 0 => None,
        BPCHAR | VARCHAR => Some(modifier - 4),
        BIT | VARBIT => Some(modifier),
        _ => None,
    }
}
