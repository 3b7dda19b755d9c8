//! Fourth stage: the transaction, and what it answered.
//!
//! Reference: PostgREST `src/library/PostgREST/MainTx.hs`.

use bytes::{Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;

use super::authenticate::Identity;
use super::error::{ApiError, DatabaseFault};
use super::live::Settings;
use super::openapi::{self, Offer};
use super::plan::{DatabasePlan, Work};
use super::request::media::MediaType;
use super::request::prefer::{Count, Tx};
use super::request::{ApiRequest, Mutation};
use super::sql::builder::Sql;
use super::sql::settings::{TransactionSettings, begin, pre_request_query, settings_query};
use super::sql::{StreamStatements, statements, stream_statements};
use super::state::Rest;
use crate::db::{self, DbError, End, Piece, Pool, Query, Row, StreamUnit, Unit};
use crate::schema_cache::{IsolationLevel, SchemaCache};

/// The one row that the main statement gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Rows there are without limit and offset, if asked for.
    pub total: Option<i64>,
    /// Rows of this page, or written.
    pub page: i64,
    /// `column=eq.value` of the inserted row's primary key.
    pub location: Vec<(String, String)>,
    pub body: Bytes,
    /// What SQL set as `response.headers` and `response.status`.
    pub headers: Option<String>,
    pub status: Option<String>,
    /// Rows that an upsert inserted rather than updated.
    pub inserted: Option<i32>,
}

/// What came out of a transaction.
#[derive(Debug)]
pub enum Outcome {
    Rows(ResultSet),
    /// More rows than are worth waiting for; how many is not known yet.
    Stream(RowStream),
    /// The query plan.
    Explained(Bytes),
}

/// The JSON text of a long result: what has come already, and the rest as it comes.
#[derive(Debug)]
pub struct RowStream {
    begun: Option<BytesMut>,
    /// None when all has come, or when it has failed.
    rows: Option<Box<db::RowStream>>,
    /// Of [`Rest::streams`].
    _permit: OwnedSemaphorePermit,
}

impl RowStream {
    /// The next piece; none behind the closing bracket. An error ends the stream in mid-text.
    pub async fn next(&mut self) -> Option<Result<Bytes, DbError>> {
        if let Some(begun) = self.begun.take() {
            return Some(Ok(begun.freeze()));
        }
        match self.rows.as_mut()?.next(encode).await {
            Ok(Piece::Rows(piece)) => Some(Ok(piece.freeze())),
            Ok(Piece::Done { .. }) => {
                self.rows = None;
                Some(Ok(Bytes::from_static(b"]")))
            }
            Err(error) => {
                tracing::warn!(%error, "a result ended before all its rows were sent");
                self.rows = None;
                Some(Err(error))
            }
        }
    }
}

/// A row as an element of the array.
fn encode(number: u64, row: &Row, out: &mut BytesMut) {
    out.extend_from_slice(if number == 0 { b"[" } else { b", \n " });
    out.extend_from_slice(row.slice(0).unwrap_or(b"null"));
}

/// A result up to this length, in bytes, is gathered and answered whole; a longer one too while as many are being sent on
/// as may be.
const GATHERED: usize = 1 << 20;

/// Reads rows as they come. A result that is soon complete is answered like any other.
async fn execute_streaming(
    Rest { pool, streams, .. }: &Rest,
    prelude: &Prelude,
    role: &str,
    statements: &StreamStatements,
) -> Result<Outcome, DbError> {
    let unit = StreamUnit {
        role,
        begin: prelude.begin,
        before: prelude.steps(role),
        rows: statements.rows.query(role),
        after: statements.response.query(""),
    };
    let mut rows = pool.stream(&unit).await?;
    let mut piece = rows.next(encode).await;
    if piece.as_ref().is_err_and(is_stale_statement) {
        // The schema changed under a prepared statement, and nothing has been read yet.
        rows.forget_statements();
        drop(rows);
        rows = pool.stream(&unit).await?;
        piece = rows.next(encode).await;
    }
    let mut body = BytesMut::new();
    loop {
        match piece? {
            Piece::Rows(rows) if body.is_empty() => body = rows,
            Piece::Rows(rows) => body.extend_from_slice(&rows),
            Piece::Done { rows, after } => {
                body.extend_from_slice(if rows == 0 { b"[]" } else { b"]" });
                let setting = |column: usize| after.first().map_or(Ok(None), |row| row.text(column));
                return Ok(Outcome::Rows(ResultSet {
                    page: i64::try_from(rows).unwrap_or(i64::MAX),
                    body: body.freeze(),
                    headers: setting(0)?,
                    status: setting(1)?,
                    ..ResultSet::default()
                }));
            }
        }
        if body.len() > GATHERED
            && let Ok(permit) = streams.clone().try_acquire_owned()
        {
            return Ok(Outcome::Stream(RowStream { begun: Some(body), rows: Some(Box::new(rows)), _permit: permit }));
        }
        piece = rows.next(encode).await;
    }
}

fn is_stale_statement(error: &DbError) -> bool {
    matches!(error, DbError::Refused(refusal) if refusal.is_stale_statement())
}

/// Runs `plan` as `identity`. All checks on the result are made before anything is committed.
pub async fn execute(
    rest: &Rest,
    settings: &Settings,
    identity: &Identity,
    request: &ApiRequest,
    plan: &DatabasePlan,
    cache: &SchemaCache,
) -> Result<Outcome, ApiError> {
    let config = &settings.config;
    let fault = database_fault(settings, identity);
    let prelude = Prelude::new(settings, identity, request, Some(plan));
    if let Some(statements) = stream_statements(plan, request, cache) {
        return execute_streaming(rest, &prelude, &identity.role, &statements).await.map_err(&fault);
    }
    let statements = statements(plan, request, config.max_rows);

    let role = &*identity.role;
    let mut steps = prelude.steps(role);
    let main = steps.len();
    steps.push(statements.main.query(role));
    steps.extend(statements.explain.as_ref().map(|sql| sql.query(role)));

    let rolls_back = match request.preferences.tx {
        Some(Tx::Rollback) => true,
        Some(Tx::Commit) => false,
        None => config.tx_end.rollback,
    };
    // A read has nothing to keep or undo, so its end need not wait for the checks.
    let end = match (rolls_back, has_checks(request, plan) && !plan.read_only) {
        (true, _) => End::Rollback,
        (false, true) => End::Decide,
        (false, false) => End::Commit,
    };
    let answers = rest.pool.run(&Unit { role, begin: prelude.begin, steps, end }).await.map_err(&fault)?;
    let rows = answers.rows.get(main).map(Vec::as_slice).unwrap_or_default();
    if let MediaType::Plan { .. } = plan.media {
        if let Some(open) = answers.open {
            open.end(true).await.map_err(&fault)?;
        }
        return Ok(Outcome::Explained(explained(rows)));
    }
    let mut result = match rows.first() {
        Some(row) => result_set(row).map_err(&fault)?,
        // A handler that is no aggregate gives no row where the function gave none.
        None => ResultSet { total: matches!(plan.work, Work::Call { .. }).then_some(0), ..ResultSet::default() },
    };
    let checked = check(request, plan, &result);
    if let Some(open) = answers.open {
        open.end(checked.is_ok()).await.map_err(&fault)?;
    }
    checked?;
    if statements.explain.is_some() {
        let estimate = answers.rows.get(main + 1).and_then(|rows| planned_rows(rows));
        result.total = match request.preferences.count {
            Some(Count::Planned) => estimate,
            Some(Count::Estimated) if result.total > config.max_rows.and_then(|max| i64::try_from(max).ok()) => {
                result.total.max(estimate)
            }
            _ => result.total,
        };
    }
    Ok(Outcome::Rows(result))
}

/// The main statement as it is written, for the log; values are not in it.
pub fn main_text(request: &ApiRequest, plan: &DatabasePlan, max_rows: Option<u64>) -> String {
    statements(plan, request, max_rows).main.text().to_owned()
}

/// What the root's document may show to `identity`.
pub async fn inspect(
    pool: &Pool,
    settings: &Settings,
    identity: &Identity,
    request: &ApiRequest,
    cache: &SchemaCache,
) -> Result<Offer, ApiError> {
    let fault = database_fault(settings, identity);
    let prelude = Prelude::new(settings, identity, request, None);
    let open = pool.begun(prelude.begin, &prelude.steps(&identity.role)).await.map_err(&fault)?;
    let client = open.client().map_err(&fault)?;
    let offer = openapi::load(client, cache, settings.config.openapi.mode, &request.schema).await;
    let offer = offer.map_err(|error| fault(error.into()))?;
    open.commit().await.map_err(&fault)?;
    Ok(offer)
}

/// How failures look to `identity`: whether a refusal means 'sign in' or 'you may not'.
fn database_fault(settings: &Settings, identity: &Identity) -> impl Fn(DbError) -> ApiError {
    let authenticated = settings.config.anon_role.as_deref() != Some(&*identity.role);
    move |error| ApiError::Database(DatabaseFault::from_db(error, authenticated))
}

struct Prelude {
    begin: &'static str,
    settings: Sql,
    pre_request: Option<Sql>,
}

impl Prelude {
    /// Without a plan nothing but reading is done.
    fn new(settings: &Settings, identity: &Identity, request: &ApiRequest, plan: Option<&DatabasePlan>) -> Self {
        let config = &settings.config;
        let role = settings.roles.find(&identity.role);
        let function = match plan.map(|plan| &plan.work) {
            Some(Work::Call { call, .. }) => Some(&call.function),
            Some(Work::Read { .. } | Work::Write { .. }) | None => None,
        };
        let isolation = function
            .and_then(|function| function.isolation)
            .or_else(|| role.and_then(|role| role.isolation))
            .unwrap_or(IsolationLevel::ReadCommitted);
        let transaction = TransactionSettings {
            schema: &request.schema,
            extra_search_path: &config.extra_search_path,
            role_settings: role.map(|role| role.settings.as_slice()).unwrap_or_default(),
            role: &identity.role,
            claims: &identity.claims_json,
            method: &request.method,
            path: &request.path,
            headers: &request.headers_json,
            cookies: &request.cookies_json,
            timezone: request.preferences.timezone.as_deref(),
            function_settings: function.map(|function| function.hoisted_settings.as_slice()).unwrap_or_default(),
            app_settings: &config.app_settings,
        };
        Self {
            begin: begin(isolation, plan.is_none_or(|plan| plan.read_only)),
            settings: settings_query(&transaction),
            pre_request: config.pre_request.as_ref().map(pre_request_query),
        }
    }

    /// The statements that follow BEGIN; the settings are the same for all roles.
    fn steps<'a>(&'a self, role: &'a str) -> Vec<Query<'a>> {
        let mut steps = Vec::with_capacity(4);
        steps.push(self.settings.query(""));
        steps.extend(self.pre_request.as_ref().map(|sql| sql.query(role)));
        steps
    }
}

/// Whether [`check`] could refuse the result.
fn has_checks(request: &ApiRequest, plan: &DatabasePlan) -> bool {
    let limited = request.preferences.enforced_max_affected().is_some();
    plan.media.is_singular() || limited || matches!(plan.work, Work::Write { mutation: Mutation::SingleUpsert, .. })
}

fn check(request: &ApiRequest, plan: &DatabasePlan, result: &ResultSet) -> Result<(), ApiError> {
    let singular = || match plan.media.is_singular() && result.page != 1 {
        true => Err(ApiError::NotSingular { rows: result.page }),
        false => Ok(()),
    };
    let within_limit = || match request.preferences.enforced_max_affected() {
        Some(most) if result.page > most => Err(ApiError::MaxAffected { rows: result.page }),
        _ => Ok(()),
    };
    match &plan.work {
        Work::Read { .. } | Work::Write { mutation: Mutation::Insert, .. } => singular(),
        Work::Write { mutation: Mutation::SingleUpsert, .. } if result.page != 1 => Err(ApiError::PutMismatch),
        Work::Write { mutation: Mutation::SingleUpsert, .. } => Ok(()),
        Work::Write { mutation: Mutation::Update | Mutation::Delete, .. } | Work::Call { .. } => {
            singular()?;
            within_limit()
        }
    }
}

fn result_set(row: &Row) -> Result<ResultSet, DbError> {
    let location = row.texts(2)?.unwrap_or_default();
    Ok(ResultSet {
        total: row.int8(0)?,
        page: row.int8(1)?.unwrap_or_default(),
        location: location
            .into_iter()
            .filter_map(|pair| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
            .collect(),
        body: row.bytes(3).unwrap_or_default(),
        headers: row.text(4)?,
        status: row.text(5)?,
        inserted: row.int4(6)?,
    })
}

/// The lines of an `EXPLAIN`, each ended.
fn explained(rows: &[Row]) -> Bytes {
    let mut text = Vec::new();
    for row in rows {
        text.extend_from_slice(row.slice(0).unwrap_or_default());
        text.push(b'\n');
    }
    text.into()
}

/// The planner's estimate of rows.
fn planned_rows(rows: &[Row]) -> Option<i64> {
    let plan: serde_json::Value = serde_json::from_slice(rows.first()?.slice(0)?).ok()?;
    plan.get(0)?.get("Plan")?.get("Plan Rows")?.as_i64()
}
