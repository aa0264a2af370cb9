//! The judge is judged.

use super::{Id, Reader, Readers, Sent, Value, Wait};

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A reply with the entries of these numbers, each of which has its time for an ID.
fn reply(numbers: &[u64]) -> Value {
    let entries = numbers.iter().map(|number| {
        let texts = vec![bulk("n"), bulk(&number.to_string())];
        Value::Array(vec![
            bulk(&format!("{}-0", 10 + number)),
            Value::Array(texts),
        ])
    });
    let entries = Value::Array(entries.collect());
    Value::Array(vec![Value::Array(vec![bulk("q"), entries])])
}

/// Two readers and five entries, the third of which is deleted.
fn readers(wait: Wait) -> Readers {
    let sent = |number: u64| Sent {
        id: (number < 4).then_some(Id {
            ms: 10 + number,
            seq: 0,
        }),
        is_there: number < 4,
        is_gone: number == 2,
    };
    let mut readers = Readers {
        sent: (0..5).map(sent).collect(),
        readers: vec![Reader::default(), Reader::default()],
        ..Readers::default()
    };
    readers.readers[0].wait = Some(wait);
    readers
}

#[test]
fn entries_that_are_passed_over_or_served_twice_are_found() {
    let group = Wait {
        is_group: true,
        ..Wait::default()
    };
    let exact = Wait {
        is_exact: true,
        from: 1,
        ..Wait::default()
    };
    for (wait, numbers, is_right) in [
        (exact, &[1][..], true),
        (exact, &[1, 3, 4], true),
        (exact, &[1, 2, 3], true),
        (exact, &[3], false),
        (exact, &[0, 1], false),
        (exact, &[3, 1], false),
        (exact, &[1, 5], false),
        (exact, &[], false),
        (group, &[1, 3], true),
        (group, &[0, 3], false),
        (group, &[1, 1], false),
    ] {
        let taken = readers(wait).take_served(0, &reply(numbers));
        assert_eq!(taken.is_ok(), is_right, "{wait:?} {numbers:?}: {taken:?}");
    }
    let mut both = readers(group);
    both.readers[1].wait = Some(group);
    assert_eq!(both.take_served(1, &reply(&[1])), Ok(()));
    assert!(both.take_served(0, &reply(&[1])).is_err());
}

#[test]
fn a_wait_ends_without_entries_as_it_was_told_to() {
    let wait = |is_group, unblocked, may_end| Wait {
        is_group,
        unblocked,
        may_end,
        ..Wait::default()
    };
    let error = |text: &str| Value::Error(text.as_bytes().to_vec());
    let by_client = error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    let gone = error("UNBLOCKED the stream key no longer exists");
    for (wait, reply, is_right) in [
        (wait(true, Some(false), false), Value::NullArray, true),
        (wait(true, Some(true), false), by_client.clone(), true),
        (wait(true, Some(true), false), Value::NullArray, false),
        (wait(true, None, false), Value::NullArray, false),
        (wait(false, None, true), by_client, false),
        (wait(true, None, true), gone.clone(), true),
        (wait(true, None, false), gone.clone(), false),
        (wait(false, None, true), gone, false),
        (wait(true, Some(false), false), reply(&[1]), false),
    ] {
        let taken = readers(wait).take_served(0, &reply);
        assert_eq!(taken.is_ok(), is_right, "{wait:?} {reply:?}: {taken:?}");
    }
}
