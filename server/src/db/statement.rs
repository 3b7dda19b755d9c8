//! A statement that can be run again on the connection that it was made for, and the texts that statements are known by.

use std::sync::Arc;

use bytes::BytesMut;
use tokio_postgres::types::Type;
use tokio_postgres::{Column, Error, Row};

use super::Value;

/// A statement with its text: prepared by PostgreSQL, or sent each time if a pooler passes connections on between
/// transactions and does not know what was prepared on them.
#[derive(Clone)]
pub struct Statement {
    text: Arc<str>,
    prepared: Option<tokio_postgres::Statement>,
}

impl Statement {
    pub(super) fn prepared(text: &str, prepared: tokio_postgres::Statement) -> Self {
        Self { text: text.into(), prepared: Some(prepared) }
    }

    /// The columns of its rows, where PostgreSQL was asked for them.
    pub fn columns(&self) -> &[Column] {
        self.prepared.as_ref().map(tokio_postgres::Statement::columns).unwrap_or_default()
    }

    pub(super) fn unprepared(text: &str) -> Self {
        Self { text: text.into(), prepared: None }
    }
}

/// What can be asked of a connection: text, or a [`Statement`].
pub trait Ask {
    fn text(&self) -> &str;
    fn prepared(&self) -> Option<&tokio_postgres::Statement>;
}

impl Ask for str {
    fn text(&self) -> &str {
        self
    }

    fn prepared(&self) -> Option<&tokio_postgres::Statement> {
        None
    }
}

impl Ask for String {
    fn text(&self) -> &str {
        self
    }

    fn prepared(&self) -> Option<&tokio_postgres::Statement> {
        None
    }
}

impl Ask for Statement {
    fn text(&self) -> &str {
        &self.text
    }

    fn prepared(&self) -> Option<&tokio_postgres::Statement> {
        self.prepared.as_ref()
    }
}

/// Types of the values in our own statements, sent with the statement if PostgreSQL is not asked to describe it first.
const TYPES: [Type; 28] = [
    Type::TEXT,
    Type::INT8,
    Type::INT4,
    Type::INT2,
    Type::BOOL,
    Type::UUID,
    Type::TIMESTAMPTZ,
    Type::JSONB,
    Type::BYTEA,
    Type::DATE,
    Type::TIMESTAMP,
    Type::FLOAT8,
    Type::FLOAT4,
    Type::TEXT_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::INT4_ARRAY,
    Type::BYTEA_ARRAY,
    Type::JSONB_ARRAY,
    Type::BOOL_ARRAY,
    Type::INT2_ARRAY,
    Type::FLOAT8_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
    Type::TIMESTAMP_ARRAY,
    Type::DATE_ARRAY,
    Type::INET,
    Type::INET_ARRAY,
    Type::OID,
];

/// Each value with its type. What none of [`TYPES`] fits is left to PostgreSQL to find out.
pub(super) fn typed<'a>(params: &[Value<'a>]) -> Vec<(Value<'a>, Type)> {
    let mut scratch = BytesMut::new();
    let mut fits = |value: Value<'_>, kind: &Type| {
        scratch.clear();
        value.to_sql_checked(kind, &mut scratch).is_ok()
    };
    let mut type_of = |value: Value<'_>| TYPES.iter().find(|kind| fits(value, kind)).cloned().unwrap_or(Type::UNKNOWN);
    params.iter().map(|value| (*value, type_of(*value))).collect()
}

/// A statement of which nothing stays on the connection.
pub(super) async fn unprepared(
    client: &tokio_postgres::Client,
    text: &str,
    params: &[Value<'_>],
) -> Result<Vec<Row>, Error> {
    client.query_typed(text, &typed(params)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sent_with_their_types() {
        let nothing: Option<i64> = None;
        let params: [Value<'_>; 8] =
            [&"text", &7_i64, &7_i32, &true, &uuid::Uuid::nil(), &chrono::Utc::now(), &serde_json::json!({}), &nothing];
        let types: Vec<Type> = typed(&params).into_iter().map(|(_, kind)| kind).collect();
        let expected =
            [Type::TEXT, Type::INT8, Type::INT4, Type::BOOL, Type::UUID, Type::TIMESTAMPTZ, Type::JSONB, Type::INT8];
        assert_eq!(types, expected);
        let address: Option<std::net::IpAddr> = None;
        let arrays: [Value<'_>; 4] =
            [&vec!["a".to_owned()], &vec![chrono::Utc::now()], &vec![address], &vec![Some(uuid::Uuid::nil())]];
        let types: Vec<Type> = typed(&arrays).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(types, [Type::TEXT_ARRAY, Type::TIMESTAMPTZ_ARRAY, Type::INET_ARRAY, Type::UUID_ARRAY]);
    }
}
