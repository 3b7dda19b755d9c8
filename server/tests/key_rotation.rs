//! Keys are rotated while people are signed in: a production server, restarted with the output of `keys rotate`.

use std::path::Path;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::cluster::{Database, Template, connect, place};
use crate::support::commands::{House, root, told};

/// The credentials of a signed-in user.
struct Held {
    anon: String,
    service: String,
    access: String,
    refresh: String,
    /// A link to a file, as sent by mail.
    link: String,
}

fn settings_of(file: &Path) -> Vec<(String, String)> {
    dotenvy::from_path_iter(file).expect("a file").map(|pair| pair.expect("a pair")).collect()
}

fn value(file: &Path, name: &str) -> String {
    settings_of(file).into_iter().find(|(found, _)| found == name).expect(name).1
}

/// Starts the server as an operator does: in production, with the settings file.
async fn serve(house: &mut House, file: &Path, http: &Client) {
    house.settings = vec![
        ("FERROBASE_DEV", "false".to_owned()),
        ("FERROBASE_MAIL", "drop".to_owned()),
        ("GOTRUE_MAILER_AUTOCONFIRM", "true".to_owned()),
    ];
    for (name, value) in settings_of(file) {
        house.settings.push((String::leak(name), value));
    }
    house.serve(http).await;
}

async fn ask(request: reqwest::RequestBuilder, key: &str, bearer: &str) -> (StatusCode, Value) {
    let answer = request.header("apikey", key).bearer_auth(bearer).send().await.expect("an answer");
    (answer.status(), serde_json::from_str(&answer.text().await.expect("text")).unwrap_or_default())
}

async fn sign_up(house: &House, http: &Client, file: &Path) -> Held {
    let (anon, service) = (value(file, "ANON_KEY"), value(file, "SERVICE_ROLE_KEY"));
    let credentials = json!({ "email": "maria@example.com", "password": "a long password" });
    let signed_up = http.post(house.url("/auth/v1/signup")).json(&credentials);
    let (status, session) = ask(signed_up, &anon, &anon).await;
    assert_eq!(status, 200, "{session}");
    let bucket = http.post(house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(ask(bucket, &service, &service).await.0, 200);
    let file = http.post(house.url("/storage/v1/object/b/letter.txt")).body("a letter");
    assert_eq!(ask(file, &service, &service).await.0, 200);
    let sign = http.post(house.url("/storage/v1/object/sign/b/letter.txt")).json(&json!({ "expiresIn": 86_400 }));
    let (_, signed) = ask(sign, &service, &service).await;
    let text = |name: &str| session[name].as_str().expect(name).to_owned();
    let link = format!("/storage/v1{}", signed["signedURL"].as_str().expect("a link"));
    Held { anon, service, access: text("access_token"), refresh: text("refresh_token"), link }
}

/// The status of each API for the credentials issued before.
async fn answers(house: &House, http: &Client, held: &Held) -> Vec<(&'static str, u16)> {
    let user = ask(http.get(house.url("/auth/v1/user")), &held.anon, &held.access).await.0;
    let rows = ask(http.get(house.url("/rest/v1/")), &held.anon, &held.access).await.0;
    let own_key = ask(http.get(house.url("/rest/v1/")), &held.anon, &held.anon).await.0;
    let admin = ask(http.get(house.url("/auth/v1/admin/users")), &held.service, &held.service).await.0;
    let buckets = ask(http.get(house.url("/storage/v1/bucket")), &held.service, &held.service).await.0;
    let link = http.get(house.url(&held.link)).send().await.expect("an answer").status();
    [("user", user), ("rows", rows), ("own key", own_key), ("admin", admin), ("buckets", buckets), ("link", link)]
        .map(|(name, status)| (name, status.as_u16()))
        .into()
}

/// PostgreSQL's own log names what failed, but neither statements nor rows.
async fn assert_rows_stay_out_of_the_log(house: &House) {
    let Ok(password) = std::fs::read_to_string(house.data.join("owner.password")) else {
        eprintln!("not tried: PostgreSQL's user keeps the cluster elsewhere");
        return;
    };
    let url = format!("postgresql://postgres:{}@127.0.0.1:{}/postgres", password.trim(), house.ports[1]);
    let sql = crate::support::cluster::connect(&url).await;
    sql.batch_execute("create table public.planted (secret text primary key, n int check (n > 0))")
        .await
        .expect("made");
    let insert = "insert into public.planted values ('a planted secret', 1)";
    sql.batch_execute(insert).await.expect("inserted");
    for failing in [insert, "insert into public.planted values ('another planted secret', -1)"] {
        sql.batch_execute(failing).await.expect_err("refused");
    }
    sql.batch_execute("drop table public.planted").await.expect("dropped");
    let log = std::fs::read_to_string(house.data.join("postgres.log")).expect("a log");
    assert!(log.contains("violates check constraint") && log.contains("duplicate key"), "{log}");
    assert!(!log.contains("planted secret"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_stay_signed_in_while_keys_and_passwords_are_rotated() {
    let root = root();
    let http = Client::new();
    let mut house = House::new(root.path(), "data");
    let file = root.path().join("keys.env");
    let (made, text) = house.run(&["keys", "generate"]);
    assert!(made, "{text}");
    std::fs::write(&file, format!("# of this installation\n{text}")).expect("written");
    let given = file.to_str().expect("text");

    serve(&mut house, &file, &http).await;
    assert_rows_stay_out_of_the_log(&house).await;
    let held = sign_up(&house, &http, &file).await;
    let all = answers(&house, &http, &held).await;
    assert!(all.iter().all(|(_, status)| *status == 200), "{all:?}");

    // While it runs, prepares a new key pair that signs from the next start on; the database passwords change at the
    // same time.
    let before = value(&file, "JWT_SECRET");
    let (done, text) = house.run(&["keys", "rotate", "--write", given, "--signing-key"]);
    assert!(done && text.contains("start all servers with these settings"), "{text}");
    assert_ne!(value(&file, "JWT_SECRET"), before);
    assert!(std::fs::read_to_string(&file).expect("a file").starts_with("# of this installation\n"));
    let (done, text) = house.run(&["keys", "rotate", "--database"]);
    assert!(done && text.contains("the server's next start"), "{text}");
    let password = || std::fs::read_to_string(house.data.join("admin.password")).ok();
    let former = password();
    assert_eq!(answers(&house, &http, &held).await, all, "nothing changes under the server that runs");
    house.stop();
    serve(&mut house, &file, &http).await;
    let passwords = |house: &House| std::fs::read_to_string(house.data.join("admin.password")).ok();
    assert!(former.is_none() || passwords(&house) != former, "as PostgreSQL's user may keep the cluster elsewhere");
    assert!(!house.data.join("new-passwords").exists());
    assert_eq!(answers(&house, &http, &held).await, all);
    let (anon, old) = (value(&file, "ANON_KEY"), &held.refresh);
    let refresh =
        http.post(house.url("/auth/v1/token?grant_type=refresh_token")).json(&json!({ "refresh_token": old }));
    let (status, session) = ask(refresh, &anon, &anon).await;
    assert_eq!(status, 200, "{session}");
    let access = session["access_token"].as_str().expect("a token").to_owned();
    let refresh = session["refresh_token"].as_str().expect("a token").to_owned();
    assert!(access.len() > 20 && access != held.access);
    let renewed = Held { anon, service: value(&file, "SERVICE_ROLE_KEY"), access, refresh, link: held.link.clone() };
    assert_eq!(answers(&house, &http, &renewed).await, all);

    // The keys have leaked: nothing signed with them is accepted, but the session can be refreshed.
    let (done, text) = house.run(&["keys", "rotate", "--write", given, "--leaked"]);
    assert!(done, "{text}");
    let (done, text) = house.run(&["keys", "drop", "--write", given, "--all"]);
    assert!(done && text.contains("dropped"), "{text}");
    house.stop();
    serve(&mut house, &file, &http).await;
    for held in [&held, &renewed] {
        let refused = answers(&house, &http, held).await;
        assert!(refused.iter().all(|(_, status)| (400..=403).contains(status)), "{refused:?}");
    }
    let anon = value(&file, "ANON_KEY");
    let refresh = http
        .post(house.url("/auth/v1/token?grant_type=refresh_token"))
        .json(&json!({ "refresh_token": renewed.refresh }));
    assert_eq!(ask(refresh, &anon, &anon).await.0, 200);
    house.stop();
}

#[tokio::test]
async fn an_external_databases_password_changes_together_with_the_file() {
    let root = tempfile::tempdir_in(place()).expect("a folder");
    let house = House::new(root.path(), "data");
    let database = Database::new(Template::Platform).await;
    let admin = connect(&database.url).await;
    let role = format!("owner_{}", std::process::id());
    admin.batch_execute(&format!("create role {role} login password 'former' createrole")).await.expect("a role");
    let mut url = url::Url::parse(&database.url).expect("a URL");
    url.set_username(&role).expect("a user");
    url.set_password(Some("former")).expect("a password");
    let (file, next) = (root.path().join("keys.env"), root.path().join("keys.env.next"));
    std::fs::write(&file, format!("DATABASE_URL={url}\nPOSTGRES_PASSWORD=former\nOTHER=1\n")).expect("written");
    let rotate =
        || told(house.command(&["keys", "rotate", "--database", "--write", "keys.env"]).output().expect("it runs"));
    let (done, text) = rotate();
    assert!(done, "{text}");
    let new = value(&file, "POSTGRES_PASSWORD");
    assert_ne!(new, "former");
    assert_eq!(value(&file, "OTHER"), "1");
    connect(&value(&file, "DATABASE_URL")).await;
    assert!(tokio_postgres::connect(url.as_str(), tokio_postgres::NoTls).await.is_err(), "the former one is refused");

    // Killed after the database changed the password, before the file was replaced.
    std::fs::rename(&file, &next).expect("renamed");
    std::fs::write(&file, format!("DATABASE_URL={url}\nPOSTGRES_PASSWORD=former\nOTHER=1\n")).expect("written");
    let (done, text) = rotate();
    assert!(done, "{text}");
    assert_eq!(value(&file, "POSTGRES_PASSWORD"), new);
    assert!(!next.exists());

    // Killed before the database changed it: the staged file is useless and gets replaced.
    std::fs::write(&next, "DATABASE_URL=postgresql://nobody@127.0.0.1:1/x\n").expect("written");
    let (done, text) = rotate();
    assert!(done && value(&file, "POSTGRES_PASSWORD") != new, "{text}");
    connect(&value(&file, "DATABASE_URL")).await;

    // As libpq reads it: two machines, one of which is dead, and a parameter that only libpq knows.
    let now = value(&file, "DATABASE_URL");
    let (login, rest) = now.rsplit_once('@').expect("a login");
    let wide = format!("{login}@127.0.0.1:1,{rest}?passfile=/nowhere&target_session_attrs=read-write");
    std::fs::write(&file, format!("DATABASE_URL='{wide}'\n")).expect("written");
    let (done, text) = rotate();
    assert!(done, "{text}");
    let changed = value(&file, "DATABASE_URL");
    let (changed_login, changed_rest) = changed.rsplit_once('@').expect("a login");
    assert!(changed_login != login && changed_rest == wide.rsplit_once('@').expect("a login").1, "{changed}");
    connect(&format!("{changed_login}@{rest}")).await;

    // Nothing else removes what may alone have the new password.
    std::fs::write(&next, "DATABASE_URL=x\n").expect("written");
    for command in [&["keys", "rotate"][..], &["keys", "drop"]] {
        let (done, text) =
            told(house.command(&[command, &["--write", "keys.env"]].concat()).output().expect("it runs"));
        assert!(!done && text.contains("keys rotate --database"), "{text}");
    }
    assert!(next.exists());
    std::fs::remove_file(&next).expect("removed");
    std::fs::write(&file, format!("DATABASE_URL={url}\n")).expect("written");
    let (done, text) = rotate();
    assert!(!done && text.contains("password"), "{text}");
    drop(admin);
    let admin = connect(&database.url).await;
    admin.batch_execute(&format!("drop role {role}")).await.expect("gone");
}
