//! Where the report goes: the standard output, or the file of `--out-file`.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub(crate) struct Output {
    file: Option<(PathBuf, File)>,
}

impl Output {
    /// Opens the file, emptied, if there is one.
    ///
    /// # Errors
    /// It cannot be created; the text names it.
    pub(crate) fn open(path: Option<&Path>) -> Result<Output, String> {
        let Some(path) = path else {
            return Ok(Output { file: None });
        };
        let file = File::create(path)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(Output {
            file: Some((path.to_owned(), file)),
        })
    }

    /// Writes text, which is there when this returns.
    ///
    /// # Errors
    /// It cannot be written; the text says where.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), String> {
        let (written, place) = match &mut self.file {
            Some((path, file)) => (file.write_all(text.as_bytes()), path.display().to_string()),
            None => {
                let mut out = stdout().lock();
                let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                (written, "the standard output".to_owned())
            }
        };
        written.map_err(|error| format!("{place} cannot be written: {error}"))
    }

    /// Writes a line.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub(crate) fn line(&mut self, line: &str) -> Result<(), String> {
        self.text(&format!("{line}\n"))
    }
}
