//! The providers by name: endpoints, scopes and protocols. Reference: supabase/auth
//! `internal/api/provider/`, `internal/api/external.go` (`Provider`).

use super::oidc::{self, Issuer};
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult};
use crate::auth::flows::custom_providers::{self, CustomProvider};
use crate::auth::models::store::Db;
use crate::config::OAuthProviderConfig;

/// A provider that is ready for use.
pub struct Provider {
    /// As the settings call it.
    pub name: String,
    pub client_id: String,
    pub secret: String,
    pub redirect_uri: String,
    pub auth_url: String,
    pub token_url: String,
    /// Where its API lies.
    pub api: String,
    pub scopes: Vec<String>,
    /// Pairs that always go to the authorization endpoint.
    pub authorization_params: Vec<(String, String)>,
    pub requires_pkce: bool,
    pub email_optional: bool,
    /// The OpenID Connect issuer whose ID tokens it answers with.
    pub issuer: Option<Issuer>,
    pub custom: Option<CustomProvider>,
}

/// Why a provider cannot be used; shown to the caller.
pub type Unusable = String;

/// `base` without its trailing slash, else `https://` and the default host.
fn host(base: &str, default: &str) -> String {
    if base.is_empty() { format!("https://{default}") } else { base.strip_suffix('/').unwrap_or(base).to_owned() }
}

/// The endpoints and default scopes of a provider whose settings are `config`.
struct Endpoints {
    auth: String,
    token: String,
    api: String,
    scopes: &'static [&'static str],
    /// Whether scopes of the request are added.
    more_scopes: bool,
}

fn endpoints(name: &str, url: &str) -> Option<Endpoints> {
    let make = |auth: String, token: String, api: String, scopes: &'static [&'static str]| {
        Some(Endpoints { auth, token, api, scopes, more_scopes: true })
    };
    match name {
        "azure" => {
            let base = host(url, "login.microsoftonline.com/common");
            make(format!("{base}/oauth2/v2.0/authorize"), format!("{base}/oauth2/v2.0/token"), base, &["openid"])
        }
        "bitbucket" => {
            let base = host(url, "bitbucket.org");
            Some(Endpoints {
                auth: format!("{base}/site/oauth2/authorize"),
                token: format!("{base}/site/oauth2/access_token"),
                api: format!("{}/2.0", host(url, "api.bitbucket.org")),
                scopes: &["account", "email"],
                more_scopes: false,
            })
        }
        "discord" => {
            let api = format!("{}/api", host(url, "discord.com"));
            make(format!("{api}/oauth2/authorize"), format!("{api}/oauth2/token"), api, &["email", "identify"])
        }
        "facebook" => make(
            format!("{}/dialog/oauth", host(url, "www.facebook.com")),
            format!("{}/oauth/access_token", host(url, "graph.facebook.com")),
            format!("{}/me?fields=email,first_name,last_name,name,picture", host(url, "graph.facebook.com")),
            &["email"],
        ),
        "figma" => {
            let api = host(url, "api.figma.com");
            make(
                format!("{}/oauth", host(url, "www.figma.com")),
                format!("{api}/v1/oauth/token"),
                api,
                &["current_user:read"],
            )
        }
        "fly" => {
            let base = host(url, "api.fly.io");
            make(format!("{base}/oauth/authorize"), format!("{base}/oauth/token"), base, &["read"])
        }
        "github" => {
            let base = host(url, "github.com");
            let api = host(url, "api.github.com");
            let api = if api.ends_with("api.github.com") { api } else { format!("{api}/api/v3") };
            make(
                format!("{base}/login/oauth/authorize"),
                format!("{base}/login/oauth/access_token"),
                api,
                &["user:email"],
            )
        }
        "gitlab" => {
            let base = host(url, "gitlab.com");
            make(format!("{base}/oauth/authorize"), format!("{base}/oauth/token"), base, &["read_user"])
        }
        "kakao" => {
            let base = host(url, "kauth.kakao.com");
            make(
                format!("{base}/oauth/authorize"),
                format!("{base}/oauth/token"),
                host(url, "kapi.kakao.com"),
                &["account_email", "profile_image", "profile_nickname"],
            )
        }
        "keycloak" => {
            let base = url.strip_suffix('/').unwrap_or(url).to_owned();
            make(
                format!("{base}/protocol/openid-connect/auth"),
                format!("{base}/protocol/openid-connect/token"),
                base,
                &["profile", "email"],
            )
        }
        "linkedin" | "linkedin_oidc" | "vercel_marketplace" => {
            let vercel = name == "vercel_marketplace";
            let base = host(url, if vercel { "api.vercel.com" } else { "api.linkedin.com" });
            let scopes: &[&str] = match name {
                "linkedin" => &["r_emailaddress", "r_liteprofile"],
                "linkedin_oidc" => &["openid", "email", "profile"],
                _ => &[],
            };
            make(format!("{base}/oauth/v2/authorization"), format!("{base}/oauth/v2/accessToken"), base, scopes)
        }
        "notion" => {
            let base = host(url, "api.notion.com");
            Some(Endpoints {
                auth: format!("{base}/v1/oauth/authorize"),
                token: format!("{base}/v1/oauth/token"),
                api: base,
                scopes: &[],
                more_scopes: false,
            })
        }
        "slack" | "slack_oidc" => {
            let base = host(url, "slack.com");
            let scopes = &["profile", "email", "openid"];
            if name == "slack" {
                make(
                    format!("{base}/oauth/authorize"),
                    format!("{base}/api/oauth.access"),
                    format!("{base}/api"),
                    scopes,
                )
            } else {
                make(
                    format!("{base}/openid/connect/authorize"),
                    format!("{base}/api/openid.connect.token"),
                    format!("{base}/api"),
                    scopes,
                )
            }
        }
        "snapchat" => {
            let base = host(url, "accounts.snapchat.com");
            make(
                format!("{base}/accounts/oauth2/auth"),
                format!("{base}/accounts/oauth2/token"),
                format!("{}/v1/me", host(url, "kit.snapchat.com")),
                &[
                    "https://auth.snapchat.com/oauth2/api/user.external_id",
                    "https://auth.snapchat.com/oauth2/api/user.display_name",
                    "https://auth.snapchat.com/oauth2/api/user.bitmoji.avatar",
                ],
            )
        }
        "spotify" => {
            let base = host(url, "accounts.spotify.com");
            make(
                format!("{base}/authorize"),
                format!("{base}/api/token"),
                host(url, "api.spotify.com/v1"),
                &["user-read-email"],
            )
        }
        "twitch" => {
            let base = host(url, "id.twitch.tv");
            make(
                format!("{base}/oauth2/authorize"),
                format!("{base}/oauth2/token"),
                host(url, "api.twitch.tv"),
                &["user:read:email"],
            )
        }
        "workos" => {
            let base = host(url, "api.workos.com");
            Some(Endpoints {
                auth: format!("{base}/sso/authorize"),
                token: format!("{base}/sso/token"),
                api: base,
                scopes: &[],
                more_scopes: false,
            })
        }
        "x" => {
            let api = host(url, "api.x.com");
            make(
                format!("{}/i/oauth2/authorize", host(url, "x.com")),
                format!("{api}/2/oauth2/token"),
                api,
                &["users.email", "tweet.read", "users.read", "offline.access"],
            )
        }
        "zoom" => {
            let base = host(url, "zoom.us");
            Some(Endpoints {
                auth: format!("{base}/oauth/authorize"),
                token: format!("{base}/oauth/token"),
                api: format!("{}/v2", host(url, "api.zoom.us")),
                scopes: &[],
                more_scopes: false,
            })
        }
        _ => None,
    }
}

/// Refuses settings that lack what every flow needs.
fn check(config: Option<&OAuthProviderConfig>) -> Result<&OAuthProviderConfig, Unusable> {
    let config = config.filter(|config| config.enabled).ok_or("provider is not enabled")?;
    if config.client_id.iter().all(String::is_empty) {
        return Err("missing OAuth client ID".to_owned());
    }
    if config.secret.reveal().is_empty() {
        return Err("missing OAuth secret".to_owned());
    }
    if config.redirect_uri.is_empty() {
        return Err("missing redirect URI".to_owned());
    }
    Ok(config)
}

/// Scopes of a request: commas or spaces separate them.
fn asked(scopes: &str) -> impl Iterator<Item = String> {
    scopes.split([',', ' ']).filter(|scope| !scope.is_empty()).map(str::to_owned)
}

/// The provider called `name`, with the request's `scopes`. Errors: 400 `validation_failed`, through `refuse`.
pub async fn resolve(
    request: &Request,
    db: &Db,
    name: &str,
    scopes: &str,
    refuse: fn(Unusable) -> AuthError,
) -> AuthResult<Provider> {
    let name = name.to_lowercase();
    if name.starts_with("custom:") {
        return resolve_custom(request, db, &name, scopes, refuse).await;
    }
    let known = crate::config::PROVIDERS.contains(&name.as_str());
    if !known {
        return Err(refuse(format!("Provider {name} could not be found")));
    }
    let config = check(request.auth.config.external.providers.get(name.as_str())).map_err(refuse)?;
    let mut provider = Provider {
        client_id: config.client_id.first().cloned().unwrap_or_default(),
        secret: config.secret.reveal().to_owned(),
        redirect_uri: config.redirect_uri.clone(),
        auth_url: String::new(),
        token_url: String::new(),
        api: String::new(),
        scopes: Vec::new(),
        authorization_params: Vec::new(),
        requires_pkce: name == "x",
        email_optional: config.email_optional,
        issuer: None,
        custom: None,
        name,
    };
    let issuer = match provider.name.as_str() {
        "google" => Some(oidc::GOOGLE),
        "apple" => Some(oidc::APPLE),
        "linkedin_oidc" => Some(oidc::LINKEDIN),
        "vercel_marketplace" => Some(oidc::VERCEL_MARKETPLACE),
        _ => None,
    };
    if let Some(issuer) = issuer {
        let found = request.auth.discovery.issuer(request.away().providers(), issuer, None).await;
        provider.issuer = Some(found.map_err(|fault| refuse(fault.to_string()))?);
    }
    if let Some(found) = endpoints(&provider.name, &config.url) {
        if provider.name == "keycloak" && found.api.is_empty() {
            return Err(refuse("unable to find URL for the Keycloak provider".to_owned()));
        }
        (provider.auth_url, provider.token_url, provider.api) = (found.auth, found.token, found.api);
        if provider.name == "azure" {
            through_relay(request, &mut provider).await.map_err(refuse)?;
        }
        provider.scopes = found.scopes.iter().map(|scope| (*scope).to_owned()).collect();
        if found.more_scopes {
            provider.scopes.extend(asked(scopes));
        }
        return Ok(provider);
    }
    match (provider.name.as_str(), &provider.issuer) {
        ("google", Some(issuer)) => {
            (provider.auth_url, provider.token_url) = (issuer.auth_url.clone(), issuer.token_url.clone());
            provider.scopes = vec!["email".to_owned(), "profile".to_owned()];
            provider.scopes.extend(asked(scopes));
        }
        ("apple", Some(issuer)) => {
            (provider.auth_url, provider.token_url) = (issuer.auth_url.clone(), issuer.token_url.clone());
            provider.scopes = vec!["email".to_owned(), "name".to_owned()];
            provider.authorization_params = vec![("response_mode".to_owned(), "form_post".to_owned())];
        }
        // Twitter's OAuth 1.0a is not supported; its successor is the provider x.
        _ => return Err(refuse("provider is not enabled".to_owned())),
    }
    Ok(provider)
}

/// If a Microsoft tenant's documents are read from a relay, takes the endpoints from them.
async fn through_relay(request: &Request, provider: &mut Provider) -> Result<(), Unusable> {
    let (discovery, issuer) = (&request.auth.discovery, format!("{}/v2.0", provider.api));
    if discovery.has_relay(&issuer) {
        let found =
            discovery.issuer(request.away().providers(), &issuer, None).await.map_err(|fault| fault.to_string())?;
        (provider.auth_url, provider.token_url) = (found.auth_url, found.token_url);
    }
    Ok(())
}

async fn resolve_custom(
    request: &Request,
    db: &Db,
    name: &str,
    scopes: &str,
    refuse: fn(Unusable) -> AuthError,
) -> AuthResult<Provider> {
    let config = &request.auth.config;
    if !config.custom_oauth_enabled {
        return Err(refuse("custom OAuth providers are disabled".to_owned()));
    }
    let custom =
        custom_providers::find(db, name).await?.ok_or_else(|| refuse(format!("custom provider {name} not found")))?;
    if !custom.enabled {
        return Err(refuse(format!("custom provider {name} is disabled")));
    }
    let asked: Vec<String> = scopes.split_whitespace().map(str::to_owned).collect();
    let mut scopes = if asked.is_empty() { custom.scopes.clone() } else { asked };
    let secret = custom_providers::secret(request, db, &custom).await?;
    let (auth_url, token_url, api, issuer) = if custom.is_oidc() {
        if !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        let url = custom.issuer.clone().ok_or_else(|| refuse(format!("OIDC provider {name} missing issuer")))?;
        let away = request.away();
        let http = away.custom_providers();
        let issuer =
            request.auth.discovery.issuer(http, &url, custom.discovery_url.as_deref()).await.map_err(|fault| {
                refuse(format!("error creating OIDC provider: failed to create OIDC provider: {fault}"))
            })?;
        (issuer.auth_url.clone(), issuer.token_url.clone(), issuer.userinfo_url.clone(), Some(issuer))
    } else {
        let (Some(auth), Some(token), Some(userinfo)) =
            (&custom.authorization_url, &custom.token_url, &custom.userinfo_url)
        else {
            return Err(refuse(format!("OAuth2 provider {name} missing required endpoints")));
        };
        (auth.clone(), token.clone(), userinfo.clone(), None)
    };
    let external_url = config.custom_oauth_external_url.as_ref().unwrap_or(&config.external_url);
    Ok(Provider {
        name: name.to_owned(),
        client_id: custom.client_id.clone(),
        secret,
        redirect_uri: format!("{}/callback", external_url.trim_end_matches('/')),
        auth_url,
        token_url,
        api,
        scopes,
        authorization_params: custom
            .authorization_params
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        requires_pkce: custom.pkce_enabled,
        email_optional: custom.email_optional,
        issuer,
        custom: Some(custom),
    })
}

impl Provider {
    /// The authorization URL with the `extra` pairs; the last value of a name wins, and all are sorted.
    pub fn authorization_url(&self, state: &str, extra: &[(String, String)]) -> String {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: &str| {
            pairs.retain(|(known, _)| known != name);
            pairs.push((name.to_owned(), value.to_owned()));
        };
        set("response_type", "code");
        set("client_id", &self.client_id);
        set("redirect_uri", &self.redirect_uri);
        if !self.scopes.is_empty() {
            set("scope", &self.scopes.join(" "));
        }
        set("state", state);
        if self.name != "apple" {
            for (name, value) in extra {
                set(name, value);
            }
        }
        for (name, value) in &self.authorization_params {
            set(name, value);
        }
        pairs.sort();
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let separator = if self.auth_url.contains('?') { '&' } else { '?' };
        format!("{}{separator}{query}", self.auth_url)
    }
}
