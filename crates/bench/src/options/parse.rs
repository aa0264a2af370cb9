//! From words to options.

use super::fit;
use super::table::{FLAGS, Flag};
use super::typed::{Mode, Options, Typed};
use lexopt::Arg;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Reads a command line, the program's name not included.
///
/// # Errors
/// An option is unknown or what is behind it makes no sense; the text says so.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options::new();
    let mut parser = lexopt::Parser::from_args(words);
    loop {
        let flag = match parser.next().map_err(|error| error.to_string())? {
            None => break,
            Some(Arg::Short(letter)) => FLAGS
                .iter()
                .find(|flag| flag.short == Some(letter))
                .ok_or_else(|| format!("there is no option -{letter}; --help lists them all"))?,
            Some(Arg::Long(name)) => long(name)?,
            Some(Arg::Value(word)) if options.mode != Mode::Load => {
                options.words.push(word.into_vec());
                continue;
            }
            Some(Arg::Value(first)) => {
                if let Some(mode) = Mode::of(&first) {
                    options.mode = mode;
                    continue;
                }
                // Everything behind the first word belongs to the command.
                let rest = parser.raw_args().map_err(|error| error.to_string())?;
                let words = std::iter::once(first).chain(rest);
                options.words = words.map(OsString::into_vec).collect();
                break;
            }
        };
        apply(&mut options, flag, &mut parser)?;
    }
    fit::check(&options)?;
    Ok(options)
}

fn apply(options: &mut Options, flag: &Flag, parser: &mut lexopt::Parser) -> Result<(), String> {
    let mut value = String::new();
    if !flag.value.is_empty() {
        let given = parser.value().map_err(|error| error.to_string())?;
        value = given
            .into_string()
            .map_err(|_| format!("the value of {} is not UTF-8", flag.shown()))?;
    }
    (flag.set)(options, &value).map_err(|reason| format!("{}: {reason}", flag.shown()))?;
    options.typed.push(Typed {
        name: flag.names[0],
        section: flag.section,
        value,
        has_value: !flag.value.is_empty(),
    });
    Ok(())
}

fn long(name: &str) -> Result<&'static Flag, String> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.names.contains(&name)) {
        return Ok(flag);
    }
    let names = FLAGS.iter().flat_map(|flag| flag.names);
    let nearest = names.max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    match nearest {
        Some(near) if strsim::jaro(near, name) > 0.8 => Err(format!(
            "there is no option --{name}; did you mean --{near}?"
        )),
        _ => Err(format!(
            "there is no option --{name}; --help lists them all"
        )),
    }
}

#[cfg(test)]
mod tests;
