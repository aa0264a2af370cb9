//! `cluster SUBCOMMAND`: several servers that share the keys, as one thing: started, looked at, measured,
//! stopped.
//!
//! | file | what |
//! |---|---|
//! | `subcommand` | what a subcommand is made of |
//! | `given` | a subcommand as it was typed |
//! | `table` | all subcommands: parser, help, manual page and completions derive from it |
//! | `read` | the words behind `cluster`, taken apart by the table |
//! | `help` | `cluster --help` |
//! | `nodes` | the file of hosts |
//! | `ssh` | what runs on other machines |
//! | `deploy` | `cluster deploy` |
//! | `fleet` | the nodes that a directory or a file names |
//! | `probe` | what the nodes say of themselves |
//! | `local`, `launch` | `cluster local`; starting nodes, and waiting until they serve |
//! | `node_process`, `port_owner` | the process of a node on this machine; who uses a port |
//! | `programs` | other programs of Ferrite |
//! | `status`, `bench`, `stop`, `rebalance` | the subcommands of these names |
//! | `columns` | tables for people |
//!
//! A subcommand lives in a file of its own, with a constant `SUBCOMMAND` that [`table::SUBCOMMANDS`] lists.
//! Other words behind `cluster` (`SLOTS`, `INFO`, ...) are a command of the server.

mod bench;
mod columns;
mod deploy;
mod fleet;
mod given;
mod help;
mod launch;
mod local;
mod node_process;
mod nodes;
mod port_owner;
mod probe;
mod programs;
mod read;
mod rebalance;
mod ssh;
mod status;
mod stop;
mod subcommand;
mod table;

pub(crate) use given::Given;
#[cfg(test)]
pub(crate) use help::rows;
pub(crate) use read::{Words, read};
#[cfg(test)]
pub(crate) use subcommand::{Subcommand, SubcommandFlag};
pub(crate) use table::{SUBCOMMANDS, run};
