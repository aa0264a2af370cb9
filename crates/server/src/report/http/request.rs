//! The head of a request: the part of HTTP/1.1 that a reading client needs.
//!
//! `httparse` parses the bytes; this module keeps the relevant parts. A request with a body is refused: no
//! path takes one.

use super::response::Status;

/// Header lines that a request may have; what browsers and monitoring systems send is a third of it.
const HEADERS: usize = 48;

/// Result of parsing the input of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The beginning of a request.
    Partial,
    /// A request, and how many bytes it takes.
    Whole(Request, usize),
    /// Nothing that is answered in any other way; the connection cannot go on.
    Refused(Status),
}

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Without what follows a question mark.
    pub(super) path: String,
    /// The part after the question mark.
    pub(super) query: String,
    /// The answer goes without its body.
    pub(super) is_head: bool,
    /// Another request may follow on the connection.
    pub(super) keeps_open: bool,
    /// The host that the client believes to talk to, port included.
    pub(super) host: Option<String>,
    pub(super) authorization: Option<Vec<u8>>,
}

/// Takes the first request of `bytes` apart.
pub(super) fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let consumed = match head.parse(bytes) {
        Ok(httparse::Status::Complete(consumed)) => consumed,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(httparse::Error::TooManyHeaders) => return Parsed::Refused(Status::HeadTooLarge),
        Err(_) => return Parsed::Refused(Status::BadRequest),
    };
    let is_head = match head.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Parsed::Refused(Status::MethodNotAllowed),
    };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        path: path.to_owned(),
        query: query.to_owned(),
        is_head,
        keeps_open: head.version == Some(1),
        ..Request::default()
    };
    for header in head.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let text = String::from_utf8_lossy(header.value);
        if is("transfer-encoding") || (is("content-length") && text.trim() != "0") {
            return Parsed::Refused(Status::ContentTooLarge);
        } else if is("connection") {
            let says = |word: &str| {
                text.split(',')
                    .any(|one| one.trim().eq_ignore_ascii_case(word))
            };
            request.keeps_open = (request.keeps_open || says("keep-alive")) && !says("close");
        } else if is("host") {
            if request.host.is_some() {
                return Parsed::Refused(Status::BadRequest);
            }
            request.host = Some(text.trim().to_owned());
        } else if is("authorization") {
            request.authorization = Some(header.value.to_vec());
        }
    }
    // HTTP/1.1 demands it. Without this rule a request without Host would evade the check of it.
    if head.version == Some(1) && request.host.is_none() {
        return Parsed::Refused(Status::BadRequest);
    }
    Parsed::Whole(request, consumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Whole(request, consumed) if consumed == text.len() => request,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn refused(text: &str) -> Status {
        match parse(text.as_bytes()) {
            Parsed::Refused(status) => status,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_request_split_anywhere_is_one_that_is_not_whole_yet() {
        let text = "GET /metrics?x=1 HTTP/1.1\r\nHost: a:1\r\nAuthorization: Basic eA==\r\n\r\n";
        for at in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..at]), Parsed::Partial, "{at}");
        }
        let request = whole(text);
        assert_eq!(
            (&*request.path, request.host.as_deref()),
            ("/metrics", Some("a:1"))
        );
        assert_eq!(request.query, "x=1");
        assert_eq!(request.authorization.as_deref(), Some(&b"Basic eA=="[..]));
        assert!(request.keeps_open && !request.is_head);
    }

    #[test]
    fn a_connection_is_kept_as_its_version_and_its_header_say() {
        for (version, line, kept) in [
            ("1.1", "", true),
            ("1.1", "Connection: Close\r\n", false),
            ("1.1", "connection: foo, close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let text = format!("HEAD / HTTP/{version}\r\nHost: a\r\n{line}\r\n");
            let request = whole(&text);
            assert!(request.is_head && request.keeps_open == kept, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_plain_reading_request_is_refused() {
        assert_eq!(
            refused("POST / HTTP/1.1\r\nHost: a\r\n\r\n"),
            Status::MethodNotAllowed
        );
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), Status::BadRequest);
        assert_eq!(
            refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            Status::BadRequest
        );
        assert_eq!(refused("*1\r\n$4\r\nPING\r\n"), Status::BadRequest);
        for body in [
            "Content-Length: 1",
            "Content-Length: x",
            "Transfer-Encoding: chunked",
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{body}\r\n\r\n");
            assert_eq!(refused(&text), Status::ContentTooLarge);
        }
        assert!(whole("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").keeps_open);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        assert_eq!(refused(&many), Status::HeadTooLarge);
    }
}
