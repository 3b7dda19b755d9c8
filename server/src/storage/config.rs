//! Settings of storage, under the names that Supabase Storage uses.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use super::render::ImageConfig;
use crate::config::{Reader, Secret, TrustedProxies};

const MIB: u64 = 1024 * 1024;

/// How storage is served, which decides some defaults: those of hosted Supabase, or those of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Full,
    /// As a drop-in for Supabase's server.
    DropIn,
}

/// Settings of storage.
#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// `UPLOAD_FILE_SIZE_LIMIT`, bytes, default 50 MiB: the largest object, whatever its bucket allows.
    pub file_size_limit: u64,
    /// `UPLOAD_FILE_SIZE_LIMIT_STANDARD`, bytes: a smaller limit for uploads in one request; 0, the default, means none.
    pub standard_size_limit: u64,
    /// `UPLOAD_SIGNED_URL_EXPIRATION_TIME`, seconds, default two hours (`serve --only storage`: 60 s): lifetime of a signed
    /// upload URL.
    pub upload_url_life: Duration,
    /// `STORAGE_EMPTY_BUCKET_MAX`, default 200,000: buckets with more objects cannot be emptied.
    pub empty_bucket_max: i64,
    /// `RESPONSE_S_MAXAGE`, seconds, default 0: `s-maxage` for shared caches.
    pub shared_max_age: u64,
    /// `REQUEST_HARD_LIMITS_ENABLED`: at most 1,000 keys in one removal.
    pub hard_limits: bool,
    /// `TUS_URL_EXPIRY_MS`, default one hour: lifetime of an unfinished resumable upload.
    pub resumable_life: Duration,
    /// `STORAGE_PUBLIC_URL`: scheme and host in the URLs of resumable uploads; by default those of the request.
    pub public_url: Option<String>,
    /// `API_EXTERNAL_URL`: its scheme is that of requests to its host.
    pub external_url: Option<url::Url>,
    /// `S3_PROTOCOL_ACCESS_KEY_ID` and `S3_PROTOCOL_ACCESS_KEY_SECRET`: S3 requests signed with them act as service_role.
    pub s3_keys: Option<S3Keys>,
    /// `STORAGE_S3_REGION` or `REGION`, default `local`: the region of the S3 protocol.
    pub s3_region: String,
    /// `S3_PROTOCOL_ENFORCE_REGION`: whether clients must use that region.
    pub s3_enforce_region: bool,
    /// `S3_PROTOCOL_PREFIX`: the prefix that a proxy strips from the signed paths.
    pub s3_prefix: String,
    /// Image transformation.
    pub images: ImageConfig,
    /// Proxies whose forwarded client addresses are trusted.
    pub trusted_proxies: TrustedProxies,
    /// `STORAGE_BACKEND`: where files are stored.
    pub backend: BackendConfig,
}

/// Where files are stored.
#[derive(Clone, Debug)]
pub enum BackendConfig {
    /// `STORAGE_BACKEND=file`, the default. `FERROBASE_STORAGE_DIR`, default `<data dir>/storage`. Without it,
    /// `STORAGE_FILE_BACKEND_PATH` is a folder written by Supabase Storage, with the files in `<bucket>/<tenant>`.
    Folder(PathBuf),
    /// `STORAGE_BACKEND=s3`.
    S3(Box<S3StoreConfig>),
}

/// An S3-compatible server that stores the files.
#[derive(Clone, Debug)]
pub struct S3StoreConfig {
    /// `STORAGE_S3_ENDPOINT` (`GLOBAL_S3_ENDPOINT`): by default Amazon's endpoint of the region.
    pub endpoint: url::Url,
    /// `STORAGE_S3_BUCKET` (`GLOBAL_S3_BUCKET`).
    pub bucket: String,
    /// `STORAGE_S3_REGION` or `REGION`, default `us-east-1`.
    pub region: String,
    /// `STORAGE_S3_FORCE_PATH_STYLE` (`GLOBAL_S3_FORCE_PATH_STYLE`): puts the bucket into the path instead of the host name.
    pub path_style: bool,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, and `AWS_SESSION_TOKEN` for temporary credentials.
    pub access_key: String,
    pub secret_key: Secret,
    pub session_token: Option<Secret>,
    /// `PROJECT_REF` or `TENANT_ID`, default `storage-single-tenant`: prefix of all keys.
    pub tenant: String,
    /// `STORAGE_S3_CLIENT_TIMEOUT`, milliseconds, default 30 s: the longest time without data from the store.
    pub timeout: Duration,
    /// `STORAGE_S3_MAX_SOCKETS` (`GLOBAL_S3_MAX_SOCKETS`), default 200: parallel requests to the store.
    pub max_sockets: usize,
    /// `STORAGE_S3_UPLOAD_PART_SIZE`, bytes, default 16 MiB, at least 5 MiB: larger bodies are uploaded in parts.
    pub part_size: u64,
    /// `STORAGE_S3_UPLOAD_QUEUE_SIZE`, default 2: parts of one body uploaded in parallel.
    pub queue_size: usize,
    /// Folder where bodies are spooled while their parts are uploaded.
    pub spool: PathBuf,
}

/// Maximum number of parts of an object.
const MOST_PARTS: u64 = 10_000;
/// Minimum size of a part, except the last.
pub const LEAST_PART: u64 = 5 * MIB;

impl BackendConfig {
    /// The folder that this server writes to: the files, or the spool of uploads to the store.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::S3(store) => &store.spool,
        }
    }

    fn read(reader: &mut Reader<'_>, data_dir: &Path, file_size_limit: u64) -> Self {
        let tenant = reader.text_or(&["PROJECT_REF", "TENANT_ID"], "storage-single-tenant");
        let bucket = reader.text(&["STORAGE_S3_BUCKET", "GLOBAL_S3_BUCKET"]);
        let own = reader.text(&["FERROBASE_STORAGE_DIR"]).map(PathBuf::from);
        let theirs = reader.text(&["STORAGE_FILE_BACKEND_PATH", "FILE_STORAGE_BACKEND_PATH"]).map(PathBuf::from);
        let is_s3 = match reader.find(&["STORAGE_BACKEND"]) {
            None | Some((_, "file")) => false,
            Some((_, "s3")) => true,
            Some(_) => {
                reader.problem("STORAGE_BACKEND must be file or s3");
                false
            }
        };
        if is_s3 {
            let spool = own.unwrap_or_else(|| data_dir.join("storage"));
            let store = S3StoreConfig::read(reader, tenant, bucket, spool.clone(), file_size_limit);
            // A problem has been reported if there is no store.
            return store.map_or(Self::Folder(spool), |store| Self::S3(Box::new(store)));
        }
        Self::Folder(match (own, theirs) {
            (Some(own), _) => own,
            // Supabase Storage's layout, which has a bucket folder there too.
            (None, Some(path)) => path.join(bucket.as_deref().unwrap_or("undefined")).join(tenant),
            (None, None) => data_dir.join("storage"),
        })
    }
}

impl S3StoreConfig {
    /// The store of a bucket for backups: `FERROBASE_BACKUP_S3_ENDPOINT`, `_REGION`, `_FORCE_PATH_STYLE`, `_ACCESS_KEY_ID` and
    /// `_SECRET_ACCESS_KEY`, or else the settings of the file store. All keys begin with `prefix`.
    pub fn of_backups(reader: &mut Reader<'_>, bucket: &str, prefix: &str) -> Option<Self> {
        let region =
            reader.text_or(&["FERROBASE_BACKUP_S3_REGION", "STORAGE_S3_REGION", "REGION", "AWS_REGION"], "us-east-1");
        let names = ["FERROBASE_BACKUP_S3_ENDPOINT", "STORAGE_S3_ENDPOINT", "GLOBAL_S3_ENDPOINT"];
        let endpoint = reader.text_or(&names, &format!("https://s3.{region}.amazonaws.com"));
        let endpoint = url::Url::parse(&endpoint).ok().filter(|url| url.has_host() && url.scheme().starts_with("http"));
        if endpoint.is_none() {
            reader.problem("FERROBASE_BACKUP_S3_ENDPOINT must be an address with http:// or https://");
        }
        let own = reader.text(&["FERROBASE_BACKUP_S3_ACCESS_KEY_ID"]);
        // Temporary credentials consist of three values that belong together.
        let session_token = if own.is_some() { None } else { reader.secret(&["AWS_SESSION_TOKEN"]) };
        let access_key = own.or_else(|| reader.text(&["AWS_ACCESS_KEY_ID"]));
        let secret_key = reader.secret(&["FERROBASE_BACKUP_S3_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY"]);
        if access_key.is_none() || secret_key.is_none() {
            reader.problem(
                "backups go to a bucket, and FERROBASE_BACKUP_S3_ACCESS_KEY_ID and FERROBASE_BACKUP_S3_SECRET_ACCESS_KEY are not set",
            );
        }
        let path_style =
            ["FERROBASE_BACKUP_S3_FORCE_PATH_STYLE", "STORAGE_S3_FORCE_PATH_STYLE", "GLOBAL_S3_FORCE_PATH_STYLE"];
        Some(Self {
            path_style: reader.flag(&path_style, false),
            endpoint: endpoint?,
            bucket: bucket.to_owned(),
            region,
            access_key: access_key?,
            secret_key: secret_key?,
            session_token,
            tenant: prefix.to_owned(),
            timeout: Duration::from_secs(30),
            max_sockets: 4,
            part_size: 16 * MIB,
            queue_size: 2,
            spool: PathBuf::new(),
        })
    }

    fn read(
        reader: &mut Reader<'_>,
        tenant: String,
        bucket: Option<String>,
        spool: PathBuf,
        file_size_limit: u64,
    ) -> Option<Self> {
        let region = reader.text_or(&["STORAGE_S3_REGION", "REGION", "AWS_REGION"], "us-east-1");
        let endpoint = reader
            .text_or(&["STORAGE_S3_ENDPOINT", "GLOBAL_S3_ENDPOINT"], &format!("https://s3.{region}.amazonaws.com"));
        let parsed = url::Url::parse(&endpoint).ok().filter(|url| url.has_host() && url.scheme().starts_with("http"));
        if parsed.is_none() {
            reader.problem("STORAGE_S3_ENDPOINT must be an address with http:// or https://");
        }
        if bucket.is_none() {
            reader.problem("STORAGE_S3_BUCKET is not set, and STORAGE_BACKEND is s3");
        }
        let access_key = reader.text(&["AWS_ACCESS_KEY_ID"]);
        let secret_key = reader.secret(&["AWS_SECRET_ACCESS_KEY"]);
        if access_key.is_none() || secret_key.is_none() {
            reader.problem("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and STORAGE_BACKEND is s3");
        }
        let path_style = reader.flag(&["STORAGE_S3_FORCE_PATH_STYLE", "GLOBAL_S3_FORCE_PATH_STYLE"], false);
        let timeout = reader.parse_or(&["STORAGE_S3_CLIENT_TIMEOUT"], "a whole number of milliseconds", 0);
        let max_sockets =
            reader.parse_or(&["STORAGE_S3_MAX_SOCKETS", "GLOBAL_S3_MAX_SOCKETS"], "a number of connections", 200);
        let part_size = reader.parse_or(&["STORAGE_S3_UPLOAD_PART_SIZE"], "a whole number of bytes", 16 * MIB);
        let queue_size = reader.parse_or(&["STORAGE_S3_UPLOAD_QUEUE_SIZE"], "a number of parts", 2);
        Some(Self {
            endpoint: parsed?,
            bucket: bucket?,
            region,
            path_style,
            access_key: access_key?,
            secret_key: secret_key?,
            session_token: reader.secret(&["AWS_SESSION_TOKEN"]),
            tenant,
            timeout: Duration::from_millis(if timeout == 0 { 30_000 } else { timeout }),
            max_sockets: std::cmp::max(max_sockets, 1),
            part_size: part_size.max(LEAST_PART).max(file_size_limit.div_ceil(MOST_PARTS)),
            queue_size: std::cmp::max(queue_size, 1),
            spool,
        })
    }
}

impl StorageConfig {
    pub fn read(reader: &mut Reader<'_>, data_dir: &Path, mode: Mode) -> Self {
        let file_size_limit =
            reader.parse_or(&["UPLOAD_FILE_SIZE_LIMIT", "FILE_SIZE_LIMIT"], "a whole number of bytes", 50 * MIB);
        Self {
            file_size_limit,
            standard_size_limit: reader.parse_or(
                &["UPLOAD_FILE_SIZE_LIMIT_STANDARD", "FILE_SIZE_LIMIT_STANDARD_UPLOAD"],
                "a whole number of bytes",
                0,
            ),
            upload_url_life: reader.seconds_or(
                &["UPLOAD_SIGNED_URL_EXPIRATION_TIME", "SIGNED_UPLOAD_URL_EXPIRATION_TIME"],
                match mode {
                    Mode::Full => Duration::from_secs(2 * 60 * 60),
                    Mode::DropIn => Duration::from_secs(60),
                },
            ),
            empty_bucket_max: reader.parse_or(&["STORAGE_EMPTY_BUCKET_MAX"], "a whole number", 200_000),
            shared_max_age: reader.parse_or(&["RESPONSE_S_MAXAGE"], "a whole number of seconds", 0),
            hard_limits: reader.flag(&["REQUEST_HARD_LIMITS_ENABLED"], false),
            resumable_life: Duration::from_millis(reader.parse_or(
                &["TUS_URL_EXPIRY_MS"],
                "a whole number of milliseconds",
                60 * 60 * 1000,
            )),
            public_url: reader.text(&["STORAGE_PUBLIC_URL"]),
            external_url: match mode {
                Mode::Full => reader.text(&["API_EXTERNAL_URL"]).and_then(|url| url::Url::parse(&url).ok()),
                Mode::DropIn => None,
            },
            s3_keys: S3Keys::read(reader),
            s3_region: reader.text_or(&["STORAGE_S3_REGION", "REGION"], "local"),
            s3_enforce_region: reader.flag(&["S3_PROTOCOL_ENFORCE_REGION"], false),
            s3_prefix: reader.text_or(&["S3_PROTOCOL_PREFIX"], ""),
            images: ImageConfig::read(reader, mode == Mode::Full),
            trusted_proxies: crate::config::trusted_proxies(reader),
            backend: BackendConfig::read(reader, data_dir, file_size_limit),
        }
    }
}

/// A key pair of the S3 protocol.
#[derive(Clone, Debug)]
pub struct S3Keys {
    pub access_key: String,
    pub secret_key: Secret,
}

impl S3Keys {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let access_key = reader.text(&["S3_PROTOCOL_ACCESS_KEY_ID"]).filter(|key| !key.is_empty());
        let secret_key = reader.secret(&["S3_PROTOCOL_ACCESS_KEY_SECRET"]).filter(|key| !key.reveal().is_empty());
        match (access_key, secret_key) {
            (Some(access_key), Some(secret_key)) => Some(Self { access_key, secret_key }),
            (None, None) => None,
            _ => {
                reader.problem("S3_PROTOCOL_ACCESS_KEY_ID and S3_PROTOCOL_ACCESS_KEY_SECRET go together");
                None
            }
        }
    }
}
