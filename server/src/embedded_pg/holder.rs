//! Who listens at a port that is taken, as far as the system tells.

use std::path::Path;

/// `node (process 4711, in /home/ada/shop)`. Known on Linux, of processes of the same account (of root: all).
pub fn holder_of(port: u16) -> Option<String> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| listening(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    // Beside the processes there is more, `self` among it.
    let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let (number, process) = numbers.find_map(|number| {
        let process = Path::new("/proc").join(number.to_string());
        holds(&process, &sockets).then_some((number, process))
    })?;
    let name = std::fs::read_to_string(process.join("comm")).ok()?;
    let folder = std::fs::read_link(process.join("cwd")).map(|folder| format!(", in {}", folder.display()));
    Some(format!("{} (process {number}{})", name.trim(), folder.unwrap_or_default()))
}

/// The sockets of a table like `/proc/net/tcp` that listen at `port`.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(1).is_some_and(|local| local.ends_with(&port)) && row.get(3) == Some(&LISTEN))
        .filter_map(|row| row.get(9).map(|inode| (*inode).to_owned()))
        .collect()
}

fn holds(process: &Path, sockets: &[String]) -> bool {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| sockets.iter().any(|socket| socket == target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_in_a_socket_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:D431 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1\n\
             1: 0100007F:D431 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 222 1\n\
             2: 0100007F:D432 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1\n";
        assert_eq!(listening(table, 0xD431), ["111"]);
        assert!(listening(table, 1).is_empty() && listening("", 1).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_named_with_its_folder() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let holder = holder_of(listener.local_addr().expect("address").port()).expect("a holder");
        let (process, folder) = (std::process::id(), std::env::current_dir().expect("a folder"));
        assert!(holder.ends_with(&format!("(process {process}, in {})", folder.display())), "{holder}");
        drop(listener);
    }
}
