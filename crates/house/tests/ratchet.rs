//! The ratchet: the numbers of all crates against those that are committed in `numbers.txt`. None may grow,
//! and one that has become smaller is committed in the same change.
//!
//! ```text
//!   cargo test -p ferrite-house -- --nocapture                the numbers
//!   UPDATE_HOUSE=1 cargo test -p ferrite-house --test ratchet    lowers committed numbers; it raises none
//! ```
//!
//! `rooms.txt` is the table of the server's rooms in order: an import may only run to an earlier one.
//! `known.txt` holds what the committed numbers are made of, for messages alone: nothing fails if it is out
//! of date.
//!
//! How it counts:
//!
//! - Files are those that `mod` reaches: modules that only tests are built of are out, whatever their names.
//! - `use a::{self}` and then `a::b()`, and `b()` of a child module, are arrows to the file that defines `b`.
//! - Methods of foreign `impl` blocks count for every type of the crate. A call is
//!   known by its name, which counts only where no other function of the crate, and none of the crates it
//!   depends on, has it. A method of std that has the name is not told apart.
//! - Items that `lib.rs` or `main.rs` defines are arrows to it. A child that names its parent's items closes
//!   a cycle with it. So `resp`, `rdb`, `map` and `manual` have small cycles that other tools pass over.
//! - `main` is a room.
//!
//! Types of one name are counted beyond the first; two definitions in one file, for two systems, are one.
//! Lines, files and functions are counted in tests and examples too. A function reaches from `fn` to its
//! brace. A file or function that is too long counts by its lines beyond the limit: it may
//! only shrink.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use house::measure::{self, Number};
use house::ratchet;
use house::rooms::Rooms;
use house::tree::Tree;

const ROOMS_OF: &str = "server";
const NUMBERS: &str = "\
# What may not grow: `name = number`. Lowered by UPDATE_HOUSE=1 cargo test -p ferrite-house --test ratchet.
# A number is raised by hand alone, with the reason in the commit.
";
const KNOWN: &str = "\
# What the numbers are made of, so that the test can name what is new. UPDATE_HOUSE=1 makes it.
";

#[test]
fn the_house_is_no_worse_than_committed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(here.join("tests").join(name)).unwrap_or_default();
    let rooms = Rooms::parse(&read("rooms.txt"));
    let crates = here.parent().expect("crates lie in one folder");
    let mut numbers = Vec::new();
    let mut complaints = Vec::new();
    let trees: Vec<_> = names(crates)
        .into_iter()
        .map(|name| {
            let tree = Tree::read(&crates.join(&name).join("src"));
            (name, tree.expect("each module has a file"))
        })
        .collect();
    for (name, tree) in &trees {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml"));
        let manifest = manifest.expect("each crate has a manifest");
        let others = trees
            .iter()
            .filter(|(other, _)| other != name && depends_on(&manifest, other));
        let taken = others
            .flat_map(|(_, tree)| tree.functions().map(str::to_owned))
            .collect();
        let edges = tree.edges(&taken);
        if name == ROOMS_OF {
            complaints.extend(rooms.complaints(tree, &edges));
        }
        numbers.extend(measure::files(name, tree, &edges));
        let sources = sources(&crates.join(name));
        numbers.extend(measure::texts(name, &sources));
        // It may grow: a number to look at.
        println!("{name}: {} lines of code", measure::product_lines(&sources));
    }

    numbers.iter().for_each(show);

    let committed = ratchet::parse(&read("numbers.txt"));
    let known = ratchet::parse(&read("known.txt"));
    if env::var_os("UPDATE_HOUSE").is_some() {
        let write = |name: &str, text| {
            fs::write(here.join("tests").join(name), text).expect("the folder is writable")
        };
        write(
            "numbers.txt",
            NUMBERS.to_owned() + &ratchet::lowered(&numbers, &committed),
        );
        write(
            "known.txt",
            KNOWN.to_owned() + &ratchet::parts(&numbers, &committed, &known),
        );
    }
    complaints.extend(ratchet::complaints(
        &numbers,
        &ratchet::parse(&read("numbers.txt")),
        &known,
    ));
    assert!(
        complaints.is_empty(),
        "the house is not as committed:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn manifests_name_what_a_crate_depends_on() {
    let manifest =
        "name = \"ferrite-cli\"\nsys.workspace = true\nferrite-log = { }\nmapper = \"1\"";
    let found = ["cli", "log", "map", "sys"].map(|other| depends_on(manifest, other));
    assert_eq!(found, [false, true, false, true]);
}

fn show(number: &Number) {
    println!("{} = {}", number.name, number.value);
}

/// Whether a crate's manifest has a line for the other crate of the workspace.
fn depends_on(manifest: &str, other: &str) -> bool {
    manifest.lines().any(|line| {
        let line = line.strip_prefix("ferrite-").unwrap_or(line);
        line.strip_prefix(other)
            .is_some_and(|rest| rest.starts_with([' ', '.']))
    })
}

/// The crates, sorted.
fn names(crates: &Path) -> Vec<String> {
    let entries = fs::read_dir(crates).expect("the folder of crates is readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("the folder of crates is readable"))
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| {
            entry
                .file_name()
                .into_string()
                .expect("crates have plain names")
        })
        .collect();
    names.sort();
    names
}

/// All Rust files of a crate: its tests and examples too.
fn sources(folder: &Path) -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(current) = waiting.pop() {
        for entry in fs::read_dir(&current).expect("folders of crates are readable") {
            let path = entry.expect("folders of crates are readable").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(folder)
                    .expect("the file lies in the folder");
                let text = fs::read_to_string(&path).expect("sources are text");
                sources.insert(name.display().to_string(), text);
            }
        }
    }
    sources
}
