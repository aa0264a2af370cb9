//! Ports of servers: below those that the system gives to connections, in blocks, each of one test process.
//! So no other one takes a port between the look at it and the start of the server.

use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use parking_lot::Mutex;

const FIRST: u16 = 10_000;
const BLOCK: u16 = 20;
const BLOCKS: u16 = 1_100;

/// A block, and the name that marks it as taken: the system forgets it with the process.
struct Block {
    first: u16,
    _name: UnixListener,
}

struct Own {
    blocks: Vec<Block>,
    /// Ports that were looked at.
    looks: usize,
}

static OWN: Mutex<Own> = Mutex::new(Own {
    blocks: Vec::new(),
    looks: 0,
});

impl Own {
    /// The next port of the own blocks that nobody listens on.
    fn next(&mut self) -> Option<u16> {
        let count = self.blocks.len() * usize::from(BLOCK);
        for _ in 0..count {
            self.looks += 1;
            let at = self.looks % count;
            let block = &self.blocks[at / usize::from(BLOCK)];
            let port = block.first + (at % usize::from(BLOCK)) as u16;
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Some(port);
            }
        }
        None
    }

    /// Takes a block that no process has.
    fn take_block(&mut self) {
        let from = std::process::id() as u16 % BLOCKS;
        let name = (0..BLOCKS).find_map(|step| {
            let first = FIRST + (from + step) % BLOCKS * BLOCK;
            let name = format!("ferrite-test-ports-{first}");
            let name = SocketAddr::from_abstract_name(name).expect("it is short");
            let _name = UnixListener::bind_addr(&name).ok()?;
            Some(Block { first, _name })
        });
        self.blocks.push(name.expect("some block is free"));
    }
}

/// A port of the loopback that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let mut own = OWN.lock();
    loop {
        match own.next() {
            Some(port) => return port,
            None => own.take_block(),
        }
    }
}
