//! One value: from its text to its stored form, and back.
//!
//! Error messages are those of Redis: clients and test suites compare them. The settings and the storage of
//! their values are elsewhere.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::points::SavePoint;
use super::settings::{ClientClass, OutputLimit};
use super::table::{Kind, Row, Setting, Whole};
use super::{addresses, classes as class};
use crate::limits::ADDRESSES_LEAST;

/// A text that was found to be right for its setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Flags (0 and 1), choices (their index), numbers, permissions and sizes.
    Number(i64),
    Text(Arc<str>),
    /// By [`ClientClass`]; `None` where the text does not name the class.
    Limits([Option<OutputLimit>; ClientClass::ALL.len()]),
}

/// Reads the value of a setting. The words of a setting that takes several are separated by white space.
///
/// # Errors
/// Why the text is not right for this setting.
pub(super) fn parse(row: &Row, text: &str) -> Result<Value, String> {
    match row.kind {
        Kind::Flag => parse_flag(text).map(Value::Number),
        Kind::Integer { min, max } => {
            let number = resp::parse_i64(text.as_bytes())
                .ok_or("argument couldn't be parsed into an integer")?;
            within(number, min, max).map(Value::Number)
        }
        Kind::PowerOfTwo { max } => parse_power_of_two(text, max).map(Value::Number),
        Kind::Octal { max } => parse_octal(text, max).map(Value::Number),
        Kind::Memory { min, max } => {
            let bytes = parse_memory(text).ok_or("argument must be a memory value")?;
            let number = i64::try_from(bytes).map_err(|_| out_of_range(min, max))?;
            within(number, min, max).map(Value::Number)
        }
        Kind::MemoryOrShare(whole) => parse_share(text, whole).map(Value::Number),
        Kind::Choice(names) => parse_choice(text, names).map(Value::Number),
        Kind::Secret | Kind::Path => Ok(Value::Text(text.into())),
        Kind::Directory => parse_directory(text).map(Value::Text),
        Kind::Addresses { most } => parse_addresses(text, most).map(Value::Text),
        Kind::Hosts { most } => parse_hosts(text, most).map(Value::Text),
        Kind::Events => parse_events(text).map(Value::Number),
        Kind::OutputLimits => parse_limits(text).map(Value::Limits),
        Kind::FileName => parse_file_name(text).map(Value::Text),
        Kind::Word => parse_word(text).map(Value::Text),
        Kind::SavePoints => parse_save_points(text).map(Value::Text),
    }
}

/// Letters, digits and what else is in names of hosts, addresses and ids.
fn parse_word(text: &str) -> Result<Arc<str>, String> {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if text.len() <= 255 && text.bytes().all(is_right) {
        Ok(text.into())
    } else {
        Err("argument takes letters, digits, '-', '.', '_' and ':' only".into())
    }
}

fn parse_flag(text: &str) -> Result<i64, String> {
    if text.eq_ignore_ascii_case("yes") {
        Ok(1)
    } else if text.eq_ignore_ascii_case("no") {
        Ok(0)
    } else {
        Err("argument must be 'yes' or 'no'".into())
    }
}

fn within(number: i64, min: i64, max: i64) -> Result<i64, String> {
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(out_of_range(min, max))
    }
}

fn out_of_range(min: i64, max: i64) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

fn parse_power_of_two(text: &str, max: i64) -> Result<i64, String> {
    let number =
        resp::parse_i64(text.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    let is_allowed = number == 0 || (number > 0 && number.count_ones() == 1 && number <= max);
    if is_allowed {
        Ok(number)
    } else {
        Err(format!(
            "argument must be 0 or a power of two not above {max}"
        ))
    }
}

fn parse_octal(text: &str, max: i64) -> Result<i64, String> {
    match i64::from_str_radix(text, 8) {
        Ok(number) if (0..=max).contains(&number) => Ok(number),
        Ok(_) => Err(format!("argument must be between 0 and {max:o} inclusive")),
        Err(_) => Err("argument couldn't be parsed as an octal number".into()),
    }
}

fn parse_events(text: &str) -> Result<i64, String> {
    class::parse(text)
        .map(i64::from)
        .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into())
}

fn parse_choice(text: &str, names: &[&str]) -> Result<i64, String> {
    match names
        .iter()
        .position(|name| text.eq_ignore_ascii_case(name))
    {
        Some(index) => Ok(index as i64),
        None => Err(format!(
            "argument(s) must be one of the following: {}",
            names.join(", ")
        )),
    }
}

/// Units and their bytes: `k` is a thousand, `kb` is 1024.
const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("m", 1000 * 1000),
    ("mb", 1 << 20),
    ("g", 1000 * 1000 * 1000),
    ("gb", 1 << 30),
];

/// Reads a size: digits and a unit in any case. `None` if it is none, or more than 64 bits hold.
pub(crate) fn parse_memory(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, bytes) = UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// Reads a size or a percentage. Of the machine's memory a percentage is its bytes, of `maxmemory` it is
/// kept, as a negative number.
fn parse_share(text: &str, whole: Whole) -> Result<i64, String> {
    let not_a_size = match whole {
        Whole::Machine => "argument must be a memory value",
        Whole::MaxMemory => "argument must be a memory or percent value",
    };
    let Some(percent) = text.strip_suffix('%') else {
        let bytes = parse_memory(text).ok_or(not_a_size)?;
        return i64::try_from(bytes).map_err(|_| out_of_range(0, i64::MAX));
    };
    let percent = resp::parse_i64(percent.as_bytes()).ok_or(not_a_size)?;
    let percent = within(percent, 0, 100)?;
    Ok(match whole {
        Whole::Machine => share_of_machine(percent.unsigned_abs(), sys::cpu::usable_cpus()),
        Whole::MaxMemory => -percent,
    })
}

/// The default of `maxmemory` in bytes, for a server with so many workers.
pub(super) fn default_memory(workers: usize) -> Value {
    let default = Setting::MaxMemory.row().default;
    let percent = default.strip_suffix('%').and_then(|text| text.parse().ok());
    let percent = percent.expect("the default is a share of the machine");
    Value::Number(share_of_machine(percent, workers))
}

fn share_of_machine(percent: u64, workers: usize) -> i64 {
    let bytes = usable_memory(workers) / 100 * percent;
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Bytes that the process may use: the machine's, or fewer by its cgroup or by a limit on its addresses, of
/// which each worker takes some.
fn usable_memory(workers: usize) -> u64 {
    let machine = sys::process::total_memory_bytes();
    let memory = sys::process::cgroup_memory_limit().map_or(machine, |limit| limit.min(machine));
    let addresses = sys::process::address_limit().map(|limit| addresses::room(limit, workers));
    // Nothing at all would be no limit.
    addresses.map_or(memory, |room| room.max(ADDRESSES_LEAST).min(memory))
}

/// The absolute path of the directory: the process may change its working directory later.
fn parse_directory(text: &str) -> Result<Arc<str>, String> {
    let path = fs::canonicalize(Path::new(text)).map_err(|error| error.to_string())?;
    if !path.is_dir() {
        return Err("Not a directory".into());
    }
    match path.to_str() {
        Some(path) => Ok(path.into()),
        None => Err("the path of the directory must be valid UTF-8".into()),
    }
}

fn parse_addresses(text: &str, most: usize) -> Result<Arc<str>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() > most {
        return Err("Too many bind addresses specified.".into());
    }
    if words.contains(&"-") {
        return Err("a dash needs an address behind it".into());
    }
    Ok(words.join(" ").into())
}

fn parse_hosts(text: &str, most: usize) -> Result<Arc<str>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() > most {
        return Err(format!("more than {most} names"));
    }
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match words.iter().find(|word| !word.bytes().all(is_of_a_name)) {
        Some(word) => Err(format!(
            "'{word}' is not the name of a host (without scheme, port and wildcards)"
        )),
        None => Ok(words.join(" ").into()),
    }
}

fn parse_limits(text: &str) -> Result<[Option<OutputLimit>; ClientClass::ALL.len()], String> {
    let mut limits = [None; ClientClass::ALL.len()];
    let words: Vec<&str> = text.split_whitespace().collect();
    let (groups, []) = words.as_chunks::<4>() else {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    };
    for [class, hard, soft, seconds] in groups {
        let class = ClientClass::find(class)
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let limit = parse_limit(hard, soft, seconds)
            .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
        limits[class as usize] = Some(limit);
    }
    Ok(limits)
}

fn parse_limit(hard: &str, soft: &str, seconds: &str) -> Option<OutputLimit> {
    Some(OutputLimit {
        hard: parse_memory(hard)?,
        soft: parse_memory(soft)?,
        soft_seconds: u64::try_from(resp::parse_i64(seconds.as_bytes())?).ok()?,
    })
}

fn parse_file_name(text: &str) -> Result<Arc<str>, String> {
    if text.contains('/') {
        return Err("dbfilename can't be a path, just a filename".into());
    }
    Ok(text.into())
}

fn parse_save_points(text: &str) -> Result<Arc<str>, String> {
    if SavePoint::parse_all(text).is_none() {
        return Err("Invalid save parameters".into());
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    Ok(words.join(" ").into())
}

/// A number as CONFIG GET prints it.
pub(super) fn number_text(kind: Kind, number: i64) -> String {
    match kind {
        Kind::Flag => if number == 0 { "no" } else { "yes" }.into(),
        Kind::Choice(names) => names[number as usize].into(),
        Kind::Octal { .. } => format!("{number:o}"),
        Kind::Events => class::letters(number as u32),
        Kind::MemoryOrShare(Whole::MaxMemory) if number < 0 => format!("{}%", -number),
        _ => number.to_string(),
    }
}

/// A number as a file holds it: a size in the largest unit that divides it.
pub(super) fn number_file_text(kind: Kind, number: i64) -> String {
    match kind {
        Kind::Memory { .. } => size_text(number.unsigned_abs()),
        Kind::MemoryOrShare(_) if number >= 0 => size_text(number.unsigned_abs()),
        _ => number_text(kind, number),
    }
}

/// Bytes in the largest unit that divides them: `100mb`.
pub(super) fn size_text(bytes: u64) -> String {
    let units = UNITS
        .iter()
        .rev()
        .filter(|(_, unit)| unit.is_power_of_two());
    for (name, unit) in units {
        if *unit > 1 && bytes > 0 && bytes.is_multiple_of(*unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Limits as CONFIG GET prints them, in bytes; in a file they have units.
pub(super) fn limits_text(
    limits: impl Iterator<Item = (ClientClass, OutputLimit)>,
    size: impl Fn(u64) -> String,
) -> String {
    let mut text = String::new();
    for (class, limit) in limits {
        let separator = if text.is_empty() { "" } else { " " };
        let (hard, soft) = (size(limit.hard), size(limit.soft));
        let _ = write!(
            text,
            "{separator}{} {hard} {soft} {}",
            class.name(),
            limit.soft_seconds
        );
    }
    text
}

/// Values of a setting, as the end of the sentence "allowed is ...".
pub(super) fn allowed(kind: Kind) -> String {
    match kind {
        Kind::Flag => "yes or no".into(),
        Kind::Integer { min, max: i64::MAX } => format!("a number from {min}"),
        Kind::Integer { min, max } => format!("a number from {min} to {max}"),
        Kind::PowerOfTwo { max } => format!("0 or a power of two up to {max}"),
        Kind::Octal { max } => format!("an octal number from 0 to {max:o}"),
        Kind::Memory { min, max: i64::MAX } => {
            format!(
                "a size from {} such as 100mb",
                size_text(min.unsigned_abs())
            )
        }
        Kind::Memory { min, max } => format!(
            "a size from {} to {} such as 100mb",
            size_text(min.unsigned_abs()),
            size_text(max.unsigned_abs())
        ),
        Kind::MemoryOrShare(_) => "a size such as 100mb or a share such as 80%".into(),
        Kind::Choice([only]) => format!("only {only}"),
        Kind::Choice(names) => names.join(", "),
        Kind::Events => "letters of Ag$lshzxeKEtmdn".into(),
        Kind::Secret => "any text".into(),
        Kind::Path => "a path".into(),
        Kind::Directory => "the path of a directory".into(),
        Kind::Addresses { most } => format!("up to {most} addresses"),
        Kind::Hosts { most } => format!("up to {most} names"),
        Kind::OutputLimits => {
            "any number of: class (normal, replica, pubsub), hard limit, soft limit, seconds".into()
        }
        Kind::FileName => "the name of a file".into(),
        Kind::Word => "letters, digits and -._:".into(),
        Kind::SavePoints => "pairs of seconds and changes, or \"\"".into(),
    }
}

#[cfg(test)]
mod tests;
