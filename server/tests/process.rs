//! The binary as a process: exit codes, one-line errors, signals at any time, the admin listener.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

use crate::support::binary;
use crate::support::cluster::place;
use crate::support::first_start;
use crate::support::ports::free_ports;

/// A temporary folder and free ports. Its processes end with it.
pub struct House {
    pub root: PathBuf,
    pub ports: [u16; 4],
    child: Option<Child>,
}

impl House {
    pub fn new(name: &str) -> Self {
        let root = place().join(format!("ferrobase-process-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a temporary directory");
        Self { root, ports: free_ports(), child: None }
    }

    /// After a first start, for tests of what comes later.
    pub fn started_before(name: &str) -> Self {
        let house = Self::new(name);
        first_start::copy_to(&house.root.join("data"));
        house
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_ferrobase"), arguments)
    }

    fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        binary::command_of(program, arguments, &self.root, &self.root.join("data"), self.ports)
    }

    fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
        let Output { status, stderr, .. } =
            self.command(arguments).envs(settings.iter().copied()).output().expect("the binary runs");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Starts the server with an empty project's migrations, so that no test waits for the application's.
    fn serve(&mut self) {
        self.serve_with(Stdio::null());
    }

    fn serve_with(&mut self, stdout: Stdio) {
        self.serve_as(stdout, &[]);
    }

    /// The same with further settings.
    pub fn serve_set(&mut self, settings: &[(&str, &str)]) {
        self.serve_as(Stdio::null(), settings);
    }

    fn serve_as(&mut self, stdout: Stdio, settings: &[(&str, &str)]) {
        let log = std::fs::File::create(self.root.join("log")).expect("a log");
        let mut command = self.command(&["serve"]);
        command.env("FERROBASE_DEV", "true").env("FERROBASE_MIGRATIONS", "none").envs(settings.iter().copied());
        self.child = Some(command.stdout(stdout).stderr(log).spawn().expect("the binary runs"));
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().expect("a server").id();
        kill_process(pid_of(pid).expect("a process id"), signal).expect("it runs");
    }

    pub fn exit_code(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("a server");
        let mut status = None;
        until("the server ends", || {
            status = child.try_wait().expect("a child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.root.join("log")).unwrap_or_default()
    }

    /// Status and body of a GET on one of our ports; 0 without an answer.
    pub fn get(&self, port: u16, path: &str) -> (u16, String) {
        let (head, body) = self.exchange(port, path, "close");
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body)
    }

    /// Head and body of a GET with a keep-alive connection; the body may be truncated.
    pub fn ask(&self, port: u16, path: &str) -> (String, String) {
        self.exchange(port, path, "keep-alive")
    }

    fn exchange(&self, port: u16, path: &str, connection: &str) -> (String, String) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Default::default() };
        let mut text = Vec::new();
        // A server that exits in the middle has not answered.
        let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: {connection}\r\n\r\n");
        if connection == "close" {
            let _ = stream.read_to_end(&mut text);
        } else {
            let mut piece = [0; 4096];
            while let Ok(count) = stream.read(&mut piece)
                && count > 0
            {
                text.extend_from_slice(&piece[..count]);
                if text.windows(4).any(|four| four == b"\r\n\r\n") {
                    break;
                }
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        text.split_once("\r\n\r\n").map_or_else(Default::default, |(head, body)| (head.to_owned(), body.to_owned()))
    }

    /// Possible places of the cluster: the data folder, or outside of a private home.
    fn places(&self) -> [PathBuf; 2] {
        let data = self.root.join("data");
        let hash = hex::encode(&Sha256::digest(data.as_os_str().as_encoded_bytes())[..6]);
        [data, Path::new("/var/lib/ferrobase").join(hash)]
    }

    /// Processes that run in our cluster or create it, wherever it is.
    fn database_processes(&self) -> Vec<String> {
        let places = self.places();
        let ours = |cwd: &Path, command: &str| {
            places.iter().any(|place| cwd.starts_with(place) || command.contains(&*place.to_string_lossy()))
        };
        let of_ours = |entry: std::fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
            let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
            let command = std::fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
            let is_database = command.contains("postgres") || command.contains("initdb");
            (is_database && ours(&cwd, &command)).then(|| format!("{pid} {command}"))
        };
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(of_ours).collect()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            for process in self.database_processes() {
                let pid = process.split(' ').next().and_then(|pid| pid_of(pid.parse().ok()?));
                let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
            }
        }
        for place in self.places().iter().chain([&self.root]) {
            let _ = std::fs::remove_dir_all(place);
        }
    }
}

fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Whether the tests run under `nohup`. Servers that they start then outlive their terminal too.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own status");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the ignored signals");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") & 1 == 1
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came about: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn wrong_usage_exits_2_and_failures_exit_1_with_one_line() {
    let house = House::new("usage");
    for (arguments, code, told) in [
        (&["nonsense"][..], 2, "unrecognized subcommand 'nonsense'"),
        (&["types"], 2, "a command is missing; usage: ferrobase types"),
        (
            &["serve", "--only", "moon"],
            2,
            "invalid value 'moon' for '--only <API>': choose rest, auth, realtime or storage",
        ),
        (&["migrate", "--dir", "/nowhere"], 1, "cannot read /nowhere"),
        (&["--config", "/nowhere.toml", "doctor"], 1, "cannot read the settings file /nowhere.toml"),
        (&["healthcheck"], 1, "does not answer"),
    ] {
        let (status, text) = house.run(arguments, &[]);
        assert_eq!(status, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(told) && text.starts_with("ferrobase: ") && text.lines().count() == 1, "{text}");
    }
    for command in ["serve", "migrate", "seed", "types", "keys", "doctor", "healthcheck"] {
        assert_eq!(house.run(&[command, "--help"], &[]), (Some(0), String::new()), "{command}");
    }
}

/// Regression: they were reported in up to four rounds, the last after the database had been started and changed.
#[test]
fn all_invalid_settings_are_reported_before_anything_is_started() {
    let house = House::new("settings");
    let wrong = [
        ("FERROBASE_DB_PORT", "x"),
        ("FERROBASE_LOG_FORMAT", "xml"),
        ("FERROBASE_MAIL", "pigeon"),
        ("GOTRUE_MAILER_AUTOCONFIRM", "perhaps"),
        ("PGRST_DB_MAX_ROWS", "many"),
        ("UPLOAD_FILE_SIZE_LIMIT", "much"),
    ];
    let (status, text) = house.run(&["serve"], &wrong);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    for (name, _) in wrong.iter().chain(&[("JWT_SECRET is not set", "")]) {
        assert_eq!(text.matches(name).count(), 1, "{name} in {text}");
    }
    assert!(!house.root.join("data").exists());
}

/// Regression: the inbox's port was checked only after the database had been created.
#[test]
fn a_port_in_use_is_reported_before_anything_is_started() {
    let house = House::new("port");
    let [api, _, inbox, admin] = house.ports;
    for (port, setting) in
        [(api, "FERROBASE_LISTEN"), (inbox, "FERROBASE_INBOX_LISTEN"), (admin, "FERROBASE_ADMIN_LISTEN")]
    {
        let _taken = TcpListener::bind(("127.0.0.1", port)).expect("our port");
        let (status, text) = house.run(&["serve"], &[("FERROBASE_DEV", "true")]);
        assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
        assert!(text.contains(&format!("cannot listen on 127.0.0.1:{port} ({setting})")), "{text}");
        if cfg!(target_os = "linux") {
            assert!(text.contains(&format!("(process {}, in ", std::process::id())), "{text}");
        }
        assert!(!house.root.join("data").exists());
    }
}

/// Regression: it ended with a panic.
#[test]
fn a_closed_stdout_does_not_stop_the_server() {
    let mut house = House::started_before("card");
    house.serve_with(Stdio::piped());
    drop(house.child.as_mut().and_then(|child| child.stdout.take()));
    until("the server answers", || house.get(house.ports[0], "/health").0 == 200);
    house.signal(Signal::TERM);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

/// Regression: `initdb` or the postmaster kept running alone.
#[test]
fn stopping_during_startup_leaves_no_database_running() {
    for (name, mark) in [("initdb", "db.partial/base"), ("postmaster", "db/postmaster.pid")] {
        let mut house = House::new(name);
        std::fs::create_dir_all(house.root.join("data")).expect("the data folder");
        house.serve();
        until("the database is being started", || house.places().iter().any(|place| place.join(mark).exists()));
        house.signal(Signal::TERM);
        assert_eq!(house.exit_code(), Some(0), "{}", house.log());
        until("the database has ended", || house.database_processes().is_empty());
    }
}

#[test]
fn commands_share_a_running_server_which_is_monitored_and_stops_in_order() {
    let mut house = House::started_before("running");
    house.serve();
    let [api, _, _, admin] = house.ports;
    until("the server answers", || house.get(api, "/health").0 == 200);
    assert_eq!(house.get(admin, "/live").0, 200);
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let (status, figures) = house.get(admin, "/metrics");
    assert_eq!(status, 200);
    assert!(figures.contains("ferrobase_http_requests_total{api=\"web\",status=\"2xx\"}"), "{figures}");
    assert!(figures.contains("pgrst_db_pool_max"), "{figures}");
    assert_eq!(house.get(api, "/metrics"), house.get(api, "/any-page"), "a page of the web app, not the figures");

    // A command finds the running database by its data folder, even with another configured port …
    let (status, text) = house.run(&["healthcheck"], &[]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = house.run(&["types", "typescript"], &[("FERROBASE_DB_PORT", "1")]);
    assert_eq!(status, Some(0), "{text}");
    // … and never mistakes another server on our port for it.
    let other = House::started_before("running-other");
    let database = house.ports[1].to_string();
    let (status, text) = other.run(&["types", "typescript"], &[("FERROBASE_DB_PORT", &database)]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains(&format!("port {database} on 127.0.0.1 is taken")), "{text}");

    // A log that is not a terminal contains no escape sequences.
    assert!(!house.log().contains('\u{1b}'), "{}", house.log());
    house.signal(if hangup_is_ignored() { Signal::TERM } else { Signal::HUP });
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
    // A planned stop of the database is not logged as an error.
    assert!(!house.log().contains("ERROR"), "{}", house.log());
    assert_eq!(house.database_processes(), Vec::<String>::new());
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let mut house = House::started_before("files");
    let serve = format!("ulimit -Sn 300 && exec '{}' serve", env!("CARGO_BIN_EXE_ferrobase"));
    let log = std::fs::File::create(house.root.join("log")).expect("a log");
    let mut command = house.command_of("sh", &["-c", &serve]);
    command.env("FERROBASE_DEV", "true").env("FERROBASE_MIGRATIONS", "none");
    house.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("a shell"));
    let [_, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", house.child.as_ref().expect("a server").id()));
    let limits = limits.expect("it runs");
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let [soft, hard] = [0, 1].map(|index| files.split_whitespace().nth(index).expect("a number"));
    assert!(soft == hard && soft != "300", "{files}");
    house.signal(Signal::TERM);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

/// Regression: one client took all descriptors, and nobody else was answered, not even who looks after the server.
#[test]
fn one_client_leaves_connections_to_others() {
    use std::io::{Read as _, Write as _};
    let mut house = House::started_before("room");
    let serve = format!("ulimit -n 400 && exec '{}' serve", env!("CARGO_BIN_EXE_ferrobase"));
    let log = std::fs::File::create(house.root.join("log")).expect("a log");
    let mut command = house.command_of("sh", &["-c", &serve]);
    command.env("FERROBASE_DEV", "true").env("FERROBASE_MIGRATIONS", "none");
    house.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("a shell"));
    let [api, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    // Whether somebody at this address of the machine is answered.
    let is_served = |from: &str| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let own: std::net::SocketAddr = format!("{from}:0").parse().expect("an address");
        let server: std::net::SocketAddr = format!("127.0.0.1:{api}").parse().expect("an address");
        socket.bind(&own.into()).expect("bound");
        socket.connect_timeout(&server.into(), Duration::from_secs(5)).expect("connected");
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
        answer.starts_with("HTTP/1.1 200 ")
    };
    assert!(is_served("127.0.0.1"));
    let silent: Vec<TcpStream> = (0..600).map(|_| TcpStream::connect(("127.0.0.1", api)).expect("connected")).collect();
    until("the room of this client is taken", || !is_served("127.0.0.1"));
    assert!(is_served("127.0.0.2"), "{}", house.log());
    assert_eq!(house.get(admin, "/ready").0, 200);
    assert_eq!(house.log().matches("connections are refused").count(), 1, "{}", house.log());
    drop(silent);
    until("it is served again", || is_served("127.0.0.1"));
    house.signal(Signal::TERM);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

/// Names and owners of everything below a folder.
fn owners(folder: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let known = std::fs::symlink_metadata(&path).expect("it is there");
        if known.is_dir() {
            waiting.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        }
        found.push((path, known.uid()));
    }
    found
}

/// Only root can drop privileges; another user keeps running as itself.
#[test]
fn a_server_started_as_root_drops_its_rights_and_keeps_its_files() {
    const SECRET: &str = "a secret of this test alone, with more than enough bytes";
    let mut house = House::new("rights");
    let [api, _, _, admin] = house.ports;
    let start = |house: &mut House, user: Option<&str>| {
        let log = std::fs::File::create(house.root.join("log")).expect("a log");
        let mut command = house.command(&["serve"]);
        command.env("JWT_SECRET", SECRET).env("FERROBASE_MIGRATIONS", "none").env("FERROBASE_MAIL", "drop");
        command.envs(user.map(|user| ("FERROBASE_USER", user)));
        house.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("the binary runs"));
        until("the server is ready", || house.get(admin, "/ready").0 == 200);
        let status = std::fs::read_to_string(format!("/proc/{}/status", house.child.as_ref().expect("a server").id()));
        let status = status.expect("it runs");
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_owned();
        // Real, effective, saved and file-system ids; all groups.
        [line("Uid:"), line("Gid:"), line("Groups:")]
            .map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let end = |house: &mut House| {
        house.signal(Signal::TERM);
        assert_eq!(house.exit_code(), Some(0), "{}", house.log());
        assert_eq!(house.database_processes(), Vec::<String>::new());
    };
    let is_root = rustix::process::geteuid().is_root();
    let storage = house.root.join("data/storage");
    let (key, claims) = (
        jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes()),
        serde_json::json!({ "role": "service_role", "exp": 4_000_000_000_u64 }),
    );
    let service = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token");
    let ask = |method: &str, path: &str, body: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", api)).expect("a connection");
        let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {service}\r\n");
        let rest = format!("apikey: {service}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all((head + &rest).as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };

    // First as before privileges were dropped, with root's files.
    if is_root {
        assert_eq!(start(&mut house, Some("root"))[0], ["0"; 4]);
        let made = ask("POST", "/storage/v1/bucket", r#"{"name": "papers"}"#);
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        assert!(ask("POST", "/storage/v1/object/papers/old.txt", "old").starts_with("HTTP/1.1 200"));
        end(&mut house);
        assert!(owners(&storage).iter().all(|(_, owner)| *owner == 0), "{:?}", owners(&storage));
    }
    let [users, groups, further] = start(&mut house, None);
    if !is_root {
        assert_eq!(users, vec![rustix::process::geteuid().as_raw().to_string(); 4]);
        return end(&mut house);
    }
    let account = users[0].clone();
    assert!(account != "0" && users.iter().all(|user| *user == account), "{users:?}");
    assert!(
        groups[0] != "0" && groups.iter().chain(&further).all(|group| *group == groups[0]),
        "{groups:?} {further:?}"
    );
    assert!(ask("GET", "/storage/v1/object/papers/old.txt", "").ends_with("old"), "files written as root can be read");
    assert!(ask("POST", "/storage/v1/object/papers/new.txt", "new").starts_with("HTTP/1.1 200"));
    let of_account = |found: &[(PathBuf, u32)]| found.iter().all(|(_, owner)| owner.to_string() == account);
    assert!(of_account(&owners(&storage)), "{:?}", owners(&storage));
    // Its database can be started again, and stopped.
    let postmaster =
        house.places().iter().find_map(|place| std::fs::read_to_string(place.join("db/postmaster.pid")).ok());
    let pid = |text: &str| text.lines().next().and_then(|pid| pid.parse().ok()).and_then(pid_of).expect("a process id");
    let before = pid(&postmaster.expect("a running database"));
    kill_process(before, Signal::KILL).expect("it runs");
    until("another database runs", || {
        let files = house.places().map(|place| std::fs::read_to_string(place.join("db/postmaster.pid")).ok());
        files.into_iter().flatten().any(|text| text.contains("ready") && pid(&text) != before)
    });
    until("the server is ready again", || house.get(admin, "/ready").0 == 200);
    end(&mut house);
    // Files written by root in between change their owner too.
    start(&mut house, Some("root"));
    assert!(ask("POST", "/storage/v1/object/papers/between.txt", "between").starts_with("HTTP/1.1 200"));
    end(&mut house);
    start(&mut house, None);
    assert!(ask("GET", "/storage/v1/object/papers/between.txt", "").ends_with("between"));
    assert!(of_account(&owners(&storage)), "{:?}", owners(&storage));
    end(&mut house);
    let (status, text) = house.run(
        &["serve"],
        &[
            ("JWT_SECRET", SECRET),
            ("FERROBASE_MIGRATIONS", "none"),
            ("FERROBASE_MAIL", "drop"),
            ("FERROBASE_USER", "no-such-user"),
        ],
    );
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("FERROBASE_USER: there is no user 'no-such-user'"), "{text}");
}

#[test]
fn an_idle_connection_serves_the_next_request_and_ends_with_the_server() {
    let mut house = House::started_before("waits");
    house.serve();
    let [api, _, inbox, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let mut connections = [(api, "/health"), (inbox, "/api/messages"), (admin, "/live")].map(|(port, path)| {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        (stream, path)
    });
    let ask = |(stream, path): &mut (TcpStream, &str)| {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").expect("the connection is open");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    for round in ["at once", "after a wait"] {
        for connection in &mut connections {
            let answer = ask(connection);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{} {round}: {answer}", connection.1);
        }
        // Longer than the default keep-alive timeout.
        std::thread::sleep(Duration::from_secs(6));
    }
    house.signal(Signal::TERM);
    for (stream, path) in &mut connections {
        assert_eq!(stream.read(&mut [0; 1]).expect("the end of the connection"), 0, "{path}");
    }
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

#[test]
fn a_second_stop_abandons_requests_in_flight() {
    let mut house = House::started_before("twice");
    house.serve();
    let [api, ..] = house.ports;
    until("the server answers", || house.get(api, "/health").0 == 200);
    // A request without its body delays the first stop once a worker has it, which answers 'Continue'.
    let mut stuck = TcpStream::connect(("127.0.0.1", api)).expect("a connection");
    stuck.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let head = "POST /functions/v1/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    stuck.write_all(head.as_bytes()).expect("half a request");
    let mut told = [0; 12];
    stuck.read_exact(&mut told).expect("an answer");
    assert_eq!(&told, b"HTTP/1.1 100");
    house.signal(Signal::INT);
    until("the stop has begun", || house.log().contains("requests in flight are finished first"));
    house.signal(Signal::INT);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
    assert!(house.log().contains("asked again"), "{}", house.log());
    assert_eq!(house.database_processes(), Vec::<String>::new());
}
