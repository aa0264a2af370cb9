//! Other programs of Ferrite.

use std::path::PathBuf;

/// The program of this name: the one beside this, else that of the PATH.
pub(super) fn beside(program: &str) -> PathBuf {
    let own = sys::process::executable_path();
    let its = own.ok().map(|own| own.with_file_name(program));
    let its = its.filter(|path| path.is_file());
    its.unwrap_or_else(|| PathBuf::from(program))
}
