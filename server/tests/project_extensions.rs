//! Extensions in a project: those of Debian's server, and what some of ours compute.

use serde_json::Value;

use crate::project::Project;
use crate::project_commands::installed;
use crate::support::cluster::{connect, place};
use crate::support::outside;

/// The expected texts are those that the algorithm's own pages print.
pub async fn numbers_become_the_texts_of_hashids(project: &Project) {
    let salt = "this is my salt";
    for (numbers, rest, text) in [
        ("array[12345]", "", "NkK9"),
        ("array[683, 94108, 123, 5]", "", "aBMswoO2UB3Sj"),
        ("array[5, 5, 5, 5]", "", "1Wc8cwcE"),
        ("array[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "", "kRHnurhptKcjIDTWC3sx"),
        ("array[1]", ", 8", "gB0NV05e"),
        ("array[1234567]", ", 0, '0123456789abcdef'", "b332db5"),
    ] {
        let made = format!("select extensions.id_encode({numbers}::bigint[], '{salt}'{rest})");
        assert_eq!(project.one(&made).await, text, "{numbers}");
        let read = format!("select extensions.id_decode('{text}', '{salt}'{rest}) = {numbers}::bigint[]");
        assert_eq!(project.one(&read).await, "t", "{text}");
    }
    assert_eq!(project.one("select extensions.id_encode(1, 'this is my salt')").await, "NV");
    assert_eq!(project.one("select extensions.id_decode('NkK9', 'another salt')").await, "{}");
    let lost = "select count(*) from generate_series(1, 100) n, lateral (select array[n, n * 1000003, 9223372036854775807]) a (numbers)
                where extensions.id_decode(extensions.id_encode(numbers, 's' || n, n % 40), 's' || n, n % 40) <> numbers";
    assert_eq!(project.one(lost).await, "0");
}

const PLACES: &str = "create extension postgis with schema extensions;
create extension hypopg with schema extensions;
create extension index_advisor with schema extensions;
create extension http with schema extensions;
create extension vector with schema extensions;
create extension pgrouting with schema extensions;
create extension pg_partman with schema extensions;
create extension rum with schema extensions;
create extension address_standardizer with schema extensions;
create table places (id int primary key, name text, at extensions.geography (point, 4326));
create index on places using gist (at);
insert into places values (1, 'Paris', extensions.st_point(2.35, 48.86)), (2, 'Rome', extensions.st_point(12.5, 41.9));
create function near(lon float, lat float) returns setof places language sql stable as
  $$ select * from places order by at operator(extensions.<->) extensions.st_point(lon, lat)::extensions.geography limit 1 $$;
";

/// Only where `just postgis` has been run.
#[actix_web::test]
async fn debians_postgresql_has_postgis_and_runs_with_its_own_c_library() {
    let Some(programs) = installed("debian/usr/lib/postgresql/18/bin") else { return };
    let programs = programs.canonicalize().expect("a folder");
    let outside = outside::serve(|request, _| async move {
        actix_web::HttpResponse::Ok().body(format!("asked for {}", request.path()))
    });
    let project = Project::new("mapped", "", &[("supabase/migrations/1_places.sql", PLACES)]);
    let start = project.command(&["start"]).env("PG_BIN_DIR", &programs).output().expect("it runs");
    assert!(start.status.success(), "{}", String::from_utf8_lossy(&start.stderr));
    let key = project.status()["ANON_KEY"].as_str().expect("a key").to_owned();
    let (status, nearest) = project.get("/rest/v1/rpc/near?lon=3&lat=50&select=name", &key).await;
    assert_eq!(status, 200, "{nearest}");
    let nearest: Value = serde_json::from_str(&nearest).expect("JSON");
    assert_eq!(nearest[0]["name"], "Paris");
    let owner = "select proowner::regrole from pg_proc where oid = 'extensions.st_point(float, float)'::regprocedure";
    assert_eq!(project.one(owner).await, "supabase_admin");
    let projected = "select st_astext(st_snaptogrid(st_transform(st_setsrid(st_point(10, 50), 4326), 3857), 1))";
    assert_eq!(project.one(projected).await, "POINT(1113195 6446276)");
    // An index that is not there, which the planner takes.
    let client = connect(project.status()["DB_URL"].as_str().expect("a URL")).await;
    let planned = "select * from hypopg_create_index('create index on places (name)'); set enable_seqscan = off;
                   explain select * from places where name = 'Rome'";
    let plan = format!("{:?}", client.simple_query(planned).await.expect("a plan"));
    assert!(plan.contains("btree_places_name"), "{plan}");
    // An index that is there is not advised, and none of the tried ones stays.
    let advised = "insert into places select n, 'place ' || n from generate_series(3, 20000) n; analyze places;
                   select array_to_string(index_statements || errors, ' ') || (total_cost_after < total_cost_before)
                   from extensions.index_advisor('select * from places where name = $1 and id > 0')";
    let told = project.one(advised).await;
    assert_eq!(told, "CREATE INDEX ON public.places USING btree (name);true");
    assert_eq!(project.one("select count(*) from hypopg_list_indexes").await, "0");
    assert_eq!(project.one(&format!("select content from http_get('{outside}/x')")).await, "asked for /x");
}

#[actix_web::test]
async fn a_data_folder_may_be_used_with_either_server() {
    let Some(programs) = installed("debian/usr/lib/postgresql/18/bin") else { return };
    let programs = programs.canonicalize().expect("a folder");
    let project = Project::new(
        "either",
        "",
        &[(
            "supabase/migrations/1_words.sql",
            "create table words (word text primary key); insert into words values ('one');",
        )],
    );
    project.ok(&["start"]);
    project.ok(&["stop"]);
    let start = project.command(&["start"]).env("PG_BIN_DIR", &programs).output().expect("it runs");
    assert!(start.status.success(), "{}", String::from_utf8_lossy(&start.stderr));
    assert!(project.one("select version()").await.contains("Debian"));
    project.one("insert into words values ('two')").await;
    project.ok(&["stop"]);
    project.ok(&["start"]);
    assert!(!project.one("select version()").await.contains("Debian"));
    assert_eq!(project.one("select string_agg(word, ' ' order by word) from words").await, "one two");
}

const SERIES: &str = "create extension wrappers with schema extensions;
create extension timescaledb with schema extensions;
create foreign data wrapper stripe_wrapper handler extensions.stripe_fdw_handler validator stripe_fdw_validator options (kind 'it''s');
do $$ begin
  if not exists (select from pg_foreign_data_wrapper where fdwname = 's3_wrapper') then
    create foreign data wrapper s3_wrapper handler s3_fdw_handler validator s3_fdw_validator;
  end if;
end $$;
drop foreign data wrapper s3_wrapper;
create server stripe foreign data wrapper stripe_wrapper options (api_key_name 'stripe');
create foreign table customers (id text, attrs jsonb) server stripe options (object 'customers');
create view customer_ids as select id from customers;
create foreign data wrapper bare;
create server nowhere foreign data wrapper bare;
create foreign table nothing (id int) server nowhere;
create table readings (at timestamptz, celsius float);
select create_hypertable('readings', 'at', chunk_time_interval => interval '7 days');
select create_hypertable('readings', 'at', if_not_exists => true);
insert into readings select timestamptz '2024-02-28 22:10Z' + n * interval '1 hour', n from generate_series(0, 9) n;
create view daily as select time_bucket('1 day', at) as day, max(celsius) from readings group by 1 order by 1;
";

#[actix_web::test]
async fn wrappers_and_time_series_load_and_only_reading_a_foreign_table_is_refused() {
    let project = Project::new("series", "", &[("supabase/migrations/1_series.sql", SERIES)]);
    project.ok(&["start"]);
    let key = project.status()["ANON_KEY"].as_str().expect("a key").to_owned();
    let (status, daily) = project.get("/rest/v1/daily?select=max", &key).await;
    let daily: Value = serde_json::from_str(&daily).expect("JSON");
    assert_eq!((status, daily), (200, serde_json::json!([{ "max": 1 }, { "max": 9 }])));
    let (status, refused) = project.get("/rest/v1/customer_ids", &key).await;
    assert!(status >= 400 && refused.contains("0A000"), "{status} {refused}");
    let (types, _) = project.ok(&["gen", "types", "--lang", "typescript"]);
    assert!(types.contains("customers: {") && types.contains("customer_ids: {"), "{types}");
    let (success, _, told) = project.run(&["gen", "types", "--query-timeout", "1ms"]);
    assert!(!success && told.contains("statement timeout"), "{told}");
    let wrappers = "select string_agg(fdwname || coalesce(array_to_string(fdwoptions, ''), ''), ' ' order by fdwname) from pg_foreign_data_wrapper";
    assert_eq!(project.one(wrappers).await, "bare stripe_wrapperkind=it's");
    // A validator runs with the rights of the user who creates the wrapper.
    project.one("create function mine(text[], oid) returns void language sql as $$ select $$").await;
    let client = connect(project.status()["DB_URL"].as_str().expect("a URL")).await;
    for wrong in ["'mine(text[], oid)'", "'pg_stat_reset()'"] {
        let attempt = format!("select ferrobase.create_foreign_data_wrapper('x', null, {wrong}, array['a', 'b'])");
        let error = client.batch_execute(&attempt).await.expect_err(wrong);
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{wrong}: {error:?}");
    }
    for (call, bucket) in [
        ("interval '1 week', date '2024-02-29'", "2024-02-26"),
        ("interval '1 month', timestamp '2024-02-29 10:00'", "2024-02-01 00:00:00"),
        ("interval '3 months', date '1999-11-30'", "1999-10-01"),
        ("interval '15 minutes', timestamptz '2024-02-29 10:44:59Z'", "2024-02-29 10:30:00+00"),
        ("interval '1 day', timestamptz '2024-02-29 23:30Z', 'Europe/Paris'", "2024-02-29 23:00:00+00"),
        ("interval '1 day', timestamp '2024-02-29 10:00', interval '12 hours'", "2024-02-28 12:00:00"),
        ("5, -3", "-5"),
        ("10::bigint, 99::bigint", "90"),
    ] {
        assert_eq!(project.one(&format!("set timezone = 'UTC'; select time_bucket({call})")).await, bucket, "{call}");
    }
    project.one("create table keyed (id int primary key, at timestamptz)").await;
    for (call, code) in
        [("select create_hypertable('keyed', 'at')", "TS103"), ("select create_hypertable('readings', 'at')", "TS110")]
    {
        let error = client.batch_execute(call).await.expect_err(call);
        assert_eq!(error.code().map(|code| code.code()), Some(code), "{error:?}");
    }
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let examined = project.command(&["doctor"]).env("DATABASE_URL", url).output().expect("it runs");
    let told = String::from_utf8_lossy(&examined.stdout).into_owned();
    assert!(told.contains("the extension wrappers: ") && told.contains("the extension timescaledb: "), "{told}");
}

const CALLS: &str = "create extension http with schema extensions version '1.6';
create table words as select content from http_get('OUTSIDE/first');
create function asked(uri text) returns text language plpgsql as $$ begin
  return (select status || ' ' || content from extensions.http_get(uri)); end $$;
create function told(sql text) returns text language plpgsql as $$ declare answer text; begin
  execute sql into answer; return answer; exception when others then return sqlstate || ' ' || sqlerrm; end $$;
";

/// A statement waits for the answer, also in a migration, before the server serves.
#[actix_web::test]
async fn statements_make_http_requests() {
    let outside = outside::serve_apart(|request, body| async move {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("none");
        match request.path() {
            "/moved" => actix_web::HttpResponse::Found().insert_header(("location", "/there")).finish(),
            "/late" => {
                tokio::time::sleep(std::time::Duration::from_secs(30)).await;
                actix_web::HttpResponse::Ok().finish()
            }
            "/empty" => actix_web::HttpResponse::NoContent().finish(),
            path => actix_web::HttpResponse::Created()
                .insert_header(("x-mark", "it's"))
                .content_type("text/plain")
                .body(format!(
                    "{} {path}?{} {} {} {} {body}",
                    request.method(),
                    request.query_string(),
                    header("content-type"),
                    header("x-own"),
                    header("user-agent").split(' ').next().unwrap_or_default()
                )),
        }
    });
    let migration = CALLS.replace("OUTSIDE", &outside);
    let project = Project::new("calls", "", &[("supabase/migrations/1_calls.sql", migration.as_str())]);
    project.ok(&["start"]);
    assert_eq!(project.one("select content from words").await, "GET /first? none none PostgreSQL ");
    for (call, told) in [
        (
            "select content from http_get('@/a', '{\"q\": \"two words & é\", \"n\": 1.50, \"no\": [1], \"null\": null}')",
            "GET /a?n=1.5&q=two+words+%26+%C3%A9&null= none none PostgreSQL ",
        ),
        (
            "select status || ' ' || content from http_post('@/b', '{\"a\": 1}', 'application/json')",
            "201 POST /b? application/json none PostgreSQL {\"a\": 1}",
        ),
        (
            "select content from http_post('@/c', '{\"a\": true}'::jsonb)",
            "POST /c? application/x-www-form-urlencoded none PostgreSQL a=true",
        ),
        ("select content from http_put('@/d', 'text', 'text/plain')", "PUT /d? text/plain none PostgreSQL text"),
        ("select content from http_patch('@/d', 'text', 'text/plain')", "PATCH /d? text/plain none PostgreSQL text"),
        ("select content from http_delete('@/d')", "DELETE /d? none none PostgreSQL "),
        ("select (content is null) || ' ' || status from http_head('@/moved')", "true 302"),
        ("select content from http_get('@/moved')", "GET /there? none none PostgreSQL "),
        ("select (content is null) || ' ' || status from http_get('@/empty')", "true 204"),
        (
            "select content from http(('GET', '@/e', array[http_header('X-Own', 'mine')], null, null)::http_request)",
            "GET /e? none mine PostgreSQL ",
        ),
        ("select value from http_get('@/f') r, unnest(r.headers) h where h.field = 'x-mark'", "it's"),
        (
            "select s || ' ' || split_part(content, ' ', 5) from http_set_curlopt('CURLOPT_USERAGENT', 'me') s, http_get('@/g' || left(s::text, 0))",
            "true me",
        ),
        ("select http_post('@/x', null, null)", "XX000 http_request.content is NULL"),
        ("select http_get('file:///etc/passwd')", "XX000 Protocol \"file\" not supported"),
        ("select http_get('http://127.0.0.1:9/')", "XX000 Failed to connect to 127.0.0.1 port 9: Connection refused"),
        (
            "select http_set_curlopt('CURLOPT_VERBOSE', '1')",
            "XX000 curl option 'CURLOPT_VERBOSE' is not available for run-time configuration",
        ),
    ] {
        let told_now = project.one(&format!("select told($call${}$call$)", call.replace('@', &outside))).await;
        assert_eq!(told_now, told, "{call}");
    }
    // A limit of the request, and one of the statement, which ends the request too.
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let client = connect(&url).await;
    let late = format!("select told($$select extensions.http_get('{outside}/late')$$)");
    client.batch_execute("select extensions.http_set_curlopt('CURLOPT_TIMEOUT_MS', '200')").await.expect("an option");
    let told: String = client.query_one(&late, &[]).await.expect("an answer").get(0);
    assert!(told.starts_with("XX000 Operation timed out after "), "{told}");
    client.batch_execute("select extensions.http_reset_curlopt(); set statement_timeout = 300").await.expect("a limit");
    let begun = std::time::Instant::now();
    let ended =
        client.query_one(&format!("select extensions.http_get('{outside}/late')"), &[]).await.expect_err("a limit");
    assert_eq!(ended.code().map(|code| code.code()), Some("57014"));
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
    // Over the API, with its role's rights; nobody may execute dblink's functions.
    let key = project.status()["ANON_KEY"].as_str().expect("a key").to_owned();
    let (status, answer) = project.get(&format!("/rest/v1/rpc/asked?uri={outside}/api"), &key).await;
    assert_eq!((status, answer.as_str()), (200, "\"201 GET /api? none none PostgreSQL \""));
    let rights = "select string_agg(r, ',') from unnest(array['public', 'postgres', 'anon']) r
                  where has_function_privilege(r, 'ferrobase_http_open(text, text)', 'execute')";
    assert_eq!(project.one(rights).await, "");
    let told = project.one("select told($$select ferrobase_http_open('c', 'dbname=postgres')$$)").await;
    assert!(told.starts_with("42501"), "{told}");
}

/// A data folder of an older server: its `http` had the types and functions, and refused every request.
#[actix_web::test]
async fn the_http_of_an_older_data_folder_makes_requests_after_the_next_start() {
    let outside =
        outside::serve_apart(|request, _| async move { actix_web::HttpResponse::Ok().body(request.path().to_owned()) });
    let project = Project::new("older-http", "", &[]);
    project.ok(&["start"]);
    let folder = project.one("select split_part(current_setting('extension_control_path'), ':', 1)").await;
    let script = std::path::Path::new(&folder).join("extension/http--1.6.sql");
    std::fs::write(&script, include_str!("project_extensions/http--1.6.sql")).expect("the script of then");
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let as_then = format!(
        "create extension http with schema extensions version '1.6';
         create table calls (request extensions.http_request);
         insert into calls values (('GET', '{outside}/kept', null, null, null));
         create function fetched() returns text language sql as $$
           select (extensions.http(request)).content from calls $$;"
    );
    connect(&url).await.batch_execute(&as_then).await.expect("the extension of then");
    let refused = connect(&url).await.batch_execute("select fetched()").await.expect_err("refused then");
    assert_eq!(refused.code().map(|code| code.code()), Some("0A000"), "{refused:?}");
    let of_then = "comment on extension http is 'HTTP client (requests within a statement are not served by Ferrobase: use pg_net)';
                   update _supavisor.platform_files set checksum = 'of then' where name like '80%'";
    connect(&url.replacen("postgres:", "supabase_admin:", 1)).await.batch_execute(of_then).await.expect("as of then");
    project.ok(&["stop"]);
    project.ok(&["start"]);
    assert_eq!(project.one("select extversion from pg_extension where extname = 'http'").await, "1.7.1");
    // The older script is gone, or it would be offered.
    let versions = "select string_agg(version, ',') from pg_available_extension_versions where name = 'http'";
    assert_eq!(project.one(versions).await, "1.7.1");
    assert_eq!(project.one("select fetched()").await, "/kept", "what was made with it works");
    let rights = "select string_agg(r, ',') from unnest(array['public', 'postgres', 'anon']) r
                  where has_function_privilege(r, 'ferrobase_http_open(text, text)', 'execute')";
    assert_eq!(project.one(rights).await, "");
}

/// A statement that no longer waits ends its request.
#[tokio::test]
async fn a_closed_connection_ends_its_request() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir_in(place()).expect("a folder");
    let path = folder.path().join(ferrobase::jobs::CALLS_SOCKET);
    let outside = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = outside.local_addr().expect("an address");
    let outbound = ferrobase::jobs::Outbound { reaches_private: true, api: address };
    let _calls = ferrobase::jobs::Calls::listen(&path, outbound).expect("listening");
    let mut stream = tokio::net::UnixStream::connect(&path).await.expect("a connection");
    let asked = format!(
        "{{\"method\": \"GET\", \"url\": \"http://{address}/\", \"headers\": [], \"agent\": \"a\", \"milliseconds\": 60000}}\0"
    );
    // A greeting in version 3 of the protocol, and a query.
    let mut out = vec![0, 0, 0, 8, 0, 3, 0, 0, b'Q'];
    out.extend(u32::try_from(asked.len() + 4).expect("its length").to_be_bytes());
    out.extend(asked.as_bytes());
    stream.write_all(&out).await.expect("written");
    let (mut request, _) = outside.accept().await.expect("a request");
    let mut head = [0; 14];
    request.read_exact(&mut head).await.expect("its head");
    assert_eq!(&head, b"GET / HTTP/1.1");
    drop(stream);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(std::time::Duration::from_secs(30), request.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the request goes on");
}
