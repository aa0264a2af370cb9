//! What a verification says.

use super::reader::Findings;
use super::writer::End;
use crate::report::numbers::thousands;
use std::fmt::Write as _;
use std::time::Duration;

/// The load, as far as it went.
pub(super) fn load(end: &End) -> String {
    let mut text = format!(
        "{} writes sent, {} acknowledged, in {:.1} s\n",
        thousands(end.written),
        thousands(end.acknowledged),
        end.elapsed.as_secs_f64()
    );
    if end.errors > 0 {
        let first = end.first_error.as_deref().unwrap_or("");
        let count = thousands(end.errors);
        let _ = writeln!(text, "  ERRORS: {count} error replies, the first: {first}");
    }
    text
}

/// What was found when everything was read back.
pub(super) fn findings(findings: &Findings, may_lose: Duration) -> String {
    let class = match may_lose {
        Duration::ZERO => "nothing acknowledged may be lost".to_owned(),
        time => format!("nothing acknowledged may be lost that is older than {time:?}"),
    };
    let mut text = format!(
        "verified {} keys in {} groups: {class}\n",
        thousands(findings.keys),
        thousands(findings.groups)
    );
    for (count, what) in [
        (findings.missing, "groups missing"),
        (findings.stale, "groups stale"),
        (findings.torn, "groups torn"),
        (
            findings.impossible,
            "groups with what was never written there",
        ),
        (findings.lost_writes, "acknowledged writes lost"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "  {} {what}", thousands(count));
        }
    }
    if findings.older {
        text.push_str("  some of them acknowledged too long ago to be remembered\n");
    } else if let Some(oldest) = findings.oldest {
        let _ = writeln!(text, "  the oldest acknowledged {oldest:?} before the loss");
    }
    for example in &findings.examples {
        let _ = writeln!(text, "    {example}");
    }
    text
}

/// The last line.
pub(super) fn verdict(is_good: bool) -> &'static str {
    match is_good {
        true => "VERIFY: good",
        false => "VERIFY: FAILED",
    }
}
