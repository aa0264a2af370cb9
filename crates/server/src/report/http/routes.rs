//! The paths, their answers and their access rules.
//!
//! | path | answer |
//! |---|---|
//! | `/` and its files | the dashboard |
//! | `/stats.json` | what the dashboard shows |
//! | `/history.json` | what happened in the last hour |
//! | `/keys.json` | keys, by what they begin with |
//! | `/metrics` | figures in the text format of Prometheus |
//! | `/healthz` | 200 while the process answers at all |
//! | `/readyz` | 200 while every command may run, else 503 and why not |
//!
//! Key names and slow commands are data, so all but health is guarded as the data port is:
//!
//! 1. Where a password is set, a request needs it (Basic, any user name).
//! 2. Where none is set, protected mode refuses requests from other machines.
//! 3. Where none is set, or the peer is on this machine, the Host header must be an address, `localhost`, or
//!    a name from `http-hosts` or `http-bind`. A page on the web whose own name resolves to this server's
//!    address (DNS rebinding) is refused by that: its browser sends the page's name.
//!
//! Health is one word, and load balancers that ask for it know no password: other machines get it in any
//! case.

use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use keyspace::Turn;
use sys::socket::Socket;

use super::keys;
use super::request::Request;
use super::response::{Response, Status, content};
use crate::config::Setting;
use crate::limits::{HTTP_FRESH_MS, HTTP_PATIENCE};
use crate::report::figures::{self, History, View};
use crate::server::Server;
use crate::shared::logins::Origin;

/// The files of the dashboard: path, kind, bytes.
const FILES: &[(&str, &str, &str)] = &[
    ("/", content::HTML, include_str!("page/index.html")),
    (
        "/dashboard.css",
        content::STYLE,
        include_str!("page/dashboard.css"),
    ),
    (
        "/charts.js",
        content::SCRIPT,
        include_str!("page/charts.js"),
    ),
    (
        "/dashboard.js",
        content::SCRIPT,
        include_str!("page/dashboard.js"),
    ),
    ("/icon.svg", content::ICON, include_str!("page/icon.svg")),
];

/// The answer to other machines in protected mode.
const PROTECTED: &str = "Ferrite is running in protected mode: no password is set, so only requests from this machine are answered, \
                         and /healthz and /readyz. To be answered, set a password (requirepass) or, on a network you trust, \
                         turn the protection off (protected-mode no).";

/// The answer to a request for another host.
const OTHER_HOST: &str = "The Host header names another host. Ask for an address of this server, or for localhost, or add the name to \
                          the setting http-hosts.";

/// See the module. Keeps what was gathered for as long as it is fresh.
pub(super) struct Routes {
    server: &'static Server,
    metrics: Fresh,
    stats: Fresh,
    past: Fresh,
    history: History,
}

/// Why no figures are told at the end.
const ENDING: &str = "the server is shutting down";

/// Why no figures are told beside a script that lasts.
const SCRIPT: &str = "a script keeps all others from the data";

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
            past: Fresh::default(),
            history: History::new(),
        }
    }

    /// Answers a request that came over `socket`.
    pub(super) fn answer(
        &mut self,
        request: &Request,
        socket: &Socket,
        turn: &mut Turn<'static>,
    ) -> Response {
        let is_local = socket.is_loopback_peer();
        if is_local && !self.accepts_host(request) {
            return Response::line(Status::Forbidden, OTHER_HOST);
        }
        match &*request.path {
            "/healthz" => return Response::line(Status::Ok, "ok"),
            "/readyz" => return self.readiness(),
            _ => {}
        }
        if self.server.is_protected_from(socket) {
            return Response::line(Status::Forbidden, PROTECTED);
        }
        let password = self.server.settings.text(Setting::RequirePass);
        if password.is_empty() {
            if !is_local && !self.accepts_host(request) {
                return Response::line(Status::Forbidden, OTHER_HOST);
            }
        } else if let Some(refusal) = self.refusal(request, socket, &password) {
            return refusal;
        }
        match &*request.path {
            "/metrics" => self.gathered(
                turn,
                content::METRICS,
                |routes| &mut routes.metrics,
                |_, view| figures::exposition(view),
            ),
            "/stats.json" => self.gathered(
                turn,
                content::JSON,
                |routes| &mut routes.stats,
                |_, view| figures::dashboard(view),
            ),
            "/history.json" => self.gathered(
                turn,
                content::JSON,
                |routes| &mut routes.past,
                |routes, _| routes.history.json(routes.server),
            ),
            "/keys.json" => {
                if self.server.is_ending() {
                    return Response::line(Status::Unavailable, ENDING);
                }
                if !self.enter(turn) {
                    return Response::line(Status::Unavailable, SCRIPT);
                }
                let response = keys::answer(self.server, turn, &request.query);
                turn.leave();
                response
            }
            path => match FILES.iter().find(|(name, ..)| *name == path) {
                Some((_, content, text)) => Response::new(Status::Ok, content, text.as_bytes()),
                None => Response::plain(Status::NotFound),
            },
        }
    }

    /// Whether the Host header of a request names this server. HTTP/1.0 allows none, and no browser leaves it
    /// out.
    fn accepts_host(&self, request: &Request) -> bool {
        let Some(name) = request.host.as_deref().map(host_name) else {
            return true;
        };
        let settings = &self.server.settings;
        let is_named = |setting| {
            let names = settings.text(setting);
            let mut words = names.split_whitespace();
            words.any(|word| word.trim_start_matches('-').eq_ignore_ascii_case(name))
        };
        means_this_machine(name) || is_named(Setting::HttpHosts) || is_named(Setting::HttpBind)
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

    /// Output of `write` for the figures, at most [`HTTP_FRESH_MS`] old.
    fn gathered(
        &mut self,
        turn: &mut Turn<'static>,
        content: &'static str,
        slot: fn(&mut Routes) -> &mut Fresh,
        write: fn(&Routes, &View<'_>) -> String,
    ) -> Response {
        let now_ms = sys::clock::monotonic_ns() / 1_000_000;
        let fresh = slot(self);
        if now_ms < fresh.until_ms
            && let Some(response) = &fresh.response
        {
            return response.clone();
        }
        if self.server.is_ending() {
            // Only the writer of the last snapshot may use the keyspace.
            return Response::line(Status::Unavailable, ENDING);
        }
        if !self.enter(turn) {
            return Response::line(Status::Unavailable, SCRIPT);
        }
        let text = write(self, &View::gather(self.server, turn));
        turn.leave();
        let response = Response::new(Status::Ok, content, text.into_bytes());
        *slot(self) = Fresh {
            until_ms: now_ms + HTTP_FRESH_MS,
            response: Some(response.clone()),
        };
        response
    }

    /// Begins a turn. Returns whether it has begun: not beside a script that lasts.
    fn enter(&self, turn: &mut Turn<'static>) -> bool {
        while !turn.enter_within(HTTP_PATIENCE) {
            if self.server.running.any() {
                return false;
            }
        }
        true
    }

    /// When [`Routes::look`] is due (monotonic, ms).
    pub(super) fn due_ms(&self) -> u64 {
        self.history.due_ms()
    }

    /// Notes what happened since the last time, if it is time.
    pub(super) fn look(&mut self, turn: &mut Turn<'static>, now_ms: u64) {
        if now_ms < self.due_ms() {
            return;
        }
        if self.server.is_ending() {
            return self.history.postpone(now_ms);
        }
        if !self.enter(turn) {
            return self.history.postpone(now_ms);
        }
        self.history.look(self.server, turn, now_ms);
        turn.leave();
    }
}

/// The name or the address in a Host header, without brackets, port and a dot at the end.
fn host_name(host: &str) -> &str {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether a host is an address or `localhost`, and not a name that a foreign DNS server may define.
fn means_this_machine(name: &str) -> bool {
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
            "localhost.:1",
        ] {
            assert!(means_this_machine(host_name(host)), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9121",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[x]:1",
        ] {
            assert!(!means_this_machine(host_name(host)), "{host}");
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
