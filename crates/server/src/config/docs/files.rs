//! Files of a package that are made from the table: the manual page, completions, and deploy/ferrite.conf, in
//! which every setting stands as a comment.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::super::help::placeholder;
use super::super::table::{Kind, Row, Section, TABLE};
use super::super::value::allowed;

/// Settings whose value in a package differs from the default.
const PACKAGED: &[(&str, &str)] = &[("dir", "/var/lib/ferrite")];

/// Where the text of a comment ends, in columns.
const WIDTH: usize = 80;

fn groups() -> Vec<manual::Group> {
    let this = manual::Group {
        title: "This program".to_owned(),
        flags: [
            (Some('h'), "help", "", "Prints all flags."),
            (Some('v'), "version", "", "Prints the version."),
            (
                None,
                "check-config",
                "FILE",
                "Starts nothing: prints which directives of FILE are ignored or refused, and why. Ends with 0 if a server \
                 would start with it, with 1 if not.",
            ),
            (
                None,
                "health",
                "",
                "Asks a running server for a PING, and ends with 0 if it answers. The arguments of its start follow; without \
                 any, the server is the first process of the container.",
            ),
            (
                None,
                "check-log",
                "DIR",
                "Reads the log in DIR, which no server may use meanwhile, and tells what is wrong with it. Ends with 0 if it \
                 is whole, 1 if it is damaged, 2 if nobody can tell.",
            ),
            (
                None,
                "repair-log",
                "DIR",
                "The same, and mends it; what is taken out is kept in DIR/lost.",
            ),
        ]
        .map(|(short, name, value, summary)| manual::Flag {
            short,
            names: vec![name.to_owned()],
            value: value.to_owned(),
            summary: summary.to_owned(),
        })
        .into(),
    };
    let group = |section: &Section| manual::Group {
        title: section.title().to_owned(),
        flags: TABLE
            .iter()
            .filter(|row| row.section == *section)
            .map(flag)
            .collect(),
    };
    let settings = Section::ALL.iter().map(group);
    std::iter::once(this).chain(settings).collect()
}

fn flag(row: &Row) -> manual::Flag {
    let default = match row.default {
        "" => String::new(),
        default => format!(" Default: {default}."),
    };
    manual::Flag {
        short: row.short,
        names: vec![row.name.to_owned()],
        value: placeholder(row.kind),
        summary: format!("{}{default}", row.summary),
    }
}

fn section(title: &'static str, entries: &[(&str, &str)]) -> manual::Section {
    let entries = entries.iter();
    let entries = entries.map(|&(term, text)| (term.to_owned(), text.to_owned()));
    manual::Section {
        title,
        entries: entries.collect(),
    }
}

#[test]
fn manual_page_and_completions_are_up_to_date() {
    manual::keep(&manual::Program {
        name: "ferrite-server",
        version: env!("CARGO_PKG_VERSION"),
        summary: "key-value server that speaks the Redis protocol",
        usage: &[
            "[FILE | -] [--NAME VALUE...]...",
            "--check-config FILE [--NAME VALUE...]...",
            "--health [FILE] [--NAME VALUE...]...",
        ],
        description: &[
            "FILE holds one setting per line, as NAME VALUE..., in the syntax of redis.conf; - reads such lines from the standard \
             input. Flags count more than both. A flag takes all words up to the next flag; --NAME=VALUE takes exactly that.",
            "Sizes are bytes, or have a unit: kb, mb and gb are powers of 1024, k, m and g are powers of 1000.",
        ],
        groups: groups(),
        words: Vec::new(),
        families: Vec::new(),
        sections: vec![
            section(
                "SIGNALS",
                &[
                    (
                        "SIGTERM, SIGINT, SIGQUIT",
                        "Ends the server, after a snapshot if there are save points.",
                    ),
                    (
                        "SIGHUP, SIGUSR1",
                        "Opens the file of logfile anew, after a rotation has renamed it.",
                    ),
                    ("SIGUSR2", "Is noted in the log, and means nothing."),
                ],
            ),
            section(
                "ENVIRONMENT",
                &[(
                    "NOTIFY_SOCKET, WATCHDOG_USEC",
                    "Set by systemd: where the server tells that it has loaded its data, that it lives and that it ends.",
                )],
            ),
            section(
                "FILES",
                &[(
                    "/etc/ferrite/ferrite.conf",
                    "The settings of the service, where a package has installed one.",
                )],
            ),
            section(
                "EXAMPLES",
                &[("ferrite-server /etc/ferrite/ferrite.conf --port 7000", "")],
            ),
            section("SEE ALSO", &[("", "ferrite-cli(1), ferrite-bench(1)")]),
        ],
    });
}

/// All settings as a file, commented out but for those of a package.
fn configuration() -> String {
    let mut text = String::from(
        "# Settings of ferrite-server, all of them, with their defaults behind a #.\n\
         #\n\
         # One setting per line, as NAME VALUE..., in the syntax of redis.conf. What is\n\
         # behind a # has no effect. Sizes take the units kb, mb and gb (of 1024) and\n\
         # k, m and g (of 1000). docs/config.md has the same as a table.\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n\n# ---- {} ----\n", section.title());
        for row in TABLE.iter().filter(|row| row.section == *section) {
            text.push('\n');
            comment(row.summary, &mut text);
            comment(
                &format!("Allowed: {}.", plain(&allowed(row.kind))),
                &mut text,
            );
            match PACKAGED.iter().find(|(name, _)| *name == row.name) {
                Some((name, value)) => {
                    let _ = writeln!(text, "{name} {value}");
                }
                None => {
                    let _ = writeln!(text, "# {} {}", row.name, value(row));
                }
            }
        }
    }
    text
}

/// The default as it would stand in the file.
fn value(row: &Row) -> String {
    let is_word = row.kind.takes_many_words() || !row.default.contains(' ');
    match row.default {
        "" => "\"\"".to_owned(),
        default if is_word && !matches!(row.kind, Kind::Secret) => default.to_owned(),
        default => format!("\"{default}\""),
    }
}

/// Without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "").replace("\\|", "|")
}

fn comment(words: &str, text: &mut String) {
    let mut column = 0;
    for word in words.split_whitespace() {
        if column == 0 || column + 1 + word.len() > WIDTH {
            text.push_str(if column == 0 { "#" } else { "\n#" });
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += 1 + word.len();
    }
    text.push('\n');
}

#[test]
fn the_configuration_file_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ferrite.conf");
    let text = configuration();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).expect("the documentation can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "deploy/ferrite.conf is not what the table says; run this test with UPDATE_DOCS=1"
    );
}

/// Every line without its # is a valid directive.
#[test]
fn every_default_in_the_file_can_be_read() {
    for line in configuration().lines() {
        let Some(line) = line.strip_prefix("# ") else {
            continue;
        };
        let name = line.split(' ').next().unwrap_or_default();
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            continue;
        };
        if line != format!("{name} {}", value(row)) {
            continue;
        }
        let place = super::super::file::Place::CommandLine;
        let directive = super::super::file::read_line(line.as_bytes(), place);
        let directive = directive.unwrap_or_else(|_| panic!("{line}"));
        let words = directive.expect("it is no comment").words;
        let default: Vec<&str> = if row.kind.takes_many_words() && !row.default.is_empty() {
            row.default.split_whitespace().collect()
        } else {
            vec![row.default]
        };
        assert_eq!(words, default, "{line}");
    }
}
