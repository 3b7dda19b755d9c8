//! Messages of PostgreSQL's output plugin `pgoutput`, protocol version 1, values as text.
//!
//! Reference: PostgreSQL's documentation, "Logical Replication Message Formats".

use bytes::{Buf, Bytes};

/// From 1970 to 2000, where PostgreSQL's clock starts, in microseconds.
const EPOCH: i64 = 946_684_800_000_000;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// `committed`: microseconds since 1970.
    Begin {
        committed: i64,
        xid: u32,
    },
    Commit {
        end: u64,
    },
    Relation(Relation),
    Insert {
        relation: u32,
        new: Tuple,
    },
    Update {
        relation: u32,
        old: Option<Old>,
        new: Tuple,
    },
    Delete {
        relation: u32,
        old: Old,
    },
    /// A message of `pg_logical_emit_message`.
    Logical {
        prefix: String,
        content: Bytes,
    },
    /// Origin, type and truncation, which are ignored.
    Other,
}

/// A table, as used by the following messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    pub id: u32,
    pub schema: String,
    pub name: String,
    /// `d`efault, `n`othing, `f`ull, `i`ndex.
    pub identity: u8,
    pub columns: Vec<RelationColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RelationColumn {
    /// Part of the replica identity.
    pub is_key: bool,
    pub name: String,
    pub kind: u32,
}

/// The known part of a row before the change.
#[derive(Clone, Debug, PartialEq)]
pub enum Old {
    /// The columns of its replica identity; the others are null here.
    Key(Tuple),
    Full(Tuple),
}

/// A row's values, in the order of the relation's columns.
pub type Tuple = Vec<Cell>;

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    /// Stored apart from the row (TOAST) and not changed: not sent.
    Unchanged,
    /// Text.
    Text(Bytes),
}

impl Cell {
    /// The text, if there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Null | Self::Unchanged => None,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Text(bytes) => bytes.len(),
            Self::Null | Self::Unchanged => 0,
        }
    }
}

/// An invalid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a malformed message of pgoutput")]
pub struct Malformed;

/// The unread rest of a message.
struct Rest(Bytes);

impl Rest {
    fn u8(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.0.try_get_u16().map_err(|_| Malformed)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32().map_err(|_| Malformed)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.try_get_u64().map_err(|_| Malformed)
    }

    fn i64(&mut self) -> Result<i64, Malformed> {
        self.0.try_get_i64().map_err(|_| Malformed)
    }

    fn take(&mut self, length: u32) -> Result<Bytes, Malformed> {
        let length = length as usize;
        if length > self.0.len() {
            return Err(Malformed);
        }
        Ok(self.0.split_to(length))
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.to_vec()).map_err(|_| Malformed)
    }

    fn tuple(&mut self) -> Result<Tuple, Malformed> {
        let count = self.u16()?;
        let mut cells = Vec::with_capacity(usize::from(count).min(self.0.len()));
        for _ in 0..count {
            cells.push(match self.u8()? {
                b'n' => Cell::Null,
                b'u' => Cell::Unchanged,
                b't' => {
                    let length = self.u32()?;
                    Cell::Text(self.take(length)?)
                }
                _ => return Err(Malformed),
            });
        }
        Ok(cells)
    }

    fn old(&mut self, mark: u8) -> Result<Option<Old>, Malformed> {
        Ok(match mark {
            b'K' => Some(Old::Key(self.tuple()?)),
            b'O' => Some(Old::Full(self.tuple()?)),
            b'N' => None,
            _ => return Err(Malformed),
        })
    }
}

impl Message {
    pub fn parse(body: Bytes) -> Result<Self, Malformed> {
        let mut rest = Rest(body);
        let message = match rest.u8()? {
            b'B' => {
                let _final_position = rest.u64()?;
                let committed = rest.i64()?.saturating_add(EPOCH);
                let xid = rest.u32()?;
                Self::Begin { committed, xid }
            }
            b'C' => {
                let (_flags, _position) = (rest.u8()?, rest.u64()?);
                let end = rest.u64()?;
                let _committed = rest.i64()?;
                Self::Commit { end }
            }
            b'R' => {
                let id = rest.u32()?;
                let (schema, name) = (rest.string()?, rest.string()?);
                let identity = rest.u8()?;
                let count = rest.u16()?;
                let mut columns = Vec::with_capacity(usize::from(count).min(rest.0.len()));
                for _ in 0..count {
                    let is_key = rest.u8()? & 1 == 1;
                    let name = rest.string()?;
                    let kind = rest.u32()?;
                    let _modifier = rest.u32()?;
                    columns.push(RelationColumn { is_key, name, kind });
                }
                // PostgreSQL sends an empty name for this schema.
                let schema = if schema.is_empty() { "pg_catalog".to_owned() } else { schema };
                Self::Relation(Relation { id, schema, name, identity, columns })
            }
            b'I' => {
                let relation = rest.u32()?;
                if rest.u8()? != b'N' {
                    return Err(Malformed);
                }
                Self::Insert { relation, new: rest.tuple()? }
            }
            b'U' => {
                let relation = rest.u32()?;
                let mark = rest.u8()?;
                let old = rest.old(mark)?;
                if old.is_some() && rest.u8()? != b'N' {
                    return Err(Malformed);
                }
                Self::Update { relation, old, new: rest.tuple()? }
            }
            b'D' => {
                let relation = rest.u32()?;
                let mark = rest.u8()?;
                Self::Delete { relation, old: rest.old(mark)?.ok_or(Malformed)? }
            }
            b'M' => {
                let (_flags, _position) = (rest.u8()?, rest.u64()?);
                let prefix = rest.string()?;
                let length = rest.u32()?;
                Self::Logical { prefix, content: rest.take(length)? }
            }
            b'O' | b'Y' | b'T' => return Ok(Self::Other),
            _ => return Err(Malformed),
        };
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut, BytesMut};
    use proptest::prelude::*;

    fn cell() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Null),
            Just(Cell::Unchanged),
            ".{0,20}".prop_map(|text| Cell::Text(text.into_bytes().into())),
        ]
    }

    fn tuple() -> impl Strategy<Value = Tuple> {
        proptest::collection::vec(cell(), 0..6)
    }

    fn old() -> impl Strategy<Value = Old> {
        prop_oneof![tuple().prop_map(Old::Key), tuple().prop_map(Old::Full)]
    }

    fn name() -> impl Strategy<Value = String> {
        "[^\0]{1,12}"
    }

    fn message() -> impl Strategy<Value = Message> {
        let column = (any::<bool>(), name(), any::<u32>()).prop_map(|(is_key, name, kind)| RelationColumn {
            is_key,
            name,
            kind,
        });
        prop_oneof![
            (0i64..4_000_000_000_000_000, any::<u32>()).prop_map(|(committed, xid)| Message::Begin { committed, xid }),
            any::<u64>().prop_map(|end| Message::Commit { end }),
            (any::<u32>(), name(), name(), any::<u8>(), proptest::collection::vec(column, 0..6)).prop_map(
                |(id, schema, name, identity, columns)| {
                    Message::Relation(Relation { id, schema, name, identity, columns })
                }
            ),
            (any::<u32>(), tuple()).prop_map(|(relation, new)| Message::Insert { relation, new }),
            (any::<u32>(), proptest::option::of(old()), tuple()).prop_map(|(relation, old, new)| Message::Update {
                relation,
                old,
                new
            }),
            (any::<u32>(), old()).prop_map(|(relation, old)| Message::Delete { relation, old }),
            (name(), any::<Vec<u8>>())
                .prop_map(|(prefix, content)| Message::Logical { prefix, content: content.into() }),
        ]
    }

    fn put_string(out: &mut BytesMut, text: &str) {
        out.put_slice(text.as_bytes());
        out.put_u8(0);
    }

    fn put_tuple(out: &mut BytesMut, tuple: &Tuple) {
        out.put_u16(u16::try_from(tuple.len()).expect("few"));
        for cell in tuple {
            match cell {
                Cell::Null => out.put_u8(b'n'),
                Cell::Unchanged => out.put_u8(b'u'),
                Cell::Text(text) => {
                    out.put_u8(b't');
                    out.put_u32(u32::try_from(text.len()).expect("short"));
                    out.put_slice(text);
                }
            }
        }
    }

    fn put_old(out: &mut BytesMut, old: &Old) {
        let (mark, tuple) = match old {
            Old::Key(tuple) => (b'K', tuple),
            Old::Full(tuple) => (b'O', tuple),
        };
        out.put_u8(mark);
        put_tuple(out, tuple);
    }

    /// Encodes a message as documented by PostgreSQL.
    fn written(message: &Message) -> Bytes {
        let mut out = BytesMut::new();
        match message {
            Message::Begin { committed, xid } => {
                out.put_u8(b'B');
                out.put_u64(1);
                out.put_i64(committed - EPOCH);
                out.put_u32(*xid);
            }
            Message::Commit { end } => {
                out.put_u8(b'C');
                out.put_u8(0);
                out.put_u64(1);
                out.put_u64(*end);
                out.put_i64(0);
            }
            Message::Relation(relation) => {
                out.put_u8(b'R');
                out.put_u32(relation.id);
                put_string(&mut out, &relation.schema);
                put_string(&mut out, &relation.name);
                out.put_u8(relation.identity);
                out.put_u16(u16::try_from(relation.columns.len()).expect("few"));
                for column in &relation.columns {
                    out.put_u8(u8::from(column.is_key));
                    put_string(&mut out, &column.name);
                    out.put_u32(column.kind);
                    out.put_i32(-1);
                }
            }
            Message::Insert { relation, new } => {
                out.put_u8(b'I');
                out.put_u32(*relation);
                out.put_u8(b'N');
                put_tuple(&mut out, new);
            }
            Message::Update { relation, old, new } => {
                out.put_u8(b'U');
                out.put_u32(*relation);
                if let Some(old) = old {
                    put_old(&mut out, old);
                }
                out.put_u8(b'N');
                put_tuple(&mut out, new);
            }
            Message::Delete { relation, old } => {
                out.put_u8(b'D');
                out.put_u32(*relation);
                put_old(&mut out, old);
            }
            Message::Logical { prefix, content } => {
                out.put_u8(b'M');
                out.put_u8(1);
                out.put_u64(1);
                put_string(&mut out, prefix);
                out.put_u32(u32::try_from(content.len()).expect("short"));
                out.put_slice(content);
            }
            Message::Other => out.put_u8(b'T'),
        }
        out.freeze()
    }

    proptest! {
        #[test]
        fn written_messages_are_read_back(message in message()) {
            prop_assert_eq!(Message::parse(written(&message)), Ok(message));
        }

        #[test]
        fn a_truncated_message_is_refused_without_a_panic(message in message(), cut in 0usize..200) {
            let whole = written(&message);
            let cut = cut.min(whole.len().saturating_sub(1));
            prop_assert_eq!(Message::parse(whole.slice(..cut)), Err(Malformed));
        }

        #[test]
        fn random_bytes_cause_no_panic(bytes: Vec<u8>) {
            let _ = Message::parse(bytes.into());
        }
    }
}
