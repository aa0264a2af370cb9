//! Where replies go at a terminal: to it, to a pager if they are longer than it, or to another program.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use crate::failure::{Failure, Result, reason};

/// Prints a text, page by page if it has more lines than the terminal and a pager is liked.
pub(super) fn print(text: &[u8], rows: Option<u16>, pages: bool) -> Result {
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    // The prompt wants a line, too.
    let is_long = rows.is_some_and(|rows| lines >= usize::from(rows));
    if is_long && pages && page(text) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}

/// Shows a text in a pager; whether there is one.
fn page(text: &[u8]) -> bool {
    let variables = ["FERRITECLI_PAGER", "PAGER"];
    let named = variables.iter().find_map(|name| std::env::var(name).ok());
    let pager = named.filter(|name| !name.trim().is_empty());
    let mut command = shell(pager.as_deref().unwrap_or("less"));
    if std::env::var_os("LESS").is_none() {
        // Colors are colors, what was read stays on the screen.
        command.env("LESS", "RX");
    }
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // Whoever has seen enough ends it early.
        let _ = input.write_all(text);
    }
    // A shell that finds no such program says so by this code.
    const NOT_FOUND: i32 = 127;
    child
        .wait()
        .is_ok_and(|status| status.code() != Some(NOT_FOUND))
}

/// A program that takes replies, in place of the terminal.
pub(super) struct Program {
    child: Child,
}

impl Program {
    /// Starts what a shell makes of `line`.
    ///
    /// # Errors
    /// There is no shell.
    pub(super) fn start(line: &str) -> Result<Program> {
        let child = shell(line).spawn();
        let child = child.map_err(|error| Failure::Other(format!("sh: {}", reason(&error))))?;
        Ok(Program { child })
    }

    /// Says that this was all, and waits for the program.
    pub(super) fn finish(mut self) {
        drop(self.child.stdin.take());
        // How it ended is between it and the person, who sees what it says.
        let _ = self.child.wait();
    }
}

impl Write for Program {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.child.stdin {
            Some(input) => input.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.child.stdin {
            Some(input) => input.flush(),
            None => Ok(()),
        }
    }
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).stdin(Stdio::piped());
    command
}
