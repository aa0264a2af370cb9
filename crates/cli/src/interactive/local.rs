//! Commands that have a meaning only at a prompt, and those of this program everywhere by name.

use super::preferences::Preferences;
use crate::access::Access;
use crate::connection::Place;
use crate::flags::parse_uri;
use crate::request::is;

/// Words that begin a line here and mean nothing to a server.
pub(super) const NAMES: &[&str] = &[
    "help",
    "peek",
    "check-log",
    "connect",
    "clear",
    "exit",
    "quit",
    ":set",
];

/// What comes of a command of this kind.
pub(super) enum Local {
    /// It is none.
    No,
    Exit,
    Clear,
    /// The place has changed.
    Connect,
    /// A line to print.
    Say(String),
    Done,
}

/// Whether a word begins a line that is not for the server, or not as it is.
pub(super) fn is_own(name: &[u8]) -> bool {
    NAMES.iter().any(|own| is(name, own)) || name.starts_with(b":") || name == b"?"
}

/// The words that may follow `:set` and its like.
pub(super) fn preference_words(words: &[Vec<u8>]) -> &'static [&'static str] {
    match words {
        [name] if is(name, ":set") => &["hints", "nohints", "pager", "nopager", "output"],
        [_, name] if is(name, "output") => &["standard", "raw", "csv", "json", "quoted-json"],
        _ => &[],
    }
}

/// Runs a command if it is one of these.
pub(super) fn run(words: &[Vec<u8>], preferences: &mut Preferences, access: &mut Access) -> Local {
    match words {
        [name, ..] if is(name, "exit") || is(name, "quit") => Local::Exit,
        [name] if is(name, "clear") => Local::Clear,
        [name] if is(name, ":set") => Local::Say(preferences.lines()),
        [name, rest @ ..] if is(name, ":set") => match preferences.set(rest) {
            Ok(()) => Local::Done,
            Err(wrong) => Local::Say(wrong),
        },
        [name, ..] if name.starts_with(b":") => Local::Say(format!(
            "unknown ferrite-cli internal command '{}'",
            String::from_utf8_lossy(name)
        )),
        [name, host, port] if is(name, "connect") => match connect(host, port, access) {
            Ok(()) => Local::Connect,
            Err(wrong) => Local::Say(wrong),
        },
        [name, uri] if is(name, "connect") => {
            // A URI says everything: another server is nobody to tell the password of this one.
            let mut found = access.clone();
            found.place = Place::Port("127.0.0.1".to_owned(), 6379);
            (found.user, found.password, found.database) = (None, None, 0);
            match parse_uri(uri, &mut found) {
                Ok(()) => {
                    *access = found;
                    Local::Connect
                }
                Err(wrong) => Local::Say(wrong),
            }
        }
        _ => Local::No,
    }
}

fn connect(host: &[u8], port: &[u8], access: &mut Access) -> Result<(), String> {
    let (host, port) = (String::from_utf8_lossy(host), String::from_utf8_lossy(port));
    let number = port.parse().map_err(|_| format!("'{port}' is no port"))?;
    access.place = Place::Port(host.into_owned(), number);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Options;
    use crate::words::split;

    fn line(line: &str, preferences: &mut Preferences, access: &mut Access) -> String {
        let words = split(line.as_bytes()).expect("well formed");
        match run(&words, preferences, access) {
            Local::No => "no".to_owned(),
            Local::Exit => "exit".to_owned(),
            Local::Clear => "clear".to_owned(),
            Local::Connect => format!("connect {}", access.place),
            Local::Say(text) => text,
            Local::Done => format!(
                "{} {} {:?}",
                preferences.hints, preferences.pager, preferences.format
            ),
        }
    }

    #[test]
    fn every_command_does_what_it_says() {
        let mut preferences = Preferences::new();
        let mut access = Options::new().access;
        for (typed, expected) in [
            ("get k", "no"),
            ("EXIT", "exit"),
            ("quit now", "exit"),
            ("clear", "clear"),
            ("clear x", "no"),
            (":set nohints", "false true None"),
            (":SET NoPager", "false false None"),
            (":set output json", "false false Some(Json)"),
            (":set hints", "true false Some(Json)"),
            (":set output x", "unknown form of output 'x'"),
            (":set", ":set hints\n:set nopager\n:set output json"),
            (":set x y", "unknown ferrite-cli preference 'x y'"),
            (":x", "unknown ferrite-cli internal command ':x'"),
            ("connect h 7", "connect h:7"),
            ("connect h x", "'x' is no port"),
            ("connect redis://u:p@[::1]:8/3", "connect [::1]:8"),
            ("connect x", "Invalid URI scheme"),
            ("connect", "no"),
        ] {
            assert_eq!(
                line(typed, &mut preferences, &mut access),
                expected,
                "{typed}"
            );
        }
        assert_eq!(access.database, 3);
    }
}
