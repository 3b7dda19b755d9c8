//! The storage API as the commands use it. Bodies are streamed.

use std::path::Path;

use anyhow::Context;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::outgoing;

/// Entries of a page of a listing.
const PAGE: usize = 100;

/// A storage API, and a key that may do everything there.
pub struct Client {
    http: reqwest::Client,
    /// Ends in `/storage/v1`.
    url: String,
    key: String,
}

/// How an upload is stored.
#[derive(Clone, Debug, Default)]
pub struct Kept<'a> {
    pub cache_control: Option<&'a str>,
    /// Guessed from the file's name if `None`.
    pub content_type: Option<&'a str>,
    pub overwrites: bool,
}

/// The API refused.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// As the API names it, such as `Bucket not found`.
    pub error: String,
    message: String,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    /// Folders have none.
    id: Option<Value>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Client {
    /// `api` is the address of the project.
    pub fn new(api: &str, key: &str) -> anyhow::Result<Self> {
        // This machine is not behind a proxy; others may be.
        let is_local = api.starts_with("http://127.") || api.starts_with("http://localhost");
        let builder = outgoing::client();
        let http = if is_local { builder.no_proxy() } else { builder }.build()?;
        Ok(Self { http, url: format!("{}/storage/v1", api.trim_end_matches('/')), key: key.to_owned() })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/{path}", self.url)).bearer_auth(&self.key).header("apikey", &self.key)
    }

    /// The names of all buckets.
    pub async fn buckets(&self) -> anyhow::Result<Vec<String>> {
        let found: Vec<Named> = answered(self.request(Method::GET, "bucket")).await?.json().await?;
        Ok(found.into_iter().map(|bucket| bucket.name).collect())
    }

    pub async fn create_bucket(&self, bucket: &Value) -> anyhow::Result<()> {
        answered(self.request(Method::POST, "bucket").json(bucket)).await.map(drop)
    }

    /// Returns the API's words.
    pub async fn delete_bucket(&self, bucket: &str) -> anyhow::Result<String> {
        told(answered(self.request(Method::DELETE, &format!("bucket/{}", encoded(bucket)))).await?).await
    }

    /// What lies in a folder and begins with the last part of `prefix`, by its name alone; folders end in a slash.
    pub async fn list(&self, bucket: &str, prefix: &str) -> anyhow::Result<Vec<String>> {
        let (folder, search) = prefix.rfind('/').map_or(("", prefix), |slash| prefix.split_at(slash + 1));
        let path = format!("object/list/{}", encoded(bucket));
        let mut found = Vec::new();
        loop {
            let page = json!({ "prefix": folder, "search": search, "limit": PAGE, "offset": found.len() });
            let entries: Vec<Listed> = answered(self.request(Method::POST, &path).json(&page)).await?.json().await?;
            let count = entries.len();
            found.extend(entries.into_iter().map(|entry| match entry.id {
                Some(id) if !id.is_null() => entry.name,
                _ => entry.name + "/",
            }));
            if count < PAGE {
                return Ok(found);
            }
        }
    }

    /// `key` is an object's bucket and name.
    pub async fn exists(&self, key: &str) -> anyhow::Result<bool> {
        let answer = self.request(Method::HEAD, &format!("object/{}", encoded(key))).send().await?;
        Ok(answer.status().is_success())
    }

    pub async fn upload(&self, file: &Path, key: &str, kept: &Kept<'_>) -> anyhow::Result<()> {
        let body = tokio::fs::File::open(file).await.with_context(|| format!("cannot read {}", file.display()))?;
        let size = body.metadata().await?.len();
        let guessed = mime_guess::from_path(file).first_or_octet_stream();
        let mut request = self
            .request(Method::POST, &format!("object/{}", encoded(key)))
            .header("content-type", kept.content_type.unwrap_or(guessed.as_ref()))
            .header("content-length", size);
        if let Some(control) = kept.cache_control {
            request = request.header("cache-control", control);
        }
        if kept.overwrites {
            request = request.header("x-upsert", "true");
        }
        answered(request.body(body)).await.map(drop)
    }

    /// Writes an object to `file`, which must not exist unless `overwrites`.
    pub async fn download(&self, key: &str, file: &Path, overwrites: bool) -> anyhow::Result<()> {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create(true).create_new(!overwrites).truncate(overwrites);
        // Asked first, so that no empty file stays of an object that is not there.
        let mut answer = answered(self.request(Method::GET, &format!("object/{}", encoded(key)))).await?;
        let failed = || format!("cannot write {}", file.display());
        let mut out = options.open(file).await.with_context(failed)?;
        while let Some(chunk) = answer.chunk().await? {
            out.write_all(&chunk).await.with_context(failed)?;
        }
        out.flush().await.with_context(failed)
    }

    /// Returns the API's words.
    pub async fn rename(&self, bucket: &str, from: &str, to: &str) -> anyhow::Result<String> {
        let body = json!({ "bucketId": bucket, "sourceKey": from, "destinationKey": to });
        told(answered(self.request(Method::POST, "object/move").json(&body)).await?).await
    }

    /// Deletes objects; returns the names of those that were there.
    pub async fn delete(&self, bucket: &str, names: &[String]) -> anyhow::Result<Vec<String>> {
        let request = self.request(Method::DELETE, &format!("object/{}", encoded(bucket)));
        let removed: Vec<Named> = answered(request.json(&json!({ "prefixes": names }))).await?.json().await?;
        Ok(removed.into_iter().map(|object| object.name).collect())
    }
}

/// The answer, unless it is a refusal.
async fn answered(request: RequestBuilder) -> anyhow::Result<Response> {
    let answer = request.send().await.context("the storage API does not answer")?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = answer.text().await.unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let member = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let message = member("message").unwrap_or_else(|| format!("the storage API answered {status}: {text}"));
    Err(Refusal { error: member("error").unwrap_or_default(), message }.into())
}

async fn told(answer: Response) -> anyhow::Result<String> {
    let body: Value = answer.json().await?;
    Ok(body.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// A path whose parts are percent-encoded.
fn encoded(path: &str) -> String {
    let part = |part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string();
    path.trim_start_matches('/').split('/').map(part).collect::<Vec<_>>().join("/")
}
