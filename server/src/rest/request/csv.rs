//! CSV bodies: a header line, then one record a line.
//!
//! Written by hand because the errors are part of the API: they are those of the reference's reader (the
//! Haskell package cassava on attoparsec), and so is the zip of records with the header.

use std::collections::{BTreeMap, BTreeSet};

/// One row: column → value, `None` for the literal `NULL`.
pub type Record = BTreeMap<String, Option<String>>;

/// Parses `body`; the error is the reference's text.
pub fn parse(body: &[u8]) -> Result<Vec<Record>, String> {
    let mut reader = Reader { input: body, pos: 0 };
    let header = reader.record()?;
    reader.line_end()?;
    let mut records = Vec::new();
    loop {
        let fields = reader.record()?;
        // A line without anything is skipped.
        if !(fields.len() == 1 && fields[0].is_empty()) {
            records.push(fields);
        }
        if reader.at_end() {
            break;
        }
        reader.line_end()?;
        if reader.at_end() {
            break;
        }
    }
    let name = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let names: Vec<String> = header.iter().map(name).collect();
    Ok(records
        .into_iter()
        .map(|fields| {
            let values = fields.iter().map(|field| (field != b"NULL").then(|| name(field)));
            names.iter().cloned().zip(values).collect()
        })
        .collect())
}

/// The columns of all records, or `None` if they differ.
pub fn uniform_keys(records: &[Record]) -> Option<BTreeSet<String>> {
    let keys: BTreeSet<String> = records.first().map(|r| r.keys().cloned().collect()).unwrap_or_default();
    records.iter().all(|r| r.keys().eq(keys.iter())).then_some(keys)
}

/// The records as a JSON array of objects of strings and nulls.
pub fn to_json(records: &[Record]) -> String {
    serde_json::to_string(records).unwrap_or_else(|_| "[]".to_owned())
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
        let left: Vec<char> = self.input[self.pos.min(self.input.len())..].iter().map(|b| *b as char).collect();
        let shown = if left.len() > 100 {
            format!("{} (truncated)", left[..100].iter().collect::<String>())
        } else {
            super::combinators::show_string(&left)
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

    fn record(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let mut fields = vec![self.field()?];
        while self.peek() == Some(b',') {
            self.pos += 1;
            fields.push(self.field()?);
        }
        Ok(fields)
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

    fn json(body: &str) -> Result<String, String> {
        parse(body.as_bytes()).map(|records| to_json(&records))
    }

    #[test]
    fn records_are_zipped_with_the_header() {
        let cases = [
            ("a,b\n1,2\n", r#"[{"a":"1","b":"2"}]"#),
            ("a,b\r\n1,2\r\n3,4", r#"[{"a":"1","b":"2"},{"a":"3","b":"4"}]"#),
            ("a,b\nNULL,\n", r#"[{"a":null,"b":""}]"#),
            ("a\n\"x,\"\"y\"\"\n z\"\n", "[{\"a\":\"x,\\\"y\\\"\\n z\"}]"),
            ("a,b\n1,2,3\n", r#"[{"a":"1","b":"2"}]"#),
            ("a,b\n\n1\n", r#"[{"a":"1"}]"#),
            ("a\n", "[]"),
        ];
        for (body, rows) in cases {
            assert_eq!(json(body).as_deref(), Ok(rows), "{body:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_has_the_references_words() {
        assert_eq!(json("").expect_err("empty"), "parse error (not enough input) at \"\"");
        assert_eq!(json("a,b").expect_err("no newline"), "parse error (not enough input) at \"\"");
    }
}
