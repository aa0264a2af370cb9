//! From the command line to whoever does what it says, and from there to the exit code.
//!
//! | code | means |
//! |---|---|
//! | 0 | done; an error reply counts as an answer |
//! | 1 | not done: no connection, bad flags; with `-e` also an error reply, or a line that is no command |
//! | 2 | `check-log` cannot tell: there is no log, a server uses it, or the disk refuses |
//! | 141 | standard output was closed (as if by SIGPIPE) |

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;

use crate::commands::Catalog;
use crate::dispatch::dispatch;
use crate::failure::{Failure, Result};
use crate::flags::{self, Input, Mode, Options, Request};
use crate::interactive::{self, password};
use crate::lines;
use crate::modes;
use crate::session::{Repeat, Session, Show};
use crate::words;

/// Runs the program.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let request = match flags::read(args, |name| std::env::var_os(name)) {
        Ok(request) => request,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::FAILURE;
        }
    };
    let result = match request {
        Request::Help => print(&flags::help()),
        Request::ClusterHelp(text) => print(&text),
        Request::Version => print(&(flags::version() + "\n")),
        Request::Run {
            options,
            command,
            warns_of_password,
        } => {
            if warns_of_password {
                eprintln!(
                    "Warning: Using a password with '-a' or '-u' option on the command line interface may \
                     not be safe."
                );
            }
            start(*options, command)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(141),
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(failure @ Failure::Unknown(_)) => {
            eprintln!("{failure}");
            ExitCode::from(2)
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> Result {
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn start(mut options: Options, command: Vec<Vec<u8>>) -> Result {
    if options.asks_password {
        options.access.password = Some(password::ask("Please input password: ")?);
    }
    match &options.mode {
        Mode::Commands if !command.is_empty() => run_command(&options, command),
        Mode::Commands if options.is_unattended => check(&options),
        Mode::Commands if io::stdin().is_terminal() && io::stdout().is_terminal() => {
            interactive::run(&options)
        }
        Mode::Commands => {
            let mut session = Session::new(options.access.clone(), false, options.is_verbose);
            lines::run(&mut session, &options)
        }
        _ => modes::run(&options, &command),
    }
}

/// Asks the server for a sign of life.
fn check(options: &Options) -> Result {
    let mut options = options.clone();
    options.ends_at_errors = true;
    run_command(&options, vec![b"PING".to_vec()])
}

/// Runs the command of the command line.
fn run_command(options: &Options, mut command: Vec<Vec<u8>>) -> Result {
    if options.has_quoted_arguments {
        for word in &mut command {
            let Some(unquoted) = words::unquote(word) else {
                // To standard output, where redis-cli says it too.
                writeln!(io::stdout(), "Invalid quoted string")?;
                return Err(Failure::Told);
            };
            *word = unquoted;
        }
    }
    match &options.input {
        Input::Commands => {}
        Input::LastArgument => command.push(read_input()?),
        Input::Tag(tag) => {
            let place = command.iter_mut().find(|word| *word == tag);
            *place.ok_or_else(|| Failure::other("Using -X option but stdin tag not match."))? =
                read_input()?;
        }
    }
    let is_terminal = io::stdout().is_terminal();
    let style = options.style(is_terminal);
    let mut session = Session::new(options.access.clone(), false, options.is_verbose);
    let mut show = Show {
        out: &mut io::stdout().lock(),
        style: &style,
        pushes: options.shows_pushes.unwrap_or(is_terminal),
        ends_at_errors: options.ends_at_errors,
        has_colors: options.has_colors && is_terminal,
        seen: None,
    };
    let repeat = Repeat {
        count: options.repeat.unwrap_or(1),
        interval: options.interval,
    };
    dispatch(
        &mut session,
        &mut Catalog::builtin(),
        &command,
        repeat,
        &mut show,
    )
}

fn read_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Other(format!("Reading from standard input: {error}")))?;
    Ok(bytes)
}
