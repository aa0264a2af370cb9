//! What has to be done some time: taking space for the next segment, giving back what a full one did not use,
//! watching free space.

use std::sync::atomic::Ordering;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::hint;
use crate::limits::LONGEST_SLEEP;
use crate::writer::{is_full, prepare, room};

impl Core {
    /// What the keeper does until the log is closed.
    pub(crate) fn run_keeper_thread(&self) {
        let (mut version, mut spare_wanted) = (0, false);
        while !self.is_closing.load(Ordering::SeqCst) {
            self.keep();
            self.chores.wait_for(LONGEST_SLEEP, || {
                self.is_closing.load(Ordering::SeqCst)
                    || self.segments.version() != version
                    || self.spare_wanted.load(Ordering::Relaxed) != spare_wanted
            });
            version = self.segments.version();
            spare_wanted = self.spare_wanted.load(Ordering::Relaxed);
        }
    }

    /// One round.
    pub(crate) fn keep(&self) {
        if self.has_failed() {
            return;
        }
        match self.look_at_space() {
            Ok(None) if self.is_full() => self.set_roomy(),
            Ok(None) => {}
            Ok(Some(reason)) => self.set_low(reason),
            Err(error) => self.set_full(error.to_string()),
        }
        self.trim_sealed();
        self.write_hints();
        self.remove_doomed();
    }

    /// Writes the hints of full segments.
    fn write_hints(&self) {
        for segment in &self.segments.map().segments {
            let Some(hints) = segment.take_hints() else {
                continue;
            };
            let written = hint::write(&*self.files, &self.paths, &self.name, segment, &hints);
            if let Err(error) = written {
                // Nothing depends on them.
                log::info!("{error}");
            }
        }
    }

    /// Sees to it that there is space for the next segment and a reserve beyond it. Returns why only removals
    /// may be accepted, if that is so.
    ///
    /// # Errors
    /// Not even removals may be accepted.
    fn look_at_space(&self) -> Result<Option<String>> {
        if self.spare_wanted.load(Ordering::Relaxed) && self.has_space_for(room(self))? {
            prepare(self)?;
        }
        // Healing wants some more than what was too little, so that it does not flicker.
        let reserve = self.options.reserve_bytes;
        let wanted = if self.is_full() {
            reserve + reserve / 4
        } else {
            reserve
        };
        let free = self.look_at_free_bytes()?;
        if free >= wanted {
            return Ok(None);
        }
        let error = self.no_space(free, wanted);
        if self.has_reserve_for_removals() {
            Ok(Some(error.to_string()))
        } else {
            Err(error)
        }
    }

    /// Whether there is space for so many bytes beside the reserve.
    fn has_space_for(&self, bytes: u64) -> Result<bool> {
        Ok(self.look_at_free_bytes()? >= bytes.saturating_add(self.options.reserve_bytes))
    }

    fn look_at_free_bytes(&self) -> Result<u64> {
        let log = &self.paths.log;
        let free = self.files.free_bytes(log);
        let free = free.map_err(|error| Error::io("cannot ask for free space of", log, error))?;
        self.free_bytes.store(free, Ordering::Relaxed);
        Ok(free)
    }

    fn no_space(&self, free: u64, wanted: u64) -> Error {
        let text = format!("{free} bytes are free and {wanted} are kept in reserve");
        let error = std::io::Error::new(std::io::ErrorKind::StorageFull, text);
        Error::io("not enough space in", &self.paths.log, error)
    }

    /// Looks whether a file of so many bytes leaves the reserve alone.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check_space_for(&self, bytes: u64) -> Result<()> {
        if self.has_space_for(bytes)? {
            return Ok(());
        }
        let free = self.free_bytes.load(Ordering::Relaxed);
        let wanted = self.options.reserve_bytes.saturating_add(bytes);
        Err(self.no_space(free, wanted))
    }

    /// Full segments give back the space behind their end.
    fn trim_sealed(&self) {
        for segment in &self.segments.map().segments {
            if segment.is_sealed() && segment.needs_trim() {
                // Not important enough to stop anything: the file is only longer than it has to be.
                if let Err(error) = segment.trim()
                    && !is_full(&error)
                {
                    log::warn!("cannot shorten {}: {error}", segment.path.display());
                }
            }
        }
    }
}
