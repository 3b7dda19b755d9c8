//! Subscriptions are checked as the channel's role before they begin: tables, columns, filters.

use std::collections::{HashMap, HashSet, hash_map};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::catalog::{Published, act_as, ask, keys_sql, published, quoted, read_rights, rights_step, tables};
use super::filter::{self, Bound, Comparison, Op};
use super::registry::{Shape, Subscription};
use super::view::{self, View};
use super::wanted::Wanted;
use super::{Changes, MOST, MOST_COMPARED, NotSubscribed, State};
use crate::db::{DbError, Step};
use crate::realtime::join::entry_id;
use crate::realtime::policies::text;
use crate::realtime::token::Identity;

impl Changes {
    /// Checks a channel's subscriptions as its role. If one is invalid, none is registered. The stream's generation
    /// must still be the same when they are registered. `compared` are the comparisons of the socket's other channels.
    pub async fn prepare(
        &self,
        identity: &Identity,
        entries: &[Map<String, Value>],
        has_config: bool,
        mut compared: HashSet<Arc<Comparison>>,
    ) -> Result<Vec<Subscription>, NotSubscribed> {
        if entries.len() > MOST.0 {
            let text = format!("Too many subscriptions to changes: a channel may have {}", MOST.0);
            return Err(NotSubscribed::Refused(text));
        }
        // Equal entries have one id: one subscription serves them all.
        let mut distinct: Vec<&Map<String, Value>> = Vec::with_capacity(entries.len());
        for entry in entries {
            if !distinct.contains(&entry) {
                distinct.push(entry);
            }
        }
        let mut wanted = Vec::with_capacity(distinct.len());
        for entry in &distinct {
            wanted.push(Wanted::parse(entry).map_err(NotSubscribed::Refused)?);
        }
        let has_tables = self.running().await?;
        if !matches!(*self.state.borrow(), State::Running { .. }) {
            return Err(NotSubscribed::Starting);
        }
        let mut subscriptions = Vec::with_capacity(wanted.len());
        let mut places = HashMap::new();
        for (wanted, entry) in wanted.into_iter().zip(distinct) {
            let Checked { filters, select, tables } = self.check(identity, &wanted, &mut places).await?;
            compared.extend(filters.iter().filter_map(Bound::comparison).map(Arc::clone));
            if compared.len() > MOST_COMPARED {
                return Err(NotSubscribed::Refused(format!(
                    "Too many different conditions that the database has to compare: a connection may have {MOST_COMPARED}"
                )));
            }
            let view = if wanted.has_leaves { Some(self.view(identity, &wanted, &tables).await?) } else { None };
            if !has_tables {
                // The publication exists now, but the stream started without it.
                self.restart.notify_one();
                return Err(NotSubscribed::Starting);
            }
            subscriptions.push(Subscription {
                id: entry_id(entry),
                action: wanted.action,
                schema: (wanted.schema != "*").then_some(wanted.schema),
                table: (wanted.table != "*").then_some(wanted.table),
                filters,
                conditions: wanted.filters.into(),
                tables,
                shape: Shape { select, has_text_numbers: wanted.has_text_numbers },
                has_config,
                view,
            });
        }
        Ok(subscriptions)
    }

    /// The rows of the subscription that the caller can see now. Queried last, because rows that appear later are sent.
    async fn view(&self, identity: &Identity, wanted: &Wanted, oids: &[u32]) -> Result<Arc<View>, NotSubscribed> {
        let failed = |error: DbError| wanted.exception(&error.to_string());
        let found = tables(&self.db, oids).await.map_err(failed)?;
        let refused = |reason: &str| NotSubscribed::Refused(format!("Rows that leave cannot be told: {reason}"));
        let [table] = found.as_slice() else { return Err(refused("there is no such table")) };
        let caller = &identity.caller;
        let (mut conditions, mut params) = (Vec::new(), Vec::new());
        for filter in &wanted.filters {
            let Some(column) = table.column(&filter.column) else { continue };
            let value = format!("t.{}", quoted(&column.name));
            let (condition, param) = filter.of_row(&value, &column.sql_type, params.len() + 1);
            conditions.push(condition);
            params.push(text(param));
        }
        let Some(sql) = keys_sql(table, &conditions, view::MOST + 1) else {
            return Err(refused("the table has no primary key"));
        };
        let see = Step { text: sql.into(), params, role: caller.role.as_str().into() };
        let part = vec![act_as(caller, &self.search_path), see];
        let rows = match self.db.run_each("realtime", &[part]).await.map_err(failed)?.pop() {
            Some(Ok(mut rows)) => rows.pop().unwrap_or_default(),
            Some(Err(refusal)) if refusal.code == "42501" => Vec::new(),
            Some(Err(refusal)) => return Err(failed(DbError::Refused(refusal))),
            None => Vec::new(),
        };
        let view = View::default();
        for row in &rows {
            let key =
                (0..table.keys().count()).map(|at| row.text(at)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            let key: Option<Vec<&str>> = key.iter().map(Option::as_deref).collect();
            if key.is_some_and(|key| !view.enter(&key)) {
                return Err(refused("there are too many rows to remember; narrow them by a filter"));
            }
        }
        Ok(Arc::new(view))
    }

    /// `places` caches the tables per schema and name for this join.
    async fn check(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        places: &mut HashMap<(String, String), Vec<Published>>,
    ) -> Result<Checked, NotSubscribed> {
        let failed = |error: DbError| {
            let exception = match &error {
                DbError::Refused(refusal) => format!("ERROR {} {}", code(&refusal.code), refusal.message),
                other => other.to_string(),
            };
            wanted.exception(&exception)
        };
        let raised = |message: String| wanted.exception(&format!("ERROR {} {message}", code("P0001")));
        let found = match places.entry((wanted.schema.clone(), wanted.table.clone())) {
            hash_map::Entry::Occupied(known) => known.get().clone(),
            hash_map::Entry::Vacant(place) => {
                place.insert(published(&self.db, &wanted.schema, &wanted.table).await.map_err(failed)?).clone()
            }
        };
        let oids: Vec<u32> = found.iter().map(|table| table.oid).collect();
        if oids.is_empty() {
            return Err(NotSubscribed::Refused(format!(
                "Unable to subscribe to changes with given parameters. Please check Realtime is enabled for the \
                 given connect parameters: [{wanted}]"
            )));
        }
        let select = wanted.select.as_ref().map(|columns| Arc::from(columns.as_slice()));
        if wanted.filters.is_empty() && select.is_none() {
            return Ok(Checked { filters: Vec::new(), select: None, tables: oids.into() });
        }
        let mut filters = Vec::new();
        for table in tables(&self.db, &oids).await.map_err(failed)? {
            let role = &identity.caller.role;
            let step = rights_step(table.oid, &[role]);
            let rows = ask(&self.db, &step.text, step.params).await.map_err(failed)?;
            let rights = read_rights(&rows).map_err(failed)?.remove(role).unwrap_or_default();
            // Columns that are not in the log can be neither sent nor compared.
            let is_published =
                |column: &str| found.iter().filter(|other| other.oid == table.oid).all(|other| other.has(column));
            let missing = |column: &String| !rights.columns.contains(column) || !is_published(column);
            if let Some(filter) = wanted.filters.iter().find(|filter| missing(&filter.column)) {
                return Err(raised(format!("invalid column for filter {}", filter.column)));
            }
            if let Some(column) = wanted.select.iter().flatten().find(|column| missing(column)) {
                return Err(raised(format!("invalid column for select {column}")));
            }
            filters.clear();
            for filter in &wanted.filters {
                let Some(column) = table.column(&filter.column) else { continue };
                let canonical = match filter.canonical_sql(&column.sql_type) {
                    None => Vec::new(),
                    Some(sql) => {
                        let rows = ask(&self.db, &sql, vec![text(&filter.value)]).await.map_err(failed)?;
                        rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>().map_err(failed)?
                    }
                };
                let described = filter::Column {
                    kind: column.kind,
                    is_enum: table.enums.contains(&column.kind),
                    sql_type: &column.sql_type,
                    is_deterministic: column.is_deterministic,
                };
                let bound = filter.bind(&described, &table.types, &canonical).map_err(raised)?;
                if let Some(Comparison { sql, value, .. }) = bound.comparison().map(Arc::as_ref) {
                    // The operator must exist, and a pattern be valid.
                    let values = if matches!(filter.op, Op::Match | Op::Imatch) { "{\"\"}" } else { "{}" };
                    ask(&self.db, sql, vec![text(values), text(value)]).await.map_err(|error| {
                        let name = filter.op.name();
                        match &error {
                            DbError::Refused(refusal) if refusal.code == "42883" => raised(format!(
                                "operator {name} requires a text-compatible column type, got {}",
                                column.type_name
                            )),
                            DbError::Refused(refusal) if refusal.code == "2201B" => {
                                raised(format!("invalid regular expression for {name} filter: {}", refusal.message))
                            }
                            _ => failed(error),
                        }
                    })?;
                }
                filters.push(bound);
            }
        }
        Ok(Checked { filters, select, tables: oids.into() })
    }
}

/// A checked subscription.
struct Checked {
    filters: Vec<Bound>,
    select: Option<Arc<[String]>>,
    /// Tables that it means now.
    tables: Arc<[u32]>,
}

/// An SQLSTATE with its name, as upstream prints it.
fn code(sqlstate: &str) -> String {
    let name = match sqlstate {
        "P0001" => "raise_exception",
        "22P02" => "invalid_text_representation",
        "22003" => "numeric_value_out_of_range",
        "22007" => "invalid_datetime_format",
        "22008" => "datetime_field_overflow",
        "2201B" => "invalid_regular_expression",
        "42883" => "undefined_function",
        "42501" => "insufficient_privilege",
        "57014" => "query_canceled",
        _ => "error",
    };
    format!("{sqlstate} ({name})")
}
