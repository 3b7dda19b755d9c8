//! Splits a statement into words: enough of SQL's lexer to classify the statements of `pg_dump`.

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or an unquoted identifier, in lower case.
    Word,
    /// A quoted identifier, without its quotes.
    Quoted,
    /// The content of a string.
    Text,
    /// Any other single character.
    Sign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub kind: Kind,
    pub text: String,
    /// Depth of open parentheses.
    pub depth: usize,
    /// Byte offset of its end.
    pub end: usize,
}

impl Word {
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text == keyword
    }

    pub fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted)
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

/// The first `most` words of a statement, ending at a dollar-quoted body.
pub fn words(sql: &str, most: usize) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while found.len() < most {
        let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) else { break };
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (kind, text, length) = match first {
            '"' | '\'' => {
                let (text, length) = quoted(rest, first);
                (if first == '"' { Kind::Quoted } else { Kind::Text }, text, length)
            }
            '$' if rest[1..].starts_with(|c: char| c == '$' || c.is_alphabetic() || c == '_') => break,
            c if c.is_alphanumeric() || c == '_' => {
                let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
                (Kind::Word, rest[..length].to_lowercase(), length)
            }
            c => (Kind::Sign, c.to_string(), c.len_utf8()),
        };
        at += length;
        match (kind, first) {
            (Kind::Sign, ')') => depth = depth.saturating_sub(1),
            (Kind::Sign, '(') => depth += 1,
            _ => {}
        }
        found.push(Word { kind, text, depth: if first == '(' { depth - 1 } else { depth }, end: at });
    }
    found
}

/// The text between the quotes at the beginning of `rest`, and its length including the quotes.
fn quoted(rest: &str, quote: char) -> (String, usize) {
    let mut text = String::new();
    let mut at = 1;
    while let Some(length) = rest.get(at..).and_then(|rest| rest.find(quote)) {
        text.push_str(&rest[at..at + length]);
        at += length + 1;
        if !rest[at..].starts_with(quote) {
            return (text, at);
        }
        text.push(quote);
        at += 1;
    }
    (text, rest.len())
}

/// A name with its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qualified {
    pub schema: String,
    pub name: String,
    /// Byte offset of its end.
    pub end: usize,
}

/// The first schema-qualified name outside parentheses, from word `from` on.
pub fn qualified(words: &[Word], from: usize) -> Option<Qualified> {
    let after = words.get(from..)?;
    after
        .windows(3)
        .find(|three| three[0].depth == 0 && three[0].is_name() && three[1].is_sign("."))
        .map(|three| Qualified { schema: three[0].text.clone(), name: three[2].text.clone(), end: three[2].end })
}

/// The names in the first parentheses after byte `from`, and the byte offset of their end.
pub fn list(words: &[Word], from: usize) -> Option<(Vec<String>, usize)> {
    let mut after = words.iter().skip_while(|word| word.end <= from);
    after.next().filter(|word| word.is_sign("("))?;
    let mut names = Vec::new();
    for word in after {
        if word.is_sign(")") {
            return Some((names, word.end));
        }
        if word.is_name() {
            names.push(word.text.clone());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_and_without_quotes() {
        for (sql, schema, name) in [
            ("CREATE TABLE public.tasks (id auth.kind)", "public", "tasks"),
            ("ALTER TABLE ONLY \"my \"\"app\"\"\".\"T.x\" ADD CONSTRAINT c", "my \"app\"", "T.x"),
            ("CREATE UNIQUE INDEX i ON app.t USING btree (lower(a.b))", "app", "t"),
            ("CREATE POLICY \"auth.users see\" ON storage.objects USING (true)", "storage", "objects"),
        ] {
            let found = qualified(&words(sql, 100), 0).expect(sql);
            assert_eq!((found.schema.as_str(), found.name.as_str()), (schema, name), "{sql}");
        }
        assert_eq!(qualified(&words("CREATE CAST (a.b AS c.d) WITHOUT FUNCTION", 100), 0), None);
    }

    #[test]
    fn columns_are_read_after_the_name() {
        let sql = "INSERT INTO auth.users (id, \"e (mail\") VALUES ('x', 1)";
        let words = words(sql, 100);
        let (columns, end) = list(&words, qualified(&words, 0).expect("a name").end).expect("a list");
        assert_eq!((columns, &sql[end..]), (vec!["id".to_owned(), "e (mail".to_owned()], " VALUES ('x', 1)"));
    }

    #[test]
    fn words_end_at_a_body() {
        let found = words("CREATE FUNCTION f() AS $a$ select 'x' $a$", 100);
        assert_eq!(found.last().map(|word| word.text.as_str()), Some("as"));
    }
}
