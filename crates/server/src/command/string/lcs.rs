//! LCS: its options and its replies. The algorithm is in `subsequence`.

use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::operand::Operand;
use super::subsequence::{self, Match};
use crate::config::Setting;

const BOTH_MODES: Failure =
    Failure::of("ERR If you want both the length and indexes, please just use IDX.");
const NOT_STRINGS: Failure = Failure::of("ERR The specified keys must contain string values");
const TOO_LONG: Failure = Failure::of("ERR String too long for LCS");
const TOO_MUCH: Failure =
    Failure::of("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");

/// Form of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The subsequence.
    Text,
    /// LEN: how long it is.
    Length,
    /// IDX: where its stretches are.
    Matches,
}

struct Options {
    mode: Mode,
    /// The shortest stretch that IDX returns.
    min_match_len: usize,
    with_match_len: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, Failure> {
        let (mut len, mut idx) = (false, false);
        let mut options = Options {
            mode: Mode::Text,
            min_match_len: 0,
            with_match_len: false,
        };
        let mut at = 3;
        while at < args.len() {
            if args.is(at, "IDX") {
                idx = true;
            } else if args.is(at, "LEN") {
                len = true;
            } else if args.is(at, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
                at += 1;
                options.min_match_len = usize::try_from(args.integer(at)?).unwrap_or(0);
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        options.mode = match (len, idx) {
            (true, true) => return Err(BOTH_MODES),
            (true, false) => Mode::Length,
            (false, true) => Mode::Matches,
            (false, false) => Mode::Text,
        };
        Ok(options)
    }
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`
pub(super) fn lcs(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = Options::parse(args);
    let keys = [args.key(1), args.key(2)];
    // The values are taken out of the shards: comparing them may take long.
    let mut shards = context.store.lock_keys(keys.into_iter());
    let [first, second] = keys.map(|key| Operand::read(&mut shards, key));
    drop(shards);
    let first = first.map_err(|_| NOT_STRINGS)?;
    let second = second.map_err(|_| NOT_STRINGS)?;
    // Wrong options are refused last: the reads count, and events of missing keys are published.
    let options = options?;
    let (first, second) = (first.bytes(), second.bytes());
    check_size(context, first.len(), second.len())?;
    match options.mode {
        Mode::Length => context
            .reply
            .integer(subsequence::length(first, second) as i64),
        Mode::Text => {
            let matches = subsequence::matches(first, second);
            let stretches = matches.into_iter().rev().map(|found| &first[found.first]);
            context.reply.bulk(&stretches.collect::<Vec<_>>().concat());
        }
        Mode::Matches => reply_matches(context, &options, subsequence::matches(first, second)),
    }
    Ok(Next::Done)
}

/// Refuses what Redis refuses: two values for which its table, of 4 bytes for each pair of their bytes, would
/// be larger than `proto-max-bulk-len`. Ours takes a thirty-second of that.
fn check_size(context: &Context<'_>, first: usize, second: usize) -> Result<(), Failure> {
    const LONGEST: usize = u32::MAX as usize - 2;
    if first > LONGEST || second > LONGEST {
        return Err(TOO_LONG);
    }
    let table = (first as u128 + 1) * (second as u128 + 1) * 4;
    if table > context.server.settings.int(Setting::ProtoMaxBulkLen) as u128 {
        return Err(TOO_MUCH);
    }
    Ok(())
}

fn reply_matches(context: &mut Context<'_>, options: &Options, mut matches: Vec<Match>) {
    let reply = &mut context.reply;
    let total: usize = matches.iter().map(Match::len).sum();
    matches.retain(|found| found.len() >= options.min_match_len);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for found in &matches {
        reply.array(2 + usize::from(options.with_match_len));
        for range in [&found.first, &found.second] {
            reply.array(2);
            reply.integer(*range.start() as i64);
            reply.integer(*range.end() as i64);
        }
        if options.with_match_len {
            reply.integer(found.len() as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(total as i64);
}
