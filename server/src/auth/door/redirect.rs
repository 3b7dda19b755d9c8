//! Where a browser may be sent after a flow. Reference: supabase/auth `internal/utilities/request.go`.

use std::net::IpAddr;

use crate::auth::door::request::Request;

/// The longest redirect in bytes. Matching takes time that grows with its square.
const LONGEST: usize = 8192;

/// The allow-list and the site that is always allowed.
pub struct RedirectPolicy {
    site: String,
    patterns: Vec<Glob>,
}

impl RedirectPolicy {
    pub fn new(site_url: &str, allow_list: &[String]) -> Self {
        Self { site: site_url.to_owned(), patterns: allow_list.iter().map(|pattern| Glob::new(pattern)).collect() }
    }

    /// Whether a redirect may go to `candidate`: the site itself (scheme, host and port as text; any port of
    /// this machine), loopback addresses, and what the allow-list matches without its fragment.
    pub fn allows(&self, candidate: &str) -> bool {
        if candidate.len() > LONGEST {
            return false;
        }
        let (Some(base), Some(target)) = (Parts::of(&self.site), Parts::of(candidate)) else { return false };
        // Never allowed, whatever the list says: browsers run these in the page.
        if is_executable(target.scheme) {
            return false;
        }
        let loopback = matches!(target.host, "localhost" | "127.0.0.1" | "::1");
        if base.host == target.host
            && base.scheme.eq_ignore_ascii_case(target.scheme)
            && (base.port == target.port || loopback)
        {
            return true;
        }
        if !target.host.is_empty() && target.host.bytes().all(|b| b.is_ascii_digit()) {
            return false;
        }
        if let Ok(address) = target.host.parse::<IpAddr>() {
            return address.is_loopback();
        }
        let http = ["http", "https"].iter().any(|scheme| target.scheme.eq_ignore_ascii_case(scheme));
        if http && !is_regular_host(target.host) {
            return false;
        }
        let without_fragment = candidate.split('#').next().unwrap_or("");
        self.patterns.iter().any(|pattern| pattern.matches(without_fragment))
    }

    /// The first allowed one of: header and query `redirect_to`, `Referer`; else the site. A malformed query is
    /// ignored.
    pub fn choose(&self, request: &Request) -> String {
        let asked = request
            .header("redirect_to")
            .filter(|value| !value.is_empty())
            .or_else(|| request.query("redirect_to").filter(|_| !request.has_malformed_query()))
            .unwrap_or("");
        let referer = request.header("referer").unwrap_or("");
        [asked, referer].into_iter().find(|url| self.allows(url)).unwrap_or(&self.site).to_owned()
    }
}

/// Whether a browser treats a URL of this scheme as a script or page of the linking site.
pub fn is_executable(scheme: &str) -> bool {
    ["javascript", "data", "vbscript", "file", "about", "blob"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn is_regular_host(host: &str) -> bool {
    let alphanumeric = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    alphanumeric(host.chars().next())
        && alphanumeric(host.chars().next_back())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
}

/// A URL split as text, without normalisation, so that normalisation cannot be exploited.
struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        if url.is_empty() || url.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return None;
        }
        let url = url.split('#').next().unwrap_or("");
        let (scheme, rest) = match url.split_once(':') {
            Some((scheme, rest))
                if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) =>
            {
                (scheme, rest)
            }
            _ => ("", url),
        };
        let Some(after) = rest.strip_prefix("//") else { return Some(Self { scheme, host: "", port: "" }) };
        let authority = after.split(['/', '?']).next().unwrap_or("");
        if authority.contains(['\\', ' ', '<', '>', '"', '^', '`', '{', '}', '|']) {
            return None;
        }
        let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match host_port.strip_prefix('[') {
            Some(v6) => {
                let (host, tail) = v6.split_once(']')?;
                // Only a port may follow: other parsers read `[::1].evil.example` as a name.
                (host, if tail.is_empty() { "" } else { tail.strip_prefix(':')? })
            }
            None => host_port.split_once(':').unwrap_or((host_port, "")),
        };
        if !port.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self { scheme, host, port })
    }
}

/// A pattern for a whole URL: `*` matches a run without `.` or `/`, `**` any run, `?` one character
/// except these, `[a-z]`, `[!a]`, `{a,b}` alternatives, and `\` escapes the next character.
struct Glob(Vec<Token>);

enum Token {
    Literal(char),
    Run,
    AnyRun,
    One,
    Class { negated: bool, ranges: Vec<(char, char)> },
    Alternatives(Vec<Glob>),
}

impl Glob {
    fn new(pattern: &str) -> Self {
        let characters: Vec<char> = pattern.chars().collect();
        Self(tokens(&characters))
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        ends(&self.0, &text, 0).contains(&text.len())
    }
}

fn tokens(pattern: &[char]) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = pattern.get(at) {
        at += 1;
        match c {
            '\\' => {
                if let Some(&next) = pattern.get(at) {
                    out.push(Token::Literal(next));
                    at += 1;
                }
            }
            '*' if pattern.get(at) == Some(&'*') => {
                while pattern.get(at) == Some(&'*') {
                    at += 1;
                }
                out.push(Token::AnyRun);
            }
            '*' => out.push(Token::Run),
            '?' => out.push(Token::One),
            '[' => match pattern[at..].iter().position(|c| *c == ']') {
                Some(length) => {
                    out.push(class(&pattern[at..at + length]));
                    at += length + 1;
                }
                None => out.push(Token::Literal('[')),
            },
            '{' => match closing_brace(&pattern[at..]) {
                Some(length) => {
                    out.push(Token::Alternatives(alternatives(&pattern[at..at + length])));
                    at += length + 1;
                }
                None => out.push(Token::Literal('{')),
            },
            other => out.push(Token::Literal(other)),
        }
    }
    out
}

fn class(inner: &[char]) -> Token {
    let (negated, inner) = match inner.split_first() {
        Some(('!', rest)) => (true, rest),
        _ => (false, inner),
    };
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&from) = inner.get(at) {
        match (inner.get(at + 1), inner.get(at + 2)) {
            (Some('-'), Some(&to)) => {
                ranges.push((from, to));
                at += 3;
            }
            _ => {
                ranges.push((from, from));
                at += 1;
            }
        }
    }
    Token::Class { negated, ranges }
}

fn closing_brace(pattern: &[char]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, c) in pattern.iter().enumerate() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn alternatives(inner: &[char]) -> Vec<Glob> {
    let mut parts = vec![Vec::new()];
    let mut depth = 0_usize;
    for &c in inner {
        match c {
            ',' if depth == 0 => {
                parts.push(Vec::new());
                continue;
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.iter().map(|part| Glob(tokens(part))).collect()
}

/// Every position at which a match of `tokens` from `start` can end; sorted and without duplicates, so that
/// the work is bounded by pattern length times text length squared.
fn ends(tokens: &[Token], text: &[char], start: usize) -> Vec<usize> {
    let mut positions = vec![start];
    for token in tokens {
        let mut next = Vec::new();
        for &at in &positions {
            match token {
                Token::Literal(c) => next.extend((text.get(at) == Some(c)).then_some(at + 1)),
                Token::One => next.extend(text.get(at).is_some_and(|c| !matches!(c, '.' | '/')).then_some(at + 1)),
                Token::Class { negated, ranges } => {
                    let hit = text
                        .get(at)
                        .is_some_and(|c| ranges.iter().any(|(from, to)| (*from..=*to).contains(c)) != *negated);
                    next.extend(hit.then_some(at + 1));
                }
                // Positions are sorted, so the first one reaches what all others do.
                Token::AnyRun if next.is_empty() => next.extend(at..=text.len()),
                Token::AnyRun => break,
                Token::Run if next.last().is_some_and(|furthest| at <= *furthest) => {}
                Token::Run => {
                    let length = text[at..].iter().take_while(|c| !matches!(c, '.' | '/')).count();
                    next.extend(at..=at + length);
                }
                Token::Alternatives(globs) => {
                    for glob in globs {
                        next.extend(ends(&glob.0, text, at));
                    }
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        positions = next;
        if positions.is_empty() {
            break;
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RedirectPolicy {
        let list = [
            "https://a.example/*",
            "https://b.example/**",
            "https://[x-y].example/p?",
            "myapp://**",
            "com.app://login",
            "https://{one,two}.example/in",
            "http://10.1.2.3/*",
        ];
        RedirectPolicy::new("https://site.example", &list.map(str::to_owned))
    }

    #[test]
    fn the_site_url_and_matches_of_the_list_are_allowed() {
        for url in [
            "https://site.example",
            "https://site.example/any/path?x=1#f",
            "https://a.example/x?y=1",
            "https://b.example/x/y.html",
            "https://x.example/pq",
            "myapp://anything/at?all",
            "com.app://login#token",
            "https://two.example/in",
            "http://127.0.0.1:8080/cb",
            "http://[::1]:1/",
        ] {
            assert!(policy().allows(url), "{url}");
        }
    }

    #[test]
    fn look_alikes_are_refused() {
        for url in [
            "",
            "//site.example",
            "/relative",
            "http://site.example",
            "https://site.example:444",
            "https://SITE.example",
            "https://site.example.evil.com",
            "https://site.example@evil.com",
            "https://site.example\\@evil.com",
            "https://evil.com#https://site.example",
            "https://evil.com/https://a.example/x",
            "https://a.example",
            "https://a.example/x/y",
            "https://a.example/x.html",
            "https://x.example/p",
            "https://z.example/pq",
            "https://three.example/in",
            "http://10.1.2.3/x",
            "http://2130706433/",
            "https://exa_mple.com/",
            "javascript:alert(1)",
            "http://[::1].evil.com/",
            "http://[::1]evil.com/",
            "http://[::1]@evil.com/",
            "https://a.example/\nx",
            "com.app://login2",
        ] {
            assert!(!policy().allows(url), "{url}");
        }
    }

    #[test]
    fn no_pattern_allows_an_executable_scheme() {
        let policy = RedirectPolicy::new("https://site.example", &["**".to_owned()]);
        assert!(policy.allows("myapp://x"));
        for url in
            ["javascript:alert(1)", "JavaScript://x/%0aalert(1)", "data:text/html,x", "vbscript:x", "blob:https://x"]
        {
            assert!(!policy.allows(url), "{url}");
        }
    }

    #[test]
    fn many_wildcards_do_not_make_matching_slow() {
        let glob = Glob::new(&"**a".repeat(30));
        let started = std::time::Instant::now();
        assert!(!glob.matches(&"b".repeat(2000)));
        assert!(started.elapsed().as_secs() < 2);
    }

    /// Positions were kept once for each way to reach them, which took gigabytes.
    #[test]
    fn many_ways_to_match_take_no_more_memory_than_the_text() {
        for (pattern, part) in [("https://**--site.example/**", "--site.example/"), ("https://*-*.site.example", "-")] {
            let text = format!("https://{}.site.example", part.repeat(60_000 / part.len()));
            assert!(Glob::new(pattern).matches(&text), "{pattern}");
        }
        let long = format!("https://b.example/{}", "x".repeat(LONGEST));
        assert!(policy().allows(&long[..LONGEST]) && !policy().allows(&long));
    }
}
