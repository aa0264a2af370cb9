//! Connections that do nothing (`-I`): opened, greeted, and kept until the program is stopped.

use std::io::Write;
use std::time::Duration;

use sys::{Backend, Poller};

use crate::limits::MAX_DIALING;
use crate::load::data::Data;
use crate::wire::link::{Link, LinkError, LinkEvent};
use crate::wire::target::Target;

/// How long a wait for events takes at most.
const WAIT: Duration = Duration::from_secs(60);

/// Opens so many connections to each server and waits until one of them breaks.
///
/// # Errors
/// A connection cannot be opened, is refused or was closed; the text says which server's.
pub(crate) fn wait(targets: &[Target], clients: usize) -> Result<(), String> {
    let mut poller = Poller::new(Backend::Auto).map_err(|error| error.to_string())?;
    let mut held = Vec::new();
    for target in targets {
        let name = &target.name;
        open(&mut poller, target, clients, &mut held)
            .map_err(|error| format!("{name}: {error}"))?;
        println!("{clients} idle connections to {name}");
    }
    // It may be read by a script that waits for it. That it cannot be written is of no consequence.
    let _ = std::io::stdout().flush();
    let mut events = Vec::new();
    loop {
        poller
            .wait(&mut events, Some(WAIT))
            .map_err(|error| error.to_string())?;
        let mut input = [0; 4096];
        for event in &events {
            let at = event.token as usize;
            let link: &mut Link = &mut held[at];
            link.receive(&mut poller, &mut input, &mut |_, _, _| {})
                .map_err(|error| format!("{}: {error}", targets[at / clients].name))?;
        }
    }
}

/// Opens the connections of one server, a few at a time, and puts them behind those that are open.
fn open(
    poller: &mut Poller,
    target: &Target,
    clients: usize,
    held: &mut Vec<Link>,
) -> Result<(), LinkError> {
    let (greeting, replies) = target.greeting.encode();
    let data = Data::new(0);
    let mut input = vec![0; 4096];
    let mut events = Vec::new();
    let (first, mut ready) = (held.len(), 0);
    while ready < clients {
        while held.len() - first < clients && held.len() - first - ready < MAX_DIALING {
            let token = held.len() as u64;
            held.push(Link::dial(poller, &target.endpoint, token)?);
        }
        poller.wait(&mut events, Some(WAIT))?;
        if events.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        }
        for &event in &events {
            let link = &mut held[event.token as usize];
            match link.advance(poller, event, (&greeting, replies), &data, &mut input)? {
                LinkEvent::None => {}
                LinkEvent::Opened => ready += 1,
                LinkEvent::Open => {
                    link.receive(poller, &mut input, &mut |_, _, _| {})?;
                }
            }
        }
    }
    Ok(())
}
