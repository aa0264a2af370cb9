//! A producer and a consumer: each is a thread with a connection, and connects again after a kill.

use fastrand::Rng;

use super::QUEUES;
use super::board::{Board, DEPTH, Message, Progress, Taking, Unanswered};
use super::wire::{Gone, Reply, Wire, request};

/// Seconds that a consumer waits for a message.
const TIMEOUT: &str = "0.02";

/// How a role ends with its connection.
enum End {
    Gone,
    Done,
    Find(String),
}

impl From<Gone> for End {
    fn from(_: Gone) -> End {
        End::Gone
    }
}

impl From<String> for End {
    fn from(find: String) -> End {
        End::Find(find)
    }
}

/// Runs a role on one connection after the other, until it is done.
fn connect_again(board: &Board, mut role: impl FnMut(Wire) -> End) {
    let mut known = 0;
    while let Some((lives, addr)) = board.place(known) {
        known = lives;
        match Wire::connect(addr).map_or(End::Gone, &mut role) {
            End::Gone => {}
            End::Done => return,
            End::Find(find) => return board.fail(find),
        }
    }
}

fn queue_name(queue: usize) -> String {
    format!("queue:{queue}")
}

/// Pushes messages until enough were acknowledged.
pub(super) fn produce(board: &Board, producer: usize) {
    let mut random = Rng::with_seed(producer as u64);
    let (mut next, mut acknowledged) = (0, 0);
    connect_again(board, |mut wire| {
        while acknowledged < board.each {
            let count = random.usize(1..=DEPTH).min(board.each - acknowledged);
            let queue = queue_name(random.usize(..QUEUES));
            let is_one = random.u8(..8) == 0;
            let first = next;
            next += count;
            match push(&mut wire, &queue, producer, first..next, is_one) {
                Ok(()) => {
                    for number in first..next {
                        board.acknowledge(Message { producer, number });
                    }
                    acknowledged += count;
                }
                Err((answered, end)) => {
                    for number in first..first + answered {
                        board.acknowledge(Message { producer, number });
                    }
                    acknowledged += answered;
                    board.leave_unanswered(Unanswered {
                        first: Message {
                            producer,
                            number: first + answered,
                        },
                        count: count - answered,
                        is_one,
                    });
                    return end;
                }
            }
        }
        board.has_produced();
        End::Done
    });
}

/// Pushes messages; how many have a reply, if not all have.
fn push(
    wire: &mut Wire,
    queue: &str,
    producer: usize,
    numbers: std::ops::Range<usize>,
    is_one: bool,
) -> Result<(), (usize, End)> {
    let texts: Vec<String> = numbers
        .map(|number| format!("{producer}:{number}"))
        .collect();
    let mut requests = Vec::new();
    if is_one {
        let mut words: Vec<&[u8]> = vec![b"LPUSH", queue.as_bytes()];
        words.extend(texts.iter().map(|text| text.as_bytes()));
        request(&mut requests, &words);
    } else {
        for text in &texts {
            request(
                &mut requests,
                &[b"LPUSH", queue.as_bytes(), text.as_bytes()],
            );
        }
    }
    wire.send(&requests).map_err(|gone| (0, gone.into()))?;
    for answered in 0..if is_one { 1 } else { texts.len() } {
        match wire.reply() {
            Ok(Reply::Integer(1..)) => {}
            Ok(other) => return Err((answered, format!("LPUSH: {other:?}").into())),
            Err(gone) => return Err((answered, gone.into())),
        }
    }
    Ok(())
}

/// See [`consume`].
struct Consumer<'b> {
    board: &'b Board,
    number: usize,
    /// The last number of each producer in each queue, and 1.
    own: Progress,
    /// Requests that are sent at once.
    depth: usize,
}

/// Receives messages until all are produced and the queues are empty.
pub(super) fn consume(board: &Board, number: usize) {
    let mut consumer = Consumer {
        board,
        number,
        own: Progress::default(),
        depth: 1,
    };
    connect_again(board, |wire| {
        let run = match board.taking {
            Taking::Pops => consumer.pop(wire),
            Taking::Moves => consumer.move_each(wire),
        };
        run.unwrap_or_else(|end| end)
    });
    board.has_consumed();
}

impl Consumer<'_> {
    /// Checks the order of a message. `before`: what was received by all when the request was sent.
    fn receive(&mut self, queue: usize, text: &[u8], before: &Progress) -> Result<Message, String> {
        let message = Message::parse(text).ok_or_else(|| format!("{text:?} is no message"))?;
        self.board.receive(self.number, queue, message, false)?;
        let (place, producer) = (message.number as u64 + 1, message.producer);
        let known = before[queue][producer].max(self.own[queue][producer]);
        if place <= known {
            return Err(format!(
                "{message:?} comes from queue {queue} behind number {}",
                known - 1
            ));
        }
        self.own[queue][producer] = place;
        Ok(message)
    }

    /// Sends fewer requests at once where messages are rare: each waits for one.
    fn adapt(&mut self, got: usize, most: usize) {
        self.depth = match got == self.depth {
            true => (2 * self.depth).min(most),
            false => 1,
        };
    }

    /// BRPOP of all queues. A consumer of an odd number has one request at a time.
    fn pop(&mut self, mut wire: Wire) -> Result<End, End> {
        let most = if self.number % 2 == 1 { 1 } else { DEPTH };
        let names: Vec<String> = (0..QUEUES)
            .map(|at| queue_name((self.number + at) % QUEUES))
            .collect();
        let mut words: Vec<&[u8]> = vec![b"BRPOP"];
        words.extend(names.iter().map(|name| name.as_bytes()));
        words.push(TIMEOUT.as_bytes());
        let mut requests = Vec::new();
        loop {
            let (is_produced, before) = (self.board.is_produced(), self.board.progress());
            requests.clear();
            for _ in 0..self.depth {
                request(&mut requests, &words);
            }
            let mut got = 0;
            let mut answered = 0;
            let told = wire.send(&requests).map_err(End::from).and_then(|()| {
                for _ in 0..self.depth {
                    let reply = wire.reply()?;
                    answered += 1;
                    match reply {
                        Reply::Nil => {}
                        Reply::Array(parts) if parts.len() == 2 => {
                            let name = String::from_utf8_lossy(&parts[0]).into_owned();
                            let queue = name.rsplit(':').next().and_then(|at| at.parse().ok());
                            let queue = queue.filter(|&queue| queue < QUEUES);
                            let queue = queue.ok_or_else(|| format!("{name:?} is no queue"))?;
                            self.receive(queue, &parts[1], &before)?;
                            got += 1;
                        }
                        other => return Err(format!("BRPOP: {other:?}").into()),
                    }
                }
                Ok(())
            });
            self.board.note_cut_pops(self.depth - answered);
            told?;
            if got == 0 && is_produced {
                return Ok(End::Done);
            }
            self.adapt(got, most);
        }
    }

    /// BLMOVE or BRPOPLPUSH to a list of its own, and LREM of each message that was received.
    fn move_each(&mut self, mut wire: Wire) -> Result<End, End> {
        let taken = format!("taken:{}", self.number);
        let queue = self.number % QUEUES;
        let name = queue_name(queue);
        self.receive_again(&mut wire, queue, taken.as_bytes())?;
        let (name, taken) = (name.as_bytes(), taken.as_bytes());
        let timeout = TIMEOUT.as_bytes();
        let words: Vec<&[u8]> = match self.number % 8 < 4 {
            true => vec![b"BLMOVE", name, taken, b"RIGHT", b"LEFT", timeout],
            false => vec![b"BRPOPLPUSH", name, taken, timeout],
        };
        let (mut requests, mut received) = (Vec::new(), Vec::<Vec<u8>>::new());
        loop {
            let (is_produced, before) = (self.board.is_produced(), self.board.progress());
            requests.clear();
            for message in &received {
                request(&mut requests, &[b"LREM", taken, b"-1", message]);
            }
            for _ in 0..self.depth {
                request(&mut requests, &words);
            }
            wire.send(&requests)?;
            for message in received.drain(..) {
                let reply = wire.reply()?;
                if reply != Reply::Integer(1) {
                    let text = String::from_utf8_lossy(&message).into_owned();
                    return Err(format!("LREM of {text}: {reply:?}").into());
                }
            }
            for _ in 0..self.depth {
                match wire.reply()? {
                    Reply::Nil => {}
                    Reply::Bulk(text) => {
                        self.receive(queue, &text, &before)?;
                        received.push(text);
                    }
                    other => return Err(format!("BLMOVE: {other:?}").into()),
                }
            }
            if received.is_empty() && is_produced {
                return Ok(End::Done);
            }
            self.adapt(received.len(), DEPTH);
        }
    }

    /// Receives what is in the own list since a kill: the messages that were moved last are first.
    fn receive_again(&mut self, wire: &mut Wire, queue: usize, taken: &[u8]) -> Result<(), End> {
        let mut requests = Vec::new();
        request(&mut requests, &[b"LRANGE", taken, b"0", b"-1"]);
        wire.send(&requests)?;
        let texts = match wire.reply()? {
            Reply::Array(texts) => texts,
            other => return Err(format!("LRANGE: {other:?}").into()),
        };
        let mut last = Progress::default();
        for text in texts.iter().rev() {
            let message = Message::parse(text).ok_or_else(|| format!("{text:?} is no message"))?;
            self.board.receive(self.number, queue, message, true)?;
            let (place, producer) = (message.number as u64 + 1, message.producer);
            if place <= last[queue][producer] {
                return Err(format!("{message:?} was moved behind one of a higher number").into());
            }
            last[queue][producer] = place;
            self.own[queue][producer] = self.own[queue][producer].max(place);
        }
        requests.clear();
        request(&mut requests, &[b"DEL", taken]);
        wire.send(&requests)?;
        match wire.reply()? {
            Reply::Integer(_) => Ok(()),
            other => Err(format!("DEL: {other:?}").into()),
        }
    }
}
