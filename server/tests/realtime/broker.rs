//! A message broker for tests: the parts of NATS' core protocol that instances use. `just test-tools nats` runs the
//! same tests with a real `nats-server`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::ports::free_port;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Longest message in bytes: shorter than a large broadcast.
const LONGEST: usize = 64 << 10;

pub struct Broker {
    pub url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    is_down: AtomicBool,
    next: AtomicUsize,
    /// Subscriptions of each connection: subject and id.
    listeners: Mutex<HashMap<usize, Listener>>,
    published: AtomicUsize,
}

struct Listener {
    subscriptions: Vec<(String, String)>,
    out: UnboundedSender<Vec<u8>>,
    task: Option<JoinHandle<()>>,
}

impl Broker {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("nats://{}", listener.local_addr().expect("address"));
        let state = Arc::new(State::default());
        let accepting = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    if !state.is_down.load(Ordering::Acquire) {
                        serve(&state, stream);
                    }
                }
            }
        });
        Self { url, state, accepting }
    }

    /// Closes all connections and accepts no new ones.
    pub fn go_down(&self) {
        self.state.is_down.store(true, Ordering::Release);
        for (_, listener) in self.state.listeners.lock().drain() {
            if let Some(task) = listener.task {
                task.abort();
            }
        }
    }

    pub fn come_back(&self) {
        self.state.is_down.store(false, Ordering::Release);
    }

    pub fn published(&self) -> usize {
        self.state.published.load(Ordering::Acquire)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn serve(state: &Arc<State>, stream: TcpStream) {
    let number = state.next.fetch_add(1, Ordering::Relaxed);
    let (read, mut write) = stream.into_split();
    let (out, mut waiting) = unbounded_channel::<Vec<u8>>();
    let hello = format!(
        "INFO {{\"server_id\":\"test\",\"server_name\":\"test\",\"version\":\"2.10.0\",\"go\":\"\",\"host\":\"127.0.0.1\",\
         \"port\":4222,\"headers\":true,\"max_payload\":{LONGEST},\"proto\":1,\"client_id\":{number}}}\r\n"
    );
    let _ = out.send(hello.into_bytes());
    // Held until the listener is registered.
    let mut listeners = state.listeners.lock();
    let task = tokio::spawn({
        let (state, out) = (Arc::clone(state), out.clone());
        async move {
            let writing = async {
                while let Some(bytes) = waiting.recv().await {
                    if write.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = writing => {}
                _ = obey(&state, number, read, &out) => {}
            }
            state.listeners.lock().remove(&number);
        }
    });
    listeners.insert(number, Listener { subscriptions: Vec::new(), out, task: Some(task) });
}

async fn obey(
    state: &State,
    number: usize,
    read: OwnedReadHalf,
    out: &UnboundedSender<Vec<u8>>,
) -> std::io::Result<()> {
    let mut read = BufReader::new(read);
    let mut line = String::new();
    loop {
        line.clear();
        if read.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["PING"] => drop(out.send(b"PONG\r\n".to_vec())),
            ["SUB", subject, number_of_it] => {
                let subscription = ((*subject).to_owned(), (*number_of_it).to_owned());
                if let Some(listener) = state.listeners.lock().get_mut(&number) {
                    listener.subscriptions.push(subscription);
                }
            }
            ["PUB", subject, length] => {
                let length: usize = length.parse().expect("a length");
                assert!(length <= LONGEST, "{length} bytes are more than was said to be taken");
                let mut payload = vec![0; length + 2];
                read.read_exact(&mut payload).await?;
                state.published.fetch_add(1, Ordering::AcqRel);
                for (other, listener) in &*state.listeners.lock() {
                    for (wanted, sid) in &listener.subscriptions {
                        if *other != number && wanted == subject {
                            let head = format!("MSG {subject} {sid} {length}\r\n").into_bytes();
                            let _ = listener.out.send([head, payload.clone()].concat());
                        }
                    }
                }
            }
            ["PONG"] | ["CONNECT", ..] | ["UNSUB", ..] => {}
            _ => panic!("what the tests' broker does not know: {line}"),
        }
    }
}

/// A real `nats-server`, named by `NATS_SERVER` or found on PATH.
pub struct RealServer {
    pub url: String,
    child: std::process::Child,
}

impl RealServer {
    pub async fn start() -> Self {
        let port = free_port();
        let program = std::env::var_os("NATS_SERVER").unwrap_or_else(|| "nats-server".into());
        let child = std::process::Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("nats-server starts (`just test-tools nats` installs it)");
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self { url: format!("nats://127.0.0.1:{port}"), child }
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
