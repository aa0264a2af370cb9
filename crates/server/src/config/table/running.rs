//! The settings about the process, and what may be seen of it.

use super::{BASE, Kind, Row, Section, Setting};

/// See the module.
pub(super) const RUNNING: &[Row] = &[
    Row {
        setting: Setting::Daemonize,
        name: "daemonize",
        default: "no",
        section: Section::Process,
        summary: "Goes on in the background once the server has started.",
        ..BASE
    },
    Row {
        setting: Setting::PidFile,
        name: "pidfile",
        kind: Kind::Path,
        section: Section::Process,
        summary: "The file that holds the number of the server's process while it runs; empty \
                  for none.",
        ..BASE
    },
    Row {
        setting: Setting::LogLevel,
        name: "loglevel",
        kind: Kind::Choice(&["debug", "verbose", "notice", "warning"]),
        default: "notice",
        mutable: true,
        section: Section::Process,
        summary: "The least important messages that are still logged.",
        ..BASE
    },
    Row {
        setting: Setting::LogFile,
        name: "logfile",
        kind: Kind::Path,
        section: Section::Process,
        summary: "The file that messages of the server are appended to; empty for the standard output.",
        ..BASE
    },
    Row {
        setting: Setting::AlwaysShowLogo,
        name: "always-show-logo",
        default: "no",
        section: Section::Process,
        summary: "Shows the logo at the start though messages go to no terminal.",
        ..BASE
    },
    Row {
        setting: Setting::Hz,
        name: "hz",
        kind: Kind::Integer { min: 1, max: 500 },
        default: "10",
        mutable: true,
        section: Section::Process,
        summary: "How often per second each worker does its housekeeping.",
        ..BASE
    },
    Row {
        setting: Setting::HttpPort,
        name: "http-port",
        kind: Kind::Integer { min: 0, max: 65535 },
        default: "0",
        section: Section::Monitoring,
        summary: "The TCP port of the dashboard, of /metrics for Prometheus, and of /healthz and /readyz; 0 turns HTTP off. \
                  With requirepass, all but health wants that password; without, protected-mode applies here as well.",
        ..BASE
    },
    Row {
        setting: Setting::HttpBind,
        name: "http-bind",
        kind: Kind::Addresses { most: 16 },
        default: "127.0.0.1 -::1",
        section: Section::Monitoring,
        summary: "The addresses to listen on for HTTP, as in bind.",
        ..BASE
    },
    Row {
        setting: Setting::HttpHosts,
        name: "http-hosts",
        kind: Kind::Hosts { most: 16 },
        mutable: true,
        section: Section::Monitoring,
        summary: "Names under which browsers and monitoring systems may ask for this server over HTTP, beside addresses and \
                  localhost: without requirepass a request for any other host is refused (DNS rebinding).",
        ..BASE
    },
    Row {
        setting: Setting::SlowlogLogSlowerThan,
        name: "slowlog-log-slower-than",
        kind: Kind::Integer {
            min: -1,
            max: i64::MAX,
        },
        default: "10000",
        mutable: true,
        section: Section::Monitoring,
        summary: "Microseconds from which on a command is kept in the slow log; 0 keeps every \
                  command, -1 none.",
        ..BASE
    },
    Row {
        setting: Setting::SlowlogMaxLen,
        name: "slowlog-max-len",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "128",
        mutable: true,
        section: Section::Monitoring,
        summary: "The most commands that the slow log keeps.",
        ..BASE
    },
    Row {
        setting: Setting::LatencyMonitorThreshold,
        name: "latency-monitor-threshold",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Monitoring,
        summary: "Milliseconds from which on LATENCY keeps an event; 0 turns it off.",
        ..BASE
    },
    Row {
        setting: Setting::NotifyKeyspaceEvents,
        name: "notify-keyspace-events",
        kind: Kind::Events,
        mutable: true,
        section: Section::Monitoring,
        summary: "Which changes of keys are published: K to the channel __keyspace@N__:KEY, E to the channel \
                  __keyevent@N__:EVENT, and of which class: g general, $ strings, l lists, s sets, h hashes, z sorted \
                  sets, t streams, d modules, x expired, e evicted, A all of these, n new keys, m missed keys. \
                  Empty is none.",
        ..BASE
    },
];
