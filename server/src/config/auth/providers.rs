//! External sign-in providers, and this server as an OAuth provider: `GOTRUE_EXTERNAL_*`,
//! `GOTRUE_OAUTH_SERVER_*`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::values::duration;
use crate::config::{Reader, Secret};

/// The providers that take `GOTRUE_EXTERNAL_<NAME>_*` settings, by their name on the wire.
pub const PROVIDERS: [&str; 25] = [
    "apple",
    "azure",
    "bitbucket",
    "discord",
    "facebook",
    "figma",
    "fly",
    "github",
    "gitlab",
    "google",
    "kakao",
    "keycloak",
    "linkedin",
    "linkedin_oidc",
    "notion",
    "slack",
    "slack_oidc",
    "snapchat",
    "spotify",
    "twitch",
    "twitter",
    "vercel_marketplace",
    "workos",
    "x",
    "zoom",
];

#[derive(Clone, Debug)]
pub struct ExternalConfig {
    pub email_enabled: bool,
    pub email_authorized_addresses: Vec<String>,
    pub email_magic_link_enabled: bool,
    pub phone_enabled: bool,
    pub anonymous_users_enabled: bool,
    pub web3_solana_enabled: bool,
    pub web3_solana_max_validity: Duration,
    pub web3_ethereum_enabled: bool,
    pub web3_ethereum_max_validity: Duration,
    /// By name of [`PROVIDERS`].
    pub providers: BTreeMap<&'static str, OAuthProviderConfig>,
    pub ios_bundle_id: String,
    /// `GOTRUE_EXTERNAL_REDIRECTURL`: the target of every sign-in through a provider, whatever was requested; default
    /// empty.
    pub redirect_url: String,
    /// `FERROBASE_OIDC_DISCOVERY_URLS`: pairs `issuer=URL`, separated by commas. The issuer's discovery document is
    /// read from the URL instead, for networks that reach providers through a relay; the endpoints of Google, Apple and
    /// one Microsoft tenant (`<GOTRUE_EXTERNAL_AZURE_URL>/v2.0`) are then taken from it. The document is trusted:
    /// whoever controls the URL can sign in anybody through that issuer.
    pub discovery_urls: BTreeMap<String, String>,
    /// `GOTRUE_EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS`: further issuers of ID tokens, separated by commas, each as
    /// `issuer=client_id` once for every application whose tokens are accepted. Upstream knows only `issuer`, which accepts the
    /// tokens of all its applications, so that any of them can sign in as its users; for compatibility that is possible too
    /// and causes a warning. Default: Apple and Google, whose providers name their applications.
    pub allowed_id_token_issuers: BTreeMap<String, Vec<String>>,
    /// `GOTRUE_EXTERNAL_FLOW_STATE_EXPIRY_DURATION`, at least 300 s.
    pub flow_state_expiry: Duration,
}

impl ExternalConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let ten_minutes = Duration::from_secs(600);
        let floor = Duration::from_secs(300);
        let mut discovery_urls = BTreeMap::new();
        for pair in reader.list(&["FERROBASE_OIDC_DISCOVERY_URLS"]).unwrap_or_default() {
            match pair.split_once('=') {
                Some((issuer, url)) if url::Url::parse(url).is_ok() => {
                    discovery_urls.insert(issuer.to_owned(), url.to_owned());
                }
                _ => reader.problem(format!("FERROBASE_OIDC_DISCOVERY_URLS: '{pair}' is not of the form issuer=URL")),
            }
        }
        let issuers = reader.list(&["GOTRUE_EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS"]).filter(|l| !l.is_empty());
        Self {
            email_enabled: reader.flag(&["GOTRUE_EXTERNAL_EMAIL_ENABLED", "ENABLE_EMAIL_SIGNUP"], true),
            email_authorized_addresses: reader
                .list(&["GOTRUE_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES"])
                .unwrap_or_default(),
            email_magic_link_enabled: reader.flag(&["GOTRUE_EXTERNAL_EMAIL_MAGIC_LINK_ENABLED"], true),
            phone_enabled: reader.flag(&["GOTRUE_EXTERNAL_PHONE_ENABLED", "ENABLE_PHONE_SIGNUP"], false),
            anonymous_users_enabled: reader
                .flag(&["GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "ENABLE_ANONYMOUS_USERS"], false),
            web3_solana_enabled: reader.flag(&["GOTRUE_EXTERNAL_WEB3_SOLANA_ENABLED"], false),
            web3_solana_max_validity: duration(
                reader,
                &["GOTRUE_EXTERNAL_WEB3_SOLANA_MAXIMUM_VALIDITY_DURATION"],
                ten_minutes,
            ),
            web3_ethereum_enabled: reader.flag(&["GOTRUE_EXTERNAL_WEB3_ETHEREUM_ENABLED"], false),
            web3_ethereum_max_validity: duration(
                reader,
                &["GOTRUE_EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION"],
                ten_minutes,
            ),
            providers: PROVIDERS
                .iter()
                .map(|name| (*name, OAuthProviderConfig::read(reader, &name.to_uppercase())))
                .collect(),
            redirect_url: reader.text_or(&["GOTRUE_EXTERNAL_REDIRECTURL"], ""),
            discovery_urls,
            ios_bundle_id: reader.text_or(&["GOTRUE_EXTERNAL_IOS_BUNDLE_ID"], ""),
            allowed_id_token_issuers: applications_by_issuer(issuers.unwrap_or_else(|| {
                vec!["https://appleid.apple.com".to_owned(), "https://accounts.google.com".to_owned()]
            })),
            flow_state_expiry: duration(reader, &["GOTRUE_EXTERNAL_FLOW_STATE_EXPIRY_DURATION"], floor).max(floor),
        }
    }
}

/// From entries `issuer` and `issuer=client_id`.
fn applications_by_issuer(entries: Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries {
        let (issuer, client_id) = entry.split_once('=').unwrap_or((&entry, ""));
        let client_ids = all.entry(issuer.trim().to_owned()).or_default();
        client_ids.extend(Some(client_id.trim().to_owned()).filter(|client_id| !client_id.is_empty()));
    }
    all
}

#[derive(Clone, Debug)]
pub struct OAuthProviderConfig {
    pub enabled: bool,
    pub client_id: Vec<String>,
    pub secret: Secret,
    pub redirect_uri: String,
    pub url: String,
    pub api_url: String,
    pub email_optional: bool,
    pub skip_nonce_check: bool,
}

impl OAuthProviderConfig {
    pub(super) fn read(reader: &mut Reader<'_>, name: &str) -> Self {
        let source = reader.source();
        let text = |key: &str| source.get(&format!("GOTRUE_EXTERNAL_{name}_{key}")).unwrap_or("").to_owned();
        let mut flag = |key: &str| match text(key).to_ascii_lowercase().as_str() {
            "" | "false" | "0" | "f" => false,
            "true" | "1" | "t" => true,
            _ => {
                reader.problem(format!("GOTRUE_EXTERNAL_{name}_{key} must be true or false"));
                false
            }
        };
        Self {
            enabled: flag("ENABLED"),
            email_optional: flag("EMAIL_OPTIONAL"),
            skip_nonce_check: flag("SKIP_NONCE_CHECK"),
            client_id: text("CLIENT_ID").split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            secret: Secret::new(text("SECRET")),
            redirect_uri: text("REDIRECT_URI"),
            url: text("URL"),
            api_url: text("API_URL"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct OAuthServerConfig {
    pub enabled: bool,
    pub allow_dynamic_registration: bool,
    pub authorization_path: String,
    pub authorization_ttl: Duration,
    pub default_scope: String,
}

impl OAuthServerConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            enabled: reader.flag(&["GOTRUE_OAUTH_SERVER_ENABLED"], false),
            allow_dynamic_registration: reader.flag(&["GOTRUE_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION"], false),
            authorization_path: reader.text_or(&["GOTRUE_OAUTH_SERVER_AUTHORIZATION_PATH"], ""),
            authorization_ttl: duration(reader, &["GOTRUE_OAUTH_SERVER_AUTHORIZATION_TTL"], Duration::from_secs(600)),
            default_scope: reader.text_or(&["GOTRUE_OAUTH_SERVER_DEFAULT_SCOPE"], "email"),
        }
    }
}
