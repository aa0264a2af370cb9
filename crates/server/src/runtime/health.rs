//! `--health`: asks a running server for a PING, by the configuration that it was started with. A container's
//! health check runs it: the address, the password and the unix socket are wherever the server itself has
//! them from.
//!
//! Without further arguments the server is the first process of the container, and its arguments are those of
//! that process. Otherwise they follow, as they would for a start.

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use resp::{Value, parse_value, write_request};
use sys::socket::{Family, Stream};

use crate::config::{Setting, Settings};

/// How long a server may take to be connected to, and to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the server with these settings whether it serves.
///
/// # Errors
/// Why it does not.
pub(crate) fn check(settings: &Settings) -> Result<(), String> {
    let stream = connect(settings)?;
    let mut request = Vec::new();
    let password = settings.text(Setting::RequirePass);
    let has_password = !password.is_empty();
    if has_password {
        write_request(&mut request, &[b"AUTH", password.as_bytes()]);
    }
    write_request(&mut request, &[b"PING"]);
    (&stream)
        .write_all(&request)
        .map_err(|error| format!("cannot send to the server: {error}"))?;
    let mut replies = read(&stream, 1 + usize::from(has_password))?;
    match replies.pop() {
        Some(Value::Simple(_)) => Ok(()),
        // CONFIG SET has changed the password since the start: a server that refuses it is alive.
        Some(Value::Error(text)) if text.starts_with(b"NOAUTH") => Ok(()),
        Some(Value::Error(text)) => Err(String::from_utf8_lossy(&text).into_owned()),
        _ => Err("the server answered PING with something else".into()),
    }
}

/// Connects to where a server with these settings listens.
fn connect(settings: &Settings) -> Result<Stream, String> {
    let port = settings.int(Setting::Port) as u16;
    if port == 0 {
        // The settings have made sure that the directory is there.
        let socket =
            Path::new(&*settings.text(Setting::Dir)).join(&*settings.text(Setting::UnixSocket));
        return Stream::connect_unix(&socket)
            .map_err(|error| format!("cannot connect to {}: {error}", socket.display()));
    }
    let mut problem = "'bind' names no address".to_owned();
    for address in settings.text(Setting::Bind).split_whitespace() {
        let host = match address.strip_prefix('-').unwrap_or(address) {
            "*" | "0.0.0.0" => "127.0.0.1",
            "::*" | "::" => "::1",
            host => host,
        };
        match Stream::connect_tcp(host, port, Family::Any, Some(PATIENCE)) {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = format!("cannot connect to {host}:{port}: {error}"),
        }
    }
    Err(problem)
}

/// Reads so many replies.
fn read(mut stream: &Stream, count: usize) -> Result<Vec<Value>, String> {
    let began = Instant::now();
    let mut bytes = Vec::new();
    let mut replies = Vec::new();
    let mut buffer = [0; 1024];
    while replies.len() < count {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let ready = stream
            .wait(None, Some(left))
            .map_err(|error| error.to_string())?;
        if !ready.stream {
            return Err(format!("no answer within {} seconds", PATIENCE.as_secs()));
        }
        let read = stream
            .read(&mut buffer)
            .map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        bytes.extend_from_slice(&buffer[..read]);
        while let Some((reply, used)) = parse_value(&bytes).map_err(|error| error.to_string())? {
            replies.push(reply);
            bytes.drain(..used);
        }
    }
    Ok(replies)
}
