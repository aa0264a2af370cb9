//! INFO: figures about the server, one section after the other.
//!
//! ```text
//! # Server\r\n
//! redis_version:7.4.0\r\n
//! ...
//! \r\n
//! # Clients\r\n
//! ```
//!
//! A section is a row of [`SECTIONS`] and a function of `info_sections` that writes its fields; each goes
//! through what it counts once. This module chooses the sections and their form. /metrics and the dashboard
//! read the fields that INFO has from these sections, too ([`numbers`]).

use std::collections::HashMap;
use std::fmt::{Display, Write};

use super::overview::Overview;
use super::{Args, Context, Handled, Next, info_sections};
use super::{info_clients, info_offload};

/// One section.
pub(super) struct Section {
    /// Its heading; in any case, the argument that asks for it.
    title: &'static str,
    /// Whether INFO shows it when no section is asked for.
    by_default: bool,
    write: fn(&mut Report, &Overview<'_>),
}

impl Section {
    const fn new(title: &'static str, write: fn(&mut Report, &Overview<'_>)) -> Section {
        Section {
            title,
            by_default: true,
            write,
        }
    }

    /// The same, shown only when it is asked for.
    const fn on_demand(self) -> Section {
        Section {
            by_default: false,
            ..self
        }
    }
}

/// All sections, in the order in which they are shown.
const SECTIONS: &[Section] = &[
    Section::new("Server", info_sections::server),
    Section::new("Clients", info_clients::clients),
    Section::new("Memory", info_sections::memory),
    Section::new("Persistence", info_sections::persistence),
    Section::new("Threads", info_clients::threads),
    Section::new("Stats", info_sections::stats),
    Section::new("Replication", info_sections::replication),
    Section::new("CPU", info_sections::cpu),
    Section::new("Modules", info_sections::modules),
    Section::new("Commandstats", info_sections::command_stats).on_demand(),
    Section::new("Errorstats", info_sections::error_stats),
    Section::new("Latencystats", info_sections::latency_stats).on_demand(),
    Section::new("Cluster", info_sections::cluster),
    Section::new("Keyspace", info_sections::keyspace),
    Section::new("Ferrite", info_sections::ferrite),
    Section::new("Offload", info_offload::offload),
];

/// The text of a reply while it is written.
pub(super) struct Report {
    text: String,
}

impl Report {
    fn new() -> Report {
        Report {
            text: String::with_capacity(8192),
        }
    }

    /// Writes a field.
    pub(super) fn field(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("{name}:{value}"));
    }

    /// Writes several fields that are zero here and always will be, because what they count does not exist.
    pub(super) fn zeroes(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.field(name, 0));
    }

    /// Writes a number of bytes twice: in digits, and as people read it.
    pub(super) fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.line(format_args!("{name}_human:{}", human_bytes(bytes)));
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: impl Display) {
        write!(self.text, "{line}\r\n").expect("a String takes everything");
    }
}

pub(super) fn info(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut report = Report::new();
    let view = Overview::of(context.server, context.store.turn, context.store.now);
    for section in SECTIONS
        .iter()
        .filter(|section| is_asked_for(section, args))
    {
        if !report.text.is_empty() {
            report.line("");
        }
        report.line(format_args!("# {}", section.title));
        (section.write)(&mut report, &view);
    }
    context.reply.verbatim("txt", report.text.as_bytes());
    Ok(Next::Done)
}

/// The fields of INFO's default sections whose values are numbers. A field of two sections has the value of
/// the first.
pub(crate) fn numbers(view: &Overview<'_>) -> HashMap<String, f64> {
    let mut report = Report::new();
    for section in SECTIONS.iter().filter(|section| section.by_default) {
        (section.write)(&mut report, view);
    }
    let mut numbers = HashMap::new();
    for (name, value) in report.text.lines().filter_map(|line| line.split_once(':')) {
        if let Ok(value) = value.parse() {
            numbers.entry(name.to_owned()).or_insert(value);
        }
    }
    numbers
}

/// Whether the arguments of INFO name a section: itself, or a word for several.
fn is_asked_for(section: &Section, args: &Args<'_>) -> bool {
    if args.len() == 1 {
        return section.by_default;
    }
    (1..args.len()).any(|at| {
        args.is(at, section.title)
            || args.is(at, "all")
            || args.is(at, "everything")
            || (section.by_default && args.is(at, "default"))
    })
}

/// A number of bytes in the largest unit of 1024 that it has at least one of: `1.50M`.
pub(super) fn human_bytes(bytes: u64) -> String {
    const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];
    let unit = bytes.checked_ilog2().map_or(0, |log| log as usize / 10);
    match unit.checked_sub(1) {
        None => format!("{bytes}B"),
        Some(unit) => {
            let scale = (1u64 << (10 * (unit + 1))) as f64;
            format!("{:.2}{}", bytes as f64 / scale, UNITS[unit])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_a_unit_that_fits() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1_040_216, "1015.84K"),
            (1 << 20, "1.00M"),
            (25_276_502_016, "23.54G"),
            (1 << 50, "1.00P"),
            (u64::MAX, "16.00E"),
        ] {
            assert_eq!(human_bytes(bytes), text);
        }
    }

    #[test]
    fn titles_are_unique_words() {
        for (at, section) in SECTIONS.iter().enumerate() {
            assert!(section.title.bytes().all(|byte| byte.is_ascii_alphabetic()));
            let same = |other: &Section| other.title.eq_ignore_ascii_case(section.title);
            assert!(!SECTIONS[..at].iter().any(same), "{}", section.title);
        }
    }
}
