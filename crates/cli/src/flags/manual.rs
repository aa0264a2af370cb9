//! deploy/man/ferrite-cli.1 and the completions, made from the tables. The test fails when they differ; with
//! `UPDATE_DOCS=1` it writes the files instead.

use super::table::{SECTIONS, Section};
use super::verb::VERBS;
use crate::cluster::{SUBCOMMANDS, rows};
use crate::commands::Catalog;

fn groups() -> Vec<manual::Group> {
    let group = |section: &Section| manual::Group {
        title: section.title.to_owned(),
        flags: section
            .flags
            .iter()
            .map(|flag| manual::Flag {
                short: flag.short,
                names: vec![flag.long.to_owned()],
                value: flag.value.to_owned(),
                summary: flag.summary.to_owned(),
            })
            .collect(),
    };
    SECTIONS.iter().map(group).collect()
}

/// Commands of the server and of this program, by their first words.
fn words() -> Vec<String> {
    let mut words: Vec<String> = Catalog::builtin()
        .all()
        .filter(|command| !command.name.contains([' ', '|']))
        .map(|command| command.name.to_ascii_uppercase())
        .collect();
    words.extend(VERBS.iter().map(|verb| verb.name.to_owned()));
    words.extend(["check-log", "cluster", "help", "peek"].map(str::to_owned));
    words.sort();
    words.dedup();
    words
}

fn entries(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|&(term, text)| (term.to_owned(), text.to_owned()))
        .collect()
}

fn verbs() -> Vec<(String, String)> {
    let own = [
        (
            "help COMMAND, help @GROUP",
            "What a command does and what it takes.",
        ),
        (
            "peek KEY",
            "A look at a key of any type: what it is, how long it lives, what it takes, how its value \
             begins.",
        ),
        (
            "check-log DIR",
            "Reads the log of a server that does not run, and tells what is wrong with it. Ends with 0 if it \
             is whole, 1 if it is damaged, 2 if nobody can tell.",
        ),
    ];
    let verbs = VERBS
        .iter()
        .map(|verb| (format!("{} FILE", verb.name), verb.summary.to_owned()));
    entries(&own).into_iter().chain(verbs).collect()
}

/// The subcommands of `cluster`, each with its flags behind it.
fn clusters() -> Vec<(String, String)> {
    let about = "`ferrite-cli cluster` starts, looks at, measures and stops several servers that share the \
                 keys. NODES is the file of `cluster deploy`, DIR the directory of `cluster local`; a map of \
                 a cluster (FILE.toml) will do as well.";
    let rows = SUBCOMMANDS.iter().flat_map(rows).map(|(head, text)| {
        let head = match head.strip_prefix("  ") {
            Some(flag) => flag.to_owned(),
            None => format!("cluster {head}"),
        };
        (head, text)
    });
    entries(&[("", about)]).into_iter().chain(rows).collect()
}

/// The same for completions.
fn families() -> Vec<manual::Family> {
    let flag = |flag: &crate::cluster::SubcommandFlag| manual::Flag {
        short: None,
        names: vec![flag.long.to_owned()],
        value: flag.value.to_owned(),
        summary: flag.summary.to_owned(),
    };
    let member = |subcommand: &crate::cluster::Subcommand| manual::Member {
        name: subcommand.name,
        flags: subcommand.flags.iter().map(flag).collect(),
    };
    vec![manual::Family {
        name: "cluster",
        members: SUBCOMMANDS.iter().map(member).collect(),
    }]
}

#[test]
fn manual_page_and_completions_are_up_to_date() {
    manual::keep(&manual::Program {
        name: "ferrite-cli",
        version: env!("CARGO_PKG_VERSION"),
        summary: "client for servers that speak the Redis protocol",
        usage: &[
            "[FLAG...] [COMMAND [ARGUMENT...]]",
            "[FLAG...] import|export FILE",
            "[FLAG...] cluster SUBCOMMAND",
        ],
        description: &[
            "Runs COMMAND on a server and shows its reply. Without a command it runs those that standard \
             input holds, one a line, or asks for them at a prompt with completion, hints and history.",
        ],
        groups: groups(),
        words: words(),
        families: families(),
        sections: vec![
            manual::Section {
                title: "COMMANDS OF THIS PROGRAM",
                entries: verbs(),
            },
            manual::Section {
                title: "SEVERAL SERVERS",
                entries: clusters(),
            },
            manual::Section {
                title: "ENVIRONMENT",
                entries: entries(&[
                    (
                        "FERRITECLI_AUTH, REDISCLI_AUTH",
                        "The password. The first counts more; flags count more than both.",
                    ),
                    ("NO_COLOR", "No colors, if it is not empty."),
                ]),
            },
            manual::Section {
                title: "EXIT STATUS",
                entries: entries(&[
                    ("0", "Done. An error reply counts as an answer."),
                    (
                        "1",
                        "Not done: no connection, bad flags, or an error reply with -e.",
                    ),
                    ("141", "Standard output was closed."),
                ]),
            },
            manual::Section {
                title: "EXAMPLES",
                entries: entries(&[
                    ("ferrite-cli SET greeting hello EX 60", ""),
                    ("ferrite-cli -x SET image < image.png", ""),
                    ("ferrite-cli --scan --pattern 'user:*'", ""),
                    (
                        "ferrite-cli -h old.example.org export dump.rdb && ferrite-cli import dump.rdb",
                        "",
                    ),
                ]),
            },
            manual::Section {
                title: "SEE ALSO",
                entries: entries(&[("", "ferrite-server(1), ferrite-bench(1)")]),
            },
        ],
    });
}
