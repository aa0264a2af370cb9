//! The server's own log: lines in the form Redis users know, to standard output or `logfile`.
//!
//! ```text
//! 1234:M 21 Nov 2026 10:52:00.123 * Ready to accept connections
//! ```
//! The sign tells the level: `.` debug, `-` verbose, `*` notice, `#` warning.

use log::{Level, LevelFilter};

use crate::config::{Setting, Settings};

/// Begins logging as configured. The error names the file.
pub(crate) fn start(settings: &Settings) -> Result<(), String> {
    let pid = sys::process::pid();
    let mut dispatch =
        fern::Dispatch::new()
            .level(LevelFilter::Trace)
            .format(move |out, message, record| {
                let sign = match record.level() {
                    Level::Trace | Level::Debug => '.',
                    Level::Info if record.target() == VERBOSE => '-',
                    Level::Info => '*',
                    Level::Warn | Level::Error => '#',
                };
                out.finish(format_args!(
                    "{pid}:M {} {sign} {message}",
                    chrono::Local::now().format("%d %b %Y %H:%M:%S%.3f")
                ))
            });
    let path = settings.text(Setting::LogFile);
    dispatch = if path.is_empty() {
        dispatch.chain(std::io::stdout())
    } else {
        let file = fern::log_file(&*path)
            .map_err(|error| format!("cannot write the log file '{path}': {error}"))?;
        dispatch.chain(file)
    };
    dispatch.apply().map_err(|error| error.to_string())?;
    set_level(settings);
    Ok(())
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
