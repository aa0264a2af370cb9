//! The ring's own rules, many threads through a small ring (every byte arrives, once, in order), and what is
//! left in its file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::ring::file::{BESIDE, Draft, Places};
use crate::ring::survivor::{Claim, Survivor};

fn ring(capacity: usize, start: u64, producers: usize) -> (Arc<Ring>, Consumer) {
    Ring::new(capacity, start, producers).expect("memory")
}

#[test]
fn what_is_filled_is_read_after_the_commit() {
    let (ring, mut consumer) = ring(4096, 4096 - 8, 2);
    let mut producer = ring.producer().expect("the first");
    let at = producer.claim(16);
    assert_eq!(at, 4096 - 8);
    producer
        .fill(at, 16)
        .expect("there is room")
        .copy_from_slice(b"0123456789abcdef");
    assert_eq!(consumer.complete(), at);
    producer.commit();
    assert_eq!(consumer.complete(), at + 16);
    // Beyond the end of the memory, in one slice.
    assert_eq!(consumer.bytes(at..at + 16), b"0123456789abcdef");
    assert_eq!(consumer.bytes(at + 8..at + 16), b"89abcdef");
    consumer.release(at + 16);
    assert_eq!(ring.head(), ring.tail());
}

#[test]
fn the_slowest_producer_holds_the_rest() {
    let (ring, mut consumer) = ring(4096, 0, 3);
    let mut slow = ring.producer().expect("one");
    let mut quick = ring.producer().expect("two");
    let mut late = ring.producer().expect("three");
    slow.claim(8);
    slow.commit();
    slow.claim(8);
    quick.claim(8);
    quick.commit();
    assert_eq!(consumer.complete(), 8);
    // It has not claimed for long, and says that it begins where it ended; what is complete stays so.
    late.claim(8);
    assert_eq!(consumer.complete(), 8);
    slow.commit();
    assert_eq!(consumer.complete(), 8);
    late.commit();
    assert_eq!(consumer.complete(), 32);
    quick.claim(8);
    assert!((24..=32).contains(&consumer.complete()));
    quick.commit();
    assert_eq!(consumer.complete(), 40);
}

#[test]
fn there_is_no_room_until_it_is_released() {
    let (ring, mut consumer) = ring(4096, 0, 1);
    let mut producer = ring.producer().expect("one");
    let first = producer.claim(4096);
    producer.fill(first, 4096).expect("all of it").fill(1);
    producer.commit();
    let second = producer.claim(8192);
    assert!(producer.fill(second, 1).is_none());
    assert_eq!(consumer.complete(), 4096);
    consumer.release(100);
    producer
        .fill(second, 100)
        .expect("what was released")
        .fill(2);
    assert!(producer.fill(second, 101).is_none());
    producer.publish(second + 100);
    assert_eq!(consumer.complete(), 4196);
    assert_eq!(consumer.bytes(100..4096), [1; 3996]);
    assert_eq!(consumer.bytes(4096..4196), [2; 100]);
}

#[test]
#[should_panic(expected = "claimed last")]
fn nobody_fills_what_is_not_theirs() {
    let (ring, _consumer) = ring(4096, 0, 1);
    let mut producer = ring.producer().expect("one");
    producer.claim(8);
    producer.claim(8);
    let _ = producer.fill(0, 8);
}

#[test]
#[should_panic(expected = "claimed last")]
fn nobody_fills_what_is_published() {
    let (ring, _consumer) = ring(4096, 0, 1);
    let mut producer = ring.producer().expect("one");
    let at = producer.claim(16);
    producer.publish(at + 8);
    let _ = producer.fill(at, 8);
}

#[test]
#[should_panic(expected = "complete and not released")]
fn nobody_reads_what_is_not_filled() {
    let (ring, mut consumer) = ring(4096, 0, 1);
    let mut producer = ring.producer().expect("one");
    producer.claim(8);
    consumer.complete();
    let _ = consumer.bytes(0..8);
}

#[test]
fn numbers_are_given_back() {
    let (ring, _consumer) = ring(4096, 0, 2);
    let first = ring.producer().expect("one");
    let second = ring.producer().expect("two");
    assert!(ring.producer().is_none());
    assert_eq!((first.number(), second.number()), (0, 1));
    drop(first);
    assert_eq!(ring.producer().expect("again").number(), 0);
}

#[test]
fn every_byte_of_many_threads_arrives_in_order() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 20_000;
    let (ring, mut consumer) = ring(4096, 0, THREADS as usize);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let mut producer = ring.producer().expect("one for each");
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    // Two words and a tail whose length follows from the number.
                    let len = 16 + (round % 5) * 8;
                    let at = producer.claim(len);
                    let words = [len << 8 | thread, round];
                    for offset in (0..len).step_by(8) {
                        let word = words[(offset as usize / 8).min(1)];
                        let slot = loop {
                            match producer.fill(at + offset, 8) {
                                Some(slot) => break slot,
                                None => std::thread::yield_now(),
                            }
                        };
                        slot.copy_from_slice(&word.to_le_bytes());
                        producer.publish(at + offset + 8);
                    }
                    if round % 3 == 0 {
                        producer.commit();
                    }
                }
            })
        })
        .collect();

    let mut next = [0; THREADS as usize];
    let total: u64 = (0..ROUNDS).map(|round| 16 + (round % 5) * 8).sum::<u64>() * THREADS;
    let (mut at, mut words) = (0, Vec::new());
    while at < total {
        let complete = consumer.complete();
        for word in consumer.bytes(at..complete).as_chunks::<8>().0 {
            words.push(u64::from_le_bytes(*word));
        }
        consumer.release(complete);
        if at == complete {
            std::thread::yield_now();
        }
        at = complete;
        let mut done = 0;
        while words.len() - done >= 2 {
            let (len, thread) = (words[done] >> 8, (words[done] & 0xff) as usize);
            let count = len as usize / 8;
            if words.len() - done < count {
                break;
            }
            assert!(
                words[done + 1..done + count]
                    .iter()
                    .all(|&word| word == next[thread])
            );
            next[thread] += 1;
            done += count;
        }
        words.drain(..done);
    }
    assert_eq!(next, [ROUNDS; THREADS as usize]);
    for thread in threads {
        thread.join().expect("the thread passes");
    }
}

/// Places in a directory of the test's own, gone at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let name = format!("ferrite-ring-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("memory")).expect("a directory");
        Home(path)
    }

    fn places(&self) -> Places {
        Places {
            directory: self.0.clone(),
            mounts: 5,
            boot: [1; 16],
            owner: [2; 16],
            memory: Ok(self.0.join("memory")),
            beside: Ok(self.0.clone()),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LOG: [u8; 16] = [7; 16];

fn fill(producer: &mut Producer, bytes: &[u8]) -> u64 {
    let at = producer.claim(bytes.len() as u64);
    let slot = producer.fill(at, bytes.len()).expect("there is room");
    slot.copy_from_slice(bytes);
    at
}

#[test]
fn a_file_has_what_was_filled_and_what_was_not() {
    let home = Home::new("left");
    let places = home.places();
    assert_eq!(places.left(), Vec::<PathBuf>::new());
    let placed = places.make(LOG, 1 << 16, 4096, 4).expect("there is room");
    let (ring, mut consumer) = (placed.ring, placed.consumer);
    let path = placed.path.expect("it has a file");
    assert!(path.starts_with(home.0.join("memory")) && placed.refused.is_empty());
    assert_eq!(places.left(), std::slice::from_ref(&path));
    let mode = fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    let producers = [(); 4].map(|()| ring.producer().expect("one of four"));
    let [mut done, mut filling, beginning, mut partly] = producers;
    fill(&mut done, b"first   ");
    done.commit();
    fill(&mut filling, b"half");
    fill(&mut done, b"second  ");
    done.commit();
    let long = partly.claim(32);
    partly.fill(long, 8).expect("there is room").fill(b'x');
    partly.publish(long + 8);
    // A thread that died right before its claim, or right behind it.
    beginning.mark().begin(4096, 40);
    assert_eq!(consumer.complete(), 4096);
    let survivor = Survivor::read(&path, &places, LOG).expect("it is whole");
    assert_eq!((survivor.passed(), survivor.tail()), (4096, 4096 + 52));
    let claims = [
        Claim::Made {
            start: 4104,
            end: 4108,
        },
        Claim::Begun {
            from: 4096,
            bytes: 40,
        },
        Claim::Made {
            start: 4116,
            end: 4148,
        },
    ];
    assert_eq!(survivor.claims(), claims);
    let mut bytes = [0; 28];
    survivor.copy(4096..4124, &mut bytes);
    assert_eq!(&bytes, b"first   halfsecond  xxxxxxxx");
    for mut producer in [filling, beginning, partly] {
        producer.is_active = true;
        producer.commit();
    }
    consumer.complete();
    consumer.release(4104);
    let survivor = Survivor::read(&path, &places, LOG).expect("it is whole");
    assert_eq!((survivor.passed(), survivor.claims()), (4104, &[][..]));
    // What is thrown away was not passed on.
    consumer.discard(4116);
    let survivor = Survivor::read(&path, &places, LOG).expect("it is whole");
    assert_eq!((survivor.passed(), ring.head()), (4104, 4116));
    ring.forget().expect("it is ours");
    ring.forget().expect("it is gone");
    assert_eq!(places.left(), Vec::<PathBuf>::new());
    assert_eq!(fill(&mut done, b"goes on "), 4148);
}

#[test]
fn bytes_are_found_beyond_the_end_of_the_memory() {
    let home = Home::new("wraps");
    let placed = home.places().make(LOG, 1 << 16, (1 << 16) - 4, 1);
    let placed = placed.expect("there is room");
    let mut producer = placed.ring.producer().expect("the first");
    let at = fill(&mut producer, b"12345678");
    let path = placed.path.expect("it has a file");
    let survivor = Survivor::read(&path, &home.places(), LOG).expect("it is whole");
    let mut bytes = [0; 8];
    survivor.copy(at..at + 8, &mut bytes);
    assert_eq!(&bytes, b"12345678");
}

#[test]
fn the_next_place_is_taken_where_one_has_no_room() {
    let home = Home::new("places");
    let mut places = home.places();
    places.memory = Ok(home.0.join("nowhere"));
    let placed = places.make(LOG, 1 << 16, 0, 1).expect("there is room");
    assert_eq!(placed.path, Some(home.0.join(BESIDE)));
    assert!(
        placed.refused[0].contains("nowhere"),
        "{:?}",
        placed.refused
    );
    assert_eq!(placed.ring.reserved_bytes(), Some((64 << 10) + (1 << 16)));
    // The name is taken now, and what has it stays.
    let second = places.make(LOG, 1 << 16, 0, 1).expect("there is room");
    assert_eq!((second.path, second.refused.len()), (None, 2));
    assert_eq!(second.ring.reserved_bytes(), None);
    assert_eq!(places.left(), [home.0.join(BESIDE)]);
    drop(placed.ring);
    assert!(Survivor::read(&home.0.join(BESIDE), &places, LOG).is_ok());
}

#[test]
fn a_file_that_is_not_private_or_not_whole_is_none() {
    let home = Home::new("strange");
    let places = home.places();
    let placed = places.make(LOG, 1 << 16, 0, 1).expect("there is room");
    let path = placed.path.expect("it has a file");
    let reason = |path: &std::path::Path| {
        let read = Survivor::read(path, &places, LOG);
        read.map_or_else(|reason| reason, |_| "nothing is wrong".into())
    };
    assert_eq!(reason(&path), "nothing is wrong");
    let set_mode = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(&path, permissions).expect("it is ours");
    };
    set_mode(0o660);
    assert!(reason(&path).contains("others"));
    set_mode(0o600);
    let link = home.0.join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    assert_ne!(reason(&link), "nothing is wrong");
    let second = home.0.join("second");
    fs::hard_link(&path, &second).expect("a link");
    assert!(reason(&path).contains("file of its own"));
    fs::remove_file(&second).expect("it is ours");
    assert_eq!(reason(&path), "nothing is wrong");
    let file = fs::File::options().write(true).open(&path);
    let file = file.expect("it is ours");
    file.set_len(1 << 16).expect("it is ours");
    assert!(reason(&path).contains("another size"));
    file.set_len(100).expect("it is ours");
    assert!(reason(&path).contains("too short"));
}

#[test]
fn rings_of_directories_that_are_gone_are_removed() {
    let home = Home::new("orphans");
    let gone = home.0.join("gone");
    let its = |owner, directory: &std::path::Path, mounts| Places {
        owner: [owner; 16],
        directory: directory.to_owned(),
        mounts,
        ..home.places()
    };
    let orphan = its(3, &gone, 5);
    // Seen from elsewhere a path says nothing, and a directory of the same name can be another one.
    let others = [its(4, &gone, 6), its(5, &home.0, 6)];
    let replaced = its(6, &home.0, 5);
    for places in others.iter().chain([&orphan, &replaced]) {
        places.make(LOG, 1 << 16, 0, 1).expect("there is room");
    }
    fs::write(home.0.join("memory/ferrite-strange.ring"), b"no ring").expect("ours");
    assert_eq!(home.places().remove_orphans(), 2);
    assert_eq!(others.map(|places| places.left().len()), [1, 1]);
    assert_eq!((orphan.left().len(), replaced.left().len()), (0, 0));
    assert_eq!(home.places().remove_orphans(), 0);
}

#[test]
fn a_file_that_was_not_finished_has_no_name() {
    const PLACE: &str = "FERRITE_UNFINISHED_RING";
    let of = |directory: PathBuf| Places {
        directory: directory.clone(),
        memory: Ok(directory.clone()),
        beside: Ok(directory),
        ..Home(PathBuf::new()).places()
    };
    if let Some(directory) = std::env::var_os(PLACE) {
        // Its limit of a file's size ends the process while it takes the space.
        let _ = of(directory.into()).make(LOG, 1 << 16, 0, 1);
        unreachable!("a process cannot take more than its limit allows");
    }
    let home = Home::new("unfinished");
    let program = std::env::current_exe().expect("a test has a program");
    let name = "ring::bytes::tests::a_file_that_was_not_finished_has_no_name";
    let dead = std::process::Command::new("sh")
        .args(["-c", "ulimit -c 0; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(program)
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, &home.0)
        .output()
        .expect("there is a shell");
    let signal = std::os::unix::process::ExitStatusExt::signal(&dead.status);
    assert_eq!(signal, Some(libc::SIGXFSZ), "{dead:?}");
    let places = of(home.0.clone());
    assert_eq!(places.left(), Vec::<PathBuf>::new());
    places.remove_drafts();
    let files = fs::read_dir(&home.0).expect("it is ours");
    let files: Vec<_> = files.flatten().map(|file| file.file_name()).collect();
    assert_eq!(files, ["memory"]);
}

#[test]
fn a_file_without_a_name_is_not_needed() {
    let home = Home::new("drafts");
    let places = home.places();
    let path = home.0.join(BESIDE);
    let aside = home.0.join("RING.tmp");
    fs::write(&aside, b"of a killed process").expect("it is ours");
    let draft = Draft::create_aside(&path).expect("the directory is ours");
    assert!(aside.exists() && places.left().is_empty());
    draft.publish(&path).expect("the name is free");
    assert!(!aside.exists());
    assert_eq!(places.left(), std::slice::from_ref(&path));
    // What has the name keeps it.
    let second = Draft::create_aside(&path).expect("the directory is ours");
    let error = second.publish(&path).expect_err("the name is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(path.exists() && !aside.exists());
    let owner = "02".repeat(16);
    let left = [
        aside,
        home.0.join(format!("memory/ferrite-{owner}-1.ring.tmp")),
    ];
    for draft in &left {
        fs::write(draft, b"of a killed process").expect("it is ours");
    }
    assert_eq!(places.left(), std::slice::from_ref(&path));
    places.remove_drafts();
    assert!(path.exists() && left.iter().all(|draft| !draft.exists()));
}
