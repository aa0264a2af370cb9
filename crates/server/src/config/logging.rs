//! The server's own log: lines in the form Redis users know, to standard output or `logfile`.
//!
//! ```text
//! 1234:M 21 Nov 2026 10:52:00.123 * Ready to accept connections
//! ```
//! The sign tells the level: `.` debug, `-` verbose, `*` notice, `#` warning.
//!
//! A line that cannot be written (a full disk, a terminal that is gone) is dropped: the log is no reason to
//! end. The file is opened anew when a signal asks for it, after a rotation has renamed it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

use crate::config::{Setting, Settings};

/// Where lines go.
static SINK: Mutex<Sink> = Mutex::new(Sink::Output);

enum Sink {
    /// Standard output.
    Output,
    File(File),
}

impl Sink {
    /// Writes a line with one call of the system, so that lines of several processes do not mix.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Sink::Output => {
                let mut output = io::stdout().lock();
                output.write_all(line).and_then(|()| output.flush())
            }
            Sink::File(file) => file.write_all(line),
        }
    }
}

/// Receiver of the macros of `log`.
struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let sign = match record.level() {
            Level::Trace | Level::Debug => '.',
            Level::Info if record.target() == VERBOSE => '-',
            Level::Info => '*',
            Level::Warn | Level::Error => '#',
        };
        let line = format!(
            "{}:M {} {sign} {}\n",
            sys::process::pid(),
            chrono::Local::now().format("%d %b %Y %H:%M:%S%.3f"),
            record.args()
        );
        // See the module.
        let _ = SINK.lock().write(line.as_bytes());
    }

    fn flush(&self) {}
}

/// Begins logging as configured. The error names the file.
pub(crate) fn start(settings: &Settings) -> Result<(), String> {
    if let Some(file) = open(settings)? {
        *SINK.lock() = Sink::File(file);
    }
    log::set_logger(&Lines).map_err(|error| error.to_string())?;
    set_level(settings);
    Ok(())
}

/// Opens `logfile` anew: a rotation may have renamed the file that is written to. The old one is kept where
/// that fails. Whether there is a file at all.
///
/// # Errors
/// Which file cannot be opened, and why.
pub(crate) fn reopen(settings: &Settings) -> Result<bool, String> {
    match open(settings)? {
        Some(file) => {
            *SINK.lock() = Sink::File(file);
            Ok(true)
        }
        None => Ok(false),
    }
}

/// The file of the settings; `None` for standard output.
fn open(settings: &Settings) -> Result<Option<File>, String> {
    let path = settings.text(Setting::LogFile);
    if path.is_empty() {
        return Ok(None);
    }
    let file = OpenOptions::new().create(true).append(true).open(&*path);
    file.map(Some)
        .map_err(|error| format!("cannot write the log file '{path}': {error}"))
}

/// The target that makes an `info` record a verbose one.
pub(crate) const VERBOSE: &str = "verbose";

/// Applies `loglevel`.
pub(crate) fn set_level(settings: &Settings) {
    let level = match settings.get_text(Setting::LogLevel).as_str() {
        "debug" => LevelFilter::Debug,
        "verbose" | "notice" => LevelFilter::Info,
        _ => LevelFilter::Warn,
    };
    log::set_max_level(level);
}
