//! Facts about this process and its machine, and the few things it does to itself as a whole; and
//! what a load generator asks about another process.
//!
//! Everything here is asked for at the start or once in a while (`INFO`, metrics), so clarity goes
//! before speed: most of it reads `/proc`. A fact that the system does not tell is 0 or `None`,
//! never an error that would fail a whole `INFO`.

mod address_space;
mod background;
mod cgroup;
mod cpu_times;
mod daemon;
mod identity;
mod memory;
mod open_files;
mod other;
mod session;
mod threads;

pub use address_space::{AddressLimit, address_limit};
pub use background::work_in_background;
pub use cgroup::cgroup_memory_limit;
pub use cpu_times::{
    CpuTimes, children_cpu_times, cpu_times, main_thread_cpu_times, thread_cpu_times,
};
pub use daemon::daemonize;
pub use identity::{executable_path, hostname, os_text, pid, supervisor};
pub use memory::{peak_rss_bytes, rss_bytes, total_memory_bytes};
pub use open_files::raise_open_files;
pub use other::{ask_to_end, cpu_time_of, is_alive, rss_bytes_of};
pub use session::in_own_session;
pub use threads::{ThreadId, ThreadTimes};
