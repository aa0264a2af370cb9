//! The connections of one worker, by token.
//!
//! A token is a slot number and the slot's generation, so a late event or message for a connection that
//! ended finds nothing rather than its successor.

use crate::net::connection::Connection;

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Connections {
    /// Adds the connection that `make` builds for its token.
    pub(crate) fn add(&mut self, make: impl FnOnce(u64) -> Connection) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        let token = u64::from(slot.generation) << 32 | u64::from(at);
        slot.connection = Some(Box::new(make(token)));
        token
    }

    #[inline]
    pub(crate) fn get(&self, token: u64) -> Option<&Connection> {
        let slot = self.slots.get(token as u32 as usize)?;
        let is_its = u64::from(slot.generation) == token >> 32;
        slot.connection.as_deref().filter(|_| is_its)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        if u64::from(slot.generation) == token >> 32 {
            slot.connection.as_deref_mut()
        } else {
            None
        }
    }

    /// Takes a connection out. Its slot is used again once it was released.
    pub(crate) fn take(&mut self, token: u64) -> Option<Box<Connection>> {
        self.get_mut(token)?;
        let slot = &mut self.slots[token as u32 as usize];
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        slot.connection.take()
    }

    /// Lets the slot of a connection that was taken be used again.
    pub(crate) fn release(&mut self, token: u64) {
        self.free.push(token as u32);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_deref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.connection.as_deref_mut())
    }

    pub(crate) fn tokens(&self) -> Vec<u64> {
        self.iter().map(|connection| connection.token).collect()
    }
}
