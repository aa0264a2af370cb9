//! `cluster deploy`, to a real sshd on loopback addresses.

mod hosts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{ferrite_server, fresh_directory};
use hosts::{Hosts, Said, write_program};

fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// The deploy went well.
fn done(said: &Said) -> &str {
    assert_eq!((said.errors.as_str(), said.code), ("", 0), "{}", said.out);
    &said.out
}

/// Keys for all nodes, through the first.
fn write_keys(hosts: &Hosts) {
    let host = &hosts.hosts[0];
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-c", "-h", &host.address, "-p", &host.port.to_string()])
        .env("HOME", &hosts.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let lines: String = (0..KEYS)
        .map(|key| format!("SET key:{key} {key}\n"))
        .collect();
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it is ours");
    let replies = String::from_utf8_lossy(&output.stdout);
    assert_eq!(replies.lines().filter(|line| *line == "OK").count(), KEYS);
}

/// How many keys `write_keys` writes.
const KEYS: usize = 300;

/// How many keys the nodes have.
fn keys(hosts: &Hosts) -> usize {
    let counts = hosts.tell("DBSIZE");
    counts
        .iter()
        .map(|count| count.trim().parse::<usize>().expect("a number"))
        .sum()
}

/// The server with something behind it: another file, and the same program.
fn other_server(hosts: &Hosts) -> PathBuf {
    let path = hosts.directory.join("ferrite-server");
    let mut bytes = fs::read(ferrite_server()).expect("it is built");
    bytes.extend_from_slice(b"another build");
    fs::write(&path, bytes).expect("it is ours");
    path
}

#[test]
fn three_hosts_are_deployed_brought_up_to_date_and_left_alone() {
    let hosts = Hosts::start(3);
    let said = hosts.deploy(&[]);
    let out = done(&said);
    for (host, slots) in hosts
        .hosts
        .iter()
        .zip(["0-5460", "5461-10922", "10923-16383"])
    {
        let line = format!(
            "{}:{}  was started: serves slots {slots}\n",
            host.address, host.port
        );
        assert!(out.contains(&line), "{out}");
        assert!(host.tell("CLUSTER INFO").contains("cluster_my_epoch:1"));
        assert_eq!(
            host.tell("CONFIG GET maxmemory").trim().lines().last(),
            Some("104857600")
        );
    }
    write_keys(&hosts);
    let pids = hosts.pids();

    // Nothing has changed.
    let said = hosts.deploy(&[]);
    assert_eq!(
        done(&said)
            .matches("is as it should be, was left alone: serves slots")
            .count(),
        3
    );
    assert_eq!(hosts.pids(), pids);

    // Another build, and another setting.
    let server = other_server(&hosts);
    let said = hosts.deploy(&["--server", text(&server), "--memory", "101mb"]);
    assert_eq!(done(&said).matches("was brought up to date").count(), 3);
    assert_eq!(keys(&hosts), KEYS);
    assert!(hosts.pids().iter().zip(&pids).all(|(new, old)| new != old));
    for host in &hosts.hosts {
        let names = fs::read_dir(host.node()).expect("it is there");
        let mut names: Vec<_> = names
            .map(|entry| entry.expect("ours").file_name())
            .collect();
        names.sort();
        let expected = [
            "built-from",
            "data",
            "ferrite-server",
            "ferrite.conf",
            "ferrite.pid",
            "map.toml",
            "messages.log",
            "start.log",
        ];
        assert_eq!(names, expected);
        assert!(host.tell("CLUSTER INFO").contains("cluster_my_epoch:1"));
        assert_eq!(
            host.tell("CONFIG GET maxmemory").trim().lines().last(),
            Some("105906176")
        );
    }

    // A fourth node: the map has another epoch, and reaches servers that go on running.
    let pids = hosts.pids();
    let fourth = hosts.hosts[1].line(hosts::free_port("127.0.0.3"));
    let options = ["--server", text(&server), "--memory", "101mb"];
    let said = hosts.deploy_to(&hosts.nodes(&fourth), &options);
    assert_eq!(
        (
            said.code,
            said.out.matches("has the new map: serves slots").count()
        ),
        (0, 3),
        "{said:?}"
    );
    assert!(
        said.out.contains("was started: serves no slots"),
        "{said:?}"
    );
    assert!(said.errors.contains("is new and has no slots"), "{said:?}");
    assert_eq!((hosts.pids(), keys(&hosts)), (pids.clone(), KEYS));
    assert!(
        hosts
            .tell("CLUSTER INFO")
            .iter()
            .all(|info| info.contains("cluster_my_epoch:2"))
    );

    // A host without its slots is not left out by mistake.
    let two: String = hosts.hosts[..2]
        .iter()
        .map(|host| host.line(host.port) + "\n")
        .collect();
    let file = hosts.directory.join("two.txt");
    fs::write(&file, two).expect("it is ours");
    let said = hosts.deploy_to(&file, &options);
    assert_eq!(said.code, 1);
    assert!(
        said.errors.contains("its keys would be served no more"),
        "{said:?}"
    );
    assert_eq!(hosts.pids(), pids);

    // The file is that of the other subcommands too. What was ended has its keys when it comes back.
    let nodes = hosts.nodes(&fourth);
    let said = hosts.cluster(&["status", text(&nodes)]);
    assert!(done(&said).contains("All 4 nodes of ferrite are up and agree on the map."));
    let said = hosts.cluster(&["stop", text(&nodes)]);
    assert_eq!(done(&said).matches("ended").count(), 4);
    let said = hosts.deploy_to(&nodes, &options);
    assert_eq!(done(&said).matches("was started: serves").count(), 4);
    assert_eq!(keys(&hosts), KEYS);
}

#[test]
fn a_host_that_fails_changes_nothing_on_the_others() {
    let hosts = Hosts::start(2);
    let said = hosts.deploy(&[]);
    done(&said);
    let pids = hosts.pids();
    let unchanged = |said: &Said, expected: &str| {
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.errors.contains(expected), "{said:?}");
        assert_eq!(hosts.pids(), pids);
        for host in &hosts.hosts {
            let map = fs::read_to_string(host.node().join("map.toml")).expect("it is there");
            assert!(map.contains("epoch = 1\n"), "{map}");
        }
    };

    // Nobody listens there.
    let port = hosts::free_port("127.0.0.4");
    let nodes = hosts.nodes(&format!("127.0.0.4:{port} 6380\n"));
    let said = hosts.deploy_to(&nodes, &[]);
    unchanged(
        &said,
        &format!(
            "127.0.0.4:6380: cannot be reached: ssh: connect to host 127.0.0.4 port {port}: Connection refused"
        ),
    );
    assert!(
        said.errors
            .contains("1 of 3 hosts failed; the other hosts are left as they are"),
        "{said:?}"
    );

    // The port is somebody else's: a node of another directory.
    let said = hosts.deploy(&["--dir", "elsewhere"]);
    let host = &hosts.hosts[1];
    unchanged(
        &said,
        &format!(
            "{0}:{1}: port {1} is in use there: another process listens at {0}",
            host.address, host.port
        ),
    );
    assert!(!host.home.join("elsewhere").exists());

    // A key that the host does not know.
    let config = hosts.write_ssh_config("refused", "other_key");
    let said = hosts.deploy(&["--ssh-config", text(&config)]);
    unchanged(
        &said,
        "Permission denied (publickey). (no password is asked for here",
    );

    // A host that is not known.
    fs::write(hosts.directory.join("known_hosts"), "").expect("it is ours");
    let said = hosts.deploy(&[]);
    unchanged(&said, "Host key verification failed. (log in once by hand");

    // A typo, before anything is sent.
    let nodes = hosts.nodes("127.0.0.4 70000\n");
    let said = hosts.deploy_to(&nodes, &[]);
    unchanged(
        &said,
        &format!("{}:4: the port of the node", nodes.display()),
    );
    assert_eq!(said.out, "");
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let hosts = Hosts::start(2);
    // The data of another cluster's node.
    let host = &hosts.hosts[1];
    fs::create_dir_all(host.node().join("data")).expect("it is ours");
    let other = format!("{:040x} x other\n", 7);
    fs::write(host.node().join("data/cluster-node"), other).expect("it is ours");
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    let expected = "belongs to the node 0000000000000000000000000000000000000007 x other of a cluster, and this is";
    assert!(said.errors.contains(expected), "{said:?}");
    let expected = "1 of 2 hosts failed; nothing was changed, on no host";
    assert!(said.errors.contains(expected), "{said:?}");
    fs::remove_file(host.node().join("data/cluster-node")).expect("it is ours");

    // Something that is found by the start alone.
    fs::write(host.node().join("data/appendonlydir"), "no directory").expect("it is ours");
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    assert!(
        said.errors
            .contains("1 of 2 hosts failed; the other nodes serve"),
        "{said:?}"
    );
    assert_eq!(hosts.hosts[0].tell("PING"), "PONG\n");
    // It is mended, and the node starts the next time.
    fs::remove_file(host.node().join("data/appendonlydir")).expect("it is ours");
    let said = hosts.deploy(&[]);
    assert!(
        done(&said).contains("was left alone") && said.out.contains("was started"),
        "{said:?}"
    );
    write_keys(&hosts);
    let pids = hosts.pids();

    // A setting that it does not know, before anything is stopped.
    let said = hosts.deploy(&["--memory", "many"]);
    assert_eq!(said.code, 1);
    assert!(
        said.errors.contains("cannot run the server there: ") && said.errors.contains("maxmemory"),
        "{said:?}"
    );
    assert_eq!(hosts.pids(), pids);
    assert!(!host.node().join("ferrite.conf.new").exists());

    // A server that does not run there.
    let broken = hosts.directory.join("broken");
    write_program(
        &broken,
        "echo \"libc.so.6: version GLIBC_2.99 not found\" >&2; exit 1",
    );
    let said = hosts.deploy(&["--server", text(&broken)]);
    assert_eq!(said.code, 1);
    let expected = "cannot run the server there: libc.so.6: version GLIBC_2.99 not found (--build builds it there)";
    assert_eq!(said.errors.matches(expected).count(), 2, "{said:?}");
    assert_eq!(hosts.pids(), pids);

    // A server that does not start: the one before comes back.
    let real = ferrite_server().display();
    let script = format!(
        "case $1 in\n--health) exec '{real}' \"$@\" ;;\n--*) exit 0 ;;\nesac\necho 'broken in a new way' >&2\nexit 3"
    );
    write_program(&broken, &script);
    let said = hosts.deploy(&["--server", text(&broken)]);
    assert_eq!(said.code, 1);
    for expected in [
        "the node does not serve: broken in a new way",
        "the server before, with its map, serves again",
    ] {
        assert_eq!(said.errors.matches(expected).count(), 2, "{said:?}");
    }
    assert_eq!(keys(&hosts), KEYS);
    let said = hosts.deploy(&[]);
    assert_eq!(done(&said).matches("was left alone").count(), 2);
}

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
        "echo run >>'{0}/builds'\n[ ! -e target/large ] && mkdir -p target/release && cp '{real}' target/release/ferrite-server",
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

#[test]
fn a_host_without_space_is_sent_nothing() {
    let hosts = Hosts::start(1);
    let host = &hosts.hosts[0];
    host.replace_program(
        "df",
        "printf '%s\\n' 'Filesystem 1024-blocks Used Available Capacity Mounted on' '/dev/small disk 9000 1000 8000 12% /home'",
    );
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    assert!(
        said.errors.contains("no space: ") && said.errors.contains("df says /dev/small disk 9000"),
        "{said:?}"
    );
    assert!(!host.node().exists());

    // A disk that is full although it says otherwise.
    fs::remove_file(host.programs.join("df")).expect("it is ours");
    host.replace_program("cat", "case $* in '') echo 'cat: write error: No space left on device' >&2; exit 1 ;; esac\nexec /bin/cat \"$@\"");
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    let expected = "cannot copy the server: cat: write error: No space left on device (the disk of the host is full)";
    assert!(said.errors.contains(expected), "{said:?}");
    // Nothing of it is left.
    assert!(!host.node().exists(), "{said:?}");
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
