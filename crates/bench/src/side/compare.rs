//! A comparison from the command line to the reports.

use super::settings::settings;
use super::steps::Steps;
use super::{measure, memory, page, table, write};
use crate::machine::Machine;
use crate::options::Options;
use crate::report::output::Output;

/// Compares, prints the tables and writes what is to be written.
///
/// # Errors
/// A server cannot be started, or a report cannot be written.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    let settings = settings(options)?;
    // Connections of the largest cell on both ends: the servers inherit the limit.
    let _ = sys::process::raise_open_files(8_192);
    let machine = Machine::this();
    let mut output = Output::open(options.out_file.as_deref())?;
    output.line(&machine.text())?;
    output.line(&settings.text())?;
    let mut steps = Steps::new(&settings, &memory::writings(&settings))?;
    let measured = measure::rounds(&settings, &mut steps)?;
    let tables = table::all(&settings, &measured);
    if !tables.is_empty() {
        output.text(&format!("\n{}", table::LEGEND))?;
    }
    for table in &tables {
        output.text(&format!("\n{}\n", table.text()))?;
    }
    let memory = memory::weigh(&settings, &mut steps)?;
    if !memory.is_empty() {
        output.text(&format!("\n{}\n", memory::text(&memory)))?;
    }
    let report = write::Report {
        settings: &settings,
        machine: &machine,
        versions: &measured.versions,
        tables: &tables,
        memory: &memory,
    };
    if let Some(path) = &options.json {
        report.write_json(path)?;
    }
    if let Some(dir) = &options.docs {
        report.write_docs(dir)?;
    }
    if let Some(path) = &options.html {
        let page = page::page(&report, &measured.problems);
        std::fs::write(path, page)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    for problem in &measured.problems {
        output.line(&format!("PROBLEM: {problem}"))?;
    }
    Ok(measured.problems.is_empty())
}
