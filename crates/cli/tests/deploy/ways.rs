//! Hosts of other kinds, and other ways to begin.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::hosts::{self, Hosts, write_program};
use super::{done, text};
use crate::support::{ferrite_server, fresh_directory};

#[test]
fn another_architecture_builds_there() {
    let hosts = Hosts::start(1);
    let host = &hosts.hosts[0];
    // Sources that look like ours.
    let source = hosts.directory.join("source");
    fs::create_dir_all(source.join("crates/server")).expect("it is ours");
    fs::create_dir_all(source.join("target")).expect("it is ours");
    fs::write(source.join("target/large"), "never sent").expect("it is ours");
    fs::write(source.join("Cargo.toml"), "[workspace]\n").expect("it is ours");
    let options = ["--source", text(&source)];

    host.replace_program(
        "uname",
        "[ \"$1\" = -m ] && echo riscv64 || exec /usr/bin/uname \"$@\"",
    );
    // `command -v` finds a cargo of this machine too: the host's path is made of what a system has.
    host.replace_program("cargo", "echo 'error: it does not compile' >&2; exit 101");
    let said = hosts.deploy(&options);
    assert_eq!(said.code, 1);
    assert!(
        said.errors
            .contains("cannot build the server: error: it does not compile"),
        "{said:?}"
    );

    let real = ferrite_server().display();
    let cargo = format!(
        "echo run >>'{0}/builds'\n[ ! -e target/large ] && mkdir -p target/release && cp '{real}' \
         target/release/ferrite-server",
        hosts.directory.display()
    );
    host.replace_program("cargo", &cargo);
    let said = hosts.deploy(&options);
    let out = done(&said);
    for expected in [
        "copying the sources",
        "building",
        "was started: serves slots 0-16383",
    ] {
        assert!(out.contains(expected), "{out}");
    }
    // The same sources are not built again, others are; what was built before is there.
    let said = hosts.deploy(&options);
    assert!(done(&said).contains("was left alone"), "{said:?}");
    fs::write(source.join("new"), "x").expect("it is ours");
    fs::remove_file(host.programs.join("uname")).expect("it is ours");
    let said = hosts.deploy(&["--build", "--source", text(&source)]);
    assert!(done(&said).contains("was brought up to date"), "{said:?}");
    let builds = fs::read_to_string(hosts.directory.join("builds")).expect("it was run");
    assert_eq!(builds.lines().count(), 2);
    assert!(host.node().join("source/new").exists());
}

#[test]
fn a_host_without_cargo_says_so() {
    let hosts = Hosts::start_bare(1);
    let host = &hosts.hosts[0];
    // The programs that it has are enough for a node. Its password is that of the look whether it serves.
    let options = [
        "--dir",
        "~/a b/",
        "--detached",
        "--",
        "--requirepass",
        "it's \"secret\"",
    ];
    let said = hosts.deploy(&options);
    done(&said);
    let answer = host.tell("PING");
    assert!(answer.starts_with("NOAUTH"), "{answer}");
    assert!(
        host.home
            .join(format!("a b/{}/ferrite-server", host.port))
            .exists()
    );
    let uname = "[ \"$1\" = -m ] && echo riscv64 || echo Linux";
    host.replace_program("uname", uname);
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    let expected = "there is no cargo: it is linux riscv64, and ferrite-server here is for linux";
    assert!(said.errors.contains(expected), "{said:?}");
    fs::remove_file(host.programs.join("uname")).expect("it is ours");
    let said = hosts.deploy(&["--build"]);
    assert!(
        said.errors.contains("there is no cargo: --build needs it"),
        "{said:?}"
    );
    assert!(!host.node().exists());
}

/// A service manager that starts what a unit says.
const SYSTEMCTL: &str = r#"
echo "$*" >>"$HOME/calls"
while :; do case $1 in --*) shift ;; *) break ;; esac; done
case $1 in
is-system-running) echo degraded; exit 1 ;;
is-active) echo activating ;;
restart)
    line=$(sed -n 's/^ExecStart=//p' "$HOME/.config/systemd/user/$2" | sed 's/\$\$/\\$/g; s/%%/%/g')
    nohup sh -c "exec $line" >>"$HOME/out" 2>&1 </dev/null &
    ;;
esac
"#;

#[test]
fn a_user_that_lingers_has_a_service() {
    let hosts = Hosts::start(1);
    let host = &hosts.hosts[0];
    host.replace_program("systemctl", SYSTEMCTL);
    host.replace_program(
        "id",
        "[ \"$1\" = -u ] && echo 1000 || exec /usr/bin/id \"$@\"",
    );
    host.replace_program("loginctl", "echo Linger=yes");
    let said = hosts.deploy(&[]);
    done(&said);
    assert_eq!(host.tell("PING"), "PONG\n");
    let calls = fs::read_to_string(host.home.join("calls")).expect("it was called");
    let unit = format!("ferrite-127.0.0.2-{}.service", host.port);
    for expected in [
        "--user daemon-reload\n".to_owned(),
        format!("--user --quiet enable {unit}\n"),
        format!("--user --no-block restart {unit}\n"),
    ] {
        assert!(calls.contains(&expected), "{calls}");
    }
    let text = fs::read_to_string(host.home.join(".config/systemd/user").join(unit));
    let text = text.expect("it was written");
    assert!(
        text.contains("Type=notify\n") && text.ends_with("WantedBy=default.target\n"),
        "{text}"
    );
    // Brought up to date by the same manager.
    let pids = hosts.pids();
    let said = hosts.deploy(&["--memory", "101mb"]);
    assert!(done(&said).contains("was brought up to date"));
    assert_ne!(hosts.pids(), pids);
}

#[test]
fn the_script_finds_the_program_or_builds_it() {
    let directory = fresh_directory("run_cluster");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/run_cluster");
    let tools = directory.join("tools");
    hosts::link_programs(&["bash", "dirname", "env", "mkdir", "mv", "sh"], &tools);
    let run = |programs: &str, variable: (&str, &Path), words: &[&str]| {
        let output = Command::new(&script)
            .args(words)
            .env("CARGO_TARGET_DIR", directory.join("target"))
            .env(
                "PATH",
                format!("{}:{}", directory.join(programs).display(), tools.display()),
            )
            .env(variable.0, variable.1)
            .output();
        hosts::said(output.expect("the script runs"))
    };
    for (programs, name, text) in [
        ("path", "ferrite-cli", "printf '<%s>' path \"$@\""),
        ("release", "ferrite-cli", "printf '<%s>' release \"$@\""),
        (
            "cargo",
            "cargo",
            "mkdir -p \"$CARGO_TARGET_DIR\" && mv \"${0%/*/*}/release\" \"$CARGO_TARGET_DIR\"; echo built",
        ),
    ] {
        fs::create_dir(directory.join(programs)).expect("it is ours");
        write_program(&directory.join(programs).join(name), text);
    }
    // The one that is named; that of the tests.
    let own = Path::new(env!("CARGO_BIN_EXE_ferrite-cli"));
    let said = run("none", ("FERRITE_CLI", own), &[]);
    assert!(done(&said).contains("deploy NODES"), "{said:?}");
    let said = run("none", ("FERRITE_CLI", own), &["deploy", "/nowhere"]);
    assert_eq!(
        (said.code, said.errors.as_str()),
        (1, "cannot read /nowhere: No such file or directory\n")
    );
    // That of the PATH.
    let said = run("path", ("FERRITE_CLI", Path::new("")), &["stop", "a b", ""]);
    assert_eq!(done(&said), "<path><cluster><stop><a b><>");
    // One that is built, which is only said on standard error, and found the next time.
    let said = run("cargo", ("FERRITE_CLI", Path::new("")), &["status", "x"]);
    assert_eq!(
        (said.out.as_str(), said.code),
        ("<release><cluster><status><x>", 0)
    );
    assert!(said.errors.ends_with("built\n"), "{said:?}");
    write_program(&directory.join("target/release/ferrite-server"), "");
    let said = run("cargo", ("FERRITE_CLI", Path::new("")), &["status", "x"]);
    assert_eq!(done(&said), "<release><cluster><status><x>");
    fs::remove_dir_all(directory).expect("it is ours");
}
