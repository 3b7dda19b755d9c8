//! Fourth stage: runs the transaction and reads its result.
//!
//! Reference: PostgREST `src/library/PostgREST/MainTx.hs`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::authenticate::Identity;
use super::costs::{Shape, Target};
use super::error::{ApiError, DatabaseFault, ReadLimitFault};
use super::live::Settings;
use super::openapi::{self, Offer};
use super::plan::types::ReadNode;
use super::plan::{DatabasePlan, Work};
use super::request::media::{MediaType, PlanOption};
use super::request::prefer::{Count, Tx};
use super::request::{ApiRequest, CallMethod, Mutation};
use super::spool::{Sink, Spool};
use super::sql::builder::Sql;
use super::sql::settings::{TransactionSettings, begin, pre_request_query, replayed_query, settings_query};
use super::sql::{RowFormat, StreamStatements, statements, stream_statements};
use super::state::Rest;
use crate::db::replica::{ReadReplica, Subject};
use crate::db::{Asker, DbError, End, ExclusivePool, Piece, Pool, Query, Row, RowStream, StreamUnit, Unit, slow};
use crate::schema_cache::{IsolationLevel, SchemaCache, Volatility};

/// The single row of the main statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// The number of rows without limit and offset, if requested.
    pub total: Option<i64>,
    /// The number of rows in this page, or written.
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

/// The result of a transaction.
#[derive(Debug)]
pub enum Outcome {
    Rows(ResultSet),
    /// A long, buffered body. The number of rows is unknown until PostgreSQL has sent all of them.
    Long {
        result: ResultSet,
        body: LongBody,
    },
    /// The query plan.
    Explained(Bytes),
}

/// A body that is read piece by piece.
#[derive(Debug)]
pub struct LongBody {
    pub spool: Spool,
    /// In bytes, if all of it has arrived.
    pub length: Option<u64>,
}

/// Resets `jit` for one transaction to its value before the API turned it off.
const USUAL_JIT: &str = "select set_config('jit', reset_val, true) from pg_catalog.pg_settings \
                         where name = 'jit' and source = 'session'";

impl Rest {
    /// Records a cancelled statement as slow (usually its role's timeout), and returns the error.
    fn noted(&self, shape: Shape, error: DbError) -> DbError {
        if matches!(&error, DbError::Refused(refusal) if refusal.code == "57014") {
            self.costs.note(shape, LONG);
        }
        error
    }
}

/// The time recorded for a statement with a long result, because it holds its connection for long.
const LONG: Duration = Duration::from_millis(500);

/// A result up to this length, in bytes, is collected and sent as a whole.
const GATHERED: usize = 1 << 20;

/// Reads rows as they arrive. A short result is answered like any other. For a long one, the head is sent as soon as
/// the result turns out to be long, with what the pre-request set for it, unless it has a limit: then the head waits for the number
/// of rows.
async fn execute_streaming(
    Rest { spools, costs, .. }: &Rest,
    pool: &ExclusivePool,
    prelude: &Prelude<'_>,
    asker: &Asker<'_>,
    statements: &StreamStatements,
    shape: Shape,
    fault: impl Fn(DbError) -> ApiError,
) -> Result<Outcome, ApiError> {
    let role = asker.role;
    let format = statements.format;
    let encode = |number: u64, row: &Row, out: &mut BytesMut| format.encode(number, row, out);
    let unit = StreamUnit {
        asker: *asker,
        begin: prelude.begin,
        before: prelude.steps(role),
        ahead: prelude.pre_request.as_ref().map(|_| statements.response.query("")),
        rows: statements.rows.query(role),
        after: statements.response.query(""),
    };
    let mut rows = pool.stream(&unit).await.map_err(&fault)?;
    let started = Instant::now();
    let mut piece = rows.next(encode).await;
    if matches!(&piece, Err(DbError::Refused(refusal)) if refusal.may_be_stale()) {
        rows.restart(&unit).await.map_err(&fault)?;
        piece = rows.next(encode).await;
    }
    // How long the rest takes is up to the client as well.
    slow::note(started.elapsed(), statements.rows.text());
    let mut body = BytesMut::new();
    let mut long: Option<(Sink, Spool, u64)> = None;
    loop {
        match piece.map_err(&fault)? {
            Piece::Rows(rows) => match &mut long {
                Some((sink, _, length)) => {
                    *length += rows.len() as u64;
                    sink.push(rows.freeze()).await?;
                }
                None if body.is_empty() => body = rows,
                None => body.extend_from_slice(&rows),
            },
            Piece::Done { rows, after } => {
                costs.note(shape, started.elapsed());
                let page = i64::try_from(rows).unwrap_or(i64::MAX);
                let mut result = ResultSet { page, ..response_settings(&after).map_err(&fault)? };
                let end = format.end(rows);
                return match long {
                    Some((mut sink, spool, length)) => {
                        sink.push(Bytes::from_static(end)).await?;
                        sink.end(Ok(()));
                        let length = Some(length + end.len() as u64);
                        Ok(Outcome::Long { result, body: LongBody { spool, length } })
                    }
                    None => {
                        body.extend_from_slice(end);
                        result.body = body.freeze();
                        Ok(Outcome::Rows(result))
                    }
                };
            }
        }
        if long.is_none() && body.len() > GATHERED {
            let (mut sink, mut spool) = spools.open(asker.client).await?;
            let begun = std::mem::take(&mut body).freeze();
            let length = begun.len() as u64;
            sink.push(begun).await?;
            if !statements.is_limited {
                costs.note(shape, LONG);
                let result = response_settings(&rows.take_ahead()).map_err(&fault)?;
                spool.filled_by(actix_web::rt::spawn(fill(rows, format, sink)));
                return Ok(Outcome::Long { result, body: LongBody { spool, length: None } });
            }
            long = Some((sink, spool, length));
        }
        piece = rows.next(encode).await;
    }
}

/// What SQL set for the answer, and nothing else.
fn response_settings(rows: &[Row]) -> Result<ResultSet, DbError> {
    let setting = |column: usize| rows.first().map_or(Ok(None), |row| row.text(column));
    Ok(ResultSet { headers: setting(0)?, status: setting(1)?, ..ResultSet::default() })
}

/// Takes the rest of a result at PostgreSQL's speed.
async fn fill(mut rows: RowStream, format: RowFormat, mut sink: Sink) {
    let encode = |number: u64, row: &Row, out: &mut BytesMut| format.encode(number, row, out);
    let outcome = loop {
        let (piece, is_done) = match rows.next(encode).await {
            Ok(Piece::Rows(piece)) => (piece.freeze(), false),
            Ok(Piece::Done { rows, .. }) => (Bytes::from_static(format.end(rows)), true),
            Err(error) => break Err(error.to_string()),
        };
        if let Err(error) = sink.push(piece).await {
            break Err(error.to_string());
        }
        if is_done {
            break Ok(());
        }
        if sink.is_ahead() {
            tokio::task::yield_now().await;
        }
    };
    // Release the connection first; it is closed if its transaction has not ended.
    drop(rows);
    if let Err(error) = &outcome {
        tracing::warn!(%error, "a result ended before all its rows were sent");
    }
    sink.end(outcome);
}

/// Refuses a read that is known to be quick before it is planned, while such reads of its role and client are refused.
pub async fn admit(rest: &Rest, settings: &Settings, caller: &Caller<'_>) -> Result<(), ApiError> {
    // A replica may have room for it.
    if rest.replica.is_some() || !caller.target.is_some_and(|target| rest.costs.is_quick_target(target)) {
        return Ok(());
    }
    let asker = Asker { role: &caller.identity.role, client: caller.client, is_quick: true };
    rest.pool.admit(&asker).await.map_err(database_fault(settings, caller.identity))
}

/// Runs `plan` for `caller`: a read at the replica, if there is one that has come far enough, everything else at the primary.
pub async fn execute(
    rest: &Rest,
    settings: &Settings,
    caller: &Caller<'_>,
    request: &ApiRequest,
    plan: &DatabasePlan,
    cache: &SchemaCache,
) -> Result<Outcome, ApiError> {
    if let Some(replica) = rest.replica.as_ref().filter(|_| may_be_old(plan)) {
        let answer = Box::pin(read_there(rest, replica, settings, caller, request, plan, cache)).await;
        if let Some(answer) = answer {
            return answer;
        }
    }
    execute_at(rest, &Place { pool: &rest.pool, check: None }, settings, caller, request, plan, cache).await
}

/// Whether a replica may answer: reads, and calls by GET or HEAD of functions that say that they write nothing.
fn may_be_old(plan: &DatabasePlan) -> bool {
    let only_reads = match &plan.work {
        Work::Read { .. } => true,
        Work::Write { .. } | Work::Call { method: CallMethod::Post, .. } => false,
        Work::Call { call, .. } => call.function.volatility != Volatility::Volatile,
    };
    only_reads && !matches!(plan.media, MediaType::Plan { .. })
}

/// Reads at the replica. `None` if the primary has to answer, because the replica is not there, not far enough, or refuses: what
/// it lacks and what a standby cannot do are no errors of the request.
async fn read_there(
    rest: &Rest,
    replica: &ReadReplica,
    settings: &Settings,
    caller: &Caller<'_>,
    request: &ApiRequest,
    plan: &DatabasePlan,
    cache: &SchemaCache,
) -> Option<Result<Outcome, ApiError>> {
    let subject = caller.identity.subject.unwrap_or_else(|| Subject::guest(caller.client));
    let target = replica.place(subject).await?;
    let place = Place { pool: replica.pool(), check: Some(replayed_query(target)) };
    let answer = tokio::select! {
        answer = execute_at(rest, &place, settings, caller, request, plan, cache) => answer,
        () = replica.lost() => {
            replica.note(false);
            return None;
        }
    };
    match answer {
        Err(ApiError::Database(fault)) if !fault.is_timeout() => {
            tracing::debug!(?fault, "the replica could not answer a read");
            replica.note(false);
            None
        }
        answer => {
            replica.note(true);
            Some(answer)
        }
    }
}

/// Where a plan runs.
struct Place<'a> {
    pool: &'a ExclusivePool,
    /// Comes first in the transaction, and refuses it on a server that is not far enough.
    check: Option<Sql>,
}

/// Runs `plan` for `caller`. All checks of the result come before the commit.
async fn execute_at(
    rest: &Rest,
    place: &Place<'_>,
    settings: &Settings,
    caller: &Caller<'_>,
    request: &ApiRequest,
    plan: &DatabasePlan,
    cache: &SchemaCache,
) -> Result<Outcome, ApiError> {
    let identity = caller.identity;
    let config = &settings.config;
    let fault = database_fault(settings, identity);
    let prelude = Prelude { check: place.check.as_ref(), ..Prelude::new(settings, identity, request, Some(plan)) };
    if let Some(statements) = stream_statements(plan, request, cache) {
        let shape = rest.costs.shape(statements.rows.text());
        require_affordable(rest, place.pool, settings, caller, plan, &prelude, (&statements.rows, shape)).await?;
        let fault = |error: DbError| fault(rest.noted(shape, error));
        let asker = caller.asker(rest, shape);
        return Box::pin(execute_streaming(rest, place.pool, &prelude, &asker, &statements, shape, fault)).await;
    }
    let statements = statements(plan, request, config.max_rows);
    let shape = rest.costs.shape(statements.main.text());
    if !matches!(plan.media, MediaType::Plan { .. }) {
        require_affordable(rest, place.pool, settings, caller, plan, &prelude, (&statements.main, shape)).await?;
    }

    let role = &*identity.role;
    let mut steps = prelude.steps(role);
    if let MediaType::Plan { options, .. } = &plan.media
        && options.contains(&PlanOption::Settings)
    {
        // A plan shows settings made by others, not the API's own.
        steps.insert(0, Query { text: USUAL_JIT, params: &[], role: "" });
    }
    let main = steps.len();
    steps.push(statements.main.query(role));
    steps.extend(statements.explain.as_ref().map(|sql| sql.query(role)));

    let rolls_back = match request.preferences.tx {
        Some(Tx::Rollback) => true,
        Some(Tx::Commit) => false,
        None => config.tx_end.rollback,
    };
    // A read has nothing to commit or roll back, so its end need not wait for the checks.
    let decided = if rolls_back { End::Rollback } else { End::Commit };
    // Errors at the end (deferred constraints) are reported after those of the checks.
    let end = if has_checks(request, plan) && !plan.read_only { End::Decide } else { decided };
    let asker = caller.asker(rest, shape);
    let unit = Unit { asker, begin: prelude.begin, steps, end };
    let answers = place.pool.run(&unit).await.map_err(|error| fault(rest.noted(shape, error)))?;
    rest.costs.note(shape, answers.took);
    let rows = answers.rows.get(main).map(Vec::as_slice).unwrap_or_default();
    if let MediaType::Plan { .. } = plan.media {
        if let Some(open) = answers.open {
            Box::pin(open.end(decided)).await.map_err(&fault)?;
        }
        return Ok(Outcome::Explained(explained(rows)));
    }
    let mut result = match rows.first() {
        Some(row) => result_set(row).map_err(&fault)?,
        // A handler that is not an aggregate returns no row if the function returned none.
        None => ResultSet { total: matches!(plan.work, Work::Call { .. }).then_some(0), ..ResultSet::default() },
    };
    let checked = check(request, plan, &result);
    if let Some(open) = answers.open {
        open.end(if checked.is_ok() { decided } else { End::Decide }).await.map_err(&fault)?;
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

/// The text of the main statement for the log, without values.
pub fn main_text(request: &ApiRequest, plan: &DatabasePlan, max_rows: Option<u64>) -> String {
    statements(plan, request, max_rows).main.text().to_owned()
}

/// What the OpenAPI document may show to `identity`.
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

/// Who asks.
pub struct Caller<'a> {
    pub identity: &'a Identity,
    pub client: Option<IpAddr>,
    /// Of a read.
    pub target: Option<Target>,
}

impl<'a> Caller<'a> {
    fn asker(&self, rest: &Rest, shape: Shape) -> Asker<'a> {
        if let Some(target) = self.target {
            rest.costs.note_target(target, shape);
        }
        Asker { role: &self.identity.role, client: self.client, is_quick: rest.costs.is_quick(shape) }
    }
}

/// Reads with fewer nested embeds are not estimated.
const DEEP: usize = 3;
/// For tables never analyzed, PostgreSQL estimates thousands of rows instead of a handful, on each level.
const NEVER_ANALYZED: f64 = 1000.0;

/// Refuses a read whose cost estimate exceeds the role's limit. Estimated once per text and role, at the server that runs it.
async fn require_affordable(
    rest: &Rest,
    pool: &ExclusivePool,
    settings: &Settings,
    caller: &Caller<'_>,
    plan: &DatabasePlan,
    prelude: &Prelude<'_>,
    (statement, shape): (&Sql, Shape),
) -> Result<(), ApiError> {
    let role = &*caller.identity.role;
    let most = settings.config.limits.of(settings.is_anon(role)).cost;
    if most == 0.0 || plan.read.children.is_empty() || plan.read.embedded().1 < DEEP {
        return Ok(());
    }
    let epoch = rest.live.schema_epoch();
    let cost = match rest.costs.estimate(shape, role, epoch) {
        Some(cost) => cost,
        None => {
            // Errors in the statement are reported when it runs.
            let estimate = Box::pin(estimate(pool, caller, plan, prelude, statement));
            let Some(cost) = estimate.await else { return Ok(()) };
            rest.costs.keep_estimate(shape, role, epoch, cost);
            cost
        }
    };
    if cost > most { Err(ApiError::TooDear { kind: ReadLimitFault::Cost, asked: cost, most }) } else { Ok(()) }
}

/// PostgreSQL's cost estimate for `statement`.
async fn estimate(
    pool: &ExclusivePool,
    caller: &Caller<'_>,
    plan: &DatabasePlan,
    prelude: &Prelude<'_>,
    statement: &Sql,
) -> Option<f64> {
    let role = &*caller.identity.role;
    let explain = statement.explained();
    let mut relations = BTreeSet::new();
    relations_of(&plan.read, &mut relations);
    let mut analyzed = Sql::new();
    analyzed.raw("SELECT coalesce(bool_and(c.reltuples >= 0), true)::int FROM pg_catalog.pg_class c ");
    analyzed.raw("JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'm') ");
    analyzed.raw("AND (n.nspname, c.relname) IN (");
    analyzed.list(", ", &relations, |sql, (schema, name)| {
        sql.raw("(").bind(schema).raw(", ").bind(name).raw(")");
    });
    analyzed.raw(")");
    let mut steps = prelude.steps(role);
    steps.extend([explain.query(role), analyzed.query("")]);
    let asker = Asker { role, client: caller.client, is_quick: true };
    // The pre-request runs again with the statement itself. Whatever it writes must stay once, or not at all.
    let unit = Unit { asker, begin: prelude.begin, steps, end: End::Rollback };
    let answers = pool.run(&unit).await.ok()?;
    let [.., plan, analyzed] = answers.rows.as_slice() else { return None };
    let cost = planned(plan, "Total Cost")?.as_f64()?;
    let is_analyzed = analyzed.first().is_none_or(|row| row.int4(0).ok().flatten() != Some(0));
    Some(if is_analyzed { cost } else { cost / NEVER_ANALYZED })
}

fn relations_of<'a>(node: &'a ReadNode, found: &mut BTreeSet<(&'a str, &'a str)>) {
    found.insert((&node.from.schema, &node.from.name));
    for child in &node.children {
        relations_of(child, found);
    }
}

/// Converts errors for `identity`: a refusal means either 'sign in' or 'not allowed'.
fn database_fault(settings: &Settings, identity: &Identity) -> impl Fn(DbError) -> ApiError {
    let authenticated = settings.config.anon_role.as_deref() != Some(&*identity.role);
    move |error| ApiError::Database(DatabaseFault::from_db(error, authenticated))
}

struct Prelude<'a> {
    begin: &'static str,
    /// See [`Place::check`].
    check: Option<&'a Sql>,
    settings: Sql,
    pre_request: Option<Sql>,
}

impl Prelude<'_> {
    /// Without a plan the transaction is read-only.
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
            check: None,
            settings: settings_query(&transaction),
            pre_request: config.pre_request.as_ref().map(pre_request_query),
        }
    }

    /// The statements that follow BEGIN; the settings are the same for all roles.
    fn steps<'a>(&'a self, role: &'a str) -> Vec<Query<'a>> {
        let mut steps = Vec::with_capacity(4);
        steps.extend(self.check.map(|sql| sql.query("")));
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

/// The lines of an `EXPLAIN`, each with a newline.
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
    planned(rows, "Plan Rows")?.as_i64()
}

/// A number of the top node of an `EXPLAIN`.
fn planned(rows: &[Row], name: &str) -> Option<serde_json::Value> {
    let mut plan: serde_json::Value = serde_json::from_slice(rows.first()?.slice(0)?).ok()?;
    Some(plan.get_mut(0)?.get_mut("Plan")?.get_mut(name)?.take())
}
