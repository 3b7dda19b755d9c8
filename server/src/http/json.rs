//! Parses JSON from clients within bounds of memory.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How many values JSON may have: this many, and one more for so many bytes. A parsed value takes about a hundred bytes, so
/// that short ones take sixty times the memory of their text.
const MAX_VALUES: usize = 10_000;
const BYTES_PER_VALUE: usize = 16;
/// How many values more an object with members counts for: its table takes as much memory as they.
const TABLE: usize = 3;

/// Why JSON was not parsed.
#[derive(Debug)]
pub enum JsonFault {
    Syntax(serde_json::Error),
    TooManyValues,
}

/// Parses JSON from a client unless it would take much more memory than its text.
pub fn parse_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonFault> {
    let mut left = MAX_VALUES + text.len() / BYTES_PER_VALUE;
    let counted = Count { left: &mut left }.deserialize(&mut serde_json::Deserializer::from_slice(text));
    match counted {
        Err(_) if left == 0 => Err(JsonFault::TooManyValues),
        Err(error) => Err(JsonFault::Syntax(error)),
        Ok(()) => serde_json::from_slice(text).map_err(JsonFault::Syntax),
    }
}

/// Counts values down to zero without keeping any. Refuses the value after the last.
struct Count<'a> {
    left: &'a mut usize,
}

impl Count<'_> {
    fn take<E: Error>(&mut self, values: usize) -> Result<(), E> {
        let is_enough = *self.left >= values;
        *self.left = self.left.saturating_sub(values);
        if is_enough { Ok(()) } else { Err(E::custom("too many values")) }
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, json: D) -> Result<(), D::Error> {
        self.take(1)?;
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

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        let mut is_first = true;
        while object.next_key::<IgnoredAny>()?.is_some() {
            if std::mem::take(&mut is_first) {
                self.take(TABLE)?;
            }
            object.next_value_seed(Count { left: &mut *self.left })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    fn parse(text: &str) -> Result<Value, JsonFault> {
        parse_json(text.as_bytes())
    }

    #[test]
    fn many_short_values_are_refused_and_long_ones_are_not() {
        for short in [r#"{"":0}"#, "0", "[]", "{}"] {
            let body = format!("[{}]", vec![short; (1 << 20) / (short.len() + 1)].join(","));
            assert!(matches!(parse(&body), Err(JsonFault::TooManyValues)), "{short}");
        }
        let long = format!("\"{}\"", "x".repeat(30));
        assert!(parse(&format!("[{}]", vec![long.as_str(); (1 << 20) / 33].join(","))).is_ok());
        // Few values are never too many, however short.
        assert!(parse(&format!("[{}]", vec!["0"; MAX_VALUES - 1].join(","))).is_ok());
        assert!(parse(&format!("[{}]", vec![r#"{"":0}"#; MAX_VALUES / 5].join(","))).is_ok());
    }

    #[test]
    fn a_mistake_is_told_in_the_words_of_the_parser() {
        for text in ["", "{", "[1,]", "{} x", "nul", r#"{"a" 1}"#, r#"{"a":1,}"#, "\"\n\"", "1e999", r#"{"\ud800":1}"#]
        {
            let parsers = serde_json::from_str::<Value>(text).map_err(|error| (error.to_string(), error.is_eof()));
            let ours = parse(text).map_err(|fault| match fault {
                JsonFault::Syntax(error) => (error.to_string(), error.is_eof()),
                JsonFault::TooManyValues => ("too many values".to_owned(), false),
            });
            assert_eq!(ours, parsers, "{text}");
        }
        assert!(matches!(parse_json::<Map<String, Value>>(b"[]"), Err(JsonFault::Syntax(_))));
    }
}
