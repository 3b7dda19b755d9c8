//! A stalled disk: every write to it blocks in the kernel until it continues.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use futures_util::future::join_all;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::json;

use super::{client, during, report, setting, settled, started, writes_again};
use crate::support::PASSWORD;
use crate::support::binary::SERVICE_KEY;
use crate::support::server_process::ServerProcess;
use crate::support::valve::until;

/// How long the disk is stalled.
const STALL: Duration = Duration::from_secs(10);
/// Each answer that needs no write to the stalled disk has to arrive within this time.
const IN_TIME: Duration = Duration::from_secs(10);
/// A request that needs PostgreSQL while that stalls too is answered or refused within this time.
const REFUSED_IN: Duration = Duration::from_secs(20);
/// How often that many uploads begin.
const BURSTS: usize = 5;
/// Uploads at once that their clients give up, and for how long these wait.
const GIVEN_UP: usize = 100;
const PATIENCE: Duration = Duration::from_secs(1);
/// Most further threads, and resident kilobytes, of the server while the disk is stalled. A connection whose body is not read holds
/// more than half a megabyte.
const FURTHER: [u64; 2] = [140, 400 << 10];
/// Most further open files afterwards.
const LEFT_OPEN: u64 = 100;

/// A small file system of its own, unmounted when dropped. `None` if it may not be mounted or frozen.
struct LoopDisk {
    image: PathBuf,
    at: PathBuf,
}

impl LoopDisk {
    fn mounted(image: PathBuf, at: &Path, megabytes: u64) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a folder");
        std::fs::File::create(&image).and_then(|file| file.set_len(megabytes << 20)).expect("an image");
        let formatted = succeeds(Command::new("mkfs.ext4").arg("-q").arg(&image));
        let disk = Self { image, at: at.to_owned() };
        let mounted = formatted && succeeds(Command::new("mount").args(["-o", "loop"]).arg(&disk.image).arg(at));
        // Its own thaw shows that freezing is possible.
        (mounted && disk.stall().is_some_and(|stalled| stalled.end())).then_some(disk)
    }

    /// Blocks every write to it.
    fn stall(&self) -> Option<Stalled> {
        // A file system that stays frozen blocks the machine, so this ends it even if the test is killed.
        let thaw = format!("sleep 60; exec fsfreeze -u '{}'", self.at.display());
        let mut fallback = Command::new("sh");
        fallback.args(["-c", &thaw]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let fallback = fallback.spawn().expect("a shell");
        let stalled = Stalled { at: self.at.clone(), fallback };
        succeeds(Command::new("fsfreeze").arg("-f").arg(&self.at)).then_some(stalled)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).output();
        let _ = std::fs::remove_file(&self.image);
    }
}

/// A stall, ended when dropped.
struct Stalled {
    at: PathBuf,
    fallback: Child,
}

impl Stalled {
    fn end(&self) -> bool {
        succeeds(Command::new("fsfreeze").arg("-u").arg(&self.at))
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        // Fails if it has ended.
        self.end();
        let _ = self.fallback.kill();
        let _ = self.fallback.wait();
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|done| done.status.success())
}

/// Requests to the server while the disk is stalled.
struct Visitor<'a> {
    http: &'a Client,
    base: String,
    /// The content of all files, longer than one piece.
    content: Bytes,
    /// How many rows and users were written.
    written: AtomicU64,
}

impl Visitor<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY)
    }

    async fn upload(&self, key: &str, wait: Duration) -> Option<u16> {
        let sent = self.request(Method::POST, &format!("/storage/v1/object/chaos/{key}")).header("x-upsert", "true");
        let sent = sent.header("content-type", "application/octet-stream").timeout(wait).body(self.content.clone());
        Some(sent.send().await.ok()?.status().as_u16())
    }

    /// The status and body of an answer that has to arrive in this time.
    async fn asks(&self, fault: &str, what: &str, time: Duration, request: RequestBuilder) -> (u16, Vec<u8>) {
        let begun = Instant::now();
        let answer = request.timeout(time).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{fault}: {what}, {:?}: {error:?}", begun.elapsed()));
        let status = answer.status().as_u16();
        let body = answer.bytes().await.unwrap_or_else(|error| panic!("{fault}: {what}: {error:?}")).to_vec();
        (status, body)
    }

    /// The body of a success within [`IN_TIME`].
    async fn gets(&self, fault: &str, what: &str, request: RequestBuilder) -> Vec<u8> {
        let (status, body) = self.asks(fault, what, IN_TIME, request).await;
        assert!((200..300).contains(&status), "{fault}: {what}: {status} {}", String::from_utf8_lossy(&body));
        body
    }

    /// Answers that are not read to their end: long ones, which the server keeps in files without names on the same disk, and
    /// downloads of a file that has been removed since.
    async fn begins_to_read(&self) -> Vec<Response> {
        let large = self.request(Method::POST, "/storage/v1/object/chaos/large").header("x-upsert", "true");
        self.gets("before", "a large file", large.body(vec![7; LARGE])).await;
        let mut begun = Vec::new();
        for path in ["/rest/v1/chaos_long", "/storage/v1/object/chaos/large"].repeat(4) {
            let deadline = Instant::now() + Duration::from_secs(30);
            let answer = loop {
                let answer = self.request(Method::GET, path).send().await.expect("an answer");
                if answer.status().is_success() {
                    break answer;
                }
                // The view may not be known yet.
                assert!(Instant::now() < deadline, "{path}: {}", answer.status());
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            begun.push(answer);
        }
        let removal = self.request(Method::DELETE, "/storage/v1/object/chaos/large");
        self.gets("before", "a removal", removal).await;
        begun
    }

    /// Everything that needs no write to the files' disk works: reads, the database, and files that are there.
    async fn looks(&self, fault: &str) {
        for (what, request) in self.reads() {
            let body = self.gets(fault, what, request).await;
            assert!(what != FILE || body == self.content, "{fault}: the file differs");
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let row = json!({ "id": 1_000_000 + number, "value": number });
        self.gets(fault, "a new row", self.request(Method::POST, "/rest/v1/chaos").json(&row)).await;
        let user = json!({ "email": format!("visitor{number}@chaos.example"), "password": PASSWORD });
        self.gets(fault, "a new user", self.request(Method::POST, "/auth/v1/admin/users").json(&user)).await;
    }

    /// The same while PostgreSQL's disk stalls too. PostgreSQL may have to write before it reads, so each request that needs it is
    /// answered or refused, in time.
    async fn looks_without_database(&self, fault: &str) {
        let asked = self.reads().into_iter().map(|(what, request)| {
            let time = if what == OWN_HEALTH { IN_TIME } else { REFUSED_IN };
            self.asks(fault, what, time, request)
        });
        let answers = join_all(asked).await;
        for ((what, _), (status, body)) in self.reads().into_iter().zip(answers) {
            let expected: &[u16] = if what == OWN_HEALTH { &[200] } else { &[200, 503] };
            assert!(expected.contains(&status), "{fault}: {what}: {status} {}", String::from_utf8_lossy(&body));
        }
    }

    fn reads(&self) -> [(&'static str, RequestBuilder); 5] {
        let get = |path: &str| self.request(Method::GET, path);
        let list = self.request(Method::POST, "/storage/v1/object/list/chaos").json(&json!({ "prefix": "" }));
        [
            ("health", get("/health")),
            (OWN_HEALTH, get("/auth/v1/health")),
            ("rows", get("/rest/v1/chaos?select=value&id=gte.0&limit=3")),
            ("a list of files", list),
            (FILE, get("/storage/v1/object/chaos/known")),
        ]
    }
}

/// An answer that does not fit into memory.
const LONG: &str =
    "create view public.chaos_long as select n, repeat('long ', 8000) as text from generate_series(1, 900) n;
    grant select on public.chaos_long to service_role; notify pgrst, 'reload schema'";
/// Bytes of a file that does not fit into the buffers of a connection.
const LARGE: usize = 32 << 20;

const FILES: &str = "stalled disk of the files";
const BOTH: &str = "stalled disk of database and files";

/// Requests of [`Visitor::reads`]: one that needs no database, and a file that is there.
const OWN_HEALTH: &str = "health of auth";
const FILE: &str = "a file";

/// Threads, resident kilobytes and open files of a process.
fn load_of(pid: u32) -> [u64; 3] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").count() as u64;
    [number("Threads:"), number("VmRSS:"), files]
}

/// How many files below `folder` a process has open although they have been removed.
fn removed_files(pid: u32, folder: &Path) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").flatten();
    let paths = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    paths.filter(|path| path.starts_with(folder) && path.to_string_lossy().ends_with(" (deleted)")).count()
}

/// Stalls of the files' disk, then of PostgreSQL's too. What needs no write to the first is answered meanwhile, however many
/// uploads and downloads are given up, within bounds of threads and memory. Afterwards everything continues.
#[actix_web::test]
async fn a_stalled_disk_loses_nothing_and_stops_only_what_writes_to_it() {
    let seed = setting("CHAOS_SEED", 7);
    let root = std::env::temp_dir().join(format!("ferrobase-stalled-disk-{}", std::process::id()));
    std::fs::create_dir_all(&root).expect("a folder");
    // The server's log stays on another disk.
    let files = LoopDisk::mounted(root.join("files.img"), &root.join("files"), 512);
    let data = LoopDisk::mounted(root.join("data.img"), &root.join("data"), 1024);
    let (Some(files), Some(data)) = (files, data) else {
        println!("no disk may be mounted and frozen here: not tried");
        let _ = std::fs::remove_dir_all(&root);
        return;
    };
    let http = client();
    let mut server = ServerProcess::at(root.clone());
    let spill = root.join("files").display().to_string();
    // Long answers have no limit of rows, which development sets, and bodies share little memory.
    let settings =
        [("FERROBASE_SPILL_DIR", spill.as_str()), ("PGRST_DB_MAX_ROWS", "20000"), ("FERROBASE_BODIES_MB", "64")];
    server.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let (url, mut writers) = started(&mut server, &http, seed).await;
    let pid = server.child.as_ref().expect("a server").id();
    let content = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    let visitor = Visitor { http: &http, base: server.base(), content, written: AtomicU64::new(0) };
    assert_eq!(visitor.upload("known", IN_TIME).await, Some(200));
    crate::support::cluster::connect(&url).await.batch_execute(LONG).await.expect("a view");
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for (fault, disks) in [(FILES, vec![&files]), (BOTH, vec![&files, &data])] {
        *faults.entry(fault).or_default() += 1;
        visitor.looks(fault).await;
        let (visitor, files_folder) = (&visitor, root.join("files"));
        during(&mut writers, async move {
            let readers = visitor.begins_to_read().await;
            until("the files of all readers are open and removed", async || {
                removed_files(pid, &files_folder) >= readers.len()
            })
            .await;
            let before = load_of(pid);
            let stalls: Vec<Stalled> = disks.iter().map(|disk| disk.stall().expect("stalled")).collect();
            let begun = Instant::now();
            // Closing a removed file is a write to its disk.
            drop(readers);
            let mut most = before;
            let mut bursts = 0;
            while begun.elapsed() < STALL {
                // Clients that give up, and try again with another connection.
                let count = if bursts < BURSTS { GIVEN_UP } else { 0 };
                bursts += 1;
                let uploads =
                    (0..count).map(|n| async move { visitor.upload(&format!("given-up/{n}"), PATIENCE).await });
                join_all(uploads).await;
                for (most, now) in most.iter_mut().zip(load_of(pid)) {
                    *most = now.max(*most);
                }
                if fault == FILES {
                    visitor.looks(fault).await;
                } else {
                    visitor.looks_without_database(fault).await;
                }
            }
            println!("{fault}: threads, kilobytes, files {before:?}, at most {most:?} in {:?}", begun.elapsed());
            drop(stalls);
            for (at, what) in ["threads", "kilobytes"].into_iter().enumerate() {
                assert!(most[at] <= before[at] + FURTHER[at], "{fault}: {} {what}", most[at]);
            }
            until("what the clients that gave up had open is closed", async || {
                load_of(pid)[2] <= before[2] + LEFT_OPEN
            })
            .await;
        })
        .await;
        server.ready(&http).await;
        settled(&url).await;
        for writer in &mut writers {
            writer.check(fault).await;
        }
        visitor.looks(fault).await;
        writes_again(&mut writers, fault).await;
    }
    report(&format!("Stalled disks, seed {seed}"), &faults, &writers);
    drop(server);
    drop((files, data));
    let _ = std::fs::remove_dir_all(root);
}
