//! `pidfile`: the file that tells others the number of this process.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::config::drafts;
use crate::config::{Setting, Settings};

/// The file that names this process, removed with it however the server ends in order.
pub(crate) struct PidFile {
    /// Empty for none.
    path: String,
    /// Earlier content of the file, if that process is alive: perhaps a server in the same directory.
    before: Option<String>,
}

impl PidFile {
    /// Writes it, if there is to be one. As with redis-server, a file that cannot be written stops nothing:
    /// its directory may be one that only a service manager makes.
    pub(crate) fn write(settings: &Settings) -> PidFile {
        let path = settings.text(Setting::PidFile).to_string();
        let mut before = None;
        if !path.is_empty() {
            before = fs::read_to_string(&path).ok().filter(|text| {
                let pid = text.trim().parse();
                pid.is_ok_and(|pid| pid != sys::process::pid() && sys::process::is_alive(pid))
            });
            if let Err(error) = replace(Path::new(&path), &format!("{}\n", sys::process::pid())) {
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
                let _ = replace(Path::new(&self.path), &before);
            }
            _ => remove_at(&self.path),
        }
    }
}

/// Puts a text in the place of the file, whole or not at all, so that no script reads an empty one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Where the name is a symbolic link, the file behind it is meant.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_replaced = match file.symlink_metadata() {
        Ok(facts) => facts.is_file(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_replaced {
        drafts::remove_drafts_of(&file);
        let draft = drafts::draft_of(&file);
        let replaced = fs::File::create_new(&draft)
            .and_then(|mut new| new.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&draft, &file));
        if replaced.is_ok() {
            return Ok(());
        }
        let _ = fs::remove_file(&draft);
    }
    // The file may be written where its directory may not.
    fs::write(path, text)
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn nobody_reads_half_of_it() {
        let name = format!("ferrite-pid-file-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
        let (path, link) = (directory.join("pid"), directory.join("link"));
        std::os::unix::fs::symlink(&path, &link).expect("the directory is ours");
        // The name of a file that is not there yet is kept, too.
        replace(&link, "12345\n").expect("the directory is ours");
        assert!(link.is_symlink());
        let mut before = fs::File::open(&path).expect("it is behind the link");
        // No process has this number.
        let draft = directory.join("pid.2147483646.tmp");
        fs::write(&draft, "").expect("the directory is ours");
        replace(&link, "67\n").expect("the directory is ours");
        let mut text = String::new();
        before.read_to_string(&mut text).expect("it is a file");
        assert_eq!(text, "12345\n");
        assert!(link.is_symlink() && !draft.exists());
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "67\n");
        assert_eq!(fs::read_dir(&directory).expect("it is ours").count(), 2);
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
