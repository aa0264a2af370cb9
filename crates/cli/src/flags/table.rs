//! Every flag, once: parser, `--config` file and `--help` derive from this table, as shell completions and a
//! manual page may.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use sys::socket::Family;

use super::options::{Input, Mode, Options};
use super::uri;
use crate::access::Protocol;
use crate::connection::Place;
use crate::format::Format;
use crate::words;

/// A flag.
pub(super) struct Flag {
    pub(super) short: Option<char>,
    /// Without dashes.
    pub(super) long: &'static str,
    /// What follows it, as help calls it; empty if nothing does.
    pub(super) value: &'static str,
    /// What `--help` says, as sentences.
    pub(super) summary: &'static str,
    /// Told the word behind it, which is empty if it has no value.
    pub(super) set: fn(&mut Options, &[u8]) -> Result<(), Wrong>,
}

/// A part of the help.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) flags: &'static [Flag],
}

/// Why a flag cannot be set.
pub(super) enum Wrong {
    /// It is the word behind the flag, which has to be named.
    Word(String),
    /// In a sentence of its own.
    All(String),
}

impl From<String> for Wrong {
    fn from(text: String) -> Wrong {
        Wrong::Word(text)
    }
}

impl Wrong {
    fn all(text: &str) -> Wrong {
        Wrong::All(text.to_owned())
    }

    pub(super) fn into_text(self) -> String {
        match self {
            Wrong::Word(text) | Wrong::All(text) => text,
        }
    }
}

const fn flag(
    short: Option<char>,
    long: &'static str,
    value: &'static str,
    summary: &'static str,
    set: fn(&mut Options, &[u8]) -> Result<(), Wrong>,
) -> Flag {
    Flag {
        short,
        long,
        value,
        summary,
        set,
    }
}

/// The sections that hold more than flags.
pub(super) const FILES: &str = "Loading and saving";
pub(super) const PROGRAM: &str = "This program";

/// See the module.
// A flag is a paragraph here, as a row of a table should be; formatted, it would be a page.
#[rustfmt::skip]
pub(super) const SECTIONS: &[Section] = &[
Section { title: "Connection", flags: &[
    flag(Some('h'), "host", "HOST", "The server's name or address (127.0.0.1).",
        |options, word| {
            if let Place::Port(host, _) = &mut options.access.place { *host = text(word)?; }
            Ok(())
        }),
    flag(Some('p'), "port", "PORT", "The server's port (6379).",
        |options, word| {
            let port = number(word, "port")?;
            if let Place::Port(_, its) = &mut options.access.place { *its = port; }
            Ok(())
        }),
    flag(Some('s'), "socket", "PATH", "The server's unix socket, instead of host and port.",
        |options, word| {
            options.access.place = Place::Socket(OsStr::from_bytes(word).into());
            Ok(())
        }),
    flag(Some('u'), "uri", "URI",
        "redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], or unix://[[USER:]PASSWORD@]PATH[?db=DB].",
        |options, word| uri::parse(word, &mut options.access).map_err(Wrong::All)),
    flag(Some('a'), "pass", "PASSWORD",
        "The password. Other users of this machine may see it there: FERRITECLI_AUTH (or REDISCLI_AUTH) in \
         the environment, --askpass or --config are safer.",
        |options, word| { options.access.password = Some(word.to_vec()); Ok(()) }),
    flag(None, "user", "NAME", "The user to whom the password belongs, if not the default user.",
        |options, word| { options.access.user = Some(word.to_vec()); Ok(()) }),
    flag(None, "askpass", "", "Asks for the password.", |options, _| set(&mut options.asks_password)),
    flag(None, "no-auth-warning", "", "No warning about a password on the command line.",
        |options, _| set(&mut options.allows_typed_password)),
    flag(Some('n'), "db", "NUMBER", "The database (0).",
        |options, word| {
            options.access.database = number(word, "database number")?;
            set(&mut options.access.is_database_chosen)
        }),
    flag(Some('2'), "resp2", "", "RESP2, the protocol without types (usual).",
        |options, _| set_protocol(options, Protocol::Resp2)),
    flag(Some('3'), "resp3", "", "RESP3, the protocol with types.",
        |options, _| set_protocol(options, Protocol::Resp3)),
    flag(Some('t'), "timeout", "SECONDS", "How long to try to connect (as long as the system does).",
        |options, word| {
            let timeout = seconds(word)?;
            options.access.approach.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
            Ok(())
        }),
    flag(Some('4'), "ipv4", "", "Tries addresses of IPv4 first.",
        |options, _| { options.access.approach.family = Family::PreferV4; Ok(()) }),
    flag(Some('6'), "ipv6", "", "Tries addresses of IPv6 first.",
        |options, _| { options.access.approach.family = Family::PreferV6; Ok(()) }),
    flag(Some('c'), "follow", "",
        "Follows MOVED and ASK to other nodes of a cluster, outside of transactions; --scan, --bigkeys and \
         its like, and export go through all nodes; import writes each key to its node.",
        |options, _| set(&mut options.access.follows_redirections)),
]},

Section { title: "Commands", flags: &[
    flag(Some('r'), "repeat", "COUNT",
        "Runs the command COUNT times, for ever if negative; or ends --stat and its like after COUNT \
         lines.",
        |options, word| { options.repeat = Some(number(word, "number")?); Ok(()) }),
    flag(Some('i'), "interval", "SECONDS",
        "Pause between repetitions, like 0.1; between lines of --stat, --scan and --latency; per 100 SCANs \
         of --bigkeys and its like.",
        |options, word| { options.interval = seconds(word)?; Ok(()) }),
    flag(Some('x'), "stdin", "", "The last argument is what standard input holds.",
        |options, _| set_input(options, Input::LastArgument)),
    flag(Some('X'), "stdin-tag", "TAG", "The argument TAG stands for what standard input holds.",
        |options, word| set_input(options, Input::Tag(word.to_vec()))),
    flag(None, "quoted-input", "", "Arguments may be quoted: '\"a\\x00b\"' is three bytes.",
        |options, _| set(&mut options.has_quoted_arguments)),
    flag(Some('e'), "exit-on-error", "",
        "An error reply goes to standard error, and ends with code 1; so does a line of standard input with \
         an open quote.",
        |options, _| set(&mut options.ends_at_errors)),
    flag(None, "eval", "FILE", "Runs the script in FILE; keys and arguments follow: KEY... , ARG...",
        |options, word| set_mode(options, Mode::Script(OsStr::from_bytes(word).into()))),
    flag(None, "non-interactive", "",
        "Never a prompt: without a command, a PING whose answer is the exit code.",
        |options, _| set(&mut options.is_unattended)),
]},

Section { title: "Replies", flags: &[
    flag(None, "raw", "", "The bytes (usual where the output is no terminal).",
        |options, _| set_format(options, Format::Raw)),
    flag(None, "no-raw", "", "Types, indices and quotes (usual on a terminal).",
        |options, _| set_format(options, Format::Standard)),
    flag(None, "csv", "", "Values between commas.", |options, _| set_format(options, Format::Csv)),
    flag(None, "json", "", "JSON; over RESP3 if the server speaks it, unless -2 says otherwise.",
        |options, _| set_format(options, Format::Json)),
    flag(None, "quoted-json", "", "JSON of ASCII: strings keep the escapes of --no-raw.",
        |options, _| set_format(options, Format::QuotedJson)),
    flag(Some('d'), "delimiter", "TEXT", "What --raw puts between elements (a line break).",
        |options, word| { options.element_delimiter = word.to_vec(); Ok(()) }),
    flag(Some('D'), "reply-delimiter", "TEXT", "What --raw puts behind a reply (a line break).",
        |options, word| { options.reply_delimiter = word.to_vec(); Ok(()) }),
    flag(None, "show-pushes", "yes|no",
        "Whether RESP3 messages that nobody asked for are shown (yes on a terminal).",
        |options, word| {
            options.shows_pushes = Some(match word {
                [b'y' | b'Y', ..] => true,
                [b'n' | b'N', ..] => false,
                _ => return Err("the value is neither yes nor no".to_owned().into()),
            });
            Ok(())
        }),
]},

Section { title: "Watching a server", flags: &[
    flag(None, "stat", "", "A line per second: keys, memory, clients, requests.",
        |options, _| set_mode(options, Mode::Stat)),
    flag(None, "replica", "",
        "The changes that a replica is told, one a line. The server needs replication, which Ferrite does \
         not have yet.",
        |options, _| set_mode(options, Mode::Replica)),
    flag(None, "latency", "",
        "The time a PING takes, in milliseconds, again and again; where the output is no terminal, for a \
         second (-i) only.",
        |options, _| set_mode(options, Mode::Latency { is_history: false })),
    flag(None, "latency-history", "", "The same, a line every 15 seconds (-i).",
        |options, _| set_mode(options, Mode::Latency { is_history: true })),
    flag(None, "latency-dist", "", "The same as a spectrum in colors, a line per second (-i).",
        |options, _| set_mode(options, Mode::LatencyDistribution)),
    flag(None, "intrinsic-latency", "SECONDS",
        "How long this machine keeps a program from running at most; needs no server.",
        |options, word| { let limit = seconds(word)?; set_mode(options, Mode::IntrinsicLatency(limit)) }),
    flag(None, "lru-test", "KEYS",
        "Writes and reads KEYS keys as a cache does, 80 % of it at 20 % of them, and tells the share of \
         hits. Changes data.",
        |options, word| { let keys = number(word, "number")?; set_mode(options, Mode::LruTest(keys)) }),
]},

Section { title: "Looking at all keys", flags: &[
    flag(None, "scan", "", "Lists all keys.", |options, _| set_mode(options, Mode::Scan)),
    flag(None, "bigkeys", "", "The keys of each type with most elements.",
        |options, _| set_mode(options, Mode::BigKeys)),
    flag(None, "memkeys", "", "The keys of each type that take most memory.",
        |options, _| set_mode(options, Mode::MemoryKeys)),
    flag(None, "memkeys-samples", "COUNT", "The same, from a look at COUNT elements of each value.",
        |options, word| { options.keys.samples = samples(word)?; set_mode(options, Mode::MemoryKeys) }),
    flag(None, "keystats", "", "Both, with the largest keys of all and how sizes are distributed.",
        |options, _| set_mode(options, Mode::KeyStats)),
    flag(None, "keystats-samples", "COUNT", "The same, from a look at COUNT elements of each value.",
        |options, word| { options.keys.samples = samples(word)?; set_mode(options, Mode::KeyStats) }),
    flag(None, "hotkeys", "", "The keys used most; a server other than Ferrite needs a policy of LFU.",
        |options, _| set_mode(options, Mode::HotKeys)),
    flag(None, "pattern", "PATTERN", "Only keys that match, like 'user:*'.",
        |options, word| { options.keys.pattern = Some(word.to_vec()); Ok(()) }),
    flag(None, "quoted-pattern", "PATTERN", "The same, quoted, so that it may hold any byte.",
        |options, word| {
            let pattern = words::unquote(word);
            let wrong = || Wrong::all("Invalid quoted string specified for --quoted-pattern.");
            options.keys.pattern = Some(pattern.ok_or_else(wrong)?);
            Ok(())
        }),
    flag(None, "count", "COUNT", "How many keys a SCAN looks at.",
        |options, word| { options.keys.count = Some(number(word, "number")?); Ok(()) }),
    flag(None, "cursor", "CURSOR", "Where --keystats begins (0): it names the place when it is interrupted.",
        |options, word| { options.keys.cursor = number(word, "cursor")?; Ok(()) }),
    flag(None, "top", "COUNT", "How many of the largest keys --keystats lists (10).",
        |options, word| { options.keys.top = number(word, "number")?; Ok(()) }),
]},

Section { title: FILES, flags: &[
    flag(None, "pipe", "", "Sends standard input, which holds requests, as it is, and counts the replies.",
        |options, _| set_mode(options, Mode::Pipe)),
    flag(None, "pipe-timeout", "SECONDS",
        "How long --pipe waits for a reply once all is sent (30); for ever if 0.",
        |options, word| { options.pipe_timeout = seconds(word)?; Ok(()) }),
    flag(None, "skip-unsupported", "",
        "import and export leave out keys of other types than strings, hashes, sets, sorted \
         sets, lists and streams, instead of ending there.",
        |options, _| set(&mut options.skips_unsupported)),
    flag(None, "keep-existing", "", "import leaves alone the keys that the server has.",
        |options, _| set(&mut options.keeps_existing)),
    flag(None, "rdb", "FILE",
        "Saves the data as an RDB file, as a replica gets it, at one point in time; - is standard output. \
         The server needs replication, which Ferrite does not have yet: see export.",
        |options, word| set_mode(options, replicate(word, false))),
    flag(None, "functions-rdb", "FILE",
        "Saves the libraries of functions as an RDB file; Ferrite has them, too.",
        |options, word| set_mode(options, replicate(word, true))),
]},

Section { title: PROGRAM, flags: &[
    flag(None, "config", "FILE",
        "Reads flags from FILE, one a line, without dashes, like `port 7000`. Flags of the command line \
         count more.",
        |_, _| Ok(())),
    flag(None, "verbose", "", "Tells on standard error what the connection does.",
        |options, _| set(&mut options.is_verbose)),
    flag(None, "help", "", "Prints this text.", |_, _| Ok(())),
    flag(Some('v'), "version", "", "Prints the version.", |_, _| Ok(())),
]},

Section { title: "Understood, but not possible yet", flags: &[
    flag(None, "tls", "", "A connection with TLS.",
        |options, _| set_mode(options, Mode::Missing("--tls: this program does not speak TLS yet"))),
    flag(None, "cluster", "COMMAND",
        "Administration of a cluster of Redis. For those of Ferrite see `ferrite-cli cluster --help`.",
        |options, _| set_mode(options, Mode::Missing(
            "--cluster: this program administers no clusters of Redis; see `ferrite-cli cluster --help`"))),
    flag(None, "ldb", "", "The debugger of scripts.",
        |options, _| set_mode(options, Mode::Missing("--ldb: this program is no debugger"))),
]},
];

/// All flags, in the order of the help.
pub(super) fn flags() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|section| section.flags)
}

fn set(option: &mut bool) -> Result<(), Wrong> {
    *option = true;
    Ok(())
}

/// Of two modes, nobody knows which was meant; only the history of latency is a way of showing latency.
pub(super) fn set_mode(options: &mut Options, mode: Mode) -> Result<(), Wrong> {
    let both_latency = matches!(
        (&options.mode, &mode),
        (Mode::Latency { .. }, Mode::Latency { .. })
    );
    options.mode = match &options.mode {
        _ if both_latency => Mode::Latency { is_history: true },
        Mode::Commands => mode,
        its if *its == mode => mode,
        _ => {
            return Err("another mode was asked for, and only one can run"
                .to_owned()
                .into());
        }
    };
    Ok(())
}

fn replicate(path: &[u8], has_functions_only: bool) -> Mode {
    Mode::Replicate {
        path: OsStr::from_bytes(path).into(),
        has_functions_only,
    }
}

fn set_format(options: &mut Options, format: Format) -> Result<(), Wrong> {
    options.format = Some(format);
    Ok(())
}

fn set_input(options: &mut Options, input: Input) -> Result<(), Wrong> {
    if options.input != Input::Commands && options.input != input {
        return Err(Wrong::all("Options -x and -X are mutually exclusive."));
    }
    options.input = input;
    Ok(())
}

fn set_protocol(options: &mut Options, protocol: Protocol) -> Result<(), Wrong> {
    if options
        .access
        .protocol
        .is_some_and(|earlier| earlier != protocol)
    {
        return Err(Wrong::all("Options -2 and -3 are mutually exclusive."));
    }
    options.access.protocol = Some(protocol);
    Ok(())
}

fn text(word: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(word).map_err(|_| "the value is no UTF-8".to_owned())?;
    Ok(text.to_owned())
}

fn number<T: std::str::FromStr>(word: &[u8], what: &str) -> Result<T, String> {
    let text = String::from_utf8_lossy(word);
    text.parse().map_err(|_| format!("'{text}' is no {what}"))
}

/// How many elements to look at; 0 stands for what the server likes best.
fn samples(word: &[u8]) -> Result<Option<u64>, String> {
    Ok(Some(number(word, "number")?).filter(|&samples| samples > 0))
}

fn seconds(word: &[u8]) -> Result<Duration, String> {
    let seconds: f64 = number(word, "number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{seconds} is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_summaries_are_sentences() {
        for (at, flag) in flags().enumerate() {
            for other in flags().skip(at + 1) {
                assert_ne!(flag.long, other.long);
                assert!(
                    flag.short.is_none() || flag.short != other.short,
                    "{}",
                    flag.long
                );
            }
            assert!(flag.summary.ends_with('.'), "{}", flag.long);
        }
    }

    /// A person who knows redis-cli must not miss one of its flags.
    #[test]
    fn every_flag_of_redis_cli_is_understood() {
        let short = [
            'h', 'p', 's', 'a', 'u', 'r', 'i', 'n', '2', '3', 'x', 'X', 'd', 'D', 'c', 'e', 'v',
            't', '4', '6',
        ];
        for letter in short {
            assert!(flags().any(|flag| flag.short == Some(letter)), "-{letter}");
        }
        let long = [
            "user",
            "pass",
            "askpass",
            "raw",
            "no-raw",
            "quoted-input",
            "csv",
            "json",
            "quoted-json",
            "show-pushes",
            "stat",
            "latency",
            "latency-history",
            "latency-dist",
            "lru-test",
            "replica",
            "rdb",
            "functions-rdb",
            "pipe",
            "pipe-timeout",
            "bigkeys",
            "memkeys",
            "memkeys-samples",
            "keystats",
            "keystats-samples",
            "cursor",
            "top",
            "hotkeys",
            "scan",
            "pattern",
            "quoted-pattern",
            "count",
            "intrinsic-latency",
            "eval",
            "ldb",
            "cluster",
            "tls",
            "verbose",
            "no-auth-warning",
            "help",
            "version",
        ];
        for name in long {
            assert!(flags().any(|flag| flag.long == name), "--{name}");
        }
    }
}
