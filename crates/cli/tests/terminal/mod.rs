//! The client at a real terminal: what a person types, and what the screen shows then.

use crate::support;

pub(crate) mod tmux;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::{Kind, PATIENCE, Server, fresh_directory};
use tmux::Terminal;

/// A server, a terminal with the client at its prompt, and the prompt.
fn at_prompt(kind: Kind) -> (Server, Terminal, String) {
    let server = Server::start(kind, &[]);
    let terminal = Terminal::start(&format!("-p {}", server.port));
    let prompt = format!("127.0.0.1:{}>", server.port);
    terminal.wait_for_line(&prompt);
    (server, terminal, prompt)
}

/// Waits until the server says so of its clients; who asks is one of them.
fn wait_for_clients(server: &Server, expected: &str) {
    let end = Instant::now() + PATIENCE;
    while !server.tell("INFO clients").contains(expected) {
        assert!(Instant::now() < end, "{}", server.tell("INFO clients"));
        sleep(Duration::from_millis(30));
    }
}

fn history(terminal: &Terminal) -> String {
    fs::read_to_string(terminal.home().join(".ferritecli_history")).unwrap_or_default()
}

#[test]
fn commands_are_run_and_the_prompt_tells_where() {
    let (server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.enter("SET k \"a b\\x00\"", "OK");
    terminal.enter("get k", "\"a b\\x00\"");
    terminal.enter("3 INCR n", "(integer) 3");
    assert!(
        terminal
            .screen()
            .contains("(integer) 1\n(integer) 2\n(integer) 3\n")
    );
    terminal.enter("SELECT 5", "OK");
    terminal.wait_for_line(&format!("127.0.0.1:{}[5]>", server.port));
    terminal.enter("get \"k\"x", "Invalid argument(s)");
    terminal.enter("GET", "(error) ERR wrong number of arguments");
    terminal.enter("SELECT 0", "OK");
    terminal.wait_for_line(&prompt);
    terminal.enter("exit", "ended with 0");
}

#[test]
fn the_prompt_moves_along_in_a_cluster() {
    let cluster = support::cluster::Cluster::start(support::Kind::Redis);
    let (first, last) = (&cluster.nodes[0], &cluster.nodes[2]);
    let terminal = Terminal::start(&format!("-c -p {}", first.port));
    terminal.wait_for_line(&format!("127.0.0.1:{}>", first.port));
    terminal.enter("SET foo 1", "OK");
    let told = format!(
        "-> Redirected to slot [12182] located at 127.0.0.1:{}",
        last.port
    );
    terminal.wait_for(&told);
    terminal.wait_for_line(&format!("127.0.0.1:{}>", last.port));
    terminal.enter("GET bar", "(nil)");
    terminal.wait_for_line(&format!("127.0.0.1:{}>", first.port));
    terminal.enter("exit", "ended with 0");
}

#[test]
fn a_transaction_shows_in_the_prompt() {
    let (server, terminal, prompt) = at_prompt(Kind::Redis);
    let inside = format!("127.0.0.1:{}(TX)>", server.port);
    terminal.enter("MULTI", "OK");
    terminal.wait_for_line(&inside);
    terminal.enter("INCR n", "QUEUED");
    terminal.wait_for_line(&inside);
    terminal.enter("EXEC", "1) (integer) 1");
    terminal.wait_for_line(&prompt);
    // What was selected inside and not executed is undone.
    terminal.enter("MULTI", "OK");
    terminal.enter("SELECT 3", "QUEUED");
    terminal.wait_for_line(&format!("127.0.0.1:{}[3](TX)>", server.port));
    terminal.enter("DISCARD", "OK");
    terminal.wait_for_line(&prompt);
}

#[test]
fn tab_completes_commands_tokens_and_keys() {
    let (_server, terminal, _) = at_prompt(Kind::Ferrite);
    terminal.type_text("set user:");
    terminal.type_text("1 hello");
    terminal.press(&["Enter"]);
    terminal.wait_for("OK");
    terminal.type_text("strl");
    terminal.press(&["Tab"]);
    terminal.wait_for("> strlen key");
    terminal.type_text("us");
    terminal.press(&["Tab"]);
    terminal.wait_for("> strlen user:1");
    terminal.press(&["Enter"]);
    terminal.wait_for("(integer) 5");
    terminal.type_text("CONFIG RE");
    terminal.press(&["Tab"]);
    terminal.wait_for("RESETSTAT  REWRITE");
    terminal.press(&["C-u"]);
    terminal.type_text("config set maxmemory-p");
    terminal.press(&["Tab"]);
    terminal.wait_for("> config set maxmemory-policy");
    terminal.press(&["C-u"]);
    terminal.type_text("GETEX user:1 PE");
    terminal.press(&["Tab"]);
    terminal.wait_for("> GETEX user:1 PERSIST");
    terminal.press(&["Enter"]);
    terminal.wait_for("\"hello\"");
    terminal.type_text("help @stri");
    terminal.press(&["Tab", "Enter"]);
    terminal.wait_for("SETRANGE key offset value");
}

#[test]
fn keys_that_were_found_are_completed() {
    let (server, terminal, _) = at_prompt(Kind::Ferrite);
    assert_eq!(server.tell("SET somebody-elses-key 1"), "+OK\r\n");
    terminal.enter("scan 0", "\"somebody-elses-key\"");
    terminal.type_text("get some");
    terminal.press(&["Tab"]);
    terminal.wait_for("> get somebody-elses-key");
}

#[test]
fn hints_tell_what_is_missing_until_they_are_not_wanted() {
    let (_server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.type_text("setex");
    terminal.wait_for_line(&format!("{prompt} setex key seconds value"));
    terminal.type_text(" k");
    terminal.wait_for_line(&format!("{prompt} setex k seconds value"));
    terminal.press(&["C-u"]);
    terminal.wait_for_line(&prompt);
    terminal.type_text(":set nohints");
    terminal.press(&["Enter"]);
    terminal.type_text("setex");
    terminal.wait_for_line(&format!("{prompt} setex"));
    terminal.press(&["C-u"]);
    terminal.enter(":set nonsense", "unknown ferrite-cli preference 'nonsense'");
}

#[test]
fn a_servers_own_commands_are_known_and_others_are_not() {
    let (_server, terminal, _) = at_prompt(Kind::Redis);
    terminal.type_text("lpu");
    terminal.press(&["Tab"]);
    terminal.wait_for("lpush   lpushx");
    terminal.press(&["C-u"]);
    terminal.type_text("lpush");
    terminal.wait_for("> lpush key element [element ...]");
    terminal.wait_for_color("\x1b[1mlpush");
    terminal.press(&["C-u"]);
    // Ferrite has this one, this server has not.
    terminal.type_text("delifeq k v");
    terminal.wait_for_color("\x1b[31mdelifeq");
    terminal.press(&["C-u"]);
    terminal.type_text("get k too-much");
    terminal.wait_for_color("\x1b[31mtoo-much");
}

#[test]
fn history_lasts_and_is_searched() {
    let (server, terminal, prompt) = at_prompt(Kind::Ferrite);
    for line in [
        "SET first 1",
        "SET second 2",
        "SET second 2",
        "GET \"two\\x20words\"",
    ] {
        terminal.type_text(line);
        terminal.press(&["Enter"]);
    }
    terminal.wait_for("(nil)");
    terminal.press(&["Up", "Up"]);
    terminal.wait_for("> SET second 2 [NX|XX");
    terminal.press(&["C-c"]);
    terminal.wait_for_line(&prompt);
    terminal.enter("exit", "ended with 0");
    let lines = history(&terminal);
    assert_eq!(lines.matches("SET second 2").count(), 1, "{lines}");
    terminal.restart(&format!("-p {}", server.port));
    terminal.wait_for_line(&prompt);
    terminal.press(&["C-r"]);
    terminal.type_text("fir");
    terminal.wait_for("SET first 1");
    terminal.press(&["Enter"]);
    terminal.wait_for("OK");
    use std::os::unix::fs::PermissionsExt;
    let path = terminal.home().join(".ferritecli_history");
    let mode = fs::metadata(path)
        .expect("it was written")
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn secrets_are_neither_shown_nor_kept() {
    let server = Server::start(Kind::Ferrite, &["--requirepass", "sesame"]);
    let terminal = Terminal::start(&format!("-p {}", server.port));
    terminal.enter("GET k", "(error) NOAUTH Authentication required.");
    terminal.type_text("AUTH sesame");
    let screen = terminal.wait_for("AUTH ******");
    assert!(!screen.contains("sesame"), "{screen}");
    terminal.press(&["Enter"]);
    terminal.wait_for("OK");
    terminal.enter(
        "CONFIG SET requirepass seasam",
        "> CONFIG SET requirepass ******\nOK",
    );
    terminal.enter("GET k", "(nil)");
    terminal.press(&["Up", "Up"]);
    terminal.wait_for("> GET k");
    assert!(!terminal.screen().contains("ses"), "{}", terminal.screen());
    terminal.press(&["C-c"]);
    terminal.wait_for_line(&format!("127.0.0.1:{}>", server.port));
    terminal.enter("exit", "ended with 0");
    let lines = history(&terminal);
    assert!(lines.contains("GET k"), "{lines}");
    assert!(
        !lines.contains("AUTH") && !lines.contains("requirepass"),
        "{lines}"
    );
}

#[test]
fn without_colors_secrets_stay_hidden() {
    let server = Server::start(Kind::Ferrite, &[]);
    let arguments = format!("-p {}", server.port);
    let terminal = Terminal::start_in(fresh_directory("terminal"), "NO_COLOR=1", &arguments);
    terminal.type_text("auth user sesame");
    terminal.wait_for("auth **** ******");
    let screen = terminal.colors();
    assert!(
        !screen.contains("sesame") && !screen.contains('\x1b'),
        "{screen:?}"
    );
}

#[test]
fn a_password_is_asked_for() {
    let server = Server::start(Kind::Ferrite, &["--requirepass", "sesame"]);
    let terminal = Terminal::start(&format!("-p {} --askpass PING", server.port));
    terminal.wait_for("Please input password:");
    terminal.type_text("sesame");
    terminal.wait_for("Please input password: ******");
    terminal.press(&["Enter"]);
    terminal.wait_for("PONG");
    terminal.wait_for("ended with 0");
}

#[test]
fn a_quote_goes_on_in_the_next_line() {
    let (_server, terminal, _) = at_prompt(Kind::Ferrite);
    terminal.type_text("set k \"one");
    terminal.press(&["Enter"]);
    terminal.type_text("two\"");
    terminal.press(&["Enter"]);
    terminal.wait_for("OK");
    terminal.enter("get k", "\"one\\ntwo\"");
}

#[test]
fn lines_that_are_pasted_are_commands() {
    let (_server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.paste("set a \"x\ny\"\nset b 2\n\nmget a b | tr '\\n' ' '; echo");
    terminal.wait_for("; echo");
    assert_eq!(
        terminal.screen().matches(&prompt).count(),
        1,
        "it only runs when Enter is pressed"
    );
    terminal.press(&["Enter"]);
    terminal.wait_for("x y 2");
    assert_eq!(terminal.screen().matches("OK").count(), 2);
}

#[test]
fn a_server_that_was_told_to_end_has_ended() {
    let (_server, terminal, _) = at_prompt(Kind::Ferrite);
    terminal.enter("SHUTDOWN NOSAVE", "not connected>");
    let screen = terminal.screen();
    assert!(!screen.contains("Error"), "{screen}");
}

#[test]
fn ctrl_c_drops_the_line_and_ctrl_d_ends() {
    let (_server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.type_text("set k v");
    terminal.press(&["C-c"]);
    terminal.wait_for_line(&prompt);
    terminal.enter("exists k", "(integer) 0");
    terminal.press(&["C-d"]);
    terminal.wait_for("ended with 0");
}

#[test]
fn replies_go_through_other_programs() {
    let (_server, terminal, _) = at_prompt(Kind::Ferrite);
    terminal.enter("mset a 1 b 2 c 3", "OK");
    terminal.enter("mget c b a | sort | tr '\\n' ';'; echo", "1;2;3;");
    terminal.enter("get a | sed 's/^/the value is /'", "the value is 1");
    terminal.enter("get a | no-such-program", "not found");
    terminal.enter("get a |", "no program behind the bar");
    terminal.enter("set pipe '|'", "OK");
    terminal.enter("get pipe", "\"|\"");
}

#[test]
fn long_replies_go_to_a_pager() {
    let (_server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.script("pager", "echo pages: $(wc -l)");
    terminal.enter("MGET 1 2 3", "3) (nil)");
    let keys: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    terminal.enter(&format!("MGET {}", keys.join(" ")), "pages: 40");
    terminal.wait_for_line(&prompt);
    terminal.enter(":set nopager", "nopager");
    terminal.enter(&format!("MGET {}", keys.join(" ")), "40) (nil)");
    terminal.enter(":set", ":set hints\n:set nopager\n");
}

#[test]
fn the_time_that_is_shown_is_the_servers_not_the_readers() {
    let (_server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.script("pager", "cat > pages; sleep 3; echo enough");
    let keys: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    terminal.enter(&format!("MGET {}", keys.join(" ")), "enough");
    terminal.wait_for_line(&prompt);
    let screen = terminal.screen();
    // A time is shown if the server was slow, which it may be; but it did not take what the pager took.
    let times = screen.lines().filter_map(|line| {
        let number = line.strip_prefix('(')?.strip_suffix("s)")?;
        number.parse::<f64>().ok()
    });
    assert!(times.into_iter().all(|seconds| seconds < 3.0), "{screen}");
}

#[test]
fn what_never_ends_is_ended_by_ctrl_c() {
    let (server, terminal, prompt) = at_prompt(Kind::Ferrite);
    terminal.enter("MONITOR", "OK");
    assert_eq!(server.tell("SET watched 1"), "+OK\r\n");
    terminal.wait_for("\"SET\" \"watched\" \"1\"");
    terminal.press(&["C-c"]);
    terminal.wait_for_line(&prompt);
    terminal.enter("GET watched", "\"1\"");
}

#[test]
fn a_subscription_is_ended_by_ctrl_c() {
    for kind in [Kind::Ferrite, Kind::Redis] {
        let (server, terminal, prompt) = at_prompt(kind);
        terminal.enter(
            "SUBSCRIBE news",
            "Reading messages... (press Ctrl-C to quit)",
        );
        terminal.wait_for("3) (integer) 1");
        assert_eq!(server.tell("PUBLISH news hello"), ":1\r\n");
        terminal.wait_for("3) \"hello\"");
        terminal.press(&["C-c"]);
        terminal.wait_for_line(&prompt);
        terminal.enter("ECHO again", "\"again\"");
    }
}

#[test]
fn a_wait_is_ended_by_ctrl_c() {
    let (server, terminal, prompt) = at_prompt(Kind::Redis);
    terminal.type_text("BLPOP nothing 0");
    terminal.press(&["Enter"]);
    wait_for_clients(&server, "blocked_clients:1\r\n");
    terminal.press(&["C-c"]);
    terminal.wait_for_line(&prompt);
    terminal.enter("ECHO again", "\"again\"");
}

#[test]
fn pushes_of_resp3_are_shown_when_they_come() {
    let server = Server::start(Kind::Redis, &[]);
    let terminal = Terminal::start(&format!("-3 -p {}", server.port));
    terminal.enter("CLIENT TRACKING ON", "OK");
    terminal.enter("GET k", "(nil)");
    assert_eq!(server.tell("SET k v"), "+OK\r\n");
    terminal.enter("PING", "PONG");
    terminal.wait_for("-> invalidate: 'k'");
    terminal.enter("CONFIG GET databases", "1# \"databases\" => \"16\"");
    terminal.enter(
        "DEBUG PROTOCOL bignum",
        "(big number) 1234567999999999999999999999999999999",
    );
    terminal.enter("UNSUBSCRIBE", "1) \"unsubscribe\"");
    terminal.enter("ECHO again", "\"again\"");
}

#[test]
fn a_server_may_go_and_come_back() {
    let (mut server, terminal, prompt) = at_prompt(Kind::Redis);
    terminal.enter("SELECT 2", "OK");
    server.stop();
    terminal.enter("PING", "Could not connect to Redis at 127.0.0.1:");
    terminal.wait_for_line("not connected>");
    server.start_again(Kind::Redis, &[]);
    terminal.enter("PING", "PONG");
    // The database is still the one that was selected.
    terminal.wait_for_line(&format!("{}[2]>", prompt.trim_end_matches('>')));
    // A connection that was lost in between is replaced without a word.
    assert!(server.tell("CLIENT KILL TYPE normal").starts_with(':'));
    wait_for_clients(&server, "connected_clients:1\r\n");
    terminal.enter("ECHO again", "\"again\"");
    assert_eq!(terminal.screen().matches("Could not").count(), 1);
    // But a transaction cannot go on.
    terminal.enter("MULTI", "[2](TX)>");
    assert!(server.tell("CLIENT KILL TYPE normal").starts_with(':'));
    // It is reset if the server has not read what comes after the kill.
    terminal.enter("PING", "Error: ");
    terminal.wait_for_line("not connected>");
}

#[test]
fn another_server_is_connected_to() {
    let (_server, terminal, _) = at_prompt(Kind::Ferrite);
    let other = Server::start(Kind::Ferrite, &[]);
    terminal.enter(&format!("connect 127.0.0.1 {}", other.port), "connect");
    terminal.wait_for_line(&format!("127.0.0.1:{}>", other.port));
    terminal.enter(
        &format!("connect redis://127.0.0.1:{}/3", other.port),
        "connect",
    );
    terminal.wait_for_line(&format!("127.0.0.1:{}[3]>", other.port));
    terminal.enter(
        "connect 127.0.0.1 1",
        "Could not connect to Redis at 127.0.0.1:1: Connection refused",
    );
    terminal.wait_for_line("not connected>");
    terminal.enter(
        &format!("connect unix://{}", other.socket().display()),
        "connect",
    );
    terminal.wait_for_line(&format!("redis {}>", other.socket().display()));
}

#[test]
fn help_needs_no_server() {
    let terminal = Terminal::start("-p 1");
    terminal.wait_for_line("not connected>");
    terminal.enter(
        "help strlen",
        "summary: Returns the length of a value in bytes",
    );
    terminal.type_text("strlen");
    terminal.wait_for_line("not connected> strlen key");
    terminal.press(&["C-u"]);
    terminal.enter("help", "help @GROUP");
    terminal.enter("clear", "");
    terminal.wait_for_line("not connected>");
}

#[test]
fn preferences_are_read_from_a_file() {
    let server = Server::start(Kind::Ferrite, &[]);
    let directory = fresh_directory("terminal");
    let lines = "# mine\n:set nohints\n:set output csv\nnonsense\n";
    fs::write(directory.join(".ferriteclirc"), lines).expect("the directory is ours");
    let terminal = Terminal::start_in(directory, "", &format!("-p {}", server.port));
    terminal.wait_for(".ferriteclirc: unknown ferrite-cli internal command 'nonsense'");
    terminal.enter("MGET a b", "NULL,NULL");
    terminal.type_text("strlen");
    terminal.wait_for_line(&format!("127.0.0.1:{}> strlen", server.port));
}

#[test]
fn loading_shows_its_progress() {
    let server = Server::start(Kind::Ferrite, &[]);
    let directory = fresh_directory("terminal");
    let requests: String = (0..1000)
        .map(|number| format!("SET k{number} v\r\n"))
        .collect();
    fs::write(directory.join("requests"), requests).expect("the directory is ours");
    // The input ends when the test says so.
    let feed = "(cat requests; while ! [ -e enough ]; do sleep 0.1; done)";
    let client = env!("CARGO_BIN_EXE_ferrite-cli");
    let arguments = format!("--version; {feed} | {client} -p {} --pipe", server.port);
    let terminal = Terminal::start_in(directory, "", &arguments);
    terminal.wait_for("KiB");
    fs::write(terminal.home().join("enough"), "").expect("the directory is ours");
    let screen = terminal.wait_for("ended with 0");
    assert!(screen.contains("errors: 0, replies: 1000"), "{screen}");
    assert!(!screen.contains("KiB"), "{screen}");
}

#[test]
fn numbers_go_on_when_the_server_comes_back() {
    let mut server = Server::start(Kind::Redis, &[]);
    let terminal = Terminal::start(&format!("-p {} --stat -i 0.1", server.port));
    terminal.wait_for("keys       mem      clients");
    server.stop();
    terminal.wait_for("Reconnecting... ");
    server.start_again(Kind::Redis, &[]);
    assert_eq!(server.tell("SET k v"), "+OK\r\n");
    terminal.wait_for("\n1          ");
    terminal.press(&["C-c"]);
    terminal.wait_for("ended with 130");
}

#[test]
fn a_long_look_at_keys_can_be_ended() {
    let server = Server::start(Kind::Ferrite, &[]);
    for number in 0..50 {
        assert_eq!(server.tell(&format!("SET k{number} v")), "+OK\r\n");
    }
    let terminal = Terminal::start(&format!("-p {} --scan --count 1 -i 1000", server.port));
    terminal.wait_for("\"k");
    terminal.press(&["C-c"]);
    terminal.wait_for("ended with 0");
    drop(terminal);
    let terminal = Terminal::start(&format!("-p {} --keystats --count 1", server.port));
    let screen = terminal.wait_for("ended with 0");
    assert!(screen.contains("string          50 100.00%"), "{screen}");
}
