//! The cells of the comparison: one table. A cell is a command line of this program, so whoever doubts a
//! figure can run its cell alone.

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// What `--cells` calls it.
    pub(crate) name: &'static str,
    /// What the tables call it.
    pub(crate) title: &'static str,
    /// The load.
    pub(crate) options: &'static str,
    /// What is done first, if it is not already so; empty: the server has no keys.
    pub(crate) fill: &'static str,
    pub(crate) place: Place,
    /// What the floor answers with, where a reply is of a size that matters.
    pub(crate) reply_bytes: Option<u64>,
}

/// On which connection and processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// TCP, server and load on processors of their own.
    Tcp,
    /// A socket file, likewise.
    Unix,
    /// TCP, server and load on all processors: servers that have threads run with one, then with two.
    Shared,
}

/// The cells that say what a log costs.
pub(crate) const WITH_LOG: &str =
    "set-p1,get-p1,set-p16,get-p16,set-p128,get-p128,mset-p16,set-64k";

const MILLION: &str = "-t set --key-pattern S -P 64 -d 16 -r 1m -n 1m";
const COUNTERS: &str = "-t incr --key-pattern S -P 64 -r 1m -n 1m";
const KILOBYTES: &str = "-t set --key-pattern S -P 16 -d 1000 -r 100k -n 100k";
const LARGE: &str = "-t set --key-pattern S -P 1 -d 64kb -r 1000 -n 1000";
const NOTHING: &str = "";

const fn cell(
    name: &'static str,
    title: &'static str,
    options: &'static str,
    fill: &'static str,
) -> Cell {
    Cell {
        name,
        title,
        options,
        fill,
        place: Place::Tcp,
        reply_bytes: None,
    }
}

const fn get(
    name: &'static str,
    title: &'static str,
    options: &'static str,
    fill: &'static str,
    reply_bytes: u64,
) -> Cell {
    Cell {
        reply_bytes: Some(reply_bytes),
        ..cell(name, title, options, fill)
    }
}

/// Every cell, those with the same keys one behind the other.
pub(crate) const CELLS: &[Cell] = &[
    cell("set-p1", "SET, P1", "-t set -d 16 -r 1m", MILLION),
    get("get-p1", "GET, P1", "-t get -d 16 -r 1m", MILLION, 16),
    cell("set-p16", "SET, P16", "-t set -P 16 -d 16 -r 1m", MILLION),
    get(
        "get-p16",
        "GET, P16",
        "-t get -P 16 -d 16 -r 1m",
        MILLION,
        16,
    ),
    cell(
        "set-p128",
        "SET, P128",
        "-t set -P 128 -d 16 -r 1m",
        MILLION,
    ),
    get(
        "get-p128",
        "GET, P128",
        "-t get -P 128 -d 16 -r 1m",
        MILLION,
        16,
    ),
    cell(
        "mset-p16",
        "MSET of 10 keys, P16",
        "-t mset -P 16 -d 16 -r 1m",
        MILLION,
    ),
    cell(
        "set-c1000",
        "SET, P1, 1,000 connections",
        "-t set -c 1000 -d 16 -r 1m",
        MILLION,
    ),
    get(
        "get-c1000",
        "GET, P1, 1,000 connections",
        "-t get -c 1000 -d 16 -r 1m",
        MILLION,
        16,
    ),
    Cell {
        place: Place::Unix,
        ..cell(
            "set-unix",
            "SET, P1, unix socket",
            "-t set -d 16 -r 1m",
            MILLION,
        )
    },
    cell("incr-p16", "INCR, P16", "-t incr -P 16 -r 1m", COUNTERS),
    get(
        "get-1k",
        "GET of 1,000 B, P16",
        "-t get -P 16 -d 1000 -r 100k",
        KILOBYTES,
        1_000,
    ),
    get(
        "get-64k",
        "GET of 64 KiB, P1",
        "-t get -d 64kb -r 1000",
        LARGE,
        65_536,
    ),
    cell(
        "set-64k",
        "SET of 64 KiB, P1",
        "-t set -d 64kb -r 1000",
        LARGE,
    ),
    cell(
        "set-10m",
        "SET, P128, filling 10 M keys",
        "-t set -P 128 -d 16 -r 10m",
        NOTHING,
    ),
    shared(
        "two-uniform",
        "SET:GET 1:1, P16, uniform",
        "--ratio 1:1 -P 16 -d 16 -r 1m --threads 2",
    ),
    shared(
        "two-zipf",
        "SET:GET 1:1, P16, zipf 0.99",
        "--ratio 1:1 -P 16 -d 16 -r 1m --threads 2 --key-pattern zipf",
    ),
    shared(
        "two-hot",
        "SET:GET 1:1, P16, one hot key",
        "--ratio 1:1 -P 16 -d 16 -r 1m --threads 2 --key-pattern hot",
    ),
];

const fn shared(name: &'static str, title: &'static str, options: &'static str) -> Cell {
    Cell {
        place: Place::Shared,
        ..cell(name, title, options, MILLION)
    }
}

/// The cells of a list of names, all of them without one.
///
/// # Errors
/// There is no such cell; the text lists them.
pub(crate) fn select(names: Option<&str>) -> Result<Vec<Cell>, String> {
    let Some(names) = names else {
        return Ok(CELLS.to_vec());
    };
    let names: Vec<_> = names.split(',').map(str::trim).collect();
    for name in &names {
        if !CELLS.iter().any(|cell| cell.name == *name) {
            let known: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
            return Err(format!(
                "there is no cell '{name}'; there are {}",
                known.join(", ")
            ));
        }
    }
    let is_meant = |cell: &&Cell| names.contains(&cell.name);
    Ok(CELLS.iter().filter(is_meant).copied().collect())
}

/// A command line for `--quick`, in which ranges and counts are a hundredth: the same load on a machine
/// that is only to be tried.
pub(crate) fn quick(options: &str) -> String {
    let mut words: Vec<String> = options.split(' ').map(str::to_owned).collect();
    for index in 1..words.len() {
        if ["-r", "-n"].contains(&words[index - 1].as_str())
            && let Ok(count) = crate::options::values::count(&words[index])
        {
            words[index] = (count / 100).max(1).to_string();
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_a_command_line_of_this_program() {
        for cell in CELLS {
            for line in [
                cell.options,
                cell.fill,
                &quick(cell.options),
                &quick(cell.fill),
            ] {
                let words = line.split_whitespace().map(std::ffi::OsString::from);
                let options = crate::options::parse(words);
                let options = options.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert!(options.words.is_empty(), "{line}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_cells_with_the_same_keys_stand_together() {
        let mut names: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CELLS.len());
        let own = CELLS.iter().filter(|cell| cell.place != Place::Shared);
        let mut fills: Vec<_> = own.map(|cell| cell.fill).collect();
        fills.dedup();
        let runs = fills.len();
        fills.sort_unstable();
        fills.dedup();
        assert_eq!(fills.len(), runs, "a range is filled twice");
    }

    #[test]
    fn cells_are_chosen_by_name() {
        let chosen = select(Some("get-p16, set-p1")).expect("there are such");
        let names: Vec<_> = chosen.iter().map(|cell| cell.name).collect();
        assert_eq!(names, ["set-p1", "get-p16"]);
        assert_eq!(select(None).map(|cells| cells.len()), Ok(CELLS.len()));
        assert_eq!(select(Some(WITH_LOG)).map(|cells| cells.len()), Ok(8));
        let error = select(Some("x")).expect_err("there is none");
        assert!(error.contains("set-p128"), "{error}");
    }

    #[test]
    fn a_quick_line_is_the_same_with_fewer_keys() {
        assert_eq!(quick("-t set -c 1000 -r 1m"), "-t set -c 1000 -r 10000");
        assert_eq!(
            quick("-t set -d 1000 -r 1000 -n 50"),
            "-t set -d 1000 -r 10 -n 1"
        );
        assert_eq!(quick(""), "");
    }
}
