//! The files in `deploy`, compared with what is made of a program's tables.

use std::fs;
use std::path::Path;

use crate::program::Program;
use crate::{completion, page};

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
