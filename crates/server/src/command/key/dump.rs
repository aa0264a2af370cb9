//! A key's value as bytes for another server: DUMP, and RESTORE, which makes a key of them.
//!
//! The bytes are those of Redis ([`rdb::Payload`]). They are made and taken apart while nothing is locked, and
//! all of them are checked before anything is changed.

use keyspace::{INLINE_VALUE_MAX, Large, LargeValue, New, Stored};
use rdb::{Item, Payload, Typed};

use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Setting;
use crate::observe::notify::Event;
use crate::store::Use;

const BUSY: Failure = Failure::of("BUSYKEY Target key name already exists.");
const INVALID_TTL: Failure = Failure::of("ERR Invalid TTL value, must be >= 0");
const INVALID_IDLE_TIME: Failure = Failure::of("ERR Invalid IDLETIME value, must be >= 0");
const INVALID_FREQUENCY: Failure = Failure::of("ERR Invalid FREQ value, must be >= 0 and <= 255");
const WRONG_FOOTER: Failure = Failure::of("ERR DUMP payload version or checksum are wrong");
const BAD_DATA: Failure = Failure::of("ERR Bad data format");

/// `DUMP key`
pub(super) fn dump(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let compresses = context.server.settings.flag(Setting::RdbCompression);
    let key = args.key(1);
    let value = context
        .store
        .lock(key)
        .read_string(key)?
        .map(|text| match text.value() {
            Stored::Inline(bytes) => LargeValue::new(Large::from(bytes.to_vec())),
            Stored::Large(large) => large.share(),
        });
    let Some(value) = value else {
        context.reply.null();
        return Ok(Next::Done);
    };
    context.check_reply(value.len())?;
    let payload = LargeValue::new(rdb::dump_string(&value, compresses).into());
    context.reply.part(&payload, 0..payload.len());
    Ok(Next::Done)
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
pub(super) fn restore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = Options::parse(args)?;
    let key = args.key(1);
    if !options.replaces && context.store.lock(key).find_to_change(key).is_some() {
        return Err(BUSY);
    }
    let expiry = options.expiry(context, args)?;
    let payload = Payload::check(args.get(3)).ok_or(WRONG_FOOTER)?;
    let value = read(context, &payload)?;
    let mut shard = context.store.lock(key);
    // Somebody may have made it meanwhile.
    if !options.replaces && shard.contains(key) {
        return Err(BUSY);
    }
    if expiry.is_some_and(|at| at <= context.store.now) {
        if shard.remove(key) {
            shard.tell(Event::DEL, key);
        }
    } else {
        shard.restore(key, New::large(&value).expiry(expiry), options.used);
        shard.tell(Event::RESTORE, key);
    }
    drop(shard);
    context.reply.ok();
    Ok(Next::Done)
}

/// The value of a payload, which is checked to its end.
fn read(context: &Context<'_>, payload: &Payload<'_>) -> Result<LargeValue, Failure> {
    let len = payload.claimed_string_len().ok_or(BAD_DATA)?;
    if len > context.server.longest_made() as u64 {
        return Err(failure::TOO_LONG);
    }
    if len > INLINE_VALUE_MAX as u64 {
        context.foresee_bytes(len as usize)?;
    }
    let mut reader = payload.read();
    let value = match reader.next() {
        Ok(Some(Typed::Item(Item::Entry(entry)))) => std::mem::take(entry.value),
        _ => return Err(BAD_DATA),
    };
    match reader.next() {
        Ok(None) => Ok(LargeValue::new(value.into())),
        _ => Err(BAD_DATA),
    }
}

/// What stands behind RESTORE's payload.
#[derive(Default)]
struct Options {
    replaces: bool,
    /// The TTL is a moment (Unix, ms), not a time from now.
    is_absolute: bool,
    used: Option<Use>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut at = 4;
        while at < args.len() {
            let has_operand = at + 1 < args.len();
            if args.is(at, "REPLACE") {
                options.replaces = true;
            } else if args.is(at, "ABSTTL") {
                options.is_absolute = true;
            } else if args.is(at, "IDLETIME")
                && has_operand
                && !matches!(options.used, Some(Use::Frequency(_)))
            {
                at += 1;
                let seconds = u64::try_from(args.integer(at)?).map_err(|_| INVALID_IDLE_TIME)?;
                options.used = Some(Use::Before(seconds));
            } else if args.is(at, "FREQ")
                && has_operand
                && !matches!(options.used, Some(Use::Before(_)))
            {
                at += 1;
                let count = u8::try_from(args.integer(at)?).map_err(|_| INVALID_FREQUENCY)?;
                options.used = Some(Use::Frequency(count));
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }

    /// When the key expires (Unix, ms); 0 is never.
    fn expiry(&self, context: &Context<'_>, args: &Args<'_>) -> Result<Option<i64>, Failure> {
        let ttl = args.integer(2)?;
        match ttl {
            ..0 => Err(INVALID_TTL),
            0 => Ok(None),
            at if self.is_absolute => Ok(Some(at)),
            ttl => match ttl.checked_add(context.store.now) {
                Some(at) => Ok(Some(at)),
                None => Err(Failure::invalid_expire(context.command.spec.name)),
            },
        }
    }
}
