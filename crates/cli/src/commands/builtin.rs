//! The table that needs no server: `table.txt`, a few lines for each command.
//!
//! ```text
//!   get 2 string 1.0.0 1 1 1       name, arity, group, version, first and last key and step;
//!                                  config|get is a subcommand
//!     : Returns the value          summary
//!     ~ O(1)                       complexity
//!     ! 6.2.0 `SET` with `GET`     deprecated since, and what to use instead
//!     key key                      an argument: its kind and name,
//!     word seconds EX              its token, if it has one ("" is an empty one),
//!     oneof condition ?            and ? optional, * multiple, ** multiple with the token each time
//!       pure-token nx NX           what it is made of, two columns further
//! ```
//!
//! The file is made by a test that asks Ferrite's server (`tests/commands.rs`), so that it is never wrong for
//! long.

use super::command::{Arg, ArgKind, Command, KeyRange};

const TABLE: &str = include_str!("table.txt");

/// The commands of the table.
///
/// # Panics
/// The table is not what the test made. A test sees to it that it can be read.
pub(super) fn commands() -> impl Iterator<Item = Command> {
    let mut lines = TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .peekable();
    std::iter::from_fn(move || {
        let mut command = head(lines.next()?).expect("a line of the table names a command");
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            let depth = line.len() - line.trim_start().len();
            take(&mut command, depth / 2, line.trim_start())
                .expect("an indented line describes its command");
        }
        Some(command)
    })
}

fn head(line: &str) -> Option<Command> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let number = |word: Option<&str>| word?.parse().ok();
    Some(Command {
        name: next()?.replace('|', " "),
        arity: number(next())?,
        group: next()?.to_owned(),
        since: next()?.to_owned(),
        keys: KeyRange {
            first: number(next())?,
            last: number(next())?,
            step: number(next())?,
        },
        ..Command::default()
    })
}

/// Takes a line that is so deep below its command.
fn take(command: &mut Command, depth: usize, line: &str) -> Option<()> {
    let (mark, rest) = line.split_once(' ')?;
    match mark {
        ":" => command.summary = rest.to_owned(),
        "~" => command.complexity = rest.to_owned(),
        "!" => {
            let (since, instead) = rest.split_once(' ')?;
            command.deprecated = Some((since.to_owned(), instead.to_owned()));
        }
        kind => {
            let mut list = &mut command.args;
            for _ in 1..depth {
                list = &mut list.last_mut()?.args;
            }
            list.push(argument(kind, rest));
        }
    }
    Some(())
}

fn argument(kind: &str, rest: &str) -> Arg {
    let mut words = rest.split(' ');
    let mut arg = Arg {
        kind: ArgKind::named(kind),
        name: words.next().unwrap_or_default().to_owned(),
        ..Arg::default()
    };
    for word in words {
        match word {
            "?" => arg.is_optional = true,
            "*" => arg.is_multiple = true,
            "**" => (arg.is_multiple, arg.repeats_token) = (true, true),
            "\"\"" => arg.token = Some(String::new()),
            token => arg.token = Some(token.to_owned()),
        }
    }
    arg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let commands: Vec<Command> = commands().collect();
        assert!(commands.len() > 100, "{}", commands.len());
        let find = |name: &str| {
            let found = commands.iter().find(|command| command.name == name);
            found.unwrap_or_else(|| panic!("there is no {name}"))
        };
        let get = find("get");
        assert_eq!((get.arity, get.group.as_str()), (2, "string"));
        assert_eq!(get.keys.indices(2).collect::<Vec<_>>(), [1]);
        let set = find("set");
        let condition = &set.args[2];
        assert!(condition.is_optional && condition.kind == ArgKind::OneOf);
        assert_eq!(condition.args[0].token.as_deref(), Some("NX"));
        assert!(find("getset").deprecated.is_some());
        assert!(find("mget").args[0].is_multiple);
        assert_eq!(find("config get").arity, -3);
        for command in &commands {
            assert!(!command.summary.is_empty(), "{}", command.name);
        }
    }
}
