//! `--rdb FILE`, `--functions-rdb FILE`: asks for the data as a replica does, which is a file of one point in
//! time, and keeps it. `--replica` drops the file and shows the changes that come behind it.
//!
//! The server tells the length first; or, if it does not know it yet, the forty bytes that will stand behind
//! the end.

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::Path;

use resp::Value;

use sys::socket::Stream;

use super::countdown::Countdown;
use super::file::{Target, wrong};
use crate::connection::Connection;
use crate::failure::{Broken, Failure, Result};
use crate::flags::Options;
use crate::format::{Format, Style};
use crate::limits::READ_CHUNK;
use crate::session::Session;

/// Length of what stands behind a file of unknown length.
const MARK_LEN: usize = 40;

/// What comes over a connection once it is a replica's.
type Input<'a> = BufReader<io::Chain<Cursor<Vec<u8>>, &'a Stream>>;

/// Keeps the file.
pub(super) fn run(mut session: Session, path: &Path, has_functions_only: bool) -> Result {
    say(&mut session, &["REPLCONF", "capa", "eof"])?;
    say(&mut session, &["REPLCONF", "rdb-only", "1"])?;
    if has_functions_only && !say(&mut session, &["REPLCONF", "rdb-filter-only", "functions"])? {
        return Err(Failure::other("Failed requesting functions only RDB"));
    }
    let (read, stream) = sync(session)?;
    let mut input = Input::with_capacity(READ_CHUNK, Cursor::new(read).chain(&stream));
    let header = header(&mut input)?;
    let name = path.display();
    match &header {
        Header::Length(len) => eprintln!("SYNC sent to master, writing {len} bytes to '{name}'"),
        Header::Mark(_) => eprintln!(
            "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{name}'"
        ),
    }
    let mut target = Target::create(path)?;
    match header {
        Header::Length(len) => {
            copy(&mut input, &mut target, len, path)?;
            target.keep(path)?;
            eprintln!("Transfer finished with success.");
        }
        Header::Mark(mark) => {
            let len = copy_to_mark(&mut input, &mut target, &mark, path)?;
            target.keep(path)?;
            eprintln!("Transfer finished with success after {len} bytes");
        }
    }
    Ok(())
}

/// Shows what changes, from now on.
pub(super) fn follow(mut session: Session, options: &Options) -> Result {
    say(&mut session, &["REPLCONF", "capa", "eof"])?;
    // Without the data, if the server can leave it out.
    say(&mut session, &["REPLCONF", "rdb-filter-only", ""])?;
    let (read, stream) = sync(session)?;
    let mut input = Input::with_capacity(READ_CHUNK, Cursor::new(read).chain(&stream));
    let mut nowhere = io::sink();
    let place = Path::new("");
    match header(&mut input)? {
        Header::Length(len) => {
            eprintln!("SYNC with master, discarding {len} bytes of bulk transfer...");
            copy(&mut input, &mut nowhere, len, place)?;
            eprintln!("SYNC done. Logging commands from master.");
        }
        Header::Mark(mark) => {
            eprintln!("SYNC with master, discarding bytes of bulk transfer until EOF marker...");
            let len = copy_to_mark(&mut input, &mut nowhere, &mark, place)?;
            eprintln!("SYNC done after {len} bytes. Logging commands from master.");
        }
    }
    // What was read ahead belongs to the changes.
    let mut ahead = input.buffer().to_vec();
    let (cursor, _) = input.into_inner().into_inner();
    ahead.extend_from_slice(&cursor.get_ref()[cursor.position() as usize..]);
    let mut connection = Connection::resume(stream, ahead);
    eprintln!("sending REPLCONF ACK 0");
    connection.queue(&["REPLCONF", "ACK", "0"]);
    connection.flush()?;
    let style = Style::of(Format::Csv);
    let mut countdown = Countdown::new(options);
    let mut out = io::stdout().lock();
    loop {
        let change = connection.read(None)?;
        let mut text = Vec::new();
        style.append(&mut text, &change);
        out.write_all(&text)?;
        out.flush()?;
        if countdown.is_last() {
            return Ok(());
        }
    }
}

/// Makes the connection a replica's: what was read from it already, and itself.
fn sync(session: Session) -> Result<(Vec<u8>, Stream)> {
    let mut connection = session.into_connection()?;
    connection.queue(&[b"SYNC"]);
    connection.flush()?;
    Ok(connection.into_bytes())
}

/// Says something about this replica, which an older server need not understand; whether it did.
fn say(session: &mut Session, words: &[&str]) -> Result<bool> {
    eprintln!("sending {}", words.join(" "));
    let request: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    if let Value::Error(text) = session.ask(&request)? {
        let text = String::from_utf8_lossy(&text);
        eprintln!("REPLCONF {} error: {text}", words[1]);
        return Ok(false);
    }
    Ok(true)
}

/// How the end of the file is told.
enum Header {
    Length(u64),
    Mark([u8; MARK_LEN]),
}

fn header(input: &mut impl BufRead) -> Result<Header> {
    loop {
        let mut line = Vec::new();
        let mut limited = input.by_ref().take(READ_CHUNK as u64);
        limited.read_until(b'\n', &mut line).map_err(Broken::Io)?;
        if line.is_empty() {
            return Err(Broken::Closed.into());
        }
        let line = line.trim_ascii_end();
        // An empty line is a sign of life while the file is being made.
        if line.is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        if let Some(reason) = text.strip_prefix('-') {
            let hint = if reason.contains("unknown command") {
                "\nThis server has no replication; `ferrite-cli export FILE` reads it key by key."
            } else {
                ""
            };
            return Err(Failure::Other(format!(
                "SYNC with master failed: {text}{hint}"
            )));
        }
        let header = text
            .strip_prefix('$')
            .and_then(|rest| match rest.strip_prefix("EOF:") {
                Some(mark) => mark.as_bytes().try_into().ok().map(Header::Mark),
                None => rest.parse().ok().map(Header::Length),
            });
        return header.ok_or_else(|| Failure::Other(format!("SYNC with master failed: {text}")));
    }
}

fn copy(input: &mut impl BufRead, target: &mut impl Write, len: u64, path: &Path) -> Result {
    let mut left = len;
    while left > 0 {
        let chunk = input.fill_buf().map_err(Broken::Io)?;
        if chunk.is_empty() {
            return Err(Broken::Closed.into());
        }
        let count = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let put = target.write_all(&chunk[..count]);
        put.map_err(|error| wrong(path, &error))?;
        input.consume(count);
        left -= count as u64;
    }
    Ok(())
}

/// Copies what stands before the mark; how much that was.
fn copy_to_mark(
    input: &mut impl BufRead,
    target: &mut impl Write,
    mark: &[u8; MARK_LEN],
    path: &Path,
) -> Result<u64> {
    let mut held = Vec::new();
    let mut len = 0;
    loop {
        let chunk = input.fill_buf().map_err(Broken::Io)?;
        if chunk.is_empty() {
            return Err(Broken::Closed.into());
        }
        let before = held.len();
        held.extend_from_slice(chunk);
        let end = held.windows(MARK_LEN).position(|window| window == mark);
        let count = end.map_or(chunk.len(), |end| end + MARK_LEN - before);
        input.consume(count);
        // What may be the mark's beginning waits for the rest.
        let done = end.unwrap_or_else(|| held.len().saturating_sub(MARK_LEN - 1));
        let put = target.write_all(&held[..done]);
        put.map_err(|error| wrong(path, &error))?;
        held.drain(..done);
        len += done as u64;
        if end.is_some() {
            return Ok(len);
        }
    }
}
