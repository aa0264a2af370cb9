//! Any bytes, cut anywhere and moved about, parse as the whole: same requests, same error, spans
//! within the request.
//!
//! The first eight bytes of an input are the seed of the cuts and the limits; the rest is the
//! stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resp::{Limits, Outcome, ProtocolError, Resume, Span, request};

#[derive(Debug, Default, PartialEq)]
struct Parsed {
    requests: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// Parses `stream` in pieces whose lengths `next_len` gives, behind gaps whose lengths `next_gap`
/// gives.
fn parse(
    stream: &[u8],
    limits: &Limits,
    mut next_len: impl FnMut() -> usize,
    mut next_gap: impl FnMut() -> usize,
) -> Parsed {
    let (mut parsed, mut resume, mut need) = (Parsed::default(), Resume::default(), 0);
    let (mut input, mut at, mut rest) = (vec![], 0, stream);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(next_len().min(rest.len()));
        rest = behind;
        let gap = next_gap();
        input = [&vec![b'*'; gap][..], &input[at..], piece].concat();
        at = gap;
        loop {
            let available = input.len() - at;
            let mut args = vec![Span::default()];
            match request::parse(&mut input, at, limits, &mut resume, &mut args) {
                Ok(Outcome::Request { end }) => {
                    assert!(
                        resume.is_idle() && available >= need && at < end && end <= input.len()
                    );
                    let within = |span: &Span| span.start >= at && span.start + span.len <= end;
                    assert!(args[1..].iter().all(within));
                    parsed.requests.push(
                        args[1..]
                            .iter()
                            .map(|span| span.of(&input).to_vec())
                            .collect(),
                    );
                    (at, need) = (end, 0);
                }
                Ok(Outcome::Incomplete { need: new }) => {
                    assert!(args.len() == 1 && new > available);
                    assert!(if available < need {
                        new == need
                    } else {
                        new > need
                    });
                    need = new;
                    break;
                }
                Err(error) => {
                    assert!(args.len() == 1 && resume.is_idle());
                    parsed.error = Some(error);
                    return parsed;
                }
            }
        }
    }
    parsed
}

fuzz_target!(|data: &[u8]| {
    let Some((seed, stream)) = data.split_first_chunk::<8>() else {
        return;
    };
    let seed = u64::from_le_bytes(*seed);
    let limits = Limits {
        // Small enough for an input to exceed them.
        max_bulk_len: 10_000,
        max_args: 20,
        max_inline_len: 64,
        // With some, what a line is depends on how it arrives.
        whole_inline_extra: 0,
        authenticated: seed & 1 == 0,
    };
    let whole = parse(stream, &limits, || stream.len(), || 0);
    let bytewise = parse(stream, &limits, || 1, || 0);
    assert_eq!(whole, bytewise);
    let mut lens = fastrand::Rng::with_seed(seed);
    let mut gaps = lens.clone();
    let pieces = parse(stream, &limits, || lens.usize(1..20), || gaps.usize(..5));
    assert_eq!(whole, pieces);
});
