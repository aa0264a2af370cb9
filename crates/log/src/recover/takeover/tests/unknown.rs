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
    let list = Tag { kind: 9, form: 0 };
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
    let repaired = crate::repair(home.files(), &home.log_directory());
    assert_eq!(repaired.expect("it can be read"), report);
    let after = (fs::read(&ring), fs::read(newest));
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}
