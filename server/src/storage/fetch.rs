//! Fetches the files of an imported project: its rows are here, the bytes come from the storage API of the source server.
//!
//! Each file is stored under the version in its row. Files that exist with the size or hash of their row are skipped, so an
//! interrupted run can be repeated.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::backend::{Place, Store};
use super::config::BackendConfig;
use super::error::StorageError;
use crate::outgoing;

/// Files transferred in parallel.
const AT_ONCE: usize = 8;

/// How often a file is requested.
const ATTEMPTS: u32 = 3;

/// A source that sends nothing for this long counts as gone.
const SILENCE: Duration = Duration::from_secs(60);

/// The server to fetch files from.
pub struct Source {
    http: reqwest::Client,
    /// `https://…/storage/v1`
    base: String,
    key: String,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    pub files: u64,
    pub already_there: u64,
    pub bytes: u64,
    /// Files that could not be fetched, and why.
    pub missing: Vec<String>,
}

/// A file named by a row.
struct Wanted {
    bucket: String,
    name: String,
    place: Place,
    size: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    #[error("the source answers {0}")]
    Refused(reqwest::StatusCode),
    #[error("{found} bytes came, its row says {wanted}")]
    Size { found: u64, wanted: u64 },
    #[error("{0}")]
    Store(#[from] StorageError),
}

impl Source {
    /// `url` is that of the API or of its storage; `key` must bypass row level security.
    pub fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        let url = url.trim_end_matches('/');
        let base = if url.ends_with("/storage/v1") { url.to_owned() } else { format!("{url}/storage/v1") };
        let http = outgoing::client().connect_timeout(SILENCE).read_timeout(SILENCE).build()?;
        Ok(Self { http, base, key: key.to_owned() })
    }

    fn url(&self, wanted: &Wanted) -> String {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let name: Vec<String> = wanted.name.split('/').map(encode).collect();
        format!("{}/object/authenticated/{}/{}", self.base, encode(&wanted.bucket), name.join("/"))
    }

    async fn fetch(&self, wanted: &Wanted, to: &Store) -> Result<u64, FetchError> {
        let request = self.http.get(self.url(wanted)).header("apikey", &self.key).bearer_auth(&self.key);
        let answer = request.send().await?;
        if !answer.status().is_success() {
            return Err(FetchError::Refused(answer.status()));
        }
        let mut file = to.create(&wanted.place)?;
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.try_next().await? {
            file.write(piece).await?;
        }
        match wanted.size {
            Some(wanted) if wanted != file.size() => Err(FetchError::Size { found: file.size(), wanted }),
            _ => Ok(file.finish().await?.size),
        }
    }
}

/// Fetches every file that `storage.objects` names. `client` must see all rows; `tell` receives progress.
pub async fn fetch_files(
    client: &tokio_postgres::Client,
    source: &Source,
    to: &BackendConfig,
    mut tell: impl FnMut(&Fetched),
) -> anyhow::Result<Fetched> {
    let store = Store::of(to)?;
    let text = "select bucket_id, name, coalesce(version, ''), metadata from storage.objects
                where bucket_id is not null and name is not null order by bucket_id, name";
    let rows = client.query(text, &[]).await?;
    let wanted = rows.iter().map(|row| {
        let (bucket, name, version): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let size = row.get::<_, Option<Value>>(3).and_then(|metadata| metadata.get("size").and_then(Value::as_u64));
        Wanted { place: Place::named(&bucket, &name, &version), bucket, name, size }
    });
    let mut brought = Fetched::default();
    let mut under_way =
        futures_util::stream::iter(wanted.map(|wanted| one(source, &store, wanted))).buffer_unordered(AT_ONCE);
    while let Some((wanted, outcome)) = under_way.next().await {
        match outcome {
            Ok(Some(bytes)) => {
                brought.files += 1;
                brought.bytes += bytes;
            }
            Ok(None) => brought.already_there += 1,
            Err(error) => brought.missing.push(format!("{}/{}: {error}", wanted.bucket, wanted.name)),
        }
        if (brought.files + brought.already_there) % 100 == 0 {
            tell(&brought);
        }
    }
    Ok(brought)
}

/// Fetches one file; `None` if it existed already.
async fn one(source: &Source, to: &Store, wanted: Wanted) -> (Wanted, Result<Option<u64>, FetchError>) {
    // Without a version, an older file may have the same path.
    let is_versioned = uuid::Uuid::parse_str(wanted.place.last_segment()).is_ok();
    let there = to.open(&wanted.place, None).await;
    if let (Ok(Some(file)), Some(size), true) = (there, wanted.size, is_versioned)
        && file.size == size
    {
        return (wanted, Ok(None));
    }
    let mut attempt = 1;
    loop {
        match source.fetch(&wanted, to).await {
            Ok(bytes) => return (wanted, Ok(Some(bytes))),
            Err(error) => {
                let is_final =
                    matches!(&error, FetchError::Refused(status) if status.is_client_error() && status.as_u16() != 429);
                if is_final || attempt == ATTEMPTS {
                    return (wanted, Err(error));
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
        attempt += 1;
    }
}
