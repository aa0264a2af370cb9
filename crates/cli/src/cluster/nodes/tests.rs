use super::*;

fn one(line: &str) -> Node {
    let nodes = parse(line.as_bytes(), 6380).expect("the line is right");
    let [node] = &nodes[..] else {
        panic!("{nodes:?} of {line}");
    };
    node.clone()
}

fn wrong(text: &[u8]) -> String {
    let problems = parse(text, 6380).expect_err("the text is wrong");
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

fn node(user: Option<&str>, host: &str, ssh_port: Option<u16>, port: u16) -> Node {
    Node {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        ssh_port,
        port,
    }
}

#[test]
fn lines_are_nodes() {
    assert_eq!(
        one("ann@10.0.0.1"),
        node(Some("ann"), "10.0.0.1", None, 6380)
    );
    assert_eq!(
        one("web-1.example"),
        node(None, "web-1.example", None, 6380)
    );
    assert_eq!(one("a@h:22 7000"), node(Some("a"), "h", Some(22), 7000));
    assert_eq!(one("\th  7000 # seven\r"), node(None, "h", None, 7000));
    assert_eq!(one("h# no space"), node(None, "h", None, 6380));
    assert_eq!(one("a@[FD00::0:1]"), node(Some("a"), "fd00::1", None, 6380));
    assert_eq!(one("[::1]:2222 1"), node(None, "::1", Some(2222), 1));
    assert_eq!(one("[::1] 1").address(), "[::1]:1");
    assert_eq!(one("h 1").address(), "h:1");
    let text = "# two\n\n  \na@h\n# and\nb@h 6381\n";
    let hosts = parse(text.as_bytes(), 6380).expect("it is right");
    assert_eq!(hosts.len(), 2);
    assert_eq!((hosts[0].port, hosts[1].port), (6380, 6381));
}

/// Texts, and what is said of them.
const TYPOS: &[(&str, &str)] = &[
    (
        "",
        "1: there is no node: each is a line user@host[:sshport] [port]",
    ),
    (
        "# h\n",
        "1: there is no node: each is a line user@host[:sshport] [port]",
    ),
    (
        "h 70000",
        "1: the port of the node, behind the host, is a number from 1 to 65535, not '70000'",
    ),
    (
        "h 0",
        "1: the port of the node, behind the host, is a number from 1 to 65535, not '0'",
    ),
    (
        "h +5",
        "1: the port of the node, behind the host, is a number from 1 to 65535, not '+5'",
    ),
    (
        "h\nh2:x",
        "2: the port of ssh, behind the colon, is a number from 1 to 65535, not 'x'",
    ),
    (
        "h:",
        "1: the port of ssh, behind the colon, is a number from 1 to 65535, not ''",
    ),
    (
        "h 1 2",
        "1: nothing is expected at '2': a line is user@host[:sshport] [port]",
    ),
    (
        "@h",
        "1: the user before the @ has letters, digits and -_.$, not ''",
    ),
    (
        "-oProxyCommand=x@h",
        "1: the user before the @ has letters, digits and -_.$, not '-oProxyCommand=x'",
    ),
    (
        "a@b@h",
        "1: the user before the @ has letters, digits and -_.$, not 'a@b'",
    ),
    (
        "a@",
        "1: a host is an address or a name of letters, digits and -_., not '': \
                a line is user@host[:sshport] [port]",
    ),
    (
        "-F/etc/x",
        "1: a host is an address or a name of letters, digits and -_., not '-F/etc/x': \
                      a line is user@host[:sshport] [port]",
    ),
    (
        "h;reboot",
        "1: a host is an address or a name of letters, digits and -_., not 'h;reboot': \
                      a line is user@host[:sshport] [port]",
    ),
    (
        "10.0.0.256",
        "1: '10.0.0.256' is no IPv4 address: four numbers from 0 to 255 are expected",
    ),
    (
        "10.0.0",
        "1: '10.0.0' is no IPv4 address: four numbers from 0 to 255 are expected",
    ),
    ("fd00::1", "1: an IPv6 address goes in brackets: [fd00::1]"),
    ("[fd00::1", "1: the ] is missing in '[fd00::1'"),
    (
        "[fd00::g]",
        "1: an IPv6 address is expected in brackets, not 'fd00::g'",
    ),
    (
        "[10.0.0.1]",
        "1: an IPv6 address is expected in brackets, not '10.0.0.1'",
    ),
    (
        "[::1]22",
        "1: behind the ] comes :sshport or nothing, not '22'",
    ),
    (
        "a@h\n\nb@H:22",
        "3: H:6380 is in line 1 too: two nodes need two addresses",
    ),
    (
        "[::1] 1\n[0::1] 1",
        "2: [::1]:1 is in line 1 too: two nodes need two addresses",
    ),
];

#[test]
fn every_typo_has_its_line_and_what_is_expected() {
    for (text, expected) in TYPOS {
        assert_eq!(wrong(text.as_bytes()), *expected, "{text}");
    }
    assert_eq!(
        wrong(b"h x\nok\n\xff\n\x1b[m"),
        "1: the port of the node, behind the host, is a number from 1 to 65535, not 'x'\n\
         3: this is no text in UTF-8\n\
         4: a host is an address or a name of letters, digits and -_., not '\\u{1b}[m': \
         a line is user@host[:sshport] [port]"
    );
    let long = "h".repeat(300);
    assert!(wrong(long.as_bytes()).contains(&format!("not '{}...'", "h".repeat(60))));
    let many: String = (0..=MAX_NODES)
        .map(|number| format!("h{number}\n"))
        .collect();
    assert_eq!(
        wrong(many.as_bytes()),
        "1001: there are more than 1000 nodes"
    );
}

#[test]
fn no_bytes_make_it_panic() {
    // Signs of the format more often than others.
    const SIGNS: &[u8] = b"a1@:[]# \t\r\n-._%0123456789f\xc3\xa9\xff\0";
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut right, mut with_mistakes) = (0, 0);
    for _ in 0..20_000 {
        let length = next() % 24;
        let text: Vec<u8> = (0..length)
            .map(|_| match next() {
                random if random % 8 == 0 => (random >> 8) as u8,
                random => SIGNS[(random >> 8) as usize % SIGNS.len()],
            })
            .collect();
        match parse(&text, 6380) {
            Ok(nodes) => {
                right += 1;
                assert!(!nodes.is_empty());
                // What is taken is safe as a word of a command.
                for node in nodes {
                    assert!(
                        !node.host.starts_with('-') && !node.host.contains([' ', ';', '\'', '\0'])
                    );
                }
            }
            Err(problems) => {
                with_mistakes += 1;
                let lines = text.split(|&byte| byte == b'\n').count();
                assert!(
                    problems
                        .iter()
                        .all(|problem| (1..=lines).contains(&problem.line))
                );
            }
        }
    }
    assert!(
        right > 100 && with_mistakes > 100,
        "{right} and {with_mistakes}"
    );
}

#[test]
fn a_file_is_told_by_its_name() {
    let name = format!("ferrite-nodes-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let shown = path.display().to_string();
    let problem = read(&path, 1).expect_err("it is not there");
    assert_eq!(
        problem,
        format!("cannot read {shown}: No such file or directory")
    );
    std::fs::write(&path, "h 1\nh x\n").expect("the temporary directory is writable");
    let problem = read(&path, 1).expect_err("it is wrong");
    assert!(
        problem.starts_with(&format!("{shown}:2: the port of the node")),
        "{problem}"
    );
    std::fs::write(&path, "h x\n".repeat(30)).expect("it is ours");
    let problem = read(&path, 1).expect_err("it is wrong");
    assert!(problem.ends_with("\nand 10 more"), "{problem}");
    std::fs::write(&path, vec![b'#'; MAX_BYTES as usize + 1]).expect("it is ours");
    let problem = read(&path, 1).expect_err("it is long");
    assert!(
        problem.ends_with("it has more than 1048576 bytes"),
        "{problem}"
    );
    std::fs::remove_file(&path).expect("it is ours");
}
