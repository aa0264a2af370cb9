//! The table of all commands, and how a name finds its row.

use std::sync::LazyLock;

use super::spec::{Begin, Find, Spec};
use super::{bitmap, connection, key, server, string};

/// A row of the table: a [`Spec`] with what follows from its position.
pub(crate) struct Command {
    pub(crate) spec: &'static Spec,
    /// Index of its counters.
    pub(crate) id: u16,
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
        let subcommands = spec.subcommands.iter().map(|sub| Command::new(sub, Some(spec.name), next_id)).collect();
        Command { spec, id, full_name, first_key, last_key, key_step, subcommands }
    }

    /// Whether `count` arguments, name included, are right for it.
    #[inline]
    pub(crate) fn takes(&self, count: usize) -> bool {
        let arity = self.spec.arity;
        if arity >= 0 { count == arity as usize } else { count >= arity.unsigned_abs() as usize }
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
        self.subcommands.iter().find(|sub| name.eq_ignore_ascii_case(sub.spec.name.as_bytes()))
    }
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

/// See the module.
pub(crate) struct Table {
    commands: Vec<Command>,
    /// Index into `commands` + 1; 0 is free.
    slots: Box<[u16; SLOTS]>,
    /// Counters that commands and subcommands need.
    counters: usize,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let families = [string::COMMANDS, bitmap::COMMANDS, key::COMMANDS, connection::COMMANDS, server::COMMANDS];
    Table::new(families.into_iter().flatten())
});

/// The table of this server's commands.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

impl Table {
    fn new(specs: impl Iterator<Item = &'static Spec>) -> Table {
        let mut next_id = 0;
        let commands: Vec<Command> = specs.map(|spec| Command::new(spec, None, &mut next_id)).collect();
        assert!(commands.len() * 3 < SLOTS, "the name table needs more slots");
        let mut slots = Box::new([0; SLOTS]);
        for (at, command) in commands.iter().enumerate() {
            let mut slot = slot_of(command.spec.name.as_bytes());
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = at as u16 + 1;
        }
        Table { commands, slots, counters: usize::from(next_id) }
    }

    /// Finds a command by its name in any case. Two loads and a multiplication for the slot, one comparison.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let mut slot = slot_of(name);
        loop {
            let at = self.slots[slot];
            if at == 0 {
                return None;
            }
            let command = &self.commands[usize::from(at) - 1];
            if name.eq_ignore_ascii_case(command.spec.name.as_bytes()) {
                return Some(command);
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
        self.commands.iter().flat_map(|command| std::iter::once(command).chain(&command.subcommands))
    }

    /// The number of counters: one for each command and subcommand.
    pub(crate) fn counters(&self) -> usize {
        self.counters
    }
}

/// The first slot to look at for a name, case folded by a bit that all letters share.
#[inline]
fn slot_of(name: &[u8]) -> usize {
    const FOLD: u64 = 0x2020_2020_2020_2020;
    let word = match name {
        [] => 0,
        [a] => u64::from(*a),
        [a, b] => u64::from(*a) << 8 | u64::from(*b),
        [a, b, c] => u64::from(*a) << 16 | u64::from(*b) << 8 | u64::from(*c),
        _ if name.len() < 8 => {
            let (first, last) = (name.first_chunk::<4>(), name.last_chunk::<4>());
            u64::from(u32::from_le_bytes(*first.expect("four"))) << 32 | u64::from(u32::from_le_bytes(*last.expect("four")))
        }
        _ => {
            let (first, last) = (name.first_chunk::<8>(), name.last_chunk::<8>());
            (u64::from_le_bytes(*first.expect("eight")) | FOLD).rotate_left(21)
                ^ (u64::from_le_bytes(*last.expect("eight")) | FOLD)
        }
    };
    let mixed = ((word | FOLD) ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SLOTS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for command in table().commands() {
            let name = command.spec.name;
            for spelling in [name.to_string(), name.to_uppercase(), name[..1].to_uppercase() + &name[1..]] {
                assert_eq!(table().find(spelling.as_bytes()).map(|found| found.id), Some(command.id), "{spelling}");
            }
            assert!(table().find(format!("{name}x").as_bytes()).is_none());
        }
        assert!(table().find(b"").is_none());
    }

    #[test]
    fn rows_are_complete_and_unique() {
        let mut names = std::collections::HashSet::new();
        for command in table().all() {
            let spec = command.spec;
            assert!(names.insert(command.full_name.clone()), "{} twice", command.full_name);
            assert!(!spec.summary.is_empty() && !spec.complexity.is_empty(), "{} says nothing", command.full_name);
            assert!(spec.arity != 0, "{} has no arity", command.full_name);
            assert_eq!(spec.name, spec.name.to_lowercase());
        }
    }
}
