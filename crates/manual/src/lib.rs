//! Shell completions and manual pages, made from the programs' own tables of flags.
//!
//! A program says in a [`Program`] what its tables hold; [`keep`] compares what is made of it with the files
//! in `deploy`, in a test of the program, so that neither can be changed without the other. With
//! `UPDATE_DOCS=1` it writes the files instead.
//!
//! ```text
//!   deploy/completions/NAME.bash  _NAME  NAME.fish
//!   deploy/man/NAME.1
//! ```
//!
//! No program depends on this crate, only their tests do. What a flag means is not known here.

#![forbid(unsafe_code)]

mod completion;
mod families;
mod page;

use std::fs;
use std::path::Path;

/// A program, as its users see it.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is typed.
    pub name: &'static str,
    /// Of the program.
    pub version: &'static str,
    /// What it is, in a line without a full stop.
    pub summary: &'static str,
    /// What may stand behind the name, one line for each way.
    pub usage: &'static [&'static str],
    /// What it does, in paragraphs.
    pub description: &'static [&'static str],
    /// Flags, in the groups in which people find them.
    pub groups: Vec<Group>,
    /// What may be the first word that is no flag, for completion.
    pub words: Vec<String>,
    /// First words that have words of their own behind them, for completion.
    pub families: Vec<Family>,
    /// The last sections of the manual page.
    pub sections: Vec<Section>,
}

/// Flags that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they are about.
    pub title: String,
    /// One by one.
    pub flags: Vec<Flag>,
}

/// A flag.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Its letter.
    pub short: Option<char>,
    /// Its names without dashes, its own first; none for a word that is no flag.
    pub names: Vec<String>,
    /// What follows it, as help says it; empty if nothing does.
    pub value: String,
    /// What it means, in sentences.
    pub summary: String,
}

/// A first word, and the words behind it.
#[derive(Clone, Debug)]
pub struct Family {
    /// What is typed first.
    pub name: &'static str,
    /// What may be typed next.
    pub members: Vec<Member>,
}

/// A word behind a first one.
#[derive(Clone, Debug)]
pub struct Member {
    /// What is typed.
    pub name: &'static str,
    /// The flags that follow it.
    pub flags: Vec<Flag>,
}

/// A section of the manual page.
#[derive(Clone, Debug)]
pub struct Section {
    /// In capitals.
    pub title: &'static str,
    /// Terms and what they mean; a text without a term is a paragraph, and a term without a text is what is
    /// typed.
    pub entries: Vec<(String, String)>,
}

/// Compares the files of a program with what its tables say, or writes them.
///
/// # Panics
/// They differ, which fails the test that calls this; or a file cannot be written.
pub fn keep(program: &Program) {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let name = program.name;
    let mut files = vec![(format!("man/{name}.1"), page::page(program))];
    for (file, text) in completion::scripts(program) {
        files.push((format!("completions/{file}"), text));
    }
    let updates = std::env::var_os("UPDATE_DOCS").is_some();
    for (file, text) in files {
        let path = deploy.join(&file);
        if updates {
            let directory = path.parent().expect("it is in a directory");
            fs::create_dir_all(directory).expect("the repository is writable");
            fs::write(&path, text).expect("the repository is writable");
            continue;
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "deploy/{file} is not what the table says; run this test with UPDATE_DOCS=1"
        );
    }
}
