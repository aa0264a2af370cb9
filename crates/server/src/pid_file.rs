//! `pidfile`: the file that tells others the number of this process.

use std::fs;

use crate::config::{Setting, Settings};

/// The file that names this process, removed with it however the server ends in order.
pub(crate) struct PidFile {
    /// Empty for none.
    path: String,
    /// What the file said before, if that is a process which lives: perhaps a server in the same directory.
    before: Option<String>,
}

impl PidFile {
    /// Writes it, if there is to be one. As with redis-server, a file that cannot be written stops nothing: its directory may be one
    /// that only a service manager makes.
    pub(crate) fn write(settings: &Settings) -> PidFile {
        let path = settings.text(Setting::PidFile).to_string();
        let mut before = None;
        if !path.is_empty() {
            before = fs::read_to_string(&path).ok().filter(|text| {
                let pid = text.trim().parse();
                pid.is_ok_and(|pid| pid != sys::process::pid() && sys::process::is_alive(pid))
            });
            if let Err(error) = fs::write(&path, format!("{}\n", sys::process::pid())) {
                log::warn!("cannot write 'pidfile' {path}: {error}");
            }
        }
        PidFile { path, before }
    }

    /// No other server uses the same data, so the file is this one's alone.
    pub(crate) fn settle(&mut self) {
        self.before = None;
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        match self.before.take() {
            // This server did not come up: the file says again what it said.
            Some(before) if names_this(&self.path) => {
                let _ = fs::write(&self.path, before);
            }
            _ => remove_at(&self.path),
        }
    }
}

/// Removes the file that names this process, unless it names another by now.
pub(crate) fn remove(settings: &Settings) {
    remove_at(&settings.text(Setting::PidFile));
}

fn remove_at(path: &str) {
    if names_this(path) {
        let _ = fs::remove_file(path);
    }
}

fn names_this(path: &str) -> bool {
    let named = fs::read_to_string(path);
    named.is_ok_and(|text| text.trim() == sys::process::pid().to_string())
}
