//! The options: one table, from which parsing, help and the shells' completions derive.
//!
//! Names are those of redis-benchmark where it has the option, else those of memtier_benchmark; further
//! names of a row are the other tool's. What a count is a count of follows redis-benchmark: all
//! requests, all clients.

use super::typed::{MixedCommand, Options, Section};
use super::uri;
use super::values::{
    count, cpus, fraction, length, milliseconds, number, percentiles, range, rate, ratio, size,
    size_list, some, time,
};
use crate::drive::schedule::Arrivals;
use crate::limits::{MAX_CLIENTS, MAX_PIPELINE, MAX_SUBSCRIBERS, MAX_THREADS};
use crate::load::numbers::Pattern;
use crate::load::sizes::Sizes;

/// An option.
pub(super) struct Flag {
    pub(super) section: Section,
    pub(super) short: Option<char>,
    /// Long names, its own first.
    pub(super) names: &'static [&'static str],
    /// The word for its value in the help; empty: it takes none.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
    pub(super) set: fn(&mut Options, &str) -> Result<(), String>,
}

impl Flag {
    /// How messages name it.
    pub(super) fn shown(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter} (--{})", self.names[0]),
            None => format!("--{}", self.names[0]),
        }
    }
}

const fn flag(
    section: Section,
    short: Option<char>,
    names: &'static [&'static str],
    value: &'static str,
    help: &'static str,
    set: fn(&mut Options, &str) -> Result<(), String>,
) -> Flag {
    Flag {
        section,
        short,
        names,
        value,
        help,
        set,
    }
}

/// Sets one field to what a function makes of the value.
macro_rules! set {
    ($field:ident = $read:expr) => {
        |options, value| {
            let read: fn(&str) -> Result<_, String> = $read;
            options.$field = read(value)?;
            Ok(())
        }
    };
}

/// Every option, in the order of the help.
#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    flag(Section::Server, Some('h'), &["host", "server"], "HOST",
        "The server's name or address. [127.0.0.1]",
        set!(host = |v| Ok(v.to_owned()))),
    flag(Section::Server, Some('p'), &["port"], "PORT",
        "The server's port. [6379]",
        set!(port = |v| number(v, 1, u16::MAX))),
    flag(Section::Server, Some('s'), &["socket", "unix-socket"], "PATH",
        "The server's socket file; counts more than host and port.",
        set!(socket = |v| Ok(Some(v.into())))),
    flag(Section::Server, Some('u'), &["uri"], "URI",
        "All of it as redis://USER:PASSWORD@HOST:PORT/DATABASE or unix:///PATH?db=N.",
        set!(uri = |v| uri::parse(v).map(Some))),
    flag(Section::Server, Some('a'), &["pass", "password"], "PASSWORD",
        "Says AUTH first.",
        set!(password = |v| Ok(Some(v.to_owned())))),
    flag(Section::Server, None, &["user"], "NAME",
        "The user that the password is for.",
        set!(user = |v| Ok(Some(v.to_owned())))),
    flag(Section::Server, None, &["authenticate"], "USER:PASSWORD",
        "Both in one, or the password alone.",
        |o, v| {
            match v.split_once(':') {
                Some((user, password)) => {
                    o.user = Some(user.to_owned());
                    o.password = Some(password.to_owned());
                }
                None => o.password = Some(v.to_owned()),
            }
            Ok(())
        }),
    flag(Section::Server, None, &["dbnum", "select-db"], "NUMBER",
        "Says SELECT first. [0]",
        set!(database = |v| number(v, 0, i32::MAX as u32))),
    flag(Section::Server, Some('3'), &["resp3"], "",
        "Speaks RESP3 (HELLO 3).",
        set!(is_resp3 = |_| Ok(true))),
    flag(Section::Server, None, &["enable-tracking"], "",
        "Says CLIENT TRACKING on first.",
        set!(has_tracking = |_| Ok(true))),
    flag(Section::Server, None, &["server-pid"], "PID",
        "The server's process, whose processor time and memory are reported. A server on this \
         machine is asked for it.",
        set!(server_pid = |v| number(v, 1, i32::MAX as u32).map(Some))),
    flag(Section::Server, None, &["target"], "NAME=URI",
        "A server by a name of its own; may be repeated. Several are loaded in turn, for --rounds, \
         and compared.",
        |o, v| {
            let (name, uri) = v.split_once('=').ok_or("it has the form NAME=URI")?;
            o.targets.push((name.to_owned(), uri::parse(uri)?));
            Ok(())
        }),
    flag(Section::Server, None, &["cluster", "cluster-mode"], "",
        "The server is a node of a cluster: all nodes are loaded, each with keys that are its own. Keys \
         are then like key:{tag}:000000000012; in a command of your own write __key__, or {tag}.",
        set!(is_cluster = |_| Ok(true))),

    flag(Section::Load, Some('t'), &["tests"], "NAMES",
        "The tests to run, by name and separated by commas; listed below. [those of redis-benchmark]",
        set!(tests = |v| Ok(Some(v.to_owned())))),
    flag(Section::Load, Some('n'), &["requests"], "COUNT",
        "How many requests each test sends. [100000]",
        set!(requests = |v| some(v).map(Some))),
    flag(Section::Load, None, &["test-time", "duration"], "TIME",
        "Ends each test after a time instead: 10, 1.5s, 200ms, 5m.",
        set!(test_time = |v| length(v).map(Some))),
    flag(Section::Load, None, &["warmup"], "TIME",
        "Sends requests for so long before they count. [0]",
        set!(warmup = |v| time(v).map(Some))),
    flag(Section::Load, Some('c'), &["clients"], "COUNT",
        "Connections in all. [50]",
        set!(clients = |v| number(v, 1, MAX_CLIENTS))),
    flag(Section::Load, Some('P'), &["pipeline"], "COUNT",
        "Requests that a connection sends together. [1]",
        set!(pipeline = |v| number(v, 1, MAX_PIPELINE as u32))),
    flag(Section::Load, None, &["threads"], "COUNT",
        "Threads that share the connections. [1]",
        set!(threads = |v| number(v, 1, MAX_THREADS))),
    flag(Section::Load, Some('k'), &["keepalive"], "0|1",
        "0: each batch gets a connection of its own, and its time counts too. [1]",
        set!(keep_alive = |v| number(v, 0, 1).map(|v| v == 1))),
    flag(Section::Load, None, &["reconnect-interval"], "COUNT",
        "Gives a connection up after so many requests and opens another in its place. [never]",
        set!(reconnect_interval = |v| some(v).map(Some))),
    flag(Section::Load, None, &["subscribers"], "COUNT",
        "Connections that listen to what the test pubsub publishes. [10]",
        set!(subscribers = |v| number(v, 1, MAX_SUBSCRIBERS))),
    flag(Section::Load, Some('l'), &["loop"], "",
        "Repeats the tests until it is stopped.",
        set!(repeats = |_| Ok(true))),
    flag(Section::Load, Some('I'), &["idle"], "",
        "Opens the connections and does nothing with them until it is stopped.",
        set!(is_idle = |_| Ok(true))),
    flag(Section::Load, Some('x'), &["stdin"], "",
        "Reads the last argument of the command from the standard input.",
        set!(last_from_stdin = |_| Ok(true))),
    flag(Section::Load, None, &["seed"], "NUMBER",
        "Makes keys, values and their order the same in every run. [at random]",
        set!(seed = |v| number(v, 0, u64::MAX).map(Some))),
    flag(Section::Load, None, &["randomize"], "",
        "Takes the seed at random, which is the default here: takes back a --seed before it.",
        set!(seed = |_| Ok(None))),
    flag(Section::Load, None, &["distinct-client-seed"], "",
        "Gives each connection random numbers of its own, made of the seed and its place: with --seed what a \
         connection sends does not depend on how fast the others are.",
        set!(distinct_seeds = |_| Ok(true))),
    flag(Section::Load, None, &["run-count"], "COUNT",
        "Runs each test so often, and reports the best run, the worst run and the average. [1]",
        set!(run_count = |v| number(v, 1, 1_000))),
    flag(Section::Load, None, &["timeout"], "TIME",
        "Gives up when the server has said nothing for so long. [30]",
        set!(timeout = |v| time(v))),
    flag(Section::Load, None, &["reconnect"], "TIME",
        "Opens broken connections again, until none could be opened for so long; their requests \
         count as lost. [0: the first one ends the run]",
        set!(reconnect = |v| time(v))),
    flag(Section::Load, None, &["cpus"], "LIST",
        "Pins the threads to these processors in turn: 1 or 0,2-3.",
        set!(cpus = |v| cpus(v))),

    flag(Section::Open, None, &["rate"], "COUNT",
        "Sends so many requests a second in all, by a timetable that does not wait for replies. \
         Latencies count from the planned moment.",
        set!(rate = |v| rate(v).map(Some))),
    flag(Section::Open, None, &["rate-limiting"], "COUNT",
        "The same for each connection.",
        set!(rate_per_client = |v| rate(v).map(Some))),
    flag(Section::Open, None, &["arrivals"], "even|poisson",
        "At equal distances, or at random. [even]",
        |o, v| {
            o.arrivals = match v {
                "even" => Arrivals::Even,
                "poisson" => Arrivals::Poisson,
                _ => return Err(format!("'{v}' is neither even nor poisson")),
            };
            Ok(())
        }),
    flag(Section::Open, None, &["find-rate"], "",
        "Looks for the highest rate that keeps p99 within --p99, in runs of --step-time.",
        set!(find_rate = |_| Ok(true))),
    flag(Section::Open, None, &["p99"], "MILLISECONDS",
        "The bound of --find-rate. [1]",
        set!(p99 = |v| milliseconds(v))),
    flag(Section::Open, None, &["step-time"], "TIME",
        "How long each run of --find-rate takes. [5]",
        set!(step_time = |v| time(v).map(|time| time.max(std::time::Duration::from_millis(10))))),

    flag(Section::Keys, Some('r'), &["keyspace"], "COUNT",
        "Random keys: key:000000000000 and so many in all. Also the range of __rand_int__ in a \
         command. [all requests use one key]",
        set!(keyspace = |v| count(v).map(|count| Some(count.max(1))))),
    flag(Section::Keys, None, &["key-minimum"], "NUMBER",
        "The first number of the range. [0]",
        set!(key_minimum = |v| count(v).map(Some))),
    flag(Section::Keys, None, &["key-maximum"], "NUMBER",
        "The last number of the range.",
        set!(key_maximum = |v| count(v).map(Some))),
    flag(Section::Keys, None, &["key-prefix"], "TEXT",
        "What stands before the number. [key:]",
        set!(key_prefix = |v| Ok(v.to_owned()))),
    flag(Section::Keys, None, &["key-digits"], "COUNT",
        "Digits that the number is filled up to; 0: none. [12]",
        set!(key_digits = |v| number(v, 0, 20))),
    flag(Section::Keys, None, &["key-pattern"], "WRITES[:READS]",
        "How keys are chosen: uniform (R), zipf (Z), gaussian (G), sequential (S), parallel (P: each \
         connection its own part), latest (L: writes append, reads prefer what is new), hot (H: one \
         key). [uniform]",
        |o, v| {
            let (writes, reads) = v.split_once(':').unwrap_or((v, v));
            o.key_pattern = (Pattern::parse(writes)?, Pattern::parse(reads)?);
            Ok(())
        }),
    flag(Section::Keys, None, &["key-zipf-exp"], "NUMBER",
        "The exponent of zipf and latest. [0.99]",
        set!(key_exponent = |v| fraction(v, 0.0, 20.0))),
    flag(Section::Keys, None, &["key-median"], "NUMBER",
        "The centre of gaussian, counted from the first key. [the middle]",
        set!(key_centre = |v| fraction(v, 0.0, 1e15).map(Some))),
    flag(Section::Keys, None, &["key-stddev"], "NUMBER",
        "The deviation of gaussian. [a sixth of the range]",
        set!(key_deviation = |v| fraction(v, 0.0, 1e15).map(Some))),
    flag(Section::Keys, None, &["hot-share"], "FRACTION",
        "How much of hot goes to the one key; the rest is uniform. [1]",
        set!(hot_share = |v| fraction(v, 0.0, 1.0))),
    flag(Section::Keys, None, &["multi-keys", "multi-key-get"], "COUNT",
        "Keys of MSET and MGET, commands of MULTI. [10]",
        set!(multi_keys = |v| number(v, 1, 100_000))),

    flag(Section::Values, Some('d'), &["data-size"], "SIZE",
        "Bytes of a value: 16, 64kb, 1gb. [3]",
        set!(sizes = |v| size(v).map(Sizes::Fixed))),
    flag(Section::Values, None, &["data-size-range"], "LOW-HIGH",
        "Any size of a range.",
        set!(sizes = |v| range(v, size).map(|(low, high)| Sizes::Range(low, high)))),
    flag(Section::Values, None, &["data-size-list"], "SIZE:WEIGHT,...",
        "Sizes with weights.",
        set!(sizes = |v| size_list(v))),
    flag(Section::Values, Some('R'), &["random-data"], "",
        "Makes values differ; otherwise all begin alike.",
        set!(random_data = |_| Ok(true))),
    flag(Section::Values, None, &["expiry-range"], "LOW-HIGH",
        "Gives SETs an expiry of so many seconds.",
        set!(expiry_s = |v| range(v, count).map(Some))),
    flag(Section::Values, None, &["expiry-share"], "FRACTION",
        "How many of them get one. [1]",
        set!(expiry_share = |v| fraction(v, 0.0, 1.0))),

    flag(Section::Mix, None, &["ratio"], "SETS:GETS",
        "A mix of both instead of the tests.",
        set!(ratio = |v| ratio(v).map(Some))),
    flag(Section::Mix, None, &["command"], "WORDS",
        "A command of a mix; may be repeated. __key__, __data__, __rand_int__ and __expiry__ in it are \
         replaced.",
        |o, v| {
            o.commands.push(MixedCommand { line: v.to_owned(), weight: 1, pattern: None });
            Ok(())
        }),
    flag(Section::Mix, None, &["command-ratio"], "COUNT",
        "The weight of the command before it. [1]",
        |o, v| {
            last_command(o)?.weight = count(v)?;
            Ok(())
        }),
    flag(Section::Mix, None, &["command-key-pattern"], "PATTERN",
        "The key pattern of the command before it.",
        |o, v| {
            last_command(o)?.pattern = Some(Pattern::parse(v)?);
            Ok(())
        }),

    flag(Section::Output, Some('q'), &["quiet"], "",
        "One line a test.",
        set!(is_quiet = |_| Ok(true))),
    flag(Section::Output, None, &["csv"], "",
        "One line a test, in redis-benchmark's columns.",
        set!(is_csv = |_| Ok(true))),
    flag(Section::Output, None, &["precision"], "DIGITS",
        "Digits behind the point of milliseconds. [3]",
        set!(precision = |v| number(v, 0, 6))),
    flag(Section::Output, Some('e'), &["show-errors"], "",
        "Shows error replies on the standard output when they come, at most one a second.",
        set!(shows_errors = |_| Ok(true))),
    flag(Section::Output, None, &["hide-histogram"], "",
        "Leaves the two distributions of latencies out of the report.",
        set!(hides_histogram = |_| Ok(true))),
    flag(Section::Output, None, &["print-percentiles"], "LIST",
        "The percentiles of the summary and of the table of commands: 50,90,99.9.",
        set!(percentiles = |v| percentiles(v).map(Some))),
    flag(Section::Output, Some('o'), &["out-file"], "FILE",
        "Writes the report into a file instead of to the standard output.",
        set!(out_file = |v| Ok(Some(v.into())))),
    flag(Section::Output, None, &["json", "json-out-file"], "FILE",
        "Writes everything that was measured into a file.",
        set!(json = |v| Ok(Some(v.into())))),
    flag(Section::Output, None, &["html"], "FILE",
        "Writes a page with curves: the rate over time, latencies by percentile.",
        set!(html = |v| Ok(Some(v.into())))),
    flag(Section::Output, None, &["hdr"], "FILE",
        "Writes HdrHistogram's log with the latencies of every second, or the distribution if the \
         name ends in .hgrm.",
        set!(hdr = |v| Ok(Some(v.into())))),
    flag(Section::Output, None, &["hdr-file-prefix"], "PREFIX",
        "Writes the distribution of each run's latencies into PREFIX_FULL_RUN_1.txt and .hgrm, and of each \
         command's into PREFIX_SET_command_run_1.txt and .hgrm; with several tests their names come behind \
         the prefix.",
        set!(hdr_prefix = |v| Ok(Some(v.to_owned())))),
    flag(Section::Output, None, &["compare"], "OLD NEW",
        "Compares two files that --json wrote, and does nothing else.",
        set!(compare = |v| Ok(Some(v.into())))),
    flag(Section::Output, None, &["no-progress"], "",
        "No line of progress; there is one on a terminal only.",
        set!(has_progress = |_| Ok(false))),
    flag(Section::Output, None, &["help"], "",
        "Prints this text.",
        set!(wants_help = |_| Ok(true))),
    flag(Section::Output, Some('v'), &["version"], "",
        "Prints the version.",
        set!(wants_version = |_| Ok(true))),

    flag(Section::Verify, None, &["verify"], "",
        "Writes to -r groups of keys, notes what is acknowledged, and reads everything back at the \
         end. If the server goes away in between, waits for it (--reconnect), reads back, goes on.",
        set!(verify = |_| Ok(true))),
    flag(Section::Verify, None, &["may-lose"], "TIME",
        "What the server may lose when it goes away: what was acknowledged in the last TIME. [0: \
         nothing]",
        set!(may_lose = |v| time(v))),
    flag(Section::Verify, None, &["verify-file"], "FILE",
        "Keeps the notes at the end ...",
        set!(verify_file = |v| Ok(Some(v.into())))),
    flag(Section::Verify, None, &["verify-check"], "FILE",
        "... and reads back what they are about, without writing.",
        set!(verify_check = |v| Ok(Some(v.into())))),

    flag(Section::Side, None, &["rounds"], "COUNT",
        "How many times each server goes through all cells; medians are reported. [5] Also how often the \
         tests are run. [1]",
        set!(rounds = |v| number(v, 1, 1_000).map(Some))),
    flag(Section::Side, None, &["cells"], "NAMES",
        "The loads to compare, separated by commas. [all]",
        set!(cells = |v| Ok(Some(v.to_owned())))),
    flag(Section::Side, None, &["quick"], "",
        "One short round with few keys, to see that everything works.",
        set!(is_quick = |_| Ok(true))),
    flag(Section::Side, None, &["log"], "",
        "Compares what a log costs that is synced every second; --cells and the servers have other \
         defaults then.",
        set!(with_log = |_| Ok(true))),
    flag(Section::Side, None, &["server-cpus"], "LIST",
        "The processors of the servers; --cpus has those of the load. [the first; the last]",
        set!(server_cpus = |v| cpus(v))),
    flag(Section::Side, None, &["memory-keys"], "COUNT",
        "How many keys are weighed; 0: none. [3m if all cells are compared, 0 for a choice of them]",
        set!(memory_keys = |v| count(v).map(Some))),
    flag(Section::Side, None, &["docs"], "DIRECTORY",
        "Writes benchmarks.md and its charts there.",
        set!(docs = |v| Ok(Some(v.into())))),
    flag(Section::Side, None, &["reply"], "SIZE|ok",
        "What `ferrite-bench floor --port N` answers to everything. [ok]",
        |o, v| {
            o.reply_bytes = if v == "ok" { None } else { Some(size(v)?) };
            Ok(())
        }),
];

fn last_command(options: &mut Options) -> Result<&mut MixedCommand, String> {
    options
        .commands
        .last_mut()
        .ok_or_else(|| "there is no --command before it".to_owned())
}
