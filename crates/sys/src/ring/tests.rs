//! The ring's own rules, and many threads through a small ring: every byte arrives, once, in order.

use super::*;

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
