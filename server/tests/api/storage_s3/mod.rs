//! The S3 protocol, signed here by hand. `supabase-compat-tests` and `just test-tools` use other clients.

mod forms;
mod objects;
mod signatures;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use hmac::{Hmac, Mac};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::TestApp;

const SCHEMA: &str = "
    insert into storage.buckets (id, name, file_size_limit, allowed_mime_types) values ('private', 'private', 10000000, null);

    create policy own on storage.objects for all to authenticated
      using (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text);
";
const ACCESS_KEY: &str = "625729a08b95bf1b7ff351a663f3a23c";
const SECRET_KEY: &str = "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907";

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

/// Signs requests.
pub(super) struct Signer<'a> {
    app: &'a TestApp,
    access_key: String,
    secret_key: String,
    session: Option<String>,
    region: &'static str,
    /// The path prefix removed by a proxy.
    prefix: &'static str,
}

impl<'a> Signer<'a> {
    pub(super) fn project(app: &'a TestApp) -> Self {
        Self {
            app,
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            session: None,
            region: "local",
            prefix: "",
        }
    }

    fn user(app: &'a TestApp, token: &str) -> Self {
        let session = Some(token.to_owned());
        Self { access_key: "local".to_owned(), secret_key: app.anon_key.clone(), session, ..Self::project(app) }
    }

    fn signature(&self, at: &str, canonical: &str) -> (String, String) {
        let scope = format!("{}/{}/s3/aws4_request", &at[..8], self.region);
        let text = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), &at[..8]);
        for part in [self.region, "s3", "aws4_request"] {
            key = hmac(&key, part);
        }
        (scope, hex::encode(hmac(&key, &text)))
    }

    /// Signs in the header, as SDKs do. `query` must be canonical.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let at = Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let host = self.app.base.trim_start_matches("http://").to_owned();
        let hash = hex::encode(Sha256::digest(body));
        let path = format!("/storage/v1/s3{path}");
        let mut signed: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !signed.iter().any(|(name, _)| name == "x-amz-content-sha256") {
            signed.push(("x-amz-content-sha256".to_owned(), hash));
        }
        signed.push(("host".to_owned(), host));
        signed.push(("x-amz-date".to_owned(), at.clone()));
        signed.extend(self.session.iter().map(|token| ("x-amz-security-token".to_owned(), token.clone())));
        signed.sort();
        let payload = signed.iter().find(|(name, _)| name == "x-amz-content-sha256").expect("a hash").1.clone();
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let prefix = self.prefix;
        let canonical = format!("{method}\n{prefix}{path}\n{query}\n{lines}\n{names}\n{payload}");
        let (scope, signature) = self.signature(&at, &canonical);
        let url = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = self.app.plain(method, &url).header(
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
                self.access_key
            ),
        );
        for (name, value) in signed.iter().filter(|(name, _)| name != "host") {
            request = request.header(name, value);
        }
        request.body(body.to_vec()).send().await.expect("an answer")
    }

    async fn get(&self, path: &str, query: &str) -> (u16, String) {
        text(self.send(Method::GET, path, query, &[], b"").await).await
    }

    async fn put(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        text(self.send(Method::PUT, path, "", headers, body).await).await
    }

    /// A link for downloading.
    fn presigned(&self, path: &str, seconds: u32) -> String {
        self.presigned_for("GET", path, "", &[], seconds)
    }

    /// A link for one method, with further signed parameters and headers, all canonical.
    fn presigned_for(
        &self,
        method: &str,
        path: &str,
        parameters: &str,
        headers: &[(&str, &str)],
        seconds: u32,
    ) -> String {
        let at = Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let scope = format!("{}%2Flocal%2Fs3%2Faws4_request", &at[..8]);
        let names: String =
            std::iter::once("host").chain(headers.iter().map(|(name, _)| *name)).collect::<Vec<_>>().join(";");
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F{scope}&X-Amz-Date={at}&X-Amz-Expires={seconds}\
             &X-Amz-SignedHeaders={}{parameters}",
            self.access_key,
            names.replace(';', "%3B"),
        );
        let host = self.app.base.trim_start_matches("http://");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical =
            format!("{method}\n/storage/v1/s3{path}\n{query}\nhost:{host}\n{lines}\n{names}\nUNSIGNED-PAYLOAD");
        let (_, signature) = self.signature(&at, &canonical);
        format!("/storage/v1/s3{path}?{query}&X-Amz-Signature={signature}")
    }

    /// The signed fields of a browser form.
    fn form(&self, conditions: Value, seconds: i64) -> Vec<(String, String)> {
        let now = Utc::now();
        let at = now.format("%Y%m%dT%H%M%SZ").to_string();
        let expiration =
            (now + chrono::Duration::seconds(seconds)).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let policy = STANDARD.encode(json!({ "expiration": expiration, "conditions": conditions }).to_string());
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), &at[..8]);
        for part in ["local", "s3", "aws4_request"] {
            key = hmac(&key, part);
        }
        let credential = format!("{}/{}/local/s3/aws4_request", self.access_key, &at[..8]);
        let signature = hex::encode(hmac(&key, &policy));
        let mut fields = vec![
            ("Policy".to_owned(), policy),
            ("X-Amz-Algorithm".to_owned(), "AWS4-HMAC-SHA256".to_owned()),
            ("X-Amz-Credential".to_owned(), credential),
            ("X-Amz-Date".to_owned(), at),
            ("X-Amz-Signature".to_owned(), signature),
        ];
        fields.extend(self.session.iter().map(|token| ("X-Amz-Security-Token".to_owned(), token.clone())));
        fields
    }
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

pub(super) async fn text(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.expect("a text"))
}

pub(super) fn between<'a>(text: &'a str, name: &str) -> &'a str {
    text.split(&format!("<{name}>")).nth(1).and_then(|rest| rest.split(&format!("</{name}>")).next()).unwrap_or("")
}

fn code(answer: &(u16, String)) -> (u16, &str) {
    (answer.0, between(&answer.1, "Code"))
}

/// Submits a form like a browser, without following redirects.
async fn submit(
    app: &TestApp,
    bucket: &str,
    signed: &[(String, String)],
    more: &[(&str, &str)],
    file: &str,
) -> Response {
    let mut body = String::new();
    let own = signed.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(more.iter().copied()) {
        body.push_str(&format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str(&format!(
        "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"up/me.txt\"\r\n\
         Content-Type: text/html\r\n\r\n{file}\r\n--X--\r\n"
    ));
    let request = app.plain(Method::POST, &format!("/storage/v1/s3/{bucket}"));
    let request = request.header("content-type", "multipart/form-data; boundary=X").body(body);
    request.send().await.expect("an answer")
}

async fn sweep(app: &TestApp) -> usize {
    ferrobase::storage::sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep")
}
