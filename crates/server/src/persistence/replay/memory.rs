//! The limit of memory during a replay.

use crate::config::Setting;
use crate::persistence::durable::Durable;
use crate::persistence::tile_store::ReplayMemory;

/// Part of `maxmemory` that a replay keeps free where values may stay in the log.
const LOAD_ROOM_SHARE: usize = 8;

/// The memory that parts of collections may take.
pub(crate) struct LoadMemory<'s> {
    pub(crate) server: &'s Durable,
    pub(crate) may_leave: bool,
}

impl ReplayMemory for LoadMemory<'_> {
    fn is_short(&self, more: usize) -> bool {
        self.may_leave && is_short(self.server, more)
    }

    fn give_back(&self) {
        self.server.memory.purge_if_much();
    }
}

/// Whether memory is short, if `more` bytes are taken. A part of the limit is kept free, because what leaves
/// memory leaves gaps between what stays. What threads of the load have freed may still be in the allocator's
/// hands, which no worker looks at meanwhile.
pub(super) fn is_short(server: &Durable, more: usize) -> bool {
    let memory = &server.memory;
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs() as usize;
    let is_near = memory.is_near_with(more + limit / LOAD_ROOM_SHARE);
    if is_near && memory.look_again(sys::clock::realtime_ms()) {
        memory.purge_if_much();
    }
    is_near
}
