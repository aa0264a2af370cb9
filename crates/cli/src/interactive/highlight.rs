//! Colors for a line while it is typed: what is known, what is quoted, what is wrong. Secrets become
//! asterisks, colors or not.

use super::line::bar;
use super::local;
use crate::commands::{Catalog, Command, progress};
use crate::request::secret_words;
use crate::words::{Ending, Word, scan};

/// The part that a word plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Command,
    Token,
    Quoted,
    Plain,
    /// Behind a bar, for a shell.
    Program,
    /// No such command, too many arguments, or a quote that does not end its word.
    Wrong,
    Secret,
}

impl Role {
    /// The number of its color, if it has one.
    fn color(self) -> Option<&'static str> {
        match self {
            Role::Command => Some("1"),
            Role::Token => Some("36"),
            Role::Quoted => Some("32"),
            Role::Program => Some("35"),
            Role::Wrong => Some("31"),
            Role::Plain | Role::Secret => None,
        }
    }
}

/// The line as it is shown.
pub(super) fn highlight(line: &str, catalog: &Catalog, has_colors: bool) -> String {
    let mut words = scan(line.as_bytes());
    let mut program = None;
    if let Some(at) = bar(&words) {
        words = scan(&line.as_bytes()[..at]);
        program = Some(at);
    }
    let roles = roles(&words, catalog);
    let mut shown = String::with_capacity(line.len() * 2);
    let mut end = 0;
    for (word, role) in words.iter().zip(roles) {
        shown.push_str(&line[end..word.start]);
        paint(&line[word.start..word.end], role, has_colors, &mut shown);
        end = word.end;
    }
    match program {
        Some(at) => {
            shown.push_str(&line[end..at]);
            paint(&line[at..], Role::Program, has_colors, &mut shown);
        }
        None => shown.push_str(&line[end..]),
    }
    shown
}

fn paint(text: &str, role: Role, has_colors: bool, shown: &mut String) {
    match role.color().filter(|_| has_colors) {
        _ if role == Role::Secret => {
            shown.extend(text.chars().map(|character| match character {
                '\n' => '\n',
                _ => '*',
            }));
        }
        // A line break would take the color with it, as the editor redraws lines one by one.
        Some(color) => {
            for (at, part) in text.split('\n').enumerate() {
                if at > 0 {
                    shown.push('\n');
                }
                shown.push_str(&format!("\x1b[{color}m{part}\x1b[0m"));
            }
        }
        None => shown.push_str(text),
    }
}

fn roles(words: &[Word], catalog: &Catalog) -> Vec<Role> {
    let mut roles: Vec<Role> = words.iter().map(plain_role).collect();
    let is_number = |word: &Word| word.bytes.iter().all(u8::is_ascii_digit);
    let first = usize::from(words.len() > 1 && is_number(&words[0]));
    let command: Vec<Vec<u8>> = words[first..]
        .iter()
        .map(|word| word.bytes.clone())
        .collect();
    let Some(name) = command.first() else {
        return roles;
    };
    if local::is_own(name) {
        roles[first] = Role::Command;
    } else if let Some((known, used)) = catalog.find(&command) {
        roles[first..first + used].fill(Role::Command);
        mark_tokens(known, &command, used, &mut roles[first..]);
        mark_excess(known, &mut roles[first..]);
    } else if catalog.is_complete && !is_begun(name, catalog, words.len() > first + 1) {
        roles[first] = Role::Wrong;
    }
    for at in secret_words(&command) {
        roles[first + at] = Role::Secret;
    }
    roles
}

fn plain_role(word: &Word) -> Role {
    match word.ending {
        Ending::Stuck => Role::Wrong,
        _ if word.quoted => Role::Quoted,
        _ => Role::Plain,
    }
}

/// Whether a name may still become one that is known, as nothing follows it yet.
fn is_begun(name: &[u8], catalog: &Catalog, is_followed: bool) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    !is_followed
        && (catalog.all().any(|command| command.name.starts_with(&name))
            || local::NAMES.iter().any(|own| own.starts_with(&name)))
}

/// Words that are tokens where they stand.
fn mark_tokens(command: &Command, words: &[Vec<u8>], used: usize, roles: &mut [Role]) {
    for at in used..words.len() {
        let expected = progress(&command.args, &words[used..at]);
        let is_token = |token: &String| words[at].eq_ignore_ascii_case(token.as_bytes());
        if roles[at] == Role::Plain && expected.tokens.iter().any(is_token) {
            roles[at] = Role::Token;
        }
    }
}

/// Words beyond what the command takes.
fn mark_excess(command: &Command, roles: &mut [Role]) {
    if let Ok(most @ 1..) = usize::try_from(command.arity)
        && roles.len() > most
    {
        roles[most..].fill(Role::Wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Value;

    /// Colors as letters: c(ommand), t(oken), q(uoted), p(rogram), w(rong).
    fn shown(line: &str) -> String {
        let mut catalog = Catalog::builtin();
        // As if a server had told that these are all.
        let entries = catalog.all().filter(|command| !command.name.contains(' '));
        let entry = |command: &Command| {
            let name = Value::Bulk(command.name.clone().into_bytes());
            let numbers = [
                command.arity,
                0,
                command.keys.first,
                command.keys.last,
                command.keys.step,
            ];
            let mut entry = vec![name];
            entry.extend(numbers.map(Value::Integer));
            Value::Array(entry)
        };
        let info = Value::Array(entries.map(entry).collect());
        catalog.learn(&Value::Null, &info);
        let mut text = highlight(line, &catalog, true);
        for (color, letter) in [
            ("1", 'c'),
            ("36", 't'),
            ("32", 'q'),
            ("35", 'p'),
            ("31", 'w'),
        ] {
            text = text.replace(&format!("\x1b[{color}m"), &format!("{letter}<"));
        }
        text.replace("\x1b[0m", ">")
    }

    #[test]
    fn words_have_the_color_of_their_part() {
        for (line, expected) in [
            ("", ""),
            ("  get  k ", "  c<get>  k "),
            ("GET k", "c<GET> k"),
            ("get k x y", "c<get> k w<x> w<y>"),
            ("5 get k", "5 c<get> k"),
            ("ge", "ge"),
            ("gex", "w<gex>"),
            ("ge x", "w<ge> x"),
            ("set k \"v v\" nx ex 5", "c<set> k q<\"v v\"> t<nx> t<ex> 5"),
            ("set nx get", "c<set> nx get"),
            ("get \"k", "c<get> q<\"k>"),
            ("get \"k\"x", "c<get> w<\"k\"x>"),
            ("get \"a\nb\"", "c<get> q<\"a>\nq<b\">"),
            ("get k | wc -l", "c<get> k p<| wc -l>"),
            (":set hints", "c<:set> hints"),
            ("peek größe", "c<peek> größe"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn secrets_are_asterisks_with_colors_and_without() {
        let catalog = Catalog::builtin();
        for (line, expected) in [
            ("auth pässword", "auth ********"),
            ("AUTH user \"p p\"", "AUTH **** *****"),
            ("2 auth p", "2 auth *"),
            ("config set requirepass p", "config set requirepass *"),
            ("hello 3 auth u p", "hello 3 auth * *"),
            ("auth \"op", "auth ***"),
        ] {
            assert_eq!(highlight(line, &catalog, false), expected);
            assert!(!highlight(line, &catalog, true).contains("pässword"));
        }
    }

    #[test]
    fn without_a_server_nothing_is_unknown() {
        assert_eq!(highlight("modul k", &Catalog::builtin(), true), "modul k");
    }
}
