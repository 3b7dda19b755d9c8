//! `/storage/v1`: objects in buckets, rows in PostgreSQL, bytes in files.
//!
//! A permission is checked by running the caller's own statement on `storage.objects` or `storage.buckets` and rolling it back. The
//! write itself runs as service_role. No connection is held while bytes are transferred. Reference: supabase/storage.

mod backend;
mod buckets;
mod config;
mod copy;
mod delete;
mod download;
mod error;
pub mod fetch;
mod fields;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_input;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
mod key;
mod list;
pub mod metrics;
pub mod migrate;
mod per_client;
mod queries;
mod receive;
mod render;
mod resumable;
mod routes;
mod s3;
mod sign;
mod signed;
mod sigv4;
mod sniff;
pub mod sweep;
mod upload;

use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;

use crate::config::{Secret, TrustedProxies};
use crate::db::{Client, DbError, Pool, Statement, Transaction};
use crate::http::span;
use crate::jwt::AcceptedKeys;
use crate::jwt::bearer::{Bearer, BearerError, token_of};
use crate::jwt::caller::Caller;
use backend::Store;
pub use backend::bucket::{Bucket, BucketEntry, Piece};
pub use backend::{Archiving, Place, hold_removals};
pub use config::{BackendConfig, Mode, S3StoreConfig, StorageConfig};
pub use error::StorageError;
use key::ObjectKey;
use per_client::PerClientLimit;
use render::Renderer;
use resumable::Writers;
pub use routes::configure;
use s3::Completions;
use signed::UrlSigner;

/// How long a writer waits for another writer of the same key.
const LOCK_WAIT: &str = "5s";

/// Settings of all transactions that the server itself runs.
const SERVICE_SETTINGS: [(&str, &str); 2] = [("storage.allow_delete_query", "true"), ("lock_timeout", LOCK_WAIT)];

/// Settings of the transaction that writes the row of a stored file. Triggers on `storage.objects` read the detected media type in
/// `storage.detected_mimetype`, which is not set while permissions are tested.
fn landing_settings<'a>(operation: &'a str, detected: &'a str) -> [(&'a str, &'a str); 4] {
    let [allow_delete, lock_timeout] = SERVICE_SETTINGS;
    [("storage.operation", operation), allow_delete, ("storage.detected_mimetype", detected), lock_timeout]
}

/// The state shared by the handlers. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    db: Pool,
    tokens: Bearer,
    signer: UrlSigner,
    files: Store,
    renderer: Renderer,
    /// Requests of this process that write resumable uploads.
    writers: Writers,
    completions: Completions,
    /// Downloads per client, if each holds a connection to the store for as long as the client reads.
    readers: Option<PerClientLimit>,
    /// In S3 requests with a user's token, the key that signs for that user.
    anon_key: Option<Secret>,
    config: std::sync::Arc<StorageConfig>,
}

impl Storage {
    /// `db` must log in as the authenticator; `secret` is the project's JWT secret.
    ///
    /// Errors: the client of an S3 store cannot be built.
    pub fn new(config: &StorageConfig, db: Pool, tokens: Bearer, secret: &Secret) -> anyhow::Result<Self> {
        Ok(Self {
            db,
            tokens,
            signer: UrlSigner::new(secret),
            files: Store::of(&config.backend)?,
            renderer: Renderer::default(),
            writers: Writers::default(),
            completions: Completions::default(),
            readers: match &config.backend {
                BackendConfig::Folder(_) => None,
                BackendConfig::S3(store) => Some(PerClientLimit::half_of(store.max_sockets)),
            },
            anon_key: None,
            config: std::sync::Arc::new(config.clone()),
        })
    }

    pub fn trusted_proxies(&self) -> &TrustedProxies {
        &self.config.trusted_proxies
    }

    /// Sets the project's anon key, which S3 clients sign with when they send a user's token.
    pub fn with_anon_key(mut self, key: &str) -> Self {
        self.anon_key = Some(Secret::new(key));
        self
    }

    /// Also accepts links that were signed with these keys.
    pub fn accepting(mut self, keys: &[AcceptedKeys]) -> Self {
        self.signer = self.signer.accepting(keys);
        self
    }

    /// The caller of a route that requires a token.
    fn require_caller(&self, request: &HttpRequest) -> Result<Caller, StorageError> {
        let headers = request.headers();
        let caller = self.tokens.caller(headers).map_err(|error| match error {
            BearerError::Missing if !headers.contains_key(AUTHORIZATION) => {
                StorageError::Invalid(error::NO_AUTHORIZATION.to_owned())
            }
            BearerError::Missing => StorageError::AccessDenied(error::NOT_A_TOKEN.to_owned()),
            BearerError::Invalid => {
                StorageError::AccessDenied(fault_of(token_of(headers).unwrap_or_default()).to_owned())
            }
            BearerError::Expired => StorageError::AccessDenied("\"exp\" claim timestamp check failed".to_owned()),
        })?;
        span::acts_as(caller.role.as_str().into());
        Ok(caller)
    }

    /// The caller of a route whose schema does not require the header; without it, the verifier's error is returned.
    fn require_token(&self, request: &HttpRequest) -> Result<Caller, StorageError> {
        self.require_caller(request).map_err(|error| match error {
            StorageError::Invalid(_) => StorageError::AccessDenied(error::NOT_A_TOKEN.to_owned()),
            other => other,
        })
    }

    async fn as_service(&self) -> Result<Transaction, StorageError> {
        Ok(self.db.as_caller(&Caller::anonymous("service_role"), &SERVICE_SETTINGS).await?)
    }

    /// Reads as service_role in one round trip. `ask` must send its statements before it awaits an answer.
    async fn look_as_service<T, const N: usize>(
        &self,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let service = Caller::anonymous("service_role");
        self.db.look_as_caller(&service, &SERVICE_SETTINGS, statements, ask).await?
    }

    /// The transaction that writes the row of a stored file, and the results of its first statements. `ask` must send its statements
    /// before it awaits an answer.
    async fn as_service_landing<T, const N: usize>(
        &self,
        operation: &str,
        detected: &str,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<(Transaction, T), StorageError> {
        let (service, settings) = (Caller::anonymous("service_role"), landing_settings(operation, detected));
        let (tx, asked) = self.db.as_caller_with(&service, &settings, statements, ask).await?;
        match asked {
            Ok(asked) => Ok((tx, asked)),
            Err(error) => {
                tx.rollback().await?;
                Err(error)
            }
        }
    }

    /// The same transaction in one round trip, with what became of COMMIT beside the results.
    async fn commit_landing<T, const N: usize>(
        &self,
        operation: &str,
        detected: &str,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> T,
    ) -> Result<(T, Result<(), DbError>), DbError> {
        let (service, settings) = (Caller::anonymous("service_role"), landing_settings(operation, detected));
        self.db.commit_as_caller(&service, &settings, statements, ask).await
    }

    /// A transaction with the caller's claims and role, and the request settings for policies.
    async fn as_caller(&self, caller: &Caller, scope: &Scope) -> Result<Transaction, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        Ok(self.db.as_caller(caller, &scope.settings(caller, &subject)).await?)
    }

    /// Runs statements as the caller and rolls them back, in one round trip. `ask` must send them before it awaits an answer.
    async fn look_as_caller<T, const N: usize>(
        &self,
        caller: &Caller,
        scope: &Scope,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        self.db.look_as_caller(caller, &scope.settings(caller, &subject), statements, ask).await?
    }

    /// The same, begun as service_role, for statements that need no permission before one that does. [`queries::set_role`]
    /// switches the role.
    async fn look_before_caller<T, const N: usize>(
        &self,
        caller: &Caller,
        scope: &Scope,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        let settings = scope.settings(caller, &subject);
        self.db.look_as_caller(&as_service(caller), &settings, statements, ask).await?
    }

    /// A transaction that begins as service_role and may switch with [`queries::set_role`].
    async fn before_caller(&self, caller: &Caller, scope: &Scope) -> Result<Transaction, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        Ok(self.db.as_caller(&as_service(caller), &scope.settings(caller, &subject)).await?)
    }

    /// The size limit of an object in this bucket. A folder's placeholder may have any type, so it must be empty.
    fn size_limit(&self, bucket: &queries::Bucket, key: &ObjectKey) -> u64 {
        if key.is_placeholder() {
            return 0;
        }
        let own = bucket.file_size_limit.and_then(|limit| u64::try_from(limit).ok());
        own.map_or(self.config.file_size_limit, |own| own.min(self.config.file_size_limit))
    }
}

/// The settings of a request that policies can read.
#[derive(Clone, Debug)]
struct Scope {
    operation: String,
    method: String,
    path: String,
    headers: String,
    /// The caller's token as received; empty if there is none, as in most S3 requests.
    token: String,
}

/// service_role with a caller's claims. The settings of [`Scope`] still name the caller's own role, so that `auth.role()` in
/// their policies returns it.
fn as_service(caller: &Caller) -> Caller {
    Caller { role: "service_role".to_owned(), claims: caller.claims.clone() }
}

impl Scope {
    /// The settings of a transaction; `subject` is the caller's.
    fn settings<'a>(&'a self, caller: &'a Caller, subject: &'a str) -> [(&'a str, &'a str); 8] {
        [
            ("request.jwt.claim.role", caller.role.as_str()),
            ("request.jwt.claim.sub", subject),
            ("request.jwt", &self.token),
            ("request.headers", &self.headers),
            ("request.method", &self.method),
            ("request.path", &self.path),
            ("storage.operation", &self.operation),
            ("storage.allow_delete_query", "true"),
        ]
    }

    fn of(request: &HttpRequest, operation: &str) -> Self {
        let headers: serde_json::Map<String, serde_json::Value> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into()))
            .collect();
        let token = token_of(request.headers()).unwrap_or_default();
        Self {
            operation: operation.to_owned(),
            method: request.method().to_string(),
            path: request.path().to_owned(),
            headers: serde_json::Value::Object(headers).to_string(),
            token: token.to_owned(),
        }
    }
}

/// What the reference's verifier says of a token that is not valid.
fn fault_of(token: &str) -> &'static str {
    if token.split('.').count() == 3 { "signature verification failed" } else { error::NOT_A_TOKEN }
}

/// A header's text.
fn header_text<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

/// The part of the request's path after the first `literal`, still percent-encoded.
fn tail<'a>(request: &'a HttpRequest, literal: &str) -> Result<&'a str, StorageError> {
    let path = request.uri().path();
    let found = path.find(literal).map(|at| &path[at + literal.len()..]);
    found.ok_or_else(|| error::no_such_route(request.method(), request))
}

/// Decodes one or more path segments.
fn decoded(raw: &str) -> Result<String, StorageError> {
    let text = percent_encoding::percent_decode_str(raw).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| StorageError::InvalidKey(raw.to_owned()))
}

/// The decoded bucket name at the end of a path.
fn bucket_in(request: &HttpRequest, literal: &str) -> Result<String, StorageError> {
    let raw = tail(request, literal)?;
    let name = decoded(raw.split('/').next().unwrap_or_default())?;
    // No bucket name contains NUL, and PostgreSQL would refuse the parameter.
    if name.contains('\0') { Err(StorageError::NoSuchBucket) } else { Ok(name) }
}

/// The same for routes that tell an impossible name from a missing bucket.
fn valid_bucket_in(request: &HttpRequest, literal: &str) -> Result<String, StorageError> {
    valid_bucket(bucket_in(request, literal)?)
}

fn valid_bucket(name: String) -> Result<String, StorageError> {
    if key::is_bucket_name(&name) { Ok(name) } else { Err(StorageError::InvalidBucketName) }
}

/// What follows the bucket in a path, decoded. Not every key of a row could be written today.
fn name_in(request: &HttpRequest, literal: &str) -> Result<String, StorageError> {
    decoded(tail(request, literal)?.split_once('/').map_or("", |(_, key)| key))
}

/// The decoded bucket and key at the end of a path.
fn bucket_and_key(request: &HttpRequest, literal: &str) -> Result<(String, ObjectKey), StorageError> {
    Ok((bucket_in(request, literal)?, ObjectKey::parse(&name_in(request, literal)?)?))
}

/// The same for routes that tell an impossible name from a missing bucket.
fn valid_bucket_and_key(request: &HttpRequest, literal: &str) -> Result<(String, ObjectKey), StorageError> {
    Ok((valid_bucket_in(request, literal)?, ObjectKey::parse(&name_in(request, literal)?)?))
}
