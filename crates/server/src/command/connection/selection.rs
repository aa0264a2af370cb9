//! Which connections a command means: by type, and by the conditions of CLIENT LIST and CLIENT KILL.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::number;

use super::handshake::DEFAULT_USER;
use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::shared::clients::{Client, ClientKind, letters};

/// The type of a name in any case.
fn client_type(name: &[u8]) -> Result<ClientKind, Failure> {
    let types = [
        ("normal", ClientKind::Normal),
        ("slave", ClientKind::Replica),
        ("replica", ClientKind::Replica),
        ("pubsub", ClientKind::PubSub),
        ("master", ClientKind::Master),
        ("primary", ClientKind::Master),
    ];
    let found = types
        .into_iter()
        .find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()));
    found
        .map(|(_, kind)| kind)
        .ok_or_else(|| Failure::about("ERR Unknown client type '", name, "'"))
}

/// The command whose conditions are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An id that no connection can have selects none.
    List,
    /// An id that no connection can have is an error.
    Kill,
}

/// Conditions of which all given ones must hold, or, behind NOT-, of which none may.
#[derive(Default)]
struct Traits<'a> {
    ids: Option<Vec<u64>>,
    kind: Option<ClientKind>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    ip: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    library: Option<&'a [u8]>,
    library_version: Option<&'a [u8]>,
    flags: Option<&'a [u8]>,
    capabilities: Option<&'a [u8]>,
    db: Option<usize>,
    /// The default user: every connection's.
    user: bool,
}

/// Conditions of CLIENT LIST and CLIENT KILL.
pub(super) struct Conditions<'a> {
    wanted: Traits<'a>,
    unwanted: Traits<'a>,
    /// Least age and idle time, in seconds.
    age: i64,
    idle: i64,
    /// Spare the connection that asks.
    skip_me: bool,
}

impl<'a> Conditions<'a> {
    fn none(skip_me: bool) -> Conditions<'a> {
        Conditions {
            wanted: Traits::default(),
            unwanted: Traits::default(),
            age: 0,
            idle: 0,
            skip_me,
        }
    }

    /// The old form of CLIENT KILL: an address alone, which may be one's own.
    fn of_address(peer: &'a [u8]) -> Conditions<'a> {
        let mut conditions = Conditions::none(false);
        conditions.wanted.peer = Some(peer);
        conditions
    }

    /// Reads the arguments from the third on. `databases` is how many there are.
    pub(super) fn parse(
        args: &Args<'a>,
        of: Purpose,
        databases: usize,
    ) -> Result<Conditions<'a>, Failure> {
        let mut conditions = Conditions::none(of == Purpose::Kill);
        let mut at = 2;
        while at < args.len() {
            let value = args.optional(at + 1).ok_or(failure::SYNTAX)?;
            let (word, is_not) = split_not(args.get(at));
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if is("ID") {
                let ids = ids(args, at + 1, of, is_not)?;
                at += 1 + ids.1;
                let known = &mut conditions.traits(is_not).ids;
                known.get_or_insert_default().extend(ids.0);
                continue;
            }
            let is_trait = conditions.take_trait(args.get(at), word, value, databases)?;
            match () {
                () if is_trait => {}
                () if is_not => return Err(failure::SYNTAX),
                () if is("MAXAGE") => conditions.age = seconds("maxage", value)?,
                () if is("IDLE") => conditions.idle = seconds("idle", value)?,
                () if is("SKIPME") => conditions.skip_me = yes_or_no(value)?,
                () => return Err(failure::SYNTAX),
            }
            at += 2;
        }
        Ok(conditions)
    }

    fn traits(&mut self, is_not: bool) -> &mut Traits<'a> {
        match is_not {
            true => &mut self.unwanted,
            false => &mut self.wanted,
        }
    }

    /// Takes a condition that may stand behind NOT-: the argument `whole`, of which `word` is what is behind
    /// it. Returns false if it is none.
    fn take_trait(
        &mut self,
        whole: &[u8],
        word: &[u8],
        value: &'a [u8],
        databases: usize,
    ) -> Result<bool, Failure> {
        let is_not = whole.len() > word.len();
        let traits = self.traits(is_not);
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        match () {
            () if is("TYPE") => traits.kind = Some(client_type(value)?),
            () if is("ADDR") => traits.peer = Some(value),
            () if is("LADDR") => traits.local = Some(value),
            () if is("IP") => traits.ip = Some(value),
            () if is("NAME") => traits.name = Some(value),
            () if is("LIB-NAME") => traits.library = Some(value),
            () if is("LIB-VER") => traits.library_version = Some(value),
            () if is("DB") => traits.db = Some(database(whole, value, databases)?),
            () if is("FLAGS") => {
                check_letters("flags", is_not, value, FLAGS)?;
                traits.flags = Some(value);
            }
            () if is("CAPA") => {
                check_letters("capa", is_not, value, b"r")?;
                traits.capabilities = Some(value);
            }
            () if is("USER") => {
                check_user(value)?;
                traits.user = true;
            }
            () => return Ok(false),
        }
        Ok(true)
    }

    /// The ids that it names, if it names any.
    pub(super) fn ids(&self) -> Option<&[u64]> {
        self.wanted.ids.as_deref()
    }

    /// Whether a connection is meant by one whose id is `asking`.
    pub(super) fn are_met_by(&self, client: &Client, now_ms: i64, asking: u64) -> bool {
        let is_old = |then_ms: i64, seconds| (now_ms - then_ms) / 1000 >= seconds;
        !(self.skip_me && client.id == asking)
            && (self.age == 0 || is_old(client.created_ms, self.age))
            && (self.idle == 0 || is_old(client.last_active_ms.load(Relaxed), self.idle))
            && self.wanted.each(client).all(|holds| holds != Some(false))
            && self.unwanted.each(client).all(|holds| holds != Some(true))
    }
}

impl Traits<'_> {
    /// For each condition that is given, whether it holds.
    fn each(&self, client: &Client) -> impl Iterator<Item = Option<bool>> {
        let names = client.names.lock();
        // A connection without a name has none that is empty.
        let is_name = |name: &str, wanted: &[u8]| !name.is_empty() && name.as_bytes() == wanted;
        let has = |letters: &str, wanted: &[u8]| {
            let letters = letters.as_bytes();
            wanted.iter().all(|letter| letters.contains(letter))
        };
        let ids = self.ids.as_ref();
        [
            ids.map(|ids| ids.contains(&client.id)),
            self.kind.map(|kind| client.kind() == kind),
            self.peer.map(|peer| client.peer.as_bytes() == peer),
            self.local.map(|local| client.local.as_bytes() == local),
            self.ip.map(|ip| host(&client.peer).as_bytes() == ip),
            self.name.map(|name| is_name(&names.name, name)),
            self.library.map(|name| is_name(&names.library, name)),
            self.library_version
                .map(|version| is_name(&names.library_version, version)),
            self.flags.map(|flags| has(&letters(client), flags)),
            self.capabilities
                .map(|wanted| has(client.capabilities(), wanted)),
            self.db.map(|db| client.db.load(Relaxed) == db),
            self.user.then_some(true),
        ]
        .into_iter()
    }
}

/// Letters of flags that a condition may name: all that Valkey has.
const FLAGS: &[u8] = b"bcdeirtuxABEIMNOPRSTU";

/// A word without NOT- in front, and whether that was there.
fn split_not(word: &[u8]) -> (&[u8], bool) {
    match word.split_at_checked(4) {
        Some((not, rest)) if not.eq_ignore_ascii_case(b"NOT-") => (rest, true),
        _ => (word, false),
    }
}

/// The ids from the argument `at` on, and how many arguments they are.
fn ids(
    args: &Args<'_>,
    at: usize,
    of: Purpose,
    is_not: bool,
) -> Result<(Vec<u64>, usize), Failure> {
    const NONE: Failure = Failure::of("ERR client-id should be greater than 0");
    let numbers: Vec<i64> = args.from(at).map_while(number::parse_i64).collect();
    let is_listed = of == Purpose::List && !is_not;
    if is_listed && args.optional(at + numbers.len()).is_some_and(is_unknown) {
        return Err(Failure::of("ERR Invalid client ID"));
    }
    if numbers.is_empty() {
        return Err(if is_not { failure::SYNTAX } else { NONE });
    }
    if !is_listed && numbers.iter().any(|&id| id <= 0) {
        return Err(NONE);
    }
    let ids = numbers.iter().filter_map(|&id| u64::try_from(id).ok());
    Ok((ids.collect(), numbers.len()))
}

/// Whether a word is the name of no condition.
fn is_unknown(word: &[u8]) -> bool {
    const NAMES: [&str; 15] = [
        "ID", "TYPE", "ADDR", "LADDR", "IP", "NAME", "LIB-NAME", "LIB-VER", "DB", "FLAGS", "CAPA",
        "USER", "MAXAGE", "IDLE", "SKIPME",
    ];
    let (word, _) = split_not(word);
    !NAMES
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// The address of a peer without its port.
fn host(peer: &str) -> &str {
    let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn seconds(name: &str, value: &[u8]) -> Result<i64, Failure> {
    match number::parse_i64(value) {
        Some(seconds @ 1..) => Ok(seconds),
        Some(_) => Err(Failure::about(
            "ERR ",
            name.as_bytes(),
            " should be greater than 0",
        )),
        None => Err(not_an_integer(name.as_bytes())),
    }
}

fn not_an_integer(name: &[u8]) -> Failure {
    Failure::about("ERR ", name, " is not an integer or out of range")
}

fn yes_or_no(value: &[u8]) -> Result<bool, Failure> {
    match () {
        () if value.eq_ignore_ascii_case(b"yes") => Ok(true),
        () if value.eq_ignore_ascii_case(b"no") => Ok(false),
        () => Err(failure::SYNTAX),
    }
}

/// The number of a database, of which there are `databases`; `word` is the condition.
fn database(word: &[u8], value: &[u8], databases: usize) -> Result<usize, Failure> {
    let word = word.to_ascii_uppercase();
    let number = number::parse_i64(value).ok_or_else(|| not_an_integer(&word))?;
    let known = usize::try_from(number).ok().filter(|&db| db < databases);
    known.ok_or_else(|| {
        let behind = format!(" number should be between 0 and {}", databases - 1);
        Failure::about("ERR ", &word, &behind)
    })
}

/// Refuses letters beside `known` in a condition.
fn check_letters(name: &str, is_not: bool, value: &[u8], known: &[u8]) -> Result<(), Failure> {
    if value.iter().all(|letter| known.contains(letter)) {
        return Ok(());
    }
    let filter = match is_not {
        true => format!("the NOT-{} filter", name.to_uppercase()),
        false => "the provided filter".to_owned(),
    };
    Err(Failure::about(
        &format!("ERR Unknown {name} found in {filter}: "),
        value,
        "",
    ))
}

fn check_user(name: &[u8]) -> Result<(), Failure> {
    if name == DEFAULT_USER.as_bytes() {
        return Ok(());
    }
    Err(Failure::about("ERR No such user '", name, "'"))
}

pub(super) fn kill(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_old_form = args.len() == 3;
    let conditions = if is_old_form {
        Conditions::of_address(args.get(2))
    } else {
        Conditions::parse(args, Purpose::Kill, context.server.keyspace.databases())?
    };
    let killed = kill_matching(context, &conditions);
    match (is_old_form, killed) {
        (false, _) => context.reply.integer(killed),
        (true, 0) => return Err(Failure::of("ERR No such client")),
        (true, _) => context.reply.ok(),
    }
    Ok(Next::Done)
}

/// Ends the connections that meet the conditions; one's own when it has its reply. Returns how many.
fn kill_matching(context: &mut Context<'_>, conditions: &Conditions<'_>) -> i64 {
    let own = context.session.client.id;
    let clients = &context.server.clients;
    let all = match conditions.ids() {
        Some(ids) => ids.iter().filter_map(|&id| clients.get(id)).collect(),
        None => clients.all(),
    };
    let (mut others, mut me) = (0, 0);
    let now = context.store.now;
    for client in all
        .iter()
        .filter(|client| conditions.are_met_by(client, now, own))
    {
        if client.id != own {
            others += i64::from(context.server.kill(Arc::clone(client)));
        } else {
            context.session.closing = true;
            me = 1;
        }
    }
    if others > 0 {
        // A worker in the middle of its turn may be running their requests: none does once this is answered.
        context.store.turn.exclusive(|_| ());
    }
    others + me
}
