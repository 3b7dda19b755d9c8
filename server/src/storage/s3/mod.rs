//! The S3 protocol at `/s3`: the requests that aws-cli, the AWS SDKs, rclone and boto3 make, on the same rows and files.
//!
//! Requests signed with the project's keys act as service_role. Requests with a session token (the project's reference and anon key as
//! keys, a user's token as session token) act as that user, under their policies. Only path-style addresses are supported. Errors are
//! XML with their true status. Reference: supabase/storage `src/http/routes/s3`.

mod body;
mod form;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
mod listing;
mod multipart;
mod objects;
mod signature;
pub mod xml;

use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::TryStreamExt;

use self::body::Body;
pub use self::multipart::Completions;
use self::signature::{Signature, query_of};
use super::copy::Conditions;
use super::download::date_in;
use super::error::StorageError;
use super::key::{ObjectKey, is_bucket_name};
use super::receive::unreadable;
use super::{Scope, Storage, decoded, header_text, tail};
use crate::http::context::{self, PresentedKey};
use crate::http::span;
use crate::jwt::caller::Caller;

/// Maximum size of XML in a request, in bytes: a thousand keys, ten thousand parts.
const LONGEST_XML: usize = 4 << 20;

/// An error with its S3 code.
pub fn refused(status: u16, code: &'static str, message: &'static str) -> StorageError {
    StorageError::S3 { status, code, message }
}

/// A request with a verified signature.
pub struct Call {
    pub storage: web::Data<Storage>,
    pub request: HttpRequest,
    pub caller: Caller,
    /// The verified session token; empty if a key of the project signed.
    pub token: String,
    pub bucket: String,
    pub query: Vec<(String, String)>,
    pub body: Body,
    /// The announced length of the body, if any.
    pub length: Option<u64>,
}

impl Call {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether names in a listing are percent-encoded.
    fn wants_encoded(&self) -> Result<bool, StorageError> {
        match self.parameter("encoding-type") {
            None | Some("") => Ok(false),
            Some("url") => Ok(true),
            Some(_) => Err(StorageError::InvalidParameter("Invalid Parameter encoding-type".to_owned())),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.parameter(name).is_some()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header_text(&self.request, name)
    }

    pub fn scope(&self, operation: &str) -> Scope {
        // Any other token in the request does not belong to the caller.
        Scope { token: self.token.clone(), ..Scope::of(&self.request, &format!("storage.s3.{operation}")) }
    }

    /// An integer parameter.
    pub fn number(&self, name: &str) -> Result<Option<i64>, StorageError> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| *number >= 0);
        number.map(Some).ok_or_else(|| StorageError::InvalidParameter(format!("Invalid Parameter {name}")))
    }

    /// The whole body, which is XML.
    pub async fn xml(&mut self) -> Result<Vec<u8>, StorageError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.body.try_next().await? {
            if bytes.len() + chunk.len() > LONGEST_XML {
                return Err(StorageError::EntityTooLarge);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// Handles every request to `/s3`.
pub async fn serve(storage: web::Data<Storage>, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let resource = tail(&request, "/s3").map(|rest| rest.trim_start_matches('/').to_owned()).unwrap_or_default();
    let is_head = *request.method() == Method::HEAD;
    match answer(storage, request, payload, &resource).await {
        Ok(response) => response,
        Err(error) => {
            error.log();
            let status = error.true_status();
            let mut response =
                xml::error(status, error.code(), &error.to_string(), &decoded(&resource).unwrap_or_default());
            if matches!(error, StorageError::Unavailable(_) | StorageError::SlowDown | StorageError::Overloaded) {
                response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
            }
            if is_head { response.drop_body().map_into_boxed_body() } else { response }
        }
    }
}

async fn answer(
    storage: web::Data<Storage>,
    request: HttpRequest,
    payload: web::Payload,
    resource: &str,
) -> Result<HttpResponse, StorageError> {
    let query = query_of(&request);
    if form::is_form(&request, &query) {
        return form::receive(storage, request, payload, resource).await;
    }
    let signature = Signature::of_request(&request, &query)?;
    let (secret, caller) = storage.s3_caller(&signature)?;
    storage.check_region(&signature)?;
    let key = signature.signing_key(&secret);
    let hosts = storage.s3_hosts(&request);
    signature.verify(&request, &query, &storage.config.s3_prefix, &hosts, &key)?;
    let raw: Body = Box::pin(payload.map_err(unreadable));
    let (body, length) = body::of_request(&request, &signature, &key, raw)?;
    let (bucket, name) = resource.split_once('/').unwrap_or((resource, ""));
    let (bucket, name) = (decoded(bucket)?, decoded(name)?);
    let method = request.method().clone();
    let token = signature.session_token.clone().unwrap_or_default();
    let call = Call { storage, request, caller, token, bucket, query, body, length };
    if call.bucket.is_empty() {
        return match method {
            Method::GET => listing::buckets(call).await,
            _ => Err(not_there()),
        };
    }
    if !is_bucket_name(&call.bucket) {
        return Err(StorageError::InvalidBucketName);
    }
    if name.is_empty() { of_bucket(call, &method).await } else { of_object(call, &method, &name).await }
}

/// S3's version id of objects in a bucket without versioning.
const ONLY_VERSION: &str = "null";

/// Subresources of a bucket that are not supported, such as policies and rules.
const UNSERVED: [&str; 23] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "website",
];

async fn of_bucket(call: Call, method: &Method) -> Result<HttpResponse, StorageError> {
    if UNSERVED.iter().any(|name| call.has(name)) || call.has("tagging") {
        return Err(not_there());
    }
    match *method {
        Method::GET if call.has("location") => listing::location(call).await,
        Method::GET if call.has("versioning") => listing::versioning(call).await,
        Method::GET if call.has("versions") => listing::versions(call).await,
        Method::GET if call.has("uploads") => multipart::list_uploads(call).await,
        Method::GET => listing::objects(call).await,
        Method::HEAD => listing::head_bucket(call).await,
        Method::PUT if call.has("versioning") => Err(not_there()),
        Method::PUT => listing::create_bucket(call).await,
        Method::DELETE => listing::delete_bucket(call).await,
        Method::POST if call.has("delete") => objects::delete_many(call).await,
        _ => Err(not_there()),
    }
}

async fn of_object(call: Call, method: &Method, name: &str) -> Result<HttpResponse, StorageError> {
    if UNSERVED.iter().any(|name| call.has(name)) || call.has("torrent") || call.has("select") {
        return Err(not_there());
    }
    if call.parameter("versionId").is_some_and(|id| id != ONLY_VERSION) {
        return Err(no_such_version());
    }
    if *method == Method::DELETE && !call.has("uploadId") && !call.has("tagging") {
        // Not every key of a row could be written today.
        return objects::delete(call, name).await;
    }
    let key = ObjectKey::parse(name)?;
    match *method {
        Method::GET if call.has("uploadId") => multipart::list_parts(call, key).await,
        Method::GET if call.has("tagging") => objects::tagging(call, key).await,
        Method::GET | Method::HEAD => objects::read(call, key).await,
        _ if call.has("tagging") => Err(not_there()),
        Method::PUT if call.has("uploadId") && call.header("x-amz-copy-source").is_some() => {
            multipart::copy_part(call, key).await
        }
        Method::PUT if call.has("uploadId") => multipart::upload_part(call, key).await,
        Method::PUT if call.header("x-amz-copy-source").is_some() => objects::copy(call, key).await,
        Method::PUT => objects::put(call, key).await,
        Method::POST if call.has("uploads") => multipart::create(call, key).await,
        Method::POST if call.has("uploadId") => multipart::complete(call, key).await,
        Method::DELETE if call.has("uploadId") => multipart::abort(call, key).await,
        _ => Err(not_there()),
    }
}

fn not_there() -> StorageError {
    refused(501, "NotImplemented", "A header or query you provided requests a feature that is not implemented.")
}

fn no_such_version() -> StorageError {
    refused(404, "NoSuchVersion", "The specified version does not exist.")
}

/// The bucket and key in `x-amz-copy-source`.
fn copy_source(call: &Call) -> Result<(String, String), StorageError> {
    let text = call.header("x-amz-copy-source").unwrap_or_default();
    let (text, version) = text.split_once("?versionId=").unwrap_or((text, ONLY_VERSION));
    if version != ONLY_VERSION {
        return Err(no_such_version());
    }
    let path = decoded(text)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        return Err(StorageError::InvalidBucketName);
    }
    if key.is_empty() || path.contains('\0') {
        return Err(refused(400, "MissingParameter", "Missing Required Parameter CopySource"));
    }
    Ok((bucket.to_owned(), key.to_owned()))
}

/// The preconditions on the source of a copy.
fn source_conditions(call: &Call) -> Conditions {
    let text = |name: &str| call.header(name).map(str::to_owned);
    let date = |name: &str| date_in(&call.request, name);
    Conditions {
        if_match: text("x-amz-copy-source-if-match"),
        if_none_match: text("x-amz-copy-source-if-none-match"),
        if_modified_since: date("x-amz-copy-source-if-modified-since"),
        if_unmodified_since: date("x-amz-copy-source-if-unmodified-since"),
    }
}

impl Storage {
    /// Refuses another region if the region is enforced.
    fn check_region(&self, signature: &Signature) -> Result<(), StorageError> {
        if self.config.s3_enforce_region && signature.region() != self.config.s3_region {
            return Err(refused(400, "AuthorizationHeaderMalformed", "The region is not the one of this server"));
        }
        Ok(())
    }

    /// The secret that the signature must have been made with, and who the request acts as.
    fn s3_caller(&self, signature: &Signature) -> Result<(String, Caller), StorageError> {
        let (secret, caller) = self.owner_of(signature)?;
        span::acts_as(caller.role.as_str().into());
        context::presents(|| PresentedKey::S3(signature.access_key.as_str().into()));
        Ok((secret, caller))
    }

    fn owner_of(&self, signature: &Signature) -> Result<(String, Caller), StorageError> {
        if let Some(token) = &signature.session_token {
            let mut headers = header::HeaderMap::new();
            let bearer = header::HeaderValue::from_str(&format!("Bearer {token}"));
            let bearer = bearer.map_err(|_| StorageError::AccessDenied("Invalid Compact JWS".to_owned()))?;
            headers.insert(header::AUTHORIZATION, bearer);
            let caller = self.tokens.caller(&headers).map_err(|error| StorageError::AccessDenied(error.to_string()))?;
            let secret = self
                .anon_key
                .as_ref()
                .ok_or_else(|| StorageError::AccessDenied("Missing tenant anon key".to_owned()))?;
            return Ok((secret.reveal().to_owned(), caller));
        }
        let Some(keys) = &self.config.s3_keys else {
            let message = "Missing S3 Protocol Access Key ID or Secret Key Environment variables";
            return Err(StorageError::AccessDenied(message.to_owned()));
        };
        if keys.access_key != signature.access_key {
            let message = "The Access Key Id you provided does not exist in our records.";
            return Err(refused(403, "InvalidAccessKeyId", message));
        }
        Ok((keys.secret_key.reveal().to_owned(), Caller::anonymous("service_role")))
    }

    /// The host names by which a client may have called this server: its own, or that of a proxy in front. The signature proves
    /// which one was used.
    fn s3_hosts(&self, request: &HttpRequest) -> Vec<String> {
        let header = |name: &str| header_text(request, name).map(str::to_owned);
        let mut hosts: Vec<String> = header("host").into_iter().collect();
        if let Some(forwarded) = header("x-forwarded-host") {
            let forwarded = forwarded.split(',').next().unwrap_or_default().trim().to_owned();
            if let Some(port) = header("x-forwarded-port") {
                hosts.push(format!("{forwarded}:{port}"));
            }
            hosts.push(forwarded);
        }
        let public = self.config.public_url.as_ref().and_then(|url| url::Url::parse(url).ok());
        if let Some(url) = public
            && let Some(host) = url.host_str()
        {
            hosts.push(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")));
        }
        hosts
    }
}
