//! Ranges of rows: `limit`, `offset` and the `Range` header, and how they combine.
//!
//! Reference: PostgREST `src/library/PostgREST/RangeQuery.hs`.

/// Rows `lower ..= upper`, counted from 0; without `upper` up to the end. May be empty or invalid (`lower >
/// upper`); the code that builds one decides what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    pub lower: i128,
    pub upper: Option<i128>,
}

impl RowRange {
    /// Every row.
    pub const ALL: RowRange = RowRange { lower: 0, upper: None };
    /// `limit=0`: no row, and not an error.
    pub const NONE: RowRange = RowRange { lower: 0, upper: Some(-1) };

    pub fn from_lower(lower: i128) -> Self {
        Self { lower, upper: None }
    }

    /// The number of rows, if bounded; negative when the bounds are crossed.
    pub fn limit(self) -> Option<i128> {
        self.upper.map(|upper| 1 + upper - self.lower)
    }

    pub fn is_empty(self) -> bool {
        self.upper.is_some_and(|upper| upper < self.lower)
    }

    /// Whether this is what `limit=0` makes.
    pub fn is_limit_zero(self) -> bool {
        self.upper == Some(-1)
    }

    pub fn intersect(self, other: Self) -> Self {
        let upper = match (self.upper, other.upper) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { lower: self.lower.max(other.lower), upper }
    }

    /// At most `limit` rows of this range.
    pub fn restrict(self, limit: Option<i128>) -> Self {
        match limit {
            None => self,
            Some(limit) => self.intersect(Self { lower: i128::MIN / 4, upper: Some(self.lower + limit - 1) }),
        }
    }

    /// The cap of `db-max-rows`, leaving `limit=0` alone.
    pub fn cap(self, max_rows: Option<u64>) -> Self {
        if self.is_limit_zero() { Self::NONE } else { self.restrict(max_rows.map(i128::from)) }
    }
}

/// The `Range` header: `a-b` or `a-`, without a unit; anything else asks for all rows.
pub fn parse_range_header(text: &str) -> RowRange {
    let Some((lower, upper)) = text.split_once('-') else { return RowRange::ALL };
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if lower.is_empty() || !digits(lower) || !digits(upper) {
        return RowRange::ALL;
    }
    let bound = |t: &str| t.parse::<i128>().unwrap_or(i128::MAX / 4);
    RowRange { lower: bound(lower), upper: (!upper.is_empty()).then(|| bound(upper)) }
}

/// An integer as the reference reads `limit` and `offset`: blanks and parentheses around it, `-`, and the
/// prefixes `0x`, `0o`, `0b` are all fine. `None` for anything else, which is then ignored.
pub fn read_integer(text: &str) -> Option<i128> {
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        text = inner.trim();
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| lower.starts_with(prefix));
    let (digits, radix) = radix.map_or((digits, 10), |(prefix, radix)| (&digits[prefix.len()..], radix));
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX / 4).min(i128::MAX / 4);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_header_accepts_only_item_numbers() {
        let cases = [
            ("0-9", RowRange { lower: 0, upper: Some(9) }),
            ("5-", RowRange { lower: 5, upper: None }),
            ("items=0-9", RowRange::ALL),
            ("-5", RowRange::ALL),
            ("", RowRange::ALL),
            ("0-9,20-29", RowRange::ALL),
        ];
        for (text, range) in cases {
            assert_eq!(parse_range_header(text), range, "{text}");
        }
        assert!(parse_range_header("9-5").is_empty());
    }

    #[test]
    fn integers_are_parsed_as_in_the_reference() {
        let cases = [
            ("5", Some(5)),
            (" 5 ", Some(5)),
            ("-5", Some(-5)),
            ("(-5)", Some(-5)),
            (" ( ( 5 ) ) ", Some(5)),
            ("((5)", None),
            ("0x1F", Some(31)),
            ("abc", None),
            ("", None),
            ("1.5", None),
            ("1e3", None),
            ("+1", None),
        ];
        for (text, value) in cases {
            assert_eq!(read_integer(text), value, "{text}");
        }
    }

    #[test]
    fn any_number_of_parentheses_may_be_around_an_integer() {
        let text = format!("{}5{}", "(".repeat(500_000), ")".repeat(500_000));
        let reads = std::thread::Builder::new().stack_size(256 << 10).spawn(move || read_integer(&text));
        assert_eq!(reads.expect("a thread").join().ok(), Some(Some(5)));
    }

    #[test]
    fn a_cap_leaves_limit_zero_alone() {
        assert_eq!(RowRange::NONE.cap(Some(10)), RowRange::NONE);
        assert_eq!(RowRange::from_lower(5).cap(Some(10)), RowRange { lower: 5, upper: Some(14) });
        assert_eq!(RowRange::ALL.cap(None), RowRange::ALL);
    }
}
