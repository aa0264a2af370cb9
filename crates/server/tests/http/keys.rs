//! The browser of keys: it finds all of them, in bounded pages, and changes nothing.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::browser::Site;
use super::support::Client;

fn page(site: &Site, query: &str) -> Json {
    let answer = site.get(&format!("/keys.json?{query}"));
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json")),
        "{answer:?}"
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    serde_json::from_str(&answer.body).expect("it is JSON")
}

/// All keys that begin so, page by page, and how many pages that took.
fn all_pages(site: &Site, query: &str) -> (Vec<Json>, usize) {
    let (mut keys, mut cursor, mut pages) = (Vec::new(), "0".to_owned(), 0);
    loop {
        let page = page(site, &format!("{query}&cursor={cursor}"));
        keys.extend(
            page["keys"]
                .as_array()
                .expect("it is a list")
                .iter()
                .cloned(),
        );
        cursor = page["cursor"].as_str().expect("it is text").to_owned();
        pages += 1;
        if cursor == "0" {
            return (keys, pages);
        }
        assert!(pages < 10_000, "it never ends");
    }
}

fn only<'j>(keys: &'j [Json], key: &str) -> &'j Json {
    let found: Vec<&Json> = keys.iter().filter(|one| one["key"] == key).collect();
    assert_eq!(found.len(), 1, "{key}: {keys:?}");
    found[0]
}

fn stat(client: &mut Client, name: &str) -> String {
    let text = client.ask("INFO stats").text();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

#[test]
fn all_keys_that_begin_so_are_found_page_by_page() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    for at in 0..700 {
        client.ask(&format!("SET user:{at} {at}"));
        client.ask(&format!("SET other:{at} {at}"));
    }
    client.ask("SELECT 2");
    client.ask("SET user:elsewhere x");
    let (keys, pages) = all_pages(&site, "prefix=user%3A&count=37");
    let names: BTreeSet<&str> = keys.iter().filter_map(|one| one["key"].as_str()).collect();
    assert_eq!((names.len(), keys.len()), (700, 700));
    assert!(
        names.iter().all(|name| name.starts_with("user:")) && pages > 7,
        "{pages}"
    );
    assert_eq!(all_pages(&site, "count=100").0.len(), 1_400);
    assert_eq!(all_pages(&site, "db=2").0.len(), 1);
    assert_eq!(all_pages(&site, "db=9&prefix=x").0.len(), 0);
    // A request ends before it has looked at everything, though nothing is found.
    for at in 0..300 {
        let pairs: Vec<String> = (0..100).map(|own| format!("many:{at}:{own} v")).collect();
        client.ask(&format!("MSET {}", pairs.join(" ")));
    }
    let first = page(&site, "db=2&prefix=none");
    let looked = first["looked"].as_u64().expect("it is a number");
    assert!(looked < 20_000 && first["cursor"] != "0", "{first}");
    let (none, pages) = all_pages(&site, "db=2&prefix=none");
    assert!(none.is_empty() && pages > 1);
}

#[test]
fn keys_come_with_what_is_known_of_them() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    client.ask("SET plain hello EX 1000");
    client.ask("SET number 12345");
    client.ask("SETRANGE large 199999 x");
    client.ask("SET gone v PX 1");
    client
        .call(&[&b"SET"[..], &[b'k'; 5_000], b"v"])
        .expect("it is answered");
    std::thread::sleep(std::time::Duration::from_millis(5));
    let before = [
        stat(&mut client, "keyspace_hits"),
        stat(&mut client, "keyspace_misses"),
    ];
    let (keys, _) = all_pages(&site, "");
    assert_eq!(keys.len(), 4, "what is over is not shown: {keys:?}");
    let plain = only(&keys, "plain");
    assert_eq!(
        (&plain["type"], &plain["length"], &plain["preview"]),
        (&"string".into(), &5.into(), &"hello".into())
    );
    let left_ms = plain["expires_ms"].as_i64().expect("it expires")
        - std::time::UNIX_EPOCH
            .elapsed()
            .expect("after 1970")
            .as_millis() as i64;
    assert!((0..=1_000_000).contains(&left_ms), "{left_ms}");
    assert_eq!(
        plain["bytes"].as_i64(),
        client.ask("MEMORY USAGE plain").text().parse().ok()
    );
    assert_eq!(only(&keys, "number")["preview"], "12345");
    let large = only(&keys, "large");
    let preview = large["preview"].as_str().expect("it is there");
    assert_eq!(
        (large["length"].as_u64(), preview),
        (Some(200_000), &*"\\u{0}".repeat(128))
    );
    let long = keys
        .iter()
        .find(|one| one["key_bytes"] == 5_000)
        .expect("it is there");
    assert_eq!(long["key"].as_str().map(str::len), Some(256));
    let after = [
        stat(&mut client, "keyspace_hits"),
        stat(&mut client, "keyspace_misses"),
    ];
    assert_eq!(before, after, "a look is no access");
}

#[test]
fn a_stream_shows_its_first_entries() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    for number in 1..=3000 {
        client.ask(&format!("XADD stream {number}-1 f {number} g w"));
    }
    client.ask("XGROUP CREATE stream group 0");
    client.ask("XREADGROUP GROUP group anna COUNT 2000 STREAMS stream >");
    client.ask("XDEL stream 1-1");
    let (keys, _) = all_pages(&site, "");
    let stream = only(&keys, "stream");
    assert_eq!(
        (&stream["type"], &stream["length"]),
        (&"stream".into(), &2999.into())
    );
    let preview = stream["preview"].as_str().expect("it is there");
    let first = r"2-1: f=2 g=w\n3-1: f=3 g=w\n";
    assert!(preview.starts_with(first), "{preview}");
}

#[test]
fn hostile_keys_are_text_and_nothing_is_written() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    let hostile: [&[u8]; 4] = [
        b"<script>alert(1)</script>",
        b"</td><img src=x onerror=alert(1)>",
        b"\xff\x00\n\"}],\"keys\":[",
        "\u{2028}\u{202e}'".as_bytes(),
    ];
    for key in hostile {
        client
            .call(&[&b"SET"[..], key, key])
            .expect("it is answered");
    }
    let (keys, _) = all_pages(&site, "");
    assert_eq!(keys.len(), 4);
    only(&keys, "<script>alert(1)</script>");
    let binary = only(&keys, "\\xff\\u{0}\\n\"}],\"keys\":[");
    assert_eq!(binary["preview"], binary["key"]);
    assert_eq!(
        page(&site, "prefix=%ff%00")["keys"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    // Only the page makes elements, and of text alone.
    let script = site.get("/dashboard.js").body;
    for word in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "srcdoc",
    ] {
        assert!(!script.contains(word), "{word}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let request = format!(
            "{method} /keys.json?prefix=a HTTP/1.1\r\nHost: {}\r\n\r\n",
            site.http
        );
        assert_eq!(site.send(request.as_bytes()).status, 405, "{method}");
    }
    for query in [
        "db=16",
        "cursor=x",
        "count=0",
        "count=101",
        "prefix=%f",
        "prefix=%zz",
        "key=a",
        "db=0&db=1",
    ] {
        assert_eq!(
            site.get(&format!("/keys.json?{query}")).status,
            400,
            "{query}"
        );
    }
    // A reason quotes nothing that somebody has put into the address.
    let refused = site.get("/keys.json?<script>=1");
    assert!(!refused.body.contains("<script>"), "{refused:?}");
    assert_eq!(client.ask("DBSIZE").text(), "4");
}
