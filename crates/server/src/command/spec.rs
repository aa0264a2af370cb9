//! How a command is described: one row per command, from which dispatch, COMMAND, HELP, ACL categories and
//! documentation all derive.

use keyspace::Kind;

use super::blocking::Taker;
use super::prepare::leaves::Collections;
pub(crate) use super::prepare::leaves::ItemsNeeded;
pub(crate) use super::room::Makes;
use super::{Args, Context, Handled, Reach};

/// Handler of a command.
pub(crate) type Handler = fn(&mut Context<'_>, &Args<'_>) -> Handled;

/// A command or subcommand.
pub(crate) struct Spec {
    /// In lower case; of a subcommand only its own part.
    pub(crate) name: &'static str,
    /// Arguments, name included; negative: at least as many.
    pub(crate) arity: i32,
    /// A union of the constants of [`flag`].
    pub(crate) flags: u32,
    /// Where its keys are.
    pub(crate) keys: &'static [KeySpec],
    pub(crate) group: Group,
    /// The Redis version that introduced it (or the fork's, said in the summary).
    pub(crate) since: &'static str,
    /// One sentence without a full stop's fuss.
    pub(crate) summary: &'static str,
    /// Cost, as COMMAND DOCS says it.
    pub(crate) complexity: &'static str,
    /// ACL categories beyond those that follow from flags and group: a union of the constants of
    /// [`super::category`].
    pub(crate) categories: u32,
    pub(crate) tips: &'static [&'static str],
    /// The arguments, for COMMAND DOCS.
    pub(crate) args: &'static [Arg],
    /// Changes by later versions: the version, and a sentence.
    pub(crate) history: &'static [(&'static str, &'static str)],
    /// Of a command that one should not use any more: since which version, and what to use instead.
    pub(crate) deprecated: Option<(&'static str, &'static str)>,
    /// Whether the argument at an index is not for the eyes of others: MONITOR and SLOWLOG show that it was
    /// there.
    pub(crate) secret: fn(&Args<'_>, usize) -> bool,
    /// Of a command that reaches into a database beside the selected one: which one, for a right number of
    /// arguments.
    pub(crate) elsewhere: fn(&Args<'_>) -> Option<usize>,
    /// Of a command that may use other keys than its rules find: the part of a database that it may use.
    pub(crate) reach: fn(&Args<'_>) -> Option<Reach>,
    /// Whether it needs the value of the key that is the argument at an index, for a right number of
    /// arguments. Where it does not, the value may be in the log alone; where it does, the handler finds it
    /// in memory.
    pub(crate) needs: fn(&Args<'_>, usize) -> bool,
    /// Which items it needs of a collection whose value it needs. Leaves of a tree that have no others may be
    /// in the log alone.
    pub(crate) items: ItemsNeeded,
    /// Use of a value that has a file of its own, without any of it in memory.
    pub(crate) large: LargeUse,
    /// What it may make that takes memory, beyond what it brings.
    pub(crate) makes: Makes,
    /// Of a command that waits for a value in a key: the operations on that value.
    pub(crate) taker: Option<&'static Taker>,
    pub(crate) subcommands: &'static [Spec],
    pub(crate) handler: Handler,
}

/// Of a command that leaves the values of its keys alone, or replaces them ([`Spec::needs`]).
pub(crate) const NO_VALUES: fn(&Args<'_>, usize) -> bool = |_, _| false;

/// Of a command that needs the value of its first key alone.
pub(crate) const FIRST_VALUE: fn(&Args<'_>, usize) -> bool = |_, at| at == 1;

/// Use of values that have files of their own ([`crate::values::blobs`]).
#[derive(Clone, Copy)]
pub(crate) struct LargeUse {
    /// Whether it does no more than send the value of its keys, or a part of it, for these arguments.
    pub(crate) sends: fn(&Args<'_>) -> bool,
    /// It gives the value to another key, as it is. Not in a transaction.
    pub(crate) shares: bool,
    /// The argument that may come as a file, and the handler for a request of which it has.
    pub(crate) takes: Option<(usize, Handler)>,
}

impl LargeUse {
    /// Nothing.
    pub(crate) const NONE: LargeUse = LargeUse {
        sends: |_| false,
        shares: false,
        takes: None,
    };

    /// It sends the value.
    pub(crate) const SENDS: LargeUse = LargeUse {
        sends: |_| true,
        ..LargeUse::NONE
    };

    /// It gives the value to another key.
    pub(crate) const SHARES: LargeUse = LargeUse {
        shares: true,
        ..LargeUse::NONE
    };
}

impl Spec {
    /// Defaults of a row.
    pub(crate) const BASE: Spec = Spec {
        name: "",
        arity: 0,
        flags: 0,
        keys: &[],
        group: Group::Generic,
        since: "1.0.0",
        summary: "",
        complexity: "O(1)",
        categories: 0,
        tips: &[],
        args: &[],
        history: &[],
        deprecated: None,
        secret: |_, _| false,
        elsewhere: |_| None,
        reach: |_| None,
        needs: |_, _| true,
        items: ItemsNeeded::All,
        large: LargeUse::NONE,
        makes: Makes::Unsaid,
        taker: None,
        subcommands: &[],
        handler: super::container,
    };

    /// Effects on data, added up by a transaction.
    pub(crate) const fn summed_flags(&self) -> u32 {
        if self.has(flag::WRITE) && !self.has(flag::REMOVES) {
            self.flags | flag::ADDS
        } else {
            self.flags
        }
    }

    /// The collections whose items it uses; of any other kind it needs none to refuse it.
    pub(crate) fn collections(&self) -> Collections {
        match self.group {
            Group::String | Group::Bitmap | Group::HyperLogLog => Collections::None,
            Group::List => Collections::Of(Kind::List),
            Group::Hash => Collections::Of(Kind::Hash),
            Group::Set => Collections::Of(Kind::Set),
            // Those that need all items, such as ZUNION, take sets, too.
            Group::SortedSet if matches!(self.items, ItemsNeeded::All) => Collections::Sets,
            Group::SortedSet | Group::Geo => Collections::Of(Kind::SortedSet),
            Group::Stream => Collections::Of(Kind::Stream),
            _ => Collections::All,
        }
    }

    /// Whether one of these flags is set.
    #[inline]
    pub(crate) const fn has_any(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Whether all flags of `flags` are set.
    #[inline]
    pub(crate) const fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

/// Flags of commands, as COMMAND INFO names them.
pub(crate) mod flag {
    /// Changes data.
    pub(crate) const WRITE: u32 = 1 << 0;
    /// Reads data and changes none.
    pub(crate) const READONLY: u32 = 1 << 1;
    /// May take memory: refused beyond `maxmemory`.
    pub(crate) const DENYOOM: u32 = 1 << 2;
    /// For operators.
    pub(crate) const ADMIN: u32 = 1 << 3;
    /// Publishes or subscribes.
    pub(crate) const PUBSUB: u32 = 1 << 4;
    /// Not from scripts.
    pub(crate) const NOSCRIPT: u32 = 1 << 5;
    /// May wait for something.
    pub(crate) const BLOCKING: u32 = 1 << 6;
    /// Runs while data is being loaded.
    pub(crate) const LOADING: u32 = 1 << 7;
    /// Runs on a replica whose data is old.
    pub(crate) const STALE: u32 = 1 << 8;
    /// MONITOR doesn't show it.
    pub(crate) const SKIP_MONITOR: u32 = 1 << 9;
    /// SLOWLOG doesn't keep it (its arguments may be secret).
    pub(crate) const SKIP_SLOWLOG: u32 = 1 << 10;
    /// Constant or logarithmic time.
    pub(crate) const FAST: u32 = 1 << 11;
    /// Runs without authentication.
    pub(crate) const NO_AUTH: u32 = 1 << 12;
    /// Not inside MULTI.
    pub(crate) const NO_MULTI: u32 = 1 << 13;
    /// Has keys that only its own parsing finds.
    pub(crate) const MOVABLE_KEYS: u32 = 1 << 14;
    /// Allowed while a script keeps the server busy.
    pub(crate) const ALLOW_BUSY: u32 = 1 << 15;
    /// May make a replication link write though it is no write (PUBLISH, PFCOUNT). Not shown by COMMAND INFO.
    pub(crate) const MAY_REPLICATE: u32 = 1 << 16;

    /// Not while data is being loaded in the background.
    pub(crate) const NO_ASYNC_LOADING: u32 = 1 << 17;
    /// Its request may have no keys though it has a rule for them.
    pub(crate) const NO_MANDATORY_KEYS: u32 = 1 << 20;
    /// As if ASKING was before it.
    pub(crate) const ASKING: u32 = 1 << 19;

    /// Allowed to connections that get messages over RESP2. Not shown by COMMAND INFO.
    pub(crate) const OF_SUBSCRIBERS: u32 = 1 << 28;
    /// Publishes something: waits while workers are behind with that. Not shown by COMMAND INFO.
    pub(crate) const PUBLISHES: u32 = 1 << 29;
    /// Its replies are messages: CLIENT REPLY doesn't silence them. Not shown by COMMAND INFO.
    pub(crate) const PUSHES: u32 = 1 << 27;
    /// Neither reads nor changes data, and excludes no other worker: a transaction that has it need not be
    /// alone. Not shown by COMMAND INFO.
    pub(crate) const NO_DATA: u32 = 1 << 26;
    /// Needs leave that a connection may not have (`enable-debug-command`, modules). Not shown by COMMAND
    /// INFO.
    pub(crate) const PROTECTED: u32 = 1 << 25;
    /// Does nothing to data but remove keys, or items of collections: a full disk keeps room for its records.
    /// Not shown by COMMAND INFO.
    pub(crate) const REMOVES: u32 = 1 << 24;
    /// Of a transaction: changes data, and not only by removing keys.
    pub(crate) const ADDS: u32 = 1 << 23;
    /// For the server's own use or that of its tests: `syscmd` in COMMAND DOCS. Not shown by COMMAND INFO.
    pub(crate) const SYSTEM: u32 = 1 << 30;
    /// Makes the server keep something for its connection that grows with its arguments: refused beyond
    /// `maxmemory`, unless that is little. Not shown by COMMAND INFO.
    pub(crate) const KEEPS: u32 = 1 << 18;
    /// Takes constant time for small arguments though Redis doesn't call it fast. Not shown by COMMAND INFO.
    pub(crate) const BOUNDED: u32 = 1 << 31;

    /// Bits and the names COMMAND INFO gives them, in its order.
    pub(crate) const NAMES: &[(u32, &str)] = &[
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (PUBSUB, "pubsub"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (SKIP_MONITOR, "skip_monitor"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (ASKING, "asking"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_ASYNC_LOADING, "no_async_loading"),
        (NO_MULTI, "no_multi"),
        (NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (MOVABLE_KEYS, "movablekeys"),
        (ALLOW_BUSY, "allow_busy"),
    ];
}

/// The family of a command, as COMMAND DOCS and COMMAND LIST name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Generic,
    String,
    Bitmap,
    HyperLogLog,
    List,
    Hash,
    Set,
    SortedSet,
    Geo,
    Stream,
    Connection,
    PubSub,
    Server,
    Cluster,
    Transactions,
    Scripting,
}

/// A rule that finds some of a command's keys.
pub(crate) struct KeySpec {
    /// Use of the keys: a union of the constants of [`access`].
    pub(crate) access: u16,
    pub(crate) begin: Begin,
    pub(crate) find: Find,
    pub(crate) notes: Option<&'static str>,
}

/// Use of a key, as COMMAND INFO names it: one of the first four, and what is done with the value.
pub(crate) mod access {
    /// Reads the value or facts about it.
    pub(crate) const RO: u16 = 1 << 0;
    /// Changes the value by what it was.
    pub(crate) const RW: u16 = 1 << 1;
    /// Replaces the value.
    pub(crate) const OW: u16 = 1 << 2;
    /// Removes the key.
    pub(crate) const RM: u16 = 1 << 3;
    /// Returns, copies or uses data of the value.
    pub(crate) const ACCESS: u16 = 1 << 4;
    /// Changes data of the value.
    pub(crate) const UPDATE: u16 = 1 << 5;
    /// Adds data and changes none.
    pub(crate) const INSERT: u16 = 1 << 6;
    /// Removes data.
    pub(crate) const DELETE: u16 = 1 << 7;
    /// A channel rather than a key.
    pub(crate) const NOT_KEY: u16 = 1 << 8;
    /// There may be further keys.
    pub(crate) const INCOMPLETE: u16 = 1 << 9;
    /// Other arguments decide ([`crate::command::key_finder`]).
    pub(crate) const VARIABLE_FLAGS: u16 = 1 << 10;

    /// Bits and their names, in the order of COMMAND INFO.
    pub(crate) const NAMES: &[(u16, &str)] = &[
        (RO, "RO"),
        (RW, "RW"),
        (OW, "OW"),
        (RM, "RM"),
        (ACCESS, "access"),
        (UPDATE, "update"),
        (INSERT, "insert"),
        (DELETE, "delete"),
        (NOT_KEY, "not_key"),
        (INCOMPLETE, "incomplete"),
        (VARIABLE_FLAGS, "variable_flags"),
    ];
}

/// Where a rule's keys begin.
#[derive(Clone, Copy)]
pub(crate) enum Begin {
    /// At this argument.
    Index(i32),
    /// Behind this word, looked for from this argument on.
    Keyword(&'static str, i32),
    /// Only the command itself knows.
    Unknown,
}

/// Which arguments from there on are keys.
#[derive(Clone, Copy)]
pub(crate) enum Find {
    /// Every `step`-th up to `last` (relative to the first; negative from the end).
    Range { last: i32, step: i32, limit: i32 },
    /// As many as the argument at `count` says, from `first` on.
    Count { count: i32, first: i32, step: i32 },
    /// Only the command itself knows.
    Unknown,
}

impl KeySpec {
    /// One key at an argument.
    pub(crate) const fn one(at: i32, access: u16) -> KeySpec {
        KeySpec {
            access,
            begin: Begin::Index(at),
            find: Find::Range {
                last: 0,
                step: 1,
                limit: 0,
            },
            notes: None,
        }
    }

    /// Every `step`-th argument from `first` to the end.
    pub(crate) const fn rest(first: i32, step: i32, access: u16) -> KeySpec {
        KeySpec {
            access,
            begin: Begin::Index(first),
            find: Find::Range {
                last: -1,
                step,
                limit: 0,
            },
            notes: None,
        }
    }
}

/// An argument, as COMMAND DOCS describes it.
pub(crate) struct Arg {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgKind,
    /// The word that introduces it.
    pub(crate) token: Option<&'static str>,
    /// Index of the key rule it belongs to.
    pub(crate) key_spec: Option<usize>,
    pub(crate) since: Option<&'static str>,
    pub(crate) deprecated_since: Option<&'static str>,
    pub(crate) optional: bool,
    pub(crate) multiple: bool,
    pub(crate) multiple_token: bool,
    pub(crate) args: &'static [Arg],
}

/// Kind of an argument.
#[derive(Clone, Copy)]
pub(crate) enum ArgKind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

impl Arg {
    /// Defaults of a description.
    pub(crate) const BASE: Arg = Arg {
        name: "",
        kind: ArgKind::String,
        token: None,
        key_spec: None,
        since: None,
        deprecated_since: None,
        optional: false,
        multiple: false,
        multiple_token: false,
        args: &[],
    };

    /// A plain argument.
    pub(crate) const fn of(name: &'static str, kind: ArgKind) -> Arg {
        Arg {
            name,
            kind,
            ..Arg::BASE
        }
    }

    /// A key, found by the first key rule.
    pub(crate) const fn key(name: &'static str) -> Arg {
        Arg {
            name,
            kind: ArgKind::Key,
            key_spec: Some(0),
            ..Arg::BASE
        }
    }

    /// A word that is there or not.
    pub(crate) const fn word(name: &'static str, token: &'static str) -> Arg {
        Arg {
            name,
            kind: ArgKind::PureToken,
            token: Some(token),
            ..Arg::BASE
        }
    }

    /// One of several.
    pub(crate) const fn one_of(name: &'static str, args: &'static [Arg]) -> Arg {
        Arg {
            name,
            kind: ArgKind::OneOf,
            args,
            ..Arg::BASE
        }
    }

    /// Several that belong together.
    pub(crate) const fn block(name: &'static str, args: &'static [Arg]) -> Arg {
        Arg {
            name,
            kind: ArgKind::Block,
            args,
            ..Arg::BASE
        }
    }

    /// The same, introduced by a word.
    pub(crate) const fn token(self, token: &'static str) -> Arg {
        Arg {
            token: Some(token),
            ..self
        }
    }

    /// The same, which may be left out.
    pub(crate) const fn optional(self) -> Arg {
        Arg {
            optional: true,
            ..self
        }
    }

    /// The same, any number of times.
    pub(crate) const fn multiple(self) -> Arg {
        Arg {
            multiple: true,
            ..self
        }
    }

    /// The same, added in a later version.
    pub(crate) const fn since(self, version: &'static str) -> Arg {
        Arg {
            since: Some(version),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    /// Flags that share a bit would be given to commands that have one of them.
    #[test]
    fn each_flag_has_a_bit_of_its_own() {
        let lines = include_str!("spec.rs").lines();
        let mut bits: Vec<&str> = lines
            .filter_map(|line| line.split_once(": u32 = 1 << "))
            .map(|(_, bit)| bit)
            .collect();
        let count = bits.len();
        bits.sort_unstable();
        bits.dedup();
        assert!(count > 20, "the flags are written in another form");
        assert_eq!(bits.len(), count);
    }
}
