//! Whether a port of this machine is in use, and by which process.

use std::fs;
use std::net::TcpListener;

/// Whether somebody listens at a port of the loopback.
pub(super) fn is_taken(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_err()
}

/// A port that is in use, and the process that listens there, if the system tells.
pub(super) fn told(port: u16) -> String {
    match owner(port) {
        Some(owner) => format!("port {port} is in use by {owner}"),
        None => format!("port {port} is in use"),
    }
}

/// The name and number of the process that listens at a port.
fn owner(port: u16) -> Option<String> {
    let sockets = listeners(port);
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    for process in processes {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else {
            // It is somebody else's, or has ended.
            continue;
        };
        let mut targets = files
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok());
        if targets.any(|target| {
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        }) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (pid {pid})", name.trim()));
        }
    }
    None
}

/// The sockets that listen at a port, as the descriptors of processes name them.
fn listeners(port: u16) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok());
    texts.flat_map(|text| listeners_in(&text, port)).collect()
}

/// The same for a table of the system.
fn listeners_in(table: &str, port: u16) -> Vec<String> {
    const LISTENS: &str = "0A";
    let suffix = format!(":{port:04X}");
    let socket = |line: &str| {
        // Number, local address, remote address, state, five more, inode.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = fields.len() > 9 && fields[1].ends_with(&suffix) && fields[3] == LISTENS;
        is_it.then(|| format!("socket:[{}]", fields[9]))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_system_names_sockets() {
        let table = "  sl  local_address rem_address   st and so on\n\
            0: 0100007F:1B58 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 4711 \
            1 0 100 0 0 10 0\n\
            1: 0100007F:1B58 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0  0 4712 \
            1 0 100 0 0 10 0\n";
        assert_eq!(listeners_in(table, 7000), ["socket:[4711]"]);
        assert!(listeners_in(table, 7001).is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_is_found_with_its_process() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        assert!(is_taken(port));
        let pid = format!("(pid {})", std::process::id());
        assert!(told(port).ends_with(&pid), "{}", told(port));
    }
}
