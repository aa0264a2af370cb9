//! The conditions of CLIENT LIST and CLIENT KILL, as COMMAND DOCS describes them. `selection` reads them.

use crate::command::{Arg, ArgKind};

const fn text(name: &'static str, token: &'static str) -> Arg {
    Arg::of(name, ArgKind::String).token(token).optional()
}

const fn number(name: &'static str, token: &'static str) -> Arg {
    Arg::of(name, ArgKind::Integer).token(token).optional()
}

const TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER").since("3.2.0"),
    Arg::word("primary", "PRIMARY").since("8.1.0"),
    Arg::word("slave", "SLAVE"),
    Arg::word("replica", "REPLICA").since("5.0.0"),
    Arg::word("pubsub", "PUBSUB"),
];

const fn client_type(token: &'static str) -> Arg {
    Arg::one_of("client-type", TYPES).token(token).optional()
}

const SKIP_ME: Arg = Arg::one_of("skipme", &[Arg::word("yes", "YES"), Arg::word("no", "NO")])
    .token("SKIPME")
    .optional();

const TYPE: Arg = client_type("TYPE").since("5.0.0");
const ID: Arg = number("client-id", "ID").multiple().since("6.2.0");
const USER: Arg = text("username", "USER");
const ADDR: Arg = text("addr", "ADDR");
const LADDR: Arg = text("laddr", "LADDR").since("6.2.0");
const MAX_AGE: Arg = number("maxage", "MAXAGE").since("7.4.0");
const NAME: Arg = text("name", "NAME").since("9.0.0");
const IDLE: Arg = number("idle", "IDLE").since("9.0.0");
const FLAGS: Arg = text("flags", "FLAGS").since("9.0.0");
const LIB_NAME: Arg = text("lib-name", "LIB-NAME").since("9.0.0");
const LIB_VER: Arg = text("lib-ver", "LIB-VER").since("9.0.0");
const DB: Arg = number("db", "DB").since("9.0.0");
const CAPA: Arg = text("capa", "CAPA").since("9.0.0");
const IP: Arg = text("ip", "IP").since("9.0.0");
const NOT_TYPE: Arg = client_type("NOT-TYPE").since("9.0.0");
const NOT_ID: Arg = number("not-client-id", "NOT-ID").multiple().since("9.0.0");
const NOT_USER: Arg = text("not-username", "NOT-USER").since("9.0.0");
const NOT_ADDR: Arg = text("not-addr", "NOT-ADDR").since("9.0.0");
const NOT_LADDR: Arg = text("not-laddr", "NOT-LADDR").since("9.0.0");
const NOT_NAME: Arg = text("not-name", "NOT-NAME").since("9.0.0");
const NOT_FLAGS: Arg = text("not-flags", "NOT-FLAGS").since("9.0.0");
const NOT_LIB_NAME: Arg = text("not-lib-name", "NOT-LIB-NAME").since("9.0.0");
const NOT_LIB_VER: Arg = text("not-lib-ver", "NOT-LIB-VER").since("9.0.0");
const NOT_DB: Arg = number("not-db", "NOT-DB").since("9.0.0");
const NOT_CAPA: Arg = text("not-capa", "NOT-CAPA").since("9.0.0");
const NOT_IP: Arg = text("not-ip", "NOT-IP").since("9.0.0");

pub(super) const LIST: &[Arg] = &LISTED;

/// The conditions of CLIENT LIST: the type comes first there.
const LISTED: [Arg; 27] = {
    let mut conditions = CONDITIONS;
    conditions[0] = TYPE;
    conditions[1] = ID;
    conditions
};

pub(super) const KILL: &[Arg] = &[Arg::one_of(
    "filter",
    &[
        Arg {
            deprecated_since: Some("2.8.12"),
            ..Arg::of("old-format", ArgKind::String)
        },
        Arg::one_of("new-format", &CONDITIONS).multiple(),
    ],
)];

/// The conditions of CLIENT KILL, in the order of Valkey.
const CONDITIONS: [Arg; 27] = [
    ID,
    TYPE,
    USER,
    ADDR,
    LADDR,
    SKIP_ME,
    MAX_AGE,
    NAME,
    IDLE,
    FLAGS,
    LIB_NAME,
    LIB_VER,
    DB,
    CAPA,
    IP,
    NOT_TYPE,
    NOT_ID,
    NOT_USER,
    NOT_ADDR,
    NOT_LADDR,
    NOT_NAME,
    NOT_FLAGS,
    NOT_LIB_NAME,
    NOT_LIB_VER,
    NOT_DB,
    NOT_CAPA,
    NOT_IP,
];

pub(super) const KILL_HISTORY: &[(&str, &str)] = &[
    (
        "2.8.12",
        "Conditions by name, of which several may be given.",
    ),
    ("2.8.12", "The condition ID."),
    ("3.2.0", "The type MASTER."),
    ("5.0.0", "The type REPLICA; SLAVE is its old name."),
    ("6.2.0", "The condition LADDR."),
    ("7.4.0", "The condition MAXAGE."),
    (
        "9.0.0",
        "Of Valkey: several ids, and all conditions behind MAXAGE.",
    ),
];

pub(super) const LIST_HISTORY: &[(&str, &str)] = &[
    ("2.8.12", "The field `id`."),
    ("5.0.0", "The condition TYPE."),
    ("6.0.0", "The field `user`."),
    (
        "6.2.0",
        "The fields `argv-mem`, `tot-mem`, `laddr`, `redir`; the condition ID.",
    ),
    ("7.0.0", "The fields `resp`, `multi-mem`, `rbs`, `rbp`."),
    ("7.0.3", "The field `ssub`."),
    ("7.2.0", "The fields `lib-name`, `lib-ver`."),
    ("7.4.0", "The field `watch`."),
    (
        "8.0.0",
        "The fields `io-thread`, `tot-net-in`, `tot-net-out`, `tot-cmds`; of Valkey, `capa`.",
    ),
    ("9.0.0", "Of Valkey: all other conditions."),
];
