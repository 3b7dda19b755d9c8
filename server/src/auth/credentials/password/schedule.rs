//! How the system schedules the threads that hash.
//!
//! A hash takes tens of milliseconds without a pause. A worker or a PostgreSQL backend that wakes up on its core should
//! not wait for the end of its time slice. Niceness achieves that only within a scheduler group (a session, a service).
//! From Linux 6.12 on, a thread that requests long slices is preempted by threads of any group that request shorter
//! ones, and still gets its share of the processor. Measured by `tools/bench/auth-scheduling.mjs`.

/// The niceness of hashing threads. With the maximum of 19, sign-ins would never be answered on busy processors.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The longest slice that the system grants.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000_000;

/// Lowers the priority of the calling thread. Does nothing if the system does not support it.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = long_slices() {
        // On Linux a priority is a thread's own; elsewhere it would be the whole process's.
        let is_nice = rustix::process::setpriority_process(None, NICENESS).is_ok();
        tracing::debug!(%error, is_nice, "a hashing thread keeps its time slices");
    }
}

/// `struct sched_attr` of Linux, in its first version.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// With the normal policy: the requested length of a slice, in ns; ignored before 6.12.
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no maintained crate wraps this system call for the normal policy")]
fn long_slices() -> std::io::Result<()> {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: NICENESS,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    let (this_thread, flags): (libc::c_long, libc::c_long) = (0, 0);
    // SAFETY: the system reads as many bytes as `size` says, which are those of a live value, and writes at most that field.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, this_thread, &raw mut attributes, flags) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_gets_a_lower_priority() {
        let nice = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("a thread's figures");
            let after_name = stat.rsplit(") ").next().expect("fields").split(' ');
            after_name.skip(16).map(|field| field.parse().expect("a number")).next()
        };
        let before: Option<i32> = nice();
        let of_other = std::thread::spawn(move || {
            give_way();
            nice()
        });
        assert_eq!(of_other.join().expect("no panic"), Some(NICENESS));
        assert_eq!(nice(), before);
    }
}
