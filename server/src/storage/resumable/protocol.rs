//! The headers of resumable uploads.

use std::collections::HashSet;

use actix_web::http::Method;
use actix_web::{HttpRequest, web};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::TusError;
use super::{BASE, SIGNED, parsed};
use crate::config::TrustedProxies;
use crate::http::origin::{Origin, from_proxy};
use crate::storage::key::{ObjectKey, content_encoding};
use crate::storage::{Storage, header_text, valid_bucket};

/// Identifies an upload: `bucket/key/version`, in base64 in its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadId {
    pub bucket: String,
    pub key: ObjectKey,
    /// Becomes the version of the object.
    pub version: Uuid,
}

impl UploadId {
    pub fn parse(text: &str) -> Result<Self, TusError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| TusError::NotFound)?;
        let path = String::from_utf8(bytes).map_err(|_| TusError::NotFound)?;
        let (rest, version) = path.rsplit_once('/').ok_or(TusError::NotFound)?;
        let (bucket, key) = rest.split_once('/').ok_or(TusError::NotFound)?;
        Ok(Self {
            bucket: valid_bucket(bucket.to_owned()).map_err(|_| TusError::NotFound)?,
            key: ObjectKey::parse(key).map_err(|_| TusError::NotFound)?,
            version: Uuid::parse_str(version).map_err(|_| TusError::NotFound)?,
        })
    }

    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}/{}/{}", self.bucket, self.key.as_str(), self.version))
    }
}

/// The metadata sent when an upload was created.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Announced {
    /// The whole `Upload-Metadata` header, which is returned again.
    pub header: Option<String>,
    pub bucket_name: String,
    pub object_name: String,
    pub content_type: Option<String>,
    pub cache_control: Option<String>,
    /// The codings in which the bytes are.
    pub content_encoding: Option<String>,
    /// User metadata as JSON text.
    pub metadata: Option<String>,
    /// Whether an existing object may be overwritten.
    pub upsert: bool,
    #[serde(skip)]
    pub size: Option<u64>,
}

impl Announced {
    pub fn of_request(request: &HttpRequest) -> Result<Self, TusError> {
        let size = number_in(request, "upload-length")?;
        match (size, header_text(request, "upload-defer-length")) {
            (Some(_), None) | (None, Some("1")) => {}
            (None, Some(_)) => return Err(TusError::Header("upload-defer-length".to_owned())),
            (None, None) | (Some(_), Some(_)) => return Err(TusError::NoLength),
        }
        let header = header_text(request, "upload-metadata").ok_or(TusError::NoMetadata)?;
        let mut announced = Self { header: Some(header.to_owned()), size, ..Self::default() };
        for (name, value) in pairs_in(header).ok_or(TusError::Metadata)? {
            match name {
                "bucketName" => announced.bucket_name = value,
                "objectName" => announced.object_name = value,
                "contentType" => announced.content_type = Some(value),
                "cacheControl" => announced.cache_control = Some(value),
                "contentEncoding" => announced.content_encoding = content_encoding(&value)?,
                "metadata" => announced.metadata = Some(value),
                _ => {}
            }
        }
        announced.bucket_name = valid_bucket(announced.bucket_name)?;
        Ok(announced)
    }

    pub fn mime(&self) -> &str {
        self.content_type.as_deref().filter(|text| !text.is_empty()).unwrap_or("application/octet-stream")
    }

    /// Seconds become a `max-age`; anything else means no caching.
    pub fn cache_control(&self) -> String {
        let text = self.cache_control.as_deref().unwrap_or("");
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return format!("max-age={text}");
        }
        "no-cache".to_owned()
    }

    pub fn user_metadata(&self) -> Option<Value> {
        parsed(self.metadata.as_deref())
    }
}

/// Refuses malformed headers of the protocol, all of them in one message.
pub fn check_headers(request: &HttpRequest, method: &Method) -> Result<(), TusError> {
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let is_valid = |name: &str, text: &str| match name {
        // Some clients send a default type with other methods.
        "content-type" => *method != Method::PATCH || text == super::PATCH_TYPE,
        "tus-version" => text == super::VERSION,
        "upload-concat" => text == "partial" || text.starts_with("final;"),
        "upload-defer-length" => text == "1",
        "upload-length" | "upload-offset" => is_number(text),
        "upload-metadata" => pairs_in(text).is_some(),
        _ => true,
    };
    let mut invalid: Vec<&str> = request
        .headers()
        .iter()
        .filter(|(name, value)| !is_valid(name.as_str(), value.to_str().unwrap_or_default()))
        .map(|(name, _)| name.as_str())
        .collect();
    invalid.sort_unstable();
    if invalid.is_empty() { Ok(()) } else { Err(TusError::Header(invalid.join(" "))) }
}

/// The pairs of `Upload-Metadata`, decoded; `None` if it is malformed.
fn pairs_in(header: &str) -> Option<Vec<(&str, String)>> {
    let mut seen = HashSet::new();
    let pairs = header.split(',').map(|pair| {
        let (name, value) = pair.trim_matches(' ').split_once(' ').unwrap_or((pair.trim_matches(' '), ""));
        let is_new = !name.is_empty() && !value.contains(' ') && seen.insert(name);
        let value = STANDARD.decode(value).ok().filter(|_| is_new)?;
        Some((name, String::from_utf8_lossy(&value).into_owned()))
    });
    pairs.collect()
}

/// An integer in a header.
pub fn number_in(request: &HttpRequest, name: &'static str) -> Result<Option<u64>, TusError> {
    let Some(text) = header_text(request, name) else { return Ok(None) };
    let well_formed = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|n| well_formed && *n <= 1 << 53);
    number.map(Some).ok_or_else(|| TusError::Header(name.to_owned()))
}

/// The absolute URL of an upload, since clients may follow it from anywhere.
pub fn location(storage: &Storage, request: &HttpRequest, id: &UploadId, signed: bool) -> String {
    let literal = if signed { SIGNED } else { BASE };
    let path = request.path();
    let path = path.find(literal).map_or(literal, |at| &path[..at + literal.len()]);
    let origin = match &storage.config.public_url {
        Some(url) => {
            let parsed = url::Url::parse(url).ok();
            parsed.map_or_else(|| url.trim_end_matches('/').to_owned(), |url| url.origin().ascii_serialization())
        }
        None => asked_origin(storage, request),
    };
    format!("{origin}{path}/{}", id.to_text())
}

/// The origin at which the client has asked.
fn asked_origin(storage: &Storage, request: &HttpRequest) -> String {
    let proxies = &storage.config.trusted_proxies;
    let is_alone = request.app_data::<web::Data<TrustedProxies>>().is_none();
    // Served alone, it is behind a gateway, whose headers Supabase Storage trusts.
    let gateway = TrustedProxies { hops: 1, ..TrustedProxies::default() };
    let proxies = if is_alone && proxies.is_none() { &gateway } else { proxies };
    let Origin { scheme, host } = Origin::of(request, proxies);
    if !from_proxy(request, proxies) {
        let origin = format!("{scheme}://{host}");
        // A proxy that nobody told us of may have ended the encryption.
        let external = storage.config.external_url.as_ref().map(|url| url.origin().ascii_serialization());
        let is_external = |url: &String| url.split_once("://").is_some_and(|(_, name)| name == host);
        return external.filter(is_external).unwrap_or(origin);
    }
    // A proxy sends its port separately from its name.
    let port = header_text(request, "x-forwarded-port").filter(|port| !["80", "443"].contains(port));
    match port {
        Some(port) if header_text(request, "x-forwarded-host").is_some() && !host.contains(':') => {
            format!("{scheme}://{host}:{port}")
        }
        _ => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn read(headers: &[(&'static str, &str)]) -> Result<Announced, TusError> {
        let request = headers.iter().fold(TestRequest::post(), |request, header| request.insert_header(*header));
        Announced::of_request(&request.to_http_request())
    }

    #[test]
    fn an_id_survives_a_round_trip() {
        let id = UploadId {
            bucket: "docs".to_owned(),
            key: ObjectKey::parse("a/b c.txt").expect("key"),
            version: Uuid::new_v4(),
        };
        assert_eq!(UploadId::parse(&id.to_text()).expect("id"), id);
        for text in ["", "nonsense!", &URL_SAFE_NO_PAD.encode("docs/a"), &URL_SAFE_NO_PAD.encode("a/../b/x")] {
            assert!(UploadId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metadata_is_pairs_of_name_and_base64() {
        let metadata = format!("bucketName {},objectName {},empty", STANDARD.encode("docs"), STANDARD.encode("a.txt"));
        let announced = read(&[("upload-length", "5"), ("upload-metadata", &metadata)]).expect("announced");
        assert_eq!((announced.bucket_name.as_str(), announced.object_name.as_str()), ("docs", "a.txt"));
        assert_eq!((announced.size, announced.mime()), (Some(5), "application/octet-stream"));
        for refused in ["", "a b c", "a !", "a YQ==,a YQ==", " "] {
            assert!(read(&[("upload-length", "5"), ("upload-metadata", refused)]).is_err(), "{refused:?}");
        }
        for lengths in [&[("upload-length", "x")][..], &[("upload-defer-length", "2")], &[], &[("upload-length", "-1")]]
        {
            let headers = [lengths, &[("upload-metadata", metadata.as_str())]].concat();
            assert!(read(&headers).is_err(), "{lengths:?}");
        }
    }

    #[test]
    fn seconds_become_a_max_age() {
        let with = |text: &str| Announced { cache_control: Some(text.to_owned()), ..Announced::default() };
        assert_eq!(with("3600").cache_control(), "max-age=3600");
        assert_eq!(with("public").cache_control(), "no-cache");
        assert_eq!(Announced::default().cache_control(), "no-cache");
    }
}
