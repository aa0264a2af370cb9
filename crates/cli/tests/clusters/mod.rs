//! `ferrite-cli cluster` with real servers.

mod rebalance;

use std::process::Command;

/// Standard output, standard error and exit code of `ferrite-cli cluster`.
fn cluster(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .arg("cluster")
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("no signal ended it");
    (text(&output.stdout), text(&output.stderr), code)
}
