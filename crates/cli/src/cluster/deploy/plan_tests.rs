use super::*;
use crate::cluster::deploy::found::Manager;
use crate::cluster::nodes;
use crate::cluster::ssh::Ssh;

fn wanted() -> Wanted {
    Wanted {
        nodes: "nodes.txt".into(),
        port: 6380,
        threads: 4,
        memory: "512mb".to_owned(),
        builds: false,
        source: None,
        server: None,
        dir: None,
        name: None,
        deals: false,
        is_detached: false,
        ssh: Ssh::default(),
        settings: String::new(),
    }
}

fn parse(text: &str) -> Vec<Node> {
    nodes::parse(text.as_bytes(), 6380).expect("the lines are right")
}

fn found(map: Option<&str>) -> Found {
    Found {
        dir: "/srv/it's \"50%\"".to_owned(),
        machine: "x86_64".to_owned(),
        system: "linux".to_owned(),
        address: Some([10, 0, 0, 1].into()),
        unwritable: None,
        space: String::new(),
        binary: None,
        source: None,
        config: None,
        map: map.map(|text| Map::parse(text).expect("it is a map")),
        is_running: false,
        serves: false,
        listens: Vec::new(),
        has_cargo: false,
        manager: Manager::None,
    }
}

/// Two nodes, not evenly.
const OLD: &str = "name = 'shop'\nepoch = 7\n\
    [[nodes]]\nid = 'a'\nhost = '10.0.0.1'\nport = 6380\nslots = '0-99'\n\
    [[nodes]]\nid = 'b'\nhost = '10.0.0.2'\nport = 6380\nslots = '100-16383'\n";

#[test]
fn slots_are_dealt_in_the_order_of_the_file() {
    let nodes = parse("c@10.0.0.3\n10.0.0.1 7000\n[fd00::2]\n");
    let plan = make(&wanted(), &nodes, &[found(None), found(None), found(None)]).expect("a map");
    assert_eq!(
        plan.map.to_text(),
        "name = \"ferrite\"\nepoch = 1\n\n\
         [[nodes]]\nid = \"10.0.0.3-6380\"\nhost = \"10.0.0.3\"\nport = 6380\nslots = \"0-5460\"\n\n\
         [[nodes]]\nid = \"10.0.0.1-7000\"\nhost = \"10.0.0.1\"\nport = 7000\nslots = \"5461-10922\"\n\n\
         [[nodes]]\nid = \"fd00__2-6380\"\nhost = \"fd00::2\"\nport = 6380\nslots = \"10923-16383\"\n"
    );
    assert!(plan.notes[0].starts_with("no password is set"));
    for (lines, settings) in [("127.0.0.2", ""), ("10.0.0.1", "requirepass \"x\"\n")] {
        let wanted = Wanted {
            settings: settings.to_owned(),
            ..wanted()
        };
        let plan = make(&wanted, &parse(lines), &[found(None)]).expect("a map");
        assert!(plan.notes.is_empty(), "{lines}");
    }
    let long = parse(&format!("{0}a\n{0}b\n", "long-name.".repeat(9)));
    let plan = make(&wanted(), &long, &[found(None), found(None)]).expect("ids differ");
    assert!(
        plan.map
            .nodes
            .iter()
            .all(|node| node.name.len() < ID_DIGITS)
    );
}

#[test]
fn the_same_nodes_keep_their_map() {
    for lines in ["10.0.0.1\n10.0.0.2", "10.0.0.2\n10.0.0.1"] {
        for deals in [false, true] {
            let wanted = Wanted { deals, ..wanted() };
            // One host has missed it.
            let plan =
                make(&wanted, &parse(lines), &[found(None), found(Some(OLD))]).expect("a map");
            assert_eq!(plan.map, Map::parse(OLD).expect("it is a map"));
        }
    }
}

#[test]
fn slots_stay_where_their_keys_are() {
    let three = parse("10.0.0.1\n10.0.0.2\n10.0.0.3");
    let all = [found(Some(OLD)), found(Some(OLD)), found(None)];
    let plan = make(&wanted(), &three, &all).expect("a map");
    assert_eq!(plan.map.epoch, 8);
    let slots: Vec<_> = plan
        .map
        .nodes
        .iter()
        .map(|node| node.slots.clone())
        .collect();
    assert_eq!(slots, [vec![0..=99], vec![100..=16383], vec![]]);
    assert!(
        plan.notes[0].starts_with("10.0.0.3:6380 is new and has no slots"),
        "{:?}",
        plan.notes
    );

    let one = parse("10.0.0.1");
    let Err(Failure::Other(text)) = make(&wanted(), &one, &[found(Some(OLD))]) else {
        panic!("slots are lost");
    };
    assert!(
        text.starts_with("10.0.0.2:6380 has slots of the cluster"),
        "{text}"
    );

    let deals = Wanted {
        deals: true,
        ..wanted()
    };
    let plan = make(&deals, &three, &all).expect("a map");
    assert_eq!(
        (plan.map.epoch, plan.map.nodes[1].slots.clone()),
        (8, vec![5461..=10922])
    );
    // The ids stay: the data is known by them.
    assert_eq!(plan.map.nodes[1].name, "b");
}

#[test]
fn nodes_of_another_cluster_are_left_alone() {
    let named = Wanted {
        name: Some("other".to_owned()),
        ..wanted()
    };
    let Err(Failure::Other(text)) = make(
        &named,
        &parse("10.0.0.1\n10.0.0.2"),
        &[found(None), found(Some(OLD))],
    ) else {
        panic!("it is another cluster");
    };
    assert!(
        text.starts_with(
            "10.0.0.2:6380: /srv/it's \"50%\" has a node of the cluster shop, and this is other"
        ),
        "{text}"
    );
}

#[test]
fn paths_are_quoted_for_the_server_and_for_systemd() {
    let nodes = parse("10.0.0.1");
    let text = config(&wanted(), (&nodes[0], &found(None)), "a");
    assert!(text.contains("\nbind 10.0.0.1\n"), "{text}");
    assert!(
        text.contains("\ndir \"/srv/it's \\\"50%\\\"/data\"\n"),
        "{text}"
    );
    let nodes = parse("web.example");
    let text = config(&wanted(), (&nodes[0], &found(None)), "a");
    assert!(text.contains("\nbind * -::*\n"), "{text}");
    let text = unit_text("shop", "a", "/srv/it's \"50%\"", false);
    let start = concat!(
        "\nExecStart=/bin/sh -c \"exec \\\"$$0\\\" \\\"$$1\\\"\" ",
        "\"/srv/it's \\\"50%%\\\"/ferrite-server\" \"/srv/it's \\\"50%%\\\"/ferrite.conf\"\n"
    );
    assert!(text.contains(start), "{text}");
    assert!(text.ends_with("\nWantedBy=default.target\n"), "{text}");
}

#[test]
fn a_port_is_taken_where_somebody_listens_at_the_address() {
    let listens = |address: [u8; 4], host: &str| {
        let mut found = found(None);
        found.listens = vec![address.into()];
        port_is_taken(&parse(host)[0], &found)
    };
    assert!(listens([0, 0, 0, 0], "10.0.0.1"));
    assert!(listens([10, 0, 0, 1], "10.0.0.1"));
    assert!(!listens([127, 0, 0, 1], "10.0.0.1"));
    assert!(listens([127, 0, 0, 1], "web.example"));
    let mut own = found(None);
    own.listens = vec![[10, 0, 0, 1].into()];
    own.is_running = true;
    own.config = Some("bind 10.0.0.1\nport 6380\n".to_owned());
    assert!(!port_is_taken(&parse("10.0.0.1")[0], &own));
    assert!(port_is_taken(&parse("10.0.0.1 6381")[0], &own));
}
