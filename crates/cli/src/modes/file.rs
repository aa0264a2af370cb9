//! What `import`, `export` and `--rdb` share: a file that appears only when it is whole, and a bar that says
//! how far it is.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, Result, reason};

/// A failure with a file, in words.
pub(super) fn wrong(path: &Path, error: &io::Error) -> Failure {
    Failure::Other(format!("{}: {}", path.display(), reason(error)))
}

/// A file that is being written beside its place, or standard output.
pub(super) enum Target {
    File { file: File, partial: PathBuf },
    Output(Box<BufWriter<Stdout>>),
}

impl Target {
    /// Begins to write what is to be at `path`; `-` is standard output.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(super) fn create(path: &Path) -> Result<Target> {
        if is_output(path) {
            return Ok(Target::Output(Box::new(BufWriter::new(io::stdout()))));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        match File::create(&partial) {
            Ok(file) => Ok(Target::File { file, partial }),
            Err(error) => Err(wrong(path, &error)),
        }
    }

    /// Puts the file where it belongs, once it is on the disk.
    ///
    /// # Errors
    /// What was written cannot be kept.
    pub(super) fn keep(mut self, path: &Path) -> Result {
        let kept = match &mut self {
            Target::Output(output) => output.flush(),
            Target::File { file, partial } => {
                file.sync_all().and_then(|()| fs::rename(partial, path))
            }
        };
        kept.map_err(|error| wrong(path, &error))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File { file, .. } => file.write(bytes),
            Target::Output(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File { file, .. } => file.flush(),
            Target::Output(output) => output.flush(),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::File { partial, .. } = self {
            // It is gone already if it was kept.
            let _ = fs::remove_file(partial);
        }
    }
}

/// Whether a path stands for standard output.
pub(super) fn is_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A bar for a person who watches. The template shows `{wide_bar}` and `{msg}`.
pub(super) fn bar(len: u64, template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(len);
    let style = ProgressStyle::with_template(template).expect("the template is one");
    bar.set_style(style.progress_chars("=> "));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}
