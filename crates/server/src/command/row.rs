//! A row of the table of commands: what dispatch, a transaction and a cluster ask of a command, worked out of
//! its [`Spec`] once.

use super::key_finder;
use super::room::bounded;
use super::spec::{Begin, Find, Group, Handler, KeySpec, Spec, access, flag};
use crate::request::Args;

/// A row of the table: a [`Spec`], and fields that follow from its position. Fields that every request needs
/// come first and share a cache line.
#[repr(C)]
pub(crate) struct Command {
    pub(crate) handler: Handler,
    pub(crate) spec: &'static Spec,
    /// How many arguments are right for it, name included.
    least_args: u32,
    most_args: u32,
    /// Index of its counters.
    pub(crate) id: u16,
    /// It takes constant time for small arguments, never waits, and changes nothing but data: a run of it may
    /// be timed as a whole, and the session is the same after it.
    pub(crate) groupable: bool,
    /// Its meaning for a transaction.
    pub(crate) control: Control,
    /// How a cluster finds its keys.
    pub(crate) routing: Routing,
    /// The argument index of the key of a command with one; of others `usize::MAX`, which no request has.
    pub(crate) only_key: usize,
    /// The binary logarithm of `key_step`, which is a power of two wherever hashes are prepared.
    pub(crate) key_shift: u8,
    /// `get`, `client|kill`.
    pub(crate) full_name: String,
    /// Argument index of its first key (0: none), of the last (negative: from the end), and the step between.
    pub(crate) first_key: i32,
    pub(crate) last_key: i32,
    pub(crate) key_step: i32,
    pub(crate) subcommands: Vec<Command>,
}

impl Command {
    pub(super) fn new(spec: &'static Spec, parent: Option<&str>, next_id: &mut u16) -> Command {
        let full_name = match parent {
            Some(parent) => format!("{parent}|{}", spec.name),
            None => spec.name.to_string(),
        };
        let id = *next_id;
        *next_id += 1;
        let (first_key, last_key, key_step) = key_range(spec);
        let data = matches!(
            spec.group,
            Group::String
                | Group::Bitmap
                | Group::HyperLogLog
                | Group::List
                | Group::Hash
                | Group::Set
                | Group::SortedSet
                | Group::Geo
                | Group::Stream
                | Group::Generic
        );
        let routing = Routing::of(spec, &full_name);
        let arity = spec.arity.unsigned_abs();
        let subcommands = spec
            .subcommands
            .iter()
            .map(|sub| Command::new(sub, Some(spec.name), next_id))
            .collect();
        Command {
            handler: bounded(spec),
            spec,
            least_args: arity,
            most_args: if spec.arity < 0 { u32::MAX } else { arity },
            id,
            groupable: (spec.has(flag::BOUNDED) || (spec.has(flag::FAST) && data))
                && !spec.has(flag::BLOCKING),
            control: Control::of(&full_name),
            routing,
            only_key: match routing {
                Routing::OneKey => first_key as usize,
                Routing::Keyless | Routing::ManyKeys => usize::MAX,
            },
            key_shift: key_step.max(1).trailing_zeros() as u8,
            full_name,
            first_key,
            last_key,
            key_step,
            subcommands,
        }
    }

    /// Whether `count` arguments, name included, are right for it.
    #[inline]
    pub(crate) fn takes(&self, count: usize) -> bool {
        (self.least_args as usize..=self.most_args as usize).contains(&count)
    }

    /// The argument at `at` as others may see it.
    pub(crate) fn shown<'a>(&self, args: &Args<'a>, at: usize) -> &'a [u8] {
        if (self.spec.secret)(args, at) && at > 0 {
            b"(redacted)"
        } else {
            args.get(at)
        }
    }

    /// The argument indices of the keys that a plain range describes.
    pub(crate) fn key_positions(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.first_key as usize;
        let last = match self.last_key {
            last if last < 0 => count.saturating_sub(last.unsigned_abs() as usize),
            last => last as usize,
        };
        let end = if first == 0 { 0 } else { (last + 1).min(count) };
        (first..end).step_by(self.key_step.max(1) as usize)
    }

    /// The subcommand of a name in any case.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<&Command> {
        self.subcommands
            .iter()
            .find(|sub| name.eq_ignore_ascii_case(sub.spec.name.as_bytes()))
    }
}

/// Meaning of a command for its transaction. Commands named here are not queued, or are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Nothing: it is queued.
    None,
    Multi,
    Exec,
    Discard,
    Watch,
    Quit,
    Reset,
    /// It is queued too, and decides where what follows runs.
    Select,
    /// It is queued too, and finds out itself which values it needs.
    Script,
}

impl Control {
    fn of(name: &str) -> Control {
        match name {
            "multi" => Control::Multi,
            "exec" => Control::Exec,
            "discard" => Control::Discard,
            "watch" => Control::Watch,
            "quit" => Control::Quit,
            "reset" => Control::Reset,
            "select" => Control::Select,
            "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall" | "fcall_ro" => Control::Script,
            _ => Control::None,
        }
    }

    /// Whether a command is queued between MULTI and EXEC.
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Control::None | Control::Select | Control::Script)
    }

    /// Whether a command finds out itself which values it needs.
    pub(crate) fn finds_its_values(self) -> bool {
        matches!(self, Control::Exec | Control::Script)
    }

    /// Whether a command ends a transaction, or the connection with it.
    pub(crate) fn ends(self) -> bool {
        matches!(
            self,
            Control::Exec | Control::Discard | Control::Quit | Control::Reset
        )
    }
}

/// How a cluster finds the keys of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routing {
    /// There are none.
    Keyless,
    /// There is exactly one, the argument `first_key`.
    OneKey,
    /// There may be several, or they are to be looked for.
    ManyKeys,
}

impl Routing {
    fn of(spec: &Spec, full_name: &str) -> Routing {
        let is_one = |rule: &KeySpec| matches!(rule.find, Find::Range { last: 0, .. });
        match spec.keys {
            // It has those of its transaction.
            _ if full_name == "exec" => Routing::ManyKeys,
            [] => Routing::Keyless,
            [rule] if is_plain(rule) && is_one(rule) => Routing::OneKey,
            _ => Routing::ManyKeys,
        }
    }
}

/// Part of a database that a request may use.
pub(crate) enum Reach {
    Nothing,
    /// The keys at [`Command::key_positions`].
    Range,
    /// The keys at these arguments.
    Found(Vec<usize>),
    Everything,
}

impl Command {
    /// Whether [`Command::key_positions`] are its keys.
    pub(crate) fn has_plain_keys(&self) -> bool {
        self.spec.keys.iter().all(is_plain)
    }

    /// Part of a database that a request of this command may use; the number of arguments is right.
    pub(crate) fn reach(&self, args: &Args<'_>) -> Reach {
        if let Some(reach) = (self.spec.reach)(args) {
            return reach;
        }
        let rules = self.spec.keys;
        if self.spec.has(flag::NO_DATA) {
            return Reach::Nothing;
        }
        if rules.is_empty() {
            return Reach::Everything;
        }
        if self.has_plain_keys() {
            return Reach::Range;
        }
        let all: Vec<&[u8]> = args.from(0).collect();
        if key_finder::has_untold(self.spec, &all) {
            return Reach::Everything;
        }
        match key_finder::find(self.spec, &all) {
            Some(found) => Reach::Found(found.into_iter().map(|key| key.at).collect()),
            // It will be refused; the keys that it looks up before are unknown.
            None => Reach::Everything,
        }
    }
}

/// Whether a rule names its keys by their positions alone, and all of them.
fn is_plain(rule: &KeySpec) -> bool {
    let by_position = matches!(
        (rule.begin, rule.find),
        (Begin::Index(_), Find::Range { limit: 0, .. })
    );
    by_position && rule.access & access::INCOMPLETE == 0
}

/// First, last and step over all rules that begin at a fixed argument.
fn key_range(spec: &Spec) -> (i32, i32, i32) {
    let mut range: Option<(i32, i32, i32)> = None;
    for rule in spec.keys {
        if let (Begin::Index(first), Find::Range { last, step, .. }) = (rule.begin, rule.find) {
            let last = if last < 0 { last } else { first + last };
            range = Some(match range {
                None => (first, last, step),
                Some((earlier, _, _)) => (earlier.min(first), last, 1),
            });
        }
    }
    range.unwrap_or((0, 0, 0))
}
