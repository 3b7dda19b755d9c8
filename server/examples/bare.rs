//! The limit of `just bench overload`: a server that does nothing but read requests, ask PostgreSQL for the page, the row, the user or the
//! object that the benchmark asks for, store the files that it uploads in `FOLDER`, and refuse what comes while `AT_ONCE` of them are being
//! asked for, as late as ours does. It checks no token, has no limits, sends a file's content from memory, and knows no more of HTTP than the
//! load generator needs.
//!
//! ```text
//! bare ADDRESS DATABASE_URL AT_ONCE FOLDER
//! ```

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

const PAGE: &str = "select coalesce(json_agg(row_to_json(page)), '[]')::text \
                    from (select id, label from bench.item where id >= $1 and id < $2) page";
const ROW: &str = "select coalesce(json_agg(row_to_json(item)), '[]')::text from bench.item where id >= $1 and id < $2";
const USER: &str = "select row_to_json(users)::text from auth.users where id = $1::text::uuid";
const OBJECT: &str = "select version from storage.objects where bucket_id = 'bench' and name = $1";
const STORE: &str = "insert into storage.objects (bucket_id, name, version, metadata) values ('bench', $1, $2, '{\"size\": 10000}') \
                     on conflict (bucket_id, name) do update set version = excluded.version, metadata = excluded.metadata returning name";
/// The content of an object.
const CONTENT: &str = match std::str::from_utf8(&[b'x'; 10_000]) {
    Ok(content) => content,
    Err(_) => "",
};
const SETTINGS: &str = "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)";
/// As `db::overload` holds refusals back at least.
const HELD_BACK: Duration = Duration::from_millis(30);
const REFUSED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, url, at_once, folder] = arguments.as_slice() else {
        anyhow::bail!("usage: bare ADDRESS DATABASE_URL AT_ONCE FOLDER")
    };
    let folder: Arc<Path> = Path::new(folder).into();
    let at_once: usize = at_once.parse()?;
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let busy = Arc::new(AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (0..threads).map(|_| {
        let (listener, url, busy, folder) = (listener.try_clone(), url.clone(), busy.clone(), folder.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio::task::LocalSet::new().block_on(&runtime, serve(listener?, &url, at_once, busy, folder))
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().map_err(|_| anyhow::anyhow!("a thread has ended"))??;
    }
    Ok(())
}

/// A connection to PostgreSQL with its prepared statements.
struct Asker {
    client: Client,
    settings: Statement,
    /// By text and role, because PostgreSQL plans a statement again whenever the role is another one.
    known: Vec<(&'static str, String, Statement)>,
}

impl Asker {
    async fn open(url: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::task::spawn_local(connection);
        let settings = client.prepare(SETTINGS).await?;
        Ok(Self { client, settings, known: Vec::new() })
    }

    /// The result of a query, in one round trip.
    async fn ask(
        &mut self,
        text: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
        role: &str,
        claims: &str,
    ) -> anyhow::Result<String> {
        let begin = if text == STORE { "begin" } else { "begin read only" };
        let is_it = |known: &&(&str, String, Statement)| known.0 == text && known.1 == role;
        if !self.known.iter().any(|known| is_it(&known)) {
            self.known.push((text, role.to_owned(), self.client.prepare(text).await?));
        }
        let (_, _, rows) = self.known.iter().find(is_it).context("prepared")?;
        let user: [&(dyn ToSql + Sync); 2] = [&role, &claims];
        let (begun, set, found, ended) = tokio::join!(
            self.client.batch_execute(begin),
            self.client.query_one(&self.settings, &user),
            self.client.query_one(rows, parameters),
            self.client.batch_execute("commit"),
        );
        begun?;
        set?;
        ended?;
        Ok(found?.try_get(0)?)
    }
}

/// One thread: its connections, and its own share of those to PostgreSQL.
async fn serve(
    listener: TcpListener,
    url: &str,
    at_once: usize,
    busy: Arc<AtomicUsize>,
    folder: Arc<Path>,
) -> anyhow::Result<()> {
    let mut idle = Vec::new();
    for _ in 0..at_once {
        idle.push(Asker::open(url).await?);
    }
    let idle = Rc::new(RefCell::new(idle));
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (idle, busy, folder) = (idle.clone(), busy.clone(), folder.clone());
        tokio::task::spawn_local(async move {
            // Other errors are clients that have gone.
            if let Err(error) = answer(stream, &idle, &busy, at_once, &folder).await
                && !error.is::<std::io::Error>()
            {
                eprintln!("{error:#}");
            }
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    idle: &RefCell<Vec<Asker>>,
    busy: &AtomicUsize,
    at_once: usize,
    folder: &Arc<Path>,
) -> anyhow::Result<()> {
    let mut kept = Vec::with_capacity(4096);
    loop {
        let end = loop {
            if let Some(end) = kept.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut kept).await? == 0 {
                return Ok(());
            }
        };
        let length = body_length(&kept[..end]);
        while kept.len() < end + length {
            if stream.read_buf(&mut kept).await? == 0 {
                return Ok(());
            }
        }
        if kept.starts_with(b"GET / ") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
        } else if busy.fetch_add(1, Ordering::Relaxed) >= at_once {
            busy.fetch_sub(1, Ordering::Relaxed);
            tokio::time::sleep(HELD_BACK).await;
            stream.write_all(REFUSED).await?;
        } else {
            let asker = idle.borrow_mut().pop();
            let mut asker = asker.context("as many connections as may be busy")?;
            let (head, sent) = kept[..end + length].split_at(end);
            let body =
                if length == 0 { read(head, &mut asker).await } else { store(head, sent, &mut asker, folder).await };
            idle.borrow_mut().push(asker);
            busy.fetch_sub(1, Ordering::Relaxed);
            let body = body?;
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(response.as_bytes()).await?;
        }
        kept.drain(..end + length);
    }
}

fn body_length(head: &[u8]) -> usize {
    let mut lines = std::str::from_utf8(head).unwrap_or_default().lines();
    let length = |line: &str| {
        line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1.trim().parse().ok()
    };
    lines.find_map(length).unwrap_or_default()
}

/// Stores a file so that it is there after a crash, and then its row, as the server's service role.
async fn store(head: &[u8], content: &[u8], asker: &mut Asker, folder: &Arc<Path>) -> anyhow::Result<String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let path = std::str::from_utf8(head)?.split(' ').nth(1).context("no path")?;
    let name = path.split_once("/bench/").context("no object")?.1.to_owned();
    let version = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let (folder, content, file) = (folder.clone(), content.to_vec(), version.clone());
    tokio::task::spawn_blocking(move || write(&folder, &file, &content)).await??;
    asker.ask(STORE, &[&name, &version], "service_role", "{\"role\":\"service_role\"}").await?;
    Ok(format!("{{\"Key\":\"bench/{name}\"}}"))
}

fn write(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let temporary = folder.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, folder.join(name))?;
    Ok(File::open(folder)?.sync_all()?)
}

/// What a request asks for, as the user of its token.
async fn read(head: &[u8], asker: &mut Asker) -> anyhow::Result<String> {
    let head = std::str::from_utf8(head)?;
    let path = head.split(' ').nth(1).context("no path")?;
    let token = head.split_once("Bearer ").context("no token")?.1;
    let claims = token.split('.').nth(1).context("no claims")?;
    let claims = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(claims)?)?;
    let claim = |name: &str| {
        let (_, rest) = claims.split_once(&format!("\"{name}\":\""))?;
        rest.split('"').next()
    };
    let role = claim("role").context("no role")?;
    if path == "/user" {
        // Our server asks as its own login, too.
        return asker.ask(USER, &[&claim("sub").context("no user")?], "twin", &claims).await;
    }
    if let Some((_, name)) = path.split_once("/bench/") {
        asker.ask(OBJECT, &[&name], role, &claims).await?;
        return Ok(CONTENT.to_owned());
    }
    let (text, from, rows) = match path.split_once("id=gte.") {
        Some((_, from)) => (PAGE, from, 900),
        None => (ROW, path.split_once("id=eq.").context("neither a page nor a row")?.1, 1),
    };
    let from: i32 = from.split(|c: char| !c.is_ascii_digit()).next().context("no number")?.parse()?;
    asker.ask(text, &[&from, &(from + rows)], role, &claims).await
}
