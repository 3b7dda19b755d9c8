//! Presence in a room: one entry per tracking channel, under its key.
//!
//! Several entries may share a key (a person with two tabs). An update is a leave of the old entry and a join of the
//! new one, in one diff.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The entry of one channel.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: Box<str>,
    reference: Box<str>,
    payload: Map<String, Value>,
    /// About the bytes of key and payload.
    size: usize,
}

/// An entry in messages between instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    pub channel: u64,
    pub key: String,
    pub reference: String,
    pub payload: Map<String, Value>,
}

/// Entries by (instance, channel).
#[derive(Default)]
pub struct Presences {
    entries: BTreeMap<(u64, u64), Entry>,
    size: usize,
}

/// Joins and leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    joins: Vec<(Box<str>, Value)>,
    leaves: Vec<(Box<str>, Value)>,
}

impl Diff {
    pub fn as_json(&self) -> Value {
        json!({ "joins": grouped(&self.joins), "leaves": grouped(&self.leaves) })
    }

    pub fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.leaves.is_empty()
    }
}

fn size_in_json(payload: &Map<String, Value>) -> usize {
    serde_json::to_vec(payload).map_or(0, |text| text.len())
}

fn grouped(metas: &[(Box<str>, Value)]) -> Value {
    let mut keys = Map::new();
    for (key, meta) in metas {
        let entry = keys.entry(&**key).or_insert_with(|| json!({ "metas": [] }));
        if let Some(list) = entry["metas"].as_array_mut() {
            list.push(meta.clone());
        }
    }
    Value::Object(keys)
}

impl Entry {
    fn meta(&self, previous: Option<&str>) -> Value {
        let mut meta = Map::new();
        meta.insert("phx_ref".to_owned(), Value::from(&*self.reference));
        if let Some(previous) = previous {
            meta.insert("phx_ref_prev".to_owned(), Value::from(previous));
        }
        for (name, value) in &self.payload {
            // These names are reserved.
            if name != "phx_ref" && name != "phx_ref_prev" {
                meta.insert(name.clone(), value.clone());
            }
        }
        Value::Object(meta)
    }
}

impl Presences {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole state, for `presence_state`.
    pub fn state(&self) -> Value {
        let metas: Vec<_> = self.entries.values().map(|entry| (entry.key.clone(), entry.meta(None))).collect();
        grouped(&metas)
    }

    /// Adds or changes the entry of a channel. `None` if nothing changed.
    pub fn track(
        &mut self,
        instance: u64,
        channel: u64,
        key: &str,
        reference: &str,
        payload: Map<String, Value>,
    ) -> Option<Diff> {
        let size = key.len() + size_in_json(&payload);
        let entry = Entry { key: key.into(), reference: reference.into(), payload, size };
        let mut diff = Diff::default();
        match self.entries.get(&(instance, channel)) {
            Some(old) if old.payload == entry.payload && old.key == entry.key => return None,
            Some(old) => {
                diff.joins.push((entry.key.clone(), entry.meta(Some(&old.reference))));
                diff.leaves.push((old.key.clone(), old.meta(None)));
            }
            None => diff.joins.push((entry.key.clone(), entry.meta(None))),
        }
        self.size += size;
        let old = self.entries.insert((instance, channel), entry);
        self.size -= old.map_or(0, |old| old.size);
        Some(diff)
    }

    /// About the bytes of all entries if this channel's were the given one.
    pub fn size_with(&self, instance: u64, channel: u64, key: &str, payload: &Map<String, Value>) -> usize {
        let old = self.entries.get(&(instance, channel)).map_or(0, |old| old.size);
        self.size - old + key.len() + size_in_json(payload)
    }

    fn remove(&mut self, place: (u64, u64)) -> Option<Entry> {
        let old = self.entries.remove(&place)?;
        self.size -= old.size;
        Some(old)
    }

    /// Removes the entry of a channel.
    pub fn untrack(&mut self, instance: u64, channel: u64) -> Option<Diff> {
        let old = self.remove((instance, channel))?;
        Some(Diff { joins: Vec::new(), leaves: vec![(old.key.clone(), old.meta(None))] })
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
                diff.leaves.push((old.key.clone(), old.meta(None)));
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
                payload: entry.payload.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn two_tabs_share_a_key_and_leave_one_by_one() {
        let mut presences = Presences::default();
        presences.track(1, 1, "ann", "r1", payload(json!({ "tab": 1 })));
        let diff = presences.track(1, 2, "ann", "r2", payload(json!({ "tab": 2 }))).expect("a join");
        assert_eq!(
            diff.as_json(),
            json!({ "joins": { "ann": { "metas": [{ "phx_ref": "r2", "tab": 2 }] } }, "leaves": {} })
        );
        assert_eq!(
            presences.state(),
            json!({ "ann": { "metas": [{ "phx_ref": "r1", "tab": 1 }, { "phx_ref": "r2", "tab": 2 }] } })
        );
        presences.untrack(1, 1);
        assert_eq!(presences.state()["ann"]["metas"][0]["phx_ref"], "r2");
        assert!(presences.untrack(1, 1).is_none());
    }

    #[test]
    fn an_update_is_a_leave_and_a_join_and_a_repetition_is_ignored() {
        let mut presences = Presences::default();
        presences.track(1, 1, "k", "r1", payload(json!({ "a": 1 })));
        assert_eq!(presences.track(1, 1, "k", "r2", payload(json!({ "a": 1 }))), None);
        let diff = presences.track(1, 1, "k", "r2", payload(json!({ "a": 2, "phx_ref": "forged" }))).expect("a diff");
        assert_eq!(
            diff.as_json(),
            json!({
                "joins": { "k": { "metas": [{ "phx_ref": "r2", "phx_ref_prev": "r1", "a": 2 }] } },
                "leaves": { "k": { "metas": [{ "phx_ref": "r1", "a": 1 }] } },
            })
        );
    }

    #[test]
    fn an_instance_has_exactly_the_presences_it_announced() {
        let mut presences = Presences::default();
        presences.track(1, 1, "a", "r1", Map::new());
        presences.track(2, 1, "b", "r2", Map::new());
        presences.track(2, 2, "c", "r3", Map::new());
        let mut entries = presences.owned_by(2);
        assert_eq!(presences.replace(2, entries.clone()), None, "a repeated message changes nothing");
        entries.remove(0);
        entries[0].payload = payload(json!({ "at": 1 }));
        entries[0].reference = "r4".to_owned();
        let diff = presences.replace(2, entries).expect("a diff").as_json();
        assert_eq!(diff["joins"]["c"]["metas"], json!([{ "phx_ref": "r4", "phx_ref_prev": "r3", "at": 1 }]));
        assert_eq!(diff["leaves"]["b"]["metas"], json!([{ "phx_ref": "r2" }]));
        let all = presences.size_with(1, 9, "", &Map::new());
        presences.replace(2, Vec::new());
        assert!(presences.size_with(1, 9, "", &Map::new()) < all);
        assert_eq!(presences.size_with(1, 1, "a", &Map::new()), "a{}".len());
        assert_eq!(presences.state(), json!({ "a": { "metas": [{ "phx_ref": "r1" }] } }));
        assert_eq!(presences.replace(3, Vec::new()), None);
    }
}
