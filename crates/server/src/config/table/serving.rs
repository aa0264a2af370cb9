//! The settings about connections: network, access, clients, and the threads that serve them.

use super::{BASE, GIB, INT_MAX, Kind, MIB, Row, Section, Setting};

/// See the module.
pub(super) const SERVING: &[Row] = &[
    Row {
        setting: Setting::Bind,
        name: "bind",
        kind: Kind::Addresses { most: 16 },
        default: "127.0.0.1 -::1",
        section: Section::Network,
        summary: "The addresses to listen on; * is every IPv4 address and ::* every IPv6 one. \
                  An address behind a dash is left out where the machine does not have it.",
        ..BASE
    },
    Row {
        setting: Setting::Port,
        name: "port",
        short: Some('p'),
        kind: Kind::Integer { min: 0, max: 65535 },
        default: "6379",
        section: Section::Network,
        summary: "The TCP port to listen on; 0 turns TCP off.",
        ..BASE
    },
    Row {
        setting: Setting::TcpBacklog,
        name: "tcp-backlog",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "511",
        section: Section::Network,
        summary: "How many connections may wait to be accepted; the kernel may lower it.",
        ..BASE
    },
    Row {
        setting: Setting::UnixSocket,
        name: "unixsocket",
        kind: Kind::Path,
        section: Section::Network,
        summary: "The path of a unix socket to listen on as well; empty for none.",
        ..BASE
    },
    Row {
        setting: Setting::UnixSocketPerm,
        name: "unixsocketperm",
        kind: Kind::Octal { max: 0o777 },
        default: "0",
        section: Section::Network,
        summary: "The permissions of the unix socket, in octal; 0 leaves them to the umask.",
        ..BASE
    },
    Row {
        setting: Setting::Timeout,
        name: "timeout",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Network,
        summary: "Seconds without a request after which a client is disconnected; 0 is never.",
        ..BASE
    },
    Row {
        setting: Setting::TcpKeepalive,
        name: "tcp-keepalive",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "300",
        mutable: true,
        section: Section::Network,
        summary: "Seconds between probes that find out whether a silent client is still there; \
                  0 sends none. A change applies to connections made afterwards.",
        ..BASE
    },
    Row {
        setting: Setting::ProtectedMode,
        name: "protected-mode",
        default: "yes",
        mutable: true,
        section: Section::Access,
        summary: "Refuses clients from other machines as long as no password is set.",
        ..BASE
    },
    Row {
        setting: Setting::RequirePass,
        name: "requirepass",
        kind: Kind::Secret,
        mutable: true,
        section: Section::Access,
        summary: "The password that a client has to send before anything else; empty for none.",
        ..BASE
    },
    Row {
        setting: Setting::EnableDebugCommand,
        name: "enable-debug-command",
        kind: Kind::Choice(&["no", "yes", "local"]),
        default: "local",
        section: Section::Access,
        summary: "Who may use DEBUG: nobody, everybody, or clients on this machine.",
        ..BASE
    },
    Row {
        setting: Setting::MaxClients,
        name: "maxclients",
        kind: Kind::Integer {
            min: 1,
            max: u32::MAX as i64,
        },
        default: "10000",
        mutable: true,
        section: Section::Clients,
        summary: "The most clients at the same time; further ones are refused.",
        ..BASE
    },
    Row {
        setting: Setting::ClientOutputBufferLimit,
        name: "client-output-buffer-limit",
        kind: Kind::OutputLimits,
        default: "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        mutable: true,
        section: Section::Clients,
        summary: "How many bytes of replies may wait for a client: it is disconnected at the \
                  hard limit, or once it was beyond the soft limit for so many seconds; 0 is no \
                  limit. Classes that are not named keep their limits.",
        ..BASE
    },
    Row {
        setting: Setting::ClientQueryBufferLimit,
        name: "client-query-buffer-limit",
        kind: Kind::Memory {
            min: MIB,
            max: i64::MAX,
        },
        default: "1gb",
        mutable: true,
        section: Section::Clients,
        summary: "How many bytes of an unfinished request are kept before its client is \
                  disconnected.",
        ..BASE
    },
    Row {
        setting: Setting::TrackingTableMaxKeys,
        name: "tracking-table-max-keys",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "1000000",
        mutable: true,
        section: Section::Clients,
        summary: "How many keys are remembered for clients that keep copies of them (CLIENT TRACKING): beyond it, clients \
                  are told to drop some; 0 is no limit.",
        ..BASE
    },
    Row {
        setting: Setting::ProtoMaxBulkLen,
        name: "proto-max-bulk-len",
        kind: Kind::Memory {
            min: MIB,
            max: 64 * GIB,
        },
        default: "512mb",
        mutable: true,
        section: Section::Clients,
        summary: "The longest argument of a request and the longest value of a key, in bytes.",
        ..BASE
    },
    Row {
        setting: Setting::BusyReplyThreshold,
        name: "busy-reply-threshold",
        also: Some("lua-time-limit"),
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "5000",
        mutable: true,
        section: Section::Clients,
        summary: "Milliseconds after which requests that wait for a script are answered BUSY.",
        ..BASE
    },
    Row {
        setting: Setting::Threads,
        name: "threads",
        short: Some('w'),
        kind: Kind::Integer { min: 0, max: 1024 },
        default: "0",
        section: Section::Threads,
        summary: "The worker threads that serve clients; 0 takes one for each CPU that the \
                  process may use.",
        ..BASE
    },
    Row {
        setting: Setting::Io,
        name: "io",
        kind: Kind::Choice(&["auto", "epoll", "uring", "portable"]),
        default: "auto",
        section: Section::Threads,
        summary: "How workers wait for the network; auto takes what measured best. Where uring is \
                  not allowed, as in many containers, epoll takes its place. portable is for \
                  systems without these.",
        ..BASE
    },
    Row {
        setting: Setting::Shards,
        name: "shards",
        kind: Kind::PowerOfTwo {
            max: keyspace::MAX_SHARDS as i64,
        },
        default: "0",
        section: Section::Threads,
        summary: "The separately locked parts of each database; 0 chooses by the number of \
                  threads.",
        ..BASE
    },
];
