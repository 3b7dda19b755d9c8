//! Settings of realtime, mostly limits that keep one client from exhausting shared resources.

use std::time::Duration;

use super::bus::NatsConfig;
use super::presence::Sizes;
use crate::config::Reader;
use crate::http::room;

/// Whether realtime is part of the full server or runs alone as a drop-in with upstream's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Full,
    DropIn,
}

/// Every limit is a number; 0 means that there is none. Reference for the names `TENANT_MAX_…` and the drop-in's
/// defaults: supabase/realtime `config/runtime.exs`.
#[derive(Clone, Debug)]
pub struct RealtimeConfig {
    /// `FERROBASE_REALTIME_MAX_CONCURRENT_USERS` (`TENANT_MAX_CONCURRENT_USERS`): sockets that have joined a channel.
    /// Default 200 alone, else none.
    pub max_users: usize,
    /// `FERROBASE_REALTIME_MAX_SOCKETS`: sockets in all. Default: half of the descriptors that the process may open.
    pub max_sockets: usize,
    /// `FERROBASE_REALTIME_MAX_SOCKETS_PER_ADDRESS`: sockets of one client address. Default 2000, alone none.
    pub max_sockets_per_address: usize,
    /// `FERROBASE_REALTIME_MAX_REFUSALS_PER_ADDRESS`: refused joins of one client address per second, mean of ten. Default
    /// 20, alone none.
    pub max_refusals_per_address: usize,
    /// `FERROBASE_REALTIME_MAX_CHANNELS_PER_CLIENT` (`TENANT_MAX_CHANNELS_PER_CLIENT`): channels of one socket,
    /// default 100.
    pub max_channels: usize,
    /// `FERROBASE_REALTIME_MAX_JOINS_PER_SECOND` (`TENANT_MAX_JOINS_PER_SECOND`): default 100 alone, of the project;
    /// else 100 of one socket.
    pub max_joins: usize,
    /// `FERROBASE_REALTIME_MAX_EVENTS_PER_SECOND` (`TENANT_MAX_EVENTS_PER_SECOND`): messages in and out of the project,
    /// mean of a minute. Default 100 alone, else none.
    pub max_events: usize,
    /// `FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET`: messages that one socket sends per second, mean of ten. Default 500,
    /// alone none.
    pub max_events_per_socket: usize,
    /// `FERROBASE_REALTIME_MAX_PRESENCE_EVENTS_PER_SECOND` (`TENANT_MAX_PRESENCE_EVENTS_PER_SECOND`): of the project.
    /// Default 1000 alone, else none.
    pub max_presence_events: usize,
    /// `FERROBASE_REALTIME_MAX_CLIENT_PRESENCE_EVENTS` (`CLIENT_PRESENCE_MAX_CALLS`): presence calls of one channel in
    /// 30 s. Default 5 alone, else 50.
    pub max_client_presence: usize,
    /// `FERROBASE_REALTIME_MAX_PAYLOAD_KB` (`TENANT_MAX_PAYLOAD_SIZE_IN_KB`): of one broadcast or presence payload,
    /// default 3000.
    pub max_payload_kb: usize,
    /// `FERROBASE_REALTIME_MAX_RECORD_KB`: a changed row that is larger is cut short, default 1024.
    pub max_record_kb: usize,
    /// `FERROBASE_REALTIME_MAX_QUEUE_KB`: what may wait for a slow reader before its socket is closed, default 8192. Also
    /// bounds the presences of a socket, and half of it those of a channel.
    pub max_queue_kb: usize,
    /// `FERROBASE_REALTIME_MAX_QUEUES_MB`: what may wait for all readers together before those that are behind are closed,
    /// default 512. Half of it bounds all presences.
    pub max_queues_mb: usize,
    /// `FERROBASE_REALTIME_PERSISTENCE`: whether clients may have broadcasts stored for replays. Default true, alone false.
    pub persistence: bool,
    /// `FERROBASE_REALTIME_MAX_PERSISTED_MB`: size of `realtime.messages` beyond which no broadcasts of clients are stored,
    /// default 256.
    pub max_persisted_mb: usize,
    /// `FERROBASE_REALTIME_PRIVATE_ONLY`, default false: refuses public channels.
    pub private_only: bool,
    /// `FERROBASE_REALTIME_DB_POOL` (`DB_POOL_SIZE`): connections for policies and rows, default 5.
    pub pool: usize,
    /// `FERROBASE_REALTIME_STREAM_TIMEOUT`, seconds, default 60: a database that is silent for longer is lost.
    pub stream_timeout: Duration,
    /// `FERROBASE_BUS_URL`, `FERROBASE_BUS_SUBJECT` (default `ferrobase.realtime`): NATS, by which instances share
    /// broadcasts and presence. Default: the database's log.
    pub bus: Option<NatsConfig>,
    /// `FERROBASE_REALTIME_IDLE_TIMEOUT`, seconds, default 60: a socket silent for longer is closed.
    pub idle: Duration,
}

impl RealtimeConfig {
    pub fn read(reader: &mut Reader<'_>, mode: Mode) -> Self {
        let alone = mode == Mode::DropIn;
        let subject = reader.text(&["FERROBASE_BUS_SUBJECT"]);
        let bus = reader.secret(&["FERROBASE_BUS_URL"]).map(|url| NatsConfig::parse(url, subject)).transpose();
        let bus = bus.unwrap_or_else(|problem| {
            reader.problem(problem);
            None
        });
        let mut number = |names: &[&'static str], default: usize| reader.parse_or(names, "a whole number", default);
        Self {
            max_users: number(
                &["FERROBASE_REALTIME_MAX_CONCURRENT_USERS", "TENANT_MAX_CONCURRENT_USERS"],
                if alone { 200 } else { 0 },
            ),
            max_sockets: number(&["FERROBASE_REALTIME_MAX_SOCKETS"], room::most().min(room::descriptors() / 2)),
            max_sockets_per_address: number(
                &["FERROBASE_REALTIME_MAX_SOCKETS_PER_ADDRESS"],
                if alone { 0 } else { 2000 },
            ),
            max_refusals_per_address: number(
                &["FERROBASE_REALTIME_MAX_REFUSALS_PER_ADDRESS"],
                if alone { 0 } else { 20 },
            ),
            max_channels: number(
                &["FERROBASE_REALTIME_MAX_CHANNELS_PER_CLIENT", "TENANT_MAX_CHANNELS_PER_CLIENT"],
                100,
            ),
            max_joins: number(&["FERROBASE_REALTIME_MAX_JOINS_PER_SECOND", "TENANT_MAX_JOINS_PER_SECOND"], 100),
            max_events: number(
                &["FERROBASE_REALTIME_MAX_EVENTS_PER_SECOND", "TENANT_MAX_EVENTS_PER_SECOND"],
                if alone { 100 } else { 0 },
            ),
            max_events_per_socket: number(&["FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET"], if alone { 0 } else { 500 }),
            max_presence_events: number(
                &["FERROBASE_REALTIME_MAX_PRESENCE_EVENTS_PER_SECOND", "TENANT_MAX_PRESENCE_EVENTS_PER_SECOND"],
                if alone { 1000 } else { 0 },
            ),
            max_client_presence: number(
                &["FERROBASE_REALTIME_MAX_CLIENT_PRESENCE_EVENTS", "CLIENT_PRESENCE_MAX_CALLS"],
                if alone { 5 } else { 50 },
            ),
            max_payload_kb: number(&["FERROBASE_REALTIME_MAX_PAYLOAD_KB", "TENANT_MAX_PAYLOAD_SIZE_IN_KB"], 3000),
            max_record_kb: number(&["FERROBASE_REALTIME_MAX_RECORD_KB"], 1024),
            max_queue_kb: number(&["FERROBASE_REALTIME_MAX_QUEUE_KB"], 8192),
            max_queues_mb: number(&["FERROBASE_REALTIME_MAX_QUEUES_MB"], 512),
            max_persisted_mb: number(&["FERROBASE_REALTIME_MAX_PERSISTED_MB"], 256),
            pool: number(&["FERROBASE_REALTIME_DB_POOL", "DB_POOL_SIZE"], 5).max(1),
            persistence: reader.flag(&["FERROBASE_REALTIME_PERSISTENCE"], !alone),
            private_only: reader.flag(&["FERROBASE_REALTIME_PRIVATE_ONLY"], false),
            bus,
            stream_timeout: reader.seconds_or(&["FERROBASE_REALTIME_STREAM_TIMEOUT"], Duration::from_secs(60)),
            idle: reader.seconds_or(&["FERROBASE_REALTIME_IDLE_TIMEOUT"], Duration::from_secs(60)),
        }
    }

    /// Bytes that may wait for one reader.
    pub fn max_queue(&self) -> usize {
        bytes(self.max_queue_kb, 10)
    }

    /// Bytes that may wait for all readers.
    pub fn max_queues(&self) -> usize {
        bytes(self.max_queues_mb, 20)
    }

    /// Bytes of `realtime.messages` up to which broadcasts of clients are stored.
    pub fn max_persisted(&self) -> usize {
        bytes(self.max_persisted_mb, 20)
    }

    /// Bytes of presences. Everybody who joins a room gets its whole state, and an update contains both entries.
    pub fn max_presences(&self) -> Sizes {
        let (room, socket, process) = (self.max_queue() / 2, self.max_queue(), self.max_queues() / 2);
        Sizes { room, socket, address: socket.max(process / 8), process }
    }

    /// Longest payload in bytes, with upstream's grace.
    pub fn max_payload(&self) -> usize {
        if self.max_payload_kb == 0 { usize::MAX } else { self.max_payload_kb * 1000 + 500 }
    }
}

/// So many times 2 to the power of `scale`; 0 means no limit.
fn bytes(count: usize, scale: u32) -> usize {
    if count == 0 { usize::MAX } else { count.saturating_mul(1 << scale) }
}
