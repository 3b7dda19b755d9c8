//! Messages about changes as JSON. Each distinct one is written once.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat};
use serde_json::Value;

use crate::realtime::Inner;
use crate::realtime::changes::catalog::{Rights, Table, TableColumn};
use crate::realtime::changes::change::Change;
use crate::realtime::changes::json::Types;
use crate::realtime::changes::{Action, Entry, Shape, json};
use crate::realtime::metrics::Kind;
use crate::realtime::protocol::{self, Ref, Version};

/// A row that is too large keeps only values up to this many bytes.
const SMALL: usize = 64;

/// Types with numbers beyond the precision of a double: int8, numeric.
const LONG: [u32; 2] = [20, 1700];

/// A message for one channel.
pub(super) struct Outgoing {
    pub(super) change: usize,
    pub(super) entry: Arc<Entry>,
    pub(super) group: usize,
    pub(super) verdict: Shown,
    pub(super) ids: Vec<u32>,
}

/// The visible part of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shown {
    Row,
    /// Only its key, because it has left the subscriber's view.
    Left,
    /// Only that it happened: the table has no primary key to check the row by.
    NoKey,
    /// Only that it happened: the role may not read the primary key.
    Unauthorized,
}

/// (change, role, shape, what is shown)
type DataKey = (usize, String, Shape, Shown);

/// Writes each distinct message once.
pub(super) struct Writer<'a> {
    inner: &'a Inner,
    changes: &'a [Change],
    data: HashMap<DataKey, Arc<str>>,
    frames: HashMap<(Version, String, Vec<u32>, bool, usize), Bytes>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(inner: &'a Inner, changes: &'a [Change]) -> Self {
        Self { inner, changes, data: HashMap::new(), frames: HashMap::new() }
    }

    pub(super) fn send(&mut self, message: &Outgoing, table: &Table, role: &str, rights: &Rights) {
        let (member, subscription) = (&message.entry.member, &message.entry.subscription);
        if !member.is_in() {
            return;
        }
        if self.inner.events.is_exceeded_by(0) {
            self.inner.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
            if member.warn() {
                member.system("postgres_changes", "error", "Too many messages per second: changes are left out");
            }
            return;
        }
        let change = &self.changes[message.change];
        let key = (message.change, role.to_owned(), subscription.shape.clone(), message.verdict);
        let limit = self.inner.config.max_record_kb * 1024;
        let data = self
            .data
            .entry(key)
            .or_insert_with(|| data(change, table, rights, &subscription.shape, message.verdict, limit).into());
        // Equal data is shared, so its address identifies it.
        let identity = Arc::as_ptr(data).cast::<u8>() as usize;
        let frame_key =
            (member.version, member.topic.to_string(), message.ids.clone(), subscription.has_config, identity);
        let frame = self.frames.entry(frame_key).or_insert_with(|| {
            let none = Ref::default();
            if subscription.has_config {
                let ids = Value::from(message.ids.clone());
                let payload = format!(r#"{{"ids":{ids},"data":{data}}}"#);
                protocol::message(member.version, &none, &none, &member.topic, "postgres_changes", payload)
            } else {
                let kind = kind_of(change, message.verdict).name();
                protocol::message(member.version, &none, &none, &member.topic, kind, &*data)
            }
        });
        member.send(frame.clone());
        self.inner.events.add(1);
        self.inner.metrics.sent(Kind::Change, member.world.private, 1);
    }
}

/// The kind of change for the subscriber: a row that leaves the view is deleted.
fn kind_of(change: &Change, verdict: Shown) -> Action {
    if verdict == Shown::Left { Action::Delete } else { change.action }
}

/// The `data` of a message, as JSON.
fn data(change: &Change, table: &Table, rights: &Rights, shape: &Shape, verdict: Shown, limit: usize) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let time = DateTime::from_timestamp_micros(change.committed).unwrap_or_default();
    let mut out = format!(
        r#"{{"schema":{},"table":{},"commit_timestamp":"{}","type":"{}""#,
        quoted(&change.relation.schema),
        quoted(&change.relation.name),
        time.to_rfc3339_opts(SecondsFormat::Millis, true),
        kind_of(change, verdict).name()
    );
    let error = match verdict {
        Shown::Row | Shown::Left => None,
        Shown::NoKey => Some("Error 400: Bad Request, no primary key"),
        Shown::Unauthorized => Some("Error 401: Unauthorized"),
    };
    // Writing to a String cannot fail.
    if let Some(error) = error {
        let record = if change.action == Action::Delete { "" } else { r#","record":{}"# };
        let _ = write!(out, r#","columns":[]{record},"errors":["{error}"]}}"#);
        return out;
    }
    let is_shown = |name: &str| {
        rights.columns.contains(name)
            && (shape.select.as_ref().is_none_or(|select| select.iter().any(|wanted| wanted == name))
                || table.keys().any(|key| key.name == name))
    };
    // Clients convert by these types.
    let texts: Types;
    let (types, type_of): (&Types, fn(&TableColumn) -> &str) = if shape.has_text_numbers {
        texts = table
            .types
            .iter()
            .map(|(oid, kind)| (*oid, kind.clone()))
            .chain(LONG.map(|oid| (oid, json::Kind::Text)))
            .collect();
        (&texts, |column| if LONG.contains(&column.kind) { "text" } else { &column.type_name })
    } else {
        (&table.types, |column| &column.type_name)
    };
    out.push_str(r#","columns":["#);
    for (place, column) in table.columns.iter().filter(|column| is_shown(&column.name)).enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, r#"{comma}{{"name":{},"type":{}}}"#, quoted(&column.name), quoted(type_of(column)));
    }
    out.push(']');
    let is_too_large = limit > 0 && change.size() > limit;
    let row = |out: &mut String, name: &str, is_old: bool, keys_only: bool| {
        let _ = write!(out, r#","{name}":{{"#);
        let mut comma = "";
        for (place, column) in change.relation.columns.iter().enumerate() {
            let is_key = || table.keys().any(|key| key.name == column.name);
            if !is_shown(&column.name) || (keys_only && !is_key()) {
                continue;
            }
            let cell = match is_old {
                true if verdict == Shown::Left => change.identified_cell(place),
                true => change.old_cell(place),
                false => change.new_cell(place),
            };
            let Some(cell) = cell else { continue };
            if is_too_large && cell.len() > SMALL {
                continue;
            }
            let _ = write!(out, "{comma}{}:", quoted(&column.name));
            comma = ",";
            match cell.text() {
                Some(value) => json::write(types, column.kind, value, out),
                None => out.push_str("null"),
            }
        }
        out.push('}');
    };
    match change.action {
        _ if verdict == Shown::Left => row(&mut out, "old_record", true, true),
        Action::Insert => row(&mut out, "record", false, false),
        Action::Update => {
            row(&mut out, "record", false, false);
            row(&mut out, "old_record", true, false);
        }
        // Policies cannot be checked for a deleted row, so with row level security only its key is sent.
        Action::Delete => row(&mut out, "old_record", true, rights.rls),
    }
    let errors = if is_too_large { r#"["Error 413: Payload Too Large"]"# } else { "null" };
    let _ = write!(out, r#","errors":{errors}}}"#);
    out
}
