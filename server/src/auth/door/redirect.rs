//! Where a browser may be sent after a flow. Reference: supabase/auth `internal/utilities/request.go`.

use std::net::IpAddr;

use url::{Host, Url};

use crate::auth::door::request::Request;

/// The longest redirect in bytes. Matching takes time that grows with its square.
const LONGEST: usize = 8192;

/// How many URLs an entry with `{a,b}` may stand for.
const MOST_ALTERNATIVES: usize = 1000;

/// The allow-list and the site that is always allowed.
pub struct RedirectPolicy {
    site: String,
    patterns: Vec<Glob>,
}

impl RedirectPolicy {
    pub fn new(site_url: &str, allow_list: &[String]) -> Self {
        Self { site: site_url.to_owned(), patterns: allow_list.iter().flat_map(|entry| Glob::all_of(entry)).collect() }
    }

    /// Whether a redirect may go to `candidate`: the site itself (scheme, host and port as text; any port of
    /// this machine), loopback addresses, and what the allow-list matches without its fragment.
    ///
    /// Web addresses are stricter than upstream's. A wildcard of the list's host stands for a part of the host only, user
    /// information is refused, and so is a host that browsers read as an address or as another name.
    pub fn allows(&self, candidate: &str) -> bool {
        if candidate.len() > LONGEST {
            return false;
        }
        let (Some(base), Some(target)) = (Parts::of(&self.site), Parts::of(candidate)) else { return false };
        // Never allowed, whatever the list says: browsers run these in the page.
        if is_executable(target.scheme) {
            return false;
        }
        let is_web = ["http", "https"].iter().any(|scheme| target.scheme.eq_ignore_ascii_case(scheme));
        // A URL without a scheme would lead to wherever this server is.
        if target.scheme.is_empty() || (is_web && target.has_user_info) {
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
        if is_web && !is_read_alike(candidate, target.host) {
            return false;
        }
        if let Ok(address) = target.host.parse::<IpAddr>() {
            return address.is_loopback();
        }
        let without_fragment = candidate.split('#').next().unwrap_or("");
        if is_web {
            return is_regular_host(target.host)
                && self.patterns.iter().any(|pattern| pattern.matches_web(without_fragment, target.authority_end));
        }
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

/// Whether browsers find the same host in a web address as [`Parts`] does. They read `0x7f.1` as an address.
fn is_read_alike(url: &str, host: &str) -> bool {
    let Ok(read) = Url::parse(url) else { return false };
    match read.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case(host),
        Some(Host::Ipv4(address)) => host.parse() == Ok(address),
        Some(Host::Ipv6(address)) => host.parse() == Ok(address),
        None => false,
    }
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
    has_user_info: bool,
    host: &'a str,
    port: &'a str,
    /// Where path or query start, in bytes.
    authority_end: usize,
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
        let Some(after) = rest.strip_prefix("//") else {
            return Some(Self { scheme, has_user_info: false, host: "", port: "", authority_end: 0 });
        };
        let authority = after.split(['/', '?']).next().unwrap_or("");
        if authority.contains(['\\', ' ', '<', '>', '"', '^', '`', '{', '}', '|']) {
            return None;
        }
        let (has_user_info, host_port) = match authority.rsplit_once('@') {
            Some((_, host_port)) => (true, host_port),
            None => (false, authority),
        };
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
        let authority_end = url.len() - after.len() + authority.len();
        Some(Self { scheme, has_user_info, host, port, authority_end })
    }
}

/// A pattern for a whole URL: `*` matches a run without `.` or `/`, `**` any run, `?` one character
/// except these, `[a-z]`, `[!a]`, and `\` escapes the next character. `{a,b}` makes a pattern for each alternative.
struct Glob {
    tokens: Vec<Token>,
    /// How many tokens belong to scheme and host. Runs at the end of the host are not among them, because they may
    /// extend beyond it: `https://site.example**` allows paths.
    host: usize,
}

enum Token {
    Literal(char),
    Run,
    AnyRun,
    One,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// The patterns of an entry, one for each combination of its alternatives.
    fn all_of(entry: &str) -> Vec<Self> {
        let mut open = vec![entry.chars().collect::<Vec<_>>()];
        let mut done = Vec::new();
        while let Some(pattern) = open.pop() {
            if open.len() + done.len() >= MOST_ALTERNATIVES {
                tracing::warn!(
                    entry,
                    most = MOST_ALTERNATIVES,
                    "an entry of the redirect allow-list has too many alternatives"
                );
                break;
            }
            match first_braces(&pattern) {
                Some((start, end)) => open.extend(
                    alternatives(&pattern[start + 1..end])
                        .into_iter()
                        .map(|alternative| [&pattern[..start], &alternative[..], &pattern[end + 1..]].concat()),
                ),
                None => done.push(Self::new(&pattern)),
            }
        }
        done
    }

    fn new(pattern: &[char]) -> Self {
        let mut tokens = tokens(pattern);
        let authority =
            tokens.windows(2).position(|pair| pair.iter().all(|token| token.is('/'))).map_or(0, |at| at + 2);
        let delimiter = |token: &Token| ['/', '?', '#'].iter().any(|c| token.is(*c));
        let mut host = authority + tokens[authority..].iter().take_while(|token| !delimiter(token)).count();
        // A question mark after a host without wildcards starts the query if more than a host follows:
        // `https://site.example?type=*`, `https://site.example?**`.
        let literals = tokens[authority..host].iter().take_while(|token| matches!(token, Token::Literal(_))).count();
        if let Some((Token::One, after)) = tokens[authority + literals..host].split_first()
            && (after.iter().any(|token| token.is('='))
                || (host == tokens.len() && !after.is_empty() && after.iter().all(Token::is_run)))
        {
            host = authority + literals;
            tokens[host] = Token::Literal('?');
        }
        host -= tokens[..host].iter().rev().take_while(|token| token.is_run()).count();
        Self { tokens, host }
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        ends(&self.tokens, &text, vec![0]).contains(&text.len())
    }

    /// Like [`matches`](Self::matches), for a web address whose authority ends at byte `authority_end`. What the pattern
    /// says of the host is compared with the authority alone, or a path could pass for a host.
    fn matches_web(&self, text: &str, authority_end: usize) -> bool {
        let authority_end = text.get(..authority_end).map_or(0, |start| start.chars().count());
        let text: Vec<char> = text.chars().collect();
        let (host, rest) = self.tokens.split_at(self.host);
        ends(rest, &text, ends(host, &text[..authority_end], vec![0])).contains(&text.len())
    }
}

impl Token {
    fn is(&self, c: char) -> bool {
        matches!(self, Self::Literal(literal) if *literal == c)
    }

    fn is_run(&self) -> bool {
        matches!(self, Self::Run | Self::AnyRun)
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

/// Where the first alternatives of a pattern open and close.
fn first_braces(pattern: &[char]) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        match c {
            '\\' => at += 1,
            '{' => {
                if let Some(length) = closing_brace(&pattern[at + 1..]) {
                    return Some((at, at + 1 + length));
                }
            }
            '[' => at += pattern[at + 1..].iter().position(|c| *c == ']').map_or(0, |length| length + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn alternatives(inner: &[char]) -> Vec<Vec<char>> {
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
    parts
}

/// Every position at which a match of `tokens` from one of the sorted `positions` can end; sorted and without
/// duplicates, so that the work is bounded by pattern length times text length squared.
fn ends(tokens: &[Token], text: &[char], mut positions: Vec<usize>) -> Vec<usize> {
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

    fn allows(list: &[&str], url: &str) -> bool {
        RedirectPolicy::new("https://site.example", &list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>())
            .allows(url)
    }

    /// A wildcard stood for `?`, `@` and `/` too, so that the host of the list could be the path of another one.
    #[test]
    fn a_wildcard_of_the_host_does_not_leave_the_host() {
        for (entry, url) in [
            ("https://*.example.com/**", "https://0x5db8d822?x.example.com/"),
            ("https://*.example.com/**", "https://evil?x.example.com/"),
            ("https://*.example.com/**", "https://evil#x.example.com/"),
            ("https://*.example.com/**", "https://u:p@x.example.com/"),
            ("https://?.example.com/**", "https://e?.example.com/"),
            ("https://[!a].example.com/**", "https://?.example.com/"),
            ("https://**.example.com/**", "https://evil.com?.example.com/"),
            ("https://**.example.com/**", "https://evil.com/.example.com/"),
            ("https://**.example.com**", "https://evil.com/.example.com/"),
            ("https://**--org.netlify.app/**", "https://evil.com/--org.netlify.app/"),
            ("https://foo.dev?.example.com/x=1", "https://foo.dev?.example.com/x=1"),
            ("**.example.com/**", "https://evil.com/.example.com/"),
            ("**.example.com/**", " https://evil.com/.example.com/"),
            ("**.example.com/**", "//evil.com/.example.com/"),
            ("**.example.com/**", "https:evil.com/.example.com/"),
            ("**.example.com/**", "https:///evil.com/.example.com/"),
            ("http{,s}://{**.example.com,b.example}/**", "https://evil.com/.example.com/"),
            ("http://localhost:*/**", "http://localhost:1@0x5db8d822/"),
            ("http://localhost:*/**", "http://localhost:1@evil.com/"),
            ("https://example.co?/**", "https://example.co?/x"),
            ("https://example.com?type=*", "https://example.comxtype=y.evil.com"),
            ("https://example.com?**", "https://example.comx.evil.com"),
            ("http://localhost:3000**", "http://localhost:3000@evil.com/"),
        ] {
            assert!(!allows(&[entry], url), "{entry} {url}");
        }
    }

    #[test]
    fn no_pattern_allows_a_host_that_browsers_read_as_an_address() {
        for host in
            ["0x5db8d822", "0X5DB8D822", "0x5d.0xb8.0xd8.0x22", "93.184.55330", "0135.0270.0330.042", "93.184.216.34"]
        {
            assert!(!allows(&["**", "https://**", "https://*/**"], &format!("https://{host}/")), "{host}");
        }
        for url in ["http://127.0.0.1/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/"] {
            assert!(allows(&["https://none.example"], url), "{url}");
        }
        assert!(!allows(&["**"], "http://127.1/") && !allows(&["**"], "http://[::ffff:5db8:d822]/"));
        // An address can be the site itself.
        assert!(RedirectPolicy::new("http://192.0.2.7:3000", &[]).allows("http://192.0.2.7:3000/x"));
    }

    #[test]
    fn wildcards_match_as_upstream_documents_them() {
        for (entry, url) in [
            ("http://localhost:*/**", "http://localhost:5173/a/b.c?d=e"),
            ("http://localhost:3000/**", "http://localhost:3000/"),
            ("http://localhost:3000**", "http://localhost:3000/x/y?z"),
            ("https://*.vercel.app/**", "https://my-app.vercel.app/auth/callback?next=/x.y@z"),
            ("https://**.vercel.app/**", "https://a.b.vercel.app/x"),
            ("https://**--org.netlify.app/**", "https://deploy-1--org.netlify.app/x/y"),
            ("https://*-team.vercel.app", "https://a-team.vercel.app"),
            ("https://**.example.com/**", "https://ab--cd.example.com/x"),
            ("https://preview-[0-9]?.example.com/**", "https://preview-42.example.com/x"),
            ("https://example.com/**", "https://example.com/https://other.example/?a=b"),
            ("https://example.com**", "https://example.com?a=b"),
            ("https://example.com*", "https://example.com?a=b"),
            ("https://example.com?type=*", "https://example.com?type=recovery"),
            ("https://example.com?**", "https://example.com?type=recovery"),
            ("https://example.co?/**", "https://example.com/x"),
            ("https://example.com/cb?type=*", "https://example.com/cb?type=recovery#x"),
            ("https://**/callback", "https://any.example/a/callback"),
            ("https://**", "https://any.example:8443/x"),
            ("http*://**", "http://any.example"),
            ("*://app.example/**", "HTTPS://app.example/x"),
            ("**.example.com/**", "https://a.example.com/x"),
            ("**", "https://any.example"),
            ("http{,s}://{a,b}.example/{x,y/z}", "http://b.example/y/z"),
            ("com.app://**", "com.app://login?x@y"),
            ("exp://**.exp.direct/--/**", "exp://a.b.exp.direct/--/x"),
            ("app://[x]{1,2}/\\{*", "app://x2/{y"),
        ] {
            assert!(allows(&[entry], url), "{entry} {url}");
        }
    }

    #[test]
    fn many_wildcards_do_not_make_matching_slow() {
        let glob = Glob::new(&"**a".repeat(30).chars().collect::<Vec<_>>());
        let started = std::time::Instant::now();
        assert!(!glob.matches(&"b".repeat(2000)));
        assert!(started.elapsed().as_secs() < 2);
    }

    /// Positions were kept once for each way to reach them, which took gigabytes.
    #[test]
    fn many_ways_to_match_take_no_more_memory_than_the_text() {
        for (pattern, part) in [("https://**--site.example/**", "--site.example/"), ("https://*-*.site.example", "-")] {
            let text = format!("https://{}.site.example", part.repeat(60_000 / part.len()));
            let pattern: Vec<char> = pattern.chars().collect();
            assert!(Glob::new(&pattern).matches(&text));
        }
        let long = format!("https://b.example/{}", "x".repeat(LONGEST));
        assert!(policy().allows(&long[..LONGEST]) && !policy().allows(&long));
    }
}
