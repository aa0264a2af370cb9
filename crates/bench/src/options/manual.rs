//! deploy/man/ferrite-bench.1 and the completions, made from the table. The test fails when they differ; with
//! `UPDATE_DOCS=1` it writes the files instead.

use super::help::EXAMPLES;
use super::table::FLAGS;
use super::typed::Section;
use crate::load::catalogue::TESTS;

fn groups() -> Vec<manual::Group> {
    let group = |section: Section| manual::Group {
        title: section.title().to_owned(),
        flags: FLAGS
            .iter()
            .filter(|flag| flag.section == section)
            .map(|flag| manual::Flag {
                short: flag.short,
                names: flag.names.iter().map(|&name| name.to_owned()).collect(),
                value: flag.value.to_owned(),
                summary: flag.help.to_owned(),
            })
            .collect(),
    };
    Section::ALL.map(group).into()
}

/// Pairs of a command line and what it is for, from the indented text of `--help`.
fn examples() -> Vec<(String, String)> {
    let mut examples: Vec<(String, String)> = Vec::new();
    for line in EXAMPLES.lines().skip(2).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("        "), examples.last_mut()) {
            (Some(text), Some(example)) => example.1.push_str(text.trim()),
            _ => examples.push((line.trim().to_owned(), String::new())),
        }
    }
    examples
}

#[test]
fn manual_page_and_completions_are_up_to_date() {
    let tests = TESTS.iter().map(|test| {
        let text = match test.summary {
            "" => format!("As redis-benchmark's, which calls it {}.", test.title),
            summary => summary.to_owned(),
        };
        (test.names.join(", "), text)
    });
    manual::keep(&manual::Program {
        name: "ferrite-bench",
        version: env!("CARGO_PKG_VERSION"),
        summary: "puts a load on a server that speaks the Redis protocol",
        usage: &[
            "[OPTIONS] [COMMAND ARGS...]",
            "[OPTIONS] side-by-side [NAME=COMMAND...]",
            "[OPTIONS] floor",
        ],
        description: &[
            "Reports rates and latencies. Without a command it runs the tests that redis-benchmark runs; in \
             a command, __rand_int__ is a random number and a word __key__ or __data__ a key or value.",
            "side-by-side starts servers and compares them. floor is a server that does nothing, to \
             compare with.",
        ],
        groups: groups(),
        words: vec!["side-by-side".to_owned(), "floor".to_owned()],
        families: Vec::new(),
        sections: vec![
            manual::Section {
                title: "TESTS",
                entries: tests.collect(),
            },
            manual::Section {
                title: "EXIT STATUS",
                entries: vec![
                    ("0".to_owned(), "Everything was answered.".to_owned()),
                    (
                        "1".to_owned(),
                        "Requests failed, a server was lost, or something acknowledged is missing."
                            .to_owned(),
                    ),
                ],
            },
            manual::Section {
                title: "EXAMPLES",
                entries: examples(),
            },
            manual::Section {
                title: "SEE ALSO",
                entries: vec![(
                    String::new(),
                    "ferrite-server(1), ferrite-cli(1)".to_owned(),
                )],
            },
        ],
    });
}
