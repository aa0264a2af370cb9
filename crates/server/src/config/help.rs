//! Output of `--help` and `--version`, made from the table.

use std::fmt::Write as _;

use super::table::{Kind, Row, Section, TABLE};

/// Where the text of a line ends, in columns.
const WIDTH: usize = 80;

/// Where the text of a setting begins, in columns.
const INDENT: usize = 8;

/// The text of `--version`. Tools look for the number behind `v=`.
pub(super) fn version() -> String {
    format!(
        "Ferrite server v={} bits={}",
        env!("CARGO_PKG_VERSION"),
        usize::BITS
    )
}

/// The text of `--help`.
pub(super) fn text() -> String {
    let mut text = String::from(
        "Usage: ferrite-server [FILE | -] [--NAME VALUE...]...\n\
         \n\
         FILE holds one setting per line, as NAME VALUE..., in the syntax of redis.conf;\n\
         - reads such lines from the standard input. Flags count more than both.\n\
         Sizes take the units kb, mb and gb (of 1024) and k, m and g (of 1000).\n\
         \n  -h, --help\n        Prints this text.\n\
         \n  -v, --version\n        Prints the version.\n\
         \n  --check-config FILE\n        Starts nothing: prints which directives of FILE are ignored or\n        refused, and why. Ends with 0 if a server would start with it.\n\
         \n  --health [FILE] [--NAME VALUE...]...\n        Asks the server that was started with these arguments for a PING;\n        without any, the first process of the container. Ends with 0 if it\n        answers.\n\
         \n  --check-log DIR\n        Reads the log in DIR, which no server may use meanwhile, and tells\n        what is wrong with it. Ends with 0 if it is whole, 1 if it is\n        damaged, 2 if nobody can tell.\n\
         \n  --repair-log DIR\n        The same, and mends it; what is taken out is kept in DIR/lost.\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n{}\n", section.title());
        for row in TABLE.iter().filter(|row| row.section == *section) {
            describe(row, &mut text);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn describe(row: &Row, text: &mut String) {
    let short = row.short.map(|letter| format!("-{letter}, "));
    let _ = writeln!(
        text,
        "\n  {}--{} {}",
        short.unwrap_or_default(),
        row.name,
        placeholder(row.kind)
    );
    let default = match row.default {
        "" => String::new(),
        default => format!(" [{default}]"),
    };
    wrap(&format!("{}{default}", row.summary), text);
}

/// Names of a choice that are listed behind its flag.
const MOST_CHOICES: usize = 5;

/// The word for a value behind its flag.
pub(super) fn placeholder(kind: Kind) -> String {
    match kind {
        Kind::Flag => "yes|no".into(),
        Kind::Integer { .. } | Kind::PowerOfTwo { .. } => "NUMBER".into(),
        Kind::Octal { .. } => "MODE".into(),
        Kind::Events => "CLASSES".into(),
        Kind::Memory { .. } => "SIZE".into(),
        Kind::MemoryOrShare(_) => "SIZE|PERCENT".into(),
        // Long lists of choices are in the documentation.
        Kind::Choice(names) if names.len() > MOST_CHOICES => "NAME".into(),
        Kind::Choice(names) => names.join("|"),
        Kind::Secret => "PASSWORD".into(),
        Kind::Path => "PATH".into(),
        Kind::Directory => "DIRECTORY".into(),
        Kind::Addresses { .. } => "ADDRESS...".into(),
        Kind::Hosts { .. } => "NAME...".into(),
        Kind::OutputLimits => "CLASS HARD SOFT SECONDS...".into(),
        Kind::FileName | Kind::Word => "NAME".into(),
        Kind::SavePoints => "SECONDS CHANGES...".into(),
    }
}

/// Adds words in indented lines that end in time.
fn wrap(words: &str, text: &mut String) {
    let mut column = 0;
    for word in words.split_whitespace() {
        if column == 0 || column + 1 + word.len() > WIDTH {
            let line_break = if column == 0 { "" } else { "\n" };
            let _ = write!(text, "{line_break}{:INDENT$}{word}", "");
            column = INDENT + word.len();
        } else {
            let _ = write!(text, " {word}");
            column += 1 + word.len();
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_setting_and_fits_a_terminal() {
        let text = text();
        for row in TABLE {
            assert!(text.contains(&format!("--{} ", row.name)), "{}", row.name);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(!text.contains("\n\n\n"));
    }
}
