//! All errors of the REST API, and their responses.
//!
//! Reference: PostgREST `src/library/PostgREST/Error.hs`, `Error/Types.hs`.

mod database;

use serde_json::Value;

use super::spool::{NoRoom, SpoolError};
use crate::schema_cache::LookupError;

pub use database::{DatabaseFault, RaiseFault};

/// A limit of this server that the reference does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Parameters,
    Nesting,
    Url,
    Body,
    BodyNesting,
    BodyKeys,
}

/// Which limit a read exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadLimitFault {
    Depth,
    Embeds,
    /// As PostgreSQL estimates it.
    Cost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeFault {
    NegativeLimit,
    LowerAboveUpper,
    /// An offset beyond the known total.
    OutOfBounds {
        offset: i128,
        total: i64,
    },
}

/// An error of a request.
#[derive(Debug)]
pub enum ApiError {
    /// A part of the query string that cannot be parsed.
    Query {
        message: String,
        details: String,
    },
    RpcMethod(String),
    /// The body is invalid; the text says why.
    Body(String),
    Range(RangeFault),
    /// PUT without exactly the primary key as filters.
    PutFilters,
    Schema {
        requested: String,
        exposed: Vec<String>,
    },
    /// None of these is available.
    MediaTypes(Vec<String>),
    /// A path does not name an embedded resource; `renamed`: (target, alias) if only the alias would work.
    NotEmbedded {
        name: String,
        renamed: Option<(String, String)>,
    },
    ResponseHeaders,
    ResponseStatus,
    PutRange,
    PutMismatch,
    NotSingular {
        rows: i64,
    },
    Method(String),
    RelatedOrder {
        origin: String,
        target: String,
    },
    Preferences(Vec<String>),
    Aggregates,
    MaxAffected {
        rows: i64,
    },
    Path,
    RootDisabled,
    SpreadAggregates,
    MaxAffectedSingle,
    Lookup(LookupError),
    Token(crate::jwt::JwtError),
    NoSchemaCache,
    Database(DatabaseFault),
    TooLarge(Limit),
    /// A read beyond the role's limits.
    TooDear {
        kind: ReadLimitFault,
        asked: f64,
        most: f64,
    },
    /// The budget for unread long answers is used up.
    NoRoom,
    /// The budget for request bodies is used up.
    NoRoomForBody,
    /// A long answer could not be buffered; the cause is in the log.
    Spool,
    /// A query string that is not UTF-8; answered in plain text.
    NotUtf8,
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        Self::Lookup(error)
    }
}

impl From<NoRoom> for ApiError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl From<SpoolError> for ApiError {
    fn from(error: SpoolError) -> Self {
        match error {
            SpoolError::NoRoom(_) => Self::NoRoom,
            SpoolError::File(error) => {
                tracing::error!(%error, "a long answer could not be kept in a temporary file");
                Self::Spool
            }
        }
    }
}

impl ApiError {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Query { .. }
            | Self::Body(_)
            | Self::NotEmbedded { .. }
            | Self::PutRange
            | Self::PutMismatch
            | Self::RelatedOrder { .. }
            | Self::Preferences(_)
            | Self::Aggregates
            | Self::MaxAffected { .. }
            | Self::SpreadAggregates
            | Self::MaxAffectedSingle
            | Self::TooDear { .. } => 400,
            Self::RpcMethod(_) | Self::PutFilters | Self::Method(_) => 405,
            Self::Range(_) => 416,
            Self::Schema { .. } | Self::MediaTypes(_) | Self::NotSingular { .. } => 406,
            Self::Path | Self::RootDisabled => 404,
            Self::ResponseHeaders | Self::ResponseStatus | Self::NotUtf8 | Self::Spool => 500,
            Self::NoSchemaCache | Self::NoRoom | Self::NoRoomForBody => 503,
            Self::Lookup(error) => error.status(),
            Self::Token(error) => error.status(),
            Self::Database(fault) => fault.status(),
            Self::TooLarge(Limit::Url) => 414,
            Self::TooLarge(Limit::Body) => 413,
            Self::TooLarge(Limit::Parameters | Limit::Nesting | Limit::BodyNesting | Limit::BodyKeys) => 400,
        }
    }

    /// The code in the body and in `Proxy-Status`.
    pub fn code(&self) -> String {
        let code = match self {
            Self::Query { .. } => "PGRST100",
            Self::RpcMethod(_) => "PGRST101",
            Self::Body(_) => "PGRST102",
            Self::Range(_) => "PGRST103",
            Self::PutFilters => "PGRST105",
            Self::Schema { .. } => "PGRST106",
            Self::MediaTypes(_) => "PGRST107",
            Self::NotEmbedded { .. } => "PGRST108",
            Self::ResponseHeaders => "PGRST111",
            Self::ResponseStatus => "PGRST112",
            Self::PutRange => "PGRST114",
            Self::PutMismatch => "PGRST115",
            Self::NotSingular { .. } => "PGRST116",
            Self::Method(_) => "PGRST117",
            Self::RelatedOrder { .. } => "PGRST118",
            Self::Preferences(_) => "PGRST122",
            Self::Aggregates => "PGRST123",
            Self::MaxAffected { .. } => "PGRST124",
            Self::Path => "PGRST125",
            Self::RootDisabled => "PGRST126",
            Self::SpreadAggregates => "PGRST127",
            Self::MaxAffectedSingle => "PGRST128",
            Self::Lookup(error) => error.code(),
            Self::Token(error) => error.code(),
            Self::NoSchemaCache => "PGRST002",
            Self::NoRoom | Self::NoRoomForBody => "PGRST003",
            Self::Spool => "PGRSTX00",
            Self::Database(fault) => return fault.code(),
            Self::TooLarge(Limit::Parameters | Limit::Nesting | Limit::Url) => "PGRST100",
            Self::TooLarge(Limit::Body | Limit::BodyNesting | Limit::BodyKeys) => "PGRST102",
            Self::NotUtf8 | Self::TooDear { .. } => "PGRST100",
        };
        code.to_owned()
    }

    pub fn message(&self) -> String {
        let text = match self {
            Self::Query { message, .. } | Self::Body(message) => return message.clone(),
            Self::RpcMethod(method) => return format!("Cannot use the {method} method on RPC"),
            Self::Range(_) => "Requested range not satisfiable",
            Self::PutFilters => "Filters must include all and only primary key columns with 'eq' operators",
            Self::Schema { requested, .. } => return format!("Invalid schema: {requested}"),
            Self::MediaTypes(names) => {
                return format!("None of these media types are available: {}", names.join(", "));
            }
            Self::NotEmbedded { name, .. } => {
                return format!("'{name}' is not an embedded resource in this request");
            }
            Self::ResponseHeaders => {
                "response.headers guc must be a JSON array composed of objects with a single key and a string value"
            }
            Self::ResponseStatus => "response.status guc must be a valid status code",
            Self::PutRange => "limit/offset querystring parameters are not allowed for PUT",
            Self::PutMismatch => "Payload values do not match URL in primary key column(s)",
            Self::NotSingular { .. } => "Cannot coerce the result to a single JSON object",
            Self::Method(method) => return format!("Unsupported HTTP method: {method}"),
            Self::RelatedOrder { target, .. } => return format!("A related order on '{target}' is not possible"),
            Self::Preferences(_) => "Invalid preferences given with handling=strict",
            Self::Aggregates => "Use of aggregate functions is not allowed",
            Self::MaxAffected { .. } => "Query result exceeds max-affected preference constraint",
            Self::Path => "Invalid path specified in request URL",
            Self::RootDisabled => "Root endpoint metadata is disabled",
            Self::SpreadAggregates => "Feature not implemented",
            Self::MaxAffectedSingle => {
                "Function must return SETOF or TABLE when max-affected preference is used with handling=strict"
            }
            Self::Lookup(error) => return error.message(),
            Self::Token(error) => return error.message(),
            Self::NoSchemaCache => "Could not query the database for the schema cache. Retrying.",
            Self::Database(fault) => return fault.message(),
            Self::TooLarge(Limit::Parameters) => "Too many query parameters",
            Self::TooLarge(Limit::Nesting) => "The query string is nested too deeply",
            Self::TooLarge(Limit::Url) => "The request URL is too long",
            Self::TooLarge(Limit::BodyNesting) => "The request body is nested too deeply",
            Self::TooLarge(Limit::BodyKeys) => "The request body has too many keys",
            Self::TooLarge(Limit::Body) => "The request body is too large",
            Self::TooDear { kind: ReadLimitFault::Depth, .. } => "The embedded resources are nested too deeply",
            Self::TooDear { kind: ReadLimitFault::Embeds, .. } => "There are too many embedded resources",
            Self::TooDear { kind: ReadLimitFault::Cost, .. } => "The request is estimated to cost too much",
            Self::NoRoom => "Too many long answers wait to be read.",
            Self::NoRoomForBody => "Too many request bodies are being received.",
            Self::Spool => "The answer could not be kept.",
            Self::NotUtf8 => "Something went wrong",
        };
        text.to_owned()
    }

    pub fn details(&self) -> Option<Value> {
        let text = match self {
            Self::Query { details, .. } => details.clone(),
            Self::Range(RangeFault::NegativeLimit) => "Limit should be greater than or equal to zero.".to_owned(),
            Self::Range(RangeFault::LowerAboveUpper) => {
                "The lower boundary must be lower than or equal to the upper boundary in the Range header.".to_owned()
            }
            Self::Range(RangeFault::OutOfBounds { offset, total }) => {
                format!("An offset of {offset} was requested, but there are only {total} rows.")
            }
            Self::NotEmbedded { renamed: Some(_), .. } => {
                "Target names are not allowed in filters if they have an alias".to_owned()
            }
            Self::NotSingular { rows } => format!("The result contains {rows} rows"),
            Self::RelatedOrder { origin, target } => {
                format!("'{origin}' and '{target}' do not form a many-to-one or one-to-one relationship")
            }
            Self::Preferences(words) => format!("Invalid preferences: {}", words.join(", ")),
            Self::MaxAffected { rows } => format!("The query affects {rows} rows"),
            Self::SpreadAggregates => {
                "Aggregates are not implemented for one-to-many or many-to-many spreads.".to_owned()
            }
            Self::TooDear { kind: ReadLimitFault::Depth, asked, most } => {
                format!("{asked} levels are embedded in one another, {most} are allowed for this role.")
            }
            Self::TooDear { kind: ReadLimitFault::Embeds, asked, most } => {
                format!("{asked} resources are embedded, {most} are allowed for this role.")
            }
            Self::TooDear { kind: ReadLimitFault::Cost, asked, most } => {
                format!("PostgreSQL estimates {asked:.0} units, {most:.0} are allowed for this role.")
            }
            Self::Lookup(error) => return error.details(),
            Self::Token(error) => return error.details().map(Value::from),
            Self::Database(fault) => return fault.details().map(Value::String),
            Self::RpcMethod(_)
            | Self::Body(_)
            | Self::PutFilters
            | Self::Schema { .. }
            | Self::MediaTypes(_)
            | Self::NotEmbedded { renamed: None, .. }
            | Self::ResponseHeaders
            | Self::ResponseStatus
            | Self::PutRange
            | Self::PutMismatch
            | Self::Method(_)
            | Self::Aggregates
            | Self::Path
            | Self::RootDisabled
            | Self::MaxAffectedSingle
            | Self::NoSchemaCache
            | Self::TooLarge(_)
            | Self::NoRoom
            | Self::NoRoomForBody
            | Self::Spool
            | Self::NotUtf8 => return None,
        };
        Some(Value::String(text))
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Schema { exposed, .. } => {
                Some(format!("Only the following schemas are exposed: {}", exposed.join(", ")))
            }
            Self::NotEmbedded { renamed: Some((target, alias)), .. } => {
                Some(format!("Change '{target}' to '{alias}' in filters, orders or limits."))
            }
            Self::NotEmbedded { name, renamed: None } => {
                Some(format!("Verify that '{name}' is included in the 'select' query parameter."))
            }
            Self::Lookup(error) => error.hint(),
            Self::Database(fault) => fault.hint(),
            Self::TooDear { .. } => {
                Some("Embed fewer resources in one another, or set a limit on each level.".to_owned())
            }
            Self::TooLarge(Limit::Parameters) => Some("Send fewer filters, or gather values with 'in'.".to_owned()),
            _ => None,
        }
    }

    /// The headers of this error.
    pub fn headers(&self) -> Vec<(String, String)> {
        match self {
            Self::Token(error) => {
                error.www_authenticate().map(|value| vec![("WWW-Authenticate".to_owned(), value)]).unwrap_or_default()
            }
            Self::Database(fault) => fault.headers(),
            Self::NoRoom | Self::NoRoomForBody => vec![("Retry-After".to_owned(), "5".to_owned())],
            _ => Vec::new(),
        }
    }

    /// The reason phrase, if SQL chose one.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Database(fault) => fault.reason(),
            _ => None,
        }
    }

    /// The JSON body. `minimal` leaves out details and hint (`client-error-verbosity`).
    pub fn body(&self, minimal: bool) -> String {
        let mut body = serde_json::Map::new();
        body.insert("code".to_owned(), self.code().into());
        if !minimal {
            body.insert("details".to_owned(), self.details().unwrap_or(Value::Null));
            body.insert("hint".to_owned(), self.hint().map_or(Value::Null, Value::String));
        }
        body.insert("message".to_owned(), self.message().into());
        Value::Object(body).to_string()
    }
}
