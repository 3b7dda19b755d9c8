//! A connection of a [`Pool`](super::Pool) that counts its unanswered statements.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use foldhash::HashMap;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::cancel::Registration;
use super::socket::Watch;
use super::statement::{self, Ask, Statement};
use super::{replaced, slow};

/// The number of prepared statements kept per connection. When it is exceeded, all are dropped. The server's own are a
/// few hundred.
const PREPARED: usize = 1000;

/// A parameter's value.
pub type Value<'a> = &'a (dyn ToSql + Sync);

/// An answer to come. Boxed: an async function would be compiled again by each crate that awaits it, with all of tokio-postgres
/// below it.
type Asking<'a, T> = BoxFuture<'a, Result<T, Error>>;
type Prepared<'a> = Option<&'a tokio_postgres::Statement>;

/// A connection. Statements that are awaited together are sent together.
pub struct Client {
    inner: tokio_postgres::Client,
    prepared: Mutex<HashMap<Box<str>, Statement>>,
    watch: Watch,
    registration: Option<Registration>,
    /// [`replaced::times`] when it was opened.
    database: u64,
    /// Whether what is prepared is still there later: not behind a pooler that hands connections on between transactions.
    prepares: bool,
    /// Statements without an answer, including those whose caller no longer waits.
    unanswered: AtomicUsize,
    in_transaction: AtomicBool,
}

/// A statement in flight. If dropped without [`Asked::answered`], it stays unanswered.
struct Asked<'a>(&'a Client);

impl Asked<'_> {
    fn answered(self) {
        self.0.unanswered.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    pub(super) fn new(inner: tokio_postgres::Client, watch: Watch, registration: Registration, database: u64) -> Self {
        Self {
            inner,
            prepares: true,
            prepared: Mutex::default(),
            watch,
            registration: Some(registration),
            database,
            unanswered: AtomicUsize::new(0),
            in_transaction: AtomicBool::new(false),
        }
    }

    /// Prepares nothing from now on.
    pub(super) fn prepare_nothing(&mut self) {
        self.prepares = false;
    }

    /// Whether its database has been replaced by another of the same name.
    pub(super) fn is_of_former_database(&self) -> bool {
        self.database != replaced::times()
    }

    async fn ask<T>(&self, text: &str, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        self.watch.raise();
        let on_its_way = Asked(self);
        let since = Instant::now();
        let answer = asked.await;
        on_its_way.answered();
        slow::note(since.elapsed(), text);
        if answer.as_ref().err().and_then(Error::as_db_error).is_some_and(|error| error.code().code() == "0A000") {
            // A statement that no longer fits the schema is prepared again next time.
            self.prepared.lock().clear();
        }
        answer
    }

    /// The statement of `sql`, prepared once on this connection.
    pub fn prepare_cached<'a>(&'a self, sql: &'a str) -> Asking<'a, Statement> {
        Box::pin(async move {
            if !self.prepares {
                return Ok(Statement::unprepared(sql));
            }
            if let Some(statement) = self.prepared.lock().get(sql) {
                return Ok(statement.clone());
            }
            let statement = self.prepare(sql).await?;
            let mut prepared = self.prepared.lock();
            if prepared.len() >= PREPARED {
                prepared.clear();
            }
            prepared.insert(sql.into(), statement.clone());
            Ok(statement)
        })
    }

    /// Statements that are all prepared already, or need not be.
    pub fn prepared_each<const N: usize>(&self, statements: [&str; N]) -> Option<[Statement; N]> {
        if !self.prepares {
            return Some(statements.map(Statement::unprepared));
        }
        let known = self.prepared.lock();
        let found: Option<Vec<Statement>> = statements.iter().map(|sql| known.get(*sql).cloned()).collect();
        found.and_then(|found| found.try_into().ok())
    }

    /// [`Client::prepare_cached`] for several.
    pub async fn prepare_each<const N: usize>(&self, statements: [&str; N]) -> Result<[Statement; N], Error> {
        let mut prepared = Vec::with_capacity(N);
        for sql in statements {
            prepared.push(self.prepare_cached(sql).await?);
        }
        match prepared.try_into() {
            Ok(prepared) => Ok(prepared),
            Err(_) => unreachable!("there is one for each"),
        }
    }

    /// Prepares a statement that is not kept.
    pub fn prepare<'a>(&'a self, sql: &'a str) -> Asking<'a, Statement> {
        Box::pin(async move { Ok(Statement::prepared(sql, self.ask(sql, self.inner.prepare(sql)).await?)) })
    }

    pub fn query<'a>(&'a self, statement: &'a (impl Ask + ?Sized), params: &'a [Value<'a>]) -> Asking<'a, Vec<Row>> {
        self.ask_rows(statement.text(), statement.prepared(), params)
    }

    fn ask_rows<'a>(&'a self, text: &'a str, prepared: Prepared<'a>, params: &'a [Value<'a>]) -> Asking<'a, Vec<Row>> {
        Box::pin(async move {
            match prepared {
                Some(prepared) => self.ask(text, self.inner.query(prepared, params)).await,
                None if self.prepares => self.ask(text, self.inner.query(text, params)).await,
                None => self.ask(text, statement::unprepared(&self.inner, text, params)).await,
            }
        })
    }

    /// The only row, or none. Several are an error, as they are to tokio-postgres.
    pub fn query_opt<'a>(
        &'a self,
        statement: &'a (impl Ask + ?Sized),
        params: &'a [Value<'a>],
    ) -> Asking<'a, Option<Row>> {
        self.ask_row(statement.text(), statement.prepared(), params)
    }

    fn ask_row<'a>(
        &'a self,
        text: &'a str,
        prepared: Prepared<'a>,
        params: &'a [Value<'a>],
    ) -> Asking<'a, Option<Row>> {
        Box::pin(async move {
            match prepared {
                Some(prepared) => self.ask(text, self.inner.query_opt(prepared, params)).await,
                None if self.prepares => self.ask(text, self.inner.query_opt(text, params)).await,
                None => self.ask(text, self.inner.query_typed_opt(text, &statement::typed(params))).await,
            }
        })
    }

    pub fn query_one<'a>(&'a self, statement: &'a (impl Ask + ?Sized), params: &'a [Value<'a>]) -> Asking<'a, Row> {
        self.ask_one(statement.text(), statement.prepared(), params)
    }

    fn ask_one<'a>(&'a self, text: &'a str, prepared: Prepared<'a>, params: &'a [Value<'a>]) -> Asking<'a, Row> {
        Box::pin(async move {
            match prepared {
                Some(prepared) => self.ask(text, self.inner.query_one(prepared, params)).await,
                None if self.prepares => self.ask(text, self.inner.query_one(text, params)).await,
                None => self.ask(text, self.inner.query_typed_one(text, &statement::typed(params))).await,
            }
        })
    }

    /// One round trip, nothing prepared.
    pub fn query_typed<'a>(&'a self, sql: &'a str, params: &'a [(Value<'a>, Type)]) -> Asking<'a, Vec<Row>> {
        Box::pin(self.ask(sql, self.inner.query_typed(sql, params)))
    }

    /// One round trip, nothing prepared.
    pub fn query_typed_one<'a>(&'a self, sql: &'a str, params: &'a [(Value<'a>, Type)]) -> Asking<'a, Row> {
        Box::pin(self.ask(sql, self.inner.query_typed_one(sql, params)))
    }

    /// Runs a statement and returns the number of affected rows.
    pub fn execute<'a>(&'a self, statement: &'a (impl Ask + ?Sized), params: &'a [Value<'a>]) -> Asking<'a, u64> {
        self.ask_count(statement.text(), statement.prepared(), params)
    }

    fn ask_count<'a>(&'a self, text: &'a str, prepared: Prepared<'a>, params: &'a [Value<'a>]) -> Asking<'a, u64> {
        Box::pin(async move {
            match prepared {
                Some(prepared) => self.ask(text, self.inner.execute(prepared, params)).await,
                None if self.prepares => self.ask(text, self.inner.execute(text, params)).await,
                None => self.ask(text, self.inner.execute_typed(text, &statement::typed(params))).await,
            }
        })
    }

    /// Runs statements without parameters. One that begins with `begin` opens a transaction, `commit` and `rollback` end
    /// it.
    pub fn batch_execute<'a>(&'a self, sql: &'a str) -> Asking<'a, ()> {
        Box::pin(async move {
            if sql.starts_with("begin") {
                self.in_transaction.store(true, Ordering::Relaxed);
            }
            let answer = self.ask(sql, self.inner.batch_execute(sql)).await;
            if answer.is_ok() && (sql.starts_with("commit") || sql.starts_with("rollback")) {
                self.in_transaction.store(false, Ordering::Relaxed);
            }
            answer
        })
    }

    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether a transaction is open on it.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction.load(Ordering::Relaxed)
    }

    /// Whether a statement may be running.
    pub(super) fn is_busy(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) > 0
    }

    /// Records that no caller is waiting for an answer on it.
    pub(super) fn rest(&self) {
        self.watch.lower();
    }

    /// Cancels a running statement and closes the connection.
    pub(super) fn abandon(mut self) {
        let registration = self.registration.take();
        if self.is_busy()
            && let Some(registration) = registration
        {
            registration.cancel(self);
        }
    }
}
