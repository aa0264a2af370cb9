//! Everything for a person at a terminal.
//!
//! | file | what |
//! |---|---|
//! | `prompt` | the loop: a line, what it does, the next line |
//! | `line` | a line taken apart: commands, repetition, a program behind a bar |
//! | `local` | commands that have a meaning only here: `connect`, `clear`, `exit`, `:set` |
//! | `helper` | what the line editor asks while a person types |
//! | `complete`, `hint`, `highlight` | the answers to that, as functions over a line |
//! | `keys` | keys that were seen lately, to be completed |
//! | `history` | lines of earlier days, without secrets |
//! | `preferences` | what `:set` sets |
//! | `screen` | where replies go: the terminal, a pager, another program |
//! | `password` | asking for one |
//!
//! The line editor itself is a library; whatever a line does is done elsewhere.

mod complete;
mod helper;
mod highlight;
mod hint;
mod history;
mod keys;
mod line;
mod local;
pub(crate) mod password;
mod preferences;
mod prompt;
mod screen;

pub(crate) use prompt::run;
