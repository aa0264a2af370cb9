//! `help`, `help COMMAND` and `help @GROUP`.

use std::fmt::Write as _;

use super::catalog::Catalog;
use super::command::Command;
use super::syntax::text;

/// What to say about the words behind `help`, with colors if they are liked.
pub(crate) fn help(catalog: &Catalog, topic: &[Vec<u8>], has_colors: bool) -> String {
    let topic: Vec<String> = topic
        .iter()
        .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
        .collect();
    let found: Vec<&Command> = match &topic[..] {
        [] => return general(catalog),
        [group] if group.starts_with('@') => catalog
            .all()
            .filter(|command| command.group == group[1..])
            .collect(),
        words => {
            let name = words.join(" ");
            let is_below = |its: &str| {
                its.strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            let below = catalog.all().filter(|command| is_below(&command.name));
            below.collect()
        }
    };
    if found.is_empty() {
        return nothing(catalog, &topic.join(" "));
    }
    let in_group = topic[0].starts_with('@');
    let mut out = String::new();
    for command in found {
        describe(command, in_group, has_colors, &mut out);
    }
    out.push('\n');
    out
}

fn general(catalog: &Catalog) -> String {
    let groups: Vec<String> = catalog
        .groups()
        .iter()
        .map(|group| format!("@{group}"))
        .collect();
    format!(
        "ferrite-cli {}\n\
         \n\
         help COMMAND           what a command does and takes\n\
         help @GROUP            the commands of a group: {}\n\
         help TAB               both, one after the other\n\
         \n\
         5 INCR counter         runs a command five times\n\
         GET key | grep x       sends what a reply says through a program\n\
         peek KEY               a look at a key of any type\n\
         check-log DIR          reads the log of a server that does not run\n\
         connect HOST PORT      another server; or: connect URI\n\
         clear, exit            clears the screen, ends\n\
         \n\
         :set hints, :set nohints         what may follow, while you type\n\
         :set pager, :set nopager         long replies page by page\n\
         :set output standard|raw|csv|json|quoted-json\n\
         :set                             how these are set now\n\
         \n\
         ~/.ferriteclirc may have lines that begin with :set. Tab completes, Ctrl-R searches what\n\
         was typed before, Ctrl-C drops the line or ends what takes long, Ctrl-D ends.\n",
        env!("CARGO_PKG_VERSION"),
        groups.join(" ")
    )
}

fn describe(command: &Command, in_group: bool, has_colors: bool, out: &mut String) {
    let paint = |color: &str, text: &str| {
        if has_colors {
            format!("\x1b[{color}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    };
    let name = paint("1", &command.name.to_ascii_uppercase());
    let args = paint("90", &text(&command.args));
    let _ = writeln!(out, "\n  {}", format!("{name} {args}").trim_end());
    let mut field = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "  {} {text}", paint("33", &format!("{name}:")));
        }
    };
    field("summary", &command.summary);
    field("since", &command.since);
    if !in_group {
        field("group", &command.group);
        field("complexity", &command.complexity);
    }
    if let Some((since, instead)) = &command.deprecated {
        field("deprecated", &format!("since {since}, use {instead}"));
    }
}

/// What to say when there is no such command, or group.
fn nothing(catalog: &Catalog, topic: &str) -> String {
    let mut out = format!("\n  There is no help about '{topic}'");
    let near = catalog
        .all()
        .map(|command| {
            let distance = strsim::damerau_levenshtein(topic, &command.name);
            (distance, command.name.as_str())
        })
        .min();
    if let Some((_, near)) = near.filter(|&(distance, _)| distance <= 2) {
        let _ = write!(out, "; did you mean {}?", near.to_ascii_uppercase());
    }
    out.push_str("\n\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(topic: &str, has_colors: bool) -> String {
        let words: Vec<Vec<u8>> = topic
            .split_whitespace()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        help(&Catalog::builtin(), &words, has_colors)
    }

    #[test]
    fn a_command_is_described() {
        let text = about("STRLEN", false);
        assert!(text.starts_with("\n  STRLEN key\n  summary: "), "{text}");
        assert!(
            text.contains("\n  since: 2.2.0\n  group: string\n"),
            "{text}"
        );
        let colored = about("strlen", true);
        assert!(
            colored.contains("\x1b[1mSTRLEN\x1b[0m \x1b[90mkey\x1b[0m"),
            "{colored}"
        );
        assert!(about("getset", false).contains("deprecated: since 6.2.0, use "));
    }

    #[test]
    fn a_container_brings_its_subcommands_and_a_group_its_commands() {
        let text = about("config", false);
        assert!(
            text.contains("\n  CONFIG GET ") && text.contains("\n  CONFIG SET "),
            "{text}"
        );
        assert!(!about("config get", false).contains("CONFIG SET"));
        let text = about("@string", false);
        assert!(
            text.contains("\n  GET key\n") && text.contains("\n  SET key value "),
            "{text}"
        );
        assert!(!text.contains("group:"));
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert!(about("strlne", false).contains("did you mean STRLEN?"));
        assert!(about("@nothing", false).contains("no help about '@nothing'"));
        assert!(about("", false).contains("@string"));
    }
}
