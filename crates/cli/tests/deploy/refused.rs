//! What does not work is told in the words of the host, and changes as little as can be.

use std::fs;

use super::hosts::{self, Hosts, Said, write_program};
use super::{KEYS, done, keys, text, write_keys};
use crate::support::ferrite_server;

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
            "127.0.0.4:6380: cannot be reached: ssh: connect to host 127.0.0.4 port {port}: Connection \
             refused"
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
    let expected = "belongs to the node 0000000000000000000000000000000000000007 x other of a cluster, and \
                    this is";
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
    let expected = "cannot run the server there: libc.so.6: version GLIBC_2.99 not found (--build builds it \
                    there)";
    assert_eq!(said.errors.matches(expected).count(), 2, "{said:?}");
    assert_eq!(hosts.pids(), pids);

    // A server that does not start: the one before comes back.
    let real = ferrite_server().display();
    let script = format!(
        "case $1 in\n--health) exec '{real}' \"$@\" ;;\n--*) exit 0 ;;\nesac\n\
         echo 'broken in a new way' >&2\nexit 3"
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
fn a_host_without_space_is_sent_nothing() {
    let hosts = Hosts::start(1);
    let host = &hosts.hosts[0];
    host.replace_program(
        "df",
        "printf '%s\\n' 'Filesystem 1024-blocks Used Available Capacity Mounted on' '/dev/small disk 9000 \
         1000 8000 12% /home'",
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
    host.replace_program(
        "cat",
        "case $* in '') echo 'cat: write error: No space left on device' >&2; exit 1 ;; esac\n\
         exec /bin/cat \"$@\"",
    );
    let said = hosts.deploy(&[]);
    assert_eq!(said.code, 1);
    let expected = "cannot copy the server: cat: write error: No space left on device (the disk of the host \
                    is full)";
    assert!(said.errors.contains(expected), "{said:?}");
    // Nothing of it is left.
    assert!(!host.node().exists(), "{said:?}");
}
