//! `--stat`: a line of the server's numbers, again and again.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use resp::Value;

use super::{Countdown, interval_or};
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::info::Info;
use crate::limits::LINES_PER_HEADING;
use crate::session::Session;

const HEADING: &str = "\
------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          
";

pub(super) fn run(session: &mut Session, options: &Options) -> Result {
    let mut out = io::stdout().lock();
    let mut countdown = Countdown::new(options);
    let mut requests_before = None;
    for line in 0_u64.. {
        let info = match session.ask_patiently(&[b"INFO".to_vec()])? {
            Value::Error(text) => {
                return Err(Failure::Other(format!(
                    "ERROR: {}",
                    String::from_utf8_lossy(&text)
                )));
            }
            Value::Bulk(text) | Value::Verbatim { text, .. } => Info::parse(&text),
            other => return Err(Failure::Other(format!("INFO answered {other:?}"))),
        };
        if line % LINES_PER_HEADING == 0 {
            out.write_all(HEADING.as_bytes())?;
        }
        let requests = info.number("total_commands_processed");
        // Fewer than before: the server has begun anew.
        let new = requests_before.map_or(0, |before| match requests - before {
            new @ 0.. => new,
            _ => requests,
        });
        requests_before = Some(requests);
        writeln!(
            out,
            "{:<11}{:<8} {:<8}{:<8}{:<19} {:<12}{}",
            info.keys(),
            bytes_text(info.number("used_memory")),
            info.number("connected_clients"),
            info.number("blocked_clients"),
            format!("{requests} (+{new})"),
            info.number("total_connections_received"),
            info.child(),
        )?;
        out.flush()?;
        if countdown.is_last() {
            break;
        }
        sleep(interval_or(options, Duration::from_secs(1)));
    }
    Ok(())
}

/// A number of bytes with a unit of two to the tenth: `100B`, `1.50K`.
pub(crate) fn bytes_text(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let sign = if bytes < 0 { "-" } else { "" };
    let bytes = bytes.unsigned_abs();
    if bytes < 1024 {
        return format!("{sign}{bytes}B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    let scaled = bytes as f64 / 1024_f64.powi(power as i32);
    format!("{sign}{scaled:.2}{}", UNITS[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1_572_864, "1.50M"),
            (-2048, "-2.00K"),
            (5 << 30, "5.00G"),
            (3 << 40, "3.00T"),
            (i64::MAX, "8192.00P"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
    }
}
