//! Splits a SQL file into statements as `psql` does, with as much of the lexer as is needed to find the separating
//! semicolons.

use std::borrow::Cow;

/// A statement without its semicolon, and its position (in characters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    pub text: &'a str,
    pub offset: usize,
    /// The same with the comments before it, as the Supabase CLI records it.
    pub commented: &'a str,
    /// The lines that follow a `copy … from stdin`, up to `\\.`.
    pub data: Option<&'a str>,
}

/// The statements of `sql` in order, without parts that contain only blanks and comments.
///
/// Understands quoted strings (also `E'…'`), quoted identifiers, dollar quotes, nested comments, parentheses, `BEGIN
/// ATOMIC … END` bodies and the data of `COPY … FROM stdin`. Lines for `psql` only (`\\restrict`) are left out.
/// Unterminated constructs run to the end, so that the server reports the error.
pub fn split(sql: &str) -> Vec<Statement<'_>> {
    Lexer::new(sql).collect()
}

/// A statement's effect on its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// Begins a transaction; we are already in one.
    Begins,
    /// Commits it or rolls it back; the next statement needs a new one.
    Ends,
    /// Cannot run in one.
    Alone,
}

/// What ends the data of a `copy … from stdin`.
pub const END_OF_DATA: &str = "\n\\.";

impl<'a> Statement<'a> {
    /// What the history of migrations says of it: with its comments and the data of a `copy`, so that a file can be written from it.
    pub fn recorded(&self) -> Cow<'a, str> {
        let Some(data) = self.data else { return self.commented.into() };
        let rows: String = data.lines().map(|row| format!("\n{row}")).collect();
        format!("{};{rows}{END_OF_DATA}", self.commented).into()
    }

    pub fn role(&self) -> Role {
        let words = leading_words(self.text, 6);
        let word = |n: usize| words.get(n).map_or("", String::as_str);
        match word(0) {
            _ if refuses_transaction(&words) => Role::Alone,
            "begin" => Role::Begins,
            "start" if word(1) == "transaction" => Role::Begins,
            "rollback" if word(1) == "to" || word(2) == "to" => Role::Plain,
            "commit" | "rollback" if word(1) == "prepared" => Role::Alone,
            "commit" | "end" | "rollback" | "abort" => Role::Ends,
            _ => Role::Plain,
        }
    }

    /// Whether the next statement may be sent before this one is answered: neither of them takes data, and none that comes after a
    /// failure ends or revives the transaction.
    pub fn is_sent_ahead(&self) -> bool {
        const FIRST: [&str; 23] = [
            "alter", "analyze", "comment", "create", "delete", "do", "drop", "grant", "insert", "lock", "merge",
            "notify", "refresh", "reindex", "reset", "revoke", "security", "select", "set", "truncate", "update",
            "values", "with",
        ];
        let begins = leading_words(self.text, 1);
        self.data.is_none()
            && self.role() == Role::Plain
            && !self.sets("lock_timeout")
            && begins.first().is_some_and(|word| FIRST.contains(&word.as_str()))
    }

    /// Whether it sets this setting for the session or the transaction.
    pub fn sets(&self, setting: &str) -> bool {
        let words = leading_words(self.text, 3);
        let [first, rest @ ..] = words.as_slice() else { return false };
        let rest = match rest {
            [scope, rest @ ..] if scope == "local" || scope == "session" => rest,
            rest => rest,
        };
        first == "set" && rest.first().is_some_and(|name| name == setting)
    }
}

fn refuses_transaction(words: &[String]) -> bool {
    let word = |n: usize| words.get(n).map_or("", String::as_str);
    match word(0) {
        "vacuum" => true,
        // With the name of a table it may run in a transaction.
        "cluster" => words.len() == 1,
        "create" | "drop" | "reindex" | "refresh" if words.iter().any(|w| w == "concurrently") => true,
        "create" | "drop" => matches!(word(1), "database" | "tablespace" | "subscription"),
        "alter" => word(1) == "system" || (word(1) == "table" && words.iter().any(|w| w == "concurrently")),
        "reindex" => matches!(word(1), "database" | "system"),
        _ => false,
    }
}

/// The first words of a statement in lower case, without comments, up to the first other token.
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

fn is_copy_from_stdin(statement: &str) -> bool {
    let words: Vec<String> = statement.split_whitespace().map(str::to_lowercase).collect();
    words.first().is_some_and(|word| word == "copy") && words.windows(2).any(|two| two == ["from", "stdin"])
}

struct Lexer<'a> {
    sql: &'a str,
    /// Byte position.
    at: usize,
    /// An earlier byte position, and the number of characters before it.
    counted: (usize, usize),
}

impl<'a> Lexer<'a> {
    fn new(sql: &'a str) -> Self {
        Self { sql, at: 0, counted: (0, 0) }
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

    /// From behind the semicolon of a `copy` to past the line `\\.`.
    fn take_data(&mut self) -> Option<&'a str> {
        let begin = self.at + self.rest().find('\n')? + 1;
        let after = self.sql.get(begin..)?;
        let mut length = 0;
        for line in after.split_inclusive('\n') {
            if line.trim_end() == "\\." {
                self.at = begin + length + line.len();
                return after.get(..length);
            }
            length += line.len();
        }
        self.at = self.sql.len();
        Some(after)
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
        let mut setup = self.at;
        self.skip_blank();
        loop {
            if self.rest().starts_with(';') {
                self.at += 1;
            } else if self.rest().starts_with('\\') {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else {
                break;
            }
            setup = self.at;
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
                    // `e` enables escapes only directly before the quote.
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
        let commented = self.sql.get(setup..self.at).unwrap_or("").trim();
        self.counted.1 += self.sql.get(self.counted.0..begin).map_or(0, |between| between.chars().count());
        self.counted.0 = begin;
        let data = if is_copy_from_stdin(text) { self.take_data() } else { None };
        Some(Statement { text, offset: self.counted.1, commented, data })
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
    fn a_statement_runs_in_the_transaction_of_its_file_unless_it_cannot() {
        for (sql, expected) in [
            ("create table t ()", Role::Plain),
            ("comment on table t is 'vacuum'", Role::Plain),
            ("do $$ begin commit; end $$", Role::Plain),
            ("create table concurrently_done ()", Role::Plain),
            ("cluster t using i", Role::Plain),
            ("rollback to savepoint a", Role::Plain),
            ("/* x */ CREATE UNIQUE INDEX Concurrently i on t (a)", Role::Alone),
            ("vacuum analyze t", Role::Alone),
            ("alter system set x = 1", Role::Alone),
            ("begin", Role::Begins),
            ("start transaction", Role::Begins),
            ("commit", Role::Ends),
            ("END", Role::Ends),
        ] {
            let statements = split(sql);
            assert_eq!(statements.iter().map(Statement::role).collect::<Vec<_>>(), [expected], "{sql}");
        }
    }

    #[test]
    fn statements_that_end_or_revive_a_transaction_are_waited_for() {
        for sql in ["create table t ()", "/* x */ INSERT into t values (1)", "do $$ begin end $$", "set local role a"] {
            assert!(split(sql)[0].is_sent_ahead(), "{sql}");
        }
        for sql in [
            "commit",
            "savepoint a",
            "rollback to a",
            "release a",
            "prepare transaction 'a'",
            "vacuum",
            "create index concurrently on t (a)",
            "copy t from stdin;\n1\n\\.\n",
            "copy t to stdout",
            "set lock_timeout = 5",
            "(select 1)",
        ] {
            assert!(!split(sql)[0].is_sent_ahead(), "{sql}");
        }
    }

    #[test]
    fn comments_go_with_the_statement_that_follows_as_the_cli_records_them() {
        let sql = "-- one\nselect 1; -- after\n\n/* two */ select 2;\n-- rest\n";
        let commented: Vec<&str> = split(sql).iter().map(|s| s.commented).collect();
        assert_eq!(commented, ["-- one\nselect 1", "-- after\n\n/* two */ select 2"]);
    }

    #[test]
    fn lines_for_psql_are_left_out_and_the_data_of_copy_is_none_of_the_sql() {
        let sql = "\\restrict abc\n\nCOPY public.t (a) FROM stdin;\n1;\n'\n\\.\n\nselect 1;\n\\unrestrict abc\n";
        let found: Vec<_> = split(sql).iter().map(|s| (s.text, s.data)).collect();
        assert_eq!(found, [("COPY public.t (a) FROM stdin", Some("1;\n'\n")), ("select 1", None)]);
        for (sql, recorded) in [
            ("copy t from stdin;\n1;\n\\N\n\\.\n", "copy t from stdin;\n1;\n\\N\n\\."),
            ("-- none\ncopy t from stdin;\n\\.\n", "-- none\ncopy t from stdin;\n\\."),
            ("copy t from stdin;\n1", "copy t from stdin;\n1\n\\."),
            ("select 1; -- the end", "select 1"),
        ] {
            let of = |sql| split(sql).first().map(|statement| statement.recorded().into_owned());
            assert_eq!(of(sql).as_deref(), Some(recorded));
            assert_eq!(of(recorded), of(sql), "read again");
        }
    }
}
