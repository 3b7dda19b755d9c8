//! `/storage/v1`: objects in buckets, rows in PostgreSQL, bytes in files.
//!
//! A permission is checked by running the caller's own statement on `storage.objects` or `storage.buckets` and rolling it back. The
//! write itself runs as service_role. No connection is held while bytes are transferred. Reference: supabase/storage.

mod backend;
pub mod bring;
mod buckets;
mod config;
mod copy;
mod delete;
mod download;
mod error;
mod fields;
mod key;
mod list;
pub mod metrics;
pub mod migrate;
mod queries;
mod receive;
mod render;
mod resumable;
mod routes;
mod s3;
mod shares;
mod sign;
mod signed;
mod sigv4;
mod sniff;
pub mod sweep;
mod upload;

use actix_web::HttpRequest;

use crate::config::Secret;
use crate::db::{Client, Pool, Statement, Transaction};
use crate::http::span;
use crate::jwt::AcceptedKeys;
use crate::jwt::bearer::{Bearer, BearerError, token_of};
use crate::jwt::caller::Caller;
use backend::Store;
pub use backend::bucket::{Bucket, Lying, Piece};
pub use backend::{Archiving, Place, hold_removals};
pub use config::{BackendConfig, Mode, S3StoreConfig, StorageConfig};
pub use error::StorageError;
use key::ObjectKey;
use render::Studio;
use resumable::Writers;
pub use routes::configure;
use shares::Shares;
use signed::UrlSigner;

/// How long a writer waits for another one of the same key.
const LOCK_WAIT: &str = "5s";

/// What every transaction of the server's own sets.
const SERVICE_SETTINGS: [(&str, &str); 2] = [("storage.allow_delete_query", "true"), ("lock_timeout", LOCK_WAIT)];

/// What the handlers share. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    db: Pool,
    tokens: Bearer,
    signer: UrlSigner,
    files: Store,
    studio: Studio,
    /// Requests of this process that write resumable uploads.
    writers: Writers,
    /// Downloads by client, where each holds a connection to the store for as long as the client reads.
    readers: Option<Shares>,
    /// With a user's token it signs for that user at the S3 protocol.
    anon_key: Option<Secret>,
    config: std::sync::Arc<StorageConfig>,
}

impl Storage {
    /// `db` logs in as the authenticator; `secret` is the project's JWT secret.
    ///
    /// Errors: the client of an S3 store cannot be built.
    pub fn new(config: &StorageConfig, db: Pool, tokens: Bearer, secret: &Secret) -> anyhow::Result<Self> {
        Ok(Self {
            db,
            tokens,
            signer: UrlSigner::new(secret),
            files: Store::of(&config.backend)?,
            studio: Studio::default(),
            writers: Writers::default(),
            readers: match &config.backend {
                BackendConfig::Folder(_) => None,
                BackendConfig::S3(store) => Some(Shares::half_of(store.max_sockets)),
            },
            anon_key: None,
            config: std::sync::Arc::new(config.clone()),
        })
    }

    /// Names the project's anon key, which clients of the S3 protocol sign with beside a user's token.
    pub fn with_anon_key(mut self, key: &str) -> Self {
        self.anon_key = Some(Secret::new(key));
        self
    }

    /// Takes links that further secrets have signed as well.
    pub fn accepting(mut self, keys: &[AcceptedKeys]) -> Self {
        self.signer = self.signer.accepting(keys);
        self
    }

    /// The caller of a route that needs a token.
    fn require_caller(&self, request: &HttpRequest) -> Result<Caller, StorageError> {
        let caller = self.tokens.caller(request.headers()).map_err(|error| match error {
            BearerError::Missing => StorageError::Invalid(error::NO_AUTHORIZATION.to_owned()),
            BearerError::Invalid => StorageError::AccessDenied(error::NOT_A_TOKEN.to_owned()),
            BearerError::Expired => StorageError::AccessDenied("\"exp\" claim timestamp check failed".to_owned()),
        })?;
        span::acts_as(caller.role.as_str().into());
        Ok(caller)
    }

    /// The caller of a route whose schema does not name the header: without it the verifier speaks.
    fn require_token(&self, request: &HttpRequest) -> Result<Caller, StorageError> {
        self.require_caller(request).map_err(|error| match error {
            StorageError::Invalid(_) => StorageError::AccessDenied(error::NOT_A_TOKEN.to_owned()),
            other => other,
        })
    }

    async fn as_service(&self) -> Result<Transaction, StorageError> {
        Ok(self.db.as_caller(&Caller::anonymous("service_role"), &SERVICE_SETTINGS).await?)
    }

    /// Reads as service_role, in one round trip. `ask` sends its statements before it awaits an answer.
    async fn look_as_service<T, const N: usize>(
        &self,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let service = Caller::anonymous("service_role");
        self.db.look_as_caller(&service, &SERVICE_SETTINGS, statements, ask).await?
    }

    /// The transaction that writes the row of a file whose bytes are there, and what its first statements answered.
    /// Triggers on `storage.objects` read what the bytes show in `storage.detected_mimetype`; at a trial of permission it
    /// is not set. `ask` sends its statements before it awaits an answer.
    async fn as_service_landing<T, const N: usize>(
        &self,
        operation: &str,
        detected: &str,
        statements: [&str; N],
        ask: impl AsyncFnOnce(&Client, [Statement; N]) -> Result<T, StorageError>,
    ) -> Result<(Transaction, T), StorageError> {
        let [allow_delete, lock_timeout] = SERVICE_SETTINGS;
        let settings =
            [("storage.operation", operation), allow_delete, ("storage.detected_mimetype", detected), lock_timeout];
        let service = Caller::anonymous("service_role");
        let (tx, asked) = self.db.as_caller_with(&service, &settings, statements, ask).await?;
        match asked {
            Ok(asked) => Ok((tx, asked)),
            Err(error) => {
                tx.rollback().await?;
                Err(error)
            }
        }
    }

    /// A transaction with the caller's claims and role, and all that policies may ask of the request.
    async fn as_caller(&self, caller: &Caller, scope: &Scope) -> Result<Transaction, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        Ok(self.db.as_caller(caller, &scope.settings(caller, &subject)).await?)
    }

    /// Statements as the caller of which nothing stays, in one round trip. `ask` sends them before it awaits an answer.
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

    /// The same, begun as service_role: for statements that need no permission and precede one that does, as
    /// [`queries::set_role`] then says.
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

    /// A transaction that begins as service_role and goes on as [`queries::set_role`] says.
    async fn before_caller(&self, caller: &Caller, scope: &Scope) -> Result<Transaction, StorageError> {
        let subject = caller.subject().unwrap_or_default();
        Ok(self.db.as_caller(&as_service(caller), &scope.settings(caller, &subject)).await?)
    }

    /// The most bytes an object of this bucket may have.
    fn size_limit(&self, bucket: &queries::Bucket) -> u64 {
        let own = bucket.file_size_limit.and_then(|limit| u64::try_from(limit).ok());
        own.map_or(self.config.file_size_limit, |own| own.min(self.config.file_size_limit))
    }
}

/// What policies may ask of a request.
#[derive(Clone, Debug)]
struct Scope {
    operation: String,
    method: String,
    path: String,
    headers: String,
    /// The caller's token as it came; empty where there is none, as in most requests of the S3 protocol.
    token: String,
}

/// service_role with the claims of a caller, whose own role the settings of [`Scope`] still name: that is what
/// `auth.role()` answers to the caller's policies.
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

/// A header's text.
fn header_text<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

/// What follows the first `literal` in the request's path, as the client encoded it.
fn tail<'a>(request: &'a HttpRequest, literal: &str) -> Result<&'a str, StorageError> {
    let path = request.uri().path();
    let found = path.find(literal).map(|at| &path[at + literal.len()..]);
    found.ok_or_else(|| StorageError::NoSuchRoute(format!("{}:{}", request.method(), request.path())))
}

/// Decodes a segment or more of a path.
fn decoded(raw: &str) -> Result<String, StorageError> {
    let text = percent_encoding::percent_decode_str(raw).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| StorageError::InvalidKey(raw.to_owned()))
}

/// The bucket that a path ends with, decoded.
fn bucket_in(request: &HttpRequest, literal: &str) -> Result<String, StorageError> {
    let raw = tail(request, literal)?;
    let name = decoded(raw.split('/').next().unwrap_or_default())?;
    // No bucket is called so; PostgreSQL would not even take the question.
    if name.contains('\0') { Err(StorageError::NoSuchBucket) } else { Ok(name) }
}

/// The bucket and the key that a path ends with, decoded.
fn bucket_and_key(request: &HttpRequest, literal: &str) -> Result<(String, ObjectKey), StorageError> {
    let bucket = bucket_in(request, literal)?;
    let raw = tail(request, literal)?.split_once('/').map_or("", |(_, key)| key);
    Ok((bucket, ObjectKey::parse(&decoded(raw)?)?))
}
