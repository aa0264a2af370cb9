//! A connection that sends requests in one piece, and decodes the kinds of replies that lists give.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::PATIENCE;

/// The server has gone: what was sent may have happened or not.
#[derive(Debug)]
pub(super) struct Gone;

/// A reply; arrays are flat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nil,
    Integer(i64),
    Bulk(Vec<u8>),
    Array(Vec<Vec<u8>>),
    /// An error, or what is no reply of a list.
    Other(String),
}

/// See the module.
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Wire {
    pub(super) fn connect(addr: SocketAddr) -> Result<Wire, Gone> {
        let open = || {
            let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            std::io::Result::Ok(stream)
        };
        Ok(Wire {
            stream: BufReader::with_capacity(64 << 10, open().map_err(|_| Gone)?),
            line: Vec::new(),
        })
    }

    pub(super) fn send(&mut self, requests: &[u8]) -> Result<(), Gone> {
        self.stream.get_mut().write_all(requests).map_err(|_| Gone)
    }

    fn line(&mut self) -> Result<(u8, i64), Gone> {
        self.line.clear();
        let read = self.stream.read_until(b'\n', &mut self.line);
        let [kind, number @ .., b'\r', b'\n'] = &self.line[..] else {
            return Err(Gone);
        };
        read.map_err(|_| Gone)?;
        let number = std::str::from_utf8(number).ok();
        Ok((
            *kind,
            number.and_then(|text| text.parse().ok()).unwrap_or(0),
        ))
    }

    fn bulk(&mut self, len: i64) -> Result<Vec<u8>, Gone> {
        let mut bytes = vec![0; len as usize + 2];
        self.stream.read_exact(&mut bytes).map_err(|_| Gone)?;
        bytes.truncate(len as usize);
        Ok(bytes)
    }

    pub(super) fn reply(&mut self) -> Result<Reply, Gone> {
        let (kind, number) = self.line()?;
        Ok(match kind {
            b':' => Reply::Integer(number),
            b'$' | b'*' if number < 0 => Reply::Nil,
            b'$' => Reply::Bulk(self.bulk(number)?),
            b'*' => {
                let mut parts = Vec::new();
                for _ in 0..number {
                    let (_, len) = self.line()?;
                    parts.push(self.bulk(len)?);
                }
                Reply::Array(parts)
            }
            _ => Reply::Other(String::from_utf8_lossy(&self.line).into_owned()),
        })
    }
}

/// Appends a request.
pub(super) fn request(out: &mut Vec<u8>, words: &[&[u8]]) {
    // Writing to a vector does not fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
