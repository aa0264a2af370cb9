//! `-c import FILE`: every key goes to its node.

use std::fmt::Write;

use super::{KINDS, ours};
use crate::support::cluster::Cluster;
use crate::support::{Kind, Server, fresh_directory};

/// What each node makes of its data.
fn digests(cluster: &Cluster) -> Vec<String> {
    let digest = |node: &Server| node.tell("DEBUG DIGEST");
    cluster.nodes.iter().map(digest).collect()
}

fn keys(cluster: &Cluster) -> Vec<String> {
    let size = |node: &Server| node.tell("DBSIZE");
    cluster.nodes.iter().map(size).collect()
}

/// Streams with a group, of up to 540 entries.
fn streams() -> String {
    let mut lines = String::new();
    for number in 0..10 {
        writeln!(lines, "XGROUP CREATE stream:{number} group 0 MKSTREAM")
            .expect("a string takes all");
        for entry in 1..=number * 60 {
            writeln!(
                lines,
                "XADD stream:{number} {entry}-1 field {number}:{entry}"
            )
            .expect("a string takes all");
        }
    }
    lines
}

#[test]
fn every_key_goes_to_its_node() {
    let directory = fresh_directory("import");
    let file = directory.join("all.rdb");
    let path = file.to_str().expect("it is text");
    let source = Cluster::start(Kind::Ferrite);
    let mut lines = String::new();
    for number in 0..5000 {
        let expiry = ["", " PXAT 32503680000000"][number % 2];
        writeln!(
            lines,
            "SET key:{number} {:0>1$}{expiry}",
            number,
            number % 300
        )
        .expect("a string takes all");
    }
    // Some need several requests.
    for number in 0..40 {
        for field in 0..number * 30 {
            writeln!(lines, "HSET hash:{number} field:{field} {number}:{field}")
                .expect("a string takes all");
        }
        if number % 2 == 1 {
            writeln!(lines, "PEXPIREAT hash:{number} 32503680000000").expect("a string takes all");
        }
    }
    let (text, told, code) = ours(&source.nodes[0], &["-c"], &lines);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    // More replies than a pipe takes would have to be read meanwhile.
    let (text, told, code) = ours(&source.nodes[0], &["-c"], &streams());
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let (_, told, code) = ours(&source.nodes[1], &["-c", "export", path], "");
    assert_eq!(code, 0, "{told}");

    for kind in KINDS {
        let target = Cluster::start(kind);
        let (text, told, code) = ours(&target.nodes[2], &["-c", "import", path], "");
        assert_eq!((told.as_str(), code), ("", 0), "{kind:?}: {text}");
        assert_eq!(text, "5049 keys written to 3 nodes\n");
        assert_eq!(digests(&target), digests(&source), "{kind:?}");
        // Once more: all keys are there.
        let arguments = ["-c", "--keep-existing", "import", path];
        let (text, ..) = ours(&target.nodes[0], &arguments, "");
        assert_eq!(
            text,
            "0 keys written to 3 nodes, 5049 left alone that the server had\n"
        );
        // Without the flag a key of another node is refused, as any other key would be.
        let (_, told, code) = ours(&target.nodes[0], &["import", path], "");
        assert!(told.contains(": MOVED "), "{told}");
        assert_eq!(code, 1);
    }

    // The map of the node that is asked is an old one.
    let target = Cluster::start(Kind::Ferrite);
    target.exchange_behind_the_first();
    let (text, told, code) = ours(&target.nodes[0], &["-c", "import", path], "");
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let (had, mut has) = (digests(&source), digests(&target));
    has.swap(1, 2);
    assert_eq!(has, had);

    // A node is gone: what was not written is told, and a second run writes the rest.
    let mut target = Cluster::start(Kind::Ferrite);
    target.nodes[1].stop();
    let (text, told, code) = ours(&target.nodes[0], &["-c", "import", path], "");
    assert_eq!((text.as_str(), code), ("", 1), "{told}");
    let address = format!("127.0.0.1:{}", target.nodes[1].port);
    assert!(told.contains(&address), "{told}");
    std::fs::remove_dir_all(directory).expect("it is ours");
}

#[test]
fn a_cluster_has_one_database() {
    let directory = fresh_directory("import");
    let file = directory.join("two.rdb");
    let path = file.to_str().expect("it is text");
    let source = Server::start(Kind::Ferrite, &[]);
    ours(&source, &[], "SET foo 1\nSET bar 2\nSELECT 3\nSET baz 3\n");
    let (_, told, code) = ours(&source, &["export", path], "");
    assert_eq!(code, 0, "{told}");
    let target = Cluster::start(Kind::Ferrite);
    let (_, told, code) = ours(&target.nodes[0], &["-c", "import", path], "");
    assert_eq!(code, 1);
    assert!(
        told.contains("1 key is in another database than 0, which a cluster does not have"),
        "{told}"
    );
    assert_eq!(keys(&target), [":0\r\n"; 3]);
    let (text, told, code) = ours(&target.nodes[0], &["-c", "-n", "0", "import", path], "");
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert_eq!(text, "2 keys written to 3 nodes\n");
    std::fs::remove_dir_all(directory).expect("it is ours");
}
