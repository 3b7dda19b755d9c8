//! Figures about requests and processes, as Supabase's runtime shows them at `/functions/v1/_internal/metric`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// V8's figures about the heap of the runtime's main worker.
const HEAP: [&str; 10] = [
    "totalHeapSize",
    "totalHeapSizeExecutable",
    "totalPhysicalSize",
    "totalAvailableSize",
    "totalGlobalHandlesSize",
    "usedGlobalHandlesSize",
    "usedHeapSize",
    "mallocedMemory",
    "externalMemory",
    "peakMallocedMemory",
];

/// Figures since the server's start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests of `/functions/v1`.
    received: AtomicU64,
    /// Those whose answer has ended.
    handled: AtomicU64,
    /// Processes that listen, and those that finish their last requests.
    active: AtomicU64,
    /// Processes that get no more requests, for whatever reason.
    retired: AtomicU64,
}

impl Metrics {
    pub fn receive(self: &Arc<Self>) -> Received {
        self.received.fetch_add(1, Ordering::Relaxed);
        Received(Arc::clone(self))
    }

    /// A process that is being started.
    pub fn process(self: &Arc<Self>) -> Process {
        Process { metrics: Arc::clone(self), stage: Mutex::new(Stage::Starting) }
    }

    pub fn to_json(&self) -> Value {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        // The relay is this server: it has no JavaScript and so no such heap, and there is no worker for events.
        let heap: Map<String, Value> = HEAP.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
        json!({
            "mainWorkerHeapStats": heap,
            "eventWorkerHeapStats": null,
            "activeUserWorkersCount": count(&self.active),
            "retiredUserWorkersCount": count(&self.retired),
            "receivedRequestsCount": count(&self.received),
            "handledRequestsCount": count(&self.handled),
        })
    }
}

/// A request, until the end of its answer.
#[derive(Debug)]
pub struct Received(Arc<Metrics>);

impl Drop for Received {
    fn drop(&mut self) {
        self.0.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// A process of a function. One that never listens does not count.
#[derive(Debug)]
pub struct Process {
    metrics: Arc<Metrics>,
    stage: Mutex<Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    Listening,
    Retired,
    Ended,
}

impl Process {
    pub fn listens(&self) {
        let mut stage = self.stage.lock();
        if *stage == Stage::Starting {
            *stage = Stage::Listening;
            self.metrics.active.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn retires(&self) {
        let mut stage = self.stage.lock();
        if *stage == Stage::Listening {
            *stage = Stage::Retired;
            self.metrics.retired.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn ends(&self) {
        self.retires();
        if std::mem::replace(&mut *self.stage.lock(), Stage::Ended) == Stage::Retired {
            self.metrics.active.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_and_each_request_counts_once() {
        let metrics = Arc::new(Metrics::default());
        let figures = || {
            let all = metrics.to_json();
            ["active", "retired"].map(|what| all[format!("{what}UserWorkersCount")].as_u64().expect("a count"))
        };
        let (one, two, failed) = (metrics.process(), metrics.process(), metrics.process());
        failed.ends();
        failed.listens();
        one.listens();
        two.listens();
        assert_eq!(figures(), [2, 0]);
        one.retires();
        one.retires();
        assert_eq!(figures(), [2, 1], "it finishes its last requests");
        one.ends();
        two.ends();
        two.retires();
        assert_eq!(figures(), [0, 2]);
        let request = metrics.receive();
        drop(metrics.receive());
        let all = metrics.to_json();
        assert_eq!((&all["receivedRequestsCount"], &all["handledRequestsCount"]), (&json!(2), &json!(1)));
        drop(request);
        assert_eq!(metrics.to_json()["handledRequestsCount"], 2);
        assert_eq!(all["mainWorkerHeapStats"].as_object().expect("figures").len(), HEAP.len());
    }
}
