//! Two accounts on every route: an attacker requests each with the victim's ids, and neither learns nor changes
//! anything of the victim's. Routes are read from the source, so a new one without a case fails here.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::report;
use super::world::{ALL_ON, FACTOR, IN_FILE, PASSKEY, VICTIM, VICTIM_EMAIL, World};
use crate::support::{Actor, TestApp, send};

/// The required outcome of an attack on a route.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    /// Status 400 to 499.
    Refused,
    /// The answer contains only the attacker's own or public data.
    Harmless,
}
use End::{Harmless, Refused};

/// A request as text. `{…}` is replaced by values that only the running test knows.
pub struct Case {
    /// A name from [`endpoints`].
    pub endpoint: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    /// JSON if it begins with a brace.
    pub body: &'static str,
    pub end: End,
    /// Tables with rows of the victim that anybody may change, for instance by requesting a mail to an address.
    pub touches: &'static [&'static str],
}

const fn case(endpoint: &'static str, method: &'static str, path: &'static str, body: &'static str, end: End) -> Case {
    Case { endpoint, method, path, body, end, touches: &[] }
}

const fn asking(endpoint: &'static str, path: &'static str, body: &'static str) -> Case {
    let touches = &["auth.users", "auth.one_time_tokens", "auth.flow_state"];
    Case { endpoint, method: "POST", path, body, end: Harmless, touches }
}

/// Every route and the attacks on it. Storage paths name another user's file, or lead out of the store.
pub const CASES: &[Case] = &[
    // The root.
    case("app GET /health", "GET", "/health", "", Harmless),
    case("app GET /app-config.json", "GET", "/app-config.json", "", Harmless),
    case("app POST RESET", "POST", "/ferrobase/v1/reset", "{}", Refused),
    case("sms POST /sms/v1/twilio", "POST", "/sms/v1/twilio", "From=%2B12075550142&Body=STOP", Refused),
    // Functions and REST; `tables` covers their content.
    case("functions GET /_internal/health", "GET", "/functions/v1/_internal/health", "", Harmless),
    case("functions GET /_internal/metric", "GET", "/functions/v1/_internal/metric", "", Refused),
    case("functions ANY /{name}", "POST", "/functions/v1/get-categories", "{\"nonprofit_id\":\"np-001\"}", Harmless),
    case("functions ANY /{name}", "POST", "/functions/v1/pg_sleep", "{}", Refused),
    case("functions ANY /{name}/{rest:.*}", "GET", "/functions/v1/..%2f..%2fauth%2fv1%2fadmin%2fusers", "", Refused),
    // Realtime.
    case("realtime GET websocket", "GET", "/realtime/v1/websocket?vsn=2.0.0", "", Refused),
    case("realtime GET ping", "GET", "/realtime/v1/api/ping", "", Harmless),
    case(
        "realtime POST broadcast",
        "POST",
        "/realtime/v1/api/broadcast",
        "{\"messages\":[{\"topic\":\"{victim}\",\"event\":\"e\",\"payload\":{},\"private\":true}]}",
        Harmless,
    ),
    case("realtime OPTIONS broadcast", "OPTIONS", "/realtime/v1/api/broadcast", "", Harmless),
    case(
        "realtime POST broadcast/{topic}/events/{event}",
        "POST",
        "/realtime/v1/api/broadcast/{victim}/events/e?private=true",
        "{}",
        Refused,
    ),
    case(
        "realtime OPTIONS broadcast/{topic}/events/{event}",
        "OPTIONS",
        "/realtime/v1/api/broadcast/x/events/e",
        "",
        Harmless,
    ),
    // Storage.
    case("storage POST /bucket", "POST", "/storage/v1/bucket", "{\"name\":\"mine\",\"public\":true}", Refused),
    case("storage GET /bucket", "GET", "/storage/v1/bucket", "", Harmless),
    case("storage POST /bucket/", "POST", "/storage/v1/bucket/", "{\"name\":\"mine\",\"public\":true}", Refused),
    case("storage GET /bucket/", "GET", "/storage/v1/bucket/", "", Harmless),
    case("storage POST /bucket/{bucket}/empty", "POST", "/storage/v1/bucket/request-documents/empty", "{}", Refused),
    case(
        "storage READ /bucket/{bucket}/lifecycle",
        "GET",
        "/storage/v1/bucket/request-documents/lifecycle",
        "",
        Refused,
    ),
    case(
        "storage PUT /bucket/{bucket}/lifecycle",
        "PUT",
        "/storage/v1/bucket/request-documents/lifecycle",
        "{\"rules\":[]}",
        Refused,
    ),
    case(
        "storage DELETE /bucket/{bucket}/lifecycle",
        "DELETE",
        "/storage/v1/bucket/request-documents/lifecycle",
        "",
        Refused,
    ),
    case("storage ANY /iceberg", "POST", "/storage/v1/iceberg", "{}", Refused),
    case("storage ANY /iceberg/{tail:.*}", "GET", "/storage/v1/iceberg/bucket", "", Refused),
    case("storage ANY /vector", "POST", "/storage/v1/vector", "{}", Refused),
    case("storage ANY /vector/{tail:.*}", "POST", "/storage/v1/vector/CreateVectorBucket", "{}", Refused),
    case("storage READ /bucket/{bucket}", "GET", "/storage/v1/bucket/request-documents", "", Refused),
    case("storage PUT /bucket/{bucket}", "PUT", "/storage/v1/bucket/request-documents", "{\"public\":true}", Refused),
    case("storage DELETE /bucket/{bucket}", "DELETE", "/storage/v1/bucket/request-documents", "", Refused),
    case(
        "storage POST /object/copy",
        "POST",
        "/storage/v1/object/copy",
        "{\"bucketId\":\"request-documents\",\"sourceKey\":\"{file}\",\"destinationBucket\":\"profile-photos\",\"destinationKey\":\"{me}/x.png\"}",
        Refused,
    ),
    case(
        "storage POST /object/move",
        "POST",
        "/storage/v1/object/move",
        "{\"bucketId\":\"request-documents\",\"sourceKey\":\"{file}\",\"destinationBucket\":\"profile-photos\",\"destinationKey\":\"{me}/x.png\"}",
        Refused,
    ),
    case(
        "storage POST /object/upload/sign/{bucket}/{key:.*}",
        "POST",
        "/storage/v1/object/upload/sign/request-documents/{file}",
        "{}",
        Refused,
    ),
    case(
        "storage PUT /object/upload/sign/{bucket}/{key:.*}",
        "PUT",
        "/storage/v1/object/upload/sign/request-documents/{file}?token={token}",
        "written over",
        Refused,
    ),
    case(
        "storage POST /object/sign/{bucket}/{key:.*}",
        "POST",
        "/storage/v1/object/sign/request-documents/{file}",
        "{\"expiresIn\":600}",
        Refused,
    ),
    case(
        "storage READ /object/sign/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/sign/request-documents/{file}?token={token}",
        "",
        Refused,
    ),
    case(
        "storage POST /object/sign/{bucket}",
        "POST",
        "/storage/v1/object/sign/request-documents",
        "{\"expiresIn\":600,\"paths\":[\"{file}\"]}",
        Harmless,
    ),
    case(
        "storage POST /object/list/{bucket}",
        "POST",
        "/storage/v1/object/list/request-documents",
        "{\"prefix\":\"demo-req-001\",\"search\":\"\"}",
        Harmless,
    ),
    case(
        "storage POST /object/list-v2/{bucket}",
        "POST",
        "/storage/v1/object/list-v2/request-documents",
        "{\"prefix\":\"demo-req-001/\"}",
        Harmless,
    ),
    case(
        "storage READ /object/info/public/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/info/public/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /object/info/authenticated/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/info/authenticated/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /object/info/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/info/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /object/public/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/public/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /object/public/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/public/logos/..%2frequest-documents%2f{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /object/authenticated/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/object/authenticated/request-documents/{file}",
        "",
        Refused,
    ),
    case("storage READ /object/{bucket}/{key:.*}", "GET", "/storage/v1/object/request-documents/{file}", "", Refused),
    case(
        "storage POST /object/{bucket}/{key:.*}",
        "POST",
        "/storage/v1/object/request-documents/demo-req-001/other.pdf",
        "%PDF-1.4",
        Refused,
    ),
    case(
        "storage PUT /object/{bucket}/{key:.*}",
        "PUT",
        "/storage/v1/object/request-documents/{file}",
        "%PDF-1.4",
        Refused,
    ),
    case(
        "storage DELETE /object/{bucket}/{key:.*}",
        "DELETE",
        "/storage/v1/object/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage DELETE /object/{bucket}",
        "DELETE",
        "/storage/v1/object/request-documents",
        "{\"prefixes\":[\"{file}\"]}",
        Harmless,
    ),
    case(
        "storage READ /render/image/public/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/render/image/public/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /render/image/authenticated/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/render/image/authenticated/request-documents/{file}",
        "",
        Refused,
    ),
    case(
        "storage READ /render/image/sign/{bucket}/{key:.*}",
        "GET",
        "/storage/v1/render/image/sign/request-documents/{file}?token={token}",
        "",
        Refused,
    ),
    case("storage ANY /upload/resumable/sign", "POST", "/storage/v1/upload/resumable/sign", "tus", Refused),
    case("storage ANY /upload/resumable/sign/", "POST", "/storage/v1/upload/resumable/sign/", "tus", Refused),
    case(
        "storage ANY /upload/resumable/sign/{id}",
        "PATCH",
        "/storage/v1/upload/resumable/sign/{upload}",
        "tus",
        Refused,
    ),
    case("storage ANY /upload/resumable", "POST", "/storage/v1/upload/resumable", "tus", Refused),
    case("storage ANY /upload/resumable/", "POST", "/storage/v1/upload/resumable/", "tus", Refused),
    // Anybody with an upload's unguessable URL can read its progress.
    case("storage ANY /upload/resumable/{id}", "HEAD", "/storage/v1/upload/resumable/{upload}", "tus", Harmless),
    case("storage ANY /upload/resumable/{id}", "PATCH", "/storage/v1/upload/resumable/{upload}", "tus", Refused),
    case("storage ANY /upload/resumable/{id}", "DELETE", "/storage/v1/upload/resumable/{upload}", "tus", Refused),
    case("storage ANY /s3", "GET", "/storage/v1/s3", "", Refused),
    case("storage ANY /s3/{tail:.*}", "GET", "/storage/v1/s3/request-documents/{file}", "", Refused),
    case("storage ANY /s3/{tail:.*}", "PUT", "/storage/v1/s3/request-documents/{file}", "written over", Refused),
    case("storage ANY /s3/{tail:.*}", "DELETE", "/storage/v1/s3/request-documents/{file}", "", Refused),
    case("storage DELETE /cdn", "DELETE", "/storage/v1/cdn", "", Refused),
    case("storage DELETE /cdn/{tail:.*}", "DELETE", "/storage/v1/cdn/request-documents/{file}", "", Refused),
    case("storage GET /status", "GET", "/storage/v1/status", "", Harmless),
    case("storage GET /version", "GET", "/storage/v1/version", "", Harmless),
    case("storage GET /health", "GET", "/storage/v1/health", "", Harmless),
    // Authentication: public endpoints.
    case("auth discovery::health", "GET", "/auth/v1/health", "", Harmless),
    case("auth discovery::settings", "GET", "/auth/v1/settings", "", Harmless),
    case("auth discovery::jwks", "GET", "/auth/v1/.well-known/jwks.json", "", Harmless),
    case("auth discovery::openid_configuration", "GET", "/auth/v1/.well-known/openid-configuration", "", Harmless),
    case(
        "auth oauth::authorize",
        "GET",
        "/auth/v1/authorize?provider=github&redirect_to=https://evil.example",
        "",
        Refused,
    ),
    case("auth oauth::callback", "GET", "/auth/v1/callback?code=x&state=forged", "", Harmless),
    asking("auth signup::signup", "/auth/v1/signup", "{\"email\":\"{email}\",\"password\":\"correct-Horse-7\"}"),
    case(
        "auth token::token",
        "POST",
        "/auth/v1/token?grant_type=password",
        "{\"email\":\"{email}\",\"password\":\"aidbridge-demo1B\"}",
        Refused,
    ),
    case(
        "auth token::token",
        "POST",
        "/auth/v1/token?grant_type=refresh_token",
        "{\"refresh_token\":\"aaaaaaaaaaaa\"}",
        Refused,
    ),
    asking("auth recover::otp", "/auth/v1/otp", "{\"email\":\"{email}\",\"create_user\":false}"),
    asking("auth recover::magic_link", "/auth/v1/magiclink", "{\"email\":\"{email}\"}"),
    asking("auth recover::recover", "/auth/v1/recover?redirect_to=https://evil.example", "{\"email\":\"{email}\"}"),
    asking("auth recover::resend", "/auth/v1/resend", "{\"type\":\"signup\",\"email\":\"{email}\"}"),
    case("auth verify::get", "GET", "/auth/v1/verify?type=recovery&token=guessed", "", Harmless),
    case(
        "auth verify::post",
        "POST",
        "/auth/v1/verify",
        "{\"type\":\"recovery\",\"email\":\"{email}\",\"token\":\"123456\"}",
        Refused,
    ),
    case("auth recover::reauthenticate", "GET", "/auth/v1/reauthenticate", "", Harmless),
    case("auth user::get", "GET", "/auth/v1/user", "", Harmless),
    case(
        "auth user::put",
        "PUT",
        "/auth/v1/user",
        "{\"id\":\"{victim}\",\"email\":\"{email}\",\"data\":{\"sub\":\"{victim}\"}}",
        Refused,
    ),
    case(
        "auth mfa::enroll",
        "POST",
        "/auth/v1/factors",
        "{\"factor_type\":\"none\",\"user_id\":\"{victim}\"}",
        Refused,
    ),
    case("auth mfa::unenroll", "DELETE", "/auth/v1/factors/{factor}", "", Refused),
    case("auth mfa::challenge", "POST", "/auth/v1/factors/{factor}/challenge", "{}", Refused),
    case(
        "auth mfa::verify",
        "POST",
        "/auth/v1/factors/{factor}/verify",
        "{\"challenge_id\":\"{victim}\",\"code\":\"123456\"}",
        Refused,
    ),
    case("auth recovery_codes::status", "GET", "/auth/v1/factors/recovery-codes", "", Refused),
    case(
        "auth recovery_codes::generate",
        "POST",
        "/auth/v1/factors/recovery-codes",
        "{\"user_id\":\"{victim}\"}",
        Refused,
    ),
    case(
        "auth recovery_codes::redeem",
        "POST",
        "/auth/v1/factors/recovery-codes/verify",
        "{\"user_id\":\"{victim}\",\"code\":\"aaaaaaaaaaaaaaaa\"}",
        Refused,
    ),
    case("auth recovery_codes::regenerate", "POST", "/auth/v1/factors/recovery-codes/regenerate", "{}", Refused),
    case("auth recovery_codes::delete", "DELETE", "/auth/v1/factors/recovery-codes", "", Refused),
    case("auth identities::unlink", "DELETE", "/auth/v1/user/identities/{identity}", "", Refused),
    case("auth oauth::link", "GET", "/auth/v1/user/identities/authorize?provider=github", "", Refused),
    case("auth passkeys::list", "GET", "/auth/v1/passkeys", "", Harmless),
    case("auth passkeys::rename", "PATCH", "/auth/v1/passkeys/{passkey}", "{\"friendly_name\":\"mine\"}", Refused),
    case("auth passkeys::delete", "DELETE", "/auth/v1/passkeys/{passkey}", "", Refused),
    case("auth passkeys::authentication_options", "POST", "/auth/v1/passkeys/authentication/options", "{}", Harmless),
    case(
        "auth passkeys::verify_authentication",
        "POST",
        "/auth/v1/passkeys/authentication/verify",
        "{\"challenge_id\":\"{victim}\",\"credential\":{\"id\":\"AQ\"}}",
        Refused,
    ),
    case("auth passkeys::registration_options", "POST", "/auth/v1/passkeys/registration/options", "{}", Harmless),
    case(
        "auth passkeys::verify_registration",
        "POST",
        "/auth/v1/passkeys/registration/verify",
        "{\"challenge_id\":\"{victim}\",\"credential\":{}}",
        Refused,
    ),
    case(
        "auth oauth_server::register",
        "POST",
        "/auth/v1/oauth/clients/register",
        "{\"client_name\":\"x\",\"redirect_uris\":[\"javascript:alert(1)\"]}",
        Refused,
    ),
    case(
        "auth oauth_server::token",
        "POST",
        "/auth/v1/oauth/token",
        "grant_type=authorization_code&code=x&client_id={client}&redirect_uri=https://club.example/cb",
        Refused,
    ),
    case(
        "auth oauth_server::authorize",
        "GET",
        "/auth/v1/oauth/authorize?client_id={client}&redirect_uri=https://evil.example/cb&response_type=code",
        "",
        Refused,
    ),
    case("auth oauth_server::userinfo", "GET", "/auth/v1/oauth/userinfo", "", Harmless),
    case("auth oauth_server::view", "GET", "/auth/v1/oauth/authorizations/{authorization}", "", Refused),
    case(
        "auth oauth_server::consent",
        "POST",
        "/auth/v1/oauth/authorizations/{authorization}/consent",
        "{\"action\":\"approve\"}",
        Refused,
    ),
    case("auth oauth_server::list_grants", "GET", "/auth/v1/user/oauth/grants", "", Harmless),
    case("auth oauth_server::revoke_grant", "DELETE", "/auth/v1/user/oauth/grants?client_id={client}", "", Harmless),
    // Administration without an administrator's key.
    case("auth admin::invite", "POST", "/auth/v1/invite", "{\"email\":\"x@elsewhere.example\"}", Refused),
    case("auth admin::list_users", "GET", "/auth/v1/admin/users", "", Refused),
    case("auth admin::create_user", "POST", "/auth/v1/admin/users", "{\"email\":\"x@elsewhere.example\"}", Refused),
    case(
        "auth admin::generate_link",
        "POST",
        "/auth/v1/admin/generate_link",
        "{\"type\":\"magiclink\",\"email\":\"{email}\"}",
        Refused,
    ),
    case("auth admin::audit_log", "GET", "/auth/v1/admin/audit", "", Refused),
    case("auth admin::show_user", "GET", "/auth/v1/admin/users/{victim}", "", Refused),
    case(
        "auth admin::update_user",
        "PUT",
        "/auth/v1/admin/users/{victim}",
        "{\"password\":\"correct-Horse-7\"}",
        Refused,
    ),
    case("auth admin::delete_user", "DELETE", "/auth/v1/admin/users/{victim}", "", Refused),
    case("auth admin::list_factors", "GET", "/auth/v1/admin/users/{victim}/factors", "", Refused),
    case("auth admin::update_factor", "PUT", "/auth/v1/admin/users/{victim}/factors/{factor}", "{}", Refused),
    case("auth admin::delete_factor", "DELETE", "/auth/v1/admin/users/{victim}/factors/{factor}", "", Refused),
    case("auth passkeys::list_as_admin", "GET", "/auth/v1/admin/users/{victim}/passkeys", "", Refused),
    case("auth passkeys::delete_as_admin", "DELETE", "/auth/v1/admin/users/{victim}/passkeys/{passkey}", "", Refused),
    case("auth oauth_server::list", "GET", "/auth/v1/admin/oauth/clients", "", Refused),
    case("auth oauth_server::create", "POST", "/auth/v1/admin/oauth/clients", "{\"client_name\":\"x\"}", Refused),
    case("auth oauth_server::show", "GET", "/auth/v1/admin/oauth/clients/{client}", "", Refused),
    case(
        "auth oauth_server::update",
        "PUT",
        "/auth/v1/admin/oauth/clients/{client}",
        "{\"client_name\":\"x\"}",
        Refused,
    ),
    case("auth oauth_server::delete", "DELETE", "/auth/v1/admin/oauth/clients/{client}", "", Refused),
    case(
        "auth oauth_server::regenerate_secret",
        "POST",
        "/auth/v1/admin/oauth/clients/{client}/regenerate_secret",
        "{}",
        Refused,
    ),
    case("auth custom_providers::list", "GET", "/auth/v1/admin/custom-providers", "", Refused),
    case(
        "auth custom_providers::create",
        "POST",
        "/auth/v1/admin/custom-providers",
        "{\"identifier\":\"custom:x\"}",
        Refused,
    ),
    case("auth custom_providers::get", "GET", "/auth/v1/admin/custom-providers/custom:x", "", Refused),
    case("auth custom_providers::update", "PUT", "/auth/v1/admin/custom-providers/custom:x", "{}", Refused),
    case("auth custom_providers::delete", "DELETE", "/auth/v1/admin/custom-providers/custom:x", "", Refused),
    case("auth sso::list", "GET", "/auth/v1/admin/sso/providers", "", Refused),
    case("auth sso::create", "POST", "/auth/v1/admin/sso/providers", "{\"type\":\"saml\"}", Refused),
    case("auth sso::show", "GET", "/auth/v1/admin/sso/providers/{victim}", "", Refused),
    case("auth sso::update", "PUT", "/auth/v1/admin/sso/providers/{victim}", "{}", Refused),
    case("auth sso::delete", "DELETE", "/auth/v1/admin/sso/providers/{victim}", "", Refused),
    // Last, because it ends the attacker's own sessions.
    Case {
        endpoint: "auth logout::logout",
        method: "POST",
        path: "/auth/v1/logout?scope=global",
        body: "",
        end: Harmless,
        // The authentication methods of the attacker's own session.
        touches: &["auth.mfa_amr_claims"],
    },
];

/// Every route in the source: `room METHOD path`, or `auth handler` for the auth API.
pub fn endpoints() -> BTreeSet<String> {
    let source = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Unit tests contain no routes.
        text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
    };
    let mut found = BTreeSet::new();
    let route = Regex::new(r#"(?s)\.route\(\s*(&?[^;]*?),\s*web::(?:(get|post|put|patch|delete|head|route|to)\(|method\([^)]*?(OPTIONS)\))([^;\n]*)"#)
        .expect("a pattern");
    let resource = Regex::new(r#"(?s)web::resource\("([^"]+)"\)(.*?)(?:\.service|;|\n\s*\))"#).expect("a pattern");
    let method = Regex::new(r"web::(get|post|put|patch|delete|route)\(\)").expect("a pattern");
    let path_of = |text: &str| {
        let text = text.trim_start_matches('&').replace("{{", "{").replace("}}", "}");
        let text = text.replace("format!(\"{}/", "").replace("\", paths[1])", "").replace("paths[0]", "websocket");
        text.trim_matches('"').replace("gateway::RESET", "RESET")
    };
    let verb = |word: &str| match word {
        "route" | "to" => "ANY".to_owned(),
        word => word.to_ascii_uppercase(),
    };
    for (room, file) in [
        ("app", "app.rs"),
        ("app", "web/mod.rs"),
        ("sms", "sms/webhook.rs"),
        ("storage", "storage/routes.rs"),
        ("functions", "functions/mod.rs"),
        ("realtime", "realtime/http.rs"),
    ] {
        let text = source(file);
        for part in route.captures_iter(&text) {
            let word = part.get(2).or(part.get(3)).map_or("", |word| word.as_str());
            let is_read = part.get(4).is_some_and(|rest| rest.as_str().contains("reads()"));
            let path = path_of(&part[1]);
            // A resource's routes have no path of their own.
            if !path.contains("web::") && !path.contains('(') {
                found.insert(format!("{room} {} {path}", if is_read { "READ".to_owned() } else { verb(word) }));
            }
        }
        for part in resource.captures_iter(&text) {
            for word in method.captures_iter(&part[2]) {
                found.insert(format!("{room} {} {}", verb(&word[1]), &part[1]));
            }
        }
    }
    let text = source("auth/routes.rs");
    let text = text.split("async fn route(").nth(1).expect("the routes");
    let handler =
        Regex::new(r"\b([a-z_]+::[a-z_]+)\((?:request|&caller|&provider|&client|&user|\))").expect("a pattern");
    for part in handler.captures_iter(text) {
        let guards = ["::require", "::refuse", "::load", "request::ok", "bearer::"];
        if !guards.iter().any(|guard| part[1].contains(guard)) {
            found.insert(format!("auth {}", &part[1]));
        }
    }
    found
}

/// Handlers that serve two routes, and one without a route of its own.
const BESIDE: [&str; 2] = ["auth admin::show_user", "auth passkeys::list_as_admin"];

#[test]
fn every_route_has_a_case() {
    let found = endpoints();
    let cases: BTreeSet<String> = CASES.iter().map(|case| case.endpoint.to_owned()).collect();
    let known: BTreeSet<String> = cases.iter().filter(|name| !BESIDE.contains(&name.as_str())).cloned().collect();
    let missing: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(missing.is_empty(), "routes without a case: {missing:#?}");
    assert!(gone.is_empty(), "cases of routes that are gone: {gone:#?}");
    assert!(found.len() > 110, "{} routes", found.len());
}

/// Replacements for `{…}` in cases.
pub struct Names(Vec<(&'static str, String)>);

impl Names {
    /// Creates what the cases refer to: an OAuth client, an authorization and an upload of the victim.
    pub async fn make(app: &TestApp, me: &str) -> Self {
        let signed_in = json!({ "email": VICTIM_EMAIL, "password": "aidbridge-demo1A" });
        let session = app.anon().post("/auth/v1/token?grant_type=password", signed_in).await;
        let mut victim = app.anon();
        victim.token =
            Some(session.body["access_token"].as_str().unwrap_or_else(|| panic!("{}", session.body)).to_owned());
        let wish = json!({ "client_name": "Club", "redirect_uris": ["https://club.example/cb"] });
        let client = app.service().post("/auth/v1/admin/oauth/clients", wish).await;
        let client = client.body["client_id"].as_str().unwrap_or_else(|| panic!("{}", client.body)).to_owned();
        let asked = format!(
            "/auth/v1/oauth/authorize?client_id={client}&redirect_uri=https%3A%2F%2Fclub.example%2Fcb&response_type=code\
             &scope=email&state=s&code_challenge={}&code_challenge_method=S256",
            "a".repeat(43)
        );
        let asked = victim.get(&asked).await;
        let authorization = asked.header("location").split("authorization_id=").nth(1).unwrap_or_default();
        let authorization = authorization.split('&').next().unwrap_or_default().to_owned();
        assert!(!authorization.is_empty(), "{asked:?}");
        // It becomes the victim's when they view it.
        let seen = victim.get(&format!("/auth/v1/oauth/authorizations/{authorization}")).await;
        assert_eq!(seen.status, 200, "{}", seen.body);
        let begun = tus(app.service().request(Method::POST, "/storage/v1/upload/resumable"), "demo-req-001/half.pdf");
        let begun = send(begun).await;
        let upload = begun.header("location").rsplit('/').next().unwrap_or_default().to_owned();
        assert_eq!(begun.status, 201, "{begun:?}");
        // A link that the attacker signed for their own file.
        let token = Self::own_link(app, &session.body).await;
        let identity = app
            .owner
            .query_one("select id::text from auth.identities where user_id = $1::text::uuid", &[&VICTIM])
            .await
            .expect("an identity")
            .get(0);
        Self(vec![
            ("{me}", me.to_owned()),
            ("{victim}", VICTIM.to_owned()),
            ("{email}", VICTIM_EMAIL.to_owned()),
            ("{file}", "demo-req-001/letter.pdf".to_owned()),
            ("{factor}", FACTOR.to_owned()),
            ("{passkey}", PASSKEY.to_owned()),
            ("{identity}", identity),
            ("{client}", client),
            ("{authorization}", authorization),
            ("{upload}", upload),
            ("{token}", token),
        ])
    }

    /// The token of a link to another file in the same bucket.
    async fn own_link(app: &TestApp, _session: &Value) -> String {
        let upload = app.service().request(Method::POST, "/storage/v1/object/request-documents/elsewhere/mine.pdf");
        send(upload.header("content-type", "application/pdf").body("%PDF-1.4 mine")).await;
        let wish = json!({ "expiresIn": 600 });
        let signed = app.service().post("/storage/v1/object/sign/request-documents/elsewhere/mine.pdf", wish).await;
        let url = signed.body["signedURL"].as_str().unwrap_or_else(|| panic!("{}", signed.body));
        url.split_once("token=").expect("a token").1.to_owned()
    }

    pub fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// The headers of a resumable upload.
fn tus(request: RequestBuilder, key: &str) -> RequestBuilder {
    let metadata = format!(
        "bucketName {},objectName {},contentType {}",
        STANDARD.encode("request-documents"),
        STANDARD.encode(key),
        STANDARD.encode("application/pdf")
    );
    request.header("tus-resumable", "1.0.0").header("upload-length", "100").header("upload-metadata", metadata)
}

/// Builds a case's request as `actor`.
pub fn request(actor: &Actor<'_>, case: &Case, names: &Names) -> RequestBuilder {
    let method: Method = case.method.parse().expect("a method");
    let request = actor.request(method, &names.fill(case.path));
    let body = names.fill(case.body);
    match case.body.chars().next() {
        None => request,
        Some('{') => request.header("content-type", "application/json").body(body),
        Some('t') if case.body == "tus" => {
            let request =
                tus(request, "demo-req-001/letter.pdf").header("upload-offset", "0").header("x-upsert", "true");
            let request =
                if case.path.contains("sign") { request.header("x-signature", names.fill("{token}")) } else { request };
            match case.method {
                "PATCH" => request.header("content-type", "application/offset+octet-stream").body("x"),
                _ => request,
            }
        }
        Some('%') => request.header("content-type", "application/pdf").body(body),
        Some(_) if case.body.contains('=') => {
            request.header("content-type", "application/x-www-form-urlencoded").body(body)
        }
        Some(_) => request.body(body),
    }
}

#[actix_web::test]
async fn no_route_reveals_or_changes_anything_of_others() {
    let app = TestApp::with_settings(&ALL_ON).await;
    let mut world = World::new(&app).await;
    let names = Names::make(&app, &world.stranger.id).await;
    // What was created for the placeholders belongs to the victim too.
    world
        .nothing_changed(
            "making the names",
            &[
                "auth.users",
                "auth.sessions",
                "auth.refresh_tokens",
                "auth.mfa_amr_claims",
                "auth.oauth_authorizations",
                "auth.oauth_clients",
                "storage.objects",
                "auth.audit_log_entries",
            ],
        )
        .await;
    for (who, actor) in world.attackers() {
        for case in CASES {
            let reply = send(request(&actor, case, &names)).await;
            let what = format!("{who}: {} {} ({})", case.method, case.path, case.endpoint);
            if case.end == Refused {
                assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, reply.body);
            }
            // Answers may repeat the address in the request.
            if case.touches.is_empty() {
                world.tells_nothing(&what, &reply);
            } else {
                assert!(!reply.body.to_string().contains(VICTIM), "{what}: {}", reply.body);
                world.tried += 1;
            }
            let touches = [case.touches, &["auth.audit_log_entries"]].concat();
            world.nothing_changed(&what, &touches).await;
        }
    }
    // The victim's file is unchanged, and so is the unfinished upload.
    let file = app.service().get("/storage/v1/object/request-documents/demo-req-001/letter.pdf").await;
    assert_eq!(file.body, IN_FILE);
    report("routes, by another user and with the public key", world.tried, "nothing revealed, nothing changed");
}
