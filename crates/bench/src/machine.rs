//! Facts about this machine and this start of the program, without which a figure means nothing.

use serde::{Deserialize, Serialize};

/// What a report says of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) processor: String,
    /// How many of them this process may use.
    pub(crate) processors: usize,
    pub(crate) memory_bytes: u64,
    /// The operating system, its release and architecture.
    pub(crate) system: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn this() -> Machine {
        Machine {
            processor: processor(),
            processors: sys::cpu::usable_cpus(),
            memory_bytes: sys::process::total_memory_bytes(),
            system: sys::process::os_text(),
        }
    }

    /// In one line.
    pub(crate) fn text(&self) -> String {
        format!(
            "{} x {}, {:.1} GiB, {}",
            self.processors,
            self.processor,
            self.memory_bytes as f64 / (1_u64 << 30) as f64,
            self.system
        )
    }
}

/// What this program was started with.
pub(crate) fn command_line() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The name that the first processor gives itself, where the system tells.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (field, name) = line.split_once(':')?;
        (field.trim() == "model name").then(|| name.trim().to_owned())
    });
    named.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::this();
        assert!(machine.processors >= 1 && machine.memory_bytes > 1 << 20);
        assert!(!machine.processor.is_empty() && !machine.system.is_empty());
        assert!(machine.text().contains(&machine.processor));
    }
}
