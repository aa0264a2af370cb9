//! Asking for a password: what is typed shows as asterisks, and is kept nowhere.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, Config, Editor, Helper};

use crate::failure::{Failure, Result};

/// Asks at the terminal; from a pipe, the first line is the password.
pub(crate) fn ask(prompt: &str) -> Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        return ask_person(prompt);
    }
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    read.map_err(|error| Failure::Other(format!("Reading from standard input: {error}")))?;
    while line.ends_with(b"\n") || line.ends_with(b"\r") {
        line.pop();
    }
    Ok(line)
}

fn ask_person(prompt: &str) -> Result<Vec<u8>> {
    // The mask is a matter of highlighting, which must not depend on whether colors are liked.
    let config = Config::builder().color_mode(ColorMode::Forced).build();
    let editor = Editor::with_history(config, MemHistory::new());
    let mut editor = editor.map_err(|error| Failure::Other(error.to_string()))?;
    editor.set_helper(Some(Mask));
    match editor.readline(prompt) {
        Ok(line) => Ok(line.into_bytes()),
        Err(ReadlineError::Eof | ReadlineError::Interrupted) => Err(Failure::other("No password")),
        Err(error) => Err(Failure::Other(error.to_string())),
    }
}

/// Shows every character as an asterisk.
struct Mask;

impl Highlighter for Mask {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned("*".repeat(line.chars().count()))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

impl Helper for Mask {}
impl Validator for Mask {}
impl Hinter for Mask {
    type Hint = String;
}
impl Completer for Mask {
    type Candidate = String;
}
