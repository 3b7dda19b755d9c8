//! `ferrobase import`: an imported project keeps everything, and nobody has to sign in again.

use std::process::Command;
use std::time::Instant;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::project::Project;
use crate::project_commands::installed;

const SECRET: &str = "the secret of the former place, long enough";

/// The size of the project. `FERROBASE_MOVE_USERS=10000 FERROBASE_MOVE_FILES=1000` makes a large one.
fn amount(name: &str) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

const SCHEMA: &str = r#"
create type mood as enum ('calm', 'busy');
create table profiles (id uuid primary key references auth.users (id) on delete cascade, mood mood not null default 'calm');
create function greet() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.profiles (id) values (new.id);
  return new;
end $$;
create trigger greet after insert on auth.users for each row execute function greet();
alter table profiles enable row level security;
create policy "own" on profiles using ((select auth.uid()) = id);
create policy "own papers" on storage.objects to authenticated
  using (bucket_id = 'papers' and (storage.foldername(name))[1] = (select auth.uid())::text)
  with check (bucket_id = 'papers' and (storage.foldername(name))[1] = (select auth.uid())::text);
create view calm with (security_invoker) as select id from profiles where mood = 'calm';
create extension pg_cron;
select cron.schedule('nightly', '0 3 * * *', 'select 1');
alter publication supabase_realtime add table profiles;
create role clerk;
grant clerk to postgres;
grant create on schema public to clerk;
create table ledger (id bigint generated always as identity primary key, amount numeric, note text);
insert into ledger (amount, note) values (1.50, E'a\tb\\N;\n'), (2, null);
alter table ledger owner to clerk;
create function watch() returns event_trigger language plpgsql as $$ begin null; end $$;
create event trigger watch on ddl_command_end execute function watch();
"#;

/// A user with an existing session.
struct Person {
    email: String,
    id: String,
    access: String,
    refresh: String,
}

/// How long the parts of a move took.
#[derive(Default)]
struct Report(Vec<(&'static str, f64)>);

impl Report {
    fn took(&mut self, what: &'static str, begun: Instant) {
        self.0.push((what, begun.elapsed().as_secs_f64()));
    }

    /// Writes them to the file that `FERROBASE_MOVE_REPORT` names; see `tools/move-project.sh`.
    fn end(&self, count: usize, files: usize) {
        let lines: String = self.0.iter().map(|(what, took)| format!("| {what} | {took:.1} |\n")).collect();
        let text = format!(
            "{count} accounts, each with a session, and {files} files of 20 kB. All of them worked afterwards, and nobody signed in \
             again.\n\n| what | s |\n|---|---|\n{lines}"
        );
        if let Ok(path) = std::env::var("FERROBASE_MOVE_REPORT") {
            std::fs::write(path, &text).expect("a report");
        }
    }
}

struct Api {
    url: String,
    key: String,
    http: reqwest::Client,
}

impl Api {
    fn of(project: &Project) -> Self {
        let status = project.status();
        let text = |name: &str| status[name].as_str().expect(name).to_owned();
        Self { url: text("API_URL"), key: text("ANON_KEY"), http: reqwest::Client::new() }
    }

    async fn token(&self, grant: &str, body: Value) -> Value {
        let url = format!("{}/auth/v1/token?grant_type={grant}", self.url);
        let answer = self.http.post(url).header("apikey", &self.key).json(&body).send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{grant}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn sign_in(&self, email: String) -> Person {
        let session = self.token("password", json!({ "email": email, "password": "secret words" })).await;
        let text = |name: &str| session[name].as_str().expect(name).to_owned();
        let id = session["user"]["id"].as_str().expect("an id").to_owned();
        Person { email, id, access: text("access_token"), refresh: text("refresh_token") }
    }

    async fn get(&self, path: &str, token: &str) -> (u16, Vec<u8>) {
        let request = self.http.get(format!("{}{path}", self.url)).header("apikey", &self.key).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.bytes().await.expect("a body").to_vec())
    }

    async fn upload(&self, path: &str, token: &str, bytes: Vec<u8>) {
        let request = self.http.post(format!("{}/storage/v1/object/{path}", self.url)).header("apikey", &self.key);
        let answer = request.bearer_auth(token).body(bytes).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200, "{}", answer.text().await.unwrap_or_default());
    }
}

fn bytes_of(place: usize) -> Vec<u8> {
    (0..20_000 + place).map(|at| ((at * 31 + place) % 251) as u8).collect()
}

async fn people_of(former: &Project, count: usize) -> Vec<Person> {
    // In SQL, because password hashing through the API takes time.
    former
        .one(&format!(
            "insert into auth.users (id, instance_id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data,
               raw_user_meta_data, created_at, updated_at, confirmation_token, recovery_token, email_change_token_new, email_change)
             select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'authenticated', 'authenticated',
               'person' || n || '@example.org', extensions.crypt('secret words', extensions.gen_salt('bf', 4)), now(),
               '{{\"provider\": \"email\", \"providers\": [\"email\"]}}', '{{}}', now(), now(), '', '', '', ''
             from generate_series(1, {count}) n"
        ))
        .await;
    let api = Api::of(former);
    futures_util::stream::iter((1..=count).map(|n| api.sign_in(format!("person{n}@example.org"))))
        .buffer_unordered(8)
        .collect()
        .await
}

/// The database's state according to the dump commands.
fn state(project: &Project) -> String {
    ["--role-only", "--local", "--data-only"].map(|kind| project.ok(&["db", "dump", kind]).0).join("\n----\n")
}

fn assert_same(found: &str, expected: &str) {
    let differing: Vec<(&str, &str)> =
        found.lines().zip(expected.lines()).filter(|(one, other)| one != other).collect();
    assert!(found == expected, "{} differing lines, {:#?}", differing.len(), &differing[..differing.len().min(6)]);
}

#[actix_web::test]
async fn an_imported_project_keeps_its_users_and_their_sessions() {
    if installed("client/bin/pg_dump").is_none() {
        return;
    }
    let (count, files) = (amount("FERROBASE_MOVE_USERS"), amount("FERROBASE_MOVE_FILES"));
    let config = format!("[auth]\njwt_secret = \"{SECRET}\"\n[storage.buckets.papers]\npublic = false\n");
    let former = Project::new("former", &config, &[("supabase/migrations/1_all.sql", SCHEMA)]);
    former.ok(&["start"]);
    let people = people_of(&former, count).await;
    let place = Api::of(&former);
    futures_util::stream::iter(0..files)
        .map(|at| {
            let (place, person) = (&place, &people[at % count]);
            async move { place.upload(&format!("papers/{}/{at} (1).bin", person.id), &person.access, bytes_of(at)).await }
        })
        .buffer_unordered(8)
        .collect::<Vec<()>>()
        .await;

    let here = Project::new(
        "moved",
        "",
        &[("supabase/migrations/1_own.sql", "create table own (id int); insert into own values (1);")],
    );
    let database = former.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let key = former.status()["SECRET_KEY"].as_str().expect("a key").to_owned();
    let import =
        ["import", "--db-url", &database, "--storage-url", &place.url, "--service-key", &key, "--jwt-secret", SECRET];
    for (wrong, word) in [
        (vec!["import"], "by --db-url, or its dump by --dump"),
        (import.to_vec(), "the project is not running"),
        (vec!["import", "--dump", "x", "--jwt-secret", "short"], "--jwt-secret is none"),
        (vec!["import", "--dump", "x", "--storage-url", "http://x"], "--service-key"),
    ] {
        let (success, _, told) = here.run(&wrong);
        assert!(!success && told.contains(word) && told.lines().count() == 1, "{wrong:?}: {told}");
    }
    here.ok(&["start"]);
    let (success, _, told) = here.run(&import);
    assert!(!success && told.contains("has 1 tables, 0 accounts") && told.contains("--yes"), "{told}");
    assert_eq!(here.one("select id from own").await, "1");

    let expected = state(&former);
    let mut report = Report::default();
    let begun = Instant::now();
    let (_, told) = here.ok(&[&import[..], &["--yes"]].concat());
    report.took("`ferrobase import`, including the restart", begun);
    assert!(told.contains(&format!("Imported {count} accounts, {count} sessions")), "{told}");
    assert!(told.contains(&format!("Downloaded {files} files")) && !told.contains("Left out"), "{told}");
    assert_same(&state(&here), &expected);
    // Repeated: the same state, and no file is copied again.
    let begun = Instant::now();
    let (_, told) = here.ok(&[&import[..], &["--yes"]].concat());
    assert!(told.contains(&format!("Downloaded 0 files (0 bytes), {files} already existed")), "{told}");
    report.took("a second import", begun);
    assert_same(&state(&here), &expected);
    let owners = "select string_agg(distinct pg_get_userbyid(relowner)::text, ',') from pg_class
                  where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')";
    assert_eq!(here.one(owners).await, "clerk,postgres");
    let lent = "select count(*) from pg_auth_members where roleid = 'clerk'::regrole and inherit_option";
    assert_eq!(here.one(lent).await, former.one(lent).await);

    let api = Api::of(&here);
    let kept = here.root.join("supabase/.env.local");
    assert!(std::fs::read_to_string(kept).expect("a file").contains(SECRET));
    let begun = Instant::now();
    futures_util::stream::iter(&people)
        .for_each_concurrent(8, |person| {
            let api = &api;
            async move {
                let (status, user) = api.get("/auth/v1/user", &person.access).await;
                let user: Value = serde_json::from_slice(&user).expect("JSON");
                assert_eq!((status, user["email"].as_str()), (200, Some(person.email.as_str())), "{user}");
                let (status, own) = api.get("/rest/v1/profiles?select=id", &person.access).await;
                assert_eq!((status, own), (200, format!("[{{\"id\":\"{}\"}}]", person.id).into_bytes()));
                let session = api.token("refresh_token", json!({ "refresh_token": person.refresh })).await;
                assert_eq!(session["user"]["id"].as_str(), Some(person.id.as_str()));
                api.sign_in(person.email.clone()).await;
            }
        })
        .await;
    report.took("checking each old access token at auth and REST, each old refresh token, each password", begun);
    let begun = Instant::now();
    futures_util::stream::iter(0..files)
        .for_each_concurrent(8, |at| {
            let (api, person, other) = (&api, &people[at % count], &people[(at + 1) % count]);
            async move {
                let path = format!("/storage/v1/object/authenticated/papers/{}/{at}%20%281%29.bin", person.id);
                let (status, bytes) = api.get(&path, &person.access).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
                assert!(bytes == bytes_of(at), "file {at}");
                if count > 1 {
                    assert_eq!(api.get(&path, &other.access).await.0, 400, "another person's file");
                }
            }
        })
        .await;
    report.took("checking each file byte by byte, and that other users are refused", begun);
    // The trigger on auth.users has been imported and works.
    let person = json!({ "email": "new@example.org", "password": "secret words" });
    let answer =
        api.http.post(format!("{}/auth/v1/signup", api.url)).header("apikey", &api.key).json(&person).send().await;
    assert_eq!(answer.expect("an answer").status().as_u16(), 200);
    assert_eq!(here.one("select count(*) from profiles").await, (count + 1).to_string());
    report.end(count, files);
    if count > 100 {
        return;
    }

    an_archive_is_taken_as_the_database_itself(&former, &here, &database, &expected);
    a_dump_of_a_hosted_project_comes_over(&here, &people).await;
}

fn an_archive_is_taken_as_the_database_itself(former: &Project, here: &Project, database: &str, expected: &str) {
    let program = installed("client/bin/pg_dump").expect("pg_dump");
    let archive = former.root.join("all.dump");
    let arguments = ["--format=custom", "--file"];
    let made = Command::new(&program).args(arguments).arg(&archive).arg(database).status();
    assert!(made.expect("pg_dump runs").success());
    let (_, told) = here.ok(&["import", "--yes", "--dump", archive.to_str().expect("a path")]);
    assert!(!told.contains("Left out"), "{told}");
    assert_same(&state(here), expected);
}

/// A dump as pg_dump writes it for a hosted project, including parts that are not available here.
fn hosted(person: &Person) -> String {
    format!(
        r#"\restrict abc
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE ROLE "anon";
ALTER ROLE "anon" WITH NOSUPERUSER INHERIT NOLOGIN PASSWORD 'x';
ALTER ROLE "authenticator" SET "session_preload_libraries" TO 'safeupdate';
ALTER ROLE "anon" SET "statement_timeout" TO '5s';
CREATE ROLE "visitor";
ALTER ROLE "visitor" WITH SUPERUSER INHERIT NOLOGIN;
GRANT "visitor" TO "authenticator" WITH INHERIT TRUE GRANTED BY "supabase_admin";
GRANT "anon" TO "authenticator" GRANTED BY "supabase_admin";
CREATE SCHEMA auth;
ALTER SCHEMA auth OWNER TO supabase_admin;
CREATE EXTENSION IF NOT EXISTS no_such_thing WITH SCHEMA extensions;
CREATE TABLE auth.users (instance_id uuid, id uuid NOT NULL, email character varying(255), planet text);
ALTER TABLE auth.users OWNER TO supabase_auth_admin;
CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql AS $$ select null::uuid; $$;
ALTER FUNCTION auth.uid() OWNER TO supabase_auth_admin;
CREATE FUNCTION auth.planet() RETURNS text LANGUAGE sql STABLE AS $$ select 'earth'; $$;
ALTER FUNCTION auth.planet() OWNER TO postgres;
CREATE TABLE public.notes (id integer NOT NULL, body text DEFAULT auth.planet());
ALTER TABLE public.notes OWNER TO supabase_admin;
DO $$ begin raise 'not of a dump'; end $$;
COPY auth.users (instance_id, id, aud, role, email, planet, encrypted_password, email_confirmed_at, confirmed_at) FROM stdin;
00000000-0000-0000-0000-000000000000	{id}	authenticated	authenticated	{email}	mars	$2a$04$abcdefghijklmnopqrstuuWyFPVNuOIhq5KQ3fNPWnqVdT9.FUcDu	2026-01-01 00:00:00+00	2026-01-01 00:00:00+00
\.
INSERT INTO auth.sessions (id, user_id, created_at, updated_at, aal, orbit) VALUES
	('22222222-2222-4222-8222-222222222222', '{id}', now(), now(), 'aal1', NULL);
COPY auth.refresh_tokens (instance_id, id, token, user_id, revoked, created_at, updated_at, parent, session_id) FROM stdin;
00000000-0000-0000-0000-000000000000	7	tokenof2026b	{id}	f	2026-11-01 00:00:00+00	2026-11-01 00:00:00+00	\N	22222222-2222-4222-8222-222222222222
\.
COPY auth.moons (id) FROM stdin;
1
\.
COPY realtime.messages_2026_01_01 (id) FROM stdin;
1
\.
COPY public.notes (id, body) FROM stdin;
1	one;
\.
SELECT pg_catalog.setval('auth.refresh_tokens_id_seq', 7, true);
COPY supabase_migrations.schema_migrations (version, statements, name, created_by) FROM stdin;
1	{{}}	own	me
\.
ALTER TABLE ONLY auth.users ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notes ADD CONSTRAINT notes_pkey PRIMARY KEY (id);
CREATE POLICY "everybody" ON storage.objects FOR SELECT USING (bucket_id = 'open');
CREATE TRIGGER protect BEFORE DELETE ON storage.objects FOR EACH STATEMENT EXECUTE FUNCTION storage.protect_delete();
CREATE PUBLICATION supabase_realtime WITH (publish = 'insert, update, delete, truncate');
ALTER PUBLICATION supabase_realtime OWNER TO postgres;
ALTER PUBLICATION supabase_realtime ADD TABLE ONLY public.notes;
GRANT ALL ON TABLE public.notes TO anon;
GRANT ALL ON TABLE auth.users TO dashboard_user;
CREATE EVENT TRIGGER pgrst_ddl_watch ON ddl_command_end EXECUTE FUNCTION extensions.pgrst_ddl_watch();
ALTER EVENT TRIGGER pgrst_ddl_watch OWNER TO supabase_admin;
\unrestrict abc
"#,
        id = person.id,
        email = person.email,
    )
}

async fn a_dump_of_a_hosted_project_comes_over(here: &Project, people: &[Person]) {
    here.write("hosted.sql", &hosted(&people[0]));
    here.write("broken.sql", "create table public.fine (id int);\n\nselect pg_catalog.set_config('a.b', '', false);\ncreate table public.broken (id nothing);\n");
    let before = state(here);
    let (success, _, told) = here.run(&["import", "--yes", "--dump", "hosted.sql", "--dump", "broken.sql"]);
    let expected = "ferrobase: nothing was changed: broken.sql, line 4: create table public.broken (id nothing): ";
    assert!(!success && told.lines().last().is_some_and(|line| line.starts_with(expected)), "{told}");
    assert_same(&state(here), &before);

    let (_, told) = here.ok(&["import", "--yes", "--dump", "hosted.sql"]);
    let left_out: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("Left out: ")).collect();
    let expected = [
        "1 values of auth.users.planet: the column does not exist here",
        "ALTER ROLE \"authenticator\" SET \"session_preload_libraries\" TO 'safeupdate'",
        "CREATE EXTENSION IF NOT EXISTS no_such_thing WITH SCHEMA extensions (extension \"no_such_thing\" is not available)",
        "DO $$ begin raise 'not of a dump'; end $$",
        "rows of auth.moons: the table does not exist here",
    ];
    for (found, expected) in left_out.iter().zip(expected) {
        assert_eq!(*found, expected);
    }
    let found = here
        .one(
            "select concat_ws(' ', (select string_agg(body, ',') from notes), auth.planet(), auth.uid() is null,
               (select rolsuper from pg_roles where rolname = 'visitor'), pg_has_role('authenticator', 'visitor', 'SET'),
               (select string_agg(name, ',') from supabase_migrations.schema_migrations),
               (select pg_get_userbyid(relowner) from pg_class where oid = 'notes'::regclass),
               (select string_agg(tablename, ',') from pg_publication_tables where pubname = 'supabase_realtime'),
               (select string_agg(policyname, ',') from pg_policies where tablename = 'objects'))",
        )
        .await;
    assert_eq!((left_out.len(), found.as_str()), (5, "one; earth t f t own postgres notes everybody"), "{told}");
    let api = Api::of(here);
    let session = api.token("refresh_token", json!({ "refresh_token": "tokenof2026b" })).await;
    assert_eq!(session["user"]["email"].as_str(), Some(people[0].email.as_str()));
}
