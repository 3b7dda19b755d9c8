//! A row as it came.

use std::error::Error as StdError;

use bytes::Bytes;
use tokio_postgres::types::{FromSql, Type};

use crate::db::DbError;

/// One row, its values in PostgreSQL's binary formats.
#[derive(Clone, Debug)]
pub struct Row {
    /// After the number of columns: each value's length (-1 for null) and bytes.
    body: Bytes,
    /// Bit n: column n is `jsonb`, whose binary format begins with a version number.
    jsonb: u64,
}

impl Row {
    /// `body`: of a `DataRow`.
    pub(super) fn new(body: Bytes, jsonb: u64) -> Self {
        Self { body, jsonb }
    }

    fn range(&self, column: usize) -> Option<(usize, usize)> {
        let mut place = 2;
        for _ in 0..column {
            place += 4 + usize::try_from(self.length_at(place)?).unwrap_or(0);
        }
        let length = usize::try_from(self.length_at(place)?).ok()?;
        let start = place + 4 + usize::from(self.jsonb >> column.min(63) & 1 == 1);
        let end = place + 4 + length;
        (start <= end && end <= self.body.len()).then_some((start, end))
    }

    fn length_at(&self, place: usize) -> Option<i32> {
        let bytes = self.body.get(place..place + 4)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The value's bytes; none for null.
    pub fn bytes(&self, column: usize) -> Option<Bytes> {
        self.range(column).map(|(start, end)| self.body.slice(start..end))
    }

    /// The value's bytes, borrowed; none for null.
    pub fn slice(&self, column: usize) -> Option<&[u8]> {
        self.range(column).map(|(start, end)| &self.body[start..end])
    }

    /// As text of the type `text`, or `json`; none for null.
    pub fn text(&self, column: usize) -> Result<Option<String>, DbError> {
        self.read(column, &Type::TEXT)
    }

    pub fn int8(&self, column: usize) -> Result<Option<i64>, DbError> {
        self.read(column, &Type::INT8)
    }

    pub fn int4(&self, column: usize) -> Result<Option<i32>, DbError> {
        self.read(column, &Type::INT4)
    }

    /// A `text[]`.
    pub fn texts(&self, column: usize) -> Result<Option<Vec<String>>, DbError> {
        self.read(column, &Type::TEXT_ARRAY)
    }

    fn read<'a, T: FromSql<'a>>(&'a self, column: usize, kind: &Type) -> Result<Option<T>, DbError> {
        let Some((start, end)) = self.range(column) else { return Ok(None) };
        let unreadable = |error: Box<dyn StdError + Sync + Send>| DbError::Broken(format!("column {column}: {error}"));
        T::from_sql(kind, &self.body[start..end]).map(Some).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&[u8]>], jsonb: u64) -> Row {
        let mut body = u16::try_from(values.len()).expect("few").to_be_bytes().to_vec();
        for value in values {
            match value {
                Some(bytes) => {
                    body.extend(i32::try_from(bytes.len()).expect("short").to_be_bytes());
                    body.extend_from_slice(bytes);
                }
                None => body.extend((-1i32).to_be_bytes()),
            }
        }
        Row::new(body.into(), jsonb)
    }

    #[test]
    fn values_are_found_after_null_and_empty_ones() {
        let row = row(&[None, Some(b""), Some(&7i64.to_be_bytes()), Some(b"abc")], 0);
        assert_eq!(row.int8(0).expect("null"), None);
        assert_eq!(row.text(1).expect("text").as_deref(), Some(""));
        assert_eq!(row.int8(2).expect("number"), Some(7));
        assert_eq!(row.bytes(3).as_deref(), Some(&b"abc"[..]));
        assert_eq!(row.bytes(4), None);
        assert!(row.int8(3).is_err());
    }

    #[test]
    fn the_version_byte_of_jsonb_is_skipped() {
        let row = row(&[Some(b"x"), Some(b"\x01{}")], 0b10);
        assert_eq!(row.bytes(0).as_deref(), Some(&b"x"[..]));
        assert_eq!(row.bytes(1).as_deref(), Some(&b"{}"[..]));
    }

    #[test]
    fn a_truncated_row_has_no_values() {
        let cut = Row::new(Bytes::from_static(b"\0\x01\0\0\0\x09abc"), 0);
        assert_eq!(cut.bytes(0), None);
    }
}
