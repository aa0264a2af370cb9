//! `--stat`: a line of the server's numbers, again and again.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use resp::Value;

use super::countdown::Countdown;
use crate::amounts::bytes_text;
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
        sleep(options.interval_or(Duration::from_secs(1)));
    }
    Ok(())
}
