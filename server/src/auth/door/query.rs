//! Queries and forms as upstream reads them, with Go's `net/url`: a pair with a semicolon or an invalid percent escape
//! is skipped; the others are kept.

use percent_encoding::percent_decode;

/// The pairs of a query or form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    pub pairs: Vec<(String, String)>,
    /// Whether a pair was skipped.
    pub is_malformed: bool,
}

impl Pairs {
    pub fn parse(text: &[u8]) -> Self {
        let mut read = Self::default();
        for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.iter().position(|byte| *byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            };
            match (unescape(name), unescape(value)) {
                (Some(name), Some(value)) if !pair.contains(&b';') => read.pairs.push((name, value)),
                _ => read.is_malformed = true,
            }
        }
        read
    }

    /// The first value of a key.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// `None` for a percent sign without two digits after it.
fn unescape(text: &[u8]) -> Option<String> {
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let is_escape =
        |at: usize| spaced.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let escapes = spaced.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    if !escapes.map(|(at, _)| at).all(is_escape) {
        return None;
    }
    Some(percent_decode(&spaced).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_pairs_are_parsed_as_in_go() {
        for (text, wanted, is_malformed) in [
            ("", vec![], false),
            ("a=1&b=2&a=3", vec![("a", "1"), ("b", "2"), ("a", "3")], false),
            ("a+b=c+d%20e&=x&y", vec![("a b", "c d e"), ("", "x"), ("y", "")], false),
            ("a=1=2&&b=%C3%A4", vec![("a", "1=2"), ("b", "ä")], false),
            ("a=%zz&b=1", vec![("b", "1")], true),
            ("a=%4&b=%", vec![], true),
            ("a=1;b=2&c=3", vec![("c", "3")], true),
            ("a=%2541", vec![("a", "%41")], false),
        ] {
            let read = Pairs::parse(text.as_bytes());
            let found: Vec<(&str, &str)> = read.pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!((found, read.is_malformed), (wanted, is_malformed), "{text}");
        }
    }
}
