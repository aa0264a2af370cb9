//! What was asked for on the command line.
//!
//! | file | what |
//! |---|---|
//! | `table` | every flag: its names, what it takes, what it says of itself and what it sets |
//! | `verb` | commands of this program that work on files |
//! | `options` | what the flags set |
//! | `parse` | from words to options: command line, `--config` file, environment |
//! | `uri` | `redis://user:password@host:port/db` |
//! | `help` | `--help`, made from the table |
//!
//! Not here: what any of it does.

mod help;
#[cfg(test)]
mod manual;
mod options;
mod parse;
mod table;
mod uri;
mod verb;

pub(crate) use help::{help, row as help_row, version};
pub(crate) use options::{Input, KeyScan, Mode, Options};
pub(crate) use parse::{Request, read};
pub(crate) use uri::parse as parse_uri;
