//! `--scan`: the names of all keys, one a line.

use std::io::{self, BufWriter, IsTerminal, Write};

use resp::Value;

use super::walk::Walk;
use crate::failure::Result;
use crate::flags::Options;
use crate::format::{Format, Style};
use crate::session::Session;

pub(super) fn run(session: Session, options: &Options) -> Result {
    let stdout = io::stdout().lock();
    let style = match options.style(stdout.is_terminal()) {
        // Whatever stands between and behind replies: these are lines.
        style if matches!(style.format, Format::Raw | Format::Csv) => Style::of(Format::Raw),
        style => style,
    };
    let mut out = BufWriter::new(stdout);
    let mut walk = Walk::begin(session, options)?.pausing_always();
    let mut text = Vec::new();
    walk.each(|_, keys, _| {
        for key in keys {
            text.clear();
            style.append(&mut text, &Value::Bulk(key));
            out.write_all(&text)?;
        }
        Ok(out.flush()?)
    })
}
