//! The table of all commands, and how a name finds its row.

use std::sync::LazyLock;

use super::room::bounded;
use super::server::key_finder;
use super::spec::{Begin, Find, Group, Handler, KeySpec, Spec, flag};
use super::{
    bitmap, config, connection, geo, hash, hyperloglog, key, list, pubsub, server, set, sort,
    sorted_set, string, transaction,
};
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
    fn new(spec: &'static Spec, parent: Option<&str>, next_id: &mut u16) -> Command {
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
            _ => Control::None,
        }
    }

    /// Whether a command is queued between MULTI and EXEC.
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Control::None | Control::Select)
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
    by_position && !rule.flags.contains(&"incomplete")
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

/// Slots of the name table: a power of two well above twice the number of commands.
const SLOTS: usize = 1024;

/// A slot of the name table.
#[derive(Clone, Copy, Default)]
struct NameSlot {
    name: FoldedName,
    /// Index into the commands + 1; 0 is a free slot.
    at: u16,
    /// Equal folded names are equal names: it has only letters (folding makes `_` and DEL equal too), and no
    /// more than two words hold.
    exact: bool,
}

/// See the module.
pub(crate) struct Table {
    commands: Vec<Command>,
    slots: Box<[NameSlot; SLOTS]>,
    /// Counters that commands and subcommands need.
    counters: usize,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let families = [
        string::COMMANDS,
        bitmap::COMMANDS,
        hyperloglog::COMMANDS,
        hash::COMMANDS,
        set::COMMANDS,
        sorted_set::COMMANDS,
        sorted_set::RANGES,
        sorted_set::COMBINES,
        sorted_set::WAITS,
        geo::COMMANDS,
        list::COMMANDS,
        key::COMMANDS,
        sort::COMMANDS,
        connection::COMMANDS,
        pubsub::COMMANDS,
        server::COMMANDS,
        config::COMMANDS,
        transaction::COMMANDS,
    ];
    Table::new(families.into_iter().flatten())
});

/// The table of this server's commands.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

impl Table {
    fn new(specs: impl Iterator<Item = &'static Spec>) -> Table {
        let mut next_id = 0;
        let commands: Vec<Command> = specs
            .map(|spec| Command::new(spec, None, &mut next_id))
            .collect();
        assert!(
            commands.len() * 3 < SLOTS,
            "the name table needs more slots"
        );
        let mut slots = Box::new([NameSlot::default(); SLOTS]);
        for (at, command) in commands.iter().enumerate() {
            let name = FoldedName::of(command.spec.name.as_bytes());
            let mut slot = name.slot();
            while slots[slot].at != 0 {
                slot = (slot + 1) % SLOTS;
            }
            let letters = command
                .spec
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase());
            slots[slot] = NameSlot {
                name,
                at: at as u16 + 1,
                exact: letters && name.len <= 16,
            };
        }
        Table {
            commands,
            slots,
            counters: usize::from(next_id),
        }
    }

    /// Finds a command by its name in any case: two loads and a multiplication for the slot, two comparisons
    /// of words.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let folded = FoldedName::of(name);
        let mut slot = folded.slot();
        loop {
            let NameSlot {
                name: its,
                at,
                exact,
            } = self.slots[slot];
            if at == 0 {
                return None;
            }
            if its == folded {
                let command = &self.commands[usize::from(at) - 1];
                if exact || name.eq_ignore_ascii_case(command.spec.name.as_bytes()) {
                    return Some(command);
                }
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// All commands, in table order.
    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// All commands, each followed by its subcommands.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands
            .iter()
            .flat_map(|command| std::iter::once(command).chain(&command.subcommands))
    }

    /// The command whose counters have an index.
    pub(crate) fn by_id(&self, id: u16) -> Option<&Command> {
        self.all().nth(usize::from(id))
    }

    /// Any command, to stand where none has been chosen yet.
    pub(crate) fn any(&self) -> &Command {
        &self.commands[0]
    }

    /// The number of counters: one for each command and subcommand.
    pub(crate) fn counters(&self) -> usize {
        self.counters
    }
}

/// A name in two words, case folded by the bit that tells letters apart: its first and last eight bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct FoldedName {
    first: u64,
    last: u64,
    len: usize,
}

impl FoldedName {
    #[inline]
    fn of(name: &[u8]) -> FoldedName {
        const FOLD: u64 = 0x2020_2020_2020_2020;
        let len = name.len();
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
                (Some(first), Some(last)) => (
                    u64::from(u32::from_le_bytes(*first)),
                    u64::from(u32::from_le_bytes(*last)),
                ),
                // At most three bytes: the first, the middle one and the last are all of them.
                _ if len > 0 => (
                    u64::from(name[0]) << 16
                        | u64::from(name[len / 2]) << 8
                        | u64::from(name[len - 1]),
                    0,
                ),
                _ => (0, 0),
            },
        };
        FoldedName {
            first: first | FOLD,
            last: last | FOLD,
            len,
        }
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.first.rotate_left(21) ^ self.last ^ self.len as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - SLOTS.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Makes;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for command in table().commands() {
            let name = command.spec.name;
            for spelling in [
                name.to_string(),
                name.to_uppercase(),
                name[..1].to_uppercase() + &name[1..],
            ] {
                assert_eq!(
                    table().find(spelling.as_bytes()).map(|found| found.id),
                    Some(command.id),
                    "{spelling}"
                );
            }
            assert!(table().find(format!("{name}~").as_bytes()).is_none());
            for at in 0..name.len() {
                // A byte that differs from the name's only in the bit by which case is folded.
                let mut other = name.as_bytes().to_vec();
                other[at] ^= 0x20;
                let same = other[at].is_ascii_alphabetic();
                assert_eq!(table().find(&other).is_some(), same, "{other:?}");
            }
        }
        assert!(table().find(b"").is_none());
    }

    #[test]
    fn rows_are_complete_and_unique() {
        let mut names = std::collections::HashSet::new();
        for command in table().all() {
            let spec = command.spec;
            assert!(
                spec.makes != Makes::Unsaid || !command.subcommands.is_empty(),
                "{} does not say what it may make",
                command.full_name
            );
            assert!(
                names.insert(command.full_name.clone()),
                "{} twice",
                command.full_name
            );
            assert!(
                !spec.summary.is_empty() && !spec.complexity.is_empty(),
                "{} says nothing",
                command.full_name
            );
            assert!(spec.arity != 0, "{} has no arity", command.full_name);
            assert_eq!(spec.name, spec.name.to_lowercase());
        }
    }
}
