//! Completions for shells.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::{Shell, generate};

use crate::families;
use crate::program::{Flag, Program};

/// The completions of a program: names of files, and what is in them.
pub(crate) fn scripts(program: &Program) -> Vec<(String, String)> {
    let name = program.name;
    [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ]
    .map(|(shell, file)| {
        let mut script = Vec::new();
        generate(shell, &mut command(program), name, &mut script);
        let script = String::from_utf8(script).expect("scripts are text");
        let script = match shell {
            // Its generator leaves words out that are no flags.
            Shell::Fish if !program.words.is_empty() => {
                let words = program.words.join(" ");
                format!("{script}complete -c {name} -n '__fish_is_nth_token 1' -a '{words}'\n")
            }
            _ => script,
        };
        let script = families::with(program, shell, script);
        // The generators leave blanks at the ends of lines.
        let lines: Vec<&str> = script.lines().map(str::trim_end).collect();
        (file, lines.join("\n") + "\n")
    })
    .into()
}

fn command(program: &Program) -> Command {
    let flags = program.groups.iter().flat_map(|group| &group.flags);
    let flags = flags.filter(|flag| !flag.names.is_empty());
    let words = match &program.words[..] {
        [] => None,
        words => Some(
            Arg::new("word")
                .num_args(0..)
                .value_parser(PossibleValuesParser::new(words)),
        ),
    };
    Command::new(program.name)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(flags.map(argument))
        .args(words)
}

fn argument(flag: &Flag) -> Arg {
    let [name, others @ ..] = &flag.names[..] else {
        unreachable!("it was looked at");
    };
    let argument = Arg::new(name.clone())
        .long(name.clone())
        .visible_aliases(others.to_vec())
        .short(flag.short)
        .help(first_sentence(&flag.summary));
    if flag.value.is_empty() {
        return argument.action(ArgAction::SetTrue);
    }
    let argument = argument.action(ArgAction::Append);
    let is_choice = flag.value.contains('|')
        && (flag.value.split('|')).all(|word| word.chars().all(|c| !c.is_whitespace()));
    if is_choice {
        let choices: Vec<String> = flag.value.split('|').map(str::to_owned).collect();
        return argument.value_parser(PossibleValuesParser::new(choices));
    }
    let hint = match flag.value.as_str() {
        "FILE" | "PATH" => ValueHint::FilePath,
        "DIRECTORY" => ValueHint::DirPath,
        "HOST" => ValueHint::Hostname,
        _ => ValueHint::Other,
    };
    argument.value_name(flag.value.clone()).value_hint(hint)
}

/// What fits beside a flag in a list.
fn first_sentence(summary: &str) -> String {
    let end = summary.find(". ").unwrap_or(summary.len());
    summary[..end].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_enough() {
        for (summary, first) in [
            ("One.", "One"),
            ("No stop", "No stop"),
            ("A redis.conf. B.", "A redis.conf"),
        ] {
            assert_eq!(first_sentence(summary), first);
        }
    }
}
