//! The comparison as a document: Markdown between markers, charts beside it, and JSON.
//!
//! The Markdown goes into `benchmarks.md` of a directory, between two comments; what stands around them
//! is left alone. Charts go into `benchmarks/` beside it.

use super::memory::{Weight, states};
use super::settings::Settings;
use super::table::{COLUMNS, Table, TableRow};
use crate::machine::{Machine, command_line};
use crate::report::chart::{Bars, bars};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// What stands around a measured part.
struct Markers {
    begin: &'static str,
    end: &'static str,
}

const MEMORY: Markers = Markers {
    begin: "<!-- measured: written by make bench, do not edit -->",
    end: "<!-- end of measured -->",
};

const LOG: Markers = Markers {
    begin: "<!-- measured with the log: written by make bench-log, do not edit -->",
    end: "<!-- end of measured with the log -->",
};

/// What is to be written.
pub(crate) struct Report<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) machine: &'a Machine,
    pub(crate) versions: &'a BTreeMap<String, String>,
    pub(crate) tables: &'a [Table],
    pub(crate) memory: &'a [Weight],
}

/// A chart: the name of its file, and its text.
pub(crate) type Chart = (&'static str, String);

#[derive(Serialize)]
struct JsonReport<'a> {
    format: u32,
    tool: String,
    command: Vec<String>,
    machine: &'a Machine,
    servers: Vec<JsonServer<'a>>,
    rounds: usize,
    cell_s: f64,
    cells: Vec<JsonRow<'a>>,
    memory: Vec<JsonWeight<'a>>,
}

#[derive(Serialize)]
struct JsonServer<'a> {
    name: &'a str,
    version: Option<&'a str>,
    command: String,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    cell: &'a str,
    options: &'a str,
    server: &'a str,
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    server_cpu_us_per_request: f64,
    ratio: f64,
    own_share: Option<f64>,
    rss_bytes: u64,
    load_busy: f64,
}

#[derive(Serialize)]
struct JsonWeight<'a> {
    server: &'a str,
    state: &'a str,
    overhead_bytes_per_key: f64,
}

impl Report<'_> {
    /// Writes `benchmarks.md` and its charts into a directory.
    ///
    /// # Errors
    /// A file cannot be written; the text names it.
    pub(crate) fn write_docs(&self, dir: &Path) -> Result<(), String> {
        let (markers, charts) = if self.settings.with_log {
            (LOG, Vec::new())
        } else {
            (MEMORY, self.charts())
        };
        let pictures = dir.join("benchmarks");
        let failed = |path: &Path, error| format!("{} cannot be written: {error}", path.display());
        std::fs::create_dir_all(&pictures).map_err(|error| failed(&pictures, error))?;
        for (name, svg) in &charts {
            let path = pictures.join(name);
            std::fs::write(&path, svg).map_err(|error| failed(&path, error))?;
        }
        let path = dir.join("benchmarks.md");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let after = markers.replace(&before, &self.markdown(&charts));
        std::fs::write(&path, after).map_err(|error| failed(&path, error))
    }

    /// Writes everything into one file for programs.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub(crate) fn write_json(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(&self.json()).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    fn json(&self) -> JsonReport<'_> {
        let servers = self.settings.recipes.iter().map(|recipe| JsonServer {
            name: &recipe.name,
            version: self.versions.get(&recipe.name).map(String::as_str),
            command: recipe.text(),
        });
        let rows = self.tables.iter().flat_map(|table| {
            table.rows.iter().map(|row| JsonRow {
                cell: &table.cell.name,
                options: &table.cell.options,
                server: &row.name,
                rate: row.median.rate,
                p50_ms: row.median.p50_ms,
                p99_ms: row.median.p99_ms,
                server_cpu_us_per_request: row.median.cpu_us,
                ratio: row.ratio,
                own_share: row.own_share,
                rss_bytes: row.median.rss_bytes,
                load_busy: row.median.load_busy,
            })
        });
        let weights = self.memory.iter().flat_map(|weight| {
            let states = states().into_iter().zip(&weight.overhead_bytes);
            states.map(|(state, bytes)| JsonWeight {
                server: &weight.name,
                state,
                overhead_bytes_per_key: *bytes,
            })
        });
        JsonReport {
            format: 1,
            tool: crate::options::version(),
            command: command_line(),
            machine: self.machine,
            servers: servers.collect(),
            rounds: self.settings.rounds,
            cell_s: self.settings.cell_time.as_secs_f64(),
            cells: rows.collect(),
            memory: weights.collect(),
        }
    }

    fn markdown(&self, charts: &[Chart]) -> String {
        let mut text = self.facts();
        for (name, _) in charts {
            let title = name.trim_end_matches(".svg");
            let _ = writeln!(text, "\n![{title}](benchmarks/{name})");
        }
        for table in self.tables {
            let _ = writeln!(text, "\n### {}\n", table.cell.title);
            let _ = writeln!(text, "`ferrite-bench {}`\n", table.cell.options);
            markdown_row(&COLUMNS, &mut text);
            markdown_row(&COLUMNS.map(|_| "---"), &mut text);
            for row in &table.rows {
                markdown_row(&row.cells(), &mut text);
            }
        }
        if !self.memory.is_empty() {
            text.push_str("\n### Memory\n\nBytes per key beyond key (16 B) and value, of ");
            let keys = crate::report::numbers::thousands(self.settings.memory_keys);
            let _ = writeln!(text, "{keys} keys.\n");
            let mut names = vec!["server"];
            names.extend(states());
            markdown_row(&names, &mut text);
            markdown_row(&vec!["---"; names.len()], &mut text);
            for weight in self.memory {
                let mut cells = vec![weight.name.clone()];
                cells.extend(
                    weight
                        .overhead_bytes
                        .iter()
                        .map(|bytes| format!("{bytes:.1}")),
                );
                markdown_row(&cells, &mut text);
            }
        }
        text
    }

    fn facts(&self) -> String {
        let mut text = String::new();
        let settings = self.settings;
        let _ = writeln!(text, "Machine: {}.", self.machine.text());
        let _ = writeln!(text, "Medians: {}.\n", settings.text());
        text.push_str("| server | version | command |\n|---|---|---|\n");
        for recipe in &settings.recipes {
            let version = self.versions.get(&recipe.name).map_or("-", String::as_str);
            let command = without_places(&recipe.words).replace('|', "\\|");
            let _ = writeln!(text, "| {} | {version} | `{command}` |", recipe.name);
        }
        let command = without_places(&command_line());
        let _ = writeln!(text, "\nMeasured by `{command}`.");
        text
    }

    /// The charts of what there are figures of.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let ratio = |row: &TableRow| Some(row.ratio);
        let rate = |row: &TableRow| Some(row.rate_ratio);
        let own = |row: &TableRow| row.own_share;
        let mut charts = vec![
            (
                "cpu.svg",
                self.chart(
                    "Server processor time per operation",
                    "ratio to the first server",
                    true,
                    ratio,
                ),
            ),
            (
                "own.svg",
                self.chart(
                    "The same without what the system charges (the floor)",
                    "ratio to the first server",
                    false,
                    own,
                ),
            ),
            (
                "rate.svg",
                self.chart(
                    "Operations per second",
                    "ratio to the first server",
                    true,
                    rate,
                ),
            ),
        ];
        charts.push(("memory.svg", self.memory_chart()));
        charts.retain(|(_, svg)| !svg.is_empty());
        charts
    }

    fn chart(
        &self,
        title: &str,
        unit: &str,
        with_floor: bool,
        figure: impl Fn(&TableRow) -> Option<f64>,
    ) -> String {
        let mut series: Vec<String> = Vec::new();
        for row in self.tables.iter().flat_map(|table| &table.rows) {
            if !series.contains(&row.name) && (with_floor || !row.is_floor) {
                series.push(row.name.clone());
            }
        }
        let values = |table: &Table| {
            let find = |name: &String| table.rows.iter().find(|row| row.name == *name);
            series
                .iter()
                .map(|name| find(name).and_then(&figure))
                .collect()
        };
        let groups = self
            .tables
            .iter()
            .map(|table| (table.cell.title.to_string(), values(table)));
        bars(&Bars {
            title: title.to_owned(),
            unit: unit.to_owned(),
            groups: groups.collect(),
            series,
        })
    }

    fn memory_chart(&self) -> String {
        let groups = states().into_iter().enumerate().map(|(index, state)| {
            let bytes = |weight: &Weight| weight.overhead_bytes.get(index).copied();
            (state.to_owned(), self.memory.iter().map(bytes).collect())
        });
        bars(&Bars {
            title: "Memory per key beyond key and value".into(),
            unit: "bytes".into(),
            series: self
                .memory
                .iter()
                .map(|weight| weight.name.clone())
                .collect(),
            groups: groups.collect(),
        })
    }
}

/// A command without the directories of its programs and files: where they were on the machine is nobody's
/// concern.
fn without_places(words: &[String]) -> String {
    let shortened = words.iter().map(|word| {
        let parts = word.split(' ').map(|part| {
            let (before, path) = match part.find('/') {
                Some(at) if at == 0 || part[..at].ends_with('=') => part.split_at(at),
                _ => return part.to_owned(),
            };
            let name = path.trim_end_matches('/').rsplit('/').next();
            format!("{before}{}", name.unwrap_or_default())
        });
        parts.collect::<Vec<_>>().join(" ")
    });
    let words: Vec<String> = shortened.collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

fn markdown_row(cells: &[impl AsRef<str>], text: &mut String) {
    let cells: Vec<_> = cells.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

impl Markers {
    /// Puts the measured part between the markers, which are added at the end where there are none.
    fn replace(&self, before: &str, measured: &str) -> String {
        let Markers { begin, end } = self;
        let block = format!("{begin}\n\n{}\n\n{end}", measured.trim());
        let found = before.split_once(begin).and_then(|(head, rest)| {
            let (_, tail) = rest.split_once(end)?;
            Some(format!("{head}{block}{tail}"))
        });
        found.unwrap_or_else(|| {
            let head = match before.trim_end() {
                "" => "# Benchmarks",
                head => head,
            };
            format!("{head}\n\n{block}\n")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_without_places() {
        let words = [
            "/home/me/target/ferrite-bench",
            "--docs",
            "/tmp/x/docs/",
            "p=/opt/pogo -p {port} --socket {dir}/s",
            "1/2",
        ];
        assert_eq!(
            without_places(&words.map(str::to_owned)),
            "ferrite-bench --docs docs 'p=pogo -p {port} --socket {dir}/s' 1/2"
        );
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        for markers in [MEMORY, LOG] {
            let Markers { begin, end } = markers;
            let first = markers.replace("", "one");
            assert_eq!(first, format!("# Benchmarks\n\n{begin}\n\none\n\n{end}\n"));
            let edited = first.replace("# Benchmarks", "# Mine") + "\nBehind.\n";
            let second = markers.replace(&edited, "two\n");
            assert_eq!(
                second,
                format!("# Mine\n\n{begin}\n\ntwo\n\n{end}\n\nBehind.\n")
            );
            let plain = markers.replace("# Mine\n\nText.\n", "x");
            assert_eq!(plain, format!("# Mine\n\nText.\n\n{begin}\n\nx\n\n{end}\n"));
        }
        let both = LOG.replace(&MEMORY.replace("", "one"), "two");
        assert_eq!(MEMORY.replace(&both, "one"), both);
        assert_eq!(LOG.replace(&both, "two"), both);
    }
}
