//! Transactions named for who acts.
//!
//! A transaction holds a [`Lease`]. If it is dropped before its end (the client went away, or an error returned early),
//! the lease rolls it back.

use std::error::Error as StdError;

use bytes::BytesMut;
use futures_util::join;
use tokio_postgres::error::{DbError as DbRefusal, SqlState};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use super::{Client, DbError, Lease, Param, Pool, Query, Statement, Value};
use crate::jwt::caller::Caller;

/// An open transaction on a connection of its own.
pub struct Transaction {
    lease: Lease,
}

impl Pool {
    /// Opens a transaction as `caller`: BEGIN and the settings take one round trip. `settings` are
    /// further transaction-local settings (`request.method`, `request.headers`, …), set before the role.
    pub async fn as_caller(&self, caller: &Caller, settings: &[(&str, &str)]) -> Result<Transaction, DbError> {
        let (transaction, ()) = self.as_caller_with(caller, settings, [], async |_, []| ()).await?;
        Ok(transaction)
    }

    /// The same together with the first statements in one round trip: `ask` gets them prepared, and sends all of them
    /// before it awaits an answer.
    pub async fn as_caller_with<T, const N: usize>(
        &self,
        caller: &Caller,
        settings: &[(&str, &str)],
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> T,
    ) -> Result<(Transaction, T), DbError> {
        let mut pairs: Vec<(&str, &str)> = settings.to_vec();
        pairs.push(("request.jwt.claims", &caller.claims));
        pairs.push(("role", &caller.role));
        let transaction = Transaction { lease: self.lease().await? };
        let client = &transaction.lease;
        let settings = client.prepare_cached(&settings_sql(pairs.len())).await?;
        let values: Vec<Value<'_>> =
            pairs.iter().flat_map(|(name, value)| [name as Value<'_>, value as Value<'_>]).collect();
        let begin = async { join!(client.batch_execute("begin"), client.query(&settings, &values)) };
        let (begun, asked) = match client.prepared_each(statements) {
            Some(prepared) => join!(begin, ask(client, prepared)),
            // The login role may not see the objects that they name, so they are prepared as the caller.
            None => {
                check_begun(begin.await)?;
                let prepared = client.prepare_each(statements).await?;
                ((Ok(()), Ok(Vec::new())), ask(client, prepared).await)
            }
        };
        check_begun(begun)?;
        Ok((transaction, asked))
    }

    /// Runs statements as `caller` and rolls them back, in one round trip including ROLLBACK. `ask` is as above.
    pub async fn look_as_caller<T, const N: usize>(
        &self,
        caller: &Caller,
        settings: &[(&str, &str)],
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> T,
    ) -> Result<T, DbError> {
        let with_end = async |client: &Client, prepared: [Statement; N]| {
            join!(ask(client, prepared), client.batch_execute("rollback"))
        };
        let (_, (asked, undone)) = self.as_caller_with(caller, settings, statements, with_end).await?;
        undone?;
        Ok(asked)
    }

    /// Runs statements as `caller` and commits them, in one round trip including COMMIT, which rolls back if one of them failed. Returns
    /// what became of COMMIT beside their results. `ask` is as above.
    pub async fn commit_as_caller<T, const N: usize>(
        &self,
        caller: &Caller,
        settings: &[(&str, &str)],
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> T,
    ) -> Result<(T, Result<(), DbError>), DbError> {
        let with_end = async |client: &Client, prepared: [Statement; N]| {
            join!(ask(client, prepared), client.batch_execute("commit"))
        };
        let (_, (asked, committed)) = self.as_caller_with(caller, settings, statements, with_end).await?;
        Ok((asked, committed.map_err(DbError::from)))
    }

    /// Opens a transaction with these statements, one after another. Their results are discarded.
    pub async fn begun(&self, begin: &str, statements: &[Query<'_>]) -> Result<Transaction, DbError> {
        let transaction = Transaction { lease: self.lease().await? };
        let client = &transaction.lease;
        client.batch_execute(begin).await?;
        for statement in statements {
            let params: Vec<(&(dyn ToSql + Sync), Type)> =
                statement.params.iter().map(|param| (param as &(dyn ToSql + Sync), Type::UNKNOWN)).collect();
            client.query_typed(statement.text, &params).await?;
        }
        Ok(transaction)
    }

    /// A transaction as the pool's own login role.
    pub async fn as_login(&self) -> Result<Transaction, DbError> {
        let transaction = Transaction { lease: self.lease().await? };
        transaction.lease.batch_execute("begin").await?;
        Ok(transaction)
    }
}

type Begun = (Result<(), tokio_postgres::Error>, Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>);

fn check_begun((begun, set): Begun) -> Result<(), DbError> {
    begun.and(set.map(drop)).map_err(|error| match error.as_db_error() {
        Some(refusal) if is_about_role(refusal) => DbError::Role(refusal.message().to_owned()),
        _ => error.into(),
    })
}

/// SQL that sets `count` settings for the transaction.
fn settings_sql(count: usize) -> String {
    let each = (0..count).map(|at| format!("set_config(${}, ${}, true)", at * 2 + 1, at * 2 + 2));
    format!("select {}", each.collect::<Vec<_>>().join(", "))
}

/// Among the settings at the start of a transaction, only the role can cause these refusals.
fn is_about_role(refusal: &DbRefusal) -> bool {
    [SqlState::INVALID_PARAMETER_VALUE, SqlState::INSUFFICIENT_PRIVILEGE].contains(refusal.code())
}

impl Transaction {
    /// The connection, for statements of this transaction.
    pub fn client(&self) -> Result<&Client, DbError> {
        Ok(&self.lease)
    }

    /// Commits. On failure nothing is stored.
    pub async fn commit(self) -> Result<(), DbError> {
        self.end("commit").await
    }

    /// Rolls back and returns the connection.
    pub async fn rollback(self) -> Result<(), DbError> {
        self.end("rollback").await
    }

    async fn end(self, how: &str) -> Result<(), DbError> {
        Ok(self.lease.batch_execute(how).await?)
    }
}

impl ToSql for Param {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let (Param::Text(bytes) | Param::Binary(bytes)) = self;
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            Param::Text(_) => Format::Text,
            Param::Binary(_) => Format::Binary,
        }
    }

    to_sql_checked!();
}
