//! The only way to build SQL: text and parameters together.

use bytes::Bytes;

use crate::db::{Param, Query};
use crate::rest::plan::types::Relation;
use crate::rest::request::types::CastName;
use crate::schema_cache::Name;

/// A statement being written. Raw text comes from literals only, identifiers are quoted, values are bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sql {
    text: String,
    params: Vec<Param>,
}

impl Sql {
    pub fn new() -> Self {
        Self { text: String::with_capacity(640), params: Vec::with_capacity(8) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn into_text(self) -> String {
        self.text
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The same with the planner's estimate instead of the result, as JSON.
    pub fn explained(&self) -> Self {
        Self { text: format!("EXPLAIN (FORMAT JSON) {}", self.text), params: self.params.clone() }
    }

    /// The query for the database, run by `role`.
    pub fn query<'a>(&'a self, role: &'a str) -> Query<'a> {
        Query { text: &self.text, params: &self.params, role }
    }

    /// Literal text of this program.
    pub fn raw(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Text from the database's catalog: types from `format_type`, default expressions, functions of
    /// casts. It comes from the schema cache, never from a request.
    pub fn catalog(&mut self, text: &Name) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// The type of a cast. Not quoted, because `"int"` is not `int`; the grammar allows only letters,
    /// digits, `_`, `$` and spaces.
    pub fn cast_name(&mut self, name: &CastName) -> &mut Self {
        self.text.push_str(name.as_str());
        self
    }

    /// A number from this program.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.text.push_str(&number.to_string());
        self
    }

    /// A quoted identifier, cut at a NUL.
    pub fn ident(&mut self, name: &str) -> &mut Self {
        self.text.push('"');
        // Checks the whole name at once; hardly any name needs escapes.
        if name.bytes().fold(true, |plain, b| plain & (b != b'"') & (b != 0)) {
            self.text.push_str(name);
        } else {
            let name = name.split('\0').next().unwrap_or_default();
            self.text.push_str(&name.replace('"', "\"\""));
        }
        self.text.push('"');
        self
    }

    pub fn relation(&mut self, relation: &Relation) -> &mut Self {
        self.qualified(&relation.schema, &relation.name)
    }

    pub fn qualified(&mut self, schema: &str, name: &str) -> &mut Self {
        if !schema.is_empty() {
            self.ident(schema).raw(".");
        }
        self.ident(name)
    }

    /// `relation.column`, or `relation.*`.
    pub fn column(&mut self, relation: &Relation, column: &str) -> &mut Self {
        self.relation(relation).raw(".");
        if column == "*" { self.raw("*") } else { self.ident(column) }
    }

    /// A value as text of undeclared type, cut at a NUL, where the reference's C library ends it.
    pub fn bind(&mut self, value: &str) -> &mut Self {
        self.bind_param(Param::Text(Bytes::copy_from_slice(until_nul(value.as_bytes()))))
    }

    /// Like [`Sql::bind`], for bytes that are already text.
    pub fn bind_text(&mut self, value: &Bytes) -> &mut Self {
        self.bind_param(Param::Text(value.slice(..until_nul(value).len())))
    }

    /// Like [`Sql::bind`], but not cut at a NUL, so that PostgreSQL checks it.
    pub fn bind_bytes(&mut self, value: &Bytes) -> &mut Self {
        self.bind_param(Param::Text(value.clone()))
    }

    pub fn bind_param(&mut self, param: Param) -> &mut Self {
        self.params.push(param);
        self.text.push('$');
        match u8::try_from(self.params.len()) {
            Ok(number @ 0..10) => self.text.push(char::from(b'0' + number)),
            _ => self.text.push_str(&self.params.len().to_string()),
        }
        self
    }

    /// Writes `items` with `separator` between them.
    pub fn list<T>(
        &mut self,
        separator: &'static str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (n, item) in items.into_iter().enumerate() {
            if n > 0 {
                self.raw(separator);
            }
            write(self, item);
        }
        self
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// `{"a","b"}`: an array as PostgreSQL reads it, each element quoted.
pub fn array_literal(values: &[String]) -> String {
    let mut out = String::from("{");
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push('"');
        for c in value.split('\0').next().unwrap_or_default().chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_cannot_end_their_quotes() {
        let mut sql = Sql::new();
        sql.ident("a\"; drop table x; --").raw(" ").ident("cut\0off");
        assert_eq!(sql.text(), "\"a\"\"; drop table x; --\" \"cut\"");
    }

    #[test]
    fn parameters_are_numbered_in_order() {
        let mut sql = Sql::new();
        sql.raw("select ").bind("x").raw(", ").bind("y");
        assert_eq!(sql.text(), "select $1, $2");
        assert_eq!(sql.params().len(), 2);
        let text = |text: &'static str| Param::Text(Bytes::from_static(text.as_bytes()));
        let mut cut = Sql::new();
        cut.bind("a\0b").bind_text(&Bytes::from_static(b"\0")).bind_bytes(&Bytes::from_static(b"a\0b"));
        assert_eq!(cut.params(), [text("a"), text(""), text("a\0b")]);
    }

    #[test]
    fn array_elements_are_quoted_and_escaped() {
        let values = ["a,b", "c\"d", "e\\f", ""].map(str::to_owned);
        assert_eq!(array_literal(&values), r#"{"a,b","c\"d","e\\f",""}"#);
    }
}
