//! `/admin/sso/providers`: manages identity providers of single sign-on, although SAML is not served.
//! Reference: supabase/auth `internal/api/ssoadmin.go`.

mod mapping;
mod metadata;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::auth::door::params::Params;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, json_response};
use crate::auth::models::Json;
use crate::auth::models::sso_provider::{self, Key, SamlProvider, SsoProvider};
use crate::auth::models::store::Db;
use metadata::Metadata;

/// SAML's formats of name identifiers.
const NAME_ID_FORMATS: [&str; 4] = [
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
];

/// The prefix of a resource id in paths that may also contain a UUID.
const RESOURCE_PREFIX: &str = "resource_";

fn not_found() -> AuthError {
    AuthError::not_found(Code::SsoProviderNotFound, "SSO Identity Provider not found")
}

/// The provider that a path names, as `resource_<id>` or by its UUID.
///
/// Errors: 404 `sso_provider_not_found`.
pub async fn load(request: &Request, named: &str) -> AuthResult<SsoProvider> {
    let key = match named.strip_prefix(RESOURCE_PREFIX) {
        Some(id) => Key::ResourceId(id.to_owned()),
        None => Key::Id(Uuid::try_parse(named).map_err(|_| not_found())?),
    };
    let db = request.db().await?;
    sso_provider::find(&db, &key).await?.ok_or_else(not_found)
}

/// All providers, or those of the query's `resource_id` or `resource_id_prefix`.
pub async fn list(request: &Request) -> AuthResult<HttpResponse> {
    let filter = |name| request.query(name).unwrap_or("");
    let db = request.db().await?;
    let items = sso_provider::all(&db, filter("resource_id"), filter("resource_id_prefix")).await?;
    ok(&json!({ "items": items }))
}

pub fn show(provider: &SsoProvider) -> AuthResult<HttpResponse> {
    ok(provider)
}

/// The body; what is absent is `None` or empty.
struct Fields {
    metadata_url: String,
    metadata_xml: String,
    domains: Option<Vec<String>>,
    attribute_mapping: Option<Json>,
    name_id_format: Option<String>,
    resource_id: Option<String>,
    disabled: Option<bool>,
}

impl Fields {
    fn read(params: &Params) -> AuthResult<Self> {
        Ok(Self {
            metadata_url: params.text("metadata_url")?,
            metadata_xml: params.text("metadata_xml")?,
            domains: params.texts("domains")?,
            attribute_mapping: mapping::read(params)?,
            name_id_format: params.optional_text("name_id_format")?,
            resource_id: params.optional_text("resource_id")?,
            disabled: match params.value("disabled") {
                None => None,
                Some(_) => Some(params.flag("disabled", false)?),
            },
        })
    }

    fn has_metadata(&self) -> bool {
        !(self.metadata_url.is_empty() && self.metadata_xml.is_empty())
    }

    fn check(&self) -> AuthResult<()> {
        if !self.metadata_url.is_empty() {
            check_url(&self.metadata_url)?;
        }
        let format = self.name_id_format.as_deref().unwrap_or("");
        if !format.is_empty() && !NAME_ID_FORMATS.contains(&format) {
            let known = NAME_ID_FORMATS.join(", ");
            return Err(AuthError::invalid(format!("name_id_format must be unspecified or one of {known}")));
        }
        if self.domains.iter().flatten().any(String::is_empty) {
            return Err(AuthError::invalid("SSO Domain must not be empty"));
        }
        Ok(())
    }

    fn check_one_source(&self) -> AuthResult<()> {
        if !self.metadata_url.is_empty() && !self.metadata_xml.is_empty() {
            return Err(AuthError::invalid("Only one of metadata_xml or metadata_url needs to be set"));
        }
        Ok(())
    }

    /// The provider's metadata, given in the body or at a URL.
    async fn metadata(&self, request: &Request) -> AuthResult<Metadata> {
        if self.metadata_xml.is_empty() {
            Metadata::fetch(request.away().custom_providers(), &self.metadata_url).await
        } else {
            Metadata::parse(self.metadata_xml.clone())
        }
    }
}

fn check_url(text: &str) -> AuthResult<()> {
    let not_https = || AuthError::invalid("metadata_url is not a HTTPS URL");
    if text.starts_with('/') {
        return Err(not_https());
    }
    let url = Url::parse(text).map_err(|_| AuthError::invalid("metadata_url is not a valid URL"))?;
    if url.scheme() == "https" { Ok(()) } else { Err(not_https()) }
}

/// `None` for an empty text.
fn named(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Adds a provider: 201.
///
/// Errors: 400 `validation_failed`, `sso_domain_already_exists`, `saml_metadata_fetch_failed`; 422
/// `saml_idp_already_exists`, `conflict`.
pub async fn create(request: &Request) -> AuthResult<HttpResponse> {
    let params = request.params()?;
    let fields = Fields::read(&params)?;
    if params.text("type")? != "saml" {
        return Err(AuthError::invalid("Only 'saml' supported for SSO provider type"));
    }
    fields.check_one_source()?;
    if !fields.has_metadata() {
        return Err(AuthError::invalid("Either metadata_xml or metadata_url must be set"));
    }
    fields.check()?;
    let metadata = fields.metadata(request).await?;
    let db = request.db().await?;
    if sso_provider::has_entity(&db, &metadata.entity_id).await? {
        return Err(exists(&metadata.entity_id));
    }
    let domains = fields.domains.unwrap_or_default();
    for domain in &domains {
        if let Some(owner) = sso_provider::owner_of_domain(&db, domain).await? {
            let message = format!("SSO Domain '{domain}' is already assigned to an SSO identity provider ({owner})");
            return Err(AuthError::bad_request(Code::SsoDomainAlreadyExists, message));
        }
    }
    let saml = SamlProvider {
        entity_id: metadata.entity_id,
        metadata_xml: metadata.xml,
        metadata_url: named(Some(fields.metadata_url)),
        attribute_mapping: fields.attribute_mapping.unwrap_or_default(),
        name_id_format: named(fields.name_id_format),
    };
    let provider = SsoProvider::new(saml, named(fields.resource_id), fields.disabled, domains);
    db.transaction(async |db| Ok(provider.insert(db).await?))
        .await
        .map_err(|error| conflict(error, "Creating SSO provider failed, likely due to a conflict. Try again?"))?;
    Ok(json_response(StatusCode::CREATED, &provider))
}

fn exists(entity_id: &str) -> AuthError {
    let message = format!("SAML Identity Provider with this EntityID ({entity_id}) already exists");
    AuthError::unprocessable(Code::SamlIdpAlreadyExists, message)
}

/// Another request took the entity, a domain or the resource id.
fn conflict(error: AuthError, message: &str) -> AuthError {
    if error.is_unique_violation() {
        return AuthError::unprocessable(Code::Conflict, message).caused_by(error.into_fault());
    }
    error
}

/// Changes what the body names; its entity stays.
///
/// Errors: 400 `validation_failed`, `saml_entity_id_mismatch`, `sso_domain_already_exists`,
/// `saml_metadata_fetch_failed`; 422 `conflict`.
pub async fn update(request: &Request, provider: &SsoProvider) -> AuthResult<HttpResponse> {
    let fields = Fields::read(&request.params()?)?;
    fields.check_one_source()?;
    fields.check()?;
    let metadata = if fields.has_metadata() { Some(fields.metadata(request).await?) } else { None };
    let key = Key::Id(provider.id);
    let db = request.db().await?;
    let changed = db
        .transaction(async |db| {
            let mut provider = sso_provider::find_to_change(db, &key).await?.ok_or_else(not_found)?;
            apply(db, &fields, metadata.as_ref(), &mut provider).await?;
            provider.update(db).await?;
            Ok(provider)
        })
        .await
        .map_err(|error| conflict(error, "Updating SSO provider failed, likely due to a conflict. Try again?"))?;
    ok(&changed)
}

async fn apply(db: &Db, fields: &Fields, metadata: Option<&Metadata>, provider: &mut SsoProvider) -> AuthResult<()> {
    if let Some(metadata) = metadata {
        let (expected, got) = (&provider.saml.entity_id, &metadata.entity_id);
        if expected != got {
            let message = format!(
                "SAML Metadata can be updated only if the EntityID matches for the provider; expected '{expected}' but \
                 got '{got}'"
            );
            return Err(AuthError::bad_request(Code::SamlEntityIdMismatch, message));
        }
        if !fields.metadata_url.is_empty() {
            provider.saml.metadata_url = Some(fields.metadata_url.clone());
        }
        provider.saml.metadata_xml.clone_from(&metadata.xml);
    }
    if let Some(domains) = &fields.domains {
        for domain in domains {
            match sso_provider::owner_of_domain(db, domain).await? {
                Some(owner) if owner != provider.id => {
                    let message = format!("SSO domain '{domain}' already assigned to another provider ({owner})");
                    return Err(AuthError::bad_request(Code::SsoDomainAlreadyExists, message));
                }
                _ => {}
            }
        }
        provider.domains.clone_from(domains);
    }
    // A mapping without keys changes nothing.
    if let Some(mapping) = fields.attribute_mapping.as_ref().filter(|mapping| mapping::has_keys(mapping)) {
        provider.saml.attribute_mapping.clone_from(mapping);
    }
    if fields.name_id_format.is_some() {
        provider.saml.name_id_format = named(fields.name_id_format.clone());
    }
    if fields.resource_id.is_some() {
        provider.resource_id = named(fields.resource_id.clone());
    }
    provider.disabled = fields.disabled.or(provider.disabled);
    Ok(())
}

/// Deletes a provider and returns it.
pub async fn delete(request: &Request, provider: &SsoProvider) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    provider.delete(&db).await?;
    ok(provider)
}
