//! Fast parsers for the most common forms, without the grammar.
//!
//! Each function returns what [`super::grammar`] would, or `None` if the text is not of its simple form or invalid;
//! then the grammar decides and words the error. The tests compare the two.

use super::combinators::MAX_NESTING;
use super::grammar::{QUANTIFIED_WORDS, SIMPLE_WORDS};
use super::types::*;

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn named(name: &str) -> Field {
    Field { name: name.to_owned(), path: Vec::new() }
}

/// `a.b.column` of plain words: [`super::grammar::tree_path`].
pub fn tree_path(text: &str) -> Option<(EmbedPath, Field)> {
    if is_word(text.as_bytes()) {
        return Some((Vec::new(), named(text)));
    }
    let (path, column) = text.rsplit_once('.')?;
    let levels = path.split('.').map(|level| is_word(level.as_bytes()).then(|| level.to_owned()));
    let path = levels.collect::<Option<EmbedPath>>()?;
    is_word(column.as_bytes()).then(|| (path, named(column)))
}

/// `operator.value` without negation and quantifier: [`super::grammar::op_expr`] at the top level.
pub fn operation(text: &str) -> Option<OpExpr> {
    let (word, value) = text.split_once('.')?;
    let operation = if let Some((_, op)) = QUANTIFIED_WORDS.iter().find(|(known, _)| *known == word) {
        Operation::Quantified(*op, None, value.to_owned())
    } else {
        let (_, op) = SIMPLE_WORDS.iter().find(|(known, _)| *known == word)?;
        Operation::Simple(*op, value.to_owned())
    };
    Some(OpExpr { negated: false, operation })
}

/// Whether a text cannot be an operation: their words all begin with a lower-case letter.
pub fn is_no_operation(text: &str) -> bool {
    !text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

/// Columns, `*` and embeds of plain words, `a,*,b(c,d)`: [`super::grammar::select`].
pub fn select(text: &str) -> Option<Vec<SelectItem>> {
    let mut rest = text;
    let items = select_items(&mut rest, 0)?;
    rest.is_empty().then_some(items)
}

/// `rest`: what is still to be read, inside of `depth` embeds.
fn select_items(rest: &mut &str, depth: usize) -> Option<Vec<SelectItem>> {
    if depth > MAX_NESTING {
        return None;
    }
    let mut items = Vec::with_capacity(4);
    loop {
        let end = rest.bytes().position(|b| matches!(b, b',' | b'(' | b')')).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if name != "*" && !is_word(name.as_bytes()) {
            return None;
        }
        *rest = behind;
        if let Some(inner) = behind.strip_prefix('(') {
            // `count()` is an aggregate.
            if name == "*" || name == "count" {
                return None;
            }
            *rest = inner;
            let select = if inner.starts_with(')') { Vec::new() } else { select_items(rest, depth + 1)? };
            *rest = rest.strip_prefix(')')?;
            let target = name.to_owned();
            items.push(SelectItem::Embed { target, alias: None, hint: None, join: None, spread: false, select });
        } else {
            let field = named(name);
            items.push(SelectItem::Field { field, aggregate: None, aggregate_cast: None, cast: None, alias: None });
        }
        match rest.strip_prefix(',') {
            Some(next) => *rest = next,
            None => return Some(items),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::combinators::parse;
    use super::super::grammar;
    use super::*;

    #[test]
    fn plain_shapes_are_accepted() {
        assert_eq!(tree_path("a"), Some((vec![], named("a"))));
        assert_eq!(tree_path("a.b_1.c"), Some((vec!["a".to_owned(), "b_1".to_owned()], named("c"))));
        assert_eq!(tree_path("a->b"), None);
        assert_eq!(tree_path("a..b"), None);
        assert!(operation("eq.1.5").is_some() && operation("cs.{1}").is_some());
        assert_eq!(operation("not.eq.1"), None);
        assert_eq!(operation("eq(any).{1}"), None);
        assert_eq!(select("a,*,b(c,d(*),e())").map(|items| items.len()), Some(3));
        for other in ["", "a,", "a b", "count()", "a:b", "a(b", "a)b", "*(a)", "a!b(c)", "...a(b)", "a.sum()"] {
            assert_eq!(select(other), None, "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_grammar_reads_plain_shapes_alike(
            path in "[a-c_1.]{1,6}",
            value in "(eq|gte|gt|neq|like|nxr|not|in|is|fts|x)?[.(]?[a-c0-9.,()*]{0,5}",
            list in "([ab1]|count|[*]|,|[(]|[)]|ab[(]){0,12}",
        ) {
            if let Some(plain) = tree_path(&path) {
                prop_assert_eq!(Ok(plain), parse(&path, grammar::tree_path));
            }
            if let Some(plain) = operation(&value) {
                prop_assert_eq!(Ok(plain), parse(&value, |p| grammar::op_expr(p, grammar::rest)));
            }
            if is_no_operation(&value) {
                let read = parse(&value, |p| p.optional(|p| grammar::op_expr(p, grammar::rest)));
                prop_assert_eq!(Ok(None), read);
            }
            if let Some(plain) = select(&list) {
                prop_assert_eq!(Ok(plain), parse(&list, grammar::select));
            }
        }
    }
}
