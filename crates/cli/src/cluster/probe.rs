//! What the nodes say of themselves: all are asked at once, each on a connection of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use resp::Value;

use super::fleet::Member;
use crate::access::Access;
use crate::connection::{Approach, Connection, Place};
use crate::failure::{Broken, Failure, reason};
use crate::info::Info;

/// How long a node may take to answer, if nobody says otherwise.
const LIMIT: Duration = Duration::from_secs(5);

/// A node, as it was a moment ago.
#[derive(Debug)]
pub(super) enum Report {
    Up(Box<Facts>),
    /// It answers, but not yet with data.
    Loading(String),
    /// It answers, but wants a password, or another one.
    Closed(String),
    /// Why it does not answer.
    Down(String),
}

/// What a node says.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) info: Info,
    /// Forty digits.
    pub(super) id: String,
    /// Of the cluster; other servers than Ferrite do not tell.
    pub(super) name: String,
    pub(super) state: String,
    pub(super) epoch: u64,
    pub(super) slots: Vec<String>,
    /// Its map: the ranges of each node.
    pub(super) view: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// In a word for a column, or in those of the system.
    pub(super) fn state(&self) -> &str {
        match self {
            Report::Up(facts) if facts.state != "ok" => "slots missing",
            Report::Up(_) => "up",
            Report::Loading(why) | Report::Closed(why) | Report::Down(why) => why,
        }
    }

    pub(super) fn facts(&self) -> Option<&Facts> {
        match self {
            Report::Up(facts) => Some(facts),
            _ => None,
        }
    }
}

/// Asks all members at once.
pub(super) fn ask_all(members: &[Member], access: &Access) -> Vec<Report> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(|| ask(&member.place(), access)))
            .collect();
        let report = |asked: std::thread::ScopedJoinHandle<'_, Report>| {
            asked
                .join()
                .unwrap_or_else(|_| Report::Down("cannot be asked".to_owned()))
        };
        asked.into_iter().map(report).collect()
    })
}

/// Asks a node what it is and has.
pub(super) fn ask(place: &Place, access: &Access) -> Report {
    match talk(place, access) {
        Ok(report) => report,
        Err(Failure::Broken(Broken::Io(error))) => Report::Down(reason(&error).to_lowercase()),
        Err(Failure::Broken(broken)) => Report::Down(broken.to_string().to_lowercase()),
        Err(failure) => Report::Down(failure.to_string()),
    }
}

/// A connection to a node, with the password if there is one.
///
/// # Errors
/// The node does not answer. Its refusal of the password is no error here: so are all other requests.
pub(super) fn open(place: &Place, access: &Access) -> Result<Connection, Failure> {
    let approach = Approach {
        timeout: Some(limit(access)),
        ..access.approach
    };
    let mut connection = Connection::open(place, approach).map_err(Broken::Io)?;
    if let Some(password) = &access.password {
        let mut words = vec![b"AUTH".to_vec()];
        words.extend(access.user.clone());
        words.push(password.clone());
        request(&mut connection, &words, limit(access))?;
    }
    Ok(connection)
}

/// How long a node may take to answer, unless `-t` says otherwise.
fn limit(access: &Access) -> Duration {
    access.approach.timeout.unwrap_or(LIMIT)
}

/// Sends a request and waits for its reply.
///
/// # Errors
/// It does not come.
fn request<W: AsRef<[u8]>>(
    connection: &mut Connection,
    words: &[W],
    limit: Duration,
) -> Result<Value, Failure> {
    connection.queue(words);
    connection.flush()?;
    let reply = connection.read_within(limit)?;
    reply.ok_or_else(|| Failure::Other(format!("no answer in {} s", limit.as_secs_f64())))
}

fn talk(place: &Place, access: &Access) -> Result<Report, Failure> {
    let mut connection = open(place, access)?;
    let mut ask = |words: &[&str]| request(&mut connection, words, limit(access));
    if let Value::Error(text) = ask(&["PING"])? {
        let text = String::from_utf8_lossy(&text).into_owned();
        return Ok(match text.split_whitespace().next() {
            Some("LOADING") => Report::Loading("loading".to_owned()),
            Some("NOAUTH") => Report::Closed("wants a password (-a)".to_owned()),
            _ => Report::Down(text),
        });
    }
    let info = Info::parse(text(&ask(&["INFO"])?)?.as_bytes());
    let cluster = Info::parse(text(&ask(&["CLUSTER", "INFO"])?)?.as_bytes());
    let (id, view) = view(&text(&ask(&["CLUSTER", "NODES"])?)?);
    Ok(Report::Up(Box::new(Facts {
        name: cluster.text("cluster_name").to_owned(),
        state: cluster.text("cluster_state").to_owned(),
        epoch: u64::try_from(cluster.number("cluster_current_epoch")).unwrap_or(0),
        slots: view.get(&id).cloned().unwrap_or_default(),
        info,
        id,
        view,
    })))
}

fn text(reply: &Value) -> Result<String, Failure> {
    match reply {
        Value::Bulk(text) | Value::Verbatim { text, .. } => {
            Ok(String::from_utf8_lossy(text).into_owned())
        }
        Value::Error(text) => Err(Failure::other(String::from_utf8_lossy(text))),
        other => Err(Failure::Other(format!("answered {other:?}"))),
    }
}

/// The id of the node that was asked, and the slots of all, from what CLUSTER NODES answers.
fn view(text: &str) -> (String, BTreeMap<String, Vec<String>>) {
    let (mut own, mut view) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        // Id, address, flags, master, two times, epoch, link, then slots; those on the move are in brackets.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [id, _, flags, _, _, _, _, _, slots @ ..] = &words[..] else {
            continue;
        };
        if flags.split(',').any(|flag| flag == "myself") {
            (*id).clone_into(&mut own);
        }
        let slots = slots.iter().filter(|slot| !slot.starts_with('['));
        let slots = slots.map(|&slot| slot.to_owned()).collect();
        view.insert((*id).to_owned(), slots);
    }
    (own, view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_a_node_is_what_it_says_of_all() {
        let text = "aa 10.0.0.1:7000@0 myself,master - 0 0 1 connected 0-5 9 [10->-bb]\n\
            bb 10.0.0.2:7000@0,two.example master - 0 0 1 connected 6-8\n\
            cc 10.0.0.3:7000@0 master - 0 0 1 connected\n";
        let (own, view) = view(text);
        assert_eq!(own, "aa");
        assert_eq!(view["aa"], ["0-5", "9"]);
        assert_eq!((view["bb"].len(), view["cc"].len()), (1, 0));
    }
}
