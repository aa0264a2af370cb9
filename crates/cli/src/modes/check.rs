//! `check-log DIR`: reads the log of a server that does not run, and tells what is wrong with it, as
//! `ferrite-server --check-log` does.
//!
//! Nothing is asked of a server, and nothing is changed; mending is the server's business (`--repair-log`).

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use sys::file::Disk;

use crate::failure::{Failure, Result};

/// Reads the log and prints what it finds.
///
/// # Errors
/// The log is damaged, which was printed; or nobody can tell.
pub(crate) fn check(arguments: &[Vec<u8>], out: &mut dyn Write) -> Result {
    let [directory] = arguments else {
        return Err(Failure::Unknown(
            "check-log takes one directory: check-log DIR".to_owned(),
        ));
    };
    let directory = Path::new(OsStr::from_bytes(directory));
    let report = ferrite_log::check(Arc::new(Disk), directory)
        .map_err(|error| Failure::Unknown(error.to_string()))?;
    writeln!(out, "{report}")?;
    if report.is_whole() {
        return Ok(());
    }
    writeln!(
        out,
        "ferrite-server --repair-log {} mends it",
        directory.display()
    )?;
    Err(Failure::Told)
}
