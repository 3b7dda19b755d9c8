//! Function calls: which overload, with which arguments, and which columns of its rows are read.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan.hs` (`callReadPlan`, `callPlan`), `Plan/CallPlan.hs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::mutate::needed_columns;
use super::types::*;
use crate::rest::error::ApiError;
use crate::rest::request::media::MediaType;
use crate::rest::request::payload::Payload;
use crate::rest::request::types::CastName;
use crate::rest::request::{ApiRequest, CallMethod};
use crate::schema_cache::{BodyKind, Function, Parameter, SchemaCache};

#[derive(Clone, Debug)]
pub struct Call {
    pub function: Arc<Function>,
    pub arguments: Arguments,
    /// Columns taken from the function's rows; `*` alone or none: all of them.
    pub returning: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum Arguments {
    /// The body as the single unnamed parameter.
    Whole { parameter: Parameter, body: Bytes },
    /// Each parameter from the query string or a form.
    Direct(Vec<(Parameter, DirectValue)>),
    /// Each parameter from a key of the JSON body.
    FromJson { parameters: Vec<Parameter>, body: Bytes },
}

#[derive(Clone, Debug)]
pub enum DirectValue {
    One(String),
    /// The elements of a VARIADIC parameter, in order.
    Many(Vec<String>),
}

/// Finds the function that `request` calls.
pub fn find_function(
    request: &ApiRequest,
    name: &str,
    method: CallMethod,
    cache: &SchemaCache,
) -> Result<Arc<Function>, ApiError> {
    let mut keys: Vec<&str> = match method {
        CallMethod::Get | CallMethod::Head => request.query.arguments.iter().map(|(key, _)| key.as_str()).collect(),
        CallMethod::Post => request.columns.iter().map(String::as_str).collect(),
    };
    keys.sort_unstable();
    keys.dedup();
    let is_post = method == CallMethod::Post;
    let body = match &request.content_type {
        _ if !is_post => BodyKind::Other,
        MediaType::Json => BodyKind::Json,
        MediaType::PlainText => BodyKind::Text,
        MediaType::Xml => BodyKind::Xml,
        MediaType::OctetStream => BodyKind::Bytes,
        _ => BodyKind::Other,
    };
    Ok(cache.require_function(&request.schema, name, &keys, body, is_post)?.clone())
}

pub fn plan_call(function: Arc<Function>, request: &ApiRequest, read: &ReadNode) -> Call {
    let mut returning = needed_columns(read, &[]);
    let takes_all = returning.is_empty() || returning == ["*"];
    if !takes_all {
        let mut names: BTreeSet<String> = returning.into_iter().collect();
        names.extend(filter_names(read));
        returning = names.into_iter().collect();
    }
    let arguments = arguments(&function, request);
    Call { function, arguments, returning }
}

fn arguments(function: &Function, request: &ApiRequest) -> Arguments {
    let pairs: Option<&[(String, String)]> = match &request.payload {
        None => Some(&request.query.arguments),
        Some(Payload::Form(pairs)) => Some(pairs),
        Some(_) => None,
    };
    let body = || request.payload.as_ref().and_then(|payload| payload.raw()).cloned().unwrap_or_default();
    if let [parameter] = function.parameters.as_slice()
        && parameter.name.is_empty()
    {
        let body = match pairs {
            None => body(),
            Some(pairs) => {
                let object: serde_json::Map<String, serde_json::Value> =
                    pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
                Bytes::from(serde_json::Value::Object(object).to_string())
            }
        };
        return Arguments::Whole { parameter: parameter.clone(), body };
    }
    match pairs {
        None => {
            let given = |parameter: &&Parameter| request.columns.contains(&*parameter.name);
            Arguments::FromJson {
                parameters: function.parameters.iter().filter(given).cloned().collect(),
                body: body(),
            }
        }
        Some(pairs) => {
            let value = |parameter: &Parameter| {
                let mut values = pairs.iter().filter(|(key, _)| **key == *parameter.name).map(|(_, value)| value);
                if parameter.variadic {
                    let values: Vec<String> = values.cloned().collect();
                    (!values.is_empty()).then_some(DirectValue::Many(values))
                } else {
                    values.next_back().map(|value| DirectValue::One(value.clone()))
                }
            };
            let parameters = function.parameters.iter();
            Arguments::Direct(parameters.filter_map(|p| value(p).map(|value| (p.clone(), value))).collect())
        }
    }
}

/// Whether the request applies something to the scalar result of `function` that can fail for some values: a filter,
/// a cast, an aggregate. Functions of a row can be named like columns (`row_to_json`), so names do not help. A cast
/// to text never fails.
pub fn judges_scalar(function: &Function, read: &ReadNode) -> bool {
    let may_fail = |cast: &CastName| cast.as_str() != "text";
    let judges =
        |item: &SelectField| item.aggregate.is_some() || item.cast.iter().chain(&item.aggregate_cast).any(may_fail);
    function.returns_scalar() && (!read.filters.is_empty() || read.select.iter().any(judges))
}

/// Every column (or embed) that a filter of the tree names.
fn filter_names(node: &ReadNode) -> BTreeSet<String> {
    fn collect(logic: &Logic, names: &mut BTreeSet<String>) {
        match logic {
            Logic::Group { members, .. } => members.iter().for_each(|member| collect(member, names)),
            Logic::Filter { field, .. } => {
                names.insert(field.name.clone());
            }
            Logic::Embedded { alias, .. } => {
                names.insert(alias.clone());
            }
        }
    }
    let mut names = BTreeSet::new();
    node.filters.iter().for_each(|logic| collect(logic, &mut names));
    for child in &node.children {
        names.extend(filter_names(child));
    }
    names
}
