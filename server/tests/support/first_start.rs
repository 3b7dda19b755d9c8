//! A data folder as a first start leaves it, with PostgreSQL, the platform and the schema of auth. Tests of what comes later begin with
//! a copy, which takes a twentieth of the first start's processor time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::binary::{self, DEADLINE};
use super::cluster;
use super::ports::free_ports;

static DATA: OnceLock<PathBuf> = OnceLock::new();

/// Copies it to `data`, which must not exist. The start takes place when a test needs it first.
///
/// If PostgreSQL's user cannot enter the folder, its cluster lies elsewhere and is not copied: the next start is then a first one.
pub fn copy_to(data: &Path) {
    cluster::copy(DATA.get_or_init(make), data);
}

fn make() -> PathBuf {
    let folder = cluster::place().join(format!("ferrobase-first-start-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary folder");
    cluster::remove_with_this_program(&folder, None);
    let (data, ports) = (folder.join("data"), free_ports());
    let mut command = binary::command(&["serve"], &folder, &data, ports);
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let deadline = Instant::now() + DEADLINE;
    while !is_healthy(ports[0]) {
        assert!(Instant::now() < deadline && server.try_wait().expect("asked").is_none(), "the first start failed");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&server), Signal::TERM).expect("told to stop");
    assert!(server.wait().expect("it ends").success());
    std::fs::remove_file(data.join("postgres.log")).expect("the log of that start goes");
    data
}

fn is_healthy(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = String::new();
    let sent = stream.write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    sent.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.starts_with("HTTP/1.1 200")
}
