//! What appending costs, to be run under callgrind with two counts:
//!
//! ```text
//! cargo build --release -p ferrite-log --example append
//! valgrind --tool=callgrind target/release/examples/append 100000 16 16
//! ```
//!
//! The difference of two runs, divided by the difference of their counts, is the price of one `set` with its
//! share of the turn (a commit for every 16) and of the overwritten record's note.
//! `--toggle-collect='*Appender*commit*'` and `--toggle-collect='*append::turn*'` split it. The log thread's
//! part is left out: it runs in `drain`.

use std::sync::Arc;

use ferrite_log::{Appender, DbId, Log, Options, Tag};

fn main() {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let [count, key_len, value_len] = arguments[..] else {
        eprintln!("usage: append COUNT KEY_BYTES VALUE_BYTES");
        std::process::exit(2);
    };
    let directory = std::env::temp_dir().join(format!("ferrite-append-{}", std::process::id()));
    let options = Options {
        background: false,
        ..Options::default()
    };
    let files = Arc::new(sys::file::Disk);
    let log = Log::open(files, &directory, options)
        .and_then(|recovery| recovery.start())
        .expect("a fresh log opens");
    let mut appender = log.appender(None).expect("the first one");
    let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
    let mut left = count;
    while left > 0 {
        let now = left.min(1600);
        turns(&mut appender, &key, &value, now);
        left -= now;
        log.turn();
    }
    drop(appender);
    log.close().expect("all is written");
    std::fs::remove_dir_all(&directory).expect("it is there");
}

#[inline(never)]
fn turns(appender: &mut Appender, key: &[u8], value: &[u8], count: usize) {
    let mut address = None;
    for number in 0..count {
        if number % 16 == 0 {
            appender
                .ensure(16 * Appender::bytes_of(key.len(), value.len()))
                .expect("the disk has space");
        }
        let new = appender.set(DbId(0), key, Tag::default(), None, value);
        if let Some(old) = address.replace(new) {
            appender.liveness().dead(old, key.len(), value.len());
        }
        if number % 16 == 15 {
            appender.commit();
        }
    }
    appender.commit();
}
