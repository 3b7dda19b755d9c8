//! Edge functions of different kinds on Deno, as projects write them: where their modules come from, and what they need
//! from the runtime.

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use crate::project::Project;
use crate::support::outside;
use crate::support::ports::free_port;

const FUNCTIONS: [(&str, &str); 18] = [
    // Like most public projects: `serve` of the standard library, a package through esm.sh, and the function's own
    // CORS.
    (
        "supabase/functions/classic/index.ts",
        "import { serve } from 'https://deno.land/std@0.168.0/http/server.ts';\nimport ms from 'https://esm.sh/ms@2.1.3';\n\
         import 'https://deno.land/x/xhr@0.1.0/mod.ts';\nimport { corsHeaders } from '../_shared/cors.ts';\n\
         serve(async (request) => {\n  if (request.method === 'OPTIONS') return new Response('ok', { headers: corsHeaders });\n\
         const { period } = await request.json();\n  return Response.json({ period: ms(period) }, { headers: corsHeaders });\n});\n",
    ),
    (
        "supabase/functions/_shared/cors.ts",
        "export const corsHeaders = { 'Access-Control-Allow-Origin': 'https://app.example' };\n",
    ),
    // An import map for all functions, with a prefix for the standard library.
    (
        "supabase/functions/deno.json",
        "{ \"imports\": { \"std/\": \"https://deno.land/std@0.177.0/\", \"ms\": \"npm:ms@2.1.3\" } }\n",
    ),
    (
        "supabase/functions/mapped/index.ts",
        "import { encode } from 'std/encoding/base64.ts';\nimport ms from 'ms';\nimport { unit } from '../../../shared/unit.ts';\n\
         Deno.serve(() => new Response(`${encode('hello')} ${ms(1000)} ${unit}`));\n",
    ),
    ("shared/unit.ts", "export const unit = 'from the application';\n"),
    // Served only if it is the main module, so that its tests can import the handler alone.
    (
        "supabase/functions/tested/index.ts",
        "export const handler = () => new Response('as main');\nif (import.meta.main) Deno.serve(handler);\n",
    ),
    ("supabase/functions/modern/index.ts", "export default { fetch: () => new Response('by default') };\n"),
    // A WebSocket.
    (
        "supabase/functions/socket/index.ts",
        "Deno.serve((request) => {\n  const { socket, response } = Deno.upgradeWebSocket(request);\n\
         socket.onmessage = (event) => socket.send(`echo ${event.data}`);\n  return response;\n});\n",
    ),
    // Work that continues after the response.
    (
        "supabase/functions/later/index.ts",
        "Deno.serve(() => {\n  EdgeRuntime.waitUntil((async () => {\n    await new Promise((done) => setTimeout(done, 50));\n\
         await fetch(Deno.env.get('SUPABASE_URL') + '/rest/v1/notes', { method: 'POST', headers: {\n\
         apikey: Deno.env.get('SUPABASE_SERVICE_ROLE_KEY'), authorization: `Bearer ${Deno.env.get('SUPABASE_SERVICE_ROLE_KEY')}`,\n\
         'content-type': 'application/json' }, body: JSON.stringify({ text: 'afterwards' }) });\n  })());\n\
         return new Response(null, { status: 202 });\n});\n",
    ),
    // Direct access to the database.
    (
        "supabase/functions/database/index.ts",
        "import postgres from 'https://deno.land/x/postgresjs@v3.4.5/mod.js';\n\
         const sql = postgres(Deno.env.get('SUPABASE_DB_URL')!, { max: 1 });\n\
         Deno.serve(async () => Response.json(await sql`select count(*)::int as notes, current_user::text as person from notes`));\n",
    ),
    // Another client of PostgreSQL.
    (
        "supabase/functions/client/index.ts",
        "import { Pool } from 'https://deno.land/x/postgres@v0.17.0/mod.ts';\n\
         const pool = new Pool(Deno.env.get('SUPABASE_DB_URL')!, 2, true);\n\
         Deno.serve(async () => {\n  const client = await pool.connect();\n  try {\n\
         const one = await client.queryObject<{ big: bigint; text: string }>`select ${7}::int8 as big, ${'it'} as text`;\n\
         const two = await client.queryArray('select $1::int + 1, $2::text', [1, 'a']);\n\
         const three = await client.queryObject({ text: 'select $NAME::text as the_name', args: { name: 'x' }, camelCase: true });\n\
         let code = ''; try { await client.queryArray('select nothing'); } catch (error) { code = `${error.name} ${error.fields.code}`; }\n\
         return Response.json([typeof one.rows[0].big, one.rows[0].text, two.rows, three.rows, code]);\n  } finally { client.release(); }\n});\n",
    ),
    // A form with a file, and a file beside the function.
    (
        "supabase/functions/form/index.ts",
        "const greeting = await Deno.readTextFile(new URL('./greeting.txt', import.meta.url));\n\
         Deno.serve(async (request) => {\n  const form = await request.formData();\n  const file = form.get('file') as File;\n\
         return Response.json({ greeting: greeting.trim(), name: file.name, text: await file.text() });\n});\n",
    ),
    ("supabase/functions/form/greeting.txt", "good day\n"),
    // A webhook with a signature check; an npm package that writes to `process.env`.
    (
        "supabase/functions/webhook/index.ts",
        "import { crypto, timingSafeEqual } from 'jsr:@std/crypto@1';\nimport { encodeHex } from 'jsr:@std/encoding@1';\n\
         import 'jsr:@supabase/functions-js/edge-runtime.d.ts';\nimport process from 'node:process';\n\
         process.env.SEEN = 'yes';\n\
         Deno.serve(async (request) => {\n  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(await request.text())));\n\
         const given = new TextEncoder().encode(request.headers.get('x-signature') ?? '');\n\
         const ok = timingSafeEqual(new TextEncoder().encode(encodeHex(digest)), given);\n\
         let refused = '';\n  try { Deno.env.set('A', 'b'); } catch (error) { refused = error.name; }\n\
         return Response.json({ ok, seen: process.env.SEEN, refused }, { status: ok ? 200 : 401 });\n});\n",
    ),
    (
        "supabase/functions/keys/index.ts",
        "Deno.serve(() => Response.json(JSON.parse(Deno.env.get('SUPABASE_JWKS')!).keys.map((key: { kid: string }) => key.kid)));\n",
    ),
    // Addresses as the CLI's containers know them.
    (
        "supabase/functions/inside/index.ts",
        "const { port } = new URL(Deno.env.get('SUPABASE_URL')!);\nconst path = '/auth/v1/settings';\n\
         const headers = { apikey: Deno.env.get('SUPABASE_ANON_KEY')! };\n\
         Deno.serve(async () => Response.json(await Promise.all([\n\
         fetch(`http://kong:8000${path}`, { headers }), fetch(new URL(`http://host.docker.internal:${port}${path}`), { headers }),\n\
         fetch(new Request(`http://supabase_kong_kinds:8000${path}`, { headers })),\n\
         ].map(async (answer) => (await answer).status))));\n",
    ),
    // Threads cannot be started. Libraries ask for the type of `Worker`.
    (
        "supabase/functions/threads/index.ts",
        "import { Worker as Thread } from 'node:worker_threads';\nconst source = 'data:text/javascript,';\n\
         const tried = (make: () => unknown) => { try { make(); return 'made'; } catch (error) { return `${error}`; } };\n\
         Deno.serve(() => Response.json([typeof Worker, tried(() => new Worker(source, { type: 'module' })),\n\
         tried(() => new Thread(new URL(source))), tried(() => new Thread('1', { eval: true }))]));\n",
    ),
    // A missing model fails when it is used, not when the function starts.
    (
        "supabase/functions/model/index.ts",
        "const session = new Supabase.ai.Session('gte-small');\n\
         Deno.serve(async () => { try { await session.run('x'); } catch (error) { return new Response(error.message, { status: 501 }); } });\n",
    ),
];

struct Caller {
    base: String,
    key: String,
}

impl Caller {
    fn post(&self, name: &str) -> reqwest::RequestBuilder {
        reqwest::Client::new().post(format!("{}/{name}", self.base)).bearer_auth(&self.key)
    }

    async fn text(&self, name: &str) -> (u16, String) {
        answered(self.post(name)).await
    }
}

async fn answered(request: reqwest::RequestBuilder) -> (u16, String) {
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("a body"))
}

#[actix_web::test]
async fn many_kinds_of_functions_work() {
    let notes = "create table notes (text text); alter table notes enable row level security;";
    let mut files = FUNCTIONS.to_vec();
    files.push(("supabase/migrations/1_notes.sql", notes));
    let issuer = outside::serve(|request, _| async move {
        let own = format!("http://{}", request.connection_info().host());
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "theirs", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        match request.path() {
            "/keys" => HttpResponse::Ok().json(json!({ "keys": [key] })),
            _ => HttpResponse::Ok().json(json!({ "issuer": own, "jwks_uri": format!("{own}/keys") })),
        }
    });
    let third_party = format!("[auth.third_party.workos]\nenabled = true\nissuer_url = \"{issuer}\"\n");
    let project = Project::new("kinds", &third_party, &files);
    project.ok(&["start"]);
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let call = Caller { base: text("FUNCTIONS_URL"), key: text("ANON_KEY") };

    let preflight = reqwest::Client::new().request(reqwest::Method::OPTIONS, format!("{}/classic", call.base));
    let preflight = preflight.send().await.expect("an answer");
    assert_eq!(preflight.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(
        answered(call.post("classic").json(&json!({ "period": "2h" }))).await,
        (200, "{\"period\":7200000}".to_owned())
    );
    assert_eq!(call.text("mapped").await, (200, "aGVsbG8= 1s from the application".to_owned()));
    assert_eq!(call.text("tested").await, (200, "as main".to_owned()));
    assert_eq!(call.text("modern").await, (200, "by default".to_owned()));
    // The other issuer's keys, and the one that signs the project's own tokens.
    assert_eq!(call.text("keys").await, (200, r#"["theirs","b81269f1-21d8-4f2e-b719-c2240a840d90"]"#.to_owned()));
    assert_eq!(call.text("inside").await, (200, "[200,200,200]".to_owned()));
    assert_eq!(call.text("later").await.0, 202);
    let (code, told) = call.text("model").await;
    assert!(code == 501 && told.contains("Supabase.ai is not served here"), "{code} {told}");
    let refused = "Error: Not implemented: Worker.prototype.constructor";
    let threads = json!(["undefined", "ReferenceError: Worker is not defined", refused, refused]).to_string();
    assert_eq!(call.text("threads").await, (200, threads));

    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                inside\r\n--b--\r\n";
    let sent = call.post("form").header("content-type", "multipart/form-data; boundary=b").body(form);
    let (code, told) = answered(sent).await;
    assert_eq!((code, told.as_str()), (200, r#"{"greeting":"good day","name":"a.txt","text":"inside"}"#));

    let signature = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let (code, told) = answered(call.post("webhook").header("x-signature", signature).body("foo")).await;
    assert_eq!((code, told.as_str()), (200, r#"{"ok":true,"seen":"yes","refused":"NotSupported"}"#));
    assert_eq!(answered(call.post("webhook").header("x-signature", signature).body("bar")).await.0, 401);

    let url = format!("{}/socket", call.base.replacen("http", "ws", 1));
    let mut request =
        tokio_tungstenite::tungstenite::client::IntoClientRequest::into_client_request(url).expect("a request");
    let bearer = format!("Bearer {}", call.key).parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.expect("a socket");
    socket.send(Message::text("one")).await.expect("sent");
    assert_eq!(socket.next().await.expect("a message").expect("a message"), Message::text("echo one"));

    let begun = Instant::now();
    while project.one("select count(*) from notes").await != "1" {
        assert!(begun.elapsed() < Duration::from_secs(30), "the background work was not done");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (code, rows) = call.text("database").await;
    let rows: Value = serde_json::from_str(&rows).unwrap_or_else(|_| panic!("{code} {rows}"));
    assert_eq!(rows, json!([{ "notes": 1, "person": "postgres" }]));
    assert_eq!(
        call.text("client").await,
        (200, r#"["bigint","it",[[2,"a"]],[{"theName":"x"}],"PostgresError 42703"]"#.to_owned())
    );
    what_changes_is_served(&project, &call).await;
    assert!(!project.root.join("supabase/functions/deno.lock").exists(), "the project's folder is left as it is");
}

/// A new function, changed settings and environment, all without a restart.
async fn what_changes_is_served(project: &Project, call: &Caller) {
    assert_eq!(call.text("fresh").await.0, 404);
    project.write(
        "supabase/functions/fresh/index.ts",
        "Deno.serve(() => new Response(Deno.env.get('WORD') ?? 'none'));\n",
    );
    let config = std::fs::read_to_string(project.root.join("supabase/config.toml")).expect("a file");
    let open = reqwest::Client::new();
    let eventually = async |expected: (u16, &str)| {
        let begun = Instant::now();
        loop {
            let found = answered(open.post(format!("{}/fresh", call.base))).await;
            if (found.0, found.1.as_str()) == expected {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{found:?} instead of {expected:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    eventually((401, r#"{"code":401,"message":"Missing authorization header"}"#)).await;
    project.write("supabase/config.toml", &format!("{config}\n[functions.fresh]\nverify_jwt = false\n"));
    eventually((200, "none")).await;
    project.write("supabase/functions/.env", "WORD=[{\"a\": 1}]\n");
    eventually((200, "[{\"a\": 1}]")).await;
}

/// A process that has become too old finishes its requests and gets no more. An answer that begins too late is the relay's.
#[actix_web::test]
async fn old_processes_are_replaced_and_late_answers_are_not_waited_for() {
    let clock = "const born = crypto.randomUUID();\n\
         addEventListener('beforeunload', (event) => console.log(`ends by ${event.detail.reason}`));\n\
         Deno.serve(async (request) => {\n  const wait = Number(new URL(request.url).searchParams.get('ms') ?? 0);\n\
         await new Promise((done) => setTimeout(done, wait));\n  return new Response(born);\n});\n";
    let project = Project::new("ages", "", &[("supabase/functions/clock/index.ts", clock)]);
    let limits = [("FERROBASE_FUNCTION_WALL_SECONDS", "4"), ("FERROBASE_FUNCTION_RESPONSE_SECONDS", "6")];
    let started = project.command(&["start"]).envs(limits).output().expect("it runs");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let call = Caller { base: text("FUNCTIONS_URL"), key: text("ANON_KEY") };

    let first = call.text("clock").await;
    assert_eq!(first.0, 200, "{}", first.1);
    assert_eq!(call.text("clock?ms=4500").await, first, "begun before the end of its time");
    let second = call.text("clock").await;
    assert!(second.0 == 200 && second.1 != first.1, "{second:?}");
    let log = project.root.join(".ferrobase/server.log");
    let begun = Instant::now();
    while !std::fs::read_to_string(&log).expect("a log").contains("ends by wall_clock") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the old process was not told");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let late = call.post("clock?ms=20000").send().await.expect("an answer");
    assert_eq!(late.status(), 504);
    let header = |name: &str| late.headers()[name].to_str().expect("a text").to_owned();
    assert_eq!((header("x-relay-error"), header("sb-error-code")), ("true".to_owned(), "IDLE_TIMEOUT".to_owned()));
    let told: Value = late.json().await.expect("JSON");
    assert_eq!(told, json!({ "code": "IDLE_TIMEOUT", "message": "Function did not respond in time" }));
    assert_eq!(call.text("clock").await.0, 200);
}

/// Regression: a body counted as a whole, so one longer than the budget was cut off.
#[actix_web::test]
async fn a_body_may_be_longer_than_the_budget_for_bodies() {
    let count = "Deno.serve(async (request) => {\n  let length = 0;\n\
         for await (const part of request.body!) length += part.length;\n  return new Response(`${length}`);\n});\n";
    let project = Project::new("bodies", "", &[("supabase/functions/count/index.ts", count)]);
    let started = project.command(&["start"]).env("FERROBASE_BODIES_MB", "1").output().expect("it runs");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let call = Caller { base: text("FUNCTIONS_URL"), key: text("ANON_KEY") };
    let parts = || futures_util::stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![b'a'; 64 << 10])));
    for body in [vec![b'a'; 4 << 20].into(), reqwest::Body::wrap_stream(parts())] {
        assert_eq!(answered(call.post("count").body(body)).await, (200, (4 << 20).to_string()));
    }
}

/// A project with these functions and settings, started, and how its functions are called.
fn started(name: &str, functions: &[(&str, &str)], settings: &[(&str, &str)]) -> (Project, Caller) {
    let paths: Vec<_> = functions.iter().map(|(slug, _)| format!("supabase/functions/{slug}/index.ts")).collect();
    let files: Vec<_> = paths.iter().zip(functions).map(|(path, (_, text))| (path.as_str(), *text)).collect();
    let project = Project::new(name, "", &files);
    let output = project.command(&["start"]).envs(settings.iter().copied()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let call = Caller { base: text("FUNCTIONS_URL"), key: text("ANON_KEY") };
    (project, call)
}

impl Caller {
    async fn socket(&self, name: &str) -> tokio_tungstenite::WebSocketStream<impl AsyncRead + AsyncWrite + Unpin> {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
        let url = format!("{}/{name}", self.base.replacen("http", "ws", 1));
        let mut request = url.into_client_request().expect("a request");
        request.headers_mut().insert("authorization", format!("Bearer {}", self.key).parse().expect("a header"));
        tokio_tungstenite::connect_async(request).await.expect("a socket").0
    }
}

/// Until the log of the server contains `words` so many times.
async fn logged(project: &Project, words: &str, times: usize) {
    let log = project.root.join(".ferrobase/server.log");
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(&log).expect("a log");
        if text.matches(words).count() >= times {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "'{words}' is not in the log: {text}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Regressions: a client that gave up ended the start of the function's process, so a slow function was never ready; and once a
/// module could not be fetched, functions did not start after the last import that has a substitute was removed.
#[actix_web::test]
async fn starts_go_on_without_the_client_and_do_not_depend_on_other_functions() {
    let slow = "console.log('loading');\nawait new Promise((done) => setTimeout(done, 4000));\nDeno.serve(() => new Response('ready'));\n";
    let remote =
        "import { serve } from 'https://deno.land/std@0.168.0/http/server.ts';\nserve(() => new Response('remote'));\n";
    let plain = |word: &str| format!("Deno.serve(() => new Response('{word}'));\n");
    let (project, call) = started("starts", &[("slow", slow), ("remote", remote), ("plain", &plain("one"))], &[]);
    for _ in 0..3 {
        let left = call.post("slow").timeout(Duration::from_millis(500)).send().await;
        assert!(left.is_err_and(|error| error.is_timeout()));
    }
    assert_eq!(call.text("slow").await, (200, "ready".to_owned()));
    let log = std::fs::read_to_string(project.root.join(".ferrobase/server.log")).expect("a log");
    assert_eq!(log.matches("loading").count(), 1, "{log}");

    assert_eq!(call.text("remote").await, (200, "remote".to_owned()));
    std::fs::remove_dir_all(project.root.join("supabase/functions/remote")).expect("removed");
    project.write("supabase/functions/plain/index.ts", &plain("two"));
    let begun = Instant::now();
    loop {
        let answer = call.text("plain").await;
        if answer == (200, "two".to_owned()) {
            break;
        }
        assert_eq!(answer, (200, "one".to_owned()), "it never fails");
        assert!(begun.elapsed() < Duration::from_secs(30), "the change is not served");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Processor time, memory, bodies and calls at once.
#[actix_web::test]
async fn limits_end_only_what_is_over_them() {
    let work = "import process from 'node:process';\n\
         const burn = (seconds: number) => { const begun = process.cpuUsage(); let sum = 0;\n\
         while (process.cpuUsage(begun).user < seconds * 1e6) { for (let n = 0; n < 1e5; n++) sum += Math.sqrt(n); } return sum; };\n\
         let release: (value: unknown) => void;\n  const released = new Promise((done) => { release = done; });\n\
         Deno.serve(async (request) => {\n  const query = new URL(request.url).searchParams;\n\
         if (query.has('release')) release(0);\n  if (query.has('wait')) { await released; return new Response('waited'); }\n\
         if (query.has('later')) return new Response(new ReadableStream({ start(out) {\n\
           out.enqueue(new TextEncoder().encode('begun'));\n  setTimeout(() => burn(600), 200); } }));\n\
         return new Response(`${burn(Number(query.get('burn')) ) > 0}`);\n});\n";
    let hoard = "Deno.serve(async () => {\n  const all = [];\n\
         for (;;) { all.push(new Uint8Array(4 << 20).fill(1)); await new Promise((done) => setTimeout(done, 1)); }\n});\n";
    let count = "Deno.serve(async (request) => {\n  let length = 0;\n\
         for await (const part of request.body!) length += part.length;\n  return new Response(`${length}`);\n});\n";
    let wait = "Deno.serve(async () => { await new Promise((done) => setTimeout(done, 3000)); return new Response('waited'); });\n";
    let settings = [
        ("FERROBASE_FUNCTION_CPU_SECONDS", "1"),
        ("FERROBASE_FUNCTION_PROCESS_MB", "300"),
        ("FERROBASE_FUNCTION_BODY_MB", "2"),
        ("FERROBASE_FUNCTION_CALLS", "4"),
    ];
    let functions = [("work", work), ("hoard", hoard), ("count", count), ("wait", wait)];
    let (_project, call) = started("limits", &functions, &settings);

    // A call that waits is not charged with what others use, here more than both may use together.
    let (waited, ()) = futures_util::join!(call.text("work?wait"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        for _ in 0..8 {
            assert_eq!(call.text("work?burn=0.4").await, (200, "true".to_owned()));
        }
        assert_eq!(call.text("work?burn=0.1&release").await.0, 200);
    });
    assert_eq!(waited, (200, "waited".to_owned()));
    let over =
        r#"{"code":"WORKER_LIMIT","message":"Worker failed to respond due to a resource limit (please check logs)"}"#;
    assert_eq!(call.text("work?burn=600").await, (546, over.to_owned()));
    // The limit counts after the answer has begun, too.
    let answer = call.post("work?later").send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let rest = tokio::time::timeout(Duration::from_secs(60), answer.bytes()).await.expect("an end");
    assert!(rest.is_err(), "the answer is cut off");

    assert_eq!(call.text("hoard").await, (546, over.to_owned()), "memory outside of the heap");

    let parts = |count| futures_util::stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(vec![b'a'; 64 << 10])));
    let whole = (2 << 20, vec![b'a'; 2 << 20]);
    assert_eq!(answered(call.post("count").body(whole.1)).await, (200, whole.0.to_string()));
    let too_large = r#"{"code":"PAYLOAD_TOO_LARGE","message":"Request body is too large"}"#;
    for body in [vec![b'a'; (2 << 20) + 1].into(), reqwest::Body::wrap_stream(parts(33))] {
        assert_eq!(answered(call.post("count").body(body)).await, (413, too_large.to_owned()));
    }

    // A client has half of the calls.
    let other =
        reqwest::Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, 2])).build().expect("a client");
    let others = || answered(other.post(format!("{}/wait", call.base)).bearer_auth(&call.key));
    let ours = futures_util::future::join_all((0..4).map(|_| call.text("wait")));
    let theirs = futures_util::future::join_all((0..2).map(|_| others()));
    let (answers, theirs) = futures_util::join!(ours, theirs);
    let count = |code| answers.iter().filter(|answer| answer.0 == code).count();
    assert_eq!((count(200), count(503)), (2, 2), "{answers:?}");
    let refused = r#"{"code":"SERVICE_UNAVAILABLE","message":"Too many calls of this function at once"}"#;
    assert!(answers.iter().any(|answer| answer.1 == refused), "{answers:?}");
    assert!(theirs.iter().all(|answer| answer.0 == 200), "{theirs:?}");
}

/// The processes of a project's functions.
fn denos(project: &Project) -> Vec<u32> {
    let folder = format!("{}/", project.root.display());
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("--preload") && line.contains(&folder)
    })
    .collect()
}

/// Until so many processes of functions are left.
async fn left(project: &Project, count: usize) {
    let begun = Instant::now();
    while denos(project).len() != count {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} instead of {count}", denos(project));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Regression: a function had no limits until it listened.
#[cfg(target_os = "linux")]
#[actix_web::test]
async fn limits_count_while_a_function_boots() {
    // At most 500 MB, and then nothing more.
    let hoard = "const all = [];\nfor (let n = 0; n < 125; n++) {\n  all.push(new Uint8Array(4 << 20).fill(1));\n\
         await new Promise((done) => setTimeout(done, 5));\n}\nawait new Promise(() => setInterval(() => all, 1000));\n";
    let spin = "for (;;) Math.sqrt(2);\n";
    let settings = [("FERROBASE_FUNCTION_PROCESS_MB", "200"), ("FERROBASE_FUNCTION_BOOT_CPU_SECONDS", "3")];
    let (project, call) = started("boots", &[("hoard", hoard), ("spin", spin)], &settings);
    let begun = Instant::now();
    assert_eq!(call.text("hoard").await.0, 546);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    left(&project, 0).await;
    let again = Instant::now();
    assert_eq!(call.text("hoard").await.0, 546, "the failure is remembered");
    assert!(again.elapsed() < Duration::from_secs(1), "{:?}", again.elapsed());

    let begun = Instant::now();
    let spinning = tokio::spawn(call.post("spin").send());
    left(&project, 1).await;
    let adjusted = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", denos(&project)[0])).expect("a process");
    assert_eq!(adjusted.trim(), "1000", "it is the first that the system ends");
    let status = spinning.await.expect("it ran").expect("an answer").status();
    // On a busy machine, the minute for a boot ends before its three seconds of processor time.
    assert!(status == 546 || (status == 503 && begun.elapsed() > Duration::from_secs(60)), "{status}");
    left(&project, 0).await;
}

/// Regression: a function that blocked was left behind by a killed server.
#[cfg(target_os = "linux")]
#[actix_web::test]
async fn functions_end_with_a_killed_server() {
    let spin = "Deno.serve((request) => {\n  if (request.url.includes('spin')) for (;;) Math.sqrt(2);\n  return new Response('fine');\n});\n";
    let (project, call) = started("orphans", &[("busy", spin)], &[("FERROBASE_FUNCTION_CPU_SECONDS", "600")]);
    assert_eq!(call.text("busy").await, (200, "fine".to_owned()));
    let spinning = tokio::spawn(call.post("busy?spin").send());
    tokio::time::sleep(Duration::from_millis(500)).await;
    left(&project, 1).await;
    let server = std::fs::read_to_string(project.root.join(".ferrobase/server.lock")).expect("a process");
    let server = rustix::process::Pid::from_raw(server.trim().parse().expect("a number")).expect("a process");
    rustix::process::kill_process(server, rustix::process::Signal::KILL).expect("killed");
    left(&project, 0).await;
    assert!(spinning.await.expect("it ran").is_err());
}

/// Regressions: output without an end of line hid the message that a function listens; and answers without a type had one.
#[actix_web::test]
async fn output_without_a_newline_and_answers_without_a_type_work() {
    let eager = "Deno.stdout.writeSync(new TextEncoder().encode('starting..'));\nDeno.serve((request) => {\n\
         const query = new URL(request.url).search;\n  if (query === '?empty') return new Response(null, { status: 204 });\n\
         return new Response(new ReadableStream({ start(out) { out.enqueue(new TextEncoder().encode('a text')); out.close(); } }));\n});\n";
    let (project, call) = started("output", &[("eager", eager)], &[]);
    let begun = Instant::now();
    let answer = call.post("eager").send().await.expect("an answer");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!((answer.status().as_u16(), answer.headers().get("content-type")), (200, None));
    assert_eq!(answer.text().await.expect("a body"), "a text");
    let empty = call.post("eager?empty").send().await.expect("an answer");
    assert_eq!((empty.status().as_u16(), empty.headers().get("content-type")), (204, None));
    logged(&project, "[Info] starting..", 1).await;
}

/// Regression: each function added a process, however many there were.
#[actix_web::test]
async fn all_functions_share_a_number_of_processes() {
    let plain = "Deno.serve(async (request) => {\n\
         if (request.url.includes('wait')) await new Promise((done) => setTimeout(done, 20000));\n  return new Response('fine');\n});\n";
    let functions = [("one", plain), ("two", plain), ("three", plain)];
    let (project, call) = started("places", &functions, &[("FERROBASE_FUNCTION_PROCESSES", "2")]);
    for _ in 0..2 {
        for (name, _) in functions {
            assert_eq!(call.text(name).await, (200, "fine".to_owned()), "{name}");
            assert!(denos(&project).len() <= 2, "{:?}", denos(&project));
        }
    }
    // Busy ones are waited for, for a while.
    let busy = ["two?wait", "three?wait"].map(|path| tokio::spawn(call.post(path).send()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let full = r#"{"code":"SERVICE_UNAVAILABLE","message":"Too many functions are busy"}"#;
    assert_eq!(call.text("one").await, (503, full.to_owned()));
    assert!(denos(&project).len() <= 2, "{:?}", denos(&project));
    for answer in busy {
        assert_eq!(answer.await.expect("it ran").expect("an answer").status(), 200);
    }
    assert_eq!(call.text("one").await, (200, "fine".to_owned()));
}

/// Websockets that never end keep neither processes nor the server, and at a stop work in the background is finished.
#[actix_web::test]
async fn retired_processes_and_open_sockets_come_to_an_end() {
    let socket = |round: usize| {
        format!(
            "addEventListener('beforeunload', (event) => console.log(`ends by ${{event.detail.reason}}`));\n\
             Deno.serve((request) => {{\n  if (request.headers.get('upgrade') !== 'websocket') {{\n\
             if (request.url.includes('later')) EdgeRuntime.waitUntil(new Promise((done) => setTimeout(() => {{\n\
             console.log('done in the background'); done(0); }}, 2000)));\n    return new Response('{round}');\n  }}\n\
             const {{ socket, response }} = Deno.upgradeWebSocket(request);\n\
             socket.onmessage = (event) => socket.send(`echo ${{event.data}}`);\n  return response;\n}});\n"
        )
    };
    let settings = [("FERROBASE_FUNCTION_WALL_SECONDS", "30")];
    let (project, call) = started("ends", &[("socket", &socket(0))], &settings);
    let mut sockets = Vec::new();
    for round in 0..=6 {
        project.write("supabase/functions/socket/index.ts", &socket(round));
        let begun = Instant::now();
        while call.text("socket").await != (200, round.to_string()) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the change is not served");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sockets.push((Instant::now(), call.socket("socket").await));
    }
    // Six processes are retired. Two of them were too many.
    let mut kept = sockets.split_off(2);
    for (_, mut socket) in sockets {
        let end = tokio::time::timeout(Duration::from_secs(10), socket.next()).await.expect("its end");
        assert!(!matches!(end, Some(Ok(Message::Text(_)))), "{end:?}");
    }
    for (_, socket) in &mut kept {
        socket.send(Message::text("one")).await.expect("sent");
        assert_eq!(socket.next().await.expect("a message").expect("a message"), Message::text("echo one"));
    }
    // A retired process ends after the time that a process may live.
    let (opened, mut oldest) = kept.remove(0);
    let end = tokio::time::timeout(Duration::from_secs(60), oldest.next()).await.expect("its end");
    assert!(!matches!(end, Some(Ok(Message::Text(_)))) && opened.elapsed() < Duration::from_secs(60), "{end:?}");

    assert_eq!(call.text("socket").await.0, 200);
    let _open = call.socket("socket").await;
    assert_eq!(call.text("socket?later").await.0, 200);
    let begun = Instant::now();
    project.ok(&["stop"]);
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    logged(&project, "done in the background", 1).await;
}

/// `functions serve --env-file --no-verify-jwt --import-map`: the server takes the options, and drops them when the command ends,
/// even if it is killed.
#[actix_web::test]
async fn the_options_of_functions_serve_last_as_long_as_it_runs() {
    let project = Project::new(
        "serve-options",
        "",
        &[
            (
                "supabase/functions/word/index.ts",
                "import { unit } from 'unit';\nDeno.serve(() => new Response(`${Deno.env.get('WORD') ?? 'none'} ${unit}`));\n",
            ),
            ("supabase/functions/word/deno.json", "{ \"imports\": { \"unit\": \"./own.ts\" } }\n"),
            ("supabase/functions/word/own.ts", "export const unit = 'own';\n"),
            ("maps/unit.ts", "export const unit = 'mapped';\n"),
            ("maps/import_map.json", "{ \"imports\": { \"unit\": \"./unit.ts\" } }\n"),
            ("maps/words.env", "WORD=from the file\n"),
        ],
    );
    let (success, _, told) = project.run(&["functions", "serve", "--no-verify-jwt"]);
    assert!(!success && told.contains("the project is not running"), "{told}");
    project.ok(&["start"]);
    let status = project.status();
    let address = format!("{}/functions/v1/word", status["API_URL"].as_str().expect("a URL"));
    let key = status["ANON_KEY"].as_str().expect("a key").to_owned();
    let http = reqwest::Client::new();
    let eventually = async |expected: (u16, &str)| {
        let begun = Instant::now();
        loop {
            let found = answered(http.post(&address)).await;
            if (found.0, found.1.as_str()) == expected {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{found:?} instead of {expected:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let refused = (401, r#"{"code":401,"message":"Missing authorization header"}"#);
    eventually(refused).await;
    assert_eq!(answered(http.post(&address).bearer_auth(&key)).await, (200, "none own".to_owned()));
    let options = [
        "functions",
        "serve",
        "--no-verify-jwt",
        "--env-file",
        "maps/words.env",
        "--import-map",
        "maps/import_map.json",
    ];
    let mut serving = project.command(&options).stderr(std::process::Stdio::piped()).spawn().expect("it runs");
    // What it prints comes after the server has taken the options.
    let mut told = std::io::BufReader::new(serving.stderr.take().expect("its output"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut told, &mut line).expect("a line");
    assert!(line.starts_with("Serving functions on http://127.0.0.1:"), "{line}");
    assert_eq!(answered(http.post(&address)).await, (200, "from the file mapped".to_owned()));
    let (success, _, told) = project.run(&["functions", "serve", "--no-verify-jwt"]);
    assert!(!success && told.contains("another 'functions serve' of this project has options already"), "{told}");
    serving.kill().expect("killed");
    serving.wait().expect("ended");
    eventually(refused).await;
    assert_eq!(answered(http.post(&address).bearer_auth(&key)).await, (200, "none own".to_owned()));
    let (success, _, told) = project.run(&["functions", "serve", "--env-file=none.env"]);
    assert!(!success && told.contains("cannot read none.env"), "{told}");
}

/// `functions serve --inspect-mode`: a debugger sees the function, which has all the time.
#[actix_web::test]
async fn a_debugger_connects_to_a_function() {
    let port = free_port();
    // Three seconds of the processor, however busy the machine is.
    let work = "import process from 'node:process';\n\
         Deno.serve(() => {\n  const begun = process.cpuUsage();\n\
         let sum = 0;\n  while (process.cpuUsage(begun).user < 3e6) { for (let n = 0; n < 1e6; n++) sum += Math.sqrt(n); }\n\
         return new Response(sum > 0 ? 'done' : '');\n});\n";
    let project = Project::new(
        "debugged",
        &format!("[edge_runtime]\ninspector_port = {port}\n"),
        &[("supabase/functions/work/index.ts", work)],
    );
    project.ok(&["start"]);
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let call = Caller { base: text("FUNCTIONS_URL"), key: text("ANON_KEY") };
    assert_eq!(call.text("work").await.0, 546, "more processor time than it may use");
    for mode in ["run", "wait"] {
        let options = ["functions", "serve", "--inspect-mode", mode];
        let mut serving = project.command(&options).stderr(std::process::Stdio::piped()).spawn().expect("it runs");
        let told = std::io::BufReader::new(serving.stderr.take().expect("its output"));
        let listed = format!(" - 127.0.0.1:{port} (work)");
        let mut lines = std::io::BufRead::lines(told).map_while(Result::ok);
        assert!(lines.any(|line| line == listed), "{listed}");
        let is_listed = std::cell::Cell::new(false);
        let debugged = async {
            let address = debugger(port, "functions/work/index.ts").await;
            is_listed.set(true);
            if mode == "wait" {
                let (mut socket, _) = tokio_tungstenite::connect_async(address).await.expect("a socket");
                let run = json!({ "id": 1, "method": "Runtime.runIfWaitingForDebugger" }).to_string();
                // Deno forgets it if it does not wait yet.
                loop {
                    socket.send(Message::text(run.clone())).await.expect("sent");
                    let heard =
                        socket.next().await.expect("a message").expect("a message").into_text().expect("a text");
                    assert!(heard.contains("\"id\":1") && !heard.contains("error"), "{heard}");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
            std::future::pending().await
        };
        let answer = tokio::select! {
            answer = call.text("work") => answer,
            () = debugged => unreachable!("it does not end"),
        };
        assert_eq!(answer, (200, "done".to_owned()), "{mode}");
        assert!(is_listed.get(), "{mode}");
        serving.kill().expect("killed");
        serving.wait().expect("ended");
        let begun = Instant::now();
        while call.text("work").await.0 != 546 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the limits count again");
        }
    }
    let (success, _, told) = project.run(&["functions", "serve", "--inspect-mode", "step"]);
    assert!(!success && told.contains("invalid value 'step' for '--inspect-mode <MODE>'"), "{told}");
}

/// The address at which a debugger connects to the process of the function with this file.
async fn debugger(port: u16, file: &str) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(answer) = reqwest::get(format!("http://127.0.0.1:{port}/json")).await {
            let targets: Vec<Value> = answer.json().await.expect("JSON");
            // It listens a moment before the function is there.
            if let Some(target) = targets.first() {
                assert!(target["url"].as_str().is_some_and(|url| url.ends_with(file)), "{target}");
                return target["webSocketDebuggerUrl"].as_str().expect("an address").to_owned();
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing listens");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
