//! Places on the earth, and the scores that they are: the bits of longitude and latitude in turn, 26 of each.
//!
//! Longitudes reach from -180 to 180 degrees, latitudes from -85.05112878 to 85.05112878. A *cell* is all
//! places that share the first bits of their scores. Places, cells and distances have the bits that Redis
//! gives them, so sorted sets of both mean the same.

/// Bits of a longitude, and of a latitude, in a score.
pub(super) const STEPS: u32 = 26;
/// The largest longitude and latitude.
pub(super) const LONGITUDE_MAX: f64 = 180.0;
pub(super) const LATITUDE_MAX: f64 = 85.05112878;
/// The largest latitude of geohashes as others write them.
const LATITUDE_90: f64 = 90.0;
pub(super) const EARTH_RADIUS_M: f64 = 6_372_797.560856;
/// Half of the earth's circumference in the projection by which cells are chosen.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
const DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

/// Puts a zero before each bit.
fn spread(bits: u64) -> u64 {
    let bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    let bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    let bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

/// Takes every second bit, the lowest first.
fn gather(bits: u64) -> u32 {
    let bits = bits & 0x5555_5555_5555_5555;
    let bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    let bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    let bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

/// The bits of a score. Of one that is no place they are those which x86-64 makes of it: modulo 2^64 from
/// -2^63 up to 2^64, 2^63 below that, and none above.
fn bits_of(score: f64) -> u64 {
    const HALF: f64 = (1_u64 << 63) as f64;
    match score {
        ..HALF => score as i64 as u64,
        _ if score < 2.0 * HALF => score as u64,
        _ => 0,
    }
}

/// The part of a range at which a value is, in so many steps.
fn part(value: f64, max: f64, steps: u32) -> u64 {
    let offset = (value + max) / (max + max);
    u64::from((offset * (1_u64 << steps) as f64) as u32)
}

/// The value at a step of a range.
fn at_step(step: u32, max: f64, steps: u32) -> f64 {
    -max + (f64::from(step) / (1_u64 << steps) as f64) * (max + max)
}

impl Point {
    fn bits(self, steps: u32, latitude_max: f64) -> u64 {
        let latitude = part(self.latitude, latitude_max, steps);
        let longitude = part(self.longitude, LONGITUDE_MAX, steps);
        spread(latitude) | spread(longitude) << 1
    }

    /// Whether there is such a place.
    pub(super) fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The score of a member that is here.
    pub(super) fn score(self) -> f64 {
        self.bits(STEPS, LATITUDE_MAX) as f64
    }

    /// Where a member is that has a score.
    pub(super) fn of_score(score: f64) -> Point {
        let area = Cell {
            bits: bits_of(score),
            steps: STEPS,
        };
        let area = area.area();
        let middle = |low: f64, high: f64, max: f64| ((low + high) / 2.0).clamp(-max, max);
        Point {
            longitude: middle(area.west, area.east, LONGITUDE_MAX),
            latitude: middle(area.south, area.north, LATITUDE_MAX),
        }
    }

    /// The geohash, as others write it too: 11 digits, the last of them always 0.
    pub(super) fn geohash(self) -> [u8; 11] {
        let bits = self.bits(STEPS, LATITUDE_90);
        let mut digits = [DIGITS[0]; 11];
        for (index, digit) in digits.iter_mut().take(10).enumerate() {
            *digit = DIGITS[(bits >> (52 - 5 * (index + 1))) as usize & 31];
        }
        digits
    }

    /// Meters to another place, along a great circle.
    pub(super) fn distance_m(self, to: Point) -> f64 {
        let half_longitude = ((to.longitude * DEGREE - self.longitude * DEGREE) / 2.0).sin();
        let (from_latitude, to_latitude) = (self.latitude * DEGREE, to.latitude * DEGREE);
        if half_longitude == 0.0 {
            return EARTH_RADIUS_M * (to_latitude - from_latitude).abs();
        }
        let half_latitude = ((to_latitude - from_latitude) / 2.0).sin();
        let both = from_latitude.cos() * to_latitude.cos() * half_longitude * half_longitude;
        let square = half_latitude * half_latitude + both;
        2.0 * EARTH_RADIUS_M * square.sqrt().asin()
    }
}

/// All places whose scores begin with these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    bits: u64,
    /// Bits of longitude, and of latitude.
    steps: u32,
}

/// The edges of a cell, or of what is searched, in degrees.
#[derive(Clone, Copy, Debug)]
struct Area {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Cell {
    fn of(place: Point, steps: u32) -> Cell {
        let bits = place.bits(steps, LATITUDE_MAX);
        Cell { bits, steps }
    }

    fn area(self) -> Area {
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        let steps = self.steps;
        Area {
            west: at_step(longitude, LONGITUDE_MAX, steps),
            east: at_step(longitude.wrapping_add(1), LONGITUDE_MAX, steps),
            south: at_step(latitude, LATITUDE_MAX, steps),
            north: at_step(latitude.wrapping_add(1), LATITUDE_MAX, steps),
        }
    }

    /// The cell so many to the east and to the north, around the earth.
    fn neighbor(self, east: i32, north: i32) -> Cell {
        let mask = (1_u64 << self.steps) - 1;
        // What does not move may be behind the last step: the largest longitude and latitude are.
        let moved = |part: u32, by: i32| match by {
            0 => u64::from(part),
            by => u64::from(part).wrapping_add_signed(by.into()) & mask,
        };
        let latitude = moved(gather(self.bits), north);
        let longitude = moved(gather(self.bits >> 1), east);
        Cell {
            bits: spread(latitude) | spread(longitude) << 1,
            ..self
        }
    }

    /// The scores of the members in it: from the first one on, up to the second.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEPS - self.steps);
        (
            (self.bits << shift) as f64,
            ((self.bits + 1) << shift) as f64,
        )
    }
}

/// What is searched around a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Circle { radius_m: f64 },
    Box { width_m: f64, height_m: f64 },
}

impl Shape {
    /// The distance of a place from the middle; `None`: it is outside.
    pub(super) fn distance_m(self, middle: Point, place: Point) -> Option<f64> {
        match self {
            Shape::Circle { radius_m } => {
                let distance = middle.distance_m(place);
                (distance <= radius_m).then_some(distance)
            }
            Shape::Box { width_m, height_m } => {
                let beside = |longitude, latitude| Point {
                    longitude,
                    latitude,
                };
                let above = beside(place.longitude, middle.latitude);
                if place.distance_m(above) > height_m / 2.0 {
                    return None;
                }
                let next_to = beside(middle.longitude, place.latitude);
                if place.distance_m(next_to) > width_m / 2.0 {
                    return None;
                }
                Some(middle.distance_m(place))
            }
        }
    }

    fn half_sizes(self) -> (f64, f64) {
        match self {
            Shape::Circle { radius_m } => (radius_m, radius_m),
            Shape::Box { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
        }
    }

    /// The edges of what is searched. Towards the poles a degree of longitude is shorter.
    fn area(self, middle: Point) -> Area {
        let (half_width, half_height) = self.half_sizes();
        let up = half_height / EARTH_RADIUS_M / DEGREE;
        let outer = match middle.latitude < 0.0 {
            true => middle.latitude - up,
            false => middle.latitude + up,
        };
        let aside = half_width / EARTH_RADIUS_M / (outer * DEGREE).cos() / DEGREE;
        Area {
            west: middle.longitude - aside,
            east: middle.longitude + aside,
            south: middle.latitude - up,
            north: middle.latitude + up,
        }
    }

    /// The cells that have all of it: the one of the middle and those around that are needed, each once.
    pub(super) fn cells(self, middle: Point) -> Vec<Cell> {
        let (half_width, half_height) = self.half_sizes();
        let reach = match self {
            Shape::Circle { radius_m } => radius_m,
            Shape::Box { .. } => (half_width * half_width + half_height * half_height).sqrt(),
        };
        let wanted = self.area(middle);
        let mut steps = steps_for(reach, middle.latitude);
        if steps > 1 && !is_covered(Cell::of(middle, steps), middle, reach, &wanted) {
            steps -= 1;
        }
        let cell = Cell::of(middle, steps);
        let area = cell.area();
        let is_needed = |east: i32, north: i32| {
            steps < 2
                || !(north < 0 && area.south < wanted.south
                    || north > 0 && area.north > wanted.north
                    || east < 0 && area.west < wanted.west
                    || east > 0 && area.east > wanted.east)
        };
        let around = [
            (0, 0),
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        let mut cells = Vec::with_capacity(around.len());
        for (east, north) in around {
            let cell = cell.neighbor(east, north);
            // A large one is its own neighbor.
            if is_needed(east, north) && !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }
}

/// Steps at which a cell and those around it have what is within so many meters, in most cases.
fn steps_for(mut reach_m: f64, latitude: f64) -> u32 {
    if reach_m == 0.0 {
        return STEPS;
    }
    let mut steps: i32 = 1;
    while reach_m < MERCATOR_MAX_M {
        reach_m *= 2.0;
        steps += 1;
    }
    steps -= 2;
    if latitude.abs() > 66.0 {
        steps -= 1;
        if latitude.abs() > 80.0 {
            steps -= 1;
        }
    }
    steps.clamp(1, STEPS as i32) as u32
}

/// Whether a cell and those around it reach as far as is wanted.
fn is_covered(cell: Cell, middle: Point, reach_m: f64, wanted: &Area) -> bool {
    let north = cell.neighbor(0, 1).area().north;
    let south = cell.neighbor(0, -1).area().south;
    let east = cell.neighbor(1, 0).area().east;
    let west = cell.neighbor(-1, 0).area().west;
    let to = |longitude, latitude| {
        let place = Point {
            longitude,
            latitude,
        };
        middle.distance_m(place) >= reach_m
    };
    north >= wanted.north
        && south <= wanted.south
        && east >= wanted.east
        && west <= wanted.west
        && to(middle.longitude, north)
        && to(middle.longitude, south)
        && to(east, middle.latitude)
        && to(west, middle.latitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_from_their_scores() {
        let place = Point {
            longitude: 13.361389,
            latitude: 38.115556,
        };
        assert_eq!(place.score(), 3_479_099_956_230_698.0);
        let again = Point::of_score(place.score());
        assert!(again.distance_m(place) < 1.0);
        assert_eq!(&again.geohash(), b"sqc8b49rny0");
        assert_eq!(gather(spread(0x0123_4567)), 0x0123_4567);
    }
}
