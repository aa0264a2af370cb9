//! No file makes the reader panic or take memory that its length does not justify, and what it reads from a file
//! survives writing and reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rdb::{Attributes, Item, Options, Reader, Writer, lzf};

/// A key of a file: database, key, value, attributes.
type Key = (u64, Vec<u8>, Vec<u8>, Attributes);

fn read(file: &[u8], checksum: bool) -> Option<Vec<Key>> {
    let mut reader = Reader::new(file, checksum).ok()?;
    let (mut db, mut keys) = (0, Vec::new());
    loop {
        match reader.next().ok()? {
            None => return Some(keys),
            Some(Item::Database(number)) => db = number,
            Some(Item::Entry(entry)) => {
                assert!(entry.value.capacity() <= lzf::expanded_max(file.len()).max(64 * 1024));
                keys.push((
                    db,
                    entry.key.to_vec(),
                    entry.value.clone(),
                    entry.attributes,
                ));
            }
            Some(
                Item::Fact { .. } | Item::Sizes { .. } | Item::Library(_) | Item::Unsupported(_),
            ) => {}
        }
    }
}

/// Whatever the file holds of other types, it is passed over or refused.
fn pass(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file, false) else {
        return;
    };
    reader.pass_unsupported();
    while let Ok(Some(_)) = reader.next() {}
}

fn write(keys: &[Key], options: Options) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).expect("a vector takes everything");
    for (db, key, value, attributes) in keys {
        writer.database(*db).expect("a vector takes everything");
        writer
            .key(key, value, *attributes)
            .expect("a vector takes everything");
    }
    writer.finish().expect("a vector takes everything")
}

fuzz_target!(|data: &[u8]| {
    // Nearly no input begins or ends right by itself.
    let file = [b"REDIS0010", data].concat();
    pass(&file);
    let read_with_checksum = read(data, true);
    for keys in [read_with_checksum, read(data, false), read(&file, false)]
        .into_iter()
        .flatten()
    {
        let options = Options {
            compression: data.len() % 2 == 0,
            checksum: data.len() % 3 > 0,
            timed: false,
        };
        assert_eq!(read(&write(&keys, options), true), Some(keys));
    }
});
