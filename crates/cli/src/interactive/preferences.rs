//! What a person likes: set by `:set`, at the prompt or in `~/.ferriteclirc`.

use super::history::home_file;
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

    /// Sets what the words behind `:set` say.
    pub(super) fn set(&mut self, words: &[Vec<u8>]) -> Result<(), String> {
        let words: Vec<String> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["hints"] => self.hints = true,
            ["nohints"] => self.hints = false,
            ["pager"] => self.pager = true,
            ["nopager"] => self.pager = false,
            ["output", name] => {
                let known = FORMATS.iter().find(|(known, _)| *known == name);
                let (_, format) =
                    known.ok_or_else(|| format!("unknown form of output '{name}'"))?;
                self.format = Some(*format);
            }
            [] => return Err("no preference behind :set".to_owned()),
            _ => {
                return Err(format!(
                    "unknown ferrite-cli preference '{}'",
                    words.join(" ")
                ));
            }
        }
        Ok(())
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
                [name, rest @ ..] if is(name, ":set") => self.set(rest),
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
