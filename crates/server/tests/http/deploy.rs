//! What `deploy` ships: the container's health check, and for Prometheus and Grafana what parses, does what
//! it says, and names figures that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Server, Target};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The names of figures in a text, without what histograms add to theirs.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let figures = words.filter(|word| word.starts_with("ferrite_") || word.starts_with("process_"));
    figures
        .map(|word| {
            let endings = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
            let ending = endings.iter().find(|ending| word.ends_with(**ending));
            ending.map_or(word.to_owned(), |ending| {
                format!("{}_seconds", word.trim_end_matches(ending))
            })
        })
        .collect()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn documents_have_one_http_port_and_no_directories_of_a_machine() {
    let mut texts = vec![("README.md".to_owned(), read("README.md"))];
    for entry in fs::read_dir(root().join("docs")).expect("it is there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_some_and(|kind| kind == "md") {
            let text = fs::read_to_string(&path).expect("it is text");
            texts.push((path.display().to_string(), text));
        }
    }
    assert!(texts.len() > 10, "{}", texts.len());
    for (name, text) in &texts {
        for word in ["9121", "/work/", "/root/", "target-"] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn what_is_deployed_names_figures_that_exist() {
    let documented = names(&read("docs/metrics.md"));
    assert!(documented.len() > 40, "{documented:?}");
    for path in [
        "deploy/grafana/ferrite.json",
        "deploy/prometheus/alerts.yml",
        "deploy/prometheus/alerts_test.yml",
    ] {
        let used = names(&read(path));
        assert!(used.len() > 5, "{path}");
        let unknown: Vec<&String> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
}

#[test]
fn the_dashboard_of_grafana_is_whole() {
    let json: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/ferrite.json")).expect("it is JSON");
    let panels = json["panels"].as_array().expect("it has panels");
    let ids: BTreeSet<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().expect("it asks for something");
        assert!(
            !targets.is_empty() && targets.iter().all(|target| target["expr"].is_string()),
            "{}",
            panel["title"]
        );
    }
}

#[test]
fn alerts_are_valid_and_do_what_they_say() {
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        let output = Command::new("promtool")
            .args(arguments)
            .current_dir(root().join("deploy/prometheus"))
            .output()
            .unwrap_or_else(|error| panic!("promtool cannot be started ({error}): install Debian's package prometheus (`make setup` does it)"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

/// The arguments of a running process, without its program.
fn arguments(pid: u32) -> Vec<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("the process runs");
    let words = line.trim_end_matches('\0').split('\0');
    words.skip(1).map(str::to_owned).collect()
}

/// Runs the health check of the image for a server that was started with these arguments. In a container it
/// finds them by itself. Returns how it ended and what it said.
fn health_check(arguments: &[String]) -> (bool, String) {
    let text = read("deploy/Dockerfile");
    let (_, command) = text
        .lines()
        .find(|line| line.starts_with("HEALTHCHECK "))
        .and_then(|line| line.split_once(" CMD "))
        .expect("the image has a health check");
    let words: Vec<String> = serde_json::from_str(command).expect("it needs no shell");
    assert_eq!(words[0], "ferrite-server", "the image has no other program");
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args(&words[1..])
        .args(arguments)
        .output()
        .expect("the program is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

#[test]
fn the_health_check_works_with_any_port_and_password() {
    let target = Target::Ferrite { threads: 1 };
    for options in [&[][..], &["--requirepass", "two words"]] {
        let mut server = Server::start(target, options);
        let arguments = arguments(server.pid());
        let (is_healthy, said) = health_check(&arguments);
        assert!(is_healthy, "{said}");
        let mut client = server.client();
        client.ask("AUTH \"two words\"");
        // Whoever asks for another password lives.
        client.ask("CONFIG SET requirepass other");
        let (is_healthy, said) = health_check(&arguments);
        assert!(is_healthy, "{said}");
        server.signal(rustix::process::Signal::KILL);
        server.wait_for_exit();
        let (is_healthy, said) = health_check(&arguments);
        assert!(!is_healthy);
        assert!(said.contains("cannot connect to 127.0.0.1:"), "{said}");
    }
}

/// A process that is ended with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_health_check_works_with_a_configuration_file_and_a_unix_socket_alone() {
    let dir = std::env::temp_dir().join(format!("ferrite-health-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("the directory for temporary files is writable");
    let file = dir.join("server.conf");
    let lines = format!(
        "port 0\nunixsocket server.sock\nrequirepass secret\nappendonly no\ndir {}\n",
        dir.display()
    );
    fs::write(&file, lines).expect("the directory is the test's own");
    let started = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .arg(&file)
        .stdout(Stdio::null())
        .spawn();
    let server = Process(started.expect("the program is there"));
    let began = Instant::now();
    while !Path::new(&dir.join("server.sock")).exists() && began.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    let arguments = arguments(server.0.id());
    // The socket is there a moment before somebody listens.
    let (mut is_healthy, mut said) = health_check(&arguments);
    while !is_healthy && began.elapsed() < Duration::from_secs(60) {
        (is_healthy, said) = health_check(&arguments);
    }
    assert!(is_healthy, "{said}");
    drop(server);
    let (is_healthy, said) = health_check(&arguments);
    assert!(!is_healthy && said.contains("server.sock"), "{said}");
    fs::remove_dir_all(&dir).expect("the directory is the test's own");
}

/// Where no server is the first process, the check says what it needs.
#[test]
fn the_health_check_outside_of_a_container_says_what_it_needs() {
    let (is_healthy, said) = health_check(&[]);
    assert!(!is_healthy, "no server is the first process here");
    assert!(
        said.contains("--health needs the arguments of the server's start"),
        "{said}"
    );
}
