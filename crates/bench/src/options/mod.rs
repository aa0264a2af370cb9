//! The command line.
//!
//! | file | what |
//! |---|---|
//! | `typed` | what was typed: a field per option, and the options in order |
//! | `values` | what is written behind an option, read |
//! | `table` | every option: names, value, help, and what it sets |
//! | `fit` | which options each mode of the program has |
//! | `parse` | from words to options, by the table |
//! | `meaning` | from options to what is to be done |
//! | `help` | `--help`, made from the table |

mod fit;
mod help;
#[cfg(test)]
mod manual;
mod meaning;
mod parse;
mod table;
mod typed;
mod uri;
pub(crate) mod values;

pub(crate) use help::{text as help, version};
pub(crate) use meaning::{has_choice, jobs, only_target, understand};
pub(crate) use parse::parse;
pub(crate) use typed::{Mode, Options, Section, Typed};
