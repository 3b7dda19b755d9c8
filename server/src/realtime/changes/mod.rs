//! Changes of tables, from the write-ahead log to the subscribers who may see them.
//!
//! [`stream`] follows the log. [`deliver`] finds out who may see each changed row and sends it. Subscriptions are kept in
//! [`Registry`]. A subscription is registered before its join is answered, so that no later commit is missed.

mod catalog;
mod change;
mod deliver;
mod filter;
mod json;
mod pgoutput;
pub mod record;
pub mod stream;

use std::collections::{HashMap, hash_map};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use super::hub::Member;
use super::join::entry_id;
use super::policies::text;
use super::token::Identity;
use crate::db::{DbError, ExclusivePool, replaced};
use catalog::{all_published, ask, published, read_rights, rights_step, tables};
use filter::{Bound, Filter, Op};
use record::Record;

/// Subscriptions of one channel, and conditions of one: each is asked of the database.
const MOST: (usize, usize) = (100, 32);
/// How long a join waits for the stream.
const START_WAIT: Duration = Duration::from_secs(6);
/// How long whoever has replaced the database waits for the next stream.
const NEXT_STREAM: Duration = Duration::from_secs(2);

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Insert,
    Update,
    Delete,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// What a channel wants to be told.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Under which the client knows it.
    pub id: u32,
    action: Option<Action>,
    /// None stands for all.
    schema: Option<String>,
    table: Option<String>,
    filters: Vec<Bound>,
    /// The filters as they were written, and the tables that were meant when it began, for `realtime.subscription`.
    conditions: Arc<[Filter]>,
    tables: Arc<[u32]>,
    shape: Shape,
    has_config: bool,
}

/// How a subscription wants its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shape {
    /// Columns besides the primary key; none stands for all.
    select: Option<Arc<[String]>>,
    /// `int8` and `numeric` as texts, for clients whose numbers end at 2^53.
    has_text_numbers: bool,
}

impl Subscription {
    /// Schema and table, if it is of one table.
    fn place(&self) -> Option<(String, String)> {
        self.schema.clone().zip(self.table.clone())
    }
}

/// A subscription and its channel.
pub struct Entry {
    pub member: Arc<Member>,
    /// Later subscriptions have higher ones; a new token changes nothing of it.
    number: u64,
    pub subscription: Subscription,
}

/// Why there is no subscription.
#[derive(Debug)]
pub enum NotSubscribed {
    /// The stream is being opened.
    Starting,
    Refused(String),
}

/// Where the stream stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody wants it.
    Idle,
    Starting,
    Running {
        /// Whether the publication of tables is part of it.
        has_tables: bool,
    },
    /// It cannot be had, and why.
    Unavailable(String),
}

/// Subscriptions by table.
#[derive(Default)]
struct Registry {
    exact: HashMap<(String, String), Vec<Arc<Entry>>>,
    /// Those of all tables, or of all tables of a schema.
    wide: Vec<Arc<Entry>>,
    by_member: HashMap<u64, Vec<Arc<Entry>>>,
    /// The highest number of an entry.
    newest: u64,
}

impl Registry {
    /// `number` if it is known from before.
    fn insert(&mut self, member: &Arc<Member>, subscription: Subscription, number: Option<u64>) {
        let number = number.unwrap_or_else(|| {
            self.newest += 1;
            self.newest
        });
        let entry = Arc::new(Entry { member: Arc::clone(member), number, subscription });
        match entry.subscription.place() {
            Some(place) => self.exact.entry(place).or_default().push(Arc::clone(&entry)),
            None => self.wide.push(Arc::clone(&entry)),
        }
        self.by_member.entry(entry.member.id).or_default().push(entry);
    }

    /// Whether there was any.
    fn remove(&mut self, member: u64) -> bool {
        let Some(gone) = self.by_member.remove(&member) else { return false };
        for entry in gone {
            match entry.subscription.place() {
                Some(place) => {
                    if let Some(entries) = self.exact.get_mut(&place) {
                        entries.retain(|entry| entry.member.id != member);
                        if entries.is_empty() {
                            self.exact.remove(&place);
                        }
                    }
                }
                None => self.wide.retain(|entry| entry.member.id != member),
            }
        }
        true
    }

    /// Channels that have subscriptions.
    fn channels(&self) -> Vec<u64> {
        self.by_member.keys().copied().collect()
    }

    fn of_channel(&self, member: u64) -> &[Arc<Entry>] {
        self.by_member.get(&member).map(Vec::as_slice).unwrap_or_default()
    }

    /// The subscriptions that a table's changes may concern.
    fn find(&self, place: &(String, String)) -> Vec<Arc<Entry>> {
        let exact = self.exact.get(place).map(Vec::as_slice).unwrap_or_default();
        let wide = self.wide.iter().filter(|entry| {
            let subscription = &entry.subscription;
            subscription.schema.as_ref().is_none_or(|schema| *schema == place.0)
                && subscription.table.as_ref().is_none_or(|table| *table == place.1)
        });
        exact.iter().chain(wide).cloned().collect()
    }
}

/// Subscriptions, and the stream that feeds them.
pub struct Changes {
    db: ExclusivePool,
    registry: RwLock<Registry>,
    state: watch::Sender<State>,
    /// Which database the stream followed last, of [`replaced::times`].
    followed: watch::Sender<u64>,
    /// Somebody wants the stream.
    wanted: Notify,
    /// The publication of tables has appeared since the stream began.
    restart: Notify,
    /// Channels that want to be told when it runs.
    waiting: Mutex<Vec<Arc<Member>>>,
    /// `realtime.subscription`.
    record: Record,
    /// Raised whenever the stream has ended: what was prepared before may have missed something.
    generation: AtomicU64,
}

impl Changes {
    pub fn new(db: ExclusivePool) -> Self {
        Self {
            db,
            registry: RwLock::default(),
            state: watch::Sender::new(State::Idle),
            followed: watch::Sender::new(0),
            wanted: Notify::new(),
            restart: Notify::new(),
            waiting: Mutex::default(),
            record: Record::default(),
            generation: AtomicU64::new(0),
        }
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn raise_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Asks for the stream.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Waits until the stream, if there is one, follows the database that has replaced another.
    pub async fn follow_next(&self) {
        let (database, mut followed) = (replaced::times(), self.followed.subscribe());
        if matches!(*self.state.borrow(), State::Running { .. } | State::Starting) {
            let follows = followed.wait_for(|followed| *followed == database);
            if tokio::time::timeout(NEXT_STREAM, follows).await.is_err() {
                tracing::warn!("there is no stream of changes of the next database yet");
            }
        }
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Takes subscriptions in, then does `first`; no change comes between.
    pub fn register(&self, member: &Arc<Member>, subscriptions: Vec<Subscription>, first: impl FnOnce()) {
        let has_any = !subscriptions.is_empty();
        let mut registry = self.registry.write();
        for subscription in subscriptions {
            registry.insert(member, subscription, None);
        }
        first();
        drop(registry);
        if has_any {
            self.record.touch(member.id);
        }
    }

    /// Exchanges the subscriptions of a channel. What is being judged under the old ones is still delivered.
    pub fn replace(&self, member: &Arc<Member>, subscriptions: Vec<Subscription>) {
        let mut registry = self.registry.write();
        let number = registry.of_channel(member.id).iter().map(|entry| entry.number).min();
        registry.remove(member.id);
        for subscription in subscriptions {
            registry.insert(member, subscription, number);
        }
        drop(registry);
        self.record.touch(member.id);
    }

    pub fn remove(&self, member: u64) {
        let had_any = self.registry.write().remove(member);
        if had_any {
            self.record.touch(member);
        }
        self.waiting.lock().retain(|waiting| waiting.id != member);
    }

    /// Tells a channel once broadcasts of the database flow.
    pub fn tell_when_ready(&self, member: &Arc<Member>) {
        let mut waiting = self.waiting.lock();
        if matches!(*self.state.borrow(), State::Running { .. }) {
            member.system("system", "ok", "Replication connection established");
        } else {
            waiting.push(Arc::clone(member));
        }
    }

    fn set_state(&self, state: State) {
        let mut waiting = self.waiting.lock();
        let is_running = matches!(state, State::Running { .. });
        self.state.send_replace(state);
        if is_running {
            for member in waiting.drain(..) {
                member.system("system", "ok", "Replication connection established");
            }
        }
    }

    /// Waits until the stream runs.
    async fn running(&self) -> Result<bool, NotSubscribed> {
        let mut state = self.state.subscribe();
        self.want();
        let settled = async {
            loop {
                match &*state.borrow_and_update() {
                    State::Running { has_tables } => return Ok(*has_tables),
                    State::Unavailable(reason) => return Err(NotSubscribed::Refused(reason.clone())),
                    State::Idle | State::Starting => {}
                }
                if state.changed().await.is_err() {
                    return Err(NotSubscribed::Starting);
                }
            }
        };
        tokio::time::timeout(START_WAIT, settled).await.unwrap_or(Err(NotSubscribed::Starting))
    }

    /// Whose subscriptions are to tables that the publication does not have any more: their changes would be missing in
    /// silence.
    async fn orphans(&self) -> Result<Vec<Arc<Member>>, DbError> {
        let places: Vec<(String, String)> = self.registry.read().exact.keys().cloned().collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let published = all_published(&self.db).await?;
        let registry = self.registry.read();
        let gone = places.iter().filter(|place| !published.contains(place));
        let entries = gone.filter_map(|place| registry.exact.get(place)).flatten();
        let mut members: Vec<Arc<Member>> = Vec::new();
        for entry in entries {
            if !members.iter().any(|member| member.id == entry.member.id) {
                members.push(Arc::clone(&entry.member));
            }
        }
        Ok(members)
    }

    /// Checks what a channel asks for, as its role. Nothing is subscribed if anything is wrong. Yields the stream's
    /// generation as well, which must still be the same once the subscriptions are registered.
    pub async fn prepare(
        &self,
        identity: &Identity,
        entries: &[Map<String, Value>],
        has_config: bool,
    ) -> Result<(Vec<Subscription>, u64), NotSubscribed> {
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
        let generation = self.generation();
        if !matches!(*self.state.borrow(), State::Running { .. }) {
            return Err(NotSubscribed::Starting);
        }
        let mut subscriptions = Vec::with_capacity(wanted.len());
        let mut places = HashMap::new();
        for (wanted, entry) in wanted.into_iter().zip(distinct) {
            let Checked { filters, select, tables } = self.check(identity, &wanted, &mut places).await?;
            if !has_tables {
                // It is there now; the stream began without it.
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
            });
        }
        Ok((subscriptions, generation))
    }

    /// `places` holds the tables of schemas and names that this join has asked about.
    async fn check(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        places: &mut HashMap<(String, String), Vec<u32>>,
    ) -> Result<Checked, NotSubscribed> {
        let failed = |error: DbError| {
            let exception = match &error {
                DbError::Refused(refusal) => format!("ERROR {} {}", code(&refusal.code), refusal.message),
                other => other.to_string(),
            };
            wanted.exception(&exception)
        };
        let raised = |message: String| wanted.exception(&format!("ERROR {} {message}", code("P0001")));
        let oids = match places.entry((wanted.schema.clone(), wanted.table.clone())) {
            hash_map::Entry::Occupied(known) => known.get().clone(),
            hash_map::Entry::Vacant(place) => {
                place.insert(published(&self.db, &wanted.schema, &wanted.table).await.map_err(failed)?).clone()
            }
        };
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
            let missing = |column: &String| !rights.columns.contains(column);
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
                if let Some((sql, value)) = bound.question() {
                    // The operator has to be there, and a pattern to be one.
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

/// What of a channel's wish has been found to hold.
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

/// An entry of `postgres_changes`, read.
struct Wanted {
    action: Option<Action>,
    schema: String,
    table: String,
    filters: Vec<Filter>,
    select: Option<Vec<String>>,
    has_text_numbers: bool,
}

impl Wanted {
    /// Errors are upstream's sentences.
    fn parse(entry: &Map<String, Value>) -> Result<Self, String> {
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
        Ok(Self { action, schema: schema.to_owned(), table: table.to_owned(), filters, select, has_text_numbers })
    }

    fn exception(&self, exception: &str) -> NotSubscribed {
        NotSubscribed::Refused(format!(
            "Unable to subscribe to changes with given parameters. An exception happened so please check your \
             connect parameters: [{self}]. Exception: {exception}"
        ))
    }
}

impl std::fmt::Display for Wanted {
    /// The parameters as upstream names them in its sentences.
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
    fn what_is_not_given_has_upstreams_meaning() {
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
    fn refusals_have_upstreams_words() {
        let refused = |entry: Value| parse(entry).err().expect("refused");
        assert!(refused(json!({})).starts_with("No subscription params provided."));
        assert!(refused(json!({ "schema": "s", "filter": "a=eq.1" })).starts_with("No subscription params"));
        assert_eq!(
            refused(json!({ "schema": "s", "table": "t", "filter": "a=foo.b" })),
            r#"Error parsing `filter` params: ["foo", "b"]"#
        );
        assert!(refused(json!({ "schema": "s", "table": "t", "select": "a" })).starts_with("Error parsing `select`"));
        assert!(refused(json!({ "schema": "s", "table": "*", "select": ["a"] })).starts_with("Column selection"));
    }
}
