//! Room for the rest of a request that has arrived in part.

use keyspace::INLINE_VALUE_MAX;
use resp::request::Resume;

use crate::limits::{MANY_ARGUMENTS, READ_AHEAD_BYTES, READ_MANY_BYTES, READ_MIN_BYTES};

/// Makes room for the rest of a request that takes `need` bytes in all, no further than [`READ_AHEAD_BYTES`]
/// or what has arrived already: a claim costs nothing until it is kept. A large request gets the room it
/// needs and no more, for its buffer may become a value; but not one of many arguments, of which `need` knows
/// only the next, nor an inline line, of which it knows one byte.
pub(super) fn reserve(pending: &mut Vec<u8>, need: usize, resume: &Resume) {
    let growth = growth(pending, need, resume);
    if growth > 0 {
        let free = pending.capacity() - pending.len();
        pending.reserve_exact(free + growth);
    }
}

/// Bytes by which [`reserve`] will make the buffer larger.
pub(super) fn growth(pending: &Vec<u8>, need: usize, resume: &Resume) -> usize {
    let missing = need.saturating_sub(pending.len());
    let least = match need > INLINE_VALUE_MAX {
        true if resume.arguments() > MANY_ARGUMENTS => READ_MANY_BYTES,
        true if resume.is_inline() => READ_MIN_BYTES,
        true => 1,
        false => READ_MIN_BYTES,
    };
    let wanted = missing.clamp(least, pending.len().max(READ_AHEAD_BYTES));
    wanted.saturating_sub(pending.capacity() - pending.len())
}

#[cfg(test)]
mod tests {
    use resp::reply::{Protocol, Writer};
    use resp::request::{Limits, Outcome, parse};

    use super::*;

    /// Reads a request as a worker does whose socket always has more. Returns in how many reads, and the
    /// buffer.
    fn read(request: &[u8]) -> (usize, Vec<u8>) {
        let (mut pending, mut resume, mut need) =
            (request[..20_000].to_vec(), Resume::default(), 0);
        let (mut reads, mut spans) = (0, Vec::new());
        loop {
            if pending.len() >= need {
                match parse(&mut pending, 0, &Limits::default(), &mut resume, &mut spans) {
                    Ok(Outcome::Request { end }) => {
                        assert_eq!(end, request.len());
                        return (reads, pending);
                    }
                    Ok(Outcome::Incomplete { need: more }) => need = more,
                    Err(error) => panic!("{error:?}"),
                }
            }
            reserve(&mut pending, need, &resume);
            let room = pending.capacity() - pending.len();
            let rest = &request[pending.len()..];
            pending.extend_from_slice(&rest[..room.min(rest.len())]);
            reads += 1;
        }
    }

    fn request(arguments: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, Protocol::Resp2);
        writer.array(arguments.len());
        arguments.iter().for_each(|argument| writer.bulk(argument));
        bytes
    }

    #[test]
    fn many_arguments_take_few_reads() {
        let request = request(&[b"0123456789abcdef".as_slice(); 100_000]);
        let (reads, _) = read(&request);
        assert!(reads <= request.len() / READ_MANY_BYTES + 1, "{reads}");
    }

    #[test]
    fn an_inline_line_takes_few_reads() {
        let line = [&[b'x'; 65_530][..], b"\r\n"].concat();
        let (reads, _) = read(&line);
        assert!(reads <= line.len() / READ_MIN_BYTES + 1, "{reads}");
    }

    #[test]
    fn a_large_argument_has_no_more_room_than_it_needs() {
        for len in [20_001, 50_000, 900_000, 1_100_000] {
            let request = request(&[b"SET", b"k", &vec![b'x'; len]]);
            let (reads, buffer) = read(&request);
            assert!(reads <= 3, "{reads}");
            assert_eq!(buffer.capacity(), request.len(), "{len}");
        }
    }
}
