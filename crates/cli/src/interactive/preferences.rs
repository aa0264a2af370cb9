//! What a person likes: set by `:set`, at the prompt or in `~/.ferriteclirc`.

use super::history::home_file;
use super::local::set;
use crate::format::Format;
use crate::request::is;
use crate::words;

/// The forms of replies by name.
pub(super) const FORMATS: &[(&str, Format)] = &[
    ("standard", Format::Standard),
    ("raw", Format::Raw),
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("quoted-json", Format::QuotedJson),
];

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preferences {
    pub(super) hints: bool,
    pub(super) pager: bool,
    /// The form of replies, if it is not that of the flags.
    pub(super) format: Option<Format>,
}

impl Preferences {
    /// What holds without any file.
    pub(super) fn new() -> Preferences {
        Preferences {
            hints: true,
            pager: true,
            format: None,
        }
    }

    /// The lines that would set these.
    pub(super) fn lines(&self) -> String {
        let no = |is_on: bool| if is_on { "" } else { "no" };
        let mut text = format!(":set {}hints\n:set {}pager", no(self.hints), no(self.pager));
        let format = self.format.and_then(|format| {
            let mut names = FORMATS.iter();
            names.find(|(_, named)| *named == format)
        });
        if let Some((name, _)) = format {
            text.push_str(&format!("\n:set output {name}"));
        }
        text
    }

    /// Takes the lines of the person's file, if there is one, and tells which of them mean nothing.
    pub(super) fn load(&mut self) {
        let path = home_file(&["FERRITECLI_RCFILE", "REDISCLI_RCFILE"], ".ferriteclirc");
        let Some(content) = path.and_then(|path| std::fs::read(path).ok()) else {
            return;
        };
        for line in content.split(|&byte| byte == b'\n') {
            let Some(words) = words::split(line) else {
                println!(".ferriteclirc: Invalid argument(s)");
                continue;
            };
            let result = match &words[..] {
                [] => Ok(()),
                [name, ..] if name.starts_with(b"#") => Ok(()),
                [name, rest @ ..] if is(name, ":set") => set(self, rest),
                [name, ..] => Err(format!(
                    "unknown ferrite-cli internal command '{}'",
                    String::from_utf8_lossy(name)
                )),
            };
            if let Err(wrong) = result {
                println!(".ferriteclirc: {wrong}");
            }
        }
    }
}
