//! Subscriptions as written in a join.

use serde_json::{Map, Value};

use super::filter::{self, Filter};
use super::{Action, MOST};

/// An entry of `postgres_changes`, read.
pub(super) struct Wanted {
    pub(super) action: Option<Action>,
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) filters: Vec<Filter>,
    pub(super) select: Option<Vec<String>>,
    pub(super) has_text_numbers: bool,
    /// Whether rows that leave the view are sent.
    pub(super) has_leaves: bool,
}

impl Wanted {
    /// Errors have upstream's texts.
    pub(super) fn parse(entry: &Map<String, Value>) -> Result<Self, String> {
        let word = |name: &str| entry.get(name).and_then(Value::as_str);
        let is_given = |name: &str| entry.get(name).is_some_and(|value| !value.is_null());
        let action = match word("event").map(str::to_ascii_uppercase).as_deref() {
            Some("INSERT") => Some(Action::Insert),
            Some("UPDATE") => Some(Action::Update),
            Some("DELETE") => Some(Action::Delete),
            _ => None,
        };
        let select = match entry.get("select") {
            Some(Value::Array(columns)) => {
                let columns: Vec<String> = columns.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                (!columns.is_empty()).then_some(columns)
            }
            Some(Value::String(_)) => {
                return Err("Error parsing `select` params: expected a list of column name strings, e.g. select: \
                            [\"col1\", \"col2\"]"
                    .to_owned());
            }
            _ => None,
        };
        let (schema, table) = match (word("schema"), word("table")) {
            (Some(schema), Some(table)) => (schema, table),
            (Some(schema), None) if !is_given("table") && !is_given("filter") => (schema, "*"),
            (None, Some(table)) if !is_given("schema") && !is_given("filter") => ("public", table),
            _ => {
                return Err(format!(
                    "No subscription params provided. Please provide at least a `schema` or `table` to subscribe to: {}",
                    Value::Object(entry.clone())
                ));
            }
        };
        let filters = match entry.get("filter") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => {
                let filters = filter::parse(text).and_then(|filters| match filters.len() {
                    count if count > MOST.1 => Err(format!("a filter may have {} conditions", MOST.1)),
                    _ => Ok(filters),
                });
                filters.map_err(|reason| format!("Error parsing `filter` params: {reason}"))?
            }
            Some(other) => {
                return Err(format!("Error parsing `filter` params: {}", filter::listed(&[&other.to_string()])));
            }
        };
        if select.is_some() && (schema == "*" || table == "*") {
            return Err("Column selection is not supported for wildcard subscriptions. Provide an explicit schema \
                        and table name."
                .to_owned());
        }
        let has_text_numbers = word("numbers") == Some("text");
        let has_leaves = entry.get("leaves") == Some(&Value::Bool(true));
        if has_leaves && (schema == "*" || table == "*") {
            return Err("Rows that leave are told of one table. Provide an explicit schema and table name.".to_owned());
        }
        let (schema, table) = (schema.to_owned(), table.to_owned());
        Ok(Self { action, schema, table, filters, select, has_text_numbers, has_leaves })
    }

    /// The message about an exception.
    pub(super) fn exception(&self, exception: &str) -> String {
        format!(
            "Unable to subscribe to changes with given parameters. An exception happened so please check your \
             connect parameters: [{self}]. Exception: {exception}"
        )
    }
}

impl std::fmt::Display for Wanted {
    /// The parameters as in upstream's messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filters: Vec<String> = self
            .filters
            .iter()
            .map(|filter| {
                let [column, value] = [&filter.column, &filter.value].map(|text| Value::from(text.as_str()));
                format!("{{{column}, \"{}\", {value}, {}}}", filter.op.name(), filter.negate)
            })
            .collect();
        let select = match &self.select {
            None => "nil".to_owned(),
            Some(columns) => filter::listed(&columns.iter().map(String::as_str).collect::<Vec<_>>()),
        };
        let action = self.action.map_or("*", Action::name);
        let (schema, table) = (&self.schema, &self.table);
        write!(
            f,
            "event: {action}, schema: {schema}, table: {table}, filters: [{}], select: {select}",
            filters.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(entry: Value) -> Result<Wanted, String> {
        Wanted::parse(entry.as_object().expect("an object"))
    }

    #[test]
    fn missing_fields_have_upstreams_defaults() {
        let wanted = parse(json!({ "schema": "s" })).expect("wanted");
        assert_eq!((wanted.schema.as_str(), wanted.table.as_str(), wanted.action), ("s", "*", None));
        let wanted = parse(json!({ "table": "t", "event": "insert" })).expect("wanted");
        assert_eq!((wanted.schema.as_str(), wanted.table.as_str()), ("public", "t"));
        assert_eq!(wanted.action, Some(Action::Insert));
        let wanted = parse(json!({ "schema": "s", "table": "t", "filter": "a=eq.1", "event": "?" })).expect("wanted");
        assert_eq!(
            wanted.to_string(),
            r#"event: *, schema: s, table: t, filters: [{"a", "eq", "1", false}], select: nil"#
        );
    }

    #[test]
    fn errors_have_upstreams_messages() {
        let refused = |entry: Value| parse(entry).err().expect("refused");
        assert!(refused(json!({})).starts_with("No subscription params provided."));
        assert!(refused(json!({ "schema": "s", "filter": "a=eq.1" })).starts_with("No subscription params"));
        assert_eq!(
            refused(json!({ "schema": "s", "table": "t", "filter": "a=foo.b" })),
            r#"Error parsing `filter` params: ["foo", "b"]"#
        );
        assert!(refused(json!({ "schema": "s", "table": "t", "select": "a" })).starts_with("Error parsing `select`"));
        assert!(refused(json!({ "schema": "s", "table": "*", "leaves": true })).starts_with("Rows that leave"));
        assert!(refused(json!({ "schema": "s", "table": "*", "select": ["a"] })).starts_with("Column selection"));
    }
}
