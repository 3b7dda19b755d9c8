//! Subscriptions are checked as the channel's role before they begin: tables, columns, filters.

use std::collections::{HashMap, HashSet, hash_map};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::{Map, Value};

use super::catalog::{
    Published, Rights, Table, TableColumn, act_as, ask_each, keys_sql, published, quoted, read_rights, rights_step,
    tables,
};
use super::filter::{self, Bounds, Comparison, Filter, Op};
use super::registry::{Shape, Subscription};
use super::view::{self, View};
use super::wanted::Wanted;
use super::{Changes, MOST, MOST_COMPARED, NotSubscribed, State};
use crate::db::{DbError, Step};
use crate::realtime::join::entry_id;
use crate::realtime::policies::{PolicyError, text};
use crate::realtime::token::Identity;

impl Changes {
    /// Checks a channel's subscriptions as its role. If one is invalid, none is registered. The stream's generation
    /// must still be the same when they are registered. `compared` are the comparisons of the socket's other channels, `keys` counts those
    /// in the views of the client's address.
    pub async fn prepare(
        &self,
        identity: &Identity,
        entries: &[Map<String, Value>],
        has_config: bool,
        mut compared: HashSet<Arc<Comparison>>,
        keys: &Arc<AtomicUsize>,
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
        let mut known = Known::default();
        for (wanted, entry) in wanted.into_iter().zip(distinct) {
            let Checked { filters, select, tables } = self.check(identity, &wanted, &mut known).await?;
            compared.extend(filters.iter().flat_map(Bounds::comparisons).map(Arc::clone));
            if compared.len() > MOST_COMPARED {
                return Err(NotSubscribed::Refused(format!(
                    "Too many different conditions that the database has to compare: a connection may have {MOST_COMPARED}"
                )));
            }
            let view = if wanted.has_leaves { Some(self.view(identity, &wanted, &tables, keys).await?) } else { None };
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
    async fn view(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        oids: &[u32],
        keys: &Arc<AtomicUsize>,
    ) -> Result<Arc<View>, NotSubscribed> {
        let failed = |error: DbError| wanted.refusal(error);
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
        let view = View::new(keys);
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

    /// Loads tables that are not known yet, and what the role may read of them.
    async fn learn(&self, known: &mut Known, oids: &[u32], role: &str) -> Result<(), DbError> {
        let missing: Vec<u32> = oids.iter().copied().filter(|oid| !known.tables.contains_key(oid)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let found = tables(&self.db, &missing).await?;
        let steps = found.iter().map(|table| rights_step(table.oid, &[role])).collect();
        for (table, rows) in found.into_iter().zip(ask_each(&self.db, steps).await?) {
            let rights = read_rights(&rows.map_err(DbError::Refused)?)?.remove(role).unwrap_or_default();
            known.tables.insert(table.oid, (table, rights));
        }
        Ok(())
    }

    async fn check(&self, identity: &Identity, wanted: &Wanted, known: &mut Known) -> Result<Checked, NotSubscribed> {
        let failed = |error: DbError| wanted.refusal(error);
        let raised = |message: String| wanted.raised(&message);
        let found = match known.places.entry((wanted.schema.clone(), wanted.table.clone())) {
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
        let mut filters: Vec<_> = wanted.filters.iter().map(|filter| Bounds::new(&filter.column)).collect();
        self.learn(known, &oids, &identity.caller.role).await.map_err(failed)?;
        let mut sorted = oids.clone();
        sorted.sort_unstable();
        for (table, rights) in sorted.iter().filter_map(|oid| known.tables.get(oid)) {
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
            self.bind(wanted, table, &mut filters).await?;
        }
        Ok(Checked { filters, select, tables: oids.into() })
    }

    /// Checks the filters with the types of a table's columns. In two round trips, because a join may have thousands.
    async fn bind(&self, wanted: &Wanted, table: &Table, filters: &mut [Bounds]) -> Result<(), NotSubscribed> {
        let failed = |error: DbError| wanted.refusal(error);
        let raised = |message: String| wanted.raised(&message);
        // Types that other tables have too were checked.
        let columns = wanted.filters.iter().enumerate().filter_map(|(place, filter)| {
            let column = table.column(&filter.column)?;
            filters[place].of(column.kind).is_none().then_some((place, filter, column))
        });
        let columns: Vec<(usize, &Filter, &TableColumn)> = columns.collect();
        let steps = columns.iter().filter_map(|(_, filter, column)| {
            let sql = filter.canonical_sql(&column.sql_type)?;
            Some(Step { text: sql.into(), params: vec![text(&filter.value)], role: "".into() })
        });
        let mut texts = ask_each(&self.db, steps.collect()).await.map_err(failed)?.into_iter();
        let (mut bounds, mut steps, mut refused) = (Vec::new(), Vec::new(), None);
        for (place, filter, column) in columns {
            let canonical = match filter.canonical_sql(&column.sql_type).and_then(|_| texts.next()) {
                None => Ok(Vec::new()),
                Some(Err(refusal)) => Err(failed(DbError::Refused(refusal))),
                Some(Ok(rows)) => rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>().map_err(failed),
            };
            let described = filter::Column {
                kind: column.kind,
                is_enum: table.enums.contains(&column.kind),
                sql_type: &column.sql_type,
                is_deterministic: column.is_deterministic,
            };
            match canonical.and_then(|canonical| filter.bind(&described, &table.types, &canonical).map_err(raised)) {
                Ok(bound) => {
                    if let Some(Comparison { sql, value, .. }) = bound.comparison().map(Arc::as_ref) {
                        let values = if matches!(filter.op, Op::Match | Op::Imatch) { "{\"\"}" } else { "{}" };
                        let params = vec![text(values), text(value)];
                        steps.push(Step { text: sql.as_ref().into(), params, role: "".into() });
                    }
                    bounds.push((place, filter, column, bound));
                }
                // The first one is told, so those before it are compared first.
                Err(reason) => {
                    refused = Some(reason);
                    break;
                }
            }
        }
        // The operator must exist, and a pattern be valid.
        let mut compared = ask_each(&self.db, steps).await.map_err(failed)?.into_iter();
        for (place, filter, column, bound) in bounds {
            let name = filter.op.name();
            if let Some(Err(refusal)) = bound.comparison().and_then(|_| compared.next()) {
                return Err(match refusal.code.as_str() {
                    "42883" => raised(format!(
                        "operator {name} requires a text-compatible column type, got {}",
                        column.type_name
                    )),
                    "2201B" => raised(format!("invalid regular expression for {name} filter: {}", refusal.message)),
                    _ => failed(DbError::Refused(refusal)),
                });
            }
            filters[place].add(bound);
        }
        refused.map_or(Ok(()), Err)
    }
}

impl Wanted {
    /// The answer if PostgreSQL refuses or fails. Clients try again if they are not to blame for it.
    fn refusal(&self, error: DbError) -> NotSubscribed {
        let exception = match &error {
            DbError::Refused(refusal) => self.exception(&format!("ERROR {} {}", code(&refusal.code), refusal.message)),
            other => self.exception(&other.to_string()),
        };
        match PolicyError::from_db(&error) {
            PolicyError::Policy(_) | PolicyError::MissingPartition => NotSubscribed::Refused(exception),
            PolicyError::Canceled => NotSubscribed::TooSlow(exception),
            PolicyError::Busy | PolicyError::Unreachable => {
                tracing::warn!(%error, "a subscription to changes could not be checked");
                NotSubscribed::Starting
            }
        }
    }

    /// The answer that upstream's trigger would raise.
    fn raised(&self, message: &str) -> NotSubscribed {
        NotSubscribed::Refused(self.exception(&format!("ERROR {} {message}", code("P0001"))))
    }
}

/// What a join has asked already.
#[derive(Default)]
struct Known {
    /// By schema and name.
    places: HashMap<(String, String), Vec<Published>>,
    /// With what the caller's role may read.
    tables: HashMap<u32, (Table, Rights)>,
}

/// A checked subscription.
struct Checked {
    filters: Vec<Bounds>,
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
