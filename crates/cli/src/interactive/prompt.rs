//! The loop: a line, what it does, the next line.

use std::io::{self, ErrorKind, Write};

use resp::Value;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};
use sys::clock::monotonic_ns;
use sys::signal::Interrupts;

use super::helper::LineHelper;
use super::history;
use super::keys::SeenKeys;
use super::line::{Part, parts};
use super::local::{self, Local};
use super::preferences::Preferences;
use super::screen::{self, Program};
use crate::commands::Catalog;
use crate::dispatch::{dispatch, learn};
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::{Format, Style};
use crate::limits::{CONNECT_LIMIT, HISTORY_LINES, SLOW_MS};
use crate::lines::repetition;
use crate::request::{Answer, answer, is};
use crate::session::{Repeat, Session, Show};

/// Asks for commands and runs them until the person has enough.
///
/// # Errors
/// There is no terminal to speak of.
pub(crate) fn run(options: &Options) -> Result {
    let mut access = options.access.clone();
    // Nothing else ends an attempt while Ctrl-C is heard rather than obeyed.
    access.approach.timeout.get_or_insert(CONNECT_LIMIT);
    let mut session = Session::new(access, true, options.is_verbose);
    // Why there is no connection was said, and the first command tries again.
    let _ = session.connect();
    let interrupts = Interrupts::catch().map_err(|error| Failure::Other(error.to_string()))?;
    session.interrupts = Some(interrupts);
    let mut preferences = Preferences::new();
    preferences.load();
    Prompt {
        editor: editor(options)?,
        session,
        preferences,
        options,
        learned_from: None,
    }
    .ask_again_and_again()
}

fn editor(options: &Options) -> Result<Editor<LineHelper, FileHistory>> {
    let failed = |error: ReadlineError| Failure::Other(error.to_string());
    let config = Config::builder()
        .max_history_size(HISTORY_LINES)
        .map_err(failed)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .auto_add_history(false)
        // Secrets are hidden by what would otherwise be a matter of color.
        .color_mode(ColorMode::Forced)
        .build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(LineHelper {
        catalog: Catalog::builtin(),
        keys: SeenKeys::default(),
        shows_hints: true,
        has_colors: options.has_colors,
        columns: 0,
        prompt_columns: 0,
    }));
    if let Some(path) = history::path() {
        // There is none the first time.
        let _ = editor.load_history(&path);
    }
    Ok(editor)
}

struct Prompt<'a> {
    editor: Editor<LineHelper, FileHistory>,
    session: Session,
    preferences: Preferences,
    options: &'a Options,
    /// The connection whose server told what commands it has.
    learned_from: Option<u64>,
}

/// Whether there is a next line.
#[derive(PartialEq, Eq)]
enum Next {
    Line,
    End,
}

impl Prompt<'_> {
    fn ask_again_and_again(&mut self) -> Result {
        loop {
            let prompt = prompt(&self.session);
            self.prepare(&prompt);
            match self.editor.readline(&prompt) {
                Ok(line) => {
                    self.remember(&line);
                    if self.run_line(&line)? == Next::End {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => {
                    println!();
                    return Ok(());
                }
                Err(error) => return Err(Failure::Other(error.to_string())),
            }
        }
    }

    /// Brings what the editor knows up to date.
    fn prepare(&mut self, prompt: &str) {
        let columns = self.editor.dimensions().map_or(80, |(columns, _)| columns);
        let helper = self.editor.helper_mut().expect("it was given one");
        helper.shows_hints = self.preferences.hints;
        helper.columns = usize::from(columns);
        helper.prompt_columns = prompt.chars().count();
        let connection = self.session.generation();
        // A server that wants a password first tells after that; asking it each time costs little.
        let is_known = self.learned_from == connection && helper.catalog.is_complete;
        if connection.is_some() && !is_known && !self.session.in_transaction() {
            let mut catalog = Catalog::builtin();
            learn(&mut self.session, &mut catalog);
            helper.catalog = catalog;
            self.learned_from = connection;
        }
    }

    fn remember(&mut self, line: &str) {
        if line.trim().is_empty() || history::is_secret(line) {
            return;
        }
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        if let Some(path) = history::path().filter(|_| is_new) {
            // A person without a home can still type commands.
            let _ = self.editor.append_history(&path);
        }
    }

    fn run_line(&mut self, line: &str) -> Result<Next> {
        for part in parts(line) {
            if self.run_part(&part)? == Next::End {
                return Ok(Next::End);
            }
        }
        Ok(Next::Line)
    }

    fn run_part(&mut self, part: &Part<'_>) -> Result<Next> {
        let Some(words) = &part.words else {
            println!("Invalid argument(s)");
            return Ok(Next::Line);
        };
        let (count, words) = match repetition(words) {
            Ok(found) => found,
            Err(wrong) => {
                println!("{wrong}");
                return Ok(Next::Line);
            }
        };
        match local::run(words, &mut self.preferences, &mut self.session.access) {
            Local::Exit => return Ok(Next::End),
            Local::Clear => {
                let _ = self.editor.clear_screen();
            }
            Local::Connect => {
                let _ = self.session.connect();
            }
            Local::Say(text) => println!("{text}"),
            Local::Done => {}
            Local::No => self.run_command(words, count, part.program)?,
        }
        Ok(Next::Line)
    }

    /// Runs a command and tells what went wrong, if anything did.
    fn run_command(&mut self, words: &[Vec<u8>], count: i64, program: Option<&str>) -> Result {
        if let Some(interrupts) = &self.session.interrupts {
            // What was pressed before was meant for something else.
            let _ = interrupts.take();
        }
        let start_ns = monotonic_ns();
        let style = self.style(program.is_some());
        let (result, end_ns) = match program {
            Some("") => (Err(Failure::other("no program behind the bar")), start_ns),
            Some(line) => self.run_into_program(words, count, &style, line),
            None => self.run_on_screen(words, count, &style),
        };
        match result {
            Ok(()) | Err(Failure::Told) => {}
            // The program has seen enough.
            Err(Failure::Output(error))
                if program.is_some() && error.kind() == ErrorKind::BrokenPipe => {}
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(Failure::Interrupted) => {
                // The terminal has shown ^C. What the old connection waits for is nobody's interest any more.
                println!();
                let _ = self.session.connect();
                return Ok(());
            }
            Err(failure) => eprintln!("{failure}"),
        }
        let ms = (end_ns - start_ns) / 1_000_000;
        if ms >= SLOW_MS && style.format == Format::Standard && comes_at_once(words) {
            println!("({:.2}s)", ms as f64 / 1000.0);
        }
        Ok(())
    }

    fn style(&self, has_program: bool) -> Style {
        let mut style = self.options.style(!has_program);
        if let Some(format) = self.preferences.format {
            style.format = match format {
                // A program takes bytes, as a pipe does.
                Format::Standard if has_program => Format::Raw,
                format => format,
            };
        }
        style
    }

    fn run_into_program(
        &mut self,
        words: &[Vec<u8>],
        count: i64,
        style: &Style,
        line: &str,
    ) -> (Result, u64) {
        let mut program = match Program::start(line) {
            Ok(program) => program,
            Err(failure) => return (Err(failure), monotonic_ns()),
        };
        let result = self.dispatch(words, count, style, &mut program);
        let end_ns = monotonic_ns();
        program.finish();
        (result, end_ns)
    }

    /// Runs a command and shows its reply. Returns when the reply was there: what comes after that is the
    /// person's time.
    fn run_on_screen(&mut self, words: &[Vec<u8>], count: i64, style: &Style) -> (Result, u64) {
        if count != 1 || !comes_at_once(words) {
            let result = self.dispatch(words, count, style, &mut io::stdout());
            return (result, monotonic_ns());
        }
        let mut text = Vec::new();
        let result = self.dispatch(words, count, style, &mut text);
        let end_ns = monotonic_ns();
        let rows = self.editor.dimensions().map(|(_, rows)| rows);
        let shown = screen::print(&text, rows, self.preferences.pager);
        (shown.and(result), end_ns)
    }

    fn dispatch(
        &mut self,
        words: &[Vec<u8>],
        count: i64,
        style: &Style,
        out: &mut dyn Write,
    ) -> Result {
        let helper = self.editor.helper_mut().expect("it was given one");
        let LineHelper { catalog, keys, .. } = helper;
        if !is(&words[0], "help") {
            keys.note_command(words, catalog);
        }
        let mut note = |reply: &Value| keys.note_reply(words, reply);
        let mut show = Show {
            out,
            style,
            pushes: self.options.shows_pushes.unwrap_or(true),
            ends_at_errors: false,
            has_colors: self.options.has_colors,
            seen: Some(&mut note),
        };
        let repeat = Repeat {
            count,
            interval: self.options.interval,
        };
        dispatch(&mut self.session, catalog, words, repeat, &mut show)
    }
}

/// Whether there is a reply, rather than messages without end.
fn comes_at_once(words: &[Vec<u8>]) -> bool {
    matches!(answer(words), Answer::Reply | Answer::Text)
}

/// `127.0.0.1:6379[1](TX)> `
fn prompt(session: &Session) -> String {
    if !session.is_connected() {
        return "not connected> ".to_owned();
    }
    let place = match &session.access.place {
        crate::connection::Place::Socket(path) => format!("redis {}", path.display()),
        place => place.to_string(),
    };
    let database = match session.database() {
        0 => String::new(),
        number => format!("[{number}]"),
    };
    let transaction = if session.in_transaction() { "(TX)" } else { "" };
    format!("{place}{database}{transaction}> ")
}
