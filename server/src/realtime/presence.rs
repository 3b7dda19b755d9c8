//! Presence in a room: one entry per tracking channel, under its key.
//!
//! Several entries may share a key (a person with two tabs). An update is a leave of the old entry and a join of the
//! new one, in one diff.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Names in a meta that are not the client's.
const RESERVED: [&str; 2] = ["phx_ref", "phx_ref_prev"];

/// What a channel tracks: a JSON object. It is kept as text, because parsed it may take sixty times the memory.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    /// The object's members without its braces and without reserved names.
    members: Arc<str>,
}

impl Tracked {
    /// Bytes of its JSON.
    fn len(&self) -> usize {
        "{}".len() + self.members.len()
    }

    fn as_json(&self) -> String {
        format!("{{{}}}", self.members)
    }
}

/// Some clients write the members of equal objects in another order each time, so short ones are also compared as values.
impl PartialEq for Tracked {
    fn eq(&self, other: &Self) -> bool {
        const SHORT: usize = 64 << 10;
        let value = |tracked: &Self| serde_json::from_str::<Value>(&tracked.as_json()).ok();
        let are_short = self.len() <= SHORT && other.len() <= SHORT;
        self.members == other.members || (are_short && value(self).is_some_and(|ours| Some(ours) == value(other)))
    }
}

impl Serialize for Tracked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.as_json()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tracked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Tracked;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tracked, A::Error> {
                let mut members = String::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if RESERVED.contains(&name.as_str()) {
                        continue;
                    }
                    let comma = if members.is_empty() { "" } else { "," };
                    // Writing to a String cannot fail.
                    let _ = write!(members, "{comma}{}:{value}", Value::from(name));
                }
                Ok(Tracked { members: members.into() })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The entry of one channel.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: Arc<str>,
    reference: Arc<str>,
    tracked: Tracked,
}

/// An entry in messages between instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    pub channel: u64,
    pub key: String,
    pub reference: String,
    pub payload: Tracked,
}

/// Entries by (instance, channel).
#[derive(Default)]
pub struct Presences {
    entries: BTreeMap<(u64, u64), Entry>,
    size: usize,
}

/// Joins, each with the reference of the entry that it replaces, and leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    joins: Vec<(Entry, Option<Arc<str>>)>,
    leaves: Vec<Entry>,
}

impl Diff {
    pub fn as_json(&self) -> String {
        let joins = grouped(self.joins.iter().map(|(entry, previous)| (entry, previous.as_deref())));
        let leaves = grouped(self.leaves.iter().map(|entry| (entry, None)));
        format!(r#"{{"joins":{joins},"leaves":{leaves}}}"#)
    }

    pub fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.leaves.is_empty()
    }
}

/// About the bytes of an entry.
pub fn size(key: &str, tracked: &Tracked) -> usize {
    key.len() + tracked.len()
}

/// Bytes of presences in a room, of a socket and in the process: what there is, or may be.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub room: usize,
    pub socket: usize,
    pub address: usize,
    pub process: usize,
}

impl Sizes {
    /// Why an entry may not grow from `old` to `new` bytes, if these are the bounds and `current` is there.
    pub fn refuse(self, current: Self, old: usize, new: usize) -> Option<&'static str> {
        let is_full = |current: usize, most: usize| new > old && current.saturating_sub(old) + new > most;
        if is_full(current.room, self.room) {
            Some("Too many presences on this channel")
        } else if is_full(current.socket, self.socket) {
            Some("Too many presences on this connection")
        } else if is_full(current.address, self.address) {
            Some("Too many presences of this address")
        } else if is_full(current.process, self.process) {
            Some("Too many presences")
        } else {
            None
        }
    }
}

/// An entry, and the reference of the one that it replaces.
type Shown<'a> = (&'a Entry, Option<&'a str>);

/// JSON of entries by key: `{"<key>":{"metas":[…]}}`.
fn grouped<'a>(entries: impl Iterator<Item = Shown<'a>>) -> String {
    let mut keys: Vec<(&str, Vec<Shown<'a>>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (entry, previous) in entries {
        let place = *places.entry(&entry.key).or_insert_with(|| {
            keys.push((&entry.key, Vec::new()));
            keys.len() - 1
        });
        keys[place].1.push((entry, previous));
    }
    let mut text = String::from("{");
    for (place, (key, metas)) in keys.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, r#"{comma}{}:{{"metas":["#, Value::from(key));
        for (place, (entry, previous)) in metas.into_iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            entry.write_meta(previous, &mut text);
        }
        text.push_str("]}");
    }
    text.push('}');
    text
}

impl Entry {
    fn write_meta(&self, previous: Option<&str>, text: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(text, r#"{{"phx_ref":{}"#, Value::from(&*self.reference));
        if let Some(previous) = previous {
            let _ = write!(text, r#","phx_ref_prev":{}"#, Value::from(previous));
        }
        let members = &self.tracked.members;
        let comma = if members.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{members}}}");
    }

    fn size(&self) -> usize {
        size(&self.key, &self.tracked)
    }
}

impl Presences {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole state as JSON, for `presence_state`.
    pub fn state(&self) -> String {
        grouped(self.entries.values().map(|entry| (entry, None)))
    }

    /// Adds or changes the entry of a channel. `None` if nothing changed.
    pub fn track(&mut self, instance: u64, channel: u64, key: &str, reference: &str, tracked: Tracked) -> Option<Diff> {
        let entry = Entry { key: key.into(), reference: reference.into(), tracked };
        let mut diff = Diff::default();
        match self.entries.get(&(instance, channel)) {
            Some(old) if old.tracked == entry.tracked && old.key == entry.key => return None,
            Some(old) => {
                diff.joins.push((entry.clone(), Some(Arc::clone(&old.reference))));
                diff.leaves.push(old.clone());
            }
            None => diff.joins.push((entry.clone(), None)),
        }
        self.size += entry.size();
        let old = self.entries.insert((instance, channel), entry);
        self.size -= old.map_or(0, |old| old.size());
        Some(diff)
    }

    /// About the bytes of all entries.
    pub fn size(&self) -> usize {
        self.size
    }

    /// About the bytes of a channel's entry.
    pub fn size_of(&self, instance: u64, channel: u64) -> usize {
        self.entries.get(&(instance, channel)).map_or(0, Entry::size)
    }

    fn remove(&mut self, place: (u64, u64)) -> Option<Entry> {
        let old = self.entries.remove(&place)?;
        self.size -= old.size();
        Some(old)
    }

    /// Removes the entry of a channel.
    pub fn untrack(&mut self, instance: u64, channel: u64) -> Option<Diff> {
        let old = self.remove((instance, channel))?;
        Some(Diff { joins: Vec::new(), leaves: vec![old] })
    }

    /// Replaces the entries of an instance.
    pub fn replace(&mut self, instance: u64, entries: Vec<Presence>) -> Option<Diff> {
        let kept: HashSet<u64> = entries.iter().map(|entry| entry.channel).collect();
        let whole = (instance, 0)..=(instance, u64::MAX);
        let gone: Vec<_> =
            self.entries.range(whole).map(|(place, _)| *place).filter(|place| !kept.contains(&place.1)).collect();
        let mut diff = Diff::default();
        for place in gone {
            if let Some(old) = self.remove(place) {
                diff.leaves.push(old);
            }
        }
        for Presence { channel, key, reference, payload } in entries {
            if let Some(more) = self.track(instance, channel, &key, &reference, payload) {
                diff.joins.extend(more.joins);
                diff.leaves.extend(more.leaves);
            }
        }
        (!diff.is_empty()).then_some(diff)
    }

    /// The entries of an instance.
    pub fn owned_by(&self, instance: u64) -> Vec<Presence> {
        self.entries
            .range((instance, 0)..=(instance, u64::MAX))
            .map(|((_, channel), entry)| Presence {
                channel: *channel,
                key: entry.key.to_string(),
                reference: entry.reference.to_string(),
                payload: entry.tracked.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn payload(value: Value) -> Tracked {
        serde_json::from_str(&value.to_string()).expect("an object")
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn two_tabs_share_a_key_and_leave_one_by_one() {
        let mut presences = Presences::default();
        presences.track(1, 1, "ann", "r1", payload(json!({ "tab": 1 })));
        let diff = presences.track(1, 2, "ann", "r2", payload(json!({ "tab": 2 }))).expect("a join");
        assert_eq!(
            value(&diff.as_json()),
            json!({ "joins": { "ann": { "metas": [{ "phx_ref": "r2", "tab": 2 }] } }, "leaves": {} })
        );
        assert_eq!(
            value(&presences.state()),
            json!({ "ann": { "metas": [{ "phx_ref": "r1", "tab": 1 }, { "phx_ref": "r2", "tab": 2 }] } })
        );
        presences.untrack(1, 1);
        assert_eq!(value(&presences.state())["ann"]["metas"][0]["phx_ref"], "r2");
        assert!(presences.untrack(1, 1).is_none());
    }

    #[test]
    fn an_update_is_a_leave_and_a_join_and_a_repetition_is_ignored() {
        let mut presences = Presences::default();
        presences.track(1, 1, "k", "r1", payload(json!({ "a": 1 })));
        assert_eq!(presences.track(1, 1, "k", "r2", payload(json!({ "a": 1 }))), None);
        let diff = presences.track(1, 1, "k", "r2", payload(json!({ "a": 2, "phx_ref": "forged" }))).expect("a diff");
        assert_eq!(
            value(&diff.as_json()),
            json!({
                "joins": { "k": { "metas": [{ "phx_ref": "r2", "phx_ref_prev": "r1", "a": 2 }] } },
                "leaves": { "k": { "metas": [{ "phx_ref": "r1", "a": 1 }] } },
            })
        );
    }

    #[test]
    fn an_instance_has_exactly_the_presences_it_announced() {
        let mut presences = Presences::default();
        presences.track(1, 1, "a", "r1", Tracked::default());
        presences.track(2, 1, "b", "r2", Tracked::default());
        presences.track(2, 2, "c", "r3", Tracked::default());
        let mut entries = presences.owned_by(2);
        assert_eq!(presences.replace(2, entries.clone()), None, "a repeated message changes nothing");
        entries.remove(0);
        entries[0].payload = payload(json!({ "at": 1 }));
        entries[0].reference = "r4".to_owned();
        let diff = presences.replace(2, entries).expect("a diff");
        let diff = value(&diff.as_json());
        assert_eq!(diff["joins"]["c"]["metas"], json!([{ "phx_ref": "r4", "phx_ref_prev": "r3", "at": 1 }]));
        assert_eq!(diff["leaves"]["b"]["metas"], json!([{ "phx_ref": "r2" }]));
        let all = presences.size();
        presences.replace(2, Vec::new());
        assert!(presences.size() < all);
        assert_eq!((presences.size(), presences.size_of(1, 1)), ("a{}".len(), "a{}".len()));
        assert_eq!(value(&presences.state()), json!({ "a": { "metas": [{ "phx_ref": "r1" }] } }));
        assert_eq!(presences.replace(3, Vec::new()), None);
    }

    #[test]
    fn payloads_are_kept_as_they_were_written() {
        let tracked: Tracked = serde_json::from_str(r#"{ "phx\u005fref": 1, "big" : 1e400, "list":[ {"":0}, 1.50 ] }"#)
            .expect("an object");
        assert_eq!(tracked.as_json(), r#"{"big":1e400,"list":[ {"":0}, 1.50 ]}"#);
        let sent = Presence { channel: 1, key: "\"k".to_owned(), reference: "r".to_owned(), payload: tracked };
        let text = serde_json::to_vec(&sent).expect("JSON");
        let received: Presence = serde_json::from_slice(&text).expect("a presence");
        assert_eq!(received, sent);
        let mut presences = Presences::default();
        presences.replace(1, vec![received]);
        assert_eq!(presences.state(), r#"{"\"k":{"metas":[{"phx_ref":"r","big":1e400,"list":[ {"":0}, 1.50 ]}]}}"#);
        assert!(["[]", "null", "\"x\"", "{", "[[]]"].iter().all(|bad| serde_json::from_str::<Tracked>(bad).is_err()));
    }

    #[test]
    fn members_in_another_order_are_the_same_payload() {
        let (one, other) = (json!({ "a": 1, "b": { "c": [], "d": 2 } }), json!({ "b": { "d": 2, "c": [] }, "a": 1 }));
        assert_eq!(payload(one), payload(other.clone()));
        assert_ne!(payload(json!({ "a": 1 })), payload(other));
    }

    #[test]
    fn presences_are_bounded_by_room_socket_and_process() {
        let most = Sizes { room: 10, socket: 20, address: 25, process: 30 };
        let current = Sizes { room: 6, socket: 16, address: 21, process: 26 };
        assert_eq!(most.refuse(current, 0, 4), None);
        assert_eq!(most.refuse(current, 2, 6), None, "the old entry makes room");
        assert_eq!(most.refuse(current, 0, 5), Some("Too many presences on this channel"));
        let current = Sizes { room: 0, ..current };
        assert_eq!(most.refuse(current, 0, 5), Some("Too many presences on this connection"));
        let current = Sizes { socket: 0, ..current };
        assert_eq!(most.refuse(current, 0, 5), Some("Too many presences of this address"));
        let current = Sizes { address: 0, ..current };
        assert_eq!(most.refuse(current, 0, 5), Some("Too many presences"));
        let current = Sizes { room: 100, socket: 100, address: 100, process: 100 };
        assert_eq!(most.refuse(current, 2, 2), None, "an entry may always become smaller");
    }
}
