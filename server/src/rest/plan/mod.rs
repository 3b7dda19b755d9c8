//! Second stage: an [`ApiRequest`] is resolved against the schema cache into a [`Plan`].
//!
//! After this stage every relation, relationship, function and payload column exists, as of the cache. Other columns are checked by
//! PostgreSQL.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan.hs`.

mod alias;
pub mod call;
mod hoist;
pub mod mutate;
pub mod negotiate;
mod read;
mod resolve;
pub mod types;

use std::sync::Arc;

use super::error::ApiError;
use super::request::media::MediaType;
use super::request::{Action, ApiRequest, CallMethod, Mutation};
use crate::config::rest::ReadLimit;
use crate::schema_cache::{Function, Name, QualifiedName, SchemaCache, Table, Volatility};
use call::Call;
use mutate::Write;
use negotiate::Handler;
use types::ReadNode;

/// The configuration that planning depends on.
#[derive(Clone, Debug)]
pub struct PlanRules {
    pub max_rows: Option<u64>,
    /// `db-aggregates-enabled`.
    pub aggregates: bool,
    /// `url-use-legacy-target-names`.
    pub legacy_target_names: bool,
    /// `db-plan-enabled`.
    pub plan_enabled: bool,
    /// For the request's role.
    pub limit: ReadLimit,
}

/// A request, resolved.
#[derive(Clone, Debug)]
pub enum Plan {
    Database(Box<DatabasePlan>),
    /// The OpenAPI document.
    Document {
        head: bool,
    },
    /// OPTIONS: the methods allowed, as `Allow` lists them.
    Info {
        allow: String,
    },
}

/// Work for one transaction.
#[derive(Clone, Debug)]
pub struct DatabasePlan {
    pub read: ReadNode,
    pub work: Work,
    pub handler: Handler,
    pub media: MediaType,
    pub read_only: bool,
}

#[derive(Clone, Debug)]
pub enum Work {
    Read { relation: QualifiedName, head: bool },
    Write { mutation: Mutation, write: Write, relation: QualifiedName },
    Call { call: Call, method: CallMethod },
}

pub fn plan(request: &ApiRequest, cache: &SchemaCache, rules: &PlanRules) -> Result<Plan, ApiError> {
    match &request.action {
        Action::Read { relation, head } => plan_relation(request, relation, *head, cache, rules),
        Action::Mutate { relation, mutation } => plan_mutation(request, relation, *mutation, cache, rules),
        Action::Call { function, method } => {
            plan_function(request, function, *method, cache, rules).map(|plan| Plan::Database(Box::new(plan)))
        }
        Action::Root { head } => {
            let produced = [MediaType::OpenApi, MediaType::Json, MediaType::Any];
            if request.accept.iter().any(|media| produced.contains(media)) {
                Ok(Plan::Document { head: *head })
            } else {
                Err(ApiError::MediaTypes(request.accept.iter().map(MediaType::mime).collect()))
            }
        }
        Action::RelationInfo { relation } => {
            let table = cache.require_table(&request.schema, relation)?;
            Ok(Plan::Info { allow: allowed_on_table(table) })
        }
        Action::FunctionInfo { function } => {
            // Planned as a call without arguments, with all its errors.
            plan_function(request, function, CallMethod::Head, cache, rules)?;
            let function = call::find_function(request, function, CallMethod::Head, cache)?;
            Ok(Plan::Info { allow: allowed_on_function(&function).to_owned() })
        }
        Action::RootInfo => Ok(Plan::Info { allow: "OPTIONS,GET,HEAD".to_owned() }),
    }
}

fn plan_relation(
    request: &ApiRequest,
    relation: &str,
    head: bool,
    cache: &SchemaCache,
    rules: &PlanRules,
) -> Result<Plan, ApiError> {
    let table = cache.require_table(&request.schema, relation)?;
    let read = read::plan_read(request, relation, &table.name.schema, cache, rules)?;
    let (handler, media) =
        negotiate::negotiate(request, &table.name, cache, rules.plan_enabled, has_default_select(&read))?;
    check_preferences(request)?;
    let work = Work::Read { relation: table.name.clone(), head };
    Ok(Plan::Database(Box::new(DatabasePlan { read, work, handler, media, read_only: true })))
}

fn plan_mutation(
    request: &ApiRequest,
    relation: &str,
    mutation: Mutation,
    cache: &SchemaCache,
    rules: &PlanRules,
) -> Result<Plan, ApiError> {
    let table = cache.require_table(&request.schema, relation)?;
    let read = read::plan_read(request, relation, &table.name.schema, cache, rules)?;
    let write = mutate::plan_write(mutation, table, request, cache, &read)?;
    check_preferences(request)?;
    let (handler, media) =
        negotiate::negotiate(request, &table.name, cache, rules.plan_enabled, has_default_select(&read))?;
    let work = Work::Write { mutation, write, relation: table.name.clone() };
    Ok(Plan::Database(Box::new(DatabasePlan { read, work, handler, media, read_only: false })))
}

fn plan_function(
    request: &ApiRequest,
    name: &str,
    method: CallMethod,
    cache: &SchemaCache,
    rules: &PlanRules,
) -> Result<DatabasePlan, ApiError> {
    let function = call::find_function(request, name, method, cache)?;
    let (read, relation) = plan_function_read(request, &function, cache, rules)?;
    let (handler, media) =
        negotiate::negotiate(request, &relation, cache, rules.plan_enabled, has_default_select(&read))?;
    check_preferences(request)?;
    if request.preferences.enforced_max_affected().is_some() && function.returns_single() {
        return Err(ApiError::MaxAffectedSingle);
    }
    let read_only = method != CallMethod::Post || function.volatility != Volatility::Volatile;
    // An expression that fails only for some values would reveal the value and roll back what the call wrote, such
    // as a count of wrong guesses. PostgREST accepts it.
    if !read_only && call::judges_scalar(&function, &read) {
        return Err(ApiError::Query {
            message: "The value of a function that writes cannot be filtered or converted".to_owned(),
            details: format!("{} returns a single value", function.name.name),
        });
    }
    let call = call::plan_call(function, request, &read);
    Ok(DatabasePlan { read, work: Work::Call { call, method }, handler, media, read_only })
}

/// Plans the reading of a function's result, under the name of the relation whose rows it returns, so that it can
/// embed.
fn plan_function_read(
    request: &ApiRequest,
    function: &Arc<Function>,
    cache: &SchemaCache,
    rules: &PlanRules,
) -> Result<(ReadNode, QualifiedName), ApiError> {
    let schema: &Name = &function.name.schema;
    let name = function.returned_relation().map_or(&function.name.name, |relation| &relation.name);
    let relation = QualifiedName::new(schema.clone(), name.clone());
    Ok((read::plan_read(request, name, schema, cache, rules)?, relation))
}

/// Whether exactly `*` is asked for, without embeds.
fn has_default_select(read: &ReadNode) -> bool {
    matches!(read.select.as_slice(), [item] if item.field.is_star()) && read.children.is_empty()
}

fn check_preferences(request: &ApiRequest) -> Result<(), ApiError> {
    let preferences = &request.preferences;
    if preferences.is_strict() && !preferences.unknown.is_empty() {
        return Err(ApiError::Preferences(preferences.unknown.clone()));
    }
    Ok(())
}

fn allowed_on_table(table: &Table) -> String {
    let mut allow = String::from("OPTIONS,GET,HEAD");
    let mut add = |condition: bool, method: &str| {
        if condition {
            allow.push(',');
            allow.push_str(method);
        }
    };
    add(table.insertable, "POST");
    add(table.insertable && table.updatable && !table.primary_key.is_empty(), "PUT");
    add(table.updatable, "PATCH");
    add(table.deletable, "DELETE");
    allow
}

fn allowed_on_function(function: &Function) -> &'static str {
    match function.volatility {
        Volatility::Volatile => "OPTIONS,POST",
        Volatility::Stable | Volatility::Immutable => "OPTIONS,GET,HEAD,POST",
    }
}

/// Embeds that a path named by relation although they have an alias: (relation, alias), from the root down.
pub fn legacy_references(node: &ReadNode) -> Vec<(String, String)> {
    let own = node.alias.clone().filter(|_| node.legacy_reference).map(|alias| (node.target.clone(), alias));
    own.into_iter().chain(node.children.iter().flat_map(legacy_references)).collect()
}
