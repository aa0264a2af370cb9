//! What the line editor asks while a person types, and who answers.

use std::borrow::Cow;

use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::complete::complete;
use super::highlight::highlight;
use super::hint::{hint, shortened};
use super::keys::SeenKeys;
use super::line::is_open;
use crate::commands::Catalog;

/// What is known while a line is typed.
pub(super) struct LineHelper {
    pub(super) catalog: Catalog,
    pub(super) keys: SeenKeys,
    pub(super) shows_hints: bool,
    pub(super) has_colors: bool,
    /// Of the terminal, and of the prompt at its left.
    pub(super) columns: usize,
    pub(super) prompt_columns: usize,
}

impl Helper for LineHelper {}

impl Completer for LineHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let completion = complete(line, pos, &self.catalog, &self.keys);
        Ok((completion.start, completion.candidates))
    }
}

/// Text that cannot be taken over into the line: it says what to type, not how it will be.
pub(super) struct Syntax(String);

impl Hint for Syntax {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for LineHelper {
    type Hint = Syntax;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Syntax> {
        if !self.shows_hints || pos < line.len() {
            return None;
        }
        // Nearly right for letters that are wider or narrower than one column.
        let used = (self.prompt_columns + line.chars().count()) % self.columns.max(1);
        let left = self.columns.saturating_sub(used + 1);
        let hint = shortened(hint(line, &self.catalog)?, left);
        (!hint.is_empty()).then_some(Syntax(hint))
    }
}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(highlight(line, &self.catalog, self.has_colors))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.has_colors {
            Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
        } else {
            Cow::Borrowed(hint)
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        // Any character may change what the words before it are.
        true
    }
}

impl Validator for LineHelper {
    /// A line goes on while a quote is open.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_open(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}
