//! Providers that administrators describe at run time: `/admin/custom-providers`.
//! Reference: supabase/auth `internal/api/custom_oauth_admin.go`, `internal/models/custom_oauth_provider.go`.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::auth::credentials::encryption;
use crate::auth::door::params::Params;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _, json_response};
use crate::auth::flows::oauth::oidc::{ask, read_body};
use crate::auth::models::store::Db;
use crate::auth::models::{Json, now};
use crate::auth::outside::Providers;

/// A provider as the wire shows it; its secret is read where it is needed.
#[derive(Clone, Debug, Serialize)]
pub struct CustomProvider {
    pub id: Uuid,
    /// `oauth2` or `oidc`.
    pub provider_type: String,
    /// `custom:<name>`.
    pub identifier: String,
    pub name: String,
    pub client_id: String,
    pub acceptable_client_ids: Vec<String>,
    pub scopes: Vec<String>,
    pub pkce_enabled: bool,
    pub attribute_mapping: Json,
    pub custom_claims_allowlist: Vec<String>,
    pub authorization_params: Json,
    pub enabled: bool,
    pub email_optional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery_url: Option<String>,
    pub skip_nonce_check: bool,
    #[serde(rename = "discovery_document", skip_serializing_if = "Option::is_none")]
    pub cached_discovery: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub userinfo_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

const COLUMNS: &str = "id, provider_type, identifier, name, client_id, acceptable_client_ids, scopes, pkce_enabled, \
    attribute_mapping, custom_claims_allowlist, authorization_params, enabled, email_optional, issuer, \
    discovery_url, skip_nonce_check, cached_discovery, authorization_url, token_url, userinfo_url, jwks_uri, \
    created_at, updated_at";

impl CustomProvider {
    /// A provider with the defaults: enabled, with PKCE, and an address required.
    pub fn new(provider_type: String, identifier: String) -> Self {
        let now = now();
        Self {
            id: Uuid::new_v4(),
            provider_type,
            identifier,
            name: String::new(),
            client_id: String::new(),
            acceptable_client_ids: Vec::new(),
            scopes: Vec::new(),
            pkce_enabled: true,
            attribute_mapping: Map::new(),
            custom_claims_allowlist: Vec::new(),
            authorization_params: Map::new(),
            enabled: true,
            email_optional: false,
            issuer: None,
            discovery_url: None,
            skip_nonce_check: false,
            cached_discovery: None,
            authorization_url: None,
            token_url: None,
            userinfo_url: None,
            jwks_uri: None,
            created_at: now,
            updated_at: now,
        }
    }

    pub fn is_oidc(&self) -> bool {
        self.provider_type == "oidc"
    }

    fn from_row(row: &Row) -> Result<Self, Fault> {
        let object = |index: usize| -> Result<Json, Fault> {
            let value: Value = row.try_get(index)?;
            Ok(value.as_object().cloned().unwrap_or_default())
        };
        Ok(Self {
            id: row.try_get(0)?,
            provider_type: row.try_get(1)?,
            identifier: row.try_get(2)?,
            name: row.try_get(3)?,
            client_id: row.try_get(4)?,
            acceptable_client_ids: row.try_get(5)?,
            scopes: row.try_get(6)?,
            pkce_enabled: row.try_get(7)?,
            attribute_mapping: object(8)?,
            custom_claims_allowlist: row.try_get(9)?,
            authorization_params: object(10)?,
            enabled: row.try_get(11)?,
            email_optional: row.try_get(12)?,
            issuer: row.try_get(13)?,
            discovery_url: row.try_get(14)?,
            skip_nonce_check: row.try_get(15)?,
            cached_discovery: row.try_get(16)?,
            authorization_url: row.try_get(17)?,
            token_url: row.try_get(18)?,
            userinfo_url: row.try_get(19)?,
            jwks_uri: row.try_get(20)?,
            created_at: row.try_get(21)?,
            updated_at: row.try_get(22)?,
        })
    }

    /// Writes everything but the secret; inserts with `secret`.
    async fn save(&self, db: &Db, secret: Option<&str>) -> Result<(), Fault> {
        let (mapping, params) =
            (Value::Object(self.attribute_mapping.clone()), Value::Object(self.authorization_params.clone()));
        let cached_at = self.cached_discovery.as_ref().map(|_| self.updated_at);
        let values: [crate::auth::models::store::Param<'_>; 22] = [
            &self.id,
            &self.name,
            &self.client_id,
            &self.acceptable_client_ids,
            &self.scopes,
            &self.pkce_enabled,
            &mapping,
            &self.custom_claims_allowlist,
            &params,
            &self.enabled,
            &self.email_optional,
            &self.issuer,
            &self.discovery_url,
            &self.skip_nonce_check,
            &self.cached_discovery,
            &cached_at,
            &self.authorization_url,
            &self.token_url,
            &self.userinfo_url,
            &self.jwks_uri,
            &self.updated_at,
            &secret,
        ];
        let sql = "update auth.custom_oauth_providers set name = $2, client_id = $3, acceptable_client_ids = $4, \
             scopes = $5, pkce_enabled = $6, attribute_mapping = $7, custom_claims_allowlist = $8, \
             authorization_params = $9, enabled = $10, email_optional = $11, issuer = $12, discovery_url = $13, \
             skip_nonce_check = $14, cached_discovery = $15, discovery_cached_at = $16, authorization_url = $17, \
             token_url = $18, userinfo_url = $19, jwks_uri = $20, updated_at = $21, \
             client_secret = coalesce($22, client_secret) where id = $1";
        db.execute(sql, &values).await?;
        Ok(())
    }

    async fn insert(&self, db: &Db, secret: &str) -> Result<(), Fault> {
        db.execute(
            "insert into auth.custom_oauth_providers (id, provider_type, identifier, name, client_id, client_secret, \
             issuer, authorization_url, token_url, userinfo_url, created_at, updated_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
            &[
                &self.id,
                &self.provider_type,
                &self.identifier,
                &self.name,
                &self.client_id,
                &secret,
                &self.issuer,
                &self.authorization_url,
                &self.token_url,
                &self.userinfo_url,
                &self.created_at,
            ],
        )
        .await?;
        self.save(db, None).await
    }
}

/// The provider called `identifier`.
pub async fn find(db: &Db, identifier: &str) -> Result<Option<CustomProvider>, Fault> {
    let sql = format!("select {COLUMNS} from auth.custom_oauth_providers where identifier = $1");
    db.query_opt(&sql, &[&identifier]).await?.as_ref().map(CustomProvider::from_row).transpose()
}

/// The OpenID Connect providers of an issuer that are switched on.
pub async fn of_issuer(db: &Db, issuer: &str) -> Result<Vec<CustomProvider>, Fault> {
    let sql = format!("select {COLUMNS} from auth.custom_oauth_providers where issuer = $1 and enabled");
    let all: Vec<_> =
        db.query(&sql, &[&issuer]).await?.iter().map(CustomProvider::from_row).collect::<Result<_, _>>()?;
    Ok(all.into_iter().filter(CustomProvider::is_oidc).collect())
}

/// The provider's client secret.
pub async fn secret(request: &Request, db: &Db, provider: &CustomProvider) -> AuthResult<String> {
    let row =
        db.query_one("select client_secret from auth.custom_oauth_providers where id = $1", &[&provider.id]).await?;
    let stored: String = row.try_get(0)?;
    encryption::open(&request.auth.config.security.encryption, &provider.id.to_string(), &stored)
}

/// Everything below `/admin/custom-providers` answers 404 while the feature is off.
pub fn require_enabled(request: &Request) -> AuthResult<()> {
    if request.auth.config.custom_oauth_enabled {
        return Ok(());
    }
    Err(AuthError::not_found(Code::FeatureDisabled, "Custom OAuth/OIDC providers are disabled"))
}

/// All providers, or those of the query's `type`, newest first.
pub async fn list(request: &Request) -> AuthResult<HttpResponse> {
    let kind = request.query("type").unwrap_or("");
    if !matches!(kind, "" | "oauth2" | "oidc") {
        return Err(AuthError::invalid("type must be either 'oauth2' or 'oidc'"));
    }
    let db = request.db().await?;
    let sql = format!(
        "select {COLUMNS} from auth.custom_oauth_providers where $1 = '' or provider_type = $1 order by created_at desc"
    );
    let rows = db.query(&sql, &[&kind]).await.or_internal("Error retrieving custom OAuth providers")?;
    let providers = rows.iter().map(CustomProvider::from_row).collect::<Result<Vec<_>, _>>()?;
    ok(&json!({ "providers": providers }))
}

async fn load(db: &Db, identifier: &str) -> AuthResult<CustomProvider> {
    check_identifier(identifier)?;
    find(db, identifier)
        .await
        .or_internal("Error retrieving custom OAuth provider")?
        .ok_or_else(|| AuthError::not_found(Code::CustomProviderNotFound, "Custom OAuth provider not found"))
}

fn check_identifier(identifier: &str) -> AuthResult<()> {
    if identifier.is_empty() {
        return Err(AuthError::invalid("identifier is required"));
    }
    if identifier.starts_with("custom:") {
        return Ok(());
    }
    Err(AuthError::invalid(format!("identifier must start with 'custom:' prefix, e.g. 'custom:{identifier}'")))
}

/// One provider.
pub async fn get(request: &Request, identifier: &str) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    ok(&load(&db, identifier).await?)
}

/// Removes a provider: 204.
pub async fn delete(request: &Request, identifier: &str) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    let provider = load(&db, identifier).await?;
    db.execute("delete from auth.custom_oauth_providers where id = $1", &[&provider.id])
        .await
        .or_internal("Error deleting custom OAuth provider")?;
    if let Some(issuer) = &provider.issuer {
        request.auth.discovery.forget(issuer);
    }
    Ok(HttpResponse::NoContent().finish())
}

/// Parameters of the authorization request that only the server sets.
const RESERVED: [&str; 9] = [
    "client_id",
    "client_secret",
    "redirect_uri",
    "response_type",
    "state",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "nonce",
];

/// Claims that no provider may set.
const PROTECTED: [&str; 13] = [
    "id",
    "aud",
    "role",
    "app_metadata",
    "created_at",
    "updated_at",
    "confirmed_at",
    "email_confirmed_at",
    "phone_confirmed_at",
    "email_verified",
    "phone_verified",
    "banned_until",
    "is_super_admin",
];

/// The body: absent fields are `None`.
struct Fields {
    name: String,
    client_id: String,
    client_secret: String,
    acceptable_client_ids: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    pkce_enabled: Option<bool>,
    attribute_mapping: Option<Json>,
    custom_claims_allowlist: Option<Vec<String>>,
    authorization_params: Option<Json>,
    enabled: Option<bool>,
    email_optional: Option<bool>,
    issuer: String,
    discovery_url: Option<String>,
    skip_nonce_check: Option<bool>,
    authorization_url: String,
    token_url: String,
    userinfo_url: String,
    jwks_uri: Option<String>,
}

impl Fields {
    fn read(params: &Params) -> AuthResult<Self> {
        let flag = |name: &str| match params.value(name) {
            None => Ok(None),
            Some(_) => params.flag(name, false).map(Some),
        };
        Ok(Self {
            name: params.text("name")?,
            client_id: params.text("client_id")?,
            client_secret: params.text("client_secret")?,
            acceptable_client_ids: params.texts("acceptable_client_ids")?,
            scopes: params.texts("scopes")?,
            pkce_enabled: flag("pkce_enabled")?,
            attribute_mapping: params.object("attribute_mapping")?,
            custom_claims_allowlist: params.texts("custom_claims_allowlist")?,
            authorization_params: params.object("authorization_params")?,
            enabled: flag("enabled")?,
            email_optional: flag("email_optional")?,
            issuer: params.text("issuer")?,
            discovery_url: params.optional_text("discovery_url")?,
            skip_nonce_check: flag("skip_nonce_check")?,
            authorization_url: params.text("authorization_url")?,
            token_url: params.text("token_url")?,
            userinfo_url: params.text("userinfo_url")?,
            jwks_uri: params.optional_text("jwks_uri")?,
        })
    }

    fn check(&self) -> AuthResult<()> {
        for (name, value) in self.authorization_params.iter().flatten() {
            if RESERVED.contains(&name.as_str()) {
                return Err(AuthError::invalid(format!("Cannot override reserved OAuth parameter: {name}")));
            }
            if !value.is_string() {
                return Err(AuthError::invalid(format!("Authorization parameter {name:?} must be a string")));
            }
        }
        if let Some((name, _)) =
            self.attribute_mapping.iter().flatten().find(|(name, _)| PROTECTED.contains(&name.as_str()))
        {
            return Err(AuthError::invalid(format!("Cannot map to protected system field: {name}")));
        }
        if self.custom_claims_allowlist.iter().flatten().any(|claim| claim.trim().is_empty()) {
            return Err(AuthError::invalid("custom_claims_allowlist entries must be non-empty strings"));
        }
        Ok(())
    }

    /// Requires the fields of that type of provider.
    fn require(&self, oidc: bool) -> AuthResult<()> {
        let common = [("name", &self.name), ("client_id", &self.client_id), ("client_secret", &self.client_secret)];
        if let Some((name, _)) = common.iter().find(|(_, value)| value.is_empty()) {
            return Err(AuthError::invalid(format!("{name} is required")));
        }
        if oidc {
            if self.issuer.is_empty() {
                return Err(AuthError::invalid("issuer is required for OIDC providers"));
            }
            return Ok(());
        }
        let endpoints = [
            ("authorization_url", &self.authorization_url),
            ("token_url", &self.token_url),
            ("userinfo_url", &self.userinfo_url),
        ];
        match endpoints.iter().find(|(_, value)| value.is_empty()) {
            Some((name, _)) => Err(AuthError::invalid(format!("{name} is required for OAuth2 providers"))),
            None => Ok(()),
        }
    }

    async fn check_urls(&self, outbound: Providers<'_>, oidc: bool) -> AuthResult<()> {
        let urls: Vec<&str> = if oidc {
            vec![&self.issuer, self.discovery_url.as_deref().unwrap_or("")]
        } else {
            vec![&self.authorization_url, &self.token_url, &self.userinfo_url, self.jwks_uri.as_deref().unwrap_or("")]
        };
        for url in urls.into_iter().filter(|url| !url.is_empty()) {
            outbound.check(url).await?;
        }
        Ok(())
    }

    /// Overwrites the given fields.
    fn apply(self, provider: &mut CustomProvider) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        set(&mut provider.name, filled(self.name));
        set(&mut provider.client_id, filled(self.client_id));
        set(&mut provider.acceptable_client_ids, self.acceptable_client_ids);
        set(&mut provider.scopes, self.scopes);
        set(&mut provider.pkce_enabled, self.pkce_enabled);
        set(&mut provider.attribute_mapping, self.attribute_mapping);
        set(&mut provider.custom_claims_allowlist, self.custom_claims_allowlist);
        set(&mut provider.authorization_params, self.authorization_params);
        set(&mut provider.enabled, self.enabled);
        set(&mut provider.email_optional, self.email_optional);
        if provider.is_oidc() {
            if !provider.scopes.iter().any(|scope| scope == "openid") {
                provider.scopes.insert(0, "openid".to_owned());
            }
            set(&mut provider.issuer, filled(self.issuer).map(Some));
            set(&mut provider.discovery_url, self.discovery_url.filter(|url| !url.is_empty()).map(Some));
            set(&mut provider.skip_nonce_check, self.skip_nonce_check);
        } else {
            set(&mut provider.authorization_url, filled(self.authorization_url).map(Some));
            set(&mut provider.token_url, filled(self.token_url).map(Some));
            set(&mut provider.userinfo_url, filled(self.userinfo_url).map(Some));
            set(&mut provider.jwks_uri, self.jwks_uri.filter(|url| !url.is_empty()).map(Some));
        }
    }
}

/// Adds a provider: 201. Fetches and checks the document of an OpenID Connect provider first.
///
/// Errors: 400 `validation_failed`, `over_custom_provider_quota`, `conflict`.
pub async fn create(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let params = request.params()?;
    let fields = Fields::read(&params)?;
    let (kind, identifier) = (params.text("provider_type")?, params.text("identifier")?);
    if !matches!(kind.as_str(), "oauth2" | "oidc") {
        return Err(AuthError::invalid("provider_type must be either 'oauth2' or 'oidc'"));
    }
    let oidc = kind == "oidc";
    check_identifier(&identifier)?;
    fields.require(oidc)?;
    fields.check()?;
    let db = request.db().await?;
    if config.custom_oauth_max_providers > 0 {
        let row = db.query_one("select count(*) from auth.custom_oauth_providers", &[]).await?;
        let count: i64 = row.try_get(0)?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= config.custom_oauth_max_providers {
            let message = "Maximum number of custom OAuth/OIDC providers reached";
            return Err(AuthError::bad_request(Code::OverCustomProviderQuota, message));
        }
    }
    fields.check_urls(request.away().custom_providers(), oidc).await?;
    let exists = || {
        let message = "A custom OAuth provider with this identifier already exists";
        AuthError::bad_request(Code::Conflict, message)
    };
    if find(&db, &identifier).await.or_internal("Error checking for existing provider")?.is_some() {
        return Err(exists());
    }
    let mut provider = CustomProvider::new(kind, identifier);
    let secret = encryption::seal(&config.security.encryption, &provider.id.to_string(), &fields.client_secret)?;
    fields.apply(&mut provider);
    if oidc {
        provider.cached_discovery = Some(read_document(request, &provider).await?);
    }
    let stored = db.transaction(async |db| Ok(provider.insert(db, &secret).await?)).await;
    if stored.as_ref().is_err_and(AuthError::is_unique_violation) {
        return Err(exists());
    }
    stored.map_err(|error| refused_by_table(error, "Error creating custom OAuth provider"))?;
    Ok(json_response(StatusCode::CREATED, &provider))
}

/// Changes what the body names.
pub async fn update(request: &Request, identifier: &str) -> AuthResult<HttpResponse> {
    check_identifier(identifier)?;
    let fields = Fields::read(&request.params()?)?;
    fields.check()?;
    let db = request.db().await?;
    let mut provider = load(&db, identifier).await?;
    fields.check_urls(request.away().custom_providers(), provider.is_oidc()).await?;
    let before = provider.issuer.clone();
    let reread = provider.is_oidc() && (!fields.issuer.is_empty() || fields.discovery_url.is_some());
    let secret = if fields.client_secret.is_empty() {
        None
    } else {
        let encryption = &request.auth.config.security.encryption;
        Some(encryption::seal(encryption, &provider.id.to_string(), &fields.client_secret)?)
    };
    fields.apply(&mut provider);
    if reread {
        provider.cached_discovery = Some(read_document(request, &provider).await?);
        for issuer in [&before, &provider.issuer].into_iter().flatten() {
            request.auth.discovery.forget(issuer);
        }
    }
    provider.updated_at = now();
    provider
        .save(&db, secret.as_deref())
        .await
        .map_err(|fault| refused_by_table(fault.into(), "Error updating custom OAuth provider"))?;
    ok(&provider)
}

/// Names a field that the table refuses. The database's message would show the whole row with its secret
/// (upstream shows it).
fn refused_by_table(error: AuthError, message: &str) -> AuthError {
    let broken = error.fault().filter(|fault| fault.sqlstate() == Some("23514")).and_then(Fault::constraint);
    let rule = broken.and_then(|name| name.strip_prefix("custom_oauth_providers_")?.rsplit_once('_'));
    if let Some((field, rule)) = rule {
        return AuthError::invalid(format!("{field} has an invalid {rule}"));
    }
    // Only the message, for the log: with the rest the answer would show the fault.
    let cause = error.fault().map(ToString::to_string).unwrap_or_default();
    error.internal_unless_unstorable(message).caused_by(Fault::new(cause))
}

/// The parts of an issuer's document that are kept.
const KEPT: [&str; 9] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "scopes_supported",
    "response_types_supported",
    "grant_types_supported",
    "subject_types_supported",
];

/// Reads and checks the discovery document of an OpenID Connect provider.
async fn read_document(request: &Request, provider: &CustomProvider) -> AuthResult<Value> {
    let issuer = provider.issuer.as_deref().unwrap_or("");
    let url = match &provider.discovery_url {
        Some(url) => url.clone(),
        None => format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')),
    };
    let failed = |why: String| AuthError::invalid(format!("OIDC discovery from {url:?} failed: {why}"));
    let away = request.away();
    let outbound = away.custom_providers();
    let unanswered = |fault: Fault| failed(format!("oidc: discovery request to {url} failed: {fault}"));
    let answer = ask(outbound, &url).await.map_err(unanswered)?;
    if answer.status() != reqwest::StatusCode::OK {
        return Err(failed(format!("oidc: discovery request to {url} returned {}", answer.status())));
    }
    let body = read_body(answer).await.map_err(unanswered)?;
    let document: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| failed(format!("oidc: failed to decode discovery document from {url}: {error}")))?;
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or("");
    if text("issuer") != issuer {
        return Err(failed(format!("oidc: issuer mismatch, expected {issuer:?} got {:?}", text("issuer"))));
    }
    let required = ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"];
    let missing: Vec<&str> = required.into_iter().filter(|name| text(name).is_empty()).collect();
    if !missing.is_empty() {
        let message = format!("OIDC discovery document is missing required fields: {}", missing.join(", "));
        return Err(AuthError::invalid(message));
    }
    for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"] {
        if !text(name).is_empty() {
            outbound.check(text(name)).await?;
        }
    }
    let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), document.get(*name)?.clone())));
    Ok(Value::Object(kept.collect()))
}
