//! What each path answers, and who may ask.
//!
//! | path | answer |
//! |---|---|
//! | `/` and its files | the dashboard |
//! | `/stats.json` | what the dashboard shows |
//! | `/metrics` | figures in the text format of Prometheus |
//! | `/healthz` | 200 while the process answers at all |
//! | `/readyz` | 200 while every command may run, else 503 and why not |
//!
//! Where a password is set, all but health wants it (Basic, any user name): key names and slow commands are data. A
//! browser on this machine must mean this machine: a page of somebody else's whose name resolves to a loopback address is
//! refused, as it could read everything otherwise.

use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use keyspace::Turn;
use sys::socket::Socket;

use super::request::Request;
use super::response::{Response, Status, content};
use crate::config::Setting;
use crate::figures::{self, View};
use crate::limits::HTTP_FRESH_MS;
use crate::logins::Origin;
use crate::server::Server;

/// The files of the dashboard: path, kind, bytes.
const FILES: &[(&str, &str, &str)] = &[
    ("/", content::HTML, include_str!("page/index.html")),
    (
        "/dashboard.css",
        content::STYLE,
        include_str!("page/dashboard.css"),
    ),
    (
        "/dashboard.js",
        content::SCRIPT,
        include_str!("page/dashboard.js"),
    ),
    ("/icon.svg", content::ICON, include_str!("page/icon.svg")),
];

/// See the module. Keeps what was gathered for as long as it is fresh.
pub(super) struct Routes {
    server: &'static Server,
    metrics: Fresh,
    stats: Fresh,
}

/// A body, and until when (monotonic ms) it is answered again.
#[derive(Default)]
struct Fresh {
    until_ms: u64,
    response: Option<Response>,
}

impl Routes {
    pub(super) fn new(server: &'static Server) -> Routes {
        Routes {
            server,
            metrics: Fresh::default(),
            stats: Fresh::default(),
        }
    }

    /// Answers a request that came over `socket`.
    pub(super) fn answer(
        &mut self,
        request: &Request,
        socket: &Socket,
        turn: &mut Turn<'static>,
    ) -> Response {
        let host = request.host.as_deref();
        if socket.is_loopback_peer() && !host.is_none_or(means_this_machine) {
            let text = "Ask for an address of this machine, or for localhost: the name in the Host header is another.";
            return Response::line(Status::Forbidden, text);
        }
        match &*request.path {
            "/healthz" => return Response::line(Status::Ok, "ok"),
            "/readyz" => return self.readiness(),
            _ => {}
        }
        let password = self.server.settings.text(Setting::RequirePass);
        if !password.is_empty()
            && let Some(refusal) = self.refusal(request, socket, &password)
        {
            return refusal;
        }
        match &*request.path {
            "/metrics" => self.gathered(
                turn,
                content::METRICS,
                |routes| &mut routes.metrics,
                figures::exposition,
            ),
            "/stats.json" => self.gathered(
                turn,
                content::JSON,
                |routes| &mut routes.stats,
                figures::dashboard,
            ),
            path => match FILES.iter().find(|(name, ..)| *name == path) {
                Some((_, content, text)) => Response::new(Status::Ok, content, text.as_bytes()),
                None => Response::plain(Status::NotFound),
            },
        }
    }

    /// Refuses a request without the right password, and one that comes before its turn after several wrong
    /// ones.
    fn refusal(&self, request: &Request, socket: &Socket, password: &str) -> Option<Response> {
        if request.authorization.is_none() {
            return Some(Response::plain(Status::Unauthorized));
        }
        let (logins, now_ms) = (&self.server.logins, sys::clock::realtime_ms());
        let origin = Origin::of(socket.peer_address().map(|address| address.ip()));
        if !logins.has_turn_now(origin, now_ms) {
            return Some(Response::plain(Status::TooManyRequests));
        }
        if !is_authorized(request, password) {
            logins.note_failure(origin, now_ms);
            return Some(Response::plain(Status::Unauthorized));
        }
        logins.note_success(origin);
        None
    }

    fn readiness(&self) -> Response {
        match figures::why_not_ready(self.server) {
            None => Response::line(Status::Ok, "ok"),
            Some(reason) => Response::line(Status::Unavailable, reason),
        }
    }

    /// What `write` makes of the figures, as of now or a moment ago.
    fn gathered(
        &mut self,
        turn: &mut Turn<'static>,
        content: &'static str,
        slot: fn(&mut Routes) -> &mut Fresh,
        write: fn(&View<'_>) -> String,
    ) -> Response {
        let now_ms = sys::clock::monotonic_ns() / 1_000_000;
        let fresh = slot(self);
        if now_ms < fresh.until_ms
            && let Some(response) = &fresh.response
        {
            return response.clone();
        }
        if self.server.is_ending() {
            // The keyspace is closed to all but the one who writes the last snapshot.
            return Response::line(Status::Unavailable, "the server is shutting down");
        }
        turn.enter();
        let text = write(&View::gather(self.server, turn));
        turn.leave();
        let response = Response::new(Status::Ok, content, text.into_bytes());
        *slot(self) = Fresh {
            until_ms: now_ms + HTTP_FRESH_MS,
            response: Some(response.clone()),
        };
        response
    }
}

/// Whether a Host header names an address or `localhost`, not a name that somebody may have given to this machine.
fn means_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_local =
        name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost");
    is_local || name.parse::<IpAddr>().is_ok()
}

/// Whether a request carries the password. Every byte of it is looked at, however early one differs.
fn is_authorized(request: &Request, password: &str) -> bool {
    let given = request.authorization.as_deref().unwrap_or_default();
    let Some((scheme, token)) = given
        .iter()
        .position(|&byte| byte == b' ')
        .map(|at| given.split_at(at))
    else {
        return false;
    };
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return false;
    }
    let decoded = BASE64_STANDARD
        .decode(token.trim_ascii())
        .unwrap_or_default();
    let Some(colon) = decoded.iter().position(|&byte| byte == b':') else {
        return false;
    };
    let (given, expected) = (&decoded[colon + 1..], password.as_bytes());
    let differences = given
        .iter()
        .zip(expected)
        .fold(0, |sum, (one, other)| sum | (one ^ other));
    std::hint::black_box(differences) == 0 && given.len() == expected.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_mean_this_machine_are_addresses_and_localhost() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]:9121",
            "[::1]",
            "localhost",
            "LocalHost:1",
            "a.localhost:1",
            "10.0.0.1:1",
        ] {
            assert!(means_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9121",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[x]:1",
        ] {
            assert!(!means_this_machine(host), "{host}");
        }
    }

    #[test]
    fn the_password_is_the_one_behind_the_colon() {
        let authorized = |given: &str, password: &str| {
            let request = Request {
                authorization: Some(given.as_bytes().to_vec()),
                ..Request::default()
            };
            is_authorized(&request, password)
        };
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert!(authorized(&basic("default:pass:word"), "pass:word"));
        assert!(authorized(&basic(":p").replace("Basic", "bASIC "), "p"));
        for wrong in [
            "",
            "Basic",
            "Basic ",
            "Basic !!",
            "Bearer cA==",
            &basic("p"),
            &basic(":"),
            &basic(":pp"),
            &basic("p:"),
        ] {
            assert!(!authorized(wrong, "p"), "{wrong}");
        }
        assert!(!is_authorized(&Request::default(), "p"));
    }
}
