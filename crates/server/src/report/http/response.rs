//! An answer: a status, a body and its type.
//!
//! Every answer carries the same security headers for browsers: no content of other origins, no frames, no
//! caching.

use std::fmt::Write as _;
use std::sync::Arc;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 200,
    BadRequest = 400,
    Unauthorized = 401,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    ContentTooLarge = 413,
    TooManyRequests = 429,
    HeadTooLarge = 431,
    Unavailable = 503,
}

impl Status {
    fn reason(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::BadRequest => "Bad Request",
            Status::Unauthorized => "Unauthorized",
            Status::Forbidden => "Forbidden",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::ContentTooLarge => "Content Too Large",
            Status::TooManyRequests => "Too Many Requests",
            Status::HeadTooLarge => "Request Header Fields Too Large",
            Status::Unavailable => "Service Unavailable",
        }
    }
}

/// Types of bodies, as in the header.
pub(super) mod content {
    pub(in crate::report::http) const TEXT: &str = "text/plain; charset=utf-8";
    pub(in crate::report::http) const HTML: &str = "text/html; charset=utf-8";
    pub(in crate::report::http) const STYLE: &str = "text/css; charset=utf-8";
    pub(in crate::report::http) const SCRIPT: &str = "text/javascript; charset=utf-8";
    pub(in crate::report::http) const ICON: &str = "image/svg+xml";
    pub(in crate::report::http) const JSON: &str = "application/json";
    /// The text format of Prometheus.
    pub(in crate::report::http) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
}

/// Content security policy: a browser may load this server's own files only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// See the module. Bodies are shared: the same figures are served for a moment.
#[derive(Clone)]
pub(super) struct Response {
    pub(super) status: Status,
    pub(super) content: &'static str,
    pub(super) body: Arc<[u8]>,
}

impl Response {
    pub(super) fn new(
        status: Status,
        content: &'static str,
        body: impl Into<Arc<[u8]>>,
    ) -> Response {
        Response {
            status,
            content,
            body: body.into(),
        }
    }

    /// One line of text.
    pub(super) fn line(status: Status, text: &str) -> Response {
        Response::new(status, content::TEXT, format!("{text}\n").into_bytes())
    }

    /// A status and nothing to add.
    pub(super) fn plain(status: Status) -> Response {
        Response::line(status, status.reason())
    }

    /// The status line and the headers.
    pub(super) fn head(&self, keeps_open: bool) -> String {
        let (code, reason) = (self.status as u16, self.status.reason());
        let date = chrono::Utc::now().format("%a, %d %b %Y %H:%M:%S GMT");
        let connection = if keeps_open { "keep-alive" } else { "close" };
        let mut head = format!(
            "HTTP/1.1 {code} {reason}\r\nDate: {date}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
             Connection: {connection}\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n",
            self.content,
            self.body.len(),
        );
        match self.status {
            Status::Unauthorized => {
                head.push_str("WWW-Authenticate: Basic realm=\"Ferrite\", charset=\"UTF-8\"\r\n");
            }
            Status::MethodNotAllowed => head.push_str("Allow: GET, HEAD\r\n"),
            Status::Unavailable => {
                let _ = write!(head, "Retry-After: 1\r\n");
            }
            _ => {}
        }
        head.push_str("\r\n");
        head
    }
}
