//! Functions of a state, as its owner holds them.

use std::os::raw::c_int;

/// A text that is compiled: its function in one state.
#[derive(Debug)]
pub struct Function {
    pub(crate) reference: c_int,
    /// The state that it belongs to.
    pub(crate) state: u64,
    pub(crate) text_len: usize,
    pub(crate) takes: Takes,
    /// Whether the text can see KEYS, and ARGV.
    pub(crate) sees: [bool; 2],
    /// Whether it is known to do nothing with them but to read their items.
    pub(crate) only_reads: [bool; 2],
}

impl Function {
    /// The same, of a text that does nothing with KEYS, or ARGV, but to read the items: it needs no list of
    /// its own.
    #[must_use]
    pub fn only_reads(self, keys: bool, argv: bool) -> Function {
        Function {
            only_reads: [keys, argv],
            ..self
        }
    }
}

/// The way of keys and values to a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Takes {
    /// As the globals KEYS and ARGV.
    Globals,
    /// As its parameters.
    Parameters,
}
