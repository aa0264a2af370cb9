//! What ARCHITECTURE.md and docs/lives.md name is there: files, folders, and functions of types.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The texts in backticks, outside of drawings.
fn quoted(page: &str) -> BTreeSet<&str> {
    let mut quoted = BTreeSet::new();
    for (number, part) in page.split("```").enumerate() {
        if number % 2 == 0 {
            quoted.extend(part.split('`').skip(1).step_by(2));
        }
    }
    quoted
}

fn is_path(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    text.bytes().all(is_plain) && (text.ends_with(".rs") || text.trim_matches('/').contains('/'))
        || text.ends_with('/')
}

/// `Type::function`, which begins with a capital letter.
fn function(text: &str) -> Option<&str> {
    let (name, function) = text.rsplit_once("::")?;
    let name = name.rsplit("::").next()?;
    let is_function = function
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (name.starts_with(|first: char| first.is_ascii_uppercase()) && is_function).then_some(function)
}

fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).expect("folders of sources are readable") {
        let path = entry.expect("folders of sources are readable").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).expect("sources are text"));
        }
    }
}

#[test]
fn what_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = ["ARCHITECTURE.md", "docs/lives.md"]
        .map(|name| fs::read_to_string(root.join(name)).expect("the page is there"))
        .join("\n");
    let server = root.join("crates/server");
    // Inside a row of the table of rooms a path may begin in its room.
    let rooms = [
        "",
        "src",
        "src/command",
        "src/observe",
        "src/pubsub",
        "src/report",
        "src/shared",
    ];
    let rooms = rooms
        .into_iter()
        .chain(["src/persistence", "src/values", "src/net"]);
    let places: Vec<PathBuf> = [root.clone()]
        .into_iter()
        .chain(rooms.map(|room| server.join(room)))
        .collect();
    let mut text = String::new();
    for name in ["keyspace", "log", "server", "sys", "resp"] {
        sources(&root.join("crates").join(name).join("src"), &mut text);
    }
    let mut missing = Vec::new();
    for quoted in quoted(&page) {
        if is_path(quoted) && !places.iter().any(|place| place.join(quoted).exists()) {
            missing.push(quoted);
        }
        if let Some(function) = function(quoted)
            && !text.contains(&format!("fn {function}"))
        {
            missing.push(quoted);
        }
    }
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what is not there: {missing:?}"
    );
}
