//! Reads a dump in batches: whole statements, and the rows of a `COPY` as they arrive, so that memory stays bounded.

use std::io::BufRead;

use anyhow::Context;

use crate::migrate::split_statements;

/// Approximate size of a batch of text, in bytes.
const PIECE: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// A batch of whole statements.
pub struct Text {
    pub sql: String,
    /// The line in the dump on which it begins.
    pub line: usize,
    /// Whether the last statement is a `COPY` whose rows follow.
    pub has_rows: bool,
}

pub struct Stream {
    lines: Box<dyn BufRead>,
    line: usize,
    /// Whether the rows returned last were the final ones.
    is_at_end_of_rows: bool,
}

impl Stream {
    pub fn new(lines: Box<dyn BufRead>) -> Self {
        Self { lines, line: 1, is_at_end_of_rows: false }
    }

    /// `None` at the end. After text with rows, call [`Self::rows`] until it returns `None`.
    pub fn text(&mut self) -> anyhow::Result<Option<Text>> {
        let (mut sql, line) = (String::new(), self.line);
        let mut wanted = PIECE;
        loop {
            let begin = sql.len();
            if self.lines.read_line(&mut sql).context("the dump cannot be read as UTF-8")? == 0 {
                break;
            }
            self.line += 1;
            let last = sql[begin..].trim_end();
            if is_copy(last) && split_statements(&sql).last().is_some_and(|statement| is_copy_head(statement.text)) {
                return Ok(Some(Text { sql, line, has_rows: true }));
            }
            if last.is_empty() && sql.len() > wanted {
                if is_whole(&mut sql) {
                    break;
                }
                // Doubled, so that a long value is not rescanned at each of its blank lines.
                wanted = sql.len() * 2;
            }
        }
        Ok((!sql.is_empty()).then_some(Text { sql, line, has_rows: false }))
    }

    /// The next batch of rows of a `COPY`; `None` after the last.
    pub fn rows(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut rows = Vec::new();
        if std::mem::take(&mut self.is_at_end_of_rows) {
            return Ok(None);
        }
        while rows.len() < PIECE / 8 {
            let begin = rows.len();
            let length = self.lines.read_until(b'\n', &mut rows).context("the dump cannot be read")?;
            anyhow::ensure!(length > 0, "the dump ends in the middle of a table's rows");
            self.line += 1;
            if rows[begin..].trim_ascii_end() == b"\\." {
                rows.truncate(begin);
                self.is_at_end_of_rows = !rows.is_empty();
                return Ok((!rows.is_empty()).then_some(rows));
            }
        }
        Ok(Some(rows))
    }
}

fn is_copy(line: &str) -> bool {
    line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("copy "))
        && line.len() > 16
        && line.get(line.len() - 11..).is_some_and(|end| end.eq_ignore_ascii_case("from stdin;"))
}

fn is_copy_head(statement: &str) -> bool {
    statement.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("copy "))
}

/// Whether `sql` ends between statements: then an appended word is a separate statement.
fn is_whole(sql: &mut String) -> bool {
    let length = sql.len();
    sql.push_str("\nend");
    let is_whole = split_statements(sql).last().is_some_and(|statement| statement.text == "end");
    sql.truncate(length);
    is_whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_rows_come_in_order() {
        let long = format!("insert into t values ('\n\n;\n{}');\n\n", "x".repeat(PIECE));
        let dump = format!(
            "create function f() as $$\nCOPY t (a) FROM stdin;\n$$;\nCOPY t (a) FROM stdin;\n1\n;\n\\.\n{long}select 1;\n\
             COPY u (a) FROM stdin;\n\\.\n"
        );
        let mut stream = Stream::new(Box::new(std::io::Cursor::new(dump)));
        let mut found = Vec::new();
        while let Some(text) = stream.text().expect("text") {
            let statements: Vec<usize> = split_statements(&text.sql).iter().map(|found| found.text.len()).collect();
            found.push((text.line, statements, text.has_rows));
            if text.has_rows {
                while let Some(rows) = stream.rows().expect("rows") {
                    found.push((0, vec![rows.len()], true));
                }
            }
        }
        assert_eq!(
            found,
            [(1, vec![51, 21], true), (0, vec![4], true), (8, vec![long.len() - 3], false), (13, vec![8, 21], true),]
        );
    }

    #[test]
    fn rows_without_an_end_are_refused() {
        let mut stream = Stream::new(Box::new(std::io::Cursor::new("COPY t (a) FROM stdin;\n1\n")));
        assert!(stream.text().expect("text").is_some_and(|text| text.has_rows));
        assert!(stream.rows().is_err());
    }
}
