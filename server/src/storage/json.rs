//! Parses JSON from clients within bounds of memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// How many values JSON may have: this many, and one more for so many bytes. A parsed value takes about a hundred bytes, so
/// that short ones take sixty times the memory of their text.
const MAX_VALUES: usize = 10_000;
const BYTES_PER_VALUE: usize = 16;

/// Why JSON was not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    Syntax,
    TooManyValues,
}

/// Parses JSON from a client unless it would take much more memory than its text.
pub fn parse_json(text: &[u8]) -> Result<Value, JsonFault> {
    let mut left = MAX_VALUES + text.len() / BYTES_PER_VALUE;
    let counted = Count { left: &mut left }.deserialize(&mut serde_json::Deserializer::from_slice(text));
    match counted {
        Err(_) if left == 0 => Err(JsonFault::TooManyValues),
        Err(_) => Err(JsonFault::Syntax),
        Ok(()) => serde_json::from_slice(text).map_err(|_| JsonFault::Syntax),
    }
}

/// Counts values down to zero without keeping any. Refuses the value after the last.
struct Count<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| Error::custom("too many values"))?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Count { left: &mut *self.left })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_key::<IgnoredAny>()?.is_some() {
            object.next_value_seed(Count { left: &mut *self.left })?;
        }
        Ok(())
    }
}
