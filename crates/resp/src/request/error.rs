//! What can be wrong with a request, in the words of Redis.
//!
//! Here live the errors and their texts, to the byte: clients and people search for them. When each
//! one occurs is the parser's part.

use std::fmt;

/// A request that breaks the protocol. The connection cannot be read any further, since where the
/// next request starts is unknown.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum ProtocolError {
    /// An inline line has no end within the limit.
    InlineTooBig,
    /// A quote of an inline line is not closed, or its end is not followed by a space.
    UnbalancedQuotes,
    /// The line of the number of arguments has no end within the limit.
    CountTooBig,
    /// The number of arguments is no number or above the limit.
    InvalidCount,
    /// More than 10 arguments before authentication.
    UnauthenticatedCount,
    /// The line of an argument's length has no end within the limit.
    LengthTooBig,
    /// An argument starts with this byte in place of `$`.
    ExpectedDollar(u8),
    /// The length of an argument is no number, negative or above the limit.
    InvalidLength,
    /// An argument of more than 16 KiB before authentication.
    UnauthenticatedLength,
}

impl ProtocolError {
    fn text(&self) -> &'static str {
        match self {
            ProtocolError::InlineTooBig => "Protocol error: too big inline request",
            ProtocolError::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            ProtocolError::CountTooBig => "Protocol error: too big mbulk count string",
            ProtocolError::InvalidCount => "Protocol error: invalid multibulk length",
            ProtocolError::UnauthenticatedCount => {
                "Protocol error: unauthenticated multibulk length"
            }
            ProtocolError::LengthTooBig => "Protocol error: too big bulk count string",
            ProtocolError::ExpectedDollar(_) => "Protocol error: expected '$', got '",
            ProtocolError::InvalidLength => "Protocol error: invalid bulk length",
            ProtocolError::UnauthenticatedLength => "Protocol error: unauthenticated bulk length",
        }
    }

    /// Appends the whole error reply, from `-ERR` to `\r\n`. Unlike `Display` it repeats an
    /// unexpected byte as it is, also where that byte is no text.
    pub fn write_reply(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"-ERR ");
        out.extend_from_slice(self.text().as_bytes());
        if let ProtocolError::ExpectedDollar(found) = *self {
            out.extend_from_slice(&[printable(found), b'\'']);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// A line end inside an error reply would end the reply.
fn printable(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') {
        b' '
    } else {
        byte
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        if let ProtocolError::ExpectedDollar(found) = *self {
            write!(f, "{}'", char::from(printable(found)))?;
        }
        Ok(())
    }
}

impl std::error::Error for ProtocolError {}
