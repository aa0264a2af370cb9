//! Which signals there are.

/// The signals that a server may want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGTERM, the polite request to end.
    Term,
    /// SIGINT, Ctrl-C.
    Int,
    /// SIGHUP, the terminal is gone; by custom, reopen and reload.
    Hup,
    /// SIGQUIT, Ctrl-\.
    Quit,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

/// Every signal with its number.
const NUMBERS: [(Signal, libc::c_int); 6] = [
    (Signal::Term, libc::SIGTERM),
    (Signal::Int, libc::SIGINT),
    (Signal::Hup, libc::SIGHUP),
    (Signal::Quit, libc::SIGQUIT),
    (Signal::Usr1, libc::SIGUSR1),
    (Signal::Usr2, libc::SIGUSR2),
];

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 6] = [
        Signal::Term,
        Signal::Int,
        Signal::Hup,
        Signal::Quit,
        Signal::Usr1,
        Signal::Usr2,
    ];

    /// The kernel's number of the signal.
    #[must_use]
    pub fn number(self) -> i32 {
        let (_, number) = NUMBERS[self as usize];
        number
    }

    /// Its name in full, `SIGTERM`, for the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
            Signal::Hup => "SIGHUP",
            Signal::Quit => "SIGQUIT",
            Signal::Usr1 => "SIGUSR1",
            Signal::Usr2 => "SIGUSR2",
        }
    }

    pub(super) fn from_number(number: libc::c_int) -> Option<Signal> {
        NUMBERS
            .iter()
            .find(|(_, known)| *known == number)
            .map(|(signal, _)| *signal)
    }
}

/// An empty set of signals with these added.
#[cfg(target_os = "linux")]
pub(super) fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: a sigset_t is integers, for which all bits zero is a value; sigemptyset then makes it
    // the empty set, and the numbers added are those of signals that exist.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal.number());
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, (signal, number)) in NUMBERS.into_iter().enumerate() {
            assert_eq!(signal as usize, index);
            assert_eq!(Signal::ALL[index], signal);
            assert_eq!(signal.number(), number);
            assert_eq!(Signal::from_number(number), Some(signal));
        }
        assert_eq!(Signal::from_number(libc::SIGKILL), None);
        assert_eq!(Signal::from_number(0), None);
    }
}
