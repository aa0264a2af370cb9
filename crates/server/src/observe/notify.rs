//! Keyspace notifications: published messages about events of keys.
//!
//! ```text
//!  __keyspace@DB__:KEY    EVENT     class K
//!  __keyevent@DB__:EVENT  KEY       class E
//! ```
//!
//! A command publishes an event while it holds the lock of the key's shard. So the events of a key are
//! published in the order in which they happened, on whichever workers. An event whose class is not in
//! `notify-keyspace-events` costs one branch. The commands decide which events they publish; [`crate::store`]
//! and the keyspace detect new, missed and expired keys.

use keyspace::{Change, ChangeKind};

use crate::config::{Setting, classes as class};
use crate::observe::Observed;
use crate::pubsub::{NameKind, Payload};

/// Event of a key.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    class: u32,
    name: &'static str,
}

macro_rules! events {
    ($($constant:ident: $class:ident $name:literal;)*) => {
        impl Event {
            $(pub(crate) const $constant: Event = Event { class: class::$class, name: $name };)*
        }
    };
}

impl Event {
    /// Nothing that is published.
    pub(crate) const NONE: Event = Event { class: 0, name: "" };
}

events! {
    DEL: GENERIC "del";
    EXPIRE: GENERIC "expire";
    PERSIST: GENERIC "persist";
    RENAME_FROM: GENERIC "rename_from";
    RENAME_TO: GENERIC "rename_to";
    MOVE_FROM: GENERIC "move_from";
    MOVE_TO: GENERIC "move_to";
    COPY_TO: GENERIC "copy_to";
    RESTORE: GENERIC "restore";
    SET: STRING "set";
    APPEND: STRING "append";
    SETRANGE: STRING "setrange";
    SETBIT: STRING "setbit";
    INCRBY: STRING "incrby";
    INCRBYFLOAT: STRING "incrbyfloat";
    PFADD: STRING "pfadd";
    HSET: HASH "hset";
    HDEL: HASH "hdel";
    HEXPIRE: HASH "hexpire";
    HEXPIRED: HASH "hexpired";
    HPERSIST: HASH "hpersist";
    HINCRBY: HASH "hincrby";
    HINCRBYFLOAT: HASH "hincrbyfloat";
    LPUSH: LIST "lpush";
    RPUSH: LIST "rpush";
    LPOP: LIST "lpop";
    RPOP: LIST "rpop";
    LSET: LIST "lset";
    LINSERT: LIST "linsert";
    LREM: LIST "lrem";
    LTRIM: LIST "ltrim";
    SORTSTORE: LIST "sortstore";
    SADD: SET "sadd";
    SREM: SET "srem";
    SPOP: SET "spop";
    SINTERSTORE: SET "sinterstore";
    SUNIONSTORE: SET "sunionstore";
    SDIFFSTORE: SET "sdiffstore";
    ZADD: SORTED_SET "zadd";
    ZINCR: SORTED_SET "zincr";
    ZREM: SORTED_SET "zrem";
    ZREMRANGEBYRANK: SORTED_SET "zremrangebyrank";
    ZREMRANGEBYSCORE: SORTED_SET "zremrangebyscore";
    ZREMRANGEBYLEX: SORTED_SET "zremrangebylex";
    ZPOPMIN: SORTED_SET "zpopmin";
    ZPOPMAX: SORTED_SET "zpopmax";
    ZRANGESTORE: SORTED_SET "zrangestore";
    ZUNIONSTORE: SORTED_SET "zunionstore";
    ZINTERSTORE: SORTED_SET "zinterstore";
    ZDIFFSTORE: SORTED_SET "zdiffstore";
    GEOSEARCHSTORE: SORTED_SET "geosearchstore";
    GEORADIUSSTORE: SORTED_SET "georadiusstore";
    XADD: STREAM "xadd";
    XDEL: STREAM "xdel";
    XTRIM: STREAM "xtrim";
    XSETID: STREAM "xsetid";
    XGROUP_CREATE: STREAM "xgroup-create";
    XGROUP_SETID: STREAM "xgroup-setid";
    XGROUP_DESTROY: STREAM "xgroup-destroy";
    XGROUP_CREATECONSUMER: STREAM "xgroup-createconsumer";
    XGROUP_DELCONSUMER: STREAM "xgroup-delconsumer";
    NEW: NEW "new";
    MISSED: MISSED "keymiss";
    EXPIRED: EXPIRED "expired";
    EVICTED: EVICTED "evicted";
}

/// Publisher of events. It reads the settings once when it is made, for some commands of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Notifier {
    server: &'static Observed,
    classes: u32,
}

impl Notifier {
    pub(crate) fn new(server: &'static Observed) -> Notifier {
        Notifier {
            server,
            classes: classes(server),
        }
    }

    /// Whether an event is to be published.
    #[inline]
    pub(crate) fn wants(&self, event: Event) -> bool {
        self.classes & event.class != 0
    }

    /// Invalidates all tracked keys after databases were emptied or exchanged. No other worker is inside a
    /// turn.
    pub(crate) fn flushed(&self) {
        self.server.observers.tracking.flushed(self.server);
    }

    /// Publishes an event. The shard of the key is locked.
    #[inline]
    pub(crate) fn tell(&self, event: Event, db: usize, key: &[u8]) {
        if self.wants(event) {
            publish(self.server, self.classes, event, db, key);
        }
    }
}

/// Classes to be published; none without a class of channels (K or E).
#[inline]
fn classes(server: &Observed) -> u32 {
    let classes = server.settings.int(Setting::NotifyKeyspaceEvents) as u32;
    if classes & (class::KEYSPACE | class::KEYEVENT) == 0 {
        0
    } else {
        classes
    }
}

/// Whether any event is to be published.
pub(crate) fn is_on(server: &Observed) -> bool {
    classes(server) != 0
}

/// Publishes the expiry of a key, or of fields.
pub(crate) fn expired(server: &Observed, change: &Change<'_>) {
    let events: &[Event] = match change.kind {
        ChangeKind::Expired => &[Event::EXPIRED],
        ChangeKind::ItemsExpired { is_gone: false } => &[Event::HEXPIRED],
        ChangeKind::ItemsExpired { is_gone: true } => &[Event::HEXPIRED, Event::DEL],
        ChangeKind::Written | ChangeKind::Groups { .. } | ChangeKind::Removed => return,
    };
    let classes = classes(server);
    for &event in events {
        if classes & event.class != 0 {
            publish(server, classes, event, change.database, change.key.bytes);
        }
    }
}

/// Makes the keyspace report expired keys and fields if and only if they are to be published.
pub(crate) fn apply_setting(server: &Observed) {
    let told = Event::EXPIRED.class | Event::HEXPIRED.class | Event::DEL.class;
    let hears = classes(server) & told != 0;
    server.keyspace.set_hears_expiry(hears);
}

#[cold]
#[inline(never)]
fn publish(server: &Observed, classes: u32, event: Event, db: usize, key: &[u8]) {
    if !server.registry.has_listeners() {
        return;
    }
    let send = |channel: &str, name: &[u8], payload: &[u8]| {
        let mut channel = format!("__{channel}@{db}__:").into_bytes();
        channel.extend_from_slice(name);
        server
            .registry
            .publish(server, NameKind::Channel, &channel, Payload::Bytes(payload));
    };
    if classes & class::KEYSPACE != 0 {
        send("keyspace", key, event.name.as_bytes());
    }
    if classes & class::KEYEVENT != 0 {
        send("keyevent", event.name.as_bytes(), key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_in_any_order_and_written_in_that_of_redis() {
        for (typed, printed) in [
            ("", ""),
            ("KEA", "AKE"),
            ("KEAm", "AKEm"),
            ("EgK", "gKE"),
            ("$lshzxetdgK", "AK"),
            ("mnKE", "nKEm"),
            ("Kx", "xK"),
            ("tdxe", "xetd"),
            ("gg", "g"),
            // Redis drops the n here.
            ("AnE", "AnE"),
        ] {
            let classes = class::parse(typed).expect("all of them are letters");
            assert_eq!(class::letters(classes), printed);
            assert_eq!(class::parse(printed), Some(classes));
        }
        for wrong in ["KXQ", "k", " ", "A,K"] {
            assert_eq!(class::parse(wrong), None);
        }
    }
}
