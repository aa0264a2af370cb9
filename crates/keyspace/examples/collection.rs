//! What runs and trees cost: nanoseconds per insert, find, replace and remove, of the thread's own time,
//! beside the map of `std`; and bytes per field beyond the user's own.
//!
//! ```text
//!   cargo run --release -p ferrite-keyspace --example collection            10, 10 k, 1 M and 10 M fields
//!   cargo run --release -p ferrite-keyspace --example collection -- 1000    so many
//!   cargo run --release -p ferrite-keyspace --example collection -- arc     copies of inner nodes by `Arc`
//! ```
//!
//! Fields and values have 12 to 16 bytes. Fields are chosen by chance; what it costs to make their names is
//! measured alone and taken off.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use keyspace::Seed;
use keyspace::collection::cell::Cell;
use keyspace::collection::kind::{Fields, Scores};
use keyspace::collection::run::{Item, PAIRS, Run, RunMut, TAGGED};
use keyspace::collection::tree::{LEAF_MAX, Tree};

/// Bytes of a text of 12 to 16 bytes, and how many.
type Text = ([u8; 16], usize);

fn text(number: u64, kind: u8) -> Text {
    let mut hash = (number ^ u64::from(kind) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    let len = 12 + (hash >> 40) as usize % 5;
    let mut bytes = [kind; 16];
    for (at, byte) in bytes[1..].iter_mut().enumerate() {
        // Eight letters tell texts apart, the others are noise.
        let word = if at < 8 { number } else { hash };
        *byte = b'a' + (word >> (4 * at) & 15) as u8;
    }
    (bytes, len)
}

/// Nanoseconds that this thread has been on a processor.
fn clock() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the structure, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds for each of `count` calls.
fn each(count: u64, mut act: impl FnMut(u64)) -> f64 {
    let start = clock();
    for step in 0..count {
        act(step);
    }
    (clock() - start) as f64 / count as f64
}

/// One number of `0..count` after another, each once in `count` if that is odd or a power of two.
fn scattered(step: u64, count: u64) -> u64 {
    (step.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 20) % count
}

fn with_item<R>(number: u64, value: u64, act: impl FnOnce(&Item<'_>) -> R) -> R {
    let (name, value) = (text(number, b'f'), text(value, b'v'));
    act(&Item::pair(
        Cell::of(&name.0[..name.1]),
        Cell::of(&value.0[..value.1]),
    ))
}

fn report(what: &str, insert: f64, find: f64, replace: f64, remove: f64, bytes: f64) {
    println!("{what:>12} | {insert:6.0} | {find:6.0} | {replace:7.0} | {remove:6.0} | {bytes:5.2}");
}

fn runs(fields: u64) {
    // So many runs that they are not all in the cache.
    let count = 2_000_000 / fields;
    let mut runs: Vec<Vec<u8>> = (0..count)
        .map(|_| Run::empty(TAGGED | PAIRS).to_vec())
        .collect();
    let names = each(2_000_000, |step| {
        with_item(step, step, |item| _ = black_box(*item))
    });
    let insert = each(count * fields, |step| {
        with_item(step, step, |item| {
            let run = &mut runs[(step % count) as usize];
            let (len, growth) = (
                run.len(),
                Run::trusted(run).growth(item, None).expect("it is small"),
            );
            if Run::trusted(run).find(item.name).is_none() {
                run.reserve_exact(growth as usize);
                run.resize(len + growth as usize, 0);
                let at = Run::trusted(&run[..len]).count();
                RunMut::new(run, len).insert(at, item);
            }
        });
    });
    let find = each(count * fields, |step| {
        let step = scattered(step, count * fields);
        with_item(step, step, |item| {
            let run = Run::trusted(&runs[(step % count) as usize]);
            assert!(black_box(run.lookup(item.name)).is_some());
        });
    });
    let (mut own, mut taken) = (0, 0);
    for run in &runs {
        taken += run.len();
        let bytes = |item: Item<'_>| item.name.text_len() + item.value.map_or(0, Cell::text_len);
        own += Run::trusted(run).iter().map(bytes).sum::<usize>();
    }
    let replace = each(count * fields, |step| {
        let step = scattered(step, count * fields);
        with_item(step, step + 1, |item| {
            let run = &mut runs[(step % count) as usize];
            let len = run.len();
            let index = Run::trusted(run).find(item.name).expect("it is there");
            let growth = Run::trusted(run)
                .growth(item, Some(index))
                .expect("it is small");
            let after = len.saturating_add_signed(growth);
            run.resize(len.max(after), 0);
            RunMut::new(run, len).replace(index, item);
            run.truncate(after);
        });
    });
    let remove = each(count * fields, |step| {
        with_item(step, step, |item| {
            let run = &mut runs[(step % count) as usize];
            let len = run.len();
            let index = Run::trusted(run).find(item.name).expect("it is there");
            let mut edited = RunMut::new(run, len);
            edited.remove(index);
            let after = edited.len();
            run.truncate(after);
        });
    });
    let bytes = (taken - own) as f64 / (count * fields) as f64;
    report(
        &format!("run of {fields}"),
        insert - names,
        find - names,
        replace - names,
        remove - names,
        bytes,
    );
}

fn trees(fields: u64) {
    let names = each(2_000_000, |step| {
        with_item(step, step, |item| _ = black_box(*item))
    });
    let mut tree = Tree::new(Fields { seed: Seed::new(1) }, LEAF_MAX);
    let insert = each(fields, |step| {
        with_item(step, step, |item| tree.set(item));
    });
    let rounds = fields.clamp(1_000_000, 4_000_000);
    let find = each(rounds, |step| {
        let step = scattered(step, fields);
        with_item(step, step, |item| {
            assert!(black_box(tree.view().get(item.name)).is_some())
        });
    });
    let bytes = |item: Item<'_>| item.name.text_len() + item.value.map_or(0, Cell::text_len);
    let own: usize = tree.view().iter().map(bytes).sum();
    let overhead = (tree.bytes() - own) as f64 / tree.count() as f64;
    let replace = each(rounds, |step| {
        let number = scattered(step, fields);
        with_item(number, step, |item| tree.set(item));
    });
    let frozen = tree.freeze();
    let copied = each(rounds.min(fields), |step| {
        let number = scattered(step, fields);
        with_item(number, step + 1, |item| tree.set(item));
    });
    let held = tree.held_bytes();
    drop(frozen);
    let remove = each(fields, |step| {
        with_item(step, step, |item| assert!(tree.remove_item(item)));
    });
    let what = format!("{fields}");
    report(
        &what,
        insert - names,
        find - names,
        replace - names,
        remove - names,
        overhead,
    );
    println!(
        "{:>12} | replace beside a fresh clone {:.0}, held {} KiB",
        "",
        copied - names,
        held >> 10
    );
}

fn scores(members: u64) {
    let names = each(2_000_000, |step| {
        with_item(step, step, |item| _ = black_box(*item))
    });
    let mut tree = Tree::new(Scores, LEAF_MAX);
    let score = |number: u64| Cell::Int((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34) as i64);
    let scored = |number: u64, act: &mut dyn FnMut(&Item<'_>)| {
        let name = text(number, b'm');
        act(&Item::pair(Cell::of(&name.0[..name.1]), score(number)));
    };
    let insert = each(members, |step| {
        scored(step, &mut |item| _ = black_box(tree.set(item)))
    });
    let rounds = members.clamp(1_000_000, 4_000_000);
    let find = each(rounds, |step| {
        let number = scattered(step, members);
        scored(number, &mut |item| {
            assert!(black_box(tree.view().rank(item)).is_some())
        });
    });
    let own: usize = tree.view().iter().map(|item| item.name.text_len()).sum();
    let overhead = (tree.bytes() - own) as f64 / tree.count() as f64;
    let remove = each(members, |step| {
        scored(step, &mut |item| assert!(tree.remove_item(item)))
    });
    let what = format!("{members} scores");
    report(
        &what,
        insert - names,
        find - names,
        f64::NAN,
        remove - names,
        overhead,
    );
}

/// The same with the map of `std` and boxed texts.
fn maps(fields: u64) {
    let names = each(2_000_000, |step| {
        with_item(step, step, |item| _ = black_box(*item))
    });
    let mut map: HashMap<Box<[u8]>, Box<[u8]>> = HashMap::new();
    let insert = each(fields, |step| {
        let (name, value) = (text(step, b'f'), text(step, b'v'));
        map.insert(name.0[..name.1].into(), value.0[..value.1].into());
    });
    let rounds = fields.clamp(1_000_000, 4_000_000);
    let find = each(rounds, |step| {
        let name = text(scattered(step, fields), b'f');
        assert!(black_box(map.get(&name.0[..name.1])).is_some_and(|value| value[0] == b'v'));
    });
    let remove = each(fields, |step| {
        let name = text(step, b'f');
        assert!(map.remove(&name.0[..name.1]).is_some());
    });
    let what = format!("std {fields}");
    report(
        &what,
        insert - names,
        find - names,
        f64::NAN,
        remove - names,
        f64::NAN,
    );
}

/// What the copy of an inner node costs, with a count in each child and without.
fn arcs() {
    const NODES: usize = 2_000;
    let children: Vec<Arc<[u8; 1400]>> = (0..NODES * 63).map(|_| Arc::new([1; 1400])).collect();
    let child = |at: usize| Arc::clone(&children[at % children.len()]);
    let node = |at: usize| (0..63).map(|inner| child(inner * NODES + at)).collect();
    let nodes: Vec<Vec<Arc<[u8; 1400]>>> = (0..NODES).map(node).collect();
    let plain: Vec<Vec<[u64; 4]>> = vec![vec![[1; 4]; 63]; NODES];
    let counted = each(NODES as u64, |step| {
        drop(black_box(
            nodes[scattered(step, NODES as u64) as usize].clone(),
        ))
    });
    let copied = each(NODES as u64, |step| {
        drop(black_box(
            plain[scattered(step, NODES as u64) as usize].clone(),
        ))
    });
    println!(
        "copy of 63 children: {counted:.0} ns with `Arc` (and its end), {copied:.0} ns without"
    );
}

fn main() {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("arc") {
        return arcs();
    }
    println!(
        "{:>12} | insert |  find  | replace | remove | bytes beyond the user's",
        "fields"
    );
    match argument.and_then(|count| count.parse().ok()) {
        Some(count) => {
            trees(count);
            maps(count);
        }
        None => {
            runs(10);
            runs(40);
            for fields in [10_000, 1_000_000, 10_000_000] {
                trees(fields);
                maps(fields);
            }
            scores(1_000_000);
        }
    }
}
