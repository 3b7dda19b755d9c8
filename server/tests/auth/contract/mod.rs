//! The contract of the authentication API over HTTP: a table of cases, each file against a server and database of its own.
//!
//! The files are read when the test runs; `CASES=signup` or `CASES=signup:12` runs one file or the case at a line.
//! `cases/common.routines` holds steps that many cases begin with, `cases/shapes.json` objects that many answers share.
//!
//! ```text
//! % GOTRUE_DISABLE_SIGNUP=true        settings of the server, before the first case; {{outside}} is the world's URL,
//!                                     {{secure}} the one over https, for which {{authority}} vouches; the value -
//!                                     takes one of ours away
//! & member                            steps under a name: `do member 2` runs them with `§` replaced by `2`
//! = a name that states behaviour
//! do member                           `do 30 member` does it thirty times
//! POST /token?grant_type=password     method and target below /auth/v1, byte for byte; or a whole link
//! @access                             whose bearer token: a value's name, `service`; `none` without, `keyless` without
//!                                     an API key too; default the anon key
//! X-JWT-AUD: people                   headers of the request
//! < {"email": "{{email}}"}            lines of the body
//! -> 200 {"id": "<uuid id>"}          status and body; `.. ` continues a long one
//! Location: {"url": …, "fragment": …} headers of the answer: JSON for a URL, `-` for none, `…x` or `x…` for a part
//! mail {{email}} -> {"code": "<code c>"}   the next mail, or `none`; `link` is then its link
//! outside /hook -> 200 {}             what the outside world answers from now on
//! asked /hook -> {"body": {…}}        what it was asked last, or `none`
//! sql select … -> [{"n": 0}]          rows; `exec …` runs a statement
//! jwt {{access}} -> {"claims": {…}}   a token's header and claims
//! set a = b                           a value
//! token forged alg=none = {…}         a token signed as said, HS256 with the server's secret by default
//! ```
//!
//! Bodies are compared as JSON, every member; `~{…}` asks only for those named, `text …` is compared as it is (`…` at
//! its end or beginning leaves out the rest), `*` takes anything, none is an empty body. `<kind name>` takes a value of
//! a kind and names it; where the name has a value already, it has to be that one. `{"...": "user", …}` is the shape
//! `user` with changes, `! code message` an error in the shape that the request asks for, `"<absent>"` a member that is not there. `{{name}}` and `{{function arguments}}` are replaced
//! everywhere. A case begins with `email`, `email2`, `email3`, `phone`, `phone2`, `password`, `password2` and `verifier`
//! of its own. In every case, an error's code must be the same in body and headers, and headers in
//! [`WATCHED`] must be absent unless named.

mod coverage;
mod expect;
mod keys;
mod parse;
mod values;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect::{Expected, Shapes};
use futures_util::stream::{self, StreamExt as _};
use parse::{Ask, Case, Does, Step, Suite};
use serde_json::{Value, json};
use values::Values;
use world::World;

use crate::support::wire::{self, Reply};
use crate::support::{TestApp, outside};

const WATCHED: [&str; 15] = [
    "location",
    "allow",
    "link",
    "x-total-count",
    "cache-control",
    "retry-after",
    "www-authenticate",
    "content-disposition",
    "pragma",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
    "access-control-expose-headers",
];

/// Default settings of every server. A file's settings override them, and `-` removes one.
const SETTINGS: [(&str, &str); 18] = [
    // Upstream's cost took two fifths of the processor time of all cases; `passwords.case` has it.
    ("FERROBASE_PASSWORD_COST", "4"),
    ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
    ("GOTRUE_SITE_URL", "https://app.example"),
    ("GOTRUE_URI_ALLOW_LIST", "https://other.example/**,https://*.preview.example/in,myapp://**"),
    ("API_EXTERNAL_URL", "https://api.example/auth/v1"),
    ("GOTRUE_MAILER_SUBJECTS_CONFIRMATION", "confirm {{ .Token }}"),
    ("GOTRUE_MAILER_SUBJECTS_INVITE", "invited {{ .Token }}"),
    ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "recover {{ .Token }}"),
    ("GOTRUE_MAILER_SUBJECTS_MAGIC_LINK", "sign in {{ .Token }}"),
    ("GOTRUE_MAILER_SUBJECTS_EMAIL_CHANGE", "change {{ .Token }}"),
    ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
    ("GOTRUE_SMS_MAX_FREQUENCY", "1ns"),
    ("GOTRUE_MFA_PHONE_MAX_FREQUENCY", "1ns"),
    ("GOTRUE_PASSWORD_MIN_LENGTH", "6"),
    ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "sid"),
    ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "secret"),
    ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "+15550000000"),
    ("FERROBASE_SMS_TWILIO_URL", "{{outside}}"),
];

/// How many files run in parallel.
const FILES_AT_ONCE: usize = 3;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/auth/cases")
}

fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn suites() -> Vec<(String, Suite)> {
    let entries = std::fs::read_dir(folder()).expect("the folder of cases").filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".case").map(str::to_owned));
    let names: BTreeSet<String> = names.collect();
    names.into_iter().map(|name| (name.clone(), parse::parse(&name, &read(&format!("{name}.case"))))).collect()
}

#[actix_web::test]
async fn every_case_passes() {
    let only = std::env::var("CASES").unwrap_or_default();
    let (file, line) = only.split_once(':').unwrap_or((&only, ""));
    let line: usize = line.parse().unwrap_or(0);
    let shapes: Shapes = serde_json::from_str(&read("shapes.json")).expect("shapes are JSON");
    let common = parse::parse("common", &read("common.routines")).routines;
    let chosen = suites().into_iter().filter(|(name, _)| file.is_empty() || name == file);
    let runs = chosen.map(|(name, mut suite)| {
        suite.routines.extend(common.clone());
        suite.cases.retain(|case| line == 0 || case.line == line);
        let shapes = &shapes;
        async move {
            let count = suite.cases.len();
            (name.clone(), count, run(&name, &suite, shapes).await)
        }
    });
    let results: Vec<_> = stream::iter(runs).buffer_unordered(FILES_AT_ONCE).collect().await;
    let total: usize = results.iter().map(|(_, count, _)| count).sum();
    let failures: Vec<&String> = results.iter().flat_map(|(_, _, failures)| failures).collect();
    let listed = failures.iter().map(|failure| failure.as_str()).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {total} cases fail\n{listed}", failures.len());
    assert!(total > 0, "no case was chosen");
    println!("{total} cases in {} files", results.len());
}

async fn run(name: &str, suite: &Suite, shapes: &Shapes) -> Vec<String> {
    let world = World::start();
    let outside = |value: &str| {
        let value = value.replace("{{outside}}", &world.base).replace("{{secure}}", &world.secure);
        value.replace("{{authority}}", outside::AUTHORITY)
    };
    let mut settings: BTreeMap<String, String> =
        SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), outside(value))).collect();
    settings.extend(suite.settings.iter().map(|(name, value)| (name.clone(), outside(value))));
    settings.retain(|_, value| value != "-");
    let pairs: Vec<(&str, &str)> = settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let app = TestApp::with_settings(&pairs).await;
    app.owner.batch_execute(&read("fixtures.sql")).await.expect("fixtures.sql loads");
    let house = House { app, world, shapes, routines: &suite.routines };
    let mut failures = Vec::new();
    for case in &suite.cases {
        if let Some(fault) = house.play(name, case).await {
            failures.push(format!("{name}:{}: {}\n    {fault}", case.line, case.name));
        }
    }
    failures
}

struct House<'a> {
    app: TestApp,
    world: World,
    shapes: &'a Shapes,
    routines: &'a BTreeMap<String, Vec<Step>>,
}

/// A running case.
struct Play {
    values: Values,
    seen: BTreeSet<String>,
}

impl House<'_> {
    /// The first difference from the case's expectations.
    async fn play(&self, file: &str, case: &Case) -> Option<String> {
        self.world.reset();
        let mut play = Play { values: self.beginning(file, case), seen: BTreeSet::new() };
        for step in &case.steps {
            if let Some(fault) = self.step(&mut play, step).await {
                return Some(fault);
            }
        }
        None
    }

    fn beginning(&self, file: &str, case: &Case) -> Values {
        let mut values = Values::default();
        let (line, domain) = (case.line, file.replace('_', "-"));
        for (suffix, index) in [("", 1), ("2", 2), ("3", 3)] {
            values.set(&format!("email{suffix}"), format!("c{line}-{index}@{domain}.example"));
            values.set(&format!("phone{suffix}"), format!("1555{line:05}{index}"));
        }
        for (name, value) in [
            ("password", "Correct-Horse-7"),
            ("password2", "Battery-Staple-8"),
            ("verifier", "a-verifier.that~is_long-enough-for-the-rules-0123456789"),
            ("nobody", "11111111-2222-4333-8444-555555555555"),
            ("anon", &self.app.anon_key),
            ("service", &self.app.service_key),
            ("outside", &self.world.base),
            ("secure", &self.world.secure),
            ("base", &self.app.base),
        ] {
            values.set(name, value);
        }
        let challenge = values.expand("{{s256 verifier}}");
        values.set("challenge", challenge);
        values
    }

    async fn step(&self, play: &mut Play, step: &Step) -> Option<String> {
        if let Does::Do { times, routine, suffix } = &step.does {
            let steps =
                self.routines.get(routine).unwrap_or_else(|| panic!("line {}: no routine {routine}", step.line));
            for inner in (0..*times).flat_map(|_| steps) {
                let inner = inner.with_suffix(suffix);
                let fault = Box::pin(self.step(play, &inner)).await;
                if let Some(fault) = fault {
                    return Some(format!("line {}: {routine}: {fault}", step.line));
                }
            }
            return None;
        }
        let fault = self.act(play, &step.does).await;
        fault.map(|fault| format!("line {}: {fault}", step.line))
    }

    async fn act(&self, play: &mut Play, does: &Does) -> Option<String> {
        match does {
            Does::Ask(ask) => self.ask(play, ask).await,
            Does::Mail { to, wanted } => {
                let to = play.values.expand(to);
                let found = self.mail(play, &to, wanted != "none").await;
                self.partly(play, wanted, found)
            }
            Does::Outside { path, status, body } => {
                let status = status.parse().expect("a status");
                self.world.answer(&play.values.expand(path), status, &play.values.expand(body));
                None
            }
            Does::Asked { path, wanted } => {
                let found = self.world.take(&play.values.expand(path));
                self.partly(play, wanted, found)
            }
            Does::Sql { query, wanted } => {
                let query = play.values.expand(query);
                let rows = format!("select coalesce(json_agg(found), '[]') from ({query}) found");
                match self.app.owner.query_one(&rows, &[]).await {
                    Ok(found) => self.compare(play, wanted, Some(&found.get::<_, Value>(0)), false),
                    Err(error) => Some(format!("{query}: {error:?}")),
                }
            }
            Does::Exec(statement) => {
                let statement = play.values.expand(statement);
                let done = self.app.owner.batch_execute(&statement).await;
                done.err().map(|error| format!("{statement}: {error:?}"))
            }
            Does::Jwt { token, wanted } => {
                let token = play.values.expand(token);
                let part = |index: usize| {
                    let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap_or("")).unwrap_or_default();
                    serde_json::from_slice::<Value>(&bytes).unwrap_or(Value::Null)
                };
                let found = json!({ "header": part(0), "claims": part(1) });
                let (wanted, partly) = wanted.strip_prefix('~').map_or((wanted.as_str(), false), |part| (part, true));
                self.compare(play, wanted, Some(&found), partly)
            }
            Does::Set { name, value } => {
                let value = play.values.expand(value).replace("\\n", "\n");
                play.values.set(name, value);
                None
            }
            Does::Token { name, options, claims } => {
                let claims = play.values.expand(claims);
                let token = keys::token(ferrobase::config::DEVELOPMENT_JWT_SECRET, options, &claims);
                play.values.set(name, token);
                None
            }
            Does::Do { .. } => None,
        }
    }

    fn compare(&self, play: &mut Play, wanted: &str, found: Option<&Value>, partly: bool) -> Option<String> {
        let text = play.values.expand(wanted);
        let wanted: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut expected = Expected { values: &mut play.values, shapes: self.shapes };
        let fault = expected.fault(&wanted, found, partly, "body")?;
        Some(format!("{fault}\n      in {}", found.map(Value::to_string).unwrap_or_default()))
    }

    fn partly(&self, play: &mut Play, wanted: &str, found: Option<Value>) -> Option<String> {
        if wanted == "none" {
            return found.map(|found| format!("{found} instead of none"));
        }
        self.compare(play, wanted, found.as_ref(), true)
    }

    async fn ask(&self, play: &mut Play, ask: &Ask) -> Option<String> {
        let values = &play.values;
        let target = values.expand(&ask.target);
        let (target, is_link) = match target.strip_prefix("http") {
            Some(rest) => (rest.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default(), true),
            None => (format!("/auth/v1{target}"), false),
        };
        let mut headers: Vec<(String, String)> =
            ask.headers.iter().map(|(name, value)| (name.clone(), values.expand(value))).collect();
        let named =
            |headers: &[(String, String)], name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let key = if ask.who == "service" { "service" } else { "anon" };
        let is_keyless = is_link || ask.who == "keyless";
        if !is_keyless && !named(&headers, "apikey") {
            headers.push(("apikey".to_owned(), values.get(key).to_owned()));
        }
        if !is_keyless && ask.who != "none" && !named(&headers, "authorization") {
            let token = match ask.who.as_str() {
                "" => values.get("anon").to_owned(),
                name => values.known.get(name).cloned().unwrap_or_else(|| values.expand(name)),
            };
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if !ask.body.is_empty() && !named(&headers, "content-type") {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        headers.retain(|(_, value)| value != "-");
        let body = values.expand(&ask.body.join("\n"));
        let address = self.app.base.trim_start_matches("http://");
        let reply = wire::send(address, &ask.method, &target, &headers, body.as_bytes()).await;
        let mut faults = Vec::new();
        if reply.status != ask.status {
            faults.push(format!("status {} instead of {}: {}", reply.status, ask.status, reply.text()));
        } else {
            faults.extend(self.body_fault(play, ask, &reply));
            faults
                .extend(ask.answer_headers.iter().filter_map(|(n, wanted)| self.header_fault(play, n, wanted, &reply)));
            for name in WATCHED.iter().filter(|name| !named(&ask.answer_headers, name)) {
                faults.extend(reply.header(name).map(|value| format!("{name}: {value} was not expected")));
            }
            faults.extend(error_fault(ask, &reply));
        }
        (!faults.is_empty()).then(|| format!("{} {}: {}", ask.method, ask.target, faults.join("\n    ")))
    }

    fn body_fault(&self, play: &mut Play, ask: &Ask, reply: &Reply) -> Option<String> {
        let wrong = |wanted: &str| Some(format!("body {:?} instead of {wanted:?}", reply.text()));
        if ask.answer == "*" {
            return None;
        }
        if let Some(text) = ask.answer.strip_prefix("text ") {
            let wanted = play.values.expand(text).replace("\\n", "\n");
            let found = json!(reply.text());
            let mut expected = Expected { values: &mut play.values, shapes: self.shapes };
            return expected.fault(&json!(wanted), Some(&found), false, "body");
        }
        if ask.answer.is_empty() {
            return if reply.body.is_empty() { None } else { wrong("") };
        }
        let Ok(found) = serde_json::from_slice::<Value>(&reply.body) else { return wrong(&ask.answer) };
        if let Some(error) = ask.answer.strip_prefix("! ") {
            let (code, message) = error.split_once(' ').unwrap_or((error, ""));
            let wanted = match asks_for_new_shape(ask) {
                true => json!({ "code": code, "message": message }),
                false => json!({ "code": ask.status, "error_code": code, "msg": message }),
            };
            return self.compare(play, &wanted.to_string(), Some(&found), reply.status >= 500);
        }
        let (wanted, partly) = ask.answer.strip_prefix('~').map_or((ask.answer.as_str(), false), |part| (part, true));
        self.compare(play, wanted, Some(&found), partly)
    }

    fn header_fault(&self, play: &mut Play, name: &str, wanted: &str, reply: &Reply) -> Option<String> {
        let found = reply.header(&name.to_ascii_lowercase());
        if wanted == "-" {
            return found.map(|found| format!("{name}: {found} was not expected"));
        }
        let Some(found) = found else { return Some(format!("{name} is missing")) };
        if wanted.starts_with("{\"") {
            let Ok(url) = url::Url::parse(&found) else { return Some(format!("{name}: {found} is not a URL")) };
            let fault = self.compare(play, wanted, Some(&url_parts(&url)), false);
            return fault.map(|fault| format!("{name}: {fault}"));
        }
        let wanted = play.values.expand(wanted);
        let mut expected = Expected { values: &mut play.values, shapes: self.shapes };
        expected.fault(&json!(wanted), Some(&json!(found)), false, name)
    }

    /// The newest mail to an address that the case has not seen yet; waits if one is expected.
    async fn mail(&self, play: &mut Play, to: &str, wanted: bool) -> Option<Value> {
        let sql = "select subject, body_text, body_html from (
                     select created_at as at, subject, body_text, body_html from _supavisor.outbox where recipient = $1
                     union all
                     select received_at, subject, body_text, body_html from _supavisor.inbox where recipient = $1
                   ) mails order by at desc";
        for _ in 0..20 {
            let rows = self.app.owner.query(sql, &[&to]).await.expect("mails");
            let fresh = rows.iter().find(|row| !play.seen.contains(&row.get::<_, String>(1)));
            if let Some(row) = fresh {
                let (subject, text, html): (String, String, String) = (row.get(0), row.get(1), row.get(2));
                play.seen.extend(rows.iter().map(|row| row.get::<_, String>(1)));
                let mut mail = json!({ "subject": subject, "text": text, "html": html });
                let words = subject.split(|c: char| !c.is_alphanumeric()).chain(text.split_whitespace());
                let is_code = |word: &&str| (6..=10).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
                if let Some(code) = words.into_iter().map(|word| word.trim_matches('.')).find(is_code) {
                    mail["code"] = json!(code);
                }
                if let Some(link) = text.split_whitespace().find(|word| word.contains("token=")) {
                    play.values.set("link", link);
                    mail["link"] = url::Url::parse(link).map(|url| url_parts(&url)).unwrap_or(Value::Null);
                }
                return Some(mail);
            }
            if !wanted {
                return None;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        None
    }
}

fn url_parts(url: &url::Url) -> Value {
    let mut base = url.clone();
    base.set_query(None);
    base.set_fragment(None);
    let mut parts = json!({ "url": base.as_str() });
    if let Some(query) = url.query() {
        parts["query"] = world::pairs(query);
    }
    if let Some(fragment) = url.fragment() {
        parts["fragment"] = world::pairs(fragment);
    }
    parts
}

/// Whether the request names an API version from the new error format on.
fn asks_for_new_shape(ask: &Ask) -> bool {
    let versions = ask.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-supabase-api-version"));
    let date = |text: &str| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| text.len() == 10);
    let first = chrono::NaiveDate::from_ymd_opt(2024, 1, 1);
    versions.map(|(_, value)| date(value)).any(|date| date.is_some() && date >= first)
}

/// An error's code must be in `x-sb-error-code` as well as in the body, and the new format states its version.
fn error_fault(ask: &Ask, reply: &Reply) -> Option<String> {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    let version = reply.header("x-supabase-api-version");
    let is_new = asks_for_new_shape(ask);
    let is_error = reply.status >= 400 && body.get("error").is_none() && body.is_object();
    let code = if is_new { body.get("code") } else { body.get("error_code") }.and_then(Value::as_str);
    if reply.status < 400 && version.is_some() {
        return Some("an answer without error names an API version".to_owned());
    }
    if is_error && is_new != version.is_some() {
        return Some(format!("x-supabase-api-version {version:?} beside the body {body}"));
    }
    match (reply.header("x-sb-error-code"), code) {
        (Some(header), Some(code)) if header != code => Some(format!("x-sb-error-code {header} beside {code}")),
        (None, Some(code)) if is_error && !["unknown", "unexpected_failure", "weak_password"].contains(&code) => {
            Some(format!("no x-sb-error-code beside {code}"))
        }
        (Some(header), None) if reply.status < 400 => Some(format!("x-sb-error-code {header} without an error")),
        _ => None,
    }
}

impl Step {
    /// The step with `§` replaced.
    fn with_suffix(&self, suffix: &str) -> Self {
        let put = |text: &String| text.replace('§', suffix);
        let both = |pairs: &[(String, String)]| pairs.iter().map(|(n, v)| (n.clone(), put(v))).collect();
        let does = match &self.does {
            Does::Ask(ask) => Does::Ask(Box::new(Ask {
                method: ask.method.clone(),
                target: put(&ask.target),
                who: put(&ask.who),
                headers: both(&ask.headers),
                body: ask.body.iter().map(put).collect(),
                status: ask.status,
                answer: put(&ask.answer),
                answer_headers: both(&ask.answer_headers),
            })),
            Does::Mail { to, wanted } => Does::Mail { to: put(to), wanted: put(wanted) },
            Does::Outside { path, status, body } => {
                Does::Outside { path: put(path), status: status.clone(), body: put(body) }
            }
            Does::Asked { path, wanted } => Does::Asked { path: put(path), wanted: put(wanted) },
            Does::Sql { query, wanted } => Does::Sql { query: put(query), wanted: put(wanted) },
            Does::Exec(statement) => Does::Exec(put(statement)),
            Does::Jwt { token, wanted } => Does::Jwt { token: put(token), wanted: put(wanted) },
            Does::Set { name, value } => Does::Set { name: put(name), value: put(value) },
            Does::Token { name, options, claims } => {
                Does::Token { name: put(name), options: both(options), claims: put(claims) }
            }
            Does::Do { times, routine, suffix } => {
                Does::Do { times: *times, routine: routine.clone(), suffix: put(suffix) }
            }
        };
        Self { line: self.line, does }
    }
}
