//! `ferrobase types LANGUAGE`: generates the same file as `supabase gen types --lang LANGUAGE`.

mod catalog;
mod go;
mod layout;
mod not_null;
mod order;
mod python;
mod swift;
mod typescript;

use super::database::{Database, block_on};
use crate::config::{Reader, Source};
use crate::db::{self, Client};
pub use catalog::Wanted;
use catalog::{Catalog, Kind, Relation, Type};
use clap::{Args, Subcommand, ValueEnum};
use order::by_name;

/// The output formats of Supabase's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The format of postgres-meta 0.99
    #[default]
    PostgresMeta,
    /// The format of postgres-meta up to 0.98, which the CLI printed up to 2.121
    #[value(name = "postgres-meta-0.98")]
    PostgresMeta098,
    /// The format of the Supabase CLI 2.122 and 3: with ComputedFields, and with views' columns that cannot be null
    Cli,
}

impl Form {
    /// Whether it is the text of `@supabase/postgrest-typegen`, which postgres-meta 0.99 and the CLI 2.122 have in common.
    fn is_of_typegen(self) -> bool {
        self != Self::PostgresMeta098
    }

    /// The schemas through whose views keys are followed to the views of the wanted ones; `None` for all.
    fn passes_through(self, wanted: &[String]) -> Option<Vec<&str>> {
        // The CLI adds the search path of the API.
        let further: &[&str] = match self {
            Self::PostgresMeta => &[],
            Self::PostgresMeta098 => return None,
            Self::Cli => &["public", "extensions"],
        };
        Some(wanted.iter().map(String::as_str).chain(further.iter().copied()).collect())
    }
}

/// Options for the output format.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormArgs {
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    form: Form,
    /// Also include relationships that views show of tables in other schemas, or through views there
    #[arg(long)]
    all_relationships: bool,
    /// Leave out which relationships are one to one, for PostgREST 9 and older
    #[arg(long)]
    postgrest_v9_compat: bool,
}

impl FormArgs {
    pub fn of(self, schemas: Vec<String>) -> Wanted {
        let (has_all_relationships, tells_one_to_one) = (self.all_relationships, !self.postgrest_v9_compat);
        Wanted { schemas, form: self.form, has_all_relationships, tells_one_to_one }
    }
}

/// Languages of generated types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Language {
    #[default]
    Typescript,
    Go,
    Swift,
    Python,
}

/// Access level of generated Swift types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SwiftAccess {
    /// Visible in the module
    #[default]
    Internal,
    /// Visible everywhere
    Public,
}

/// Schemas for which types are generated.
#[derive(Args)]
pub struct SchemaArgs {
    /// Schemas to include, comma-separated or repeated [default: those the API exposes]
    #[arg(long = "schema", short = 's', value_delimiter = ',', value_name = "SCHEMA")]
    schemas: Vec<String>,
}

#[derive(Subcommand)]
pub enum TypesCommand {
    /// Print TypeScript types
    Typescript {
        #[command(flatten)]
        schemas: SchemaArgs,
        #[command(flatten)]
        form: FormArgs,
    },
    /// Print Go structs
    Go(SchemaArgs),
    /// Print Swift structs
    Swift {
        #[command(flatten)]
        schemas: SchemaArgs,
        /// Access level of the types
        #[arg(long, value_enum, default_value_t)]
        swift_access_control: SwiftAccess,
    },
    /// Print Pydantic models for Python
    Python(SchemaArgs),
}

pub fn run(command: TypesCommand, source: &Source) -> anyhow::Result<()> {
    let (SchemaArgs { mut schemas }, form, language, access) = match command {
        TypesCommand::Typescript { schemas, form } => (schemas, form, Language::Typescript, SwiftAccess::default()),
        TypesCommand::Go(schemas) => (schemas, FormArgs::default(), Language::Go, SwiftAccess::default()),
        TypesCommand::Swift { schemas, swift_access_control } => {
            (schemas, FormArgs::default(), Language::Swift, swift_access_control)
        }
        TypesCommand::Python(schemas) => (schemas, FormArgs::default(), Language::Python, SwiftAccess::default()),
    };
    if schemas.is_empty() {
        let exposed = Reader::new(source).list(&["PGRST_DB_SCHEMAS", "PGRST_DB_SCHEMA"]);
        schemas = exposed.unwrap_or_else(|| vec!["public".to_owned(), "graphql_public".to_owned()]);
    }
    let wanted = form.of(schemas);
    let text = block_on(Database::with(source, async |database| {
        generate(&connect(&database.url).await?, &wanted, language, access).await
    }))?;
    super::print_all(&text)
}

/// The REST server's version as the generated file states it for supabase-js.
const POSTGREST_VERSION: &str = "14.1";

/// The TypeScript types of the wanted schemas in the database at `url`, which must log in as its owner.
pub async fn typescript(url: &str, wanted: &Wanted) -> anyhow::Result<String> {
    generate(&connect(url).await?, wanted, Language::Typescript, SwiftAccess::default()).await
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let client = db::connect_client(&url.parse()?).await;
    client.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))
}

/// The types of the wanted schemas. `client` must be logged in as the database's owner.
pub async fn generate(
    client: &Client,
    wanted: &Wanted,
    language: Language,
    access: SwiftAccess,
) -> anyhow::Result<String> {
    let catalog = Catalog::load(client, wanted).await?;
    if let Some(missing) = wanted.schemas.iter().find(|name| !catalog.schemas.contains(name)) {
        anyhow::bail!("there is no schema named '{missing}' in the database");
    }
    Ok(match language {
        Language::Typescript => typescript::generate(&catalog, POSTGREST_VERSION),
        Language::Go => go::generate(&catalog),
        Language::Swift => swift::generate(&catalog, access),
        Language::Python => python::generate(&catalog),
    })
}

/// Pascal case: `victory-road` becomes `VictoryRoad`. Only the first letter of each word is changed.
fn pascal(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    words.filter_map(capital).collect()
}

/// Relations of one kind, sorted by schema and name.
fn of_kind(catalog: &Catalog, kind: Kind) -> Vec<&Relation> {
    let mut relations: Vec<&Relation> = catalog.relations.iter().filter(|relation| relation.kind == kind).collect();
    relations.sort_by(|a, b| by_name(&a.schema, &b.schema).then_with(|| by_name(&a.name, &b.name)));
    relations
}

/// All types, sorted by schema and name.
fn sorted_types(catalog: &Catalog) -> Vec<&Type> {
    let mut types: Vec<&Type> = catalog.types.iter().collect();
    types.sort_by(|a, b| by_name(&a.schema, &b.schema).then_with(|| by_name(&a.name, &b.name)));
    types
}

/// The composite types of the wanted schemas, sorted by schema and name.
fn composites(catalog: &Catalog) -> impl Iterator<Item = &Type> {
    let types = sorted_types(catalog).into_iter();
    types.filter(|t| !t.attributes.is_empty() && catalog.schemas.contains(&t.schema))
}

/// A string literal of JSON, which Go and Python read in the same way.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether a type is one of PostgreSQL's ranges or multiranges.
fn is_range(name: &str) -> bool {
    let stem = name.strip_suffix("range").map(|stem| stem.strip_suffix("multi").unwrap_or(stem));
    stem.is_some_and(|stem| ["int4", "int8", "num", "ts", "tstz", "date"].contains(&stem))
}

/// A small catalog for the tests of the generators.
#[cfg(test)]
mod testing {
    use super::Form;
    use super::catalog::{Catalog, Column, Identity, Kind, Relation, Type};

    fn column(name: &str, type_name: &str) -> Column {
        Column {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            type_schema: "pg_catalog".to_owned(),
            is_nullable: false,
            is_generated: false,
            has_default: false,
            identity: Identity::No,
            is_updatable: true,
        }
    }

    fn type_of(oid: u32, name: &str, format: &str) -> Type {
        let (schema, name, format) = ("public".to_owned(), name.to_owned(), format.to_owned());
        Type { oid, schema, name, format, relation: 0, labels: Vec::new(), attributes: Vec::new() }
    }

    fn relation(oid: u32, name: &str, kind: Kind, columns: Vec<Column>) -> Relation {
        Relation {
            oid,
            schema: "public".to_owned(),
            name: name.to_owned(),
            kind,
            is_updatable_view: false,
            takes_inserts: false,
            takes_updates: false,
            columns,
        }
    }

    /// One relation of each kind, an enum and a composite type. The name of one column has to be quoted.
    pub fn catalog() -> Catalog {
        let text = Type { schema: "pg_catalog".to_owned(), ..type_of(25, "text", "text") };
        let int = Type { schema: "pg_catalog".to_owned(), ..type_of(23, "int4", "integer") };
        let address = Type { schema: "pg_catalog".to_owned(), ..type_of(869, "inet", "inet") };
        let mood = Type { labels: vec!["calm".to_owned(), "very busy".to_owned()], ..type_of(100, "mood", "mood") };
        let attributes = vec![("city".to_owned(), 25), ("post-code".to_owned(), 23)];
        let place = Type { relation: 101, attributes, ..type_of(102, "place", "place") };
        let id = Column { identity: Identity::Always, ..column("task_id", "int8") };
        let done = Column { has_default: true, ..column("done", "bool") };
        let owner = Column { is_nullable: true, ..column("owner", "uuid") };
        let columns = vec![
            done,
            column("fr`om", "inet"),
            column("mood", "mood"),
            column("moods", "_mood"),
            owner,
            Column { is_nullable: true, ..column("tags", "_text") },
            id,
            column("where", "place"),
        ];
        Catalog {
            tells_one_to_one: true,
            form: Form::PostgresMeta,
            schemas: vec!["public".to_owned()],
            relations: vec![
                relation(202, "a_view", Kind::View, vec![Column { is_nullable: true, ..column("n", "numeric") }]),
                relation(203, "counts", Kind::MaterializedView, vec![column("default", "int4")]),
                relation(201, "empty", Kind::Table, Vec::new()),
                relation(204, "far-away", Kind::ForeignTable, vec![column("id", "text")]),
                relation(200, "tasks", Kind::Table, columns),
            ],
            types: vec![text, int, mood, place, address],
            functions: Vec::new(),
            relationships: Vec::new(),
        }
    }

    #[test]
    fn names_become_single_identifiers() {
        for (name, word) in
            [("pokedex", "Pokedex"), ("victory-road", "VictoryRoad"), ("a b_C", "ABC"), ("_x1", "X1"), ("größe", "GrE")]
        {
            assert_eq!(super::pascal(name), word, "{name}");
        }
    }
}
