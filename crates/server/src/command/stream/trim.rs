//! The options of XADD and XTRIM: how many entries stay.

use keyspace::StreamRef;
use keyspace::collection::stream::{Id, Section};

use super::super::{Args, Failure, failure};
use super::id::{self, AskedId};
use super::idempotent::{AskedIdempotence, IDEMPOTENT_WITH_ID, TWO_IDEMPOTENT};
use crate::config::{Setting, Settings};

const TWO_STRATEGIES: Failure =
    Failure::of("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
const NEGATIVE_MAXLEN: Failure = Failure::of("ERR The MAXLEN argument must be >= 0.");
const NEGATIVE_LIMIT: Failure = Failure::of("ERR The LIMIT argument must be >= 0.");
const LIMIT_ALONE: Failure =
    Failure::of("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
const NO_STRATEGY: Failure =
    Failure::of("ERR syntax error, XTRIM must be called with a trimming strategy");
const EXACT_LIMIT: Failure =
    Failure::of("ERR syntax error, LIMIT cannot be used without the special ~ option");

/// Which entries stay.
#[derive(Clone, Copy)]
enum Keeps {
    /// The last ones, so many.
    Len(u64),
    /// Those from an ID on.
    From(Id),
}

/// The treatment of references to an entry that is to be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum References {
    /// KEEPREF: they stay.
    #[default]
    Keep,
    /// DELREF: pending entries are removed with it.
    Remove,
    /// ACKED: it stays if there are any.
    Acked,
}

impl References {
    /// The option that an argument is.
    pub(super) fn at(args: &Args<'_>, at: usize) -> Option<References> {
        [
            ("KEEPREF", References::Keep),
            ("DELREF", References::Remove),
            ("ACKED", References::Acked),
        ]
        .into_iter()
        .find_map(|(word, option)| args.is(at, word).then_some(option))
    }
}

/// How a stream is trimmed.
#[derive(Clone, Copy)]
pub(super) struct Trim {
    keeps: Keeps,
    /// Entries go as whole nodes go in Redis; of an exact trim one by one.
    nodes: Option<Nodes>,
    /// No more entries go at once.
    most: u64,
    /// The treatment of references of groups.
    pub(super) references: References,
}

/// The limits of a node of a stream in Redis; 0 is no limit.
#[derive(Clone, Copy)]
struct Nodes {
    entries: u64,
    bytes: u64,
}

/// Bytes of an entry in a node beyond those of its content here, about.
const NODE_ENTRY_BYTES: u64 = 12;

impl Nodes {
    fn new(settings: &Settings) -> Nodes {
        let limit = |setting| u64::try_from(settings.int(setting)).unwrap_or(0);
        Nodes {
            entries: limit(Setting::StreamNodeMaxEntries),
            bytes: limit(Setting::StreamNodeMaxBytes),
        }
    }

    /// Entries of a node, where all are about as long as the first, which has this rank.
    fn len(self, stream: StreamRef<'_>, first: u64) -> u64 {
        let first = stream.entry_at(first);
        let bytes = first.map_or(0, |entry| entry.content.len() as u64) + NODE_ENTRY_BYTES;
        let most = |limit: u64, of: u64| match limit {
            0 => u64::MAX,
            limit => (limit / of).max(1),
        };
        most(self.entries, 1).min(most(self.bytes, bytes))
    }

    /// Entries that go at once, if the request does not say it.
    fn most(self) -> u64 {
        match self.entries.saturating_mul(TRIMMED_NODES) {
            0 => TRIMMED_DEFAULT,
            most => most.min(TRIMMED_MOST),
        }
    }
}

/// Nodes that go at once, and entries: without a limit of those of a node, and at most.
const TRIMMED_NODES: u64 = 100;
const TRIMMED_DEFAULT: u64 = 10_000;
const TRIMMED_MOST: u64 = 1_000_000;

impl Trim {
    /// How many of so many entries go, from the first one on, once `more` were added. An upper bound while
    /// these are not there yet.
    pub(super) fn gone(&self, stream: StreamRef<'_>, entries: u64, more: u64) -> u64 {
        let (first, len) = (stream.first_rank_of(entries), entries + more);
        let gone = match self.keeps {
            Keeps::Len(most) => len.saturating_sub(most),
            Keeps::From(id) => match stream.rank_of(Section::ENTRIES, id) {
                end if end == stream.items().len() => end + more - first,
                end => end.saturating_sub(first),
            },
        };
        let gone = gone.min(self.most);
        match self.nodes {
            Some(nodes) if 0 < gone && gone < len => gone - gone % nodes.len(stream, first),
            _ => gone,
        }
    }

    /// Whether references of groups decide, or go, too.
    pub(super) fn has_references(&self) -> bool {
        self.references != References::Keep
    }

    /// Whether entries after the first ones that are too many may go in the place of some that stay.
    pub(super) fn skips(&self) -> bool {
        matches!((self.keeps, self.nodes), (Keeps::Len(_), None))
    }

    /// Whether entries go as whole nodes go: how many is told by the first one.
    pub(super) fn is_about(&self) -> bool {
        self.nodes.is_some()
    }

    /// The ID at which the leaf has to be in memory before the entries are counted that go.
    pub(super) fn edge(&self) -> Option<Id> {
        match self.keeps {
            Keeps::Len(_) => None,
            Keeps::From(id) => Some(id),
        }
    }
}

/// The options of XADD and XTRIM.
#[derive(Default)]
pub(super) struct TrimOptions {
    pub(super) only_present: bool,
    pub(super) trim: Option<Trim>,
    /// The idempotent ID, if one is given.
    pub(super) idempotence: Option<AskedIdempotence>,
    /// The ID; none for `*`.
    pub(super) id: Option<AskedId>,
    /// Where the options end: at the ID.
    pub(super) end: usize,
}

impl TrimOptions {
    /// Takes an idempotent ID, and returns its last argument.
    ///
    /// # Errors
    /// There is one already, or it is empty.
    fn take_idempotence(&mut self, args: &Args<'_>, at: usize) -> Result<usize, Failure> {
        let asked = AskedIdempotence::parse(args, at)?;
        match self.idempotence.replace(asked) {
            Some(_) => Err(TWO_IDEMPOTENT),
            None => Ok(asked.last()),
        }
    }

    /// # Errors
    /// They make no sense.
    pub(super) fn parse(
        args: &Args<'_>,
        is_add: bool,
        settings: &Settings,
    ) -> Result<TrimOptions, Failure> {
        let mut options = TrimOptions::default();
        let (mut keeps, mut is_about, mut limit, mut references) = (None, false, None, None);
        let mut at = 2;
        while at < args.len() {
            let left = args.len() - 1 - at;
            if is_add && args.get(at) == b"*" {
                break;
            } else if left > 0 && (args.is(at, "MAXLEN") || args.is(at, "MINID")) {
                if keeps.is_some() {
                    return Err(TWO_STRATEGIES);
                }
                let is_len = args.is(at, "MAXLEN");
                let sign = args.get(at + 1);
                is_about = left >= 2 && sign == b"~";
                at += if is_about || left >= 2 && sign == b"=" {
                    2
                } else {
                    1
                };
                keeps = Some(match is_len {
                    true => match u64::try_from(args.integer(at)?) {
                        Ok(len) => Keeps::Len(len),
                        Err(_) => return Err(NEGATIVE_MAXLEN),
                    },
                    false => Keeps::From(id::exact(args.get(at), 0)?),
                });
            } else if left > 0 && args.is(at, "LIMIT") {
                at += 1;
                limit = match u64::try_from(args.integer(at)?) {
                    Ok(most) => Some(most),
                    Err(_) => return Err(NEGATIVE_LIMIT),
                };
            } else if is_add && left > 1 && args.is(at, "IDMP")
                || is_add && left > 0 && args.is(at, "IDMPAUTO")
            {
                at = options.take_idempotence(args, at)?;
            } else if is_add && args.is(at, "NOMKSTREAM") {
                options.only_present = true;
            } else if let (None, Some(word)) = (references, References::at(args, at)) {
                references = Some(word);
            } else if is_add {
                options.id = Some(id::to_add(args.get(at))?);
                break;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        options.end = at;
        if options.idempotence.is_some() && options.id.is_some() {
            return Err(IDEMPOTENT_WITH_ID);
        }
        match keeps {
            None if limit.is_some_and(|limit| limit > 0) => return Err(LIMIT_ALONE),
            None if !is_add => return Err(NO_STRATEGY),
            _ if limit.is_some() && !is_about => return Err(EXACT_LIMIT),
            _ => {}
        }
        let nodes = is_about.then(|| Nodes::new(settings));
        options.trim = keeps.map(|keeps| Trim {
            keeps,
            nodes,
            most: match (limit, nodes) {
                (_, None) | (Some(0), _) => u64::MAX,
                (Some(most), _) => most,
                (None, Some(nodes)) => nodes.most(),
            },
            references: references.unwrap_or_default(),
        });
        Ok(options)
    }
}
