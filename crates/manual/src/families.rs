//! Completion of words behind a first word (`cluster local`), and of their flags. The generators know words
//! or subcommands, but not both, so these lines are added to what they make.

use std::fmt::Write as _;

use clap_complete::Shell;

use crate::program::{Family, Member, Program};

/// The completions of a shell with those of the families.
pub(crate) fn with(program: &Program, shell: Shell, mut script: String) -> String {
    for family in &program.families {
        script = match shell {
            Shell::Bash => script + &bash(program.name, family),
            Shell::Zsh => {
                let head = format!("_{}() {{\n", program.name);
                script.replacen(&head, &format!("{head}{}", zsh(family)), 1)
            }
            Shell::Fish => script + &fish(program.name, family),
            _ => script,
        };
    }
    script
}

fn names(family: &Family) -> String {
    let names: Vec<&str> = family.members.iter().map(|member| member.name).collect();
    names.join(" ")
}

fn flags(member: &Member) -> String {
    let flags = member.flags.iter().flat_map(|flag| &flag.names);
    let flags: Vec<String> = flags.map(|name| format!("--{name}")).collect();
    flags.join(" ")
}

/// A function around the generated one. Behind a member, what is no flag is a file.
fn bash(program: &str, family: &Family) -> String {
    let first = family.name;
    // As its generator names the function.
    let generated = program.replace('-', "__");
    let mut text = format!(
        "\n_{program}_{first}() {{\n    if [[ ${{COMP_WORDS[1]}} == {first} ]]; then\n        \
         case $COMP_CWORD:${{COMP_WORDS[2]}} in\n"
    );
    let _ = writeln!(
        text,
        "            2:*) COMPREPLY=($(compgen -W \"{}\" -- \"$2\")); return ;;",
        names(family)
    );
    for member in &family.members {
        let (name, flags) = (member.name, flags(member));
        let _ = writeln!(
            text,
            "            *:{name}) COMPREPLY=($(compgen -W \"{flags}\" -- \"$2\")); \
             [[ $2 == -* ]] || COMPREPLY=(); return ;;"
        );
    }
    text + &format!(
        "        esac\n    fi\n    _{generated} \"$@\"\n}}\ncomplete -F _{program}_{first} \
         -o bashdefault -o default {program}\n"
    )
}

/// Lines at the beginning of the generated function.
fn zsh(family: &Family) -> String {
    let mut text = format!(
        "    if [[ $words[2] == {} ]]; then\n        case $CURRENT:$words[3] in\n",
        family.name
    );
    let _ = writeln!(
        text,
        "            (3:*) compadd -- {}; return ;;",
        names(family)
    );
    for member in &family.members {
        let (name, flags) = (member.name, flags(member));
        let _ = writeln!(
            text,
            "            (*:{name}) if [[ $PREFIX == -* ]]; then compadd -- {flags}; else _files; fi; \
             return ;;"
        );
    }
    text + "        esac\n    fi\n"
}

fn fish(program: &str, family: &Family) -> String {
    let first = family.name;
    let mut text = format!(
        "complete -c {program} -n '__fish_seen_subcommand_from {first}; and __fish_is_nth_token 2' -a '{}'\n",
        names(family)
    );
    for member in &family.members {
        for flag in &member.flags {
            let takes = if flag.value.is_empty() { "" } else { " -r" };
            for name in &flag.names {
                let _ = writeln!(
                    text,
                    "complete -c {program} -n '__fish_seen_subcommand_from {first}; and \
                     __fish_seen_subcommand_from {}' -l {name}{takes}",
                    member.name
                );
            }
        }
    }
    text
}
