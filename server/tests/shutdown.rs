//! A stopped server leaves no statement running in an external PostgreSQL, in each of its modes, as processes. The full
//! server's PostgreSQL requires client certificates.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::support::TestApp;
use crate::support::cluster::{connect, place};
use crate::support::ports::free_port;
use crate::support::server_process::ServerProcess;
use crate::support::valve::until;

const SECRET: &str = "a secret of the servers that are told to stop";

fn token(role: &str) -> String {
    let claims = json!({ "role": role, "exp": 4_000_000_000_i64 });
    encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).expect("a token")
}

/// A server process; stopped when dropped.
struct Server {
    child: Child,
    base: String,
}

impl Server {
    /// With only these settings; `port_setting` is the setting of its port or address.
    fn start(arguments: &[&str], (port_setting, host): (&str, &str), settings: &[(&str, &str)]) -> Self {
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(settings.iter().copied())
            .env(port_setting, format!("{host}{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        Self { child, base: format!("http://127.0.0.1:{port}") }
    }

    async fn ready(mut self, path: &str) -> Self {
        let since = Instant::now();
        loop {
            let answer = reqwest::get(format!("{}{path}", self.base)).await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return self;
            }
            assert!(self.child.try_wait().expect("a child").is_none(), "the server ended");
            assert!(since.elapsed() < Duration::from_secs(60), "{path} does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a request without waiting for its answer.
    fn post(&self, path: &str, role: &str, body: &Value) {
        let token = token(role);
        let request = reqwest::Client::new().post(format!("{}{path}", self.base)).header("apikey", &token);
        actix_web::rt::spawn(request.bearer_auth(token).json(body).send());
    }

    /// Tells it to stop, and waits until it has.
    async fn stop(mut self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(told.expect("kill").success());
        let since = Instant::now();
        while self.child.try_wait().expect("a child").is_none() {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not stop");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of sleeping statements in this database.
async fn sleepers(owner: &Client) -> i64 {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    owner.query_one(sql, &[]).await.expect("who sleeps").get(0)
}

/// A PostgreSQL that accepts only encrypted connections with a client certificate; existing connections stay.
struct Guarded {
    postgres: EmbeddedPostgres,
    owner: Client,
    folder: tempfile::TempDir,
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls").join(name)
}

impl Guarded {
    async fn start() -> Self {
        let folder = tempfile::tempdir_in(place()).expect("a folder");
        // PostgreSQL's user has to be able to enter.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).expect("its mode");
        let data_root = folder.path().join("data");
        let options = EmbeddedOptions { data_root, port: free_port(), ..EmbeddedOptions::default() };
        let postgres = EmbeddedPostgres::start(&options).await.expect("a cluster");
        let owner = connect(&postgres.admin_url).await;
        let account = std::fs::metadata(&postgres.cluster).expect("a cluster");
        for name in ["server.pem", "server.key", "client.pem"] {
            let copy = postgres.cluster.join(name);
            std::fs::copy(certificate(name), &copy).expect("copied");
            std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o600)).expect("its mode");
            std::os::unix::fs::chown(&copy, Some(account.uid()), Some(account.gid())).expect("handed over");
        }
        std::fs::write(
            postgres.cluster.join("pg_hba.conf"),
            "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n",
        )
        .expect("the rules");
        for statement in [
            "alter system set ssl_cert_file = 'server.pem'",
            "alter system set ssl_key_file = 'server.key'",
            "alter system set ssl_ca_file = 'client.pem'",
            "alter system set ssl = on",
            "select pg_reload_conf()",
            "create function public.nap() returns void language sql set statement_timeout = '0' as 'select pg_sleep(120)'",
        ] {
            owner.batch_execute(statement).await.expect(statement);
        }
        // A key that others may read is refused, as by libpq.
        let key = folder.path().join("client.key");
        std::fs::copy(certificate("client.key"), &key).expect("copied");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        Self { postgres, owner, folder }
    }

    fn url(&self, parameters: &str) -> String {
        format!("{}?{parameters}", self.postgres.admin_url)
    }

    /// Parameters with our client certificate.
    fn shown(&self) -> String {
        let key = self.folder.path().join("client.key");
        format!("sslcert={}&sslkey={}", certificate("client.pem").display(), key.display())
    }
}

#[actix_web::test]
async fn statements_outliving_the_drain_are_cancelled_in_every_mode_with_certificates() {
    let (app, guarded) = futures_util::join!(TestApp::start(), Guarded::start());
    app.owner
        .batch_execute(
            "create function public.nap() returns trigger language plpgsql as
               $$ begin perform pg_sleep(120); return new; end $$;
             create trigger nap before insert on auth.users
               for each row when (new.email = 'nap@test.example') execute function public.nap();
             insert into storage.buckets (id, name) values ('naps', 'naps');
             create trigger nap before insert on storage.objects
               for each row when (new.name = 'nap') execute function public.nap()",
        )
        .await
        .expect("naps");

    // A client unknown to PostgreSQL gets no connection, and neither does a PostgreSQL unknown to the client.
    let (authority, other) = (certificate("authority.pem"), certificate("client.pem"));
    let (authority, other) = (authority.display(), other.display());
    let shown = guarded.shown();
    let good = guarded.url(&format!("sslmode=verify-full&sslrootcert={authority}&{shown}"));
    for (url, fault) in [
        (guarded.url(&format!("sslmode=verify-full&sslrootcert={authority}")), "certificate"),
        (guarded.url(&format!("sslmode=verify-full&sslrootcert={other}&{shown}")), "certificate"),
        (guarded.url("sslmode=disable"), "no encryption"),
    ] {
        let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(["types", "typescript"])
            .env_clear()
            .env("DATABASE_URL", &url)
            .output()
            .expect("the binary runs");
        let told = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && told.to_lowercase().contains(fault), "{url}: {told}");
    }

    let files = tempfile::tempdir_in(place()).expect("a folder");
    let file = |name: &str| files.path().join(name).display().to_string();
    let whole = Server::start(
        &["serve"],
        ("FERROBASE_LISTEN", "127.0.0.1:"),
        &[
            ("DATABASE_URL", &good),
            ("JWT_SECRET", SECRET),
            ("ANON_KEY", &token("anon")),
            ("FERROBASE_MIGRATIONS", "none"),
            ("FERROBASE_ADMIN_LISTEN", "127.0.0.1:0"),
            ("FERROBASE_MAIL", "drop"),
            ("FERROBASE_USER", "root"),
            ("FERROBASE_DATA_DIR", &file("whole")),
        ],
    );
    let auth = Server::start(
        &["serve", "--only", "auth"],
        ("PORT", ""),
        &[
            ("GOTRUE_DB_DRIVER", "postgres"),
            ("GOTRUE_DB_DATABASE_URL", &app.auth_url),
            ("GOTRUE_SITE_URL", "https://app.example"),
            ("GOTRUE_API_EXTERNAL_URL", "https://api.example"),
            ("GOTRUE_API_HOST", "127.0.0.1"),
            ("GOTRUE_JWT_SECRET", SECRET),
            ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
            // A busy machine may take more than ten seconds until both others' statements sleep.
            ("GOTRUE_API_MAX_REQUEST_DURATION", "120s"),
        ],
    );
    let storage = Server::start(
        &["serve", "--only", "storage"],
        ("SERVER_PORT", ""),
        &[
            ("DATABASE_URL", &app.owner_url),
            ("SERVER_HOST", "127.0.0.1"),
            ("AUTH_JWT_SECRET", SECRET),
            ("STORAGE_BACKEND", "file"),
            ("FILE_STORAGE_BACKEND_PATH", &file("storage")),
            ("GLOBAL_S3_BUCKET", "stub"),
            ("TENANT_ID", "stub"),
        ],
    );
    let (whole, auth, storage) =
        futures_util::join!(whole.ready("/health"), auth.ready("/health"), storage.ready("/status"));
    whole.post("/rest/v1/rpc/nap", "anon", &json!({}));
    auth.post("/signup", "anon", &json!({ "email": "nap@test.example", "password": "correct-Horse-7" }));
    storage.post("/object/naps/nap", "service_role", &json!("a text"));
    until("the whole server's sleeps", async || sleepers(&guarded.owner).await == 1).await;
    until("both others' sleep", async || sleepers(&app.owner).await == 2).await;
    futures_util::join!(whole.stop(), auth.stop(), storage.stop());
    until("all are cancelled", async || sleepers(&guarded.owner).await + sleepers(&app.owner).await == 0).await;
    guarded.postgres.stop().await;
}

/// Regression: the end of the database was logged as a failure of each hourly function that was left, and of a reload of the schema.
#[actix_web::test]
async fn hourly_functions_and_reloads_that_a_stop_ends_are_not_logged_as_failures() {
    // A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    let mut server = ServerProcess::started_before();
    server.serve();
    server.ready(&http).await;
    let slow = "create function public.slow() returns void language sql as 'select pg_sleep(300)';
                insert into ferrobase.hourly values ('public.slow')";
    connect(&server.database_url()).await.batch_execute(slow).await.expect("a slow function");
    server.stop();
    server.serve_again().await;
    server.ready(&http).await;
    let owner = connect(&server.database_url()).await;
    let runs =
        "select exists (select from pg_stat_activity where query like '%public.slow()%' and pid <> pg_backend_pid())";
    until("the function runs", async || owner.query_one(runs, &[]).await.is_ok_and(|row| row.get(0))).await;
    server.stop();
    let log = server.log();
    assert!(!log.contains("hourly") && !log.contains("schema cache"), "{log}");
}
