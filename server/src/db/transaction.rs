//! Transactions named for who acts.
//!
//! A transaction holds a [`Lease`]. Dropped before it ended (the client went away, an error took the short way out), it
//! is undone as the lease does it.

use std::error::Error as StdError;

use bytes::BytesMut;
use futures_util::future::try_join;
use tokio_postgres::error::{DbError as DbRefusal, SqlState};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use super::{Client, DbError, Lease, Param, Pool, Query};
use crate::jwt::caller::Caller;

/// An open transaction on a connection of its own.
pub struct Transaction {
    lease: Lease,
}

impl Pool {
    /// A transaction as `caller`: BEGIN and the settings leave in one round trip. `settings` are further
    /// transaction-local settings (`request.method`, `request.headers`, …), set before the role.
    pub async fn as_caller(&self, caller: &Caller, settings: &[(&str, &str)]) -> Result<Transaction, DbError> {
        let mut names_and_values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(settings.len() * 2 + 4);
        let mut pairs: Vec<(&str, &str)> = settings.to_vec();
        pairs.push(("request.jwt.claims", &caller.claims));
        pairs.push(("role", &caller.role));
        let mut sql = String::from("select ");
        for (position, (name, value)) in pairs.iter().enumerate() {
            if position > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&format!("set_config(${}, ${}, true)", position * 2 + 1, position * 2 + 2));
            names_and_values.push(name);
            names_and_values.push(value);
        }
        let transaction = Transaction { lease: self.lease().await? };
        let client = &transaction.lease;
        let settings_statement = client.prepare_cached(&sql).await?;
        let begun = try_join(client.batch_execute("begin"), client.query(&settings_statement, &names_and_values)).await;
        if let Err(error) = begun {
            return Err(match error.as_db_error() {
                Some(refusal) if is_about_role(refusal) => DbError::Role(refusal.message().to_owned()),
                _ => error.into(),
            });
        }
        Ok(transaction)
    }

    /// A transaction that begins with these statements, one after another; what they answer is not kept.
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

/// Of the settings that a transaction begins with, only the role can be refused so.
fn is_about_role(refusal: &DbRefusal) -> bool {
    [SqlState::INVALID_PARAMETER_VALUE, SqlState::INSUFFICIENT_PRIVILEGE].contains(refusal.code())
}

impl Transaction {
    /// The connection, for statements of this transaction.
    pub fn client(&self) -> Result<&Client, DbError> {
        Ok(&self.lease)
    }

    /// Makes it last. On failure nothing has happened.
    pub async fn commit(self) -> Result<(), DbError> {
        self.end("commit").await
    }

    /// Undoes it and gives the connection back.
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
