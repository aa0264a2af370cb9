//! `cluster --help`, made from the table.

use super::subcommand::Subcommand;
use super::table::SUBCOMMANDS;
use crate::flags::help_row;

const INTRODUCTION: &str = "\
Several servers that share the keys. NODES is the file of `cluster deploy`, DIR
the directory of `cluster local`; a map of a cluster (FILE.toml) will do, too.
Other words behind `cluster` are a command of the server.
";

/// The text of `cluster --help`, or of one subcommand.
pub(crate) fn text(one: Option<&Subcommand>) -> String {
    let mut text = match one {
        Some(one) => format!("Usage: ferrite-cli cluster {}\n\n", one.usage()),
        None => format!("Usage: ferrite-cli cluster SUBCOMMAND\n\n{INTRODUCTION}\n"),
    };
    let all = SUBCOMMANDS
        .iter()
        .filter(|its| one.is_none_or(|one| one.name == its.name));
    for subcommand in all {
        for (head, summary) in rows(subcommand) {
            help_row(&format!("  {head}"), &summary, &mut text);
        }
    }
    text
}

/// A subcommand and its flags, each with what it means.
pub(crate) fn rows(subcommand: &Subcommand) -> Vec<(String, String)> {
    let mut rows = vec![(subcommand.usage(), subcommand.summary.to_owned())];
    for flag in subcommand.flags {
        let value = match flag.value {
            "" => String::new(),
            value => format!(" {value}"),
        };
        rows.push((format!("  --{}{value}", flag.long), flag.summary.to_owned()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_everything_and_fits_a_terminal() {
        let all = text(None);
        for subcommand in SUBCOMMANDS {
            assert!(subcommand.summary.ends_with('.'), "{}", subcommand.name);
            for text in [&all, &text(Some(subcommand))] {
                assert!(text.contains(&subcommand.usage()), "{}", subcommand.name);
                for flag in subcommand.flags {
                    assert!(flag.summary.ends_with('.'), "{}", flag.long);
                    assert!(text.contains(&format!("--{}", flag.long)), "{}", flag.long);
                }
            }
        }
        for line in all.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line, line.trim_end());
        }
    }
}
