//! `math.random`: the numbers of `lrand48`. Their state is the run's own. Each run begins with the same
//! seed, as in Redis.

use crate::machine::Machine;
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;

pub(crate) const FUNCTIONS: Functions = &[
    (c"random", callback!(random)),
    (c"randomseed", callback!(seed)),
];

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 11;
/// The low bits of a state that has a seed.
const SEEDED: u64 = 0x330E;
const RANGE: u64 = 1 << 48;
/// The largest number of 31 bits.
const LARGEST: u32 = i32::MAX as u32;

/// The next 31 bits.
fn draw(machine: &Machine) -> u32 {
    let next = machine
        .random
        .get()
        .wrapping_mul(MULTIPLIER)
        .wrapping_add(INCREMENT)
        % RANGE;
    machine.random.set(next);
    (next >> 17) as u32
}

fn random(lua: Lua<'_>) -> Returned {
    let fraction = f64::from(draw(lua.machine()) % LARGEST) / f64::from(LARGEST);
    let (low, high, argument) = match lua.top() {
        0 => {
            lua.push_number(fraction);
            return Ok(1);
        }
        1 => (1, lua.expect_integer(1) as i32, 1),
        2 => (
            lua.expect_integer(1) as i32,
            lua.expect_integer(2) as i32,
            2,
        ),
        _ => return Err(Raise::Text(c"wrong number of arguments")),
    };
    if low > high {
        return Err(Raise::Argument(argument, c"interval is empty"));
    }
    let width = f64::from(high.wrapping_sub(low).wrapping_add(1));
    lua.push_number((fraction * width).floor() + f64::from(low));
    Ok(1)
}

fn seed(lua: Lua<'_>) -> Returned {
    let seed = lua.expect_integer(1) as u32;
    lua.machine().random.set(u64::from(seed) << 16 | SEEDED);
    Ok(0)
}
