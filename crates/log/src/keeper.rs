//! What has to be done some time: taking space for the next segment, giving back what a full one did not use,
//! watching free space.

use std::sync::atomic::Ordering;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::hint;
use crate::limits::LONGEST_SLEEP;
use crate::writer::{is_full, prepare};

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
        match self.take_space() {
            Ok(()) if self.is_full() => self.set_roomy(),
            Ok(()) => {}
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

    /// Sees to it that there is space for the next segment and a reserve beyond it.
    fn take_space(&self) -> Result<()> {
        let log = &self.paths.log;
        if self.spare_wanted.load(Ordering::Relaxed) {
            prepare(self)?;
        }
        let free = self
            .files
            .free_bytes(log)
            .map_err(|error| Error::io("cannot ask for free space of", log, error))?;
        // Healing wants some more than what was too little, so that it does not flicker.
        let wanted = self.options.reserve_bytes;
        let wanted = if self.is_full() {
            wanted + wanted / 4
        } else {
            wanted
        };
        if free < wanted {
            let error = std::io::Error::new(
                std::io::ErrorKind::StorageFull,
                format!("{free} bytes are free and {wanted} are kept in reserve"),
            );
            return Err(Error::io("not enough space in", log, error));
        }
        Ok(())
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
