//! What has to be done some time: taking space for the next segment, giving back what a full one did not use,
//! watching free space, removing files of large values.

use std::sync::atomic::Ordering;

use crate::blob;
use crate::core::Core;
use crate::engine::Engine;
use crate::error::Result;
use crate::hint;
use crate::lock::lock;
use crate::space;

/// One round.
pub(crate) fn keep(core: &Engine) {
    if core.has_failed() {
        return;
    }
    if let Err(error) = core.begin_late() {
        // Without a segment nothing can be written, removals neither.
        if !space::is_lack(&error) {
            core.fail(error.to_string());
        }
        return;
    }
    match look_at_space(core) {
        Ok(None) if core.is_full() => core.set_roomy(),
        Ok(None) => {}
        Ok(Some(reason)) => core.set_low(reason),
        Err(error) => core.set_full(error.to_string()),
    }
    trim_sealed(core);
    write_hints(core);
    remove_doomed(core);
}

/// Writes the hints of full segments.
fn write_hints(core: &Core) {
    for segment in &core.segments.map().segments {
        let Some(hints) = segment.take_hints() else {
            continue;
        };
        let written = hint::write(&*core.files, &core.paths, &core.name, segment, &hints);
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
fn look_at_space(core: &Core) -> Result<Option<String>> {
    if core.spare_wanted.load(Ordering::Relaxed) && space::is_there(core, space::room(core))? {
        space::prepare(core)?;
    }
    // Healing wants some more than what was too little, so that it does not flicker.
    let reserve = core.options.reserve_bytes;
    let wanted = if core.is_full() {
        reserve + reserve / 4
    } else {
        reserve
    };
    let free = space::look(core)?;
    if free >= wanted {
        return Ok(None);
    }
    let error = space::too_little(core, free, wanted);
    if core.has_reserve_for_removals() {
        Ok(Some(error.to_string()))
    } else {
        Err(error)
    }
}

/// Full segments give back the space behind their end.
fn trim_sealed(core: &Core) {
    for segment in &core.segments.map().segments {
        if segment.is_sealed() && segment.needs_trim() {
            // Not important enough to stop anything: the file is only longer than it has to be.
            if let Err(error) = segment.trim()
                && !space::is_full(&error)
            {
                log::warn!("cannot shorten {}: {error}", segment.path.display());
            }
        }
    }
}

/// Removes blobs that nothing can need any more.
fn remove_doomed(core: &Core) {
    if core.holds.load(Ordering::SeqCst) > 0 {
        return;
    }
    let _one = lock(&core.deletion);
    for id in core.blobs.take_removable(core.durable()) {
        blob::remove(&*core.files, &core.paths, id);
    }
}
