//! CSV bodies: a header line, then one record per line.
//!
//! Written by hand because the errors are part of the API: they are those of the reference's reader (the
//! Haskell package cassava on attoparsec), and so is the zip of records with the header.

use std::collections::{BTreeMap, BTreeSet};

/// Why a body is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum CsvFault {
    /// In the reference's words.
    Syntax(String),
    /// The header has too many names.
    TooManyNames,
    /// Records have different columns.
    Uneven,
    /// Not UTF-8: storing replacement characters would be wrong data.
    NotUtf8,
    /// The rows as JSON repeat the header's names, and would exceed the size limit of bodies.
    TooLong,
}

/// The records as a JSON array of objects of strings and nulls (for the literal `NULL`), of at most `most` bytes, and
/// their columns, of which the header names at most `most_names`. Unreadable records are reported before other errors.
pub fn to_json(body: &[u8], most: usize, most_names: usize) -> Result<(Vec<u8>, BTreeSet<String>), CsvFault> {
    let mut reader = Reader { input: body, pos: 0 };
    let header = reader.record(most_names).map_err(CsvFault::Syntax)?;
    if header.surplus > 0 {
        return Err(CsvFault::TooManyNames);
    }
    reader.line_end().map_err(CsvFault::Syntax)?;
    let mut rows = Rows { names: header.fields, columns: None, json: vec![b'['], most, fault: None };
    loop {
        // Zipped with the header: surplus fields are dropped, missing ones not sent.
        let record = reader.record(rows.names.len()).map_err(CsvFault::Syntax)?;
        if !record.is_empty_line() {
            rows.add(&record.fields);
        }
        if reader.at_end() {
            break;
        }
        reader.line_end().map_err(CsvFault::Syntax)?;
        if reader.at_end() {
            break;
        }
    }
    rows.finish()
}

/// Names as JSON strings, each with the index of its value. Sorted; of equal ones the last counts.
type Columns = Vec<(Vec<u8>, usize)>;

/// The rows so far. After an error no rows are added, but reading continues, because a later error may take precedence.
struct Rows {
    names: Vec<Vec<u8>>,
    /// The number of fields and the columns of the first record, the same for all.
    columns: Option<(usize, Columns)>,
    json: Vec<u8>,
    most: usize,
    fault: Option<CsvFault>,
}

impl Rows {
    fn add(&mut self, fields: &[Vec<u8>]) {
        if self.fault.is_none() {
            self.fault = self.try_add(fields).err();
        }
    }

    fn try_add(&mut self, fields: &[Vec<u8>]) -> Result<(), CsvFault> {
        let count = fields.len();
        let (expected, columns) = match &self.columns {
            Some(columns) => columns,
            None => self.columns.insert((count, columns(&self.names[..count])?)),
        };
        if *expected != count {
            return Err(CsvFault::Uneven);
        }
        self.json.extend_from_slice(if self.json.len() == 1 { b"{" } else { b",{" });
        for (number, (name, place)) in columns.iter().enumerate() {
            if number > 0 {
                self.json.push(b',');
            }
            self.json.extend_from_slice(name);
            self.json.push(b':');
            match fields[*place].as_slice() {
                b"NULL" => self.json.extend_from_slice(b"null"),
                value => self.json.extend_from_slice(&quoted(value)?),
            }
            if self.json.len() > self.most {
                return Err(CsvFault::TooLong);
            }
        }
        self.json.push(b'}');
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<u8>, BTreeSet<String>), CsvFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.json.push(b']');
        let count = self.columns.map_or(0, |(count, _)| count);
        let keys =
            self.names.into_iter().take(count).map(|name| String::from_utf8(name).map_err(|_| CsvFault::NotUtf8));
        Ok((self.json, keys.collect::<Result<_, _>>()?))
    }
}

fn columns(names: &[Vec<u8>]) -> Result<Columns, CsvFault> {
    let places: BTreeMap<&[u8], usize> = names.iter().enumerate().map(|(n, name)| (name.as_slice(), n)).collect();
    places.into_iter().map(|(name, place)| Ok((quoted(name)?, place))).collect()
}

/// As a JSON string.
fn quoted(value: &[u8]) -> Result<Vec<u8>, CsvFault> {
    let text = std::str::from_utf8(value).map_err(|_| CsvFault::NotUtf8)?;
    serde_json::to_vec(text).map_err(|_| CsvFault::NotUtf8)
}

struct Record {
    fields: Vec<Vec<u8>>,
    /// The number of further fields.
    surplus: usize,
}

impl Record {
    fn is_empty_line(&self) -> bool {
        self.surplus == 0 && matches!(self.fields.as_slice(), [only] if only.is_empty())
    }
}

struct Reader<'a> {
    input: &'a [u8],
    pos: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    fn at_end(&self) -> bool {
        self.pos >= self.input.len()
    }

    fn fault(&self, reason: &str) -> String {
        let left = &self.input[self.pos.min(self.input.len())..];
        let beginning: Vec<char> = left.iter().take(100).map(|b| *b as char).collect();
        let shown = if left.len() > 100 {
            format!("{} (truncated)", beginning.iter().collect::<String>())
        } else {
            super::combinators::show_string(&beginning)
        };
        format!("parse error ({reason}) at {shown}")
    }

    fn line_end(&mut self) -> Result<(), String> {
        match (self.peek(), self.input.get(self.pos + 1)) {
            (Some(b'\n'), _) => self.pos += 1,
            (Some(b'\r'), Some(b'\n')) => self.pos += 2,
            (Some(b'\r'), _) => self.pos += 1,
            (Some(_), _) => return Err(self.fault("Failed reading: satisfy")),
            (None, _) => return Err(self.fault("not enough input")),
        }
        Ok(())
    }

    /// Keeps `most` fields, since an empty one takes many times its text in memory. `most` is at least 1.
    fn record(&mut self, most: usize) -> Result<Record, String> {
        let mut record = Record { fields: vec![self.field()?], surplus: 0 };
        while self.peek() == Some(b',') {
            self.pos += 1;
            let field = self.field()?;
            if record.fields.len() < most {
                record.fields.push(field);
            } else {
                record.surplus += 1;
            }
        }
        Ok(record)
    }

    fn field(&mut self) -> Result<Vec<u8>, String> {
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        let start = self.pos;
        while self.peek().is_some_and(|b| !matches!(b, b'"' | b'\n' | b'\r' | b',')) {
            self.pos += 1;
        }
        Ok(self.input[start..self.pos].to_vec())
    }

    fn quoted(&mut self) -> Result<Vec<u8>, String> {
        self.pos += 1;
        let mut value = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.fault("Failed reading: trailing double quote")),
                Some(b'"') if self.input.get(self.pos + 1) == Some(&b'"') => {
                    value.push(b'"');
                    self.pos += 2;
                }
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(value);
                }
                Some(b) => {
                    value.push(b);
                    self.pos += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: usize = 50;

    fn json(body: &str) -> Result<String, CsvFault> {
        to_json(body.as_bytes(), 1 << 20, NAMES).map(|(json, _)| String::from_utf8(json).expect("text"))
    }

    #[test]
    fn records_are_zipped_with_the_header() {
        let cases = [
            ("a,b\n1,2\n", r#"[{"a":"1","b":"2"}]"#),
            ("b,a\r\n1,2\r\n3,4", r#"[{"a":"2","b":"1"},{"a":"4","b":"3"}]"#),
            ("a,b\nNULL,\n", r#"[{"a":null,"b":""}]"#),
            ("a\n\"x,\"\"y\"\"\n z\"\n", "[{\"a\":\"x,\\\"y\\\"\\n z\"}]"),
            ("a,b\n1,2,3\n", r#"[{"a":"1","b":"2"}]"#),
            ("a,b\n\n1\n", r#"[{"a":"1"}]"#),
            ("a\n,\n\n,2\n", r#"[{"a":""},{"a":""}]"#),
            ("a,a\n1,2\n", r#"[{"a":"2"}]"#),
            ("a\n", "[]"),
        ];
        for (body, rows) in cases {
            assert_eq!(json(body).as_deref(), Ok(rows), "{body:?}");
        }
        let (_, keys) = to_json(b"b,a,c\n1,2\n3,4\n", 100, NAMES).expect("rows");
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn fields_beyond_the_header_are_counted_and_not_kept() {
        let body = format!("1,2{}\n", ",".repeat(1_000_000));
        let record = Reader { input: body.as_bytes(), pos: 0 }.record(2).expect("a record");
        assert_eq!((record.fields.as_slice(), record.surplus), (&[b"1".to_vec(), b"2".to_vec()][..], 1_000_000));
        assert_eq!(json(&format!("a,b\n{body}")).as_deref(), Ok(r#"[{"a":"1","b":"2"}]"#));
        let names = |count: usize| json(&format!("{}\n", ",".repeat(count - 1)));
        assert_eq!(names(NAMES).as_deref(), Ok("[]"));
        assert_eq!(names(NAMES + 1), Err(CsvFault::TooManyNames));
        // An unreadable field is reported even where it would not be kept.
        let refused = json("a\n1,\"x");
        assert!(matches!(refused, Err(CsvFault::Syntax(_))), "{refused:?}");
    }

    #[test]
    fn unreadable_csv_gets_the_references_messages() {
        let syntax = |text: &str| Err(CsvFault::Syntax(format!("parse error ({text}) at \"\"")));
        assert_eq!(json(""), syntax("not enough input"));
        assert_eq!(json("a,b"), syntax("not enough input"));
        assert_eq!(json("a,b\n1,2\n1\n\"x"), syntax("Failed reading: trailing double quote"));
    }

    #[test]
    fn records_that_would_be_stored_wrongly_are_refused() {
        assert_eq!(json("a,b\n1,2\n1\n"), Err(CsvFault::Uneven));
        assert_eq!(to_json(b"a\n\xe9\n", 100, NAMES), Err(CsvFault::NotUtf8));
        assert_eq!(to_json(b"\xe9\n1\n", 100, NAMES), Err(CsvFault::NotUtf8));
        let long = format!("{}\n{}", "n".repeat(1000), "x\n".repeat(1000));
        assert_eq!(to_json(long.as_bytes(), 100_000, NAMES), Err(CsvFault::TooLong));
    }
}
