//! Medians and ratios: a table per cell.

use super::cells::{Cell, Place};
use super::measure::{CellSample, Entrant, Measured};
use super::settings::Settings;
use crate::report::numbers;
use std::fmt::Write as _;

/// One cell of all servers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) cell: Cell,
    pub(crate) rows: Vec<TableRow>,
}

/// A server's medians in a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) median: CellSample,
    /// The processor time per operation over that of the first server.
    pub(crate) ratio: f64,
    /// Operations per second over those of the first server.
    pub(crate) rate_ratio: f64,
    /// The processor time above the floor over what the first server has above it; `None` for the floor,
    /// or without one.
    pub(crate) own_share: Option<f64>,
    pub(crate) is_floor: bool,
}

/// The table of every cell that anything was measured of.
pub(crate) fn all(settings: &Settings, measured: &Measured) -> Vec<Table> {
    let tables = settings
        .cells
        .iter()
        .map(|cell| table(settings, measured, cell));
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn table(settings: &Settings, measured: &Measured, cell: &Cell) -> Table {
    let of_cell = measured
        .samples
        .iter()
        .filter(|((name, _), _)| *name == cell.name);
    let medians: Vec<(&Entrant, CellSample)> = of_cell
        .map(|((_, entrant), samples)| (entrant, median(samples)))
        .collect();
    let first_rate = medians.first().map_or(0.0, |(_, sample)| sample.rate);
    let first = medians.first().map_or(0.0, |(_, sample)| sample.cpu_us);
    let is_floor = |entrant: &Entrant| settings.recipes[entrant.index].is_floor();
    let floor = medians.iter().find(|(entrant, _)| is_floor(entrant));
    let floor = floor.map(|(_, sample)| sample.cpu_us);
    let row = |(entrant, median): &(&Entrant, CellSample)| TableRow {
        name: name(entrant, cell),
        median: *median,
        ratio: median.cpu_us / first,
        rate_ratio: median.rate / first_rate,
        own_share: floor
            .filter(|_| !is_floor(entrant))
            .map(|floor| (median.cpu_us - floor) / (first - floor)),
        is_floor: is_floor(entrant),
    };
    Table {
        cell: cell.clone(),
        rows: medians.iter().map(row).collect(),
    }
}

fn name(entrant: &Entrant, cell: &Cell) -> String {
    match (cell.place, entrant.threads) {
        (Place::Shared, 2) => format!("{}, 2 workers", entrant.name),
        _ => entrant.name.clone(),
    }
}

/// The median of each figure by itself.
fn median(samples: &[CellSample]) -> CellSample {
    let of = |figure: fn(&CellSample) -> f64| numbers::median(samples.iter().map(figure));
    CellSample {
        rate: of(|sample| sample.rate),
        p50_ms: of(|sample| sample.p50_ms),
        p99_ms: of(|sample| sample.p99_ms),
        cpu_us: of(|sample| sample.cpu_us),
        rss_bytes: of(|sample| sample.rss_bytes as f64) as u64,
        load_busy: of(|sample| sample.load_busy),
    }
}

/// The names of the columns.
pub(crate) const COLUMNS: [&str; 9] = [
    "server",
    "ops/s",
    "p50 ms",
    "p99 ms",
    "CPU us/op",
    "ratio",
    "own",
    "RSS MiB",
    "load busy",
];

/// What the columns are that do not say so themselves.
pub(crate) const LEGEND: &str = "\
CPU us/op: microseconds of the server's processor time for one operation
ratio:     its CPU us/op, divided by that of the first server; 0.50 is half of it
own:       the same after the floor's CPU us/op is taken from both. The floor is a server that only
           receives and sends, so this is what the server's own work costs
load busy: near 100 % the load generator is the limit of ops/s, not the server
";

impl TableRow {
    /// The row's figures as texts, in the order of [`COLUMNS`].
    pub(crate) fn cells(&self) -> [String; 9] {
        let median = &self.median;
        let own = self
            .own_share
            .map_or("-".to_owned(), |own| format!("{own:.2}"));
        [
            self.name.clone(),
            format!("{:.0}", median.rate),
            format!("{:.3}", median.p50_ms),
            format!("{:.3}", median.p99_ms),
            format!("{:.3}", median.cpu_us),
            format!("{:.2}", self.ratio),
            own,
            format!("{}", median.rss_bytes >> 20),
            format!("{:.0} %", 100.0 * median.load_busy),
        ]
    }
}

impl Table {
    /// The table for people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}  ({})\n", self.cell.title, self.cell.options);
        let mut line = |cells: &[String]| {
            let mut columns = cells.iter();
            let first = columns.next().map_or("", String::as_str);
            let _ = write!(text, "{first:<20}");
            for cell in columns {
                let _ = write!(text, " {cell:>10}");
            }
            text.push('\n');
        };
        line(&COLUMNS.map(str::to_owned));
        for row in &self.rows {
            line(&row.cells());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::Recipe;
    use super::*;
    use std::time::Duration;

    fn settings(cells: &str) -> Settings {
        let recipe = |text| Recipe::parse(text).expect("it is one");
        Settings {
            recipes: vec![
                recipe("a=x"),
                recipe("floor=x {reply}"),
                recipe("b=x {threads}"),
            ],
            cells: super::super::cells::select(Some(cells)).expect("there are such"),
            rounds: 3,
            server_cpus: vec![0],
            load_cpus: vec![1],
            cell_time: Duration::from_secs(1),
            requests: None,
            has_range: false,
            has_progress: false,
            warmup: Duration::ZERO,
            is_quick: false,
            with_log: false,
            memory_keys: 0,
        }
    }

    fn measured(cell: &'static str, figures: &[(usize, &str, usize, &[f64])]) -> Measured {
        let mut measured = Measured::default();
        for (index, name, threads, cpus) in figures {
            let entrant = Entrant {
                index: *index,
                name: (*name).to_owned(),
                threads: *threads,
            };
            let sample = |&cpu_us: &f64| CellSample {
                rate: 1_000.0 * cpu_us,
                p50_ms: 0.1,
                p99_ms: 0.2,
                cpu_us,
                rss_bytes: 3 << 20,
                load_busy: 0.5,
            };
            let samples = cpus.iter().map(sample).collect();
            measured.samples.insert((cell.to_owned(), entrant), samples);
        }
        measured
    }

    #[test]
    fn medians_ratios_and_shares() {
        let settings = settings("set-p1,get-p1");
        let figures: [(usize, &str, usize, &[f64]); 3] = [
            (0, "a", 1, &[8.0, 100.0, 7.0]),
            (1, "floor", 1, &[6.0, 6.0]),
            (2, "b", 1, &[6.0, 7.0]),
        ];
        let tables = all(&settings, &measured("set-p1", &figures));
        assert_eq!(tables.len(), 1, "a cell without figures has no table");
        let rows = &tables[0].rows;
        let medians: Vec<_> = rows.iter().map(|row| row.median.cpu_us).collect();
        assert_eq!(medians, [8.0, 6.0, 6.5]);
        assert_eq!(rows[2].ratio, 6.5 / 8.0);
        assert_eq!(rows[2].own_share, Some(0.25));
        assert_eq!((rows[0].own_share, rows[1].own_share), (Some(1.0), None));
        let text = tables[0].text();
        assert!(text.contains("SET, P1  (-t set -d 16 -r 1m)"), "{text}");
        let last: Vec<_> = text
            .lines()
            .last()
            .expect("rows")
            .split_whitespace()
            .collect();
        assert_eq!(
            last,
            [
                "b", "6500", "0.100", "0.200", "6.500", "0.81", "0.25", "3", "50", "%"
            ]
        );
    }

    #[test]
    fn workers_are_told_apart_where_they_differ() {
        let settings = settings("two-zipf");
        let figures: [(usize, &str, usize, &[f64]); 3] = [
            (0, "a", 1, &[2.0]),
            (2, "b", 1, &[1.0]),
            (2, "b", 2, &[1.5]),
        ];
        let tables = all(&settings, &measured("two-zipf", &figures));
        let names: Vec<_> = tables[0].rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "b, 2 workers"]);
        assert_eq!(tables[0].rows[2].own_share, None, "there is no floor");
    }
}
