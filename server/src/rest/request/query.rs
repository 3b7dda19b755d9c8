//! The query string: which key means what, and each value parsed.
//!
//! Names and operators are kept as written; the plan checks whether columns, embeds and functions exist.
//!
//! Reference: PostgREST `src/library/PostgREST/ApiRequest/QueryParams.hs` (`parse`).

use std::collections::BTreeMap;

use super::combinators::{self, ParseFault, Parsed, Parser};
use super::range::{RowRange, read_integer};
use super::types::*;
use super::{grammar, plain};
use crate::rest::error::{ApiError, Limit};

/// Most query parameters of one request.
pub const MAX_PARAMETERS: usize = 1000;

/// A parsed query string.
#[derive(Clone, Debug, Default)]
pub struct QueryParams {
    /// Keys sorted, values re-encoded: what `Content-Location` repeats. Empty for a call, which has none.
    pub canonical: String,
    /// Function arguments of a reading call, in order.
    pub arguments: Vec<(String, String)>,
    /// `limit` and `offset`, by level (`limit`, `rel.limit`, …).
    pub ranges: BTreeMap<String, RowRange>,
    pub order: Vec<(EmbedPath, Vec<OrderItem>)>,
    pub logic: Vec<(EmbedPath, LogicTree)>,
    pub columns: Option<Vec<String>>,
    pub select: Vec<SelectItem>,
    pub filters: Vec<(EmbedPath, Filter)>,
    /// The keys of all filters as written; a PUT compares them with the primary key.
    pub filter_keys: Vec<String>,
    pub on_conflict: Option<Vec<String>>,
}

impl QueryParams {
    /// Filters on the root relation.
    pub fn root_filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().filter(|(path, _)| path.is_empty()).map(|(_, filter)| filter)
    }
}

/// Key and value; a key without `=` has none.
type Pair = (Vec<u8>, Option<Vec<u8>>);

/// Splits at `&` and `;` and decodes `+` and `%xx`; a stray `%` stays.
pub fn split_pairs(raw: &[u8]) -> Vec<Pair> {
    if raw.is_empty() {
        return Vec::new();
    }
    let mut pairs: Vec<Pair> = Vec::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| matches!(b, b'&' | b';'));
        let (one, next) = end.map_or((rest, &rest[rest.len()..]), |n| (&rest[..n], &rest[n + 1..]));
        let pair = match one.iter().position(|b| *b == b'=') {
            Some(n) => (decode(&one[..n]), Some(decode(&one[n + 1..]))),
            None => (decode(one), None),
        };
        pairs.push(pair);
        rest = next;
    }
    pairs
}

fn decode(text: &[u8]) -> Vec<u8> {
    if text.iter().fold(true, |plain, b| plain & (*b != b'%') & (*b != b'+')) {
        return text.to_vec();
    }
    let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut out = Vec::with_capacity(text.len());
    let mut n = 0;
    while n < text.len() {
        match text[n] {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = text.get(n + 1).copied().and_then(hex).zip(text.get(n + 2).copied().and_then(hex));
                match digits {
                    Some((high, low)) => {
                        out.push(high * 16 + low);
                        n += 2;
                    }
                    None => out.push(b'%'),
                }
            }
            b => out.push(b),
        }
        n += 1;
    }
    out
}

/// The canonical form: pairs sorted by key, equal keys gathered with their values joined by commas, every byte
/// beyond ASCII written as the UTF-8 of the character of that number (the reference's double encoding).
fn canonical(pairs: &[Pair]) -> String {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = String::new();
    let mut n = 0;
    while n < sorted.len() {
        if n > 0 {
            out.push('&');
        }
        let key = &sorted[n].0;
        encode_into(&mut out, key);
        out.push('=');
        let mut first = true;
        while n < sorted.len() && &sorted[n].0 == key {
            if !first {
                out.push(',');
            }
            first = false;
            encode_into(&mut out, sorted[n].1.as_deref().unwrap_or_default());
            n += 1;
        }
    }
    out
}

fn encode_into(out: &mut String, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let escape = |out: &mut String, b: u8| {
        out.push('%');
        out.push(HEX[usize::from(b >> 4)] as char);
        out.push(HEX[usize::from(b & 15)] as char);
    };
    for &b in bytes {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(b as char),
            0x80.. => {
                let mut buffer = [0; 2];
                for b in (b as char).encode_utf8(&mut buffer).bytes() {
                    escape(out, b);
                }
            }
            b => escape(out, b),
        }
    }
}

fn last_word(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Parses the query string `raw` (without `?`). `reading_call`: a GET or HEAD of a function, where a value
/// that is not a filter is an argument.
pub fn parse(raw: &[u8], reading_call: bool) -> Result<QueryParams, ApiError> {
    let pairs = split_pairs(raw);
    if pairs.len() > MAX_PARAMETERS {
        return Err(ApiError::TooLarge(Limit::Parameters));
    }
    let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| ApiError::NotUtf8);
    let mut decoded: Vec<(&str, Option<&str>)> = Vec::with_capacity(pairs.len());
    for (key, value) in &pairs {
        decoded.push((utf8(key)?, value.as_deref().map(utf8).transpose()?));
    }
    let lookup = |name: &str| decoded.iter().find(|(key, _)| *key == name).and_then(|(_, value)| *value);

    let mut params = QueryParams::default();
    let (mut orders, mut logics, mut filters) = (Vec::new(), Vec::new(), Vec::new());
    let (mut limits, mut offsets) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in decoded.iter().filter_map(|(key, value)| Some((*key, (*value)?))) {
        match last_word(key) {
            "order" => orders.push((key, value)),
            "limit" => {
                limits.insert(key.to_owned(), RowRange::ALL.restrict(read_integer(value)));
            }
            "offset" => {
                let level = format!("{}limit", &key[..key.len() - "offset".len()]);
                offsets.insert(level, read_integer(value).map_or(RowRange::ALL, RowRange::from_lower));
            }
            "and" | "or" => logics.push((key, value)),
            _ if matches!(key, "select" | "columns" | "on_conflict") => {}
            _ => filters.push((key, value)),
        }
    }
    for (key, value) in orders {
        let (path, _) = tree_path(key)?;
        params.order.push((path, parse_part("order", value, value, grammar::order)?));
    }
    for (key, value) in logics {
        let (path, op) = parse_part("logic path", key, key, grammar::logic_path)?;
        let tree = parse_part("logic tree", value, &format!("{op}{value}"), grammar::logic_tree)?;
        params.logic.push((path, tree));
    }
    if let Some(columns) = lookup("columns") {
        params.columns = Some(parse_part("columns parameter", columns, columns, grammar::columns)?);
    }
    let select = lookup("select").unwrap_or("*");
    params.select = match plain::select(select) {
        Some(items) => items,
        None => parse_part("select parameter", select, select, grammar::select)?,
    };
    for (key, value) in filters {
        let (path, field) = tree_path(key)?;
        params.filter_keys.push(key.to_owned());
        let op = match plain::operation(value) {
            Some(op) => Some(op),
            None if reading_call && plain::is_no_operation(value) => None,
            None => parse_part("filter", value, value, |p| {
                if reading_call {
                    p.optional(|p| grammar::op_expr(p, grammar::rest))
                } else {
                    grammar::op_expr(p, grammar::rest).map(Some)
                }
            })?,
        };
        match op {
            Some(op) => params.filters.push((path, Filter { field, op })),
            None => params.arguments.push((field.name, value.to_owned())),
        }
    }
    if let Some(columns) = lookup("on_conflict") {
        params.on_conflict = Some(parse_part("on_conflict parameter", columns, columns, grammar::columns)?);
    }
    params.ranges = join_ranges(limits, offsets);
    if !reading_call {
        params.canonical = canonical(&pairs);
    }
    Ok(params)
}

fn join_ranges(limits: BTreeMap<String, RowRange>, offsets: BTreeMap<String, RowRange>) -> BTreeMap<String, RowRange> {
    let mut ranges = limits;
    for (level, offset) in offsets {
        let lower = offset.lower;
        ranges
            .entry(level)
            .and_modify(|limit| {
                let upper = lower + limit.limit().unwrap_or(0) - 1;
                *limit = RowRange { lower, upper: Some(upper) };
            })
            .or_insert(offset);
    }
    ranges
}

/// The embed path of a level of [`QueryParams::ranges`].
pub fn range_path(level: &str) -> Result<EmbedPath, ApiError> {
    tree_path(level).map(|(path, _)| path)
}

fn tree_path(key: &str) -> Result<(EmbedPath, Field), ApiError> {
    match plain::tree_path(key) {
        Some(found) => Ok(found),
        None => parse_part("tree path", key, key, grammar::tree_path),
    }
}

fn parse_part<T>(
    what: &'static str,
    shown: &str,
    text: &str,
    grammar: impl Fn(&mut Parser<'_>) -> Parsed<T>,
) -> Result<T, ApiError> {
    combinators::parse(text, grammar).map_err(|fault| match fault {
        ParseFault::Syntax { line, column, details } => ApiError::Query {
            message: format!("\"failed to parse {what} ({shown})\" (line {line}, column {column})"),
            details,
        },
        ParseFault::TooDeep => ApiError::TooLarge(Limit::Nesting),
    })
}

#[cfg(test)]
mod tests {
    use super::combinators::MAX_NESTING;
    use super::*;

    fn parsed(query: &str) -> QueryParams {
        parse(query.as_bytes(), false).unwrap_or_else(|error| panic!("{query}: {error:?}"))
    }

    fn refused(query: &str) -> (String, String) {
        match parse(query.as_bytes(), false) {
            Err(ApiError::Query { message, details }) => (message, details),
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn the_last_segment_of_a_key_decides_its_kind() {
        let params = parsed("a.b.order=x&rel.limit=3&not.or=(a.eq.1,b.eq.2)&x.and=(c.is.null,d.eq.1)&a.b=eq.1&flag");
        assert_eq!(params.order[0].0, ["a", "b"]);
        assert_eq!(params.ranges["rel.limit"].limit(), Some(3));
        assert!(matches!(&params.logic[0], (path, LogicTree::Group { negated: true, .. }) if path.is_empty()));
        assert_eq!(params.logic[1].0, ["x"]);
        assert_eq!((params.filters[0].0.join("."), params.filters[0].1.field.name.as_str()), ("a".to_owned(), "b"));
        assert_eq!(params.filters.len(), 1);
    }

    #[test]
    fn the_first_select_and_the_last_limit_are_used() {
        let params = parsed("select=a&select=b&limit=1&limit=5&id=eq.1&id=eq.2");
        assert!(matches!(&params.select[..], [SelectItem::Field { field, .. }] if field.name == "a"));
        assert_eq!(params.ranges["limit"].limit(), Some(5));
        assert_eq!(params.filters.len(), 2);
    }

    #[test]
    fn the_canonical_query_is_sorted_grouped_and_double_encoded_beyond_ascii() {
        let cases = [
            ("b=1&a=2", "a=2&b=1"),
            ("a=1&c=3&b=2&d", "a=1&b=2&c=3&d="),
            ("id=in.(6)&id=in.(3,4)", "id=in.%286%29,in.%283%2C4%29"),
            ("a=x+y&a=%20", "a=x%20y,%20"),
            ("n=eq.%C3%BC", "n=eq.%C3%83%C2%BC"),
            ("", ""),
        ];
        for (query, canonical) in cases {
            assert_eq!(super::canonical(&split_pairs(query.as_bytes())), canonical, "{query}");
        }
    }

    #[test]
    fn semicolons_separate_and_a_stray_percent_stays() {
        assert_eq!(
            split_pairs(b"a=1;b=%zz&c=%41%"),
            [
                (b"a".to_vec(), Some(b"1".to_vec())),
                (b"b".to_vec(), Some(b"%zz".to_vec())),
                (b"c".to_vec(), Some(b"A%".to_vec())),
            ]
        );
    }

    #[test]
    fn select_items_are_distinguished() {
        let params = parsed("select=*,a:b->c->>0::int,count(),x.sum()::text,...rel!hint!inner(y),o:p!left()");
        let shown: Vec<String> = params
            .select
            .iter()
            .map(|item| match item {
                SelectItem::Field { field, aggregate, aggregate_cast, cast, alias } => format!(
                    "{}{}{}{}{}{}",
                    alias.as_ref().map(|a| format!("{a}:")).unwrap_or_default(),
                    field.name,
                    "->".repeat(field.path.len()),
                    cast.as_ref().map(|c| format!("::{}", c.as_str())).unwrap_or_default(),
                    aggregate.map(|a| format!(".{}()", a.name())).unwrap_or_default(),
                    aggregate_cast.as_ref().map(|c| format!("::{}", c.as_str())).unwrap_or_default(),
                ),
                SelectItem::Embed { target, alias, hint, join, spread, select } => {
                    format!("{target} {alias:?} {hint:?} {join:?} {spread} {}", select.len())
                }
            })
            .collect();
        assert_eq!(
            shown,
            [
                "*",
                "a:b->->::int",
                "*.count()",
                "x.sum()::text",
                "rel None Some(\"hint\") Some(Inner) true 1",
                "p Some(\"o\") None Some(Left) false 0",
            ]
        );
    }

    #[test]
    fn values_inside_lists_and_logic_are_unquoted_and_at_the_top_they_are_not() {
        let operation = |query: &str| parsed(query).filters[0].1.op.operation.clone();
        assert_eq!(operation("a=eq.\"x,y\""), Operation::Quantified(QuantOp::Equal, None, "\"x,y\"".to_owned()));
        let list = |items: &[&str]| Operation::In(items.iter().map(|item| (*item).to_owned()).collect());
        assert_eq!(operation("a=in.(\"x,y\",b c ,\"q\\\"\")"), list(&["x,y", "b c ", "q\""]));
        assert_eq!(operation("a=in.()"), list(&[""]));
        let params = parsed("or=(a.eq.\"x)\",b.cs.{1,2},c.in.(1,2))");
        let LogicTree::Group { members, .. } = &params.logic[0].1 else { panic!("a group") };
        let LogicTree::Filter(first) = &members[0] else { panic!("a filter") };
        assert_eq!(first.op.operation, Operation::Quantified(QuantOp::Equal, None, "x)".to_owned()));
        assert_eq!(members.len(), 3);
    }

    #[test]
    fn parameters_that_are_no_filters_are_arguments_of_a_get_call() {
        let params = parse(b"a=1&b=eq.2&c=x.y", true).expect("query");
        assert_eq!(params.arguments, [("a".to_owned(), "1".to_owned()), ("c".to_owned(), "x.y".to_owned())]);
        assert_eq!(params.filters.len(), 1);
        assert!(parse(b"a=is.what", true).is_err());
    }

    #[test]
    fn errors_state_position_and_expectation() {
        let cases = [
            (
                "a=xx.1",
                "\"failed to parse filter (xx.1)\" (line 1, column 1)",
                "unexpected \"x\" expecting \"not\" or operator (eq, gt, ...)",
            ),
            (
                "order=a.dsc",
                "\"failed to parse order (a.dsc)\" (line 1, column 3)",
                "unexpected \"d\" expecting \"asc\", \"desc\", \"nullsfirst\" or \"nullslast\"",
            ),
            (
                "or=()",
                "\"failed to parse logic tree (())\" (line 1, column 4)",
                "unexpected \")\" expecting field name (* or [a..z0..9_$]), negation operator (not) or logic operator (and, or)",
            ),
            (
                "select=a(b[])",
                "\"failed to parse select parameter (a(b[]))\" (line 1, column 4)",
                "unexpected '[' expecting letter, digit, \"-\", \"->>\", \"->\", \"::\", \".\", \")\", \",\" or end of input",
            ),
            (
                "a=is.maybe",
                "\"failed to parse filter (is.maybe)\" (line 1, column 4)",
                "unexpected \"m\" expecting isVal: (null, not_null, true, false, unknown)",
            ),
            (
                "columns=",
                "\"failed to parse columns parameter ()\" (line 1, column 1)",
                "unexpected end of input expecting field name (* or [a..z0..9_$])",
            ),
        ];
        for (query, message, details) in cases {
            assert_eq!(refused(query), (message.to_owned(), details.to_owned()), "{query}");
        }
    }

    #[test]
    fn too_many_parameters_are_refused() {
        let many = vec!["a=eq.1"; MAX_PARAMETERS + 1].join("&");
        assert!(matches!(parse(many.as_bytes(), false), Err(ApiError::TooLarge(Limit::Parameters))));
    }

    fn is_too_deep(query: &str) -> bool {
        matches!(parse(query.as_bytes(), false), Err(ApiError::TooLarge(Limit::Nesting)))
    }

    #[test]
    fn embeds_and_logic_groups_are_nested_up_to_the_limit() {
        let nested =
            |open: &str, inner: &str, depth: usize| format!("{}{inner}{}", open.repeat(depth), ")".repeat(depth));
        let queries = |depth: usize| {
            [
                format!("select={}", nested("a(", "b", depth)),
                format!("select={}", nested("...a!left(", "b", depth)),
                format!("select={}", nested("\"a\"(", "b", depth)),
                format!("x.or=({})", nested("not.and(", "a.eq.1", depth - 1)),
                format!("and=({})", nested("or(", "a.in.(1,2)", depth - 1)),
            ]
        };
        for (within, beyond) in queries(MAX_NESTING).iter().zip(&queries(MAX_NESTING + 1)) {
            parsed(within);
            assert!(is_too_deep(beyond), "{beyond}");
        }
    }

    #[test]
    fn brackets_in_quotes_do_not_hide_the_depth() {
        let select = format!("{}%22{}%22(", "a(".repeat(99), ")".repeat(100)).repeat(190);
        let logic = format!("{}a.eq.%22{}%22,", "and(".repeat(99), ")".repeat(99)).repeat(120);
        let queries = [format!("select={select}"), format!("or=({logic}"), format!("x.not.and=({logic}")];
        // A worker's stack.
        let parses = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            for query in queries {
                assert!(is_too_deep(&query));
            }
        });
        assert!(parses.expect("a thread").join().is_ok());
    }

    #[test]
    fn brackets_in_a_value_are_not_nested() {
        let value = "(".repeat(50_000);
        assert_eq!(parsed(&format!("a=eq.{value}&or=(b.eq.%22{value}%22)")).filters.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_query_string_makes_the_parser_fail(query in ".{0,80}") {
            let _ = parse(query.as_bytes(), false);
            let _ = parse(query.as_bytes(), true);
        }

        #[test]
        fn no_mixture_of_the_grammars_own_pieces_makes_the_parser_fail(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "select=", "order=", "or=", "and=(", "a", ".", "eq.", "in.(", ")", "(", ",", "->", "->>", "::", ":",
                    "\"", "*", "...", "!inner", "not.", "is.null", "{", "}", "&", "-1", "limit=", "offset=9", "count()",
                    "\\", "%22", " ", "fts(en)", "ü", "asc", "nullsfirst",
                ]),
                0..24,
            )
        ) {
            let query = pieces.concat();
            let _ = parse(query.as_bytes(), false);
            let _ = parse(query.as_bytes(), true);
        }
    }
}
