//! Cuts a file of SQL into its statements, as `psql` would: enough of the lexer to know where a semicolon counts.

/// One statement without its semicolon, and where it begins (in characters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    pub text: &'a str,
    pub offset: usize,
}

/// The statements of `sql` in order; pieces of nothing but blanks and comments are left out.
///
/// Understands quoted strings (also `E'…'`), quoted identifiers, dollar quotes, nested comments, parentheses and
/// `BEGIN ATOMIC … END` bodies. Unterminated constructs run to the end; the server then says what is wrong.
pub fn split(sql: &str) -> Vec<Statement<'_>> {
    Lexer::new(sql).collect()
}

/// How a file has to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As a whole, in one transaction of ours.
    Transaction,
    /// As a whole: it begins and commits by itself.
    OwnTransactions,
    /// Statement by statement: one of them refuses to run in a transaction.
    Single,
}

/// Finds out how a file of these statements has to be run.
pub fn mode(statements: &[Statement<'_>]) -> Mode {
    let words: Vec<Vec<String>> = statements.iter().map(|s| leading_words(s.text, 6)).collect();
    if words.iter().any(|w| refuses_transaction(w)) {
        return Mode::Single;
    }
    let controls = words.iter().any(|w| {
        matches!(w.first().map(String::as_str), Some("begin" | "commit" | "end" | "rollback" | "abort"))
            || (w.first().is_some_and(|w| w == "start") && w.get(1).is_some_and(|w| w == "transaction"))
    });
    if controls { Mode::OwnTransactions } else { Mode::Transaction }
}

fn refuses_transaction(words: &[String]) -> bool {
    let word = |n: usize| words.get(n).map_or("", String::as_str);
    match word(0) {
        "vacuum" => true,
        "create" | "drop" | "reindex" | "refresh" if words.iter().any(|w| w == "concurrently") => true,
        "create" | "drop" => matches!(word(1), "database" | "tablespace" | "subscription"),
        "alter" => word(1) == "system" || (word(1) == "table" && words.iter().any(|w| w == "concurrently")),
        "reindex" => matches!(word(1), "database" | "system"),
        _ => false,
    }
}

/// The first words of a statement in lower case, comments skipped; anything else than a word ends them.
fn leading_words(sql: &str, most: usize) -> Vec<String> {
    let mut lexer = Lexer::new(sql);
    let mut words = Vec::new();
    while words.len() < most {
        lexer.skip_blank();
        let word: String = lexer.rest().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if word.is_empty() {
            break;
        }
        lexer.at += word.len();
        words.push(word.to_lowercase());
    }
    words
}

struct Lexer<'a> {
    sql: &'a str,
    /// Byte position.
    at: usize,
}

impl<'a> Lexer<'a> {
    fn new(sql: &'a str) -> Self {
        Self { sql, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.sql.get(self.at..).unwrap_or("")
    }

    /// Past white space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("--") {
                self.at += trimmed.find('\n').map_or(trimmed.len(), |n| n + 1);
            } else if trimmed.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest().is_empty() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.step();
            }
        }
    }

    fn step(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    /// From an opening quote to past the closing one; a doubled quote stays inside.
    fn skip_quoted(&mut self, quote: char, backslash_escapes: bool) {
        self.step();
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            if c == '\\' && backslash_escapes {
                self.step();
            } else if c == quote {
                if self.rest().starts_with(quote) {
                    self.step();
                } else {
                    return;
                }
            }
        }
    }

    /// Past `$tag$ … $tag$` if one begins here.
    fn skip_dollar_quoted(&mut self) -> bool {
        let rest = self.rest();
        let Some(tag) = rest.get(1..).and_then(|after| after.split('$').next()) else { return false };
        let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(|c: char| c.is_numeric());
        let delimiter = format!("${tag}$");
        if !is_tag || !rest.starts_with(&delimiter) {
            return false;
        }
        let body = rest.get(delimiter.len()..).unwrap_or("");
        self.at += delimiter.len() + body.find(&delimiter).map_or(body.len(), |n| n + delimiter.len());
        true
    }

    fn skip_word(&mut self) -> String {
        let word: String = self.rest().chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
        self.at += word.len();
        word.to_lowercase()
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        self.skip_blank();
        while self.rest().starts_with(';') {
            self.at += 1;
            self.skip_blank();
        }
        let begin = self.at;
        if self.rest().is_empty() {
            return None;
        }
        let (mut parentheses, mut blocks, mut previous) = (0_usize, 0_usize, String::new());
        while let Some(c) = self.rest().chars().next() {
            match c {
                ';' if parentheses == 0 && blocks == 0 => break,
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                '\'' => {
                    self.skip_quoted('\'', previous == "e");
                    previous.clear();
                    continue;
                }
                '"' => {
                    self.skip_quoted('"', false);
                    previous.clear();
                    continue;
                }
                '$' if self.skip_dollar_quoted() => continue,
                '-' if self.rest().starts_with("--") => {
                    self.skip_blank();
                    continue;
                }
                '/' if self.rest().starts_with("/*") => {
                    self.skip_blank();
                    continue;
                }
                c if c.is_alphabetic() || c == '_' => {
                    let word = self.skip_word();
                    match word.as_str() {
                        "atomic" if previous == "begin" => blocks = 1,
                        "case" if blocks > 0 => blocks += 1,
                        "end" if blocks > 0 => blocks -= 1,
                        _ => {}
                    }
                    previous = word;
                    // `e` only escapes when the quote follows at once.
                    if !self.rest().starts_with('\'') && previous == "e" {
                        previous.clear();
                    }
                    continue;
                }
                c if !c.is_whitespace() => previous.clear(),
                _ => {}
            }
            self.step();
        }
        let text = self.sql.get(begin..self.at).unwrap_or("").trim_end();
        let offset = self.sql.get(..begin).map_or(0, |before| before.chars().count());
        Some(Statement { text, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        split(sql).into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn a_semicolon_counts_only_outside_quotes_comments_and_bodies() {
        for (sql, expected) in [
            ("a;b", vec!["a", "b"]),
            (";; -- only ; a comment\n/* and ; /* nested ; */ */", vec![]),
            ("select 'it''s; one'; x", vec!["select 'it''s; one'", "x"]),
            (r"select E'\';'; x", vec![r"select E'\';'", "x"]),
            (r"select '\'; x", vec![r"select '\'", "x"]),
            (r#"select "a;""b"; x"#, vec![r#"select "a;""b""#, "x"]),
            ("do $$ begin; end $$; x", vec!["do $$ begin; end $$", "x"]),
            ("do $a$ $$;$$ ; $a$; x", vec!["do $a$ $$;$$ ; $a$", "x"]),
            ("select $1; x", vec!["select $1", "x"]),
            ("create rule r as on insert to t do (a; b); x", vec!["create rule r as on insert to t do (a; b)", "x"]),
            (
                "create function f() begin atomic select case when true then 1 end; select 2; end; x",
                vec!["create function f() begin atomic select case when true then 1 end; select 2; end", "x"],
            ),
            ("select 1 -- end\n; x", vec!["select 1 -- end", "x"]),
            ("begin; commit;", vec!["begin", "commit"]),
        ] {
            assert_eq!(texts(sql), expected, "{sql}");
        }
    }

    #[test]
    fn offsets_count_characters() {
        assert_eq!(split("é; b").get(1).map(|s| s.offset), Some(3));
    }

    #[test]
    fn a_file_runs_in_a_transaction_unless_it_cannot() {
        for (sql, expected) in [
            ("create table t (); insert into t default values", Mode::Transaction),
            ("comment on table t is 'vacuum'; do $$ begin commit; end $$", Mode::Transaction),
            ("create table concurrently_done ()", Mode::Transaction),
            ("/* x */ CREATE UNIQUE INDEX Concurrently i on t (a)", Mode::Single),
            ("vacuum analyze t", Mode::Single),
            ("alter system set x = 1", Mode::Single),
            ("begin; create table t (); commit", Mode::OwnTransactions),
            ("start transaction; commit", Mode::OwnTransactions),
        ] {
            assert_eq!(mode(&split(sql)), expected, "{sql}");
        }
    }
}
