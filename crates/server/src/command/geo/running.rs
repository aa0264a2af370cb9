//! A search that runs: through the members of some ranks of a set, as it is at one moment. A large one runs
//! on a thread ([`super::super::combining`]). The members that it finds are bounded by the free memory.

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Scores;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::{score_of, scored};
use keyspace::{Bound, Detached, ItemsRef, Key, Kind};
use resp::reply::Writer;

use super::super::combining::{Combination, Made};
use super::super::items::cells::write_cell;
use super::members::{write_distance, write_place};
use super::place::{Point, Shape};
use super::polygon::Polygon;
use crate::config::Packed;
use crate::server::Server;
use crate::shared::memory::Growing;
use crate::store::{Shards, SortedSet, Still};

/// Of members that are found, at least so many are kept until they are put in order.
const KEPT_MEMBERS: usize = 1024;
/// Looking at so many corners of a polygon takes as long as looking at a member.
const CORNERS_A_STEP: u64 = 64;
/// Bytes of a fact about a member in a reply, at most.
const FACT_BYTES: usize = 64;

/// In which order members are returned.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Any,
    Ascending,
    Descending,
}

/// Which members are wanted, and which facts about them.
pub(super) struct Criteria {
    /// The part of the shape that is wanted, if there is a polygon.
    pub(super) polygon: Polygon,
    /// Meters of the unit.
    pub(super) unit_m: f64,
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_place: bool,
    pub(super) count: Option<u64>,
    /// Any that are found will do.
    pub(super) any: bool,
    pub(super) order: Order,
    pub(super) stores_distance: bool,
}

impl Default for Criteria {
    fn default() -> Criteria {
        Criteria {
            polygon: Polygon::default(),
            unit_m: 1.0,
            with_distance: false,
            with_hash: false,
            with_place: false,
            count: None,
            any: false,
            order: Order::Any,
            stores_distance: false,
        }
    }
}

impl Criteria {
    /// The nearest first, or the farthest.
    fn sort(&self, found: &mut [Hit<'_>]) {
        match self.order {
            Order::Any => {}
            Order::Ascending => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
            Order::Descending => {
                found.sort_by(|one, other| other.distance.total_cmp(&one.distance));
            }
        }
    }

    /// How many facts a reply has about a member, beside its name.
    fn facts(&self) -> usize {
        let facts = [self.with_distance, self.with_hash, self.with_place];
        facts.into_iter().filter(|&is_wanted| is_wanted).count()
    }

    /// Bytes of a member in a reply, at most.
    pub(super) fn bytes(&self, its: &Hit<'_>) -> usize {
        its.member.text_len() + FACT_BYTES * (1 + self.facts())
    }

    pub(super) fn write(&self, reply: &mut Writer<'_>, its: &Hit<'_>) {
        if self.facts() > 0 {
            reply.array(1 + self.facts());
        }
        write_cell(reply, its.member);
        if self.with_distance {
            write_distance(reply, its.distance);
        }
        if self.with_hash {
            reply.integer(its.score as i64);
        }
        if self.with_place {
            write_place(reply, Point::of_score(its.score));
        }
    }
}

/// A search that runs. A long one runs in the set as it is at one moment, so that nothing needs to be locked
/// meanwhile.
pub(super) struct Running {
    server: &'static Server,
    /// None: there is no such key, or it is locked.
    set: Option<Still>,
    /// Ranks of the members that are looked at: from each first one to before the other.
    ranks: Vec<(u64, u64)>,
    middle: Point,
    shape: Shape,
    pub(super) criteria: Criteria,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(Still::Tree(moment, _)) = self.set.take() {
            self.server.keyspace.discard(moment);
        }
    }
}

impl Running {
    /// A search in a set that is locked. `around` is known if the key is there.
    pub(super) fn new(
        server: &'static Server,
        around: Option<(Point, Shape)>,
        criteria: Criteria,
        set: Option<&SortedSet<'_, '_>>,
    ) -> Running {
        let nothing = (Point::default(), Shape::Circle { radius_m: 0.0 });
        let (middle, shape) = around.unwrap_or(nothing);
        let mut running = Running {
            server,
            set: None,
            ranks: Vec::new(),
            middle,
            shape,
            criteria,
        };
        if let Some(set) = set {
            let members = set.sorted();
            for cell in shape.cells(middle) {
                let (first, end) = cell.scores();
                let first = members.count_before(Bound::Score(first));
                let end = members.count_before(Bound::Score(end));
                running.ranks.push((first, end));
            }
        }
        running
    }

    /// Takes the moment of the set.
    pub(super) fn hold(&mut self, set: Option<SortedSet<'_, '_>>) {
        self.set = set.map(|mut set| set.still());
    }

    /// The members of the set at its moment, by rank.
    fn items(&self) -> Option<ItemsRef<'_, Scores>> {
        match self.set.as_ref()? {
            Still::Run(_, run) => Some(ItemsRef::of_run(run)),
            Still::Tree(moment, _) => Some(moment.items()),
            Still::String(_) => None,
        }
    }

    /// The members that are found, as many as are wanted, in the order that is; fewer if `growing` is
    /// refused.
    pub(super) fn run(&self, growing: &mut Growing<'_>) -> Vec<Hit<'_>> {
        let items = self.items();
        items.map_or(Vec::new(), |items| self.run_in(items, growing))
    }

    /// [`Running::run`] in a set that is locked.
    pub(super) fn run_in<'r>(
        &self,
        items: ItemsRef<'r, Scores>,
        growing: &mut Growing<'_>,
    ) -> Vec<Hit<'r>> {
        let criteria = &self.criteria;
        let count = criteria.count.map_or(usize::MAX, |count| count as usize);
        let most = if criteria.any { count } else { usize::MAX };
        // Where only the nearest ones are wanted, the others go now and then.
        let kept = count.max(KEPT_MEMBERS).saturating_mul(2);
        let (mut found, mut has_room) = (Vec::new(), true);
        for &(first, end) in &self.ranks {
            let mut rank = first;
            while rank < end && found.len() < most && has_room {
                let before = found.len();
                rank = items.items_behind(rank, end, |item| {
                    if found.len() < most {
                        found.extend(self.find(&item));
                    }
                });
                if found.len() >= kept {
                    criteria.sort(&mut found);
                    found.truncate(count);
                } else {
                    // Sorting takes as much again.
                    let bytes = (found.len() - before) * 2 * size_of::<Hit<'_>>();
                    has_room = growing.may_go_on(bytes);
                }
            }
        }
        criteria.sort(&mut found);
        found.truncate(count);
        found
    }

    /// A member, if it is where the search looks.
    fn find<'r>(&self, item: &Item<'r>) -> Option<Hit<'r>> {
        let score = score_of(item);
        let place = Point::of_score(score);
        if self.criteria.polygon.is_there() && !self.criteria.polygon.has(place) {
            return None;
        }
        let distance_m = self.shape.distance_m(self.middle, place)?;
        Some(Hit {
            member: item.name,
            score,
            distance: distance_m / self.criteria.unit_m,
        })
    }
}

impl Combination for Running {
    fn steps(&self) -> u64 {
        let members: u64 = self.ranks.iter().map(|&(first, end)| end - first).sum();
        members.saturating_mul(1 + self.criteria.polygon.corners() as u64 / CORNERS_A_STEP)
    }

    fn make(&self, target: &[u8], _: Option<(&mut Shards<'_>, &[Key<'_>])>) -> Made {
        let server = self.server;
        let mut growing = Growing::new(server);
        let found = self.run(&mut growing);
        let mut builder = server.keyspace.builder(Kind::SortedSet, target);
        for its in &found {
            if !growing.may_go_on(size_of::<f64>() + its.member.text_len()) {
                break;
            }
            let score = match self.criteria.stores_distance {
                true => its.distance,
                false => its.score,
            };
            let added = builder.push(&scored(its.member, score, &mut [0; 8]));
            debug_assert!(added.is_ok(), "each member comes once");
        }
        if let Some(bytes) = growing.refused() {
            return Made::refused(server, bytes);
        }
        let value = (!found.is_empty()).then(|| {
            let form = Packed::form_of(&server.settings, &builder);
            Detached::built(builder, form, None)
        });
        Made::new(server, found.len() as u64, value)
    }
}

/// A member that was found.
pub(super) struct Hit<'r> {
    member: Cell<'r>,
    score: f64,
    distance: f64,
}
