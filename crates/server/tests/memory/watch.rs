//! What is seen of a server under load: its physical memory, what it says it uses, and the moments at which
//! it refused to take more.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::{Client, Server, Value};

/// How often to look.
const PAUSE: Duration = Duration::from_millis(100);
/// Looks between two lines of the report.
const LOOKS_A_LINE: u32 = 20;
/// Refusals, and moments at which the limit did not hold, that are reported with the state of the server.
const REPORTED: usize = 5;

/// Requests that were answered with `-OOM`.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<usize>);

impl Refusals {
    /// Notes one, and prints what the server says of itself at that moment.
    pub(crate) fn note(&self, server: &Server, what: &str) {
        // Whoever comes next waits until this one has been looked at.
        let mut count = self.0.lock().expect("nobody panics with it");
        *count += 1;
        if *count <= REPORTED {
            eprintln!("refused: {what}\n{}", figures(&mut server.client()));
        }
    }

    pub(crate) fn count(&self) -> usize {
        *self.0.lock().expect("nobody panics with it")
    }
}

/// The figures that tell why there was no room.
fn figures(client: &mut Client) -> String {
    let mut told = String::new();
    for section in ["memory", "offload", "stats", "persistence"] {
        let Ok(Value::Bulk(text)) = client.call(&["INFO", section]) else {
            continue;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().filter(|line| {
            [
                "used_memory",
                "maxmemory",
                "mem_",
                "lazyfree",
                "offload",
                "cold",
                "resident",
                "log_",
                "aof_buffer",
            ]
            .iter()
            .any(|start| line.starts_with(start))
                && !line.contains("_human")
        });
        lines.for_each(|line| told += &format!("  {line}\n"));
    }
    told
}

/// See the module.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) samples: u32,
    /// Bytes of physical memory at most, at the moments of looking and of all.
    pub(crate) resident: u64,
    pub(crate) peak: u64,
    /// What the server said it uses, at most.
    pub(crate) used: u64,
}

/// Looks until time is up, and tells from time to time; and what takes memory when that is more than `limit`.
pub(crate) fn watch(
    server: &Server,
    limit: u64,
    time: Duration,
    mut more: impl FnMut() -> String,
) -> Seen {
    let mut seen = Seen::default();
    let mut reported = 0;
    let mut client = server.client();
    let until = Instant::now() + time;
    while Instant::now() < until {
        let resident = server.resident_bytes();
        let used = used(&mut client).unwrap_or_else(|| {
            client = server.client();
            0
        });
        if used > limit && reported < REPORTED {
            reported += 1;
            eprintln!("{used} bytes used of {limit}\n{}", figures(&mut client));
        }
        seen.samples += 1;
        seen.resident = seen.resident.max(resident);
        seen.used = seen.used.max(used);
        if seen.samples % LOOKS_A_LINE == 0 {
            eprintln!(
                "{}: resident {} MiB, used {} MiB, most {} MiB and {} MiB, {}",
                seen.samples,
                resident >> 20,
                used >> 20,
                seen.resident >> 20,
                seen.used >> 20,
                more()
            );
        }
        std::thread::sleep(PAUSE);
    }
    seen.peak = server.most_resident_bytes();
    eprintln!(
        "{} samples: at most {} MiB resident ({} MiB between samples), {} MiB used, {}",
        seen.samples,
        seen.resident >> 20,
        seen.peak >> 20,
        seen.used >> 20,
        more()
    );
    seen
}

/// `used_memory`; `None` if the server has closed the connection.
pub(crate) fn used(client: &mut Client) -> Option<u64> {
    let Ok(Value::Bulk(text)) = client.call(&["INFO", "memory"]) else {
        return None;
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    line?.trim().parse().ok()
}
