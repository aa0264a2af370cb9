//! The values of a running server, one slot per row of the table.
//!
//! Any thread reads a value at any time; numbers cost one load. A change is visible at once to the next
//! reader.
//!
//! Invariants:
//! 1. A slot holds only what the setting's row allows: every way in parses first.
//! 2. A [`Change`] of several settings happens as a whole or not at all, and one at a time.
//! 3. A policy of the memory limit that was not chosen, and save points likewise, follow the log
//!    (`follow_log`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::foreign::Foreign;
use super::policy::MaxMemoryPolicy;
use super::table::{Kind, Setting, TABLE};
use super::value::{self, Value};

/// See the module.
pub(crate) struct Settings {
    slots: Box<[Slot]>,
    /// Settings that were chosen, even with their earlier value.
    chosen: Box<[AtomicBool]>,
    /// Values of directives that are no settings ([`Foreign`]), by name. They change nothing but CONFIG GET.
    foreign: RwLock<BTreeMap<&'static str, Arc<str>>>,
    /// Held while a change is prepared and made, and while the file is rewritten.
    changing: Mutex<()>,
}

enum Slot {
    Number(AtomicI64),
    Text(RwLock<Arc<str>>),
    Limits([LimitSlot; ClientClass::ALL.len()]),
}

/// Defaults without a log: those of redis-server. With a log the defaults are those of the table.
const WITHOUT_LOG: [(Setting, &str); 2] = [
    // Values can be left in the log only if there is one.
    (Setting::MaxMemoryPolicy, "noeviction"),
    // Only snapshots keep data then.
    (Setting::Save, "3600 1 300 100 60 10000"),
];

/// The kinds of clients that have output limits of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum ClientClass {
    Normal,
    Replica,
    PubSub,
}

impl ClientClass {
    pub(crate) const ALL: [ClientClass; 3] = [
        ClientClass::Normal,
        ClientClass::Replica,
        ClientClass::PubSub,
    ];

    /// As CONFIG GET prints it, which kept the old word for a replica.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClientClass::Normal => "normal",
            ClientClass::Replica => "slave",
            ClientClass::PubSub => "pubsub",
        }
    }

    /// The class of a name in any case.
    pub(super) fn find(name: &str) -> Option<ClientClass> {
        if name.eq_ignore_ascii_case("replica") {
            return Some(ClientClass::Replica);
        }
        ClientClass::ALL
            .into_iter()
            .find(|class| name.eq_ignore_ascii_case(class.name()))
    }
}

/// How much may wait to be sent to a client. 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutputLimit {
    /// Bytes beyond which the client is disconnected.
    pub(crate) hard: u64,
    /// Bytes beyond which it is disconnected once `soft_seconds` have passed.
    pub(crate) soft: u64,
    pub(crate) soft_seconds: u64,
}

/// An [`OutputLimit`] that threads share. A reader during a change may see the old hard limit and the new
/// soft one. That is harmless: each of them was chosen.
struct LimitSlot {
    hard: AtomicU64,
    soft: AtomicU64,
    soft_seconds: AtomicU64,
}

impl LimitSlot {
    fn new(limit: OutputLimit) -> LimitSlot {
        LimitSlot {
            hard: AtomicU64::new(limit.hard),
            soft: AtomicU64::new(limit.soft),
            soft_seconds: AtomicU64::new(limit.soft_seconds),
        }
    }

    fn get(&self) -> OutputLimit {
        OutputLimit {
            hard: self.hard.load(Relaxed),
            soft: self.soft.load(Relaxed),
            soft_seconds: self.soft_seconds.load(Relaxed),
        }
    }

    fn set(&self, limit: OutputLimit) {
        self.hard.store(limit.hard, Relaxed);
        self.soft.store(limit.soft, Relaxed);
        self.soft_seconds.store(limit.soft_seconds, Relaxed);
    }
}

impl Settings {
    /// Every setting at its default. The directory is the relative one of the table until
    /// [`load`](mod@super::load) has found out where that is.
    pub(crate) fn new() -> Settings {
        Settings {
            slots: TABLE.iter().map(Slot::of_default).collect(),
            chosen: TABLE.iter().map(|_| AtomicBool::new(false)).collect(),
            foreign: RwLock::default(),
            changing: Mutex::new(()),
        }
    }

    /// Keeps what was said about a directive that is no setting.
    pub(crate) fn set_foreign(&self, row: &'static Foreign, value: &str) {
        self.foreign.write().insert(row.name, value.into());
    }

    /// Value of a directive that is no setting.
    pub(super) fn said_foreign(&self, row: &Foreign) -> Option<Arc<str>> {
        self.foreign.read().get(row.name).cloned()
    }

    /// Text of CONFIG GET for a directive that is no setting: its value, or the default of redis-server if
    /// that program has it.
    pub(crate) fn foreign_text(&self, row: &Foreign) -> Option<Arc<str>> {
        let default = || row.is_shown.then(|| row.default().into());
        self.said_foreign(row).or_else(default)
    }

    /// The value of a setting that is a number: an integer, bytes, permissions, the index of a choice.
    #[inline]
    pub(crate) fn int(&self, setting: Setting) -> i64 {
        match &self.slots[setting as usize] {
            Slot::Number(number) => number.load(Relaxed),
            _ => panic!("{setting:?} is no number"),
        }
    }

    /// Whether a flag is set.
    #[inline]
    pub(crate) fn flag(&self, setting: Setting) -> bool {
        self.int(setting) != 0
    }

    /// The word that was chosen.
    pub(crate) fn choice(&self, setting: Setting) -> &'static str {
        match setting.row().kind {
            Kind::Choice(names) => names[self.int(setting) as usize],
            _ => panic!("{setting:?} is no choice"),
        }
    }

    /// Meaning of `maxmemory-policy`.
    pub(crate) fn max_memory_policy(&self) -> MaxMemoryPolicy {
        MaxMemoryPolicy::of_number(self.int(Setting::MaxMemoryPolicy))
    }

    /// The value of a setting that is text: a path, a password, addresses separated by a space.
    pub(crate) fn text(&self, setting: Setting) -> Arc<str> {
        match &self.slots[setting as usize] {
            Slot::Text(text) => text.read().clone(),
            _ => panic!("{setting:?} is no text"),
        }
    }

    /// How much may wait to be sent to a client of a class.
    pub(crate) fn output_limits(&self, class: ClientClass) -> OutputLimit {
        match &self.slots[Setting::ClientOutputBufferLimit as usize] {
            Slot::Limits(limits) => limits[class as usize].get(),
            _ => panic!("output limits are kept as such"),
        }
    }

    /// The value as CONFIG GET prints it.
    pub(crate) fn get_text(&self, setting: Setting) -> String {
        match &self.slots[setting as usize] {
            Slot::Number(number) => value::number_text(setting.row().kind, number.load(Relaxed)),
            Slot::Text(text) => text.read().to_string(),
            Slot::Limits(limits) => {
                let limits = ClientClass::ALL
                    .into_iter()
                    .zip(limits.iter().map(LimitSlot::get));
                value::limits_text(limits, |bytes| bytes.to_string())
            }
        }
    }

    /// Gives a setting a value, whether or not CONFIG SET might.
    ///
    /// # Errors
    /// Why the text is not right for the setting, which keeps its value.
    pub(crate) fn set(&self, setting: Setting, text: &str) -> Result<(), String> {
        let change = self.prepare([(setting, text)]);
        change.map_err(|refusal| refusal.reason)?.commit();
        Ok(())
    }

    /// Reads new values without giving them to anyone yet. Other changes wait until this one is made or
    /// dropped.
    ///
    /// # Errors
    /// The first setting whose text is not right for it.
    pub(crate) fn prepare<'t>(
        &self,
        changes: impl IntoIterator<Item = (Setting, &'t str)>,
    ) -> Result<Change<'_>, Refusal> {
        let guard = self.changing.lock();
        let mut values = Vec::new();
        for (setting, text) in changes {
            let value =
                value::parse(setting.row(), text).map_err(|reason| Refusal { setting, reason })?;
            values.push((setting, value));
        }
        Ok(Change {
            settings: self,
            values,
            _guard: guard,
        })
    }

    /// Whether it was chosen by the command line, a file or CONFIG SET.
    pub(super) fn is_chosen(&self, setting: Setting) -> bool {
        self.chosen[setting as usize].load(Relaxed)
    }

    /// Gives settings that depend on the log their default, unless they were chosen.
    fn follow_log(&self) {
        let is_logged = self.flag(Setting::AppendOnly);
        for (setting, without_log) in WITHOUT_LOG {
            if self.is_chosen(setting) {
                continue;
            }
            let row = setting.row();
            let text = if is_logged { row.default } else { without_log };
            let value = value::parse(row, text).expect("a test checks these values");
            self.store(setting, value);
        }
    }

    /// Every setting at its default with the log that `other` has, or has not.
    pub(super) fn with_log_of(other: &Settings) -> Settings {
        let settings = Settings::new();
        let setting = Setting::AppendOnly;
        settings.store(setting, Value::Number(other.int(setting)));
        settings.follow_log();
        settings
    }

    /// Threads that run commands: as many as were asked for, or one for each processor that the process may
    /// use.
    pub(crate) fn workers(&self) -> usize {
        match self.int(Setting::Threads) as usize {
            0 => sys::cpu::usable_cpus(),
            threads => threads,
        }
    }

    /// Gives the limit of memory its default for the number of workers, unless it was chosen.
    pub(super) fn follow_workers(&self) {
        if !self.is_chosen(Setting::MaxMemory) {
            self.store(Setting::MaxMemory, value::default_memory(self.workers()));
        }
    }

    /// Keeps everything as it is until the guard is dropped.
    pub(super) fn freeze(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Whether a setting has this value; of output limits, those that the value names.
    pub(super) fn has(&self, setting: Setting, value: &Value) -> bool {
        match (&self.slots[setting as usize], value) {
            (Slot::Number(slot), Value::Number(number)) => slot.load(Relaxed) == *number,
            (Slot::Text(slot), Value::Text(text)) => *slot.read() == *text,
            (Slot::Limits(slots), Value::Limits(limits)) => slots
                .iter()
                .zip(limits)
                .all(|(slot, limit)| limit.is_none_or(|limit| slot.get() == limit)),
            _ => false,
        }
    }

    fn store(&self, setting: Setting, value: Value) {
        match (&self.slots[setting as usize], value) {
            (Slot::Number(slot), Value::Number(number)) => slot.store(number, Relaxed),
            (Slot::Text(slot), Value::Text(text)) => *slot.write() = text,
            (Slot::Limits(slots), Value::Limits(limits)) => {
                for (slot, limit) in slots.iter().zip(limits) {
                    if let Some(limit) = limit {
                        slot.set(limit);
                    }
                }
            }
            _ => panic!("{setting:?} holds another kind of value"),
        }
    }
}

impl Slot {
    fn of_default(row: &super::Row) -> Slot {
        // Looking for the directory is an error of the start, not of the table.
        if matches!(row.kind, Kind::Directory) {
            return Slot::Text(RwLock::new(row.default.into()));
        }
        match value::parse(row, row.default).expect("a test checks every default") {
            Value::Number(number) => Slot::Number(AtomicI64::new(number)),
            Value::Text(text) => Slot::Text(RwLock::new(text)),
            Value::Limits(limits) => Slot::Limits(
                limits.map(|limit| LimitSlot::new(limit.expect("the default names every class"))),
            ),
        }
    }
}

/// A setting that does not take what was given for it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) setting: Setting,
    pub(crate) reason: String,
}

/// New values that are found to be right; dropping it leaves everything as it was.
#[must_use = "nothing changes until it is committed"]
pub(crate) struct Change<'s> {
    settings: &'s Settings,
    values: Vec<(Setting, Value)>,
    _guard: MutexGuard<'s, ()>,
}

impl Change<'_> {
    /// The number that a setting would get.
    pub(crate) fn int(&self, setting: Setting) -> Option<i64> {
        self.values
            .iter()
            .rev()
            .find_map(|(changed, value)| match value {
                Value::Number(number) if *changed == setting => Some(*number),
                _ => None,
            })
    }

    /// Makes the change.
    pub(crate) fn commit(self) {
        for (setting, value) in self.values {
            self.settings.store(setting, value);
            self.settings.chosen[setting as usize].store(true, Relaxed);
        }
        self.settings.follow_log();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_default_prints_as_a_value_that_reads_back() {
        let settings = Settings::new();
        for row in TABLE {
            if matches!(row.kind, Kind::Directory) {
                continue;
            }
            let text = settings.get_text(row.setting);
            assert_eq!(settings.set(row.setting, &text), Ok(()), "{}", row.name);
            assert_eq!(settings.get_text(row.setting), text, "{}", row.name);
        }
    }

    #[test]
    fn defaults_are_those_of_redis_where_it_has_them() {
        let settings = Settings::new();
        for (setting, text) in [
            (Setting::Port, "6379"),
            (Setting::UnixSocket, ""),
            (Setting::UnixSocketPerm, "0"),
            (Setting::ProtectedMode, "yes"),
            (Setting::ClientQueryBufferLimit, "1073741824"),
            (Setting::ProtoMaxBulkLen, "536870912"),
            (Setting::LogLevel, "notice"),
            (Setting::Save, ""),
            (
                Setting::ClientOutputBufferLimit,
                "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
            ),
        ] {
            assert_eq!(settings.get_text(setting), text);
        }
    }

    #[test]
    fn each_kind_of_value_is_set_and_read() {
        let settings = Settings::new();
        settings.set(Setting::Port, "7000").expect("a port");
        assert_eq!(settings.int(Setting::Port), 7000);
        settings.set(Setting::MaxMemory, "1k").expect("a size");
        assert_eq!(settings.int(Setting::MaxMemory), 1000);
        assert_eq!(settings.get_text(Setting::MaxMemory), "1000");
        settings.set(Setting::Daemonize, "YES").expect("a flag");
        assert!(settings.flag(Setting::Daemonize));
        settings.set(Setting::UnixSocketPerm, "750").expect("octal");
        assert_eq!(settings.int(Setting::UnixSocketPerm), 0o750);
        assert_eq!(settings.get_text(Setting::UnixSocketPerm), "750");
        settings.set(Setting::LogLevel, "Debug").expect("a choice");
        assert_eq!(settings.choice(Setting::LogLevel), "debug");
        settings.set(Setting::RequirePass, "a \"b").expect("text");
        assert_eq!(&*settings.text(Setting::RequirePass), "a \"b");
        settings.set(Setting::Bind, " ::1  * ").expect("addresses");
        assert_eq!(&*settings.text(Setting::Bind), "::1 *");
        settings.set(Setting::Dir, "/dev/..").expect("a directory");
        assert_eq!(&*settings.text(Setting::Dir), "/");
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let settings = Settings::new();
        assert!(settings.set(Setting::Port, "65536").is_err());
        assert!(settings.set(Setting::LogLevel, "loud").is_err());
        assert!(settings.set(Setting::Dir, "/dev/null").is_err());
        assert_eq!(settings.int(Setting::Port), 6379);
        assert_eq!(settings.choice(Setting::LogLevel), "notice");
    }

    #[test]
    fn limits_of_classes_that_are_not_named_stay() {
        let settings = Settings::new();
        settings
            .set(Setting::ClientOutputBufferLimit, "replica 1kb 2 3")
            .expect("limits");
        let limit = settings.output_limits(ClientClass::Replica);
        assert_eq!((limit.hard, limit.soft, limit.soft_seconds), (1024, 2, 3));
        assert_eq!(settings.output_limits(ClientClass::Normal).hard, 0);
        assert_eq!(
            settings.get_text(Setting::ClientOutputBufferLimit),
            "normal 0 0 0 slave 1024 2 3 pubsub 33554432 8388608 60"
        );
        settings
            .set(Setting::ClientOutputBufferLimit, "")
            .expect("it names none");
        assert_eq!(settings.output_limits(ClientClass::Replica), limit);
    }

    #[test]
    fn several_settings_change_together_or_not_at_all() {
        let settings = Settings::new();
        let refusal = settings
            .prepare([(Setting::Timeout, "5"), (Setting::MaxClients, "0")])
            .err()
            .expect("the second is wrong");
        assert_eq!(refusal.setting, Setting::MaxClients);
        assert_eq!(settings.int(Setting::Timeout), 0);

        let change = settings
            .prepare([(Setting::Timeout, "5"), (Setting::MaxClients, "7")])
            .expect("both are right");
        assert_eq!(change.int(Setting::MaxClients), Some(7));
        assert_eq!(change.int(Setting::Port), None);
        assert_eq!(settings.int(Setting::Timeout), 0);
        drop(change);
        assert_eq!(settings.int(Setting::Timeout), 0);

        let change = settings.prepare([(Setting::Timeout, "5"), (Setting::MaxClients, "7")]);
        change.expect("both are right").commit();
        assert_eq!(settings.int(Setting::Timeout), 5);
        assert_eq!(settings.int(Setting::MaxClients), 7);
    }

    #[test]
    fn save_points_follow_the_log_until_somebody_chooses_some() {
        let settings = Settings::new();
        let save = || settings.get_text(Setting::Save);
        let set = |setting, text| settings.set(setting, text).expect("a right value");
        assert_eq!(save(), "");
        set(Setting::AppendOnly, "no");
        assert_eq!(save(), "3600 1 300 100 60 10000");
        set(Setting::AppendOnly, "yes");
        assert_eq!(save(), "");
        set(Setting::Save, "");
        set(Setting::AppendOnly, "no");
        assert_eq!(save(), "");
        set(Setting::Save, "900 1");
        set(Setting::AppendOnly, "yes");
        assert_eq!(save(), "900 1");
    }

    #[test]
    fn the_policy_follows_the_log_until_somebody_chooses_one() {
        let settings = Settings::new();
        let policy = || settings.choice(Setting::MaxMemoryPolicy);
        let set = |setting, text| settings.set(setting, text).expect("a right value");
        assert_eq!(policy(), "offload");
        set(Setting::AppendOnly, "no");
        assert_eq!(policy(), "noeviction");
        set(Setting::AppendOnly, "yes");
        assert_eq!(policy(), "offload");
        set(Setting::MaxMemoryPolicy, "offload");
        set(Setting::AppendOnly, "no");
        assert_eq!(policy(), "offload");
        set(Setting::MaxMemoryPolicy, "allkeys-lru");
        set(Setting::AppendOnly, "yes");
        assert_eq!(policy(), "allkeys-lru");
    }

    #[test]
    fn a_setting_has_what_was_set() {
        let settings = Settings::new();
        let has = |setting: Setting, text: &str| {
            let value = value::parse(setting.row(), text).expect("a right value");
            settings.has(setting, &value)
        };
        assert!(has(Setting::Timeout, "0"));
        assert!(!has(Setting::MaxMemory, "1"));
        assert!(has(Setting::Bind, " 127.0.0.1   -::1"));
        assert!(!has(Setting::Bind, "127.0.0.1"));
        let limits = Setting::ClientOutputBufferLimit;
        assert!(has(limits, "") && has(limits, "replica 256mb 64mb 60"));
        assert!(!has(limits, "normal 0 0 0 replica 256mb 64mb 61"));
        let here = fs::canonicalize(".").expect("the tests run somewhere");
        let here = here.to_str().expect("in a path of UTF-8");
        settings.set(Setting::Dir, here).expect("it exists");
        assert!(settings.has(
            Setting::Dir,
            &value::parse(Setting::Dir.row(), "./").expect("it exists")
        ));
    }
}
