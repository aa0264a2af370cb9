//! The cells of the comparison: one table. A cell is a command line of this program, so whoever doubts a
//! figure can run its cell alone.

use crate::load::catalogue::{self, Test};
use crate::options::{Options, Section, Typed};
use std::borrow::Cow;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// What `--cells` calls it.
    pub(crate) name: Cow<'static, str>,
    /// What the tables call it.
    pub(crate) title: Cow<'static, str>,
    /// The load, as a shell has it.
    pub(crate) options: Cow<'static, str>,
    /// What is done first, if it is not already so; empty: the server has no keys.
    pub(crate) fill: Cow<'static, str>,
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
        name: Cow::Borrowed(name),
        title: Cow::Borrowed(title),
        options: Cow::Borrowed(options),
        fill: Cow::Borrowed(fill),
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
    let mut cell = cell(name, title, options, fill);
    cell.reply_bytes = Some(reply_bytes);
    cell
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
    placed(
        cell(
            "set-unix",
            "SET, P1, unix socket",
            "-t set -d 16 -r 1m",
            MILLION,
        ),
        Place::Unix,
    ),
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
    placed(cell(name, title, options, MILLION), Place::Shared)
}

const fn placed(mut cell: Cell, place: Place) -> Cell {
    cell.place = place;
    cell
}

/// The cells that a command line asks for: those of the table, or of tests and mixes that it names, with the
/// options of a load that were typed in place of what the cells say.
///
/// # Errors
/// It names a cell or test that is not there, or both cells and tests.
pub(crate) fn chosen(options: &Options) -> Result<Vec<Cell>, String> {
    let is_own = crate::options::has_choice(options);
    if is_own && options.cells.is_some() {
        return Err(
            "--cells names loads of the table; -t, --ratio and --command make others".into(),
        );
    }
    let names = options.cells.clone();
    let names = names.or_else(|| options.with_log.then(|| WITH_LOG.to_owned()));
    let cells = match is_own {
        true => own(options)?,
        false => select(names.as_deref())?,
    };
    let added = |fits: fn(&Typed) -> bool| {
        let typed = options.typed.iter().filter(|typed| fits(typed));
        typed
            .flat_map(Typed::words)
            .map(|word| format!(" {}", quoted(&word)))
            .collect::<String>()
    };
    let (of_load, of_fill) = (added(is_of_load), added(is_of_fill));
    let with =
        |line: &str, added: &str| Cow::Owned(format!("{line}{added}").trim_start().to_owned());
    let changed = cells.into_iter().map(|cell| Cell {
        options: with(&cell.options, &of_load),
        // A cell without keys stays so.
        fill: match cell.fill.is_empty() {
            true => cell.fill,
            false => with(&cell.fill, &of_fill),
        },
        ..cell
    });
    Ok(changed.collect())
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    // Only a zero byte cannot be quoted, which no argument of a program has.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// Whether an option changes what a load sends. Some are taken from elsewhere.
fn is_of_load(typed: &Typed) -> bool {
    const ELSEWHERE: &[&str] = &["tests", "test-time", "warmup", "cpus"];
    let of_load = [
        Section::Load,
        Section::Open,
        Section::Keys,
        Section::Values,
        Section::Mix,
    ];
    of_load.contains(&typed.section) && !ELSEWHERE.contains(&typed.name)
}

/// Whether an option changes which keys and values there are.
fn is_of_fill(typed: &Typed) -> bool {
    let of_keys = ["key-prefix", "key-digits"];
    is_range(typed) || of_keys.contains(&typed.name) || typed.section == Section::Values
}

/// Whether an option says how many keys there are.
fn is_range(typed: &Typed) -> bool {
    ["keyspace", "key-minimum", "key-maximum"].contains(&typed.name)
}

/// The command line says how many keys there are.
pub(crate) fn has_range(options: &Options) -> bool {
    options.typed.iter().any(is_range)
}

/// A cell for each test of `-t`, or one for the mix.
fn own(options: &Options) -> Result<Vec<Cell>, String> {
    let cell = |name: String, title: String, options_line: String| Cell {
        name: Cow::Owned(name),
        title: Cow::Owned(title),
        options: Cow::Owned(options_line),
        fill: Cow::Borrowed(match has_range(options) {
            true => "-t set --key-pattern S -P 64",
            // The one key that all requests use.
            false => "-t set -n 1",
        }),
        place: Place::Tcp,
        reply_bytes: None,
    };
    if options.ratio.is_some() || !options.commands.is_empty() {
        return Ok(vec![cell("mix".into(), "Mix".into(), String::new())]);
    }
    let tests = catalogue::select(options.tests.as_deref().unwrap_or_default())?;
    if let Some(test) = tests.iter().find(|test| test.names[0] == "pubsub") {
        return Err(format!(
            "the test {} cannot be a cell: it needs subscribers",
            test.names[0]
        ));
    }
    let of_test = |test: &&Test| {
        let name = test.names[0];
        let title = test.title(options.multi_keys);
        cell(name.to_owned(), title, format!("-t {name}"))
    };
    Ok(tests.iter().map(of_test).collect())
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
            let known: Vec<_> = CELLS.iter().map(|cell| &*cell.name).collect();
            return Err(format!(
                "there is no cell '{name}'; there are {}",
                known.join(", ")
            ));
        }
    }
    let is_meant = |cell: &&Cell| names.contains(&&*cell.name);
    Ok(CELLS.iter().filter(is_meant).cloned().collect())
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
                &*cell.options,
                &*cell.fill,
                &quick(&cell.options),
                &quick(&cell.fill),
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
        let mut names: Vec<_> = CELLS.iter().map(|cell| &*cell.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CELLS.len());
        let own = CELLS.iter().filter(|cell| cell.place != Place::Shared);
        let mut fills: Vec<_> = own.map(|cell| &*cell.fill).collect();
        fills.dedup();
        let runs = fills.len();
        fills.sort_unstable();
        fills.dedup();
        assert_eq!(fills.len(), runs, "a range is filled twice");
    }

    #[test]
    fn cells_are_chosen_by_name() {
        let chosen = select(Some("get-p16, set-p1")).expect("there are such");
        let names: Vec<_> = chosen.iter().map(|cell| &*cell.name).collect();
        assert_eq!(names, ["set-p1", "get-p16"]);
        assert_eq!(select(None).map(|cells| cells.len()), Ok(CELLS.len()));
        assert_eq!(select(Some(WITH_LOG)).map(|cells| cells.len()), Ok(8));
        let error = select(Some("x")).expect_err("there is none");
        assert!(error.contains("set-p128"), "{error}");
    }

    fn of_line(line: &str) -> Result<Vec<Cell>, String> {
        let words = line.split_whitespace().map(std::ffi::OsString::from);
        chosen(&crate::options::parse(words).expect("it can be read"))
    }

    #[test]
    fn what_is_typed_reaches_the_loads_and_what_they_find() {
        let cells =
            of_line("side-by-side -t set,get -r 500 -n 1k -P 4 -d 32").expect("it makes sense");
        let names: Vec<_> = cells.iter().map(|cell| &*cell.name).collect();
        assert_eq!(names, ["set", "get"]);
        let typed = "--keyspace 500 --requests 1k --pipeline 4 --data-size 32";
        assert_eq!(cells[1].options, format!("-t get {typed}"));
        let fill = "-t set --key-pattern S -P 64 --keyspace 500 --data-size 32";
        assert_eq!(cells[1].fill, fill);
        let cells = of_line("side-by-side --cells get-p1,set-10m -r 500 --test-time 1 --rounds 2");
        let cells = cells.expect("it makes sense");
        assert_eq!(cells[0].options, "-t get -d 16 -r 1m --keyspace 500");
        assert_eq!(cells[0].fill, format!("{MILLION} --keyspace 500"));
        assert_eq!(cells[1].fill, NOTHING);
        let cells = of_line("side-by-side --ratio 1:9").expect("it makes sense");
        assert_eq!(
            (&*cells[0].name, &*cells[0].options),
            ("mix", "--ratio 1:9")
        );
        for line in [
            "side-by-side -t set --cells set-p1",
            "side-by-side -t pubsub",
        ] {
            assert!(of_line(line).is_err(), "{line}");
        }
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
