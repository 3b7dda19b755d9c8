//! Random requests: valid ones that PostgreSQL must accept, and meaningless bytes.
//!
//! Seeded, so that failures can be reproduced: `RANDOM_SEED`, and `RANDOM_CASES` for more cases.

#![allow(clippy::expect_used)]

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::rest::house::House;
use crate::support::wire::send;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A relation, its columns with suitable operators and values, and its possible embeds.
struct Relation {
    name: &'static str,
    columns: &'static [(&'static str, &'static str)],
    embeds: &'static [(&'static str, usize, bool)],
}

/// Embeds: (name in a select, target relation, to-one).
const RELATIONS: [Relation; 5] = [
    Relation {
        name: "stars",
        columns: &[
            ("id", "n"),
            ("name", "t"),
            ("constellation_id", "n"),
            ("magnitude", "n"),
            ("class", "e"),
            ("discovered", "d"),
            ("aliases", "a"),
            ("facts", "j"),
            ("full_title", "t"),
        ],
        embeds: &[("constellations", 1, true), ("labels", 2, false), ("neighbours", 0, false)],
    },
    Relation {
        name: "constellations",
        columns: &[("id", "n"), ("name", "t"), ("area", "n")],
        embeds: &[("stars", 0, false), ("bright", 4, false)],
    },
    Relation { name: "labels", columns: &[("id", "n"), ("word", "t")], embeds: &[("stars", 0, false)] },
    Relation {
        name: "telescopes",
        columns: &[("id", "n"), ("name", "t"), ("aperture", "n"), ("active", "b")],
        embeds: &[("observations", 3, false)],
    },
    Relation {
        name: "bright",
        columns: &[("id", "n"), ("name", "t"), ("magnitude", "n")],
        embeds: &[("constellations", 1, true), ("labels", 2, false)],
    },
];

struct Maker(StdRng);

impl Maker {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        from.choose(&mut self.0).expect("something to choose from")
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 14] = [
            "Vega",
            "Al*",
            "",
            "a b",
            "'; drop table x;--",
            "\"q\"",
            "(",
            "a,b",
            "100%",
            "é✓",
            "\\",
            "null",
            "{",
            "$1",
        ];
        (*self.pick(&WORDS)).to_owned()
    }

    /// An `op.value` for the column's kind. `inside`: within a logic tree, where texts are quoted.
    fn condition(&mut self, kind: &str, inside: bool) -> String {
        let not = if self.chance(20) { "not." } else { "" };
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let text = self.text();
        let text = if inside { quoted(&text) } else { text };
        let n = self.0.random_range(-3..900);
        let choice = match kind {
            "n" => {
                let op = *self.pick(&["eq", "neq", "gt", "gte", "lt", "lte", "isdistinct"]);
                match self.0.random_range(0..6) {
                    0 => format!("in.({n},{})", n + 1),
                    1 => "in.()".to_owned(),
                    2 => format!("{}(any).{{{n},{}}}", self.pick(&["eq", "gt", "lte"]), n + 5),
                    _ => format!("{op}.{n}"),
                }
            }
            "t" => match self.0.random_range(0..6) {
                0 => format!("in.({},Deneb)", quoted(&self.text())),
                1 => format!("{}.{text}", self.pick(&["like", "ilike"])),
                2 => format!("{}.Vega", self.pick(&["fts", "plfts(english)", "phfts", "wfts"])),
                3 => format!("{}.{}", self.pick(&["match", "imatch"]), "%5EA"),
                _ => format!("{}.{text}", self.pick(&["eq", "neq", "gt", "isdistinct"])),
            },
            "e" => format!("{}.{}", self.pick(&["eq", "neq", "gt"]), self.pick(&["A", "B", "M"])),
            "d" => format!("{}.1900-01-01", self.pick(&["eq", "lt", "gte"])),
            "a" => format!("{}.{{Arided,x}}", self.pick(&["cs", "cd", "ov", "eq"])),
            "j" => format!("{}.{{}}", self.pick(&["cs", "cd", "eq", "neq"])),
            _ => format!("is.{}", self.pick(&["true", "false", "unknown"])),
        };
        if self.chance(10) { format!("{not}is.null") } else { format!("{not}{choice}") }
    }

    fn column(&mut self, relation: &Relation) -> (String, &'static str) {
        let (name, kind) = *self.pick(relation.columns);
        match kind {
            "j" if self.chance(60) => {
                let path = *self.pick(&["facts->>distance", "facts->names->>ar", "facts->tags->>0", "facts->>\"x y\""]);
                (path.to_owned(), "t")
            }
            _ if self.chance(15) => (format!("\"{name}\""), kind),
            _ => (name.to_owned(), kind),
        }
    }

    fn select(&mut self, relation: &Relation, depth: u32) -> String {
        let mut items = Vec::new();
        for index in 0..self.0.random_range(1..4) {
            let (column, _) = self.column(relation);
            let alias = if self.chance(30) { format!("c{depth}{index}:") } else { String::new() };
            let cast = if self.chance(15) { "::text" } else { "" };
            items.push(format!("{alias}{column}{cast}"));
        }
        if self.chance(20) {
            items = vec!["*".to_owned()];
        }
        if depth < 3 && !relation.embeds.is_empty() && self.chance(55) {
            let (target, leads_to, _) = *self.pick(relation.embeds);
            let kind = *self.pick(&["", "", "!inner", "!left"]);
            let spread = if kind != "!left" && self.chance(15) { "..." } else { "" };
            let alias = if spread.is_empty() && self.chance(30) { format!("e{depth}:") } else { String::new() };
            let inner = self.select(&RELATIONS[leads_to], depth + 1);
            items.push(format!("{spread}{alias}{target}{kind}({inner})"));
        }
        items.join(",")
    }

    fn tree(&mut self, relation: &Relation, depth: u32) -> String {
        let members: Vec<String> = (0..self.0.random_range(1..4))
            .map(|_| {
                if depth < 3 && self.chance(30) {
                    let word = *self.pick(&["and", "or", "not.and", "not.or"]);
                    format!("{word}{}", self.tree(relation, depth + 1))
                } else {
                    let (column, kind) = self.column(relation);
                    format!("{column}.{}", self.condition(kind, true))
                }
            })
            .collect();
        format!("({})", members.join(","))
    }

    fn target(&mut self) -> String {
        let relation = self.pick(&RELATIONS[..]);
        let mut parameters = Vec::new();
        if self.chance(85) {
            parameters.push(format!("select={}", self.select(relation, 0)));
        }
        for _ in 0..self.0.random_range(0..3) {
            let (column, kind) = self.column(relation);
            parameters.push(format!("{column}={}", self.condition(kind, false)));
        }
        if self.chance(35) {
            let word = *self.pick(&["and", "or", "not.and", "not.or"]);
            parameters.push(format!("{word}={}", self.tree(relation, 0)));
        }
        if self.chance(40) {
            let (column, _) = self.column(relation);
            let direction = *self.pick(&["", ".asc", ".desc", ".desc.nullslast", ".nullsfirst"]);
            parameters.push(format!("order={column}{direction}"));
        }
        if self.chance(25) {
            parameters.push(format!("limit={}&offset={}", self.0.random_range(0..5), self.0.random_range(0..5)));
        }
        let query: Vec<String> = parameters.iter().map(|parameter| encode(parameter)).collect();
        format!("/{}?{}", relation.name, query.join("&"))
    }
}

/// Percent-encodes what would end or change a parameter, keeping existing escapes.
fn encode(parameter: &str) -> String {
    let bytes = parameter.as_bytes();
    let mut encoded = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        let is_escape = *byte == b'%' && bytes[index + 1..].first_chunk::<2>().is_some_and(|two| two == b"5E");
        if is_escape || byte.is_ascii_alphanumeric() || b"=.,()*:_-!{}~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[actix_web::test]
async fn valid_requests_cause_no_server_or_sql_syntax_errors() {
    let house = House::open(&[]).await;
    let seed = number("RANDOM_SEED", 20_261_121);
    let mut maker = Maker(StdRng::seed_from_u64(seed));
    let cases = number("RANDOM_CASES", 600);
    let mut answered = 0;
    for case in 0..cases {
        let target = maker.target();
        let prefer = *maker.pick(&["count=exact", "count=planned", "handling=lenient", "count=estimated"]);
        let accept = *maker.pick(&["*/*", "*/*", "text/csv", "application/vnd.pgrst.array+json;nulls=stripped"]);
        let headers = [("Prefer".to_owned(), prefer.to_owned()), ("Accept".to_owned(), accept.to_owned())];
        let reply = send(&house.address, "GET", &target, &headers, b"").await;
        let code = serde_json::from_slice::<Value>(&reply.body)
            .ok()
            .and_then(|body| body.get("code")?.as_str().map(str::to_owned))
            .unwrap_or_default();
        let told = format!("case {case} of seed {seed}: GET {target}\n{}", reply.text());
        assert!(reply.status < 500, "{} for {told}", reply.status);
        // PGRST100: the generator only writes what the grammar allows; 42601: invalid SQL.
        assert!(!["42601", "PGRST100"].contains(&code.as_str()) || reply.text().contains("tsquery"), "{told}");
        answered += u64::from(reply.status < 300);
    }
    println!("{cases} valid requests, {answered} answered with rows, none failed on our side or in the syntax of SQL");
    assert!(answered * 2 > cases, "only {answered} of {cases} were answered: they say nothing");
}

#[actix_web::test]
async fn meaningless_bytes_are_refused_without_harm() {
    let house = House::open(&[]).await;
    let mut maker = Maker(StdRng::seed_from_u64(number("RANDOM_SEED", 7)));
    const PIECES: [&str; 26] = [
        "select=",
        "order=",
        "and=",
        "or=",
        "limit=",
        "offset=",
        "columns=",
        "on_conflict=",
        "(",
        ")",
        ",",
        ".",
        "*",
        "->",
        "->>",
        "::",
        "!inner",
        "...",
        "eq.",
        "in.(",
        "not.",
        "\"",
        "{",
        "}",
        "%C3%28",
        "%00",
    ];
    for case in 0..number("RANDOM_CASES", 600) {
        let mut query = String::new();
        for _ in 0..maker.0.random_range(1..14) {
            if maker.chance(70) {
                let piece = *maker.pick(&PIECES);
                query.push_str(piece);
            } else if maker.chance(50) {
                let word = *maker.pick(&["id", "name", "stars", "é", "&", "=", "+", "%", "%2"]);
                query.push_str(word);
            } else {
                query.push_str(&format!("%{:02X}", maker.0.random_range(0..140)));
            }
        }
        let (method, path) = *maker.pick(&[
            ("GET", "/stars"),
            ("GET", "/rpc/all_stars"),
            ("GET", "/rpc/plus"),
            ("POST", "/stock"),
            ("PATCH", "/stock"),
            ("PUT", "/stock"),
            ("DELETE", "/stock"),
            ("POST", "/rpc/plus"),
        ]);
        let body: Vec<u8> = (0..maker.0.random_range(0..20)).map(|_| maker.0.random()).collect();
        let body = if matches!(method, "GET" | "DELETE") { Vec::new() } else { body };
        let headers = [("Authorization".to_owned(), format!("Bearer {}", House::token(r#"{"role":"sky_member"}"#)))];
        let reply = send(&house.address, method, &format!("{path}?{query}"), &headers, &body).await;
        // For invalid UTF-8, the reference answers its only plain-text 500.
        let is_plain = reply.text() == "Something went wrong";
        assert!(reply.status < 500 || is_plain, "case {case}: {method} {path}?{query}: {}", reply.text());
    }
    let reply = send(&house.address, "GET", "/labels?select=id&id=eq.1", &[], b"").await;
    assert_eq!(reply.text(), "[{\"id\":1}]", "the server still answers");
    println!("{} requests that mean nothing, none failed on our side", number("RANDOM_CASES", 600));
}

/// Pieces of the grammar and other bytes, in random order.
fn soup(maker: &mut Maker) -> Vec<u8> {
    const PIECES: [&str; 44] = [
        "select=",
        "order=",
        "and=",
        "or=",
        "limit=",
        "offset=",
        "columns=",
        "on_conflict=",
        "not.",
        "id",
        "a b",
        "é☺",
        "(",
        ")",
        ",",
        ".",
        "*",
        "->",
        "->>",
        "::",
        "!inner",
        "!",
        "...",
        "eq.",
        "in.(",
        "is.null",
        "like(any).{",
        "}",
        "\"",
        "\\",
        ":",
        "count()",
        ".sum()",
        "&",
        "=",
        ";",
        "%",
        "%2",
        "%00",
        "%FF",
        "+",
        "99999999999999999999",
        "-1",
        "fts(english).",
    ];
    let mut bytes = Vec::new();
    for _ in 0..maker.0.random_range(1..30) {
        match maker.0.random_range(0..10) {
            0 => bytes.push(maker.0.random()),
            1 => bytes.extend(std::iter::repeat_n(b'(', maker.0.random_range(1..130))),
            _ => bytes.extend_from_slice(maker.pick(&PIECES).as_bytes()),
        }
    }
    bytes
}

/// Like the fuzz target `request`, without a nightly toolchain: any bytes are parsed or refused.
#[test]
fn any_bytes_are_parsed_or_refused() {
    use ferrobase::rest::request::{RawRequest, RequestRules, parse};
    const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"];
    const TYPES: [&str; 4] = ["application/json", "text/csv", "application/x-www-form-urlencoded", "text/plain"];
    let mut maker = Maker(StdRng::seed_from_u64(number("RANDOM_SEED", 11)));
    let schemas = ["sky".to_owned(), "workshop".to_owned()];
    let rules = RequestRules { schemas: &schemas, root_function: None, root_disabled: false, tx_override: true };
    let mut parsed = 0;
    let cases = number("RANDOM_CASES", 20_000).max(20_000);
    for _ in 0..cases {
        let header = soup(&mut maker);
        let header: Vec<u8> = header.into_iter().filter(|byte| *byte >= b' ').collect();
        let query = soup(&mut maker);
        let method = *maker.pick(&METHODS);
        let path = *maker.pick(&["/", "/stars", "/rpc/plus", "/%C3%A9", "/a/b"]);
        let request = RawRequest {
            method,
            path,
            query: &String::from_utf8_lossy(&query),
            headers: vec![
                ("prefer", &header),
                ("range", &header),
                ("accept", &header),
                ("content-type", maker.pick(&TYPES).as_bytes()),
            ],
            body: soup(&mut maker).into(),
        };
        match parse(&request, &rules) {
            Ok(_) => parsed += 1,
            Err(error) => assert!((300..=500).contains(&error.status()) && !error.message().is_empty(), "{request:?}"),
        }
    }
    assert!(parsed > 0 && parsed < cases, "{parsed} of {cases} were parsed");
}
