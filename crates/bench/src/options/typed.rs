//! What was typed. Nothing is looked up or checked against another option yet.

use super::uri::Uri;
use crate::drive::schedule::Arrivals;
use crate::load::numbers::Pattern;
use crate::load::sizes::Sizes;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// A field per option.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    // The server.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) uri: Option<Uri>,
    pub(crate) database: u32,
    pub(crate) is_resp3: bool,
    pub(crate) has_tracking: bool,
    pub(crate) server_pid: Option<u32>,
    /// Names and where they are, instead of one server.
    pub(crate) targets: Vec<(String, Uri)>,
    pub(crate) is_cluster: bool,
    // How much.
    pub(crate) tests: Option<String>,
    pub(crate) requests: Option<u64>,
    pub(crate) test_time: Option<Duration>,
    pub(crate) warmup: Option<Duration>,
    pub(crate) clients: usize,
    pub(crate) pipeline: u32,
    pub(crate) threads: usize,
    pub(crate) keep_alive: bool,
    pub(crate) subscribers: usize,
    pub(crate) repeats: bool,
    pub(crate) is_idle: bool,
    pub(crate) last_from_stdin: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) reconnect: Duration,
    pub(crate) reconnect_interval: Option<u64>,
    pub(crate) distinct_seeds: bool,
    pub(crate) run_count: usize,
    pub(crate) cpus: Vec<usize>,
    // The open loop.
    pub(crate) rate: Option<f64>,
    pub(crate) rate_per_client: Option<f64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) find_rate: bool,
    pub(crate) p99: Duration,
    pub(crate) step_time: Duration,
    // Keys and values.
    pub(crate) keyspace: Option<u64>,
    pub(crate) key_minimum: Option<u64>,
    pub(crate) key_maximum: Option<u64>,
    pub(crate) key_prefix: String,
    pub(crate) key_digits: usize,
    pub(crate) key_pattern: (Pattern, Pattern),
    pub(crate) key_exponent: f64,
    pub(crate) key_centre: Option<f64>,
    pub(crate) key_deviation: Option<f64>,
    pub(crate) hot_share: f64,
    pub(crate) sizes: Sizes,
    pub(crate) random_data: bool,
    pub(crate) expiry_s: Option<(u64, u64)>,
    pub(crate) expiry_share: f64,
    pub(crate) multi_keys: usize,
    // Mixes.
    pub(crate) ratio: Option<(u64, u64)>,
    pub(crate) commands: Vec<MixedCommand>,
    // Output.
    pub(crate) is_quiet: bool,
    pub(crate) is_csv: bool,
    pub(crate) precision: usize,
    pub(crate) has_progress: bool,
    pub(crate) shows_errors: bool,
    pub(crate) hides_histogram: bool,
    pub(crate) percentiles: Option<Vec<f64>>,
    pub(crate) out_file: Option<PathBuf>,
    pub(crate) hdr_prefix: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) hdr: Option<PathBuf>,
    /// The older of two documents; the newer is the word behind the options.
    pub(crate) compare: Option<PathBuf>,
    // Verification.
    pub(crate) verify: bool,
    pub(crate) verify_file: Option<PathBuf>,
    pub(crate) verify_check: Option<PathBuf>,
    pub(crate) may_lose: Duration,
    // Servers side by side, and the floor.
    pub(crate) mode: Mode,
    pub(crate) rounds: Option<usize>,
    pub(crate) is_quick: bool,
    pub(crate) with_log: bool,
    pub(crate) server_cpus: Vec<usize>,
    pub(crate) cells: Option<String>,
    pub(crate) memory_keys: Option<u64>,
    pub(crate) docs: Option<PathBuf>,
    pub(crate) reply_bytes: Option<u64>,
    pub(crate) wants_help: bool,
    pub(crate) wants_version: bool,
    /// The words behind the options: a command to send, or another mode of the program.
    pub(crate) words: Vec<Vec<u8>>,
    /// The options in the order in which they were typed.
    pub(crate) typed: Vec<Typed>,
}

/// An option as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Its own long name.
    pub(crate) name: &'static str,
    pub(crate) section: Section,
    pub(crate) value: String,
    pub(crate) has_value: bool,
}

impl Typed {
    /// The option as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![format!("--{}", self.name)];
        if self.has_value {
            words.push(self.value.clone());
        }
        words
    }
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// Put a load on a server.
    #[default]
    Load,
    /// Start servers and compare them.
    SideBySide,
    /// Be the server that costs nothing.
    Floor,
}

impl Mode {
    /// The mode of a word in front of all others. No command of a server has such a name.
    pub(super) fn of(word: &OsStr) -> Option<Mode> {
        match word.to_str()? {
            "side-by-side" => Some(Mode::SideBySide),
            "floor" => Some(Mode::Floor),
            _ => None,
        }
    }
}

/// A part of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Server,
    Load,
    Open,
    Keys,
    Values,
    Mix,
    Output,
    Verify,
    Side,
}

impl Section {
    pub(super) const ALL: [Section; 9] = [
        Section::Server,
        Section::Load,
        Section::Open,
        Section::Keys,
        Section::Values,
        Section::Mix,
        Section::Output,
        Section::Verify,
        Section::Side,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Section::Server => "Server",
            Section::Load => "Load",
            Section::Open => "Open loop",
            Section::Keys => "Keys",
            Section::Values => "Values",
            Section::Mix => "Mixes",
            Section::Output => "Output",
            Section::Verify => "Verification",
            Section::Side => "Servers side by side: ferrite-bench side-by-side [NAME=COMMAND...]",
        }
    }
}

/// A command of a mix, as `--command` and its companions say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MixedCommand {
    pub(crate) line: String,
    pub(crate) weight: u64,
    pub(crate) pattern: Option<Pattern>,
}

impl Options {
    /// What holds where nothing is typed. The derived default is empty.
    pub(super) fn new() -> Options {
        Options {
            host: "127.0.0.1".into(),
            port: 6379,
            clients: 50,
            pipeline: 1,
            threads: 1,
            keep_alive: true,
            subscribers: 10,
            timeout: Duration::from_secs(30),
            run_count: 1,
            p99: Duration::from_millis(1),
            step_time: Duration::from_secs(5),
            key_prefix: "key:".into(),
            key_digits: crate::load::template::SLOT_DIGITS,
            key_exponent: 0.99,
            hot_share: 1.0,
            expiry_share: 1.0,
            multi_keys: 10,
            precision: 3,
            has_progress: true,
            ..Options::default()
        }
    }
}
