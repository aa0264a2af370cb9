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
    pub(super) section: Section,
    /// What `--help` says, as sentences.
    pub(super) summary: &'static str,
    pub(super) takes: Takes,
}

/// What follows a flag, and what it sets.
pub(super) enum Takes {
    Nothing(fn(&mut Options) -> Result<(), Wrong>),
    /// One word, called as help calls it.
    Word(&'static str, fn(&mut Options, &[u8]) -> Result<(), Wrong>),
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

/// The part of the help in which a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Connection,
    Command,
    Replies,
    Watching,
    Keys,
    Files,
    Program,
    Missing,
}

impl Section {
    /// All, in the order of the help.
    pub(super) const ALL: &'static [Section] = &[
        Section::Connection,
        Section::Command,
        Section::Replies,
        Section::Watching,
        Section::Keys,
        Section::Files,
        Section::Program,
        Section::Missing,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Section::Connection => "Connection",
            Section::Command => "Commands",
            Section::Replies => "Replies",
            Section::Watching => "Watching a server",
            Section::Keys => "Looking at all keys",
            Section::Files => "Loading and saving",
            Section::Program => "This program",
            Section::Missing => "Understood, but not possible yet",
        }
    }
}

const fn switch(
    short: Option<char>,
    long: &'static str,
    section: Section,
    summary: &'static str,
    set: fn(&mut Options) -> Result<(), Wrong>,
) -> Flag {
    Flag {
        short,
        long,
        section,
        summary,
        takes: Takes::Nothing(set),
    }
}

const fn word(
    short: Option<char>,
    long: &'static str,
    name: &'static str,
    section: Section,
    summary: &'static str,
    set: fn(&mut Options, &[u8]) -> Result<(), Wrong>,
) -> Flag {
    Flag {
        short,
        long,
        section,
        summary,
        takes: Takes::Word(name, set),
    }
}

/// See the module.
// A flag is a paragraph here, as a row of a table should be; formatted, it would be a page.
#[rustfmt::skip]
pub(super) const TABLE: &[Flag] = &[
    word(Some('h'), "host", "HOST", Section::Connection,
        "The server's name or address (127.0.0.1).",
        |options, word| {
        if let Place::Port(host, _) = &mut options.access.place { *host = text(word)?; }
        Ok(())
    }),
    word(Some('p'), "port", "PORT", Section::Connection, "The server's port (6379).", |options, word| {
        let port = number(word, "port")?;
        if let Place::Port(_, its) = &mut options.access.place { *its = port; }
        Ok(())
    }),
    word(Some('s'), "socket", "PATH", Section::Connection,
        "The server's unix socket, instead of host and port.",
        |options, word| {
        options.access.place = Place::Socket(OsStr::from_bytes(word).into());
        Ok(())
    }),
    word(Some('u'), "uri", "URI", Section::Connection,
        "redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], or unix://[[USER:]PASSWORD@]PATH[?db=DB].",
        |options, word| uri::parse(word, &mut options.access).map_err(Wrong::All)),
    word(Some('a'), "pass", "PASSWORD", Section::Connection,
        "The password. Other users of this machine may see it there: FERRITECLI_AUTH (or REDISCLI_AUTH) in \
         the environment, --askpass or --config are safer.",
        |options, word| { options.access.password = Some(word.to_vec()); Ok(()) }),
    word(None, "user", "NAME", Section::Connection,
        "The user to whom the password belongs, if not the default user.",
        |options, word| { options.access.user = Some(word.to_vec()); Ok(()) }),
    switch(None, "askpass", Section::Connection, "Asks for the password.",
        |options| set(&mut options.asks_password)),
    switch(None, "no-auth-warning", Section::Connection, "No warning about a password on the command line.",
        |options| set(&mut options.allows_typed_password)),
    word(Some('n'), "db", "NUMBER", Section::Connection, "The database (0).",
        |options, word| {
            options.access.database = number(word, "database number")?;
            set(&mut options.access.is_database_chosen)
        }),
    switch(Some('2'), "resp2", Section::Connection, "RESP2, the protocol without types (usual).",
        |options| set_protocol(options, Protocol::Resp2)),
    switch(Some('3'), "resp3", Section::Connection, "RESP3, the protocol with types.",
        |options| set_protocol(options, Protocol::Resp3)),
    word(Some('t'), "timeout", "SECONDS", Section::Connection,
        "How long to try to connect (as long as the system does).",
        |options, word| {
            let timeout = seconds(word)?;
            options.access.approach.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
            Ok(())
        }),
    switch(Some('4'), "ipv4", Section::Connection, "Tries addresses of IPv4 first.",
        |options| { options.access.approach.family = Family::PreferV4; Ok(()) }),
    switch(Some('6'), "ipv6", Section::Connection, "Tries addresses of IPv6 first.",
        |options| { options.access.approach.family = Family::PreferV6; Ok(()) }),
    switch(Some('c'), "follow", Section::Connection,
        "Follows MOVED and ASK to other nodes of a cluster, outside of transactions; --scan, --bigkeys and \
         its like, and export go through all nodes; import writes each key to its node.",
        |options| set(&mut options.access.follows_redirections)),

    word(Some('r'), "repeat", "COUNT", Section::Command,
        "Runs the command COUNT times, for ever if negative; or ends --stat and its like after COUNT lines.",
        |options, word| { options.repeat = Some(number(word, "number")?); Ok(()) }),
    word(Some('i'), "interval", "SECONDS", Section::Command,
        "Pause between repetitions, like 0.1; between lines of --stat, --scan and --latency; per 100 SCANs \
         of --bigkeys and its like.",
        |options, word| { options.interval = seconds(word)?; Ok(()) }),
    switch(Some('x'), "stdin", Section::Command, "The last argument is what standard input holds.",
        |options| set_input(options, Input::LastArgument)),
    word(Some('X'), "stdin-tag", "TAG", Section::Command,
        "The argument TAG stands for what standard input holds.",
        |options, word| set_input(options, Input::Tag(word.to_vec()))),
    switch(None, "quoted-input", Section::Command, "Arguments may be quoted: '\"a\\x00b\"' is three bytes.",
        |options| set(&mut options.has_quoted_arguments)),
    switch(Some('e'), "exit-on-error", Section::Command,
        "An error reply goes to standard error, and ends with code 1; so does a line of standard input with \
         an open quote.",
        |options| set(&mut options.ends_at_errors)),
    word(None, "eval", "FILE", Section::Command,
        "Runs the script in FILE; keys and arguments follow: KEY... , ARG...",
        |options, word| set_mode(options, Mode::Script(OsStr::from_bytes(word).into()))),
    switch(None, "non-interactive", Section::Command,
        "Never a prompt: without a command, a PING whose answer is the exit code.",
        |options| set(&mut options.is_unattended)),

    switch(None, "raw", Section::Replies, "The bytes (usual where the output is no terminal).",
        |options| set_format(options, Format::Raw)),
    switch(None, "no-raw", Section::Replies, "Types, indices and quotes (usual on a terminal).",
        |options| set_format(options, Format::Standard)),
    switch(None, "csv", Section::Replies, "Values between commas.",
        |options| set_format(options, Format::Csv)),
    switch(None, "json", Section::Replies,
        "JSON; over RESP3 if the server speaks it, unless -2 says otherwise.",
        |options| set_format(options, Format::Json)),
    switch(None, "quoted-json", Section::Replies, "JSON of ASCII: strings keep the escapes of --no-raw.",
        |options| set_format(options, Format::QuotedJson)),
    word(Some('d'), "delimiter", "TEXT", Section::Replies, "What --raw puts between elements (a line break).",
        |options, word| { options.element_delimiter = word.to_vec(); Ok(()) }),
    word(Some('D'), "reply-delimiter", "TEXT", Section::Replies,
        "What --raw puts behind a reply (a line break).",
        |options, word| { options.reply_delimiter = word.to_vec(); Ok(()) }),
    word(None, "show-pushes", "yes|no", Section::Replies,
        "Whether RESP3 messages that nobody asked for are shown (yes on a terminal).",
        |options, word| {
            options.shows_pushes = Some(match word {
                [b'y' | b'Y', ..] => true,
                [b'n' | b'N', ..] => false,
                _ => return Err("the value is neither yes nor no".to_owned().into()),
            });
            Ok(())
        }),

    switch(None, "stat", Section::Watching, "A line per second: keys, memory, clients, requests.",
        |options| set_mode(options, Mode::Stat)),
    switch(None, "replica", Section::Watching,
        "The changes that a replica is told, one a line. The server needs replication, which Ferrite does \
         not have yet.",
        |options| set_mode(options, Mode::Replica)),
    switch(None, "latency", Section::Watching,
        "The time a PING takes, in milliseconds, again and again; where the output is no terminal, for a \
         second (-i) only.",
        |options| set_mode(options, Mode::Latency { is_history: false })),
    switch(None, "latency-history", Section::Watching, "The same, a line every 15 seconds (-i).",
        |options| set_mode(options, Mode::Latency { is_history: true })),
    switch(None, "latency-dist", Section::Watching,
        "The same as a spectrum in colors, a line per second (-i).",
        |options| set_mode(options, Mode::LatencyDistribution)),
    word(None, "intrinsic-latency", "SECONDS", Section::Watching,
        "How long this machine keeps a program from running at most; needs no server.",
        |options, word| { let limit = seconds(word)?; set_mode(options, Mode::IntrinsicLatency(limit)) }),
    word(None, "lru-test", "KEYS", Section::Watching,
        "Writes and reads KEYS keys as a cache does, 80 % of it at 20 % of them, and tells the share of \
         hits. Changes data.",
        |options, word| { let keys = number(word, "number")?; set_mode(options, Mode::LruTest(keys)) }),

    switch(None, "scan", Section::Keys, "Lists all keys.",
        |options| set_mode(options, Mode::Scan)),
    switch(None, "bigkeys", Section::Keys, "The keys of each type with most elements.",
        |options| set_mode(options, Mode::BigKeys)),
    switch(None, "memkeys", Section::Keys, "The keys of each type that take most memory.",
        |options| set_mode(options, Mode::MemoryKeys)),
    word(None, "memkeys-samples", "COUNT", Section::Keys,
        "The same, from a look at COUNT elements of each value.",
        |options, word| { options.keys.samples = samples(word)?; set_mode(options, Mode::MemoryKeys) }),
    switch(None, "keystats", Section::Keys,
        "Both, with the largest keys of all and how sizes are distributed.",
        |options| set_mode(options, Mode::KeyStats)),
    word(None, "keystats-samples", "COUNT", Section::Keys,
        "The same, from a look at COUNT elements of each value.",
        |options, word| { options.keys.samples = samples(word)?; set_mode(options, Mode::KeyStats) }),
    switch(None, "hotkeys", Section::Keys,
        "The keys used most; a server other than Ferrite needs a policy of LFU.",
        |options| set_mode(options, Mode::HotKeys)),
    word(None, "pattern", "PATTERN", Section::Keys, "Only keys that match, like 'user:*'.",
        |options, word| { options.keys.pattern = Some(word.to_vec()); Ok(()) }),
    word(None, "quoted-pattern", "PATTERN", Section::Keys, "The same, quoted, so that it may hold any byte.",
        |options, word| {
            let pattern = words::unquote(word);
            let wrong = || Wrong::all("Invalid quoted string specified for --quoted-pattern.");
            options.keys.pattern = Some(pattern.ok_or_else(wrong)?);
            Ok(())
        }),
    word(None, "count", "COUNT", Section::Keys, "How many keys a SCAN looks at.",
        |options, word| { options.keys.count = Some(number(word, "number")?); Ok(()) }),
    word(None, "cursor", "CURSOR", Section::Keys,
        "Where --keystats begins (0): it names the place when it is interrupted.",
        |options, word| { options.keys.cursor = number(word, "cursor")?; Ok(()) }),
    word(None, "top", "COUNT", Section::Keys, "How many of the largest keys --keystats lists (10).",
        |options, word| { options.keys.top = number(word, "number")?; Ok(()) }),

    switch(None, "pipe", Section::Files,
        "Sends standard input, which holds requests, as it is, and counts the replies.",
        |options| set_mode(options, Mode::Pipe)),
    word(None, "pipe-timeout", "SECONDS", Section::Files,
        "How long --pipe waits for a reply once all is sent (30); for ever if 0.",
        |options, word| { options.pipe_timeout = seconds(word)?; Ok(()) }),
    switch(None, "skip-unsupported", Section::Files,
        "import and export leave out what is no string, instead of ending there.",
        |options| set(&mut options.skips_unsupported)),
    switch(None, "keep-existing", Section::Files, "import leaves alone the keys that the server has.",
        |options| set(&mut options.keeps_existing)),
    word(None, "rdb", "FILE", Section::Files,
        "Saves the data as an RDB file, as a replica gets it, at one point in time; - is standard output. \
         The server needs replication, which Ferrite does not have yet: see export.",
        |options, word| set_mode(options, replicate(word, false))),
    word(None, "functions-rdb", "FILE", Section::Files, "The same with the functions alone.",
        |options, word| set_mode(options, replicate(word, true))),

    word(None, "config", "FILE", Section::Program,
        "Reads flags from FILE, one a line, without dashes, like `port 7000`. Flags of the command line \
         count more.",
        |_, _| Ok(())),
    switch(None, "verbose", Section::Program, "Tells on standard error what the connection does.",
        |options| set(&mut options.is_verbose)),
    switch(None, "help", Section::Program, "Prints this text.", |_| Ok(())),
    switch(Some('v'), "version", Section::Program, "Prints the version.", |_| Ok(())),

    switch(None, "tls", Section::Missing, "A connection with TLS.",
        |options| set_mode(options, Mode::Missing("--tls: this program does not speak TLS yet"))),
    word(None, "cluster", "COMMAND", Section::Missing,
        "Administration of a cluster of Redis. For those of Ferrite see `ferrite-cli cluster --help`.",
        |options, _| set_mode(options, Mode::Missing(
            "--cluster: this program administers no clusters of Redis; see `ferrite-cli cluster --help`"))),
    switch(None, "ldb", Section::Missing, "The debugger of scripts.",
        |options| set_mode(options, Mode::Missing("--ldb: this program is no debugger"))),
];

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
        for (at, flag) in TABLE.iter().enumerate() {
            for other in &TABLE[at + 1..] {
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
            assert!(
                TABLE.iter().any(|flag| flag.short == Some(letter)),
                "-{letter}"
            );
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
            assert!(TABLE.iter().any(|flag| flag.long == name), "--{name}");
        }
    }
}
