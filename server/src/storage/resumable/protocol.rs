//! The headers of resumable uploads.

use std::collections::HashSet;

use actix_web::HttpRequest;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::TusError;
use super::{BASE, SIGNED, parsed};
use crate::storage::key::ObjectKey;
use crate::storage::{Storage, header_text};

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
            bucket: bucket.to_owned(),
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
            (None, Some(_)) => return Err(TusError::Header("upload-defer-length")),
            (None, None) | (Some(_), Some(_)) => return Err(TusError::NoLength),
        }
        let header = header_text(request, "upload-metadata").ok_or(TusError::NoMetadata)?;
        let mut announced = Self { header: Some(header.to_owned()), size, ..Self::default() };
        let mut seen = HashSet::new();
        for pair in header.split(',') {
            let (name, value) = pair.trim_matches(' ').split_once(' ').unwrap_or((pair.trim_matches(' '), ""));
            if name.is_empty() || value.contains(' ') || !seen.insert(name) {
                return Err(TusError::Metadata);
            }
            let value = STANDARD.decode(value).map_err(|_| TusError::Metadata)?;
            let value = String::from_utf8_lossy(&value).into_owned();
            match name {
                "bucketName" => announced.bucket_name = value,
                "objectName" => announced.object_name = value,
                "contentType" => announced.content_type = Some(value),
                "cacheControl" => announced.cache_control = Some(value),
                "metadata" => announced.metadata = Some(value),
                _ => {}
            }
        }
        if announced.bucket_name.contains('\0') {
            return Err(crate::storage::StorageError::NoSuchBucket.into());
        }
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

/// An integer in a header.
pub fn number_in(request: &HttpRequest, name: &'static str) -> Result<Option<u64>, TusError> {
    let Some(text) = header_text(request, name) else { return Ok(None) };
    let well_formed = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|n| well_formed && *n <= 1 << 53);
    number.map(Some).ok_or(TusError::Header(name))
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
        None => {
            let (scheme, host) = {
                let seen = request.connection_info();
                (seen.scheme().to_owned(), seen.host().to_owned())
            };
            // A proxy sends its port separately from its name.
            let port = header_text(request, "x-forwarded-port").filter(|port| !["80", "443"].contains(port));
            match port {
                Some(port) if header_text(request, "x-forwarded-host").is_some() && !host.contains(':') => {
                    format!("{scheme}://{host}:{port}")
                }
                _ => format!("{scheme}://{host}"),
            }
        }
    };
    format!("{origin}{path}/{}", id.to_text())
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
