//! Filters of subscriptions: `column=[not.]op.value`, several joined by commas, all of which have to hold.
//!
//! Reference: supabase/realtime `lib/extensions/postgres_cdc_rls/subscriptions.ex`. Comparisons have PostgreSQL's
//! semantics. They are evaluated here only if the text alone decides (integers, uuids, texts, …); otherwise
//! PostgreSQL compares.

use std::sync::Arc;

use super::json::{Kind, Types};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    In,
    Like,
    Ilike,
    Is,
    Match,
    Imatch,
    IsDistinct,
}

impl Op {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "neq" => Self::Neq,
            "lt" => Self::Lt,
            "lte" => Self::Lte,
            "gt" => Self::Gt,
            "gte" => Self::Gte,
            "in" => Self::In,
            "like" => Self::Like,
            "ilike" => Self::Ilike,
            "is" => Self::Is,
            "match" => Self::Match,
            "imatch" => Self::Imatch,
            "isdistinct" => Self::IsDistinct,
            _ => return None,
        })
    }

    /// The name in `realtime.equality_op`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::In => "in",
            Self::Like => "like",
            Self::Ilike => "ilike",
            Self::Is => "is",
            Self::Match => "match",
            Self::Imatch => "imatch",
            Self::IsDistinct => "isdistinct",
        }
    }

    /// The SQL operator.
    fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Neq => "<>",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::In => "= any",
            Self::Like => "~~",
            Self::Ilike => "~~*",
            Self::Match => "~",
            Self::Imatch => "~*",
            Self::IsDistinct => "is distinct from",
            Self::Is => "is",
        }
    }
}

/// A condition as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub column: String,
    pub op: Op,
    /// Of `in`: an array literal.
    pub value: String,
    pub negate: bool,
}

/// Parses a filter; the error is upstream's text after ``Error parsing `filter` params: ``.
pub fn parse(text: &str) -> Result<Vec<Filter>, String> {
    let text = text.trim();
    if text.is_empty() { Ok(Vec::new()) } else { segments(text).iter().map(|segment| condition(segment)).collect() }
}

/// Splits at commas outside of quotes and parentheses. A quote counts only at the beginning of a value.
fn segments(text: &str) -> Vec<String> {
    let (mut all, mut current) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut previous) = (0usize, false, '\0');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                current.push(c);
                if let Some(next) = chars.next() {
                    current.push(next);
                    previous = next;
                }
                continue;
            }
            '"' if quoted => quoted = false,
            '"' if matches!(previous, '.' | '(' | ',') => quoted = true,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                all.push(std::mem::take(&mut current));
                previous = '\0';
                continue;
            }
            _ => {}
        }
        current.push(c);
        previous = c;
    }
    all.push(current);
    all
}

fn condition(segment: &str) -> Result<Filter, String> {
    let segment = segment.trim();
    if segment.is_empty() {
        return Err("filter must not contain empty segments (check for extra commas)".to_owned());
    }
    let Some((column, rest)) = segment.split_once('=') else { return Err(listed(&[segment])) };
    let (negate, rest) = match rest.strip_prefix("not.") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let Some((name, value)) = rest.split_once('.') else { return Err(listed(&[rest])) };
    let op = Op::by_name(name).ok_or_else(|| listed(&[name, value]))?;
    let value = if op == Op::In {
        let body = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
        format!("{{{}}}", body.ok_or("`in` filter value must be wrapped by parentheses")?)
    } else {
        unquoted(value)
    };
    Ok(Filter { column: column.to_owned(), op, value, negate })
}

/// A list of strings as upstream prints it.
pub fn listed(items: &[&str]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| serde_json::Value::from(*item).to_string()).collect();
    format!("[{}]", quoted.join(", "))
}

fn unquoted(value: &str) -> String {
    let Some(inside) = value.strip_prefix('"') else { return value.to_owned() };
    let mut out = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return if chars.as_str().is_empty() { out } else { value.to_owned() },
            '\\' => match chars.next() {
                Some(next) => out.push(next),
                None => return value.to_owned(),
            },
            c => out.push(c),
        }
    }
    value.to_owned()
}

/// A condition that was checked against its column, which may have another type in each of several tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    pub column: Box<str>,
    /// Of distinct types.
    all: Vec<Bound>,
}

impl Bounds {
    pub fn new(column: &str) -> Self {
        Self { column: column.into(), all: Vec::new() }
    }

    /// The check of values of this type.
    pub fn of(&self, kind: u32) -> Option<&Bound> {
        self.all.iter().find(|bound| bound.kind == kind)
    }

    pub fn add(&mut self, bound: Bound) {
        if self.of(bound.kind).is_none() {
            self.all.push(bound);
        }
    }

    /// What PostgreSQL is asked.
    pub fn comparisons(&self) -> impl Iterator<Item = &Arc<Comparison>> {
        self.all.iter().filter_map(Bound::comparison)
    }
}

/// A condition that was checked against a column of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The column's type when this was checked.
    pub kind: u32,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Is {
        keyword: Keyword,
        negate: bool,
    },
    /// Equal to one of these texts.
    Same {
        texts: Vec<Box<str>>,
        negate: bool,
        distinct: bool,
    },
    /// An integer compared with another.
    Integer {
        op: Op,
        value: i64,
        negate: bool,
    },
    /// For PostgreSQL to compare.
    Asked(Arc<Comparison>),
}

/// A comparison by PostgreSQL, equal for all conditions that share its answers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// `$1` is an array of the column's values as text, `$2` the filter's value. Returns a row per value, in order.
    pub sql: Box<str>,
    pub value: Box<str>,
    /// Whether the value is a pattern, with which a comparison can take long.
    pub is_pattern: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    Null,
    True,
    False,
}

/// A column that a filter names.
#[derive(Clone, Debug)]
pub struct Column<'a> {
    pub kind: u32,
    /// Whether the type is an enumeration.
    pub is_enum: bool,
    /// The type's name, quoted for SQL.
    pub sql_type: &'a str,
    /// Whether the collation is deterministic: only identical texts are equal.
    pub is_deterministic: bool,
}

/// The filter's values in PostgreSQL's canonical text: one, or those of `in`.
pub type Canonical = Vec<Option<String>>;

impl Filter {
    /// The statement that returns the canonical text of the value (`$1`), or fails if it is not valid for the type.
    /// `None` for patterns and keywords, which are not values.
    pub fn canonical_sql(&self, sql_type: &str) -> Option<String> {
        match self.op {
            Op::Is | Op::Like | Op::Ilike | Op::Match | Op::Imatch => None,
            Op::In => Some(format!("select x::text from pg_catalog.unnest($1::{sql_type}[]) as u(x)")),
            _ => Some(format!("select ($1::{sql_type})::text")),
        }
    }

    /// The check of this condition; `canonical` is the answer to [`Self::canonical_sql`].
    pub fn bind(&self, column: &Column<'_>, types: &Types, canonical: &Canonical) -> Result<Bound, String> {
        let negate = self.negate;
        let mut kind = column.kind;
        while let Some(Kind::Domain(base)) = types.get(&kind) {
            kind = *base;
        }
        let is_integer = matches!(kind, 20 | 21 | 23);
        // bool, text, varchar, uuid, date: values are equal if and only if their texts are.
        let is_textual = is_integer || matches!(kind, 16 | 25 | 1043 | 2950 | 1082) || column.is_enum;
        let texts = || canonical.iter().flatten().map(|text| text.as_str().into()).collect::<Vec<Box<str>>>();
        let test = match self.op {
            Op::Is => {
                let keyword = match self.value.as_str() {
                    "null" | "unknown" => Keyword::Null,
                    "true" => Keyword::True,
                    "false" => Keyword::False,
                    _ => {
                        return Err("invalid value for is filter: must be null, true, false, or unknown".to_owned());
                    }
                };
                if self.value != "null" && kind != 16 {
                    let kind = column.sql_type;
                    return Err(format!("is {} filter requires a boolean column, got {kind}", self.value));
                }
                Test::Is { keyword, negate }
            }
            Op::In if canonical.len() > 100 => {
                return Err("too many values for `in` filter. Maximum 100".to_owned());
            }
            Op::Eq | Op::In if is_textual && column.is_deterministic => {
                // With a null among the values, `not.in` is never true.
                if negate && canonical.iter().any(Option::is_none) {
                    self.asked(column)
                } else {
                    Test::Same { texts: texts(), negate, distinct: false }
                }
            }
            Op::Neq if is_textual && column.is_deterministic => {
                Test::Same { texts: texts(), negate: !negate, distinct: false }
            }
            Op::IsDistinct if is_textual && column.is_deterministic => {
                Test::Same { texts: texts(), negate: !negate, distinct: true }
            }
            Op::Lt | Op::Lte | Op::Gt | Op::Gte if is_integer => {
                match canonical.first().and_then(|value| value.as_ref()?.parse().ok()) {
                    Some(value) => Test::Integer { op: self.op, value, negate },
                    None => self.asked(column),
                }
            }
            _ => self.asked(column),
        };
        Ok(Bound { kind: column.kind, test })
    }

    /// The condition in SQL, of `value` and the parameter of this number.
    fn condition(&self, value: &str, sql_type: &str, parameter: usize) -> String {
        let negation = if self.negate { "not " } else { "" };
        let symbol = self.op.symbol();
        let operand = match self.op {
            Op::In => format!("(${parameter}::{sql_type}[])"),
            _ => format!("${parameter}::{sql_type}"),
        };
        format!("coalesce({negation}({value} {symbol} {operand}), false)")
    }

    /// The SQL condition on a row's column, and its parameter. Already validated by [`Self::bind`].
    pub fn of_row(&self, value: &str, sql_type: &str, parameter: usize) -> (String, &str) {
        if self.op != Op::Is {
            return (self.condition(value, sql_type, parameter), &self.value);
        }
        let keyword = match self.value.as_str() {
            "true" => "true",
            "false" => "false",
            _ => "null",
        };
        let negation = if self.negate { "not " } else { "" };
        // The parameter is unused, but must be referenced.
        (format!("({value} is {negation}{keyword} and ${parameter}::text is not null)"), &self.value)
    }

    fn asked(&self, column: &Column<'_>) -> Test {
        let kind = column.sql_type;
        let condition = self.condition(&format!("u.v::{kind}"), kind, 2);
        let sql =
            format!("select {condition} from pg_catalog.unnest($1::text[]) with ordinality as u(v, n) order by u.n");
        let is_pattern = matches!(self.op, Op::Like | Op::Ilike | Op::Match | Op::Imatch);
        Test::Asked(Arc::new(Comparison { sql: sql.into(), value: self.value.as_str().into(), is_pattern }))
    }
}

/// The result of a condition for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Fails,
    /// PostgreSQL has to compare.
    Ask,
}

impl Bound {
    /// Checks a value; `None` is null.
    pub fn check(&self, value: Option<&str>) -> Verdict {
        let holds = match &self.test {
            Test::Is { keyword, negate } => {
                let is = match keyword {
                    Keyword::Null => value.is_none(),
                    Keyword::True => value == Some("t"),
                    Keyword::False => value == Some("f"),
                };
                is != *negate
            }
            Test::Same { texts, negate, distinct } => match value {
                None => *distinct && *negate,
                Some(value) => texts.iter().any(|text| **text == *value) != *negate,
            },
            Test::Integer { op, value: wanted, negate } => {
                let Some(value) = value.and_then(|value| value.parse::<i64>().ok()) else { return Verdict::Fails };
                let holds = match op {
                    Op::Lt => value < *wanted,
                    Op::Lte => value <= *wanted,
                    Op::Gt => value > *wanted,
                    _ => value >= *wanted,
                };
                holds != *negate
            }
            Test::Asked(_) => return Verdict::Ask,
        };
        if holds { Verdict::Holds } else { Verdict::Fails }
    }

    /// The comparison to ask PostgreSQL for.
    pub fn comparison(&self) -> Option<&Arc<Comparison>> {
        match &self.test {
            Test::Asked(comparison) => Some(comparison),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Filter {
        let mut filters = parse(text).expect("a filter");
        assert_eq!(filters.len(), 1);
        filters.remove(0)
    }

    fn texts(text: &str) -> Vec<(String, Op, String, bool)> {
        let filters = parse(text).expect("filters");
        filters.into_iter().map(|f| (f.column, f.op, f.value, f.negate)).collect()
    }

    #[test]
    fn conditions_are_joined_by_commas_outside_of_quotes() {
        let expected = |column: &str, op, value: &str, negate| (column.to_owned(), op, value.to_owned(), negate);
        assert_eq!(texts("  "), []);
        assert_eq!(
            texts("id=gt.0, name=not.like.a%"),
            [expected("id", Op::Gt, "0", false), expected("name", Op::Like, "a%", true)]
        );
        assert_eq!(
            texts(r#"a=in.(x,"y,z"),b=eq."1,\"2",c=is.null"#),
            [
                expected("a", Op::In, r#"{x,"y,z"}"#, false),
                expected("b", Op::Eq, r#"1,"2"#, false),
                expected("c", Op::Is, "null", false),
            ]
        );
        assert_eq!(texts("a=eq.b=c.d"), [expected("a", Op::Eq, "b=c.d", false)]);
    }

    #[test]
    fn errors_have_upstreams_messages() {
        for (text, expected) in [
            ("subject=foo.hey", r#"["foo", "hey"]"#),
            ("undefined", r#"["undefined"]"#),
            ("a=eq", r#"["eq"]"#),
            ("a=in.1", "`in` filter value must be wrapped by parentheses"),
            ("a=eq.1,,b=eq.2", "filter must not contain empty segments (check for extra commas)"),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    fn bound(text: &str, kind: u32, canonical: &[&str]) -> Bound {
        let column = Column { kind, is_enum: false, sql_type: "pg_catalog.x", is_deterministic: true };
        let canonical = canonical.iter().map(|text| Some((*text).to_owned())).collect();
        one(text).bind(&column, &Types::new(), &canonical).expect("bound")
    }

    #[test]
    fn null_satisfies_no_comparison_but_is_distinct() {
        for text in
            ["a=eq.1", "a=neq.1", "a=not.eq.1", "a=not.neq.1", "a=lt.1", "a=not.lt.1", "a=in.(1)", "a=not.in.(1)"]
        {
            assert_eq!(bound(text, 23, &["1"]).check(None), Verdict::Fails, "{text}");
        }
        assert_eq!(bound("a=isdistinct.1", 23, &["1"]).check(None), Verdict::Holds);
        assert_eq!(bound("a=not.isdistinct.1", 23, &["1"]).check(None), Verdict::Fails);
        assert_eq!(bound("a=is.null", 23, &[]).check(None), Verdict::Holds);
        assert_eq!(bound("a=not.is.null", 23, &[]).check(Some("1")), Verdict::Holds);
    }

    #[test]
    fn integers_and_texts_are_compared_here_and_others_by_postgresql() {
        assert_eq!(bound("a=gt.9", 23, &["9"]).check(Some("10")), Verdict::Holds);
        assert_eq!(bound("a=not.gt.9", 23, &["9"]).check(Some("10")), Verdict::Fails);
        assert_eq!(bound("a=eq.+7", 20, &["7"]).check(Some("7")), Verdict::Holds);
        assert_eq!(bound("a=isdistinct.x", 25, &["x"]).check(Some("y")), Verdict::Holds);
        for (text, kind) in [("a=eq.1.0", 1700), ("a=lt.b", 25), ("a=like.b%", 25), ("a=eq.x", 1042)] {
            assert_eq!(bound(text, kind, &["x"]).check(Some("1")), Verdict::Ask, "{text}");
        }
        // Such a collation may treat different texts as equal.
        let column = Column { kind: 25, is_enum: false, sql_type: "text", is_deterministic: false };
        let check = one("a=eq.x").bind(&column, &Types::new(), &vec![Some("x".to_owned())]).expect("bound");
        assert_eq!(check.check(Some("x")), Verdict::Ask);
    }

    #[test]
    fn a_value_is_checked_as_its_columns_type() {
        let mut bounds = Bounds::new("a");
        bounds.add(bound("a=eq.1", 1700, &["1"]));
        bounds.add(bound("a=eq.1", 23, &["1"]));
        bounds.add(bound("a=eq.2", 23, &["2"]));
        let check = |kind| bounds.of(kind).map(|bound| bound.check(Some("1")));
        assert_eq!([23, 1700, 25].map(check), [Some(Verdict::Holds), Some(Verdict::Ask), None]);
        assert_eq!(bounds.comparisons().count(), 1);
    }

    #[test]
    fn filters_that_cannot_be_checked_are_refused() {
        let refused = |text: &str, kind, canonical: usize| {
            let column = Column { kind, is_enum: false, sql_type: "int4", is_deterministic: true };
            let canonical = vec![Some("1".to_owned()); canonical];
            one(text).bind(&column, &Types::new(), &canonical).expect_err("refused")
        };
        assert!(refused("a=is.maybe", 16, 0).starts_with("invalid value for is filter"));
        assert_eq!(refused("a=is.true", 23, 0), "is true filter requires a boolean column, got int4");
        assert!(refused("a=in.(1)", 23, 101).starts_with("too many values"));
    }

    proptest::proptest! {
        #[test]
        fn random_text_causes_no_panic(text: String) {
            let _ = parse(&text);
        }
    }
}
