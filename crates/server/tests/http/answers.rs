//! Paths, health, passwords.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::browser::Site;
use super::support::PATIENCE;

/// Waits until a path answers so.
fn wait_for(site: &Site, path: &str, status: u16, body: &str) {
    let start = Instant::now();
    loop {
        let answer = site.get(path);
        if answer.status == status && answer.body.contains(body) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{path}: still {answer:?}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_dashboard_brings_all_it_needs_and_allows_nothing_else() {
    let site = Site::start(&[]);
    let page = site.get("/");
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let policy = page
        .header("content-security-policy")
        .expect("it has a policy");
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (path, content) in [
        ("/charts.js", "text/javascript; charset=utf-8"),
        ("/dashboard.js", "text/javascript; charset=utf-8"),
        ("/dashboard.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        assert!(
            page.body.contains(&format!("\"{path}\"")),
            "the page uses {path}"
        );
        let file = site.get(path);
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, Some(content))
        );
        let elsewhere = file.body.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !elsewhere.contains("http://") && !elsewhere.contains("https://"),
            "{path}"
        );
        assert!(
            !file.body.contains("innerHTML") && !file.body.contains("eval("),
            "{path}"
        );
    }
    // The policy forbids these, so they would do nothing.
    for word in [" style=", "<style", " onclick=", "<script>"] {
        assert!(!page.body.contains(word), "{word}");
    }
    // Columns that a narrow screen has no room for stand below each other.
    for table in page.body.split("<table ").skip(1) {
        let (table, _) = table.split_once("</table>").expect("a table ends");
        let columns = table.matches("<th").count() - table.matches("<thead").count();
        assert!(
            columns < 4 || table.contains("class=\"stack\"") || table.contains("id=\"events\""),
            "{table}"
        );
    }
    // What a label means is told where the pointer rests on it.
    for tile in page.body.split("<article ").skip(1) {
        let (tile, _) = tile.split_once('>').expect("a tag ends");
        assert!(tile.contains("title=\""), "{tile}");
    }
    // A button names the span of its axis.
    let charts = site.get("/charts.js").body;
    for (name, label, seconds) in [
        ("minute", "1 min", 60),
        ("fine", "10 min", 600),
        ("coarse", "1 h", 3600),
    ] {
        let span = format!("{name}: {{ span_s: {seconds}, ");
        assert!(charts.contains(&span), "{span}");
        let button = page.body.split(&format!("id=\"range-{name}\"")).nth(1);
        let button = button.and_then(|text| text.split_once("</button>"));
        let (button, _) = button.expect("there is one for each");
        assert!(button.ends_with(&format!(">{label}")), "{button}");
    }
    let style = site.get("/dashboard.css").body;
    assert!(!style.contains("text-overflow"), "nothing is cut");
    for path in ["/nothing", "//", "/../etc/passwd", "/dashboard.js/"] {
        assert_eq!(site.get(path).status, 404, "{path}");
    }
    assert_eq!(site.get("/?a=b").status, 200);
}

#[test]
fn ready_says_why_not() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    assert_eq!(
        (site.get("/healthz").status, site.get("/readyz").status),
        (200, 200)
    );
    client.ask("SET k v");
    client.ask("CONFIG SET maxmemory 1");
    wait_for(&site, "/readyz", 503, "maxmemory");
    assert_eq!(site.get("/healthz").status, 200);
    client.ask("CONFIG SET maxmemory 0");
    wait_for(&site, "/readyz", 200, "ok");
}

#[test]
fn beside_a_script_that_lasts_the_server_is_alive_and_not_ready() {
    let site = Site::start(&["--busy-reply-threshold", "50"]);
    let (mut runner, mut client) = (site.server.client(), site.server.client());
    let script = ["EVAL", "while true do end", "0"];
    runner.send(&script).expect("the server reads");
    wait_for(&site, "/readyz", 503, "script");
    assert_eq!(site.get("/healthz").status, 200);
    for path in ["/metrics", "/stats.json", "/keys.json"] {
        wait_for(&site, path, 503, "script");
    }
    client.ask("SCRIPT KILL");
    wait_for(&site, "/readyz", 200, "ok");
    assert_eq!(site.get("/metrics").status, 200);
}

#[test]
fn while_data_is_loaded_the_server_is_alive_and_not_ready() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    for at in 0..2000 {
        client.ask(&format!("SET key:{at} value"));
    }
    client.ask("SAVE");
    let snapshot = site.server.dir().join("dump.rdb");
    let kept = std::env::temp_dir().join(format!("ferrite-http-{}.rdb", std::process::id()));
    std::fs::copy(snapshot, &kept).expect("the snapshot can be copied");
    let name = kept
        .file_name()
        .and_then(|name| name.to_str())
        .expect("the name is text");
    let folder = kept
        .parent()
        .expect("it is in a folder")
        .to_str()
        .expect("the path is text");
    // The last `--dir` counts.
    let slow = Site::start(&[
        "--dir",
        folder,
        "--dbfilename",
        name,
        "--key-load-delay",
        "100000",
        "--save",
        "",
    ]);
    let (ready, alive) = (slow.get("/readyz"), slow.get("/healthz"));
    assert_eq!((ready.status, alive.status), (503, 200), "{ready:?}");
    assert!(ready.body.contains("loaded"), "{ready:?}");
    assert!(slow.get("/metrics").body.contains("\nferrite_loading 1\n"));
    std::fs::remove_file(&kept).expect("the copy can be removed");
}

#[test]
fn with_a_password_all_but_health_wants_it() {
    let site = Site::start(&["--requirepass", "open sesame"]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(site.get(path).status, 200, "{path}");
    }
    // "default:open sesame", "default:", and no base64 at all.
    let right = "Authorization: Basic ZGVmYXVsdDpvcGVuIHNlc2FtZQ==\r\n";
    let wrong = [
        "",
        "Authorization: Basic ZGVmYXVsdDo=\r\n",
        "Authorization: Basic ?\r\n",
    ];
    for path in [
        "/",
        "/metrics",
        "/stats.json",
        "/history.json",
        "/keys.json",
        "/dashboard.js",
        "/nothing",
    ] {
        for lines in wrong {
            let answer = site.get_with(path, lines);
            assert_eq!(answer.status, 401, "{path} {lines}");
            assert!(
                answer
                    .header("www-authenticate")
                    .is_some_and(|text| text.starts_with("basic "))
            );
        }
        assert_ne!(site.get_with(path, right).status, 401, "{path}");
    }
    let mut client = site.server.client();
    for words in [
        &["AUTH", "open sesame"][..],
        &["CONFIG", "SET", "requirepass", ""],
    ] {
        let reply = client.call(words).expect("it is answered");
        assert_eq!(reply.text(), "OK");
    }
    assert_eq!(site.get("/stats.json").status, 200);
}

#[test]
fn passwords_cannot_be_guessed_faster_over_http() {
    let site = Site::start(&["--requirepass", "open sesame"]);
    let statuses: Vec<u16> = (0..200)
        .map(|_| {
            site.get_with("/metrics", "authorization: Basic eDp4\r\n")
                .status
        })
        .collect();
    let looked_at = statuses.iter().filter(|status| **status == 401).count();
    assert!(looked_at >= 10, "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    // Without a password nothing is guessed, and health is nobody's secret.
    assert_eq!(site.get("/metrics").status, 401);
    assert_eq!(site.get("/healthz").status, 200);
}

#[test]
fn a_name_that_somebody_gave_to_this_machine_is_refused() {
    let site = Site::start(&[]);
    let ask = |host: &str| {
        site.send(format!("GET /stats.json HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    };
    assert_eq!(ask("evil.example").status, 403);
    assert_eq!(ask("127.0.0.1.evil.example:80").status, 403);
    assert_eq!(ask("localhost").status, 200);
    // Health, too, is not told to pages of others.
    assert_eq!(
        site.send(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            .status,
        403
    );
}

#[test]
fn keys_and_commands_in_the_answer_are_text_whatever_their_bytes() {
    let site = Site::start(&["--slowlog-log-slower-than", "0"]);
    let mut client = site.server.client();
    client
        .call(&[&b"SET"[..], b"</script>\xff\"\x00", b"v"])
        .expect("it is answered");
    let answer = site.get("/stats.json");
    let json: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
    let key = json["hot"]["operations"][0]["key"].as_str();
    assert_eq!(key, Some("</script>\\xff\"\\u{0}"));
    let slow = json["slow"].as_array().expect("it is a list");
    assert!(
        slow.iter()
            .any(|one| one["command"] == "SET </script>\\xff\"\\u{0} v"),
        "{slow:?}"
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
}
