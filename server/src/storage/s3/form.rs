//! Browser uploads with a signed form: `POST` to a bucket, where the signed policy restricts what may be sent.
//!
//! The policy must have a condition for every field except those of the signature, so nobody can add fields that the signer did
//! not intend. The file comes last and is read after the signature was verified. Anything after it is ignored. Reference:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html>, supabase/storage
//! `src/storage/protocols/s3/policy.ts`, which parses `content-length-range` but does not enforce it.

use std::collections::HashSet;

use actix_multipart::Multipart;
use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use serde_json::{Map, Value};

use super::body::{Body, with_sums};
use super::objects::{self, ClientMetadata, Length};
use super::signature::Signature;
use super::xml::Xml;
use super::{Call, refused};
use crate::storage::key::{ObjectKey, is_bucket_name};
use crate::storage::receive::{coding_of, field_text, unreadable};
use crate::storage::sigv4::encoded_path;
use crate::storage::{Storage, StorageError, decoded, header_text};

/// Maximum number of fields besides the file, and maximum bytes of all fields.
const MOST_FIELDS: usize = 20;
const MOST_BYTES: usize = 64 << 10;
/// Fields of the signature, which need no condition.
const OF_THE_SIGNATURE: [&str; 6] =
    ["policy", "x-amz-signature", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-security-token"];

/// Whether a request is such a form. A signature in the header or query takes precedence.
pub fn is_form(request: &HttpRequest, query: &[(String, String)]) -> bool {
    let is_multipart =
        |kind: &str| kind.get(..19).is_some_and(|start| start.eq_ignore_ascii_case("multipart/form-data"));
    *request.method() == Method::POST
        && header_text(request, "content-type").is_some_and(is_multipart)
        && !header_text(request, "authorization").is_some_and(|text| text.starts_with("AWS4-HMAC-SHA256"))
        && !query.iter().any(|(name, _)| name == "X-Amz-Credential")
}

/// Handles the `POST` of a form.
pub async fn receive(
    storage: web::Data<Storage>,
    request: HttpRequest,
    payload: web::Payload,
    resource: &str,
) -> Result<HttpResponse, StorageError> {
    let bucket = decoded(resource.trim_end_matches('/'))?;
    if !is_bucket_name(&bucket) {
        return Err(StorageError::InvalidBucketName);
    }
    let form = Form::read(Multipart::new(request.headers(), payload)).await?;
    let signature = Signature::of_form(|name| form.field(name))?;
    let policy = form.field("policy").ok_or(StorageError::InvalidSignature("Invalid signature format"))?;
    let (secret, caller) = storage.s3_caller(&signature)?;
    storage.check_region(&signature)?;
    signature.verify_policy(policy, &signature.signing_key(&secret))?;
    let (least, most) = Policy::parse(policy)?.check(&form.fields, &bucket, Utc::now())?;

    let key = form.field("key").unwrap_or_default();
    let missing = || refused(400, "InvalidArgument", "Bucket POST must contain a field named 'key'.");
    let key = Some(key).filter(|key| !key.is_empty()).ok_or_else(missing)?;
    let key = ObjectKey::parse(key)?;
    let most = match storage.config.standard_size_limit {
        0 => most,
        standard => most.min(standard),
    };
    let announced = header_text(&request, "content-length").and_then(|text| text.parse().ok());
    let said = form.said()?;
    let Form { fields, file } = form;
    let body = with_sums(file, fields.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let token = signature.session_token.clone().unwrap_or_default();
    let call = Call { storage, request, caller, token, bucket: bucket.clone(), query: Vec::new(), body, length: None };
    let etag = objects::store(call, key.clone(), said, true, Length::Within { least, most, announced }).await?;
    Ok(answer(&fields, &bucket, &key, &etag))
}

/// The answer that the form requested; 200 by default, as in the reference.
fn answer(fields: &[(String, String)], bucket: &str, key: &ObjectKey, etag: &str) -> HttpResponse {
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let address = field("success_action_redirect").or(field("redirect")).and_then(|text| url::Url::parse(text).ok());
    if let Some(mut address) = address.filter(|address| ["http", "https"].contains(&address.scheme())) {
        address
            .query_pairs_mut()
            .append_pair("bucket", bucket)
            .append_pair("key", key.as_str())
            .append_pair("etag", etag);
        return HttpResponse::SeeOther()
            .insert_header((header::LOCATION, address.as_str()))
            .insert_header((header::ETAG, etag))
            .finish();
    }
    let place = format!("{bucket}/{}", encoded_path(key.as_str()));
    let (status, has_body) = match field("success_action_status") {
        Some("201") => (StatusCode::CREATED, true),
        Some("204") => (StatusCode::NO_CONTENT, false),
        _ => (StatusCode::OK, false),
    };
    let mut response = HttpResponse::build(status);
    response.insert_header((header::ETAG, etag));
    if !has_body {
        return response.finish();
    }
    let mut xml = Xml::new("PostResponse");
    xml.element("Location", place).element("Bucket", bucket).element("Key", key.as_str()).element("ETag", etag);
    xml.answer_with(response)
}

/// A form, read up to its file.
pub struct Form {
    /// Names in lower case. `${filename}` in `key` has been substituted.
    pub fields: Vec<(String, String)>,
    pub file: Body,
}

impl Form {
    pub async fn read(mut form: Multipart) -> Result<Self, StorageError> {
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut left = MOST_BYTES;
        while let Some(field) = form.try_next().await.map_err(unreadable)? {
            let disposition = field.content_disposition().cloned();
            let name = disposition.as_ref().and_then(|d| d.get_name()).unwrap_or_default().to_ascii_lowercase();
            if name == "file" {
                let file_name = disposition.as_ref().and_then(|d| d.get_filename()).unwrap_or_default();
                let file_name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
                for (_, key) in fields.iter_mut().filter(|(name, _)| name == "key") {
                    *key = key.replace("${filename}", file_name);
                }
                // The form is kept with its field, which reads from it.
                let file = futures_util::stream::try_unfold((field, form), |(mut field, form)| async move {
                    let chunk = field.try_next().await.map_err(unreadable)?;
                    Ok(chunk.map(|chunk| (chunk, (field, form))))
                });
                return Ok(Self { fields, file: Box::pin(file) });
            }
            if fields.len() == MOST_FIELDS {
                return Err(refused(400, "InvalidRequest", "The form has too many fields"));
            }
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(StorageError::InvalidSignature("Duplicate form field in POST policy request"));
            }
            let text = field_text(field, left).await?;
            left -= text.len();
            fields.push((name, text));
        }
        Err(refused(400, "InvalidArgument", "POST requires exactly one file upload per request."))
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The metadata in the fields.
    fn said(&self) -> Result<ClientMetadata, StorageError> {
        let metadata: Map<String, Value> = self
            .fields
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix("x-amz-meta-")?.to_owned(), value.clone().into())))
            .collect();
        let mime = self.field("content-type").filter(|text| !text.is_empty()).unwrap_or("application/octet-stream");
        Ok(ClientMetadata {
            mime: mime.to_owned(),
            cache_control: self.field("cache-control").map(str::to_owned),
            content_encoding: coding_of(self.field("content-encoding"))?,
            user_metadata: Value::Object(metadata),
        })
    }
}

/// What the signer allows.
pub struct Policy {
    expiration: String,
    conditions: Vec<Value>,
}

impl Policy {
    pub fn parse(encoded: &str) -> Result<Self, StorageError> {
        let invalid = || StorageError::InvalidSignature("Invalid POST policy");
        let bytes = STANDARD.decode(encoded.trim()).map_err(|_| invalid())?;
        let mut policy: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        let expiration = policy.remove("expiration").and_then(|value| value.as_str().map(str::to_owned));
        let Some(Value::Array(conditions)) = policy.remove("conditions") else {
            return Err(StorageError::InvalidSignature("Invalid policy conditions"));
        };
        let expiration = expiration.ok_or(StorageError::InvalidSignature("Missing policy expiration"))?;
        Ok(Self { expiration, conditions })
    }

    /// Checks the fields against the policy. Returns the minimum and maximum size of the file.
    pub fn check(
        &self,
        fields: &[(String, String)],
        bucket: &str,
        now: DateTime<Utc>,
    ) -> Result<(u64, u64), StorageError> {
        let expiration = DateTime::parse_from_rfc3339(&self.expiration)
            .map_err(|_| StorageError::InvalidSignature("Invalid policy expiration"))?;
        if expiration < now {
            return Err(StorageError::ExpiredToken);
        }
        // The bucket is that of the URL, regardless of any field.
        let value_of = |name: &str| match name {
            "bucket" => Some(bucket),
            _ => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()),
        };
        let mut covered = HashSet::new();
        let (mut least, mut most) = (0, u64::MAX);
        for condition in &self.conditions {
            match Condition::parse(condition)? {
                Condition::Equals(name, value) => {
                    if value_of(&name) != Some(value.as_str()) {
                        return Err(failed(&format!("\"{name}\" does not match")));
                    }
                    covered.insert(name);
                }
                Condition::StartsWith(name, start) => {
                    if !value_of(&name).is_some_and(|value| value.starts_with(&start)) {
                        return Err(failed(&format!("\"{name}\" does not start with \"{start}\"")));
                    }
                    covered.insert(name);
                }
                Condition::Length(from, to) => (least, most) = (least.max(from), most.min(to)),
            }
        }
        let names = fields.iter().map(|(name, _)| name.as_str()).chain(["bucket"]);
        let mut left = names.filter(|name| !OF_THE_SIGNATURE.contains(name) && !name.starts_with("x-ignore-"));
        match left.find(|name| !covered.contains(*name)) {
            Some(name) => Err(failed(&format!("field \"{name}\" is not covered by the policy"))),
            None => Ok((least, most)),
        }
    }
}

fn failed(why: &str) -> StorageError {
    StorageError::AccessDenied(format!("Policy condition failed: {why}"))
}

/// A condition, with its field name in lower case.
enum Condition {
    Equals(String, String),
    StartsWith(String, String),
    Length(u64, u64),
}

impl Condition {
    fn parse(condition: &Value) -> Result<Self, StorageError> {
        let invalid = || StorageError::InvalidSignature("Invalid policy condition");
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match condition {
            Value::Object(pairs) => {
                let mut pairs = pairs.iter();
                let (Some((name, value)), None) = (pairs.next(), pairs.next()) else { return Err(invalid()) };
                Ok(Self::Equals(name.to_ascii_lowercase(), text(value).ok_or_else(invalid)?))
            }
            Value::Array(words) => {
                let [operator, target, value] = words.as_slice() else { return Err(invalid()) };
                let name = || target.as_str().and_then(|name| name.strip_prefix('$')).map(str::to_ascii_lowercase);
                match operator.as_str() {
                    Some("eq") => Ok(Self::Equals(name().ok_or_else(invalid)?, text(value).ok_or_else(invalid)?)),
                    Some("starts-with") => {
                        Ok(Self::StartsWith(name().ok_or_else(invalid)?, text(value).ok_or_else(invalid)?))
                    }
                    Some("content-length-range") => {
                        let number = |value: &Value| text(value).and_then(|text| text.parse().ok());
                        let (least, most) = (number(target), number(value));
                        Ok(Self::Length(least.ok_or_else(invalid)?, most.ok_or_else(invalid)?))
                    }
                    _ => Err(StorageError::InvalidSignature("Unsupported policy condition")),
                }
            }
            _ => Err(StorageError::InvalidSignature("Unsupported policy condition")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(conditions: Value, fields: &[(&str, &str)]) -> Result<(u64, u64), String> {
        let policy = json!({ "expiration": "2026-11-22T10:00:00.000Z", "conditions": conditions });
        let policy = Policy::parse(&STANDARD.encode(policy.to_string())).map_err(|error| error.to_string())?;
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let now = DateTime::parse_from_rfc3339("2026-11-22T09:59:59Z").expect("a time").to_utc();
        policy.check(&fields, "b", now).map_err(|error| error.to_string())
    }

    #[test]
    fn a_form_must_match_its_policy_exactly() {
        let mine = json!([{ "Bucket": "b" }, ["starts-with", "$key", "me/"]]);
        let range = json!([{ "bucket": "b" }, ["eq", "$key", "a"], ["content-length-range", 2, "9"]]);
        for (conditions, fields, expected) in [
            (&mine, vec![("key", "me/a"), ("policy", "x"), ("x-ignore-this", "y")], Ok((0, u64::MAX))),
            (&range, vec![("key", "a")], Ok((2, 9))),
            (&mine, vec![("key", "you/a")], Err("Policy condition failed: \"key\" does not start with \"me/\"")),
            (&range, vec![("key", "b")], Err("Policy condition failed: \"key\" does not match")),
            (&range, vec![], Err("Policy condition failed: \"key\" does not match")),
            (
                &mine,
                vec![("key", "me/a"), ("x-amz-meta-who", "x")],
                Err("Policy condition failed: field \"x-amz-meta-who\" is not covered by the policy"),
            ),
            (
                &json!([["eq", "$key", "a"]]),
                vec![("key", "a")],
                Err("Policy condition failed: field \"bucket\" is not covered by the policy"),
            ),
            (
                &json!([{ "bucket": "other" }]),
                vec![("bucket", "other")],
                Err("Policy condition failed: \"bucket\" does not match"),
            ),
            (&json!([["eq", "key", "a"]]), vec![], Err("Invalid policy condition")),
            (&json!([{ "a": "b", "c": "d" }]), vec![], Err("Invalid policy condition")),
            (&json!([["content-length-range", -1, 2]]), vec![], Err("Invalid policy condition")),
            (&json!([["ends-with", "$key", "a"]]), vec![], Err("Unsupported policy condition")),
            (&json!("all"), vec![], Err("Invalid policy conditions")),
        ] {
            assert_eq!(check(conditions.clone(), &fields), expected.map_err(str::to_owned), "{conditions} {fields:?}");
        }
    }

    #[test]
    fn a_policy_expires() {
        let parse = |policy: Value| Policy::parse(&STANDARD.encode(policy.to_string()));
        let old = parse(json!({ "expiration": "2020-01-01T00:00:00Z", "conditions": [] })).expect("a policy");
        assert_eq!(old.check(&[], "b", Utc::now()).expect_err("over").to_string(), "The provided token has expired.");
        let never = parse(json!({ "conditions": [] })).err().expect("refused").to_string();
        assert_eq!(never, "Missing policy expiration");
        let someday = parse(json!({ "expiration": "someday", "conditions": [] })).expect("a policy");
        assert_eq!(someday.check(&[], "b", Utc::now()).expect_err("no time").to_string(), "Invalid policy expiration");
        assert!(Policy::parse("not base64!").is_err());
    }
}
