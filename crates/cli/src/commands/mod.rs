//! What is known about commands: names, arguments, and what they are for.
//!
//! | file | what |
//! |---|---|
//! | `command` | a command and its arguments |
//! | `catalog` | all that are known |
//! | `builtin` | the table that is there without a server: `table.txt`, made from Ferrite's own |
//! | `learned` | what a server tells by COMMAND and COMMAND DOCS |
//! | `syntax` | arguments as text, and which of them a typed line has already |
//! | `help` | `help` as people see it |
//!
//! The one table of commands is the server's (`crates/server/src/command`); everything here derives from it
//! or from another server's, and nothing about a command is written down here.

mod builtin;
mod catalog;
mod command;
mod help;
mod learned;
mod syntax;

pub(crate) use catalog::Catalog;
pub(crate) use command::Command;
pub(crate) use help::help;
pub(crate) use syntax::progress;
