//! Where replies go, and how often a command runs.

use std::io::Write;
use std::time::Duration;

use resp::Value;

use crate::failure::{Failure, Result};
use crate::format::Style;

/// Where replies go, and in what form.
pub(crate) struct Show<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) style: &'a Style,
    /// Messages that nobody asked for are shown.
    pub(crate) pushes: bool,
    /// An error reply is a failure instead of text.
    pub(crate) ends_at_errors: bool,
    pub(crate) has_colors: bool,
    /// Told every reply.
    pub(crate) seen: Option<&'a mut dyn FnMut(&Value)>,
}

impl Show<'_> {
    pub(super) fn reply(&mut self, value: &Value, is_text: bool) -> Result {
        if self.ends_at_errors
            && let Value::Error(text) = value
        {
            return Err(Failure::other(String::from_utf8_lossy(text)));
        }
        if let Some(seen) = &mut self.seen {
            seen(value);
        }
        let mut text = Vec::new();
        if is_text {
            self.style.append_text(&mut text, value);
        } else {
            self.style.append(&mut text, value);
        }
        self.out.write_all(&text)?;
        // Whoever reads this from a pipe wants it when it happens.
        Ok(self.out.flush()?)
    }

    pub(super) fn push(&mut self, value: &Value) -> Result {
        if self.pushes {
            let mut text = Vec::new();
            self.style.append_push(&mut text, value);
            self.out.write_all(&text)?;
        }
        Ok(())
    }
}

/// How often, and how quickly one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    /// For ever if negative.
    pub(crate) count: i64,
    pub(crate) interval: Duration,
}
