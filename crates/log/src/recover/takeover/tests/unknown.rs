//! A ring of another version.

use super::*;

#[test]
fn a_record_of_another_version_stays_in_the_ring() {
    let home = Home::new("unknown");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 100);
    log.turn();
    set(&mut appender, "b", 100);
    let at = appender.tail();
    let list = Tag {
        kind: 9,
        form: 0,
        is_tree: false,
    };
    appender.set(DB, b"c", list, None, b"value");
    appender.commit();
    set(&mut appender, "d", 100);
    std::mem::forget((appender, log));
    let ring = home.ring().expect("it is there");
    let paths = Paths::new(&home.log_directory());
    let chain = chain::find(&home, &paths).expect("all is well");
    let newest = &chain.segments[0].0.path;
    let before = (fs::read(&ring), fs::read(newest));
    let unknown = [
        home.chain().map(drop),
        look(&home, &paths, &chain).map(drop),
    ];
    for unknown in unknown {
        let Err(Error::Version(unknown)) = unknown else {
            panic!("{unknown:?}");
        };
        assert_eq!(unknown.file, ring);
        let bytes = before.0.as_ref().expect("it can be read");
        let found = &bytes[unknown.offset as usize..];
        let flaw = record::read(found, at).expect_err("nobody knows it");
        assert!(unknown.reason.starts_with("a value of kind 9"), "{flaw}");
    }
    let report = crate::check(home.files(), &home.log_directory()).expect("it can be read");
    assert!(
        !report.is_whole() && report.unknown[0].file == ring,
        "{report}"
    );
    let repaired = crate::repair(home.files(), &home.log_directory(), |_| None);
    assert_eq!(repaired.expect("it can be read"), report);
    let after = (fs::read(&ring), fs::read(newest));
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

#[test]
fn a_ring_of_another_format_stays() {
    let home = Home::new("format");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 100);
    std::mem::forget((appender, log));
    let ring = home.ring().expect("it is there");
    let mut header = fs::read(&ring).expect("it can be read");
    header.truncate(4096);
    header[16] = 2;
    let checksum = header[16..]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    header[8..16].copy_from_slice(&checksum.to_le_bytes());
    home.damage(0, &header);
    let before = fs::read(&ring).expect("it can be read");
    let Err(Error::Version(unknown)) = home.chain().map(drop) else {
        panic!("it was taken for something else");
    };
    assert_eq!(unknown.file, ring);
    assert!(
        unknown.reason.starts_with("it has format 2"),
        "{}",
        unknown.reason
    );
    let report = crate::check(home.files(), &home.log_directory()).expect("it can be read");
    assert_eq!(report.unknown, [unknown]);
    let repaired = crate::repair(home.files(), &home.log_directory(), |_| None);
    assert_eq!(repaired.expect("it can be read"), report);
    assert_eq!(fs::read(&ring).expect("it is there"), before);
}
