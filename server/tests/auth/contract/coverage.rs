//! Every endpoint of the contract has cases for success and for refusals.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::parse::{Ask, Case, Does};
use super::suites;

/// Endpoints of the contract (§4, §5) by section, and the minimum number of cases for each. A `*` stands for one
/// segment; what follows `?` must be in the query.
const ENDPOINTS: [(&str, usize); 77] = [
    ("GET /health", 2),
    ("GET /settings", 2),
    ("GET /.well-known/jwks.json", 1),
    ("GET /.well-known/openid-configuration", 1),
    ("GET /.well-known/oauth-authorization-server", 2),
    ("POST /signup", 30),
    ("POST /token?grant_type=password", 20),
    ("POST /token?grant_type=refresh_token", 20),
    ("POST /token?grant_type=pkce", 8),
    ("POST /token?grant_type=id_token", 8),
    ("POST /token?grant_type=web3", 8),
    ("POST /otp", 12),
    ("POST /magiclink", 4),
    ("POST /recover", 6),
    ("POST /resend", 10),
    ("GET /reauthenticate", 4),
    ("GET /verify", 15),
    ("POST /verify", 20),
    ("GET /user", 15),
    ("PUT /user", 20),
    ("POST /logout", 6),
    ("POST /factors", 8),
    ("POST /factors/*/challenge", 6),
    ("POST /factors/*/verify", 8),
    ("DELETE /factors/*", 3),
    ("GET /factors/recovery-codes", 1),
    ("POST /factors/recovery-codes", 1),
    ("DELETE /factors/recovery-codes", 1),
    ("POST /factors/recovery-codes/verify", 1),
    ("POST /factors/recovery-codes/regenerate", 1),
    ("GET /user/identities/authorize", 4),
    ("DELETE /user/identities/*", 4),
    ("GET /authorize", 8),
    ("GET /callback", 10),
    ("DELETE /callback", 1),
    ("POST /sso", 1),
    ("GET /sso/saml/metadata", 1),
    ("POST /passkeys/registration/options", 4),
    ("POST /passkeys/registration/verify", 3),
    ("POST /passkeys/authentication/options", 3),
    ("POST /passkeys/authentication/verify", 4),
    ("GET /passkeys", 3),
    ("PATCH /passkeys/*", 2),
    ("DELETE /passkeys/*", 2),
    ("GET /oauth/authorize", 7),
    ("GET /oauth/authorizations/*", 5),
    ("POST /oauth/authorizations/*/consent", 3),
    ("POST /oauth/token", 8),
    ("GET /oauth/userinfo", 1),
    ("POST /oauth/clients/register", 1),
    ("GET /user/oauth/grants", 1),
    ("DELETE /user/oauth/grants", 1),
    ("GET /scim/v2/*", 1),
    ("GET /admin/users", 15),
    ("POST /admin/users", 20),
    ("GET /admin/users/*", 5),
    ("PUT /admin/users/*", 8),
    ("DELETE /admin/users/*", 4),
    ("GET /admin/users/*/factors", 1),
    ("PUT /admin/users/*/factors/*", 1),
    ("DELETE /admin/users/*/factors/*", 2),
    ("GET /admin/users/*/passkeys", 1),
    ("DELETE /admin/users/*/passkeys/*", 1),
    ("POST /invite", 6),
    ("POST /admin/generate_link", 12),
    ("GET /admin/audit", 4),
    ("GET /admin/oauth/clients", 1),
    ("POST /admin/oauth/clients", 5),
    ("PUT /admin/oauth/clients/*", 1),
    ("POST /admin/oauth/clients/*/regenerate_secret", 1),
    ("POST /admin/custom-providers", 4),
    ("GET /admin/custom-providers/*", 2),
    ("GET /admin/sso/providers", 2),
    ("POST /admin/sso/providers", 5),
    ("GET /admin/sso/providers/*", 3),
    ("PUT /admin/sso/providers/*", 4),
    ("DELETE /admin/sso/providers/*", 2),
];

#[test]
fn every_endpoint_of_the_contract_has_cases() {
    let suites = suites();
    let cases: Vec<&Case> = suites.iter().flat_map(|(_, suite)| &suite.cases).collect();
    let mut missing = Vec::new();
    for (endpoint, wanted) in ENDPOINTS {
        let count = cases.iter().filter(|case| asks(case, endpoint)).count();
        if count < wanted {
            missing.push(format!("{endpoint}: {count} cases instead of {wanted}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(cases.len() >= 500, "{} cases", cases.len());
}

#[test]
fn every_case_has_an_expectation() {
    for (file, suite) in suites() {
        for case in &suite.cases {
            let asked = case.steps.iter().filter_map(ask).collect::<Vec<_>>();
            assert!(asked.iter().all(|ask| ask.status != 0), "{file}:{}: a request without an answer", case.line);
            assert!(!case.steps.is_empty(), "{file}:{}: nothing happens", case.line);
        }
        let mut names: Vec<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "{file}: two cases of one name: {twice:?}");
    }
}

/// Settings that cannot be tested here: aliases of tested settings, and settings of unsupported features.
const UNTRIED: [&str; 6] = [
    "GOTRUE_JWT_VALIDMETHODS",
    "GOTRUE_RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER",
    "GOTRUE_RATE_LIMIT_SSO",
    "GOTRUE_SAML_RATE_LIMIT_ASSERTION",
    "GOTRUE_HOOK_SEND_SMS_SECRETS",
    "GOTRUE_PASSWORD_HIBP_USER_AGENT",
];

fn texts_below(folder: PathBuf) -> String {
    let entries = std::fs::read_dir(&folder).expect("a folder").filter_map(Result::ok);
    let texts = entries.map(|entry| match entry.path() {
        path if path.is_dir() => texts_below(path),
        path => std::fs::read_to_string(&path).unwrap_or_default(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_setting_is_tested() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = texts_below(root.join("src/config/auth"));
    let tried = texts_below(root.join("tests/auth"));
    let is_setting = |text: &&str| {
        text.starts_with("GOTRUE_")
            && !text.ends_with('_')
            && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let settings: BTreeSet<&str> = read.split('"').filter(is_setting).collect();
    assert!(settings.len() > 100, "{}", settings.len());
    let untried: Vec<&&str> =
        settings.iter().filter(|name| !UNTRIED.contains(name) && !tried.contains(**name)).collect();
    assert!(untried.is_empty(), "{untried:?}");
}

fn ask(step: &super::parse::Step) -> Option<&Ask> {
    match &step.does {
        Does::Ask(ask) => Some(ask),
        _ => None,
    }
}

/// Whether a step of the case calls the endpoint. Followed links are `GET /verify`.
fn asks(case: &Case, endpoint: &str) -> bool {
    let (method, target) = endpoint.split_once(' ').unwrap_or_default();
    let (wanted, query) = target.split_once('?').unwrap_or((target, ""));
    case.steps.iter().filter_map(ask).any(|ask| {
        let (path, asked) = ask.target.split_once('?').unwrap_or((&ask.target, ""));
        let path = if path.starts_with("{{") { "/verify" } else { path };
        let (found, wanted) = (path.split('/'), wanted.split('/'));
        ask.method == method
            && asked.contains(query)
            && found.clone().count() == wanted.clone().count()
            && found.zip(wanted).all(|(found, wanted)| wanted == "*" || wanted == found)
    })
}
