//! All subcommands.

use std::ffi::OsStr;

use super::given::Given;
use super::subcommand::Subcommand;
use super::{bench, deploy, local, rebalance, status, stop};
use crate::failure::{Failure, Result};
use crate::flags::Options;

/// All of them, in the order of the help.
pub(crate) const SUBCOMMANDS: &[Subcommand] = &[
    local::SUBCOMMAND,
    deploy::SUBCOMMAND,
    status::SUBCOMMAND,
    bench::SUBCOMMAND,
    stop::SUBCOMMAND,
    rebalance::SUBCOMMAND,
];

/// The subcommand of this name.
pub(crate) fn find(word: &OsStr) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| subcommand.name == word)
}

/// Runs the subcommand that was asked for. `options` are the flags before `cluster`.
pub(crate) fn run(given: &Given, options: &Options) -> Result {
    let subcommand = find(given.subcommand.as_ref())
        .ok_or_else(|| Failure::other("there is no such subcommand"))?;
    (subcommand.run)(given, options)
}
