//! Requests of SORT and SORT_RO, as far as their replies have an order.

use super::request::{Request, request};
use super::stream::Generator;

impl Generator {
    /// A request of one of the two.
    pub(crate) fn sort_request(&mut self) -> Request {
        let name = self.pick(&["SORT", "SORT", "SORT_RO"]);
        let kind = self.rng.u8(0..3);
        let key = match kind {
            0 => self.list_key(),
            1 => self.set_key(),
            _ => self.sorted_set_key(),
        };
        let mut sort = request(name).word(key);
        // Numbers are left to golden scripts: redis-server blames SORT for a mistake of an earlier command
        // (errno). What is looked up by members of a set comes in their order, which is any.
        let choice = self.rng.u8(0..10);
        match choice {
            0 if kind == 0 => {
                let by = self.pick(&["s*", "n*", "h*->f1", "*"]);
                sort = sort.word(self.cased("BY")).word(by);
                sort = sort.word(self.cased("ALPHA"));
            }
            1 | 2 if kind != 1 => sort = sort.word(self.cased("BY")).word("nosort"),
            _ => sort = sort.word(self.cased("ALPHA")),
        }
        if self.chance(30) {
            let order = self.pick(&["ASC", "DESC"]);
            sort = sort.word(self.cased(order));
        }
        if choice > 0 && self.chance(30) {
            let limit = sort.word(self.cased("LIMIT"));
            sort = limit.word(self.integer()).word(self.integer());
        }
        while self.chance(25) {
            let get = self.pick(&["#", "s*", "h*->f1", "nosuch", "*"]);
            sort = sort.word(self.cased("GET")).word(get);
        }
        if self.chance(15) {
            sort = sort.word(self.cased("STORE")).word(self.list_key());
        }
        sort
    }
}
