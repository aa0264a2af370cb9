//! What `--help` and `--version` print, made from the table.

use std::fmt::Write as _;

use super::table::{FILES, Flag, PROGRAM, SECTIONS};
use super::verb::VERBS;
use crate::cluster::SUBCOMMANDS;

/// Where the text of a line ends, in columns.
const WIDTH: usize = 80;
/// Where the summaries begin, in columns.
const INDENT: usize = 29;

const USAGE: &str = "\
Usage: ferrite-cli [FLAG...] [COMMAND [ARGUMENT...]]

Runs COMMAND on a server that speaks the Redis protocol. Without one it runs
the commands that standard input holds, one a line, or asks for them at a
prompt; `help` there tells more.

Commands of this program: `help COMMAND`, `help @GROUP`; `peek KEY`, a look at a
key of any type; `check-log DIR`, which reads the log of a server that does not
run; `import FILE` and `export FILE`; `cluster SUBCOMMAND`, several servers at
once (`ferrite-cli cluster --help`).
";

const EXAMPLES: &str = "
Examples
  ferrite-cli SET greeting hello EX 60
  ferrite-cli -x SET image < image.png
  ferrite-cli -r 100 -i 1 INFO memory | grep used_memory_human
  ferrite-cli --quoted-input SET '\"a\\x00b\"' value
  ferrite-cli --scan --pattern 'user:*'
  ferrite-cli --json CONFIG GET 'max*'
  ferrite-cli --pipe < requests.resp
  ferrite-cli import /var/lib/redis/dump.rdb --skip-unsupported
";

/// The text of `--version`.
pub(crate) fn version() -> String {
    format!("ferrite-cli {}", env!("CARGO_PKG_VERSION"))
}

/// The text of `--help`.
pub(crate) fn help() -> String {
    let mut text = format!("{}\n\n{USAGE}", version());
    for section in SECTIONS {
        let _ = writeln!(text, "\n{}", section.title);
        if section.title == FILES {
            for verb in VERBS {
                row(&format!("  {} FILE", verb.name), verb.summary, &mut text);
            }
        }
        if section.title == PROGRAM {
            for subcommand in SUBCOMMANDS {
                let head = format!("  cluster {}", subcommand.usage());
                row(&head, subcommand.summary, &mut text);
            }
        }
        for flag in section.flags {
            describe(flag, &mut text);
        }
    }
    text.push_str(EXAMPLES);
    text
}

fn describe(flag: &Flag, text: &mut String) {
    let short = flag.short.map(|letter| format!("-{letter}, "));
    let short = short.unwrap_or_default();
    let head = format!("  {short:4}--{} {}", flag.long, flag.value);
    row(head.trim_end(), flag.summary, text);
}

/// A head and, beside it or below, its text.
pub(crate) fn row(head: &str, summary: &str, text: &mut String) {
    text.push_str(head);
    let mut column = head.len();
    if column + 2 > INDENT {
        text.push('\n');
        column = 0;
    }
    for word in summary.split_whitespace() {
        if column + 1 + word.chars().count() > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column < INDENT {
            let _ = write!(text, "{:width$}", "", width = INDENT - column);
            column = INDENT;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::table::flags;

    #[test]
    fn help_names_every_flag_and_fits_a_terminal() {
        let text = help();
        for flag in flags() {
            assert!(text.contains(&format!("--{}", flag.long)), "{}", flag.long);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(!text.contains("\n\n\n"));
    }
}
