//! The process and its disks, under the names that Prometheus' own clients use.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use crate::http::prometheus::Metrics;

/// Ticks of a second in `/proc`, on every Linux.
const TICKS: f64 = 100.0;

/// When somebody first asked, which is when the admin listener opens.
static STARTED: LazyLock<f64> =
    LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));

/// Notes when the process started.
pub fn started() {
    LazyLock::force(&STARTED);
}

/// Writes what the system tells of this process. What it does not tell is left out.
pub fn write(metrics: &mut Metrics) {
    let resident = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| resident_bytes(&status));
    if let Some(bytes) = resident {
        metrics.single("process_resident_memory_bytes", "Memory in use", bytes);
    }
    if let Some(seconds) = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_seconds(&stat)) {
        metrics.single("process_cpu_seconds_total", "Processor time", seconds);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        metrics.single("process_open_fds", "Open files and sockets", open.count());
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        metrics.single("process_max_fds", "Maximum number of open file descriptors", limit);
    }
    metrics.single("process_start_time_seconds", "When the process started, since 1970", *STARTED);
}

/// Writes what there is of the disks of `folders`, and waits for each.
pub fn write_disks(metrics: &mut Metrics, folders: &[(&'static str, PathBuf)]) {
    let disks: Vec<(String, u64, u64)> = folders
        .iter()
        .filter_map(|(name, folder)| {
            let disk = statvfs(folder).ok()?;
            let labels = format!("{{folder=\"{name}\"}}");
            Some((labels, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize))
        })
        .collect();
    let free = disks.iter().map(|(labels, free, _)| (labels, *free));
    metrics.gauge("ferrobase_disk_free_bytes", "Free space on the disk of a folder", free);
    let size = disks.iter().map(|(labels, _, size)| (labels, *size));
    metrics.gauge("ferrobase_disk_size_bytes", "Size of that disk", size);
}

/// From `/proc/self/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// From `/proc/self/stat`: user and system time are fields 14 and 15. The name before them may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_figures_are_read() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        let stat = "1 (a ) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 5 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }

    #[test]
    fn free_disk_space_of_a_folder_is_read() {
        let mut metrics = Metrics::default();
        write_disks(&mut metrics, &[("data", std::env::temp_dir()), ("gone", "/nowhere/at/all".into())]);
        let text = metrics.into_text();
        assert!(text.contains("ferrobase_disk_free_bytes{folder=\"data\"} "), "{text}");
        assert!(!text.contains("gone"), "{text}");
    }
}
