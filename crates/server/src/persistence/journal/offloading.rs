//! Offloading: whether the log has a value, so that it need not be in memory.

use ferrite_log::Appender;
use keyspace::collection::tree::Leaving;
use keyspace::{EntryMut, LogAddress, Offloading};

use super::{Journal, Replaced, address_of, stored, tag_of};
use crate::limits::RELOG_BYTES;
use crate::persistence::instances::{is_written, mark_dead, write_leaf};

impl Journal {
    /// Reserves space in the log for the records of [`Journal::offloads`], if the log takes records now. No
    /// lock is held.
    pub(crate) fn ensure_offloading(&self) {
        let mut inner = self.inner.borrow_mut();
        let bytes = inner.relog_bytes.max(RELOG_BYTES);
        let most = inner.appender.window();
        inner.relog_left = bytes.min(most);
        inner.relog_bytes = 0;
        let left = inner.relog_left;
        if inner.appender.ensure(left).is_err() {
            inner.relog_left = 0;
        }
    }

    /// Whether one written record holds the whole value of an entry.
    pub(crate) fn holds(&self, entry: &EntryMut<'_, '_>) -> bool {
        let (key, value) = (entry.key().bytes.len(), entry.value_len());
        let inner = self.inner.borrow();
        address_of(entry).is_some_and(|address| {
            !address.is_patched() && inner.appender.is_written(address, key, value)
        })
    }

    /// Decides about the value of the entry that is the next to leave memory, or about a leaf of it. A value
    /// that consists of several records is written whole first, and so is a leaf.
    pub(crate) fn offloads(
        &self,
        entry: &mut EntryMut<'_, '_>,
        leaf: Option<&Leaving>,
    ) -> Offloading {
        if let Some(leaf) = leaf {
            return self.offloads_leaf(entry, leaf);
        }
        if self.holds(entry) {
            return Offloading::Goes;
        }
        let Some(address) = address_of(entry) else {
            return Offloading::Stays;
        };
        let mut inner = self.inner.borrow_mut();
        if inner.appender.is_refused() {
            // The log takes no records now; other values may be in the log already.
            return Offloading::Stays;
        }
        if !address.is_patched() {
            return Offloading::Waits;
        }
        let bytes = Appender::bytes_of(entry.key().bytes.len(), entry.value_len());
        if inner.is_batching() || bytes > inner.appender.window() {
            return Offloading::Stays;
        }
        if bytes > inner.relog_left {
            // Reserved by the next call of [`Journal::ensure_offloading`].
            inner.relog_bytes = inner.relog_bytes.max(bytes);
            return Offloading::Waits;
        }
        inner.relog_left -= bytes;
        let address = self.write_whole(&mut inner, entry);
        drop(inner);
        entry.set_log_address(address);
        Offloading::Waits
    }

    fn offloads_leaf(&self, entry: &EntryMut<'_, '_>, leaf: &Leaving) -> Offloading {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        if let Some(base) = leaf.record {
            return match is_written(&inner.appender, base) {
                true => Offloading::Goes,
                false if inner.appender.is_refused() => Offloading::Stays,
                false => Offloading::Waits,
            };
        }
        let (view, id) = (entry.as_ref(), self.id(entry.database()));
        let Some(tree) = view.tree() else {
            return Offloading::Stays;
        };
        let place = tree.logged().place();
        let Some((instance, _)) = place.filter(|&(_, database)| database == id.0) else {
            return Offloading::Stays;
        };
        if inner.appender.is_refused() || inner.is_batching() {
            return Offloading::Stays;
        }
        let (tag, mut lost, mut needed) = (tag_of(view), Vec::new(), 0);
        let left = &mut inner.relog_left;
        let appender = &mut inner.appender;
        let is_done = tree.write_leaf(&leaf.place, &mut lost, &mut |contents| {
            let bytes = Appender::leaf_bytes(contents.len());
            if bytes > *left {
                needed = bytes;
                return None;
            }
            *left -= bytes;
            Some(write_leaf(appender, id, instance, tag, contents))
        });
        mark_dead(&mut inner.appender, &lost);
        if !is_done {
            if needed > inner.appender.window() {
                return Offloading::Stays;
            }
            // Reserved by the next call of [`Journal::ensure_offloading`].
            inner.relog_bytes = inner.relog_bytes.max(needed);
        }
        Offloading::Waits
    }

    fn write_whole(&self, inner: &mut super::Inner, entry: &EntryMut<'_, '_>) -> LogAddress {
        let (key, view) = (entry.key().bytes, entry.as_ref());
        let id = self.id(entry.database());
        let old = Replaced::of(entry.overwritten());
        let (tag, expiry) = (tag_of(view), view.expiry());
        let value = view.value();
        let address = inner.appender.set(id, key, tag, expiry, value.bytes());
        inner.mark_dead(key.len(), old);
        stored(address)
    }
}
