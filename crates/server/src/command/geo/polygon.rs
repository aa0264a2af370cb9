//! GEOSEARCH BYPOLYGON, as in Valkey: places inside of a polygon, whose edges are straight lines on a map of
//! longitudes and latitudes. Distances are from its middle, the mean of its corners on the globe.

use super::place::{EARTH_RADIUS_M, Point, Shape};

/// The corners of what is searched; none: it is no polygon.
#[derive(Default)]
pub(super) struct Polygon {
    corners: Vec<Point>,
}

impl Polygon {
    /// One of these corners.
    pub(super) fn of(corners: Vec<Point>) -> Polygon {
        Polygon { corners }
    }

    pub(super) fn is_there(&self) -> bool {
        !self.corners.is_empty()
    }

    /// How many corners it has.
    pub(super) fn corners(&self) -> usize {
        self.corners.len()
    }

    /// Its middle, and a box around that which it lies in.
    pub(super) fn surroundings(&self) -> (Point, Shape) {
        let middle = mean(&self.corners);
        let mut half_width = 0.0_f64;
        let mut half_height = 0.0_f64;
        let mut widest = f64::MAX;
        for corner in &self.corners {
            half_width = half_width.max((corner.longitude - middle.longitude).abs());
            half_height = half_height.max((corner.latitude - middle.latitude).abs());
            widest = widest.min(corner.latitude.abs());
        }
        let is_across = |south: fn(&Point) -> bool| self.corners.iter().any(south);
        if is_across(|corner| corner.latitude < 0.0) && is_across(|corner| corner.latitude > 0.0) {
            widest = 0.0;
        }
        let meters = |degrees: f64| degrees.to_radians() * EARTH_RADIUS_M;
        // A little more: sines and cosines are rounded.
        let width_m = 2.001 * meters(half_width) * widest.to_radians().cos();
        let height_m = 2.001 * meters(half_height);
        (middle, Shape::Box { width_m, height_m })
    }

    /// Whether a place is inside: a line from there to the east crosses its edges an odd number of times.
    pub(super) fn has(&self, place: Point) -> bool {
        let mut is_inside = false;
        let before = self.corners.iter().cycle().skip(self.corners.len() - 1);
        for (to, from) in self.corners.iter().zip(before) {
            let is_beside = (to.latitude > place.latitude) != (from.latitude > place.latitude);
            if !is_beside {
                continue;
            }
            let part = (place.latitude - to.latitude) / (from.latitude - to.latitude);
            let crossing = to.longitude + part * (from.longitude - to.longitude);
            is_inside ^= place.longitude < crossing;
        }
        is_inside
    }
}

/// The mean of places, as vectors from the middle of the earth.
fn mean(places: &[Point]) -> Point {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for place in places {
        let (longitude, latitude) = (place.longitude.to_radians(), place.latitude.to_radians());
        x += latitude.cos() * longitude.cos();
        y += latitude.cos() * longitude.sin();
        z += latitude.sin();
    }
    Point {
        longitude: y.atan2(x).to_degrees(),
        latitude: z.atan2(x.hypot(y)).to_degrees(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(corners: &[(f64, f64)]) -> Polygon {
        let corners = corners.iter().map(|&(longitude, latitude)| Point {
            longitude,
            latitude,
        });
        Polygon {
            corners: corners.collect(),
        }
    }

    /// A box by two ways.
    #[test]
    fn a_place_is_inside_of_a_box_if_it_is_between_its_edges() {
        let corners = [(10.0, 35.0), (20.0, 35.0), (20.0, 40.0), (10.0, 40.0)];
        let polygon = polygon(&corners);
        for longitude in 0..30 {
            for latitude in 30..45 {
                let place = Point {
                    longitude: f64::from(longitude) + 0.5,
                    latitude: f64::from(latitude) + 0.5,
                };
                let is_inside = (10..20).contains(&longitude) && (35..40).contains(&latitude);
                assert_eq!(polygon.has(place), is_inside, "{place:?}");
            }
        }
    }

    /// Nothing that is inside may be outside of the box, whose members are all that is looked at.
    #[test]
    fn the_box_has_all_that_is_inside() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let (west, south) = (random.f64() * 300.0 - 170.0, random.f64() * 120.0 - 70.0);
            let corners: Vec<(f64, f64)> = (0..random.usize(3..8))
                .map(|_| (west + random.f64() * 15.0, south + random.f64() * 15.0))
                .collect();
            let polygon = polygon(&corners);
            let (middle, shape) = polygon.surroundings();
            for _ in 0..200 {
                let place = Point {
                    longitude: west + random.f64() * 15.0,
                    latitude: south + random.f64() * 15.0,
                };
                if polygon.has(place) {
                    assert!(
                        shape.distance_m(middle, place).is_some(),
                        "{corners:?} {place:?}"
                    );
                }
            }
        }
    }
}
