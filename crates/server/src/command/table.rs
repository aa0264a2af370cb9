//! The table of all commands, and how a name finds its row.

use std::sync::OnceLock;

use keyspace::Kind;

use super::blocking::Taker;
use super::row::Command;
use super::spec::Spec;

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
    /// The operations of blocking commands, once for each kind of value.
    takers: Vec<&'static Taker>,
}

static TABLE: OnceLock<Table> = OnceLock::new();

/// The table of this server's commands.
///
/// # Panics
/// No families are installed: the start and the tests that need a table install them.
#[inline]
pub(crate) fn table() -> &'static Table {
    TABLE.get().expect("the families of commands are installed")
}

impl Table {
    /// Makes the table of these rows that of the server, unless it has one.
    pub(super) fn install(specs: impl Iterator<Item = &'static Spec>) {
        TABLE.get_or_init(|| Table::new(specs));
    }

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
        let mut takers: Vec<&'static Taker> = Vec::new();
        for taker in commands.iter().filter_map(|command| command.spec.taker) {
            if takers.iter().all(|known| known.kind != taker.kind) {
                takers.push(taker);
            }
        }
        Table {
            commands,
            slots,
            counters: usize::from(next_id),
            takers,
        }
    }

    /// Finds a command by its name in any case: two loads and a multiplication for the slot, two comparisons
    /// of words. The compiler once made it a call of its own: 30 instructions more for each request, which
    /// `scripts/instructions --base` shows.
    #[inline(always)]
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

    /// Finds the command of a request, or its subcommand: by its name, and the argument after it.
    pub(crate) fn find_with(&self, name: &[u8], next: Option<&[u8]>) -> Option<&Command> {
        let command = self.find(name)?;
        match next {
            Some(next) if !command.subcommands.is_empty() => command.subcommand(next),
            _ => Some(command),
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

    /// The operations of blocking commands on values of a kind.
    ///
    /// # Panics
    /// No row names a taker of this kind.
    pub(super) fn taker(&self, kind: Kind) -> &'static Taker {
        let mut takers = self.takers.iter();
        takers
            .find(|taker| taker.kind == kind)
            .expect("the rows of commands that wait for this kind name its taker")
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
    use crate::command::{Makes, families, flag};

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        families::install();
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
        families::install();
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
            assert!(
                spec.taker.is_some() == (spec.has(flag::BLOCKING) && !spec.keys.is_empty()),
                "{} waits for keys and has no taker, or the reverse",
                command.full_name
            );
            assert!(spec.arity != 0, "{} has no arity", command.full_name);
            assert_eq!(spec.name, spec.name.to_lowercase());
        }
    }
}
