//! An identity provider's metadata: an `EntityDescriptor`, or the first identity provider in an `EntitiesDescriptor`.
//! Only its name is read, so signatures do not matter here; administrators are responsible for what they enter.
//! Reference: OASIS `saml-metadata-2.0-os`, 2.3.

use std::time::Duration;

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use crate::auth::error::{AuthError, AuthResult, Code, Fault};
use crate::auth::flows::oauth::oidc::{read_body, transport};
use crate::auth::outside::Providers;

const NAMESPACE: &str = "urn:oasis:names:tc:SAML:2.0:metadata";

/// The maximum nesting of elements. No provider's metadata comes close to it.
const MOST_DEEP: usize = 64;

/// The timeout for fetching a provider's metadata.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A provider's metadata.
#[derive(Debug)]
pub struct Metadata {
    pub entity_id: String,
    /// The whole text, as it came.
    pub xml: String,
}

/// An `EntityDescriptor` of the document.
#[derive(Debug, Default)]
struct Entity {
    id: String,
    /// How many `IDPSSODescriptor`s it has.
    providers: usize,
}

impl Metadata {
    /// Fetches a provider's metadata, from public addresses only.
    pub async fn fetch(outbound: Providers<'_>, url: &str) -> AuthResult<Self> {
        let failed = |why: String| {
            let message = format!("{why} error fetching SAML Metadata from URL '{url}'");
            AuthError::bad_request(Code::SamlMetadataFetchFailed, message)
        };
        let unanswered = |fault: Fault| failed(fault.to_string());
        outbound.check(url).await?;
        let asked = outbound.get(url).map_err(unanswered)?.timeout(FETCH_TIMEOUT);
        let asked = asked.header("accept", "application/xml;charset=UTF-8").header("accept-charset", "UTF-8");
        let answer = asked.send().await.map_err(|error| unanswered(transport(error)))?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(failed(format!("HTTP {}", answer.status().as_u16())));
        }
        let body = read_body(answer).await.map_err(unanswered)?;
        let xml = String::from_utf8(body).map_err(|_| {
            AuthError::invalid(
                "SAML Metadata XML contains invalid UTF-8 characters, which are not supported at this time",
            )
        })?;
        Self::parse(xml)
    }

    /// Errors: 400 `validation_failed`.
    pub fn parse(xml: String) -> AuthResult<Self> {
        let entity = provider_in(&xml)?;
        if entity.id.is_empty() {
            return Err(AuthError::invalid("SAML Metadata does not contain an EntityID"));
        }
        match entity.providers {
            0 => Err(AuthError::invalid("SAML Metadata does not contain any IDPSSODescriptor")),
            1 => Ok(Self { entity_id: entity.id, xml }),
            _ => Err(AuthError::invalid("SAML Metadata contains multiple IDPSSODescriptors")),
        }
    }
}

fn unreadable(why: impl std::fmt::Display) -> AuthError {
    AuthError::invalid(format!("SAML Metadata is not readable: {why}"))
}

fn entity_of(element: &BytesStart<'_>) -> AuthResult<Entity> {
    let mut entity = Entity::default();
    for attribute in element.attributes() {
        let attribute = attribute.map_err(unreadable)?;
        if attribute.key.0 == "entityID" {
            entity.id = attribute.normalized_value(XmlVersion::Explicit1_0).map_err(unreadable)?.into_owned();
        }
    }
    Ok(entity)
}

/// The root's entity, or the first identity provider of several.
fn provider_in(xml: &str) -> AuthResult<Entity> {
    let mut reader = NsReader::from_str(xml);
    let mut path: Vec<String> = Vec::new();
    let mut entities: Vec<Entity> = Vec::new();
    let mut has_root = false;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(unreadable)?;
        let is_metadata = matches!(namespace, ResolveResult::Bound(Namespace(name)) if name == NAMESPACE);
        let is_empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(element) | Event::Empty(element) => {
                let name = if is_metadata { element.local_name().as_ref().to_owned() } else { String::new() };
                let inside: Vec<&str> = path.iter().map(String::as_str).collect();
                match (inside.as_slice(), name.as_str()) {
                    ([], _) if has_root => return Err(unreadable("there is a second root")),
                    ([] | ["EntitiesDescriptor"], "EntityDescriptor") => entities.push(entity_of(&element)?),
                    ([], "EntitiesDescriptor") => {}
                    ([], _) => return Err(unreadable("its root is no EntityDescriptor")),
                    (["EntityDescriptor"] | ["EntitiesDescriptor", "EntityDescriptor"], "IDPSSODescriptor") => {
                        if let Some(entity) = entities.last_mut() {
                            entity.providers += 1;
                        }
                    }
                    _ => {}
                }
                has_root = true;
                if !is_empty {
                    path.push(name);
                }
                if path.len() > MOST_DEEP {
                    return Err(unreadable("its elements are too deep inside each other"));
                }
            }
            Event::End(_) => drop(path.pop()),
            // Custom entities can expand a small document into a huge one.
            Event::DocType(_) => return Err(unreadable("it has a document type")),
            Event::Text(text) if path.is_empty() && !text.chars().all(char::is_whitespace) => {
                return Err(unreadable("there is text outside of its root"));
            }
            Event::Eof if path.is_empty() && has_root => break,
            Event::Eof => return Err(unreadable("it ends too early")),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {}
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
        }
    }
    let provider = entities.iter().position(|entity| entity.providers > 0).unwrap_or(0);
    entities.into_iter().nth(provider).ok_or_else(|| AuthError::invalid("SAML Metadata does not contain an EntityID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVIDER: &str = "<IDPSSODescriptor protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\"/>";

    fn entity(id: &str, inside: &str) -> String {
        format!("<EntityDescriptor xmlns=\"{NAMESPACE}\" entityID=\"{id}\">{inside}</EntityDescriptor>")
    }

    #[test]
    fn the_provider_of_a_document_is_found() {
        let many = format!(
            "<EntitiesDescriptor xmlns=\"{NAMESPACE}\">{}{}{}</EntitiesDescriptor>",
            entity("sp", "<SPSSODescriptor/>"),
            entity("idp", PROVIDER),
            entity("other", PROVIDER)
        );
        let prefixed = format!(
            "<?xml version=\"1.0\"?>\n<!-- mine --><md:EntityDescriptor xmlns:md=\"{NAMESPACE}\" entityID=\"a&amp;b\">\
             <md:IDPSSODescriptor><x>&lt;</x></md:IDPSSODescriptor></md:EntityDescriptor>\n"
        );
        for (xml, id) in [(entity("https://idp", PROVIDER), "https://idp"), (many, "idp"), (prefixed, "a&b")] {
            let metadata = Metadata::parse(xml.clone()).expect("metadata");
            assert_eq!((metadata.entity_id.as_str(), &metadata.xml), (id, &xml));
        }
    }

    #[test]
    fn a_document_without_exactly_one_provider_is_refused() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        for (xml, why) in [
            (entity("", PROVIDER), "does not contain an EntityID"),
            (entity("a", ""), "does not contain any IDPSSODescriptor"),
            (entity("a", &format!("<x>{PROVIDER}</x>")), "does not contain any IDPSSODescriptor"),
            (entity("a", "<IDPSSODescriptor xmlns=\"urn:other\"/>"), "does not contain any IDPSSODescriptor"),
            (entity("a", &PROVIDER.repeat(2)), "contains multiple IDPSSODescriptors"),
            (format!("<EntitiesDescriptor xmlns=\"{NAMESPACE}\"/>"), "does not contain an EntityID"),
            (String::new(), "is not readable"),
            ("text".to_owned(), "is not readable"),
            ("<EntityDescriptor entityID=\"a\"/>".to_owned(), "is not readable"),
            (entity("a", PROVIDER).replace("</EntityDescriptor>", ""), "is not readable"),
            (entity("a", PROVIDER).repeat(2), "is not readable"),
            (entity("a", "<b></c>"), "is not readable"),
            (entity("&own;", PROVIDER), "is not readable"),
            (format!("<!DOCTYPE a [<!ENTITY own \"x\">]>{}", entity("&own;", PROVIDER)), "is not readable"),
            (entity("a", &deep), "is not readable"),
        ] {
            let error = Metadata::parse(xml.clone()).expect_err("refused");
            assert_eq!(error.code(), Some(Code::ValidationFailed));
            assert!(error.message().contains(why), "{xml}: {}", error.message());
        }
    }
}
