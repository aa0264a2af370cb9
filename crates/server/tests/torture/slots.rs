//! A server that is a node of a cluster: which slots its map gives to it, and which requests it refuses for
//! that.
//!
//! Keys of slots that it has lost are kept, and are what they were when it has the slots again.

use resp::slot::{SLOTS, slot};

use crate::support::{PATIENCE, Value};
use crate::torture::inspect;
use crate::torture::run::{Find, Runner};
use crate::torture::script::{Arg, Request};

/// The option of the script's servers that makes them nodes.
pub(crate) const OPTION: &str = "cluster=yes";

/// A map of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slots {
    /// The server has all slots.
    #[default]
    All,
    /// Another node, which nobody has started, has the second half of them.
    Half,
}

impl Slots {
    /// The text of the map.
    pub(crate) fn text(self, epoch: u64, port: u16) -> String {
        let middle = SLOTS / 2;
        let (own, others) = match self {
            Slots::All => (format!("\"0-{}\"", SLOTS - 1), String::new()),
            Slots::Half => (
                format!("\"0-{}\"", middle - 1),
                format!("\"{middle}-{}\"", SLOTS - 1),
            ),
        };
        format!(
            "name = \"torture\"\nepoch = {epoch}\n\
             [[nodes]]\nid = \"a\"\nhost = \"127.0.0.1\"\nport = {port}\nslots = [{own}]\n\
             [[nodes]]\nid = \"b\"\nhost = \"127.0.0.2\"\nport = {port}\nslots = [{others}]\n"
        )
    }

    /// How the error begins with which a node refuses requests that run together, if it does.
    pub(crate) fn refusal<'a>(
        self,
        requests: impl Iterator<Item = &'a Request>,
    ) -> Option<&'static str> {
        let mut slots = requests.flatten().filter_map(|arg| match arg {
            Arg::Word(word) => inspect::owner(word).map(|_| slot(word)),
            Arg::Text { .. }
            | Arg::Payload { .. }
            | Arg::Entries { .. }
            | Arg::Cursor
            | Arg::Known(_) => None,
        });
        let first = slots.next()?;
        if slots.any(|other| other != first) {
            return Some("CROSSSLOT ");
        }
        (self == Slots::Half && first >= SLOTS / 2).then_some("MOVED ")
    }
}

/// The maps under which a request may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maps {
    /// The server is no node of a cluster.
    None,
    Only(Slots),
    /// The map has changed while the request was on its way. Its answer tells.
    Either,
}

impl Maps {
    /// The one that an answer tells of.
    pub(crate) fn told_by(self, reply: &Value) -> Maps {
        let is_moved = matches!(reply, Value::Error(text) if text.starts_with(b"MOVED "));
        match self {
            Maps::Either if is_moved => Maps::Only(Slots::Half),
            Maps::Either => Maps::Only(Slots::All),
            known => known,
        }
    }
}

impl Runner {
    pub(crate) fn is_cluster(&self) -> bool {
        self.options.iter().any(|option| option == OPTION)
    }

    /// Those of a request that is sent now.
    pub(crate) fn maps(&self) -> Maps {
        if self.is_cluster() {
            Maps::Only(self.process.slots)
        } else {
            Maps::None
        }
    }

    /// Gives the server another map, beside what is on its way.
    pub(crate) fn change_map(&mut self, slots: Slots) -> Result<(), Find> {
        if !self.is_cluster() || !self.process.is_running() {
            self.process.slots = slots;
            return Ok(());
        }
        if self.life.is_stuck || self.process.slots == slots {
            return Ok(());
        }
        if self.life.maxmemory.is_some() || self.pending_global() {
            // What is on its way may be asked about before it is answered.
            self.settle()?;
        }
        for lane in &mut self.lanes {
            let answered = lane.history.answered;
            for step in &mut lane.history.steps[answered..] {
                step.maps = Maps::Either;
            }
        }
        self.totals.maps += 1;
        self.reload(slots)?;
        self.settle()
    }

    fn reload(&mut self, slots: Slots) -> Result<(), Find> {
        self.process.slots = slots;
        self.process.write_map();
        let answer = self.reader()?.ask("CLUSTER RELOAD", PATIENCE);
        match answer {
            Ok(Value::Simple(text)) if text == b"OK" => Ok(()),
            other => {
                let text = format!(
                    "CLUSTER RELOAD answers {other:?}\n{}",
                    self.process.silent()
                );
                Err(Find::new("map", text))
            }
        }
    }

    /// Does something while the server has all slots: a node lets nobody read keys of slots that it does not
    /// have.
    pub(crate) fn with_all_slots<T>(
        &mut self,
        read: impl FnOnce(&mut Runner) -> Result<T, Find>,
    ) -> Result<T, Find> {
        if !self.is_cluster() || self.process.slots == Slots::All {
            return read(self);
        }
        self.settle()?;
        self.reload(Slots::All)?;
        let done = read(self)?;
        self.reload(Slots::Half)?;
        Ok(done)
    }
}

#[test]
fn a_node_refuses_what_it_does_not_have() {
    let named = |has: &dyn Fn(u16) -> bool| {
        let mut names = (0..).map(|number| format!("3:{{{number}}}v1"));
        let name = names.find(|name| has(slot(name.as_bytes())));
        Arg::word(name.expect("there are names without end"))
    };
    let (own, lost) = (
        named(&|slot| slot < SLOTS / 2),
        named(&|slot| slot >= SLOTS / 2),
    );
    let refusals = |words: &[&Arg]| {
        let request: Request = words.iter().map(|&word| word.clone()).collect();
        let refusal = |slots: Slots| slots.refusal(std::iter::once(&request));
        (refusal(Slots::All), refusal(Slots::Half))
    };
    let (get, text) = (Arg::word("GET"), Arg::Text { len: 9, seed: 1 });
    assert_eq!(refusals(&[&get, &text]), (None, None));
    assert_eq!(refusals(&[&get, &own, &own]), (None, None));
    assert_eq!(refusals(&[&get, &lost]), (None, Some("MOVED ")));
    let crossing = Some("CROSSSLOT ");
    assert_eq!(refusals(&[&get, &lost, &own]), (crossing, crossing));
    let moved = Value::Error(b"MOVED 9000 127.0.0.2:1".to_vec());
    assert_eq!(Maps::Either.told_by(&moved), Maps::Only(Slots::Half));
    assert_eq!(Maps::Either.told_by(&Value::Int(1)), Maps::Only(Slots::All));
}
