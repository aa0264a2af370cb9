// What clients do, at random from a seed, and the history of it.

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// plan says how large a history is.
type plan struct {
	clients, operations, keys int
	// How often the server is killed and started again meanwhile.
	crashes int
	// Whether values are in the log alone whenever a command begins.
	cold bool
	// Whether most keys are hashes.
	hashes bool
	// Whether most keys are sets, lists, sorted sets or streams.
	sets, lists, zsets, streams bool
	// The kind of scripts that many requests run, unless it is empty; see scriptKinds.
	scripts string
}

// run is one history in the making.
type run struct {
	plan
	server *server
	names  []string
	began  time.Time
	// Operations done so far, by all clients: crashes happen at certain counts.
	done atomic.Int64

	lock    sync.Mutex
	history []porcupine.Operation
	// A server that was killed is back when this is closed, and was gone at `gone`.
	back   chan struct{}
	gone   int64
	failed error
}

func (r *run) now() int64 { return time.Since(r.began).Nanoseconds() }

func (r *run) record(op Op, call int64, reply string, end int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: op.client, Input: op, Call: call, Output: reply, Return: end})
}

func (r *run) fail(err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// makeHistory lets clients loose on the server, and returns what they did and saw.
func makeHistory(s *server, p plan, number int, seed uint64) ([]porcupine.Operation, error) {
	r := &run{plan: p, server: s, began: time.Now(), back: make(chan struct{})}
	for key := range p.keys {
		r.names = append(r.names, fmt.Sprintf("%d:%d", number, key))
	}
	admin, err := dial(s.address)
	if err != nil {
		return nil, err
	}
	if reply, err := admin.ask("FLUSHALL"); err != nil || reply != "+OK" {
		return nil, fmt.Errorf("FLUSHALL: %s %w", reply, err)
	}
	admin.socket.Close()

	var clients sync.WaitGroup
	begin := make(chan struct{})
	for client := range p.clients {
		clients.Go(func() {
			one := &actor{run: r, number: client, random: rand.New(rand.NewPCG(seed, uint64(client))),
				seen: make(map[int]int64)}
			one.work(begin)
		})
	}
	close(begin)
	r.killNowAndThen(rand.New(rand.NewPCG(seed, 1<<32)))
	clients.Wait()
	if r.failed == nil {
		last := &actor{run: r, number: 0, seen: make(map[int]int64)}
		if last.connect() {
			ops := []Op{{kind: mget, keys: all(p.keys)}}
			for key := range p.keys {
				if p.hashes {
					ops = append(ops, Op{kind: hgetall, keys: []int{key}})
				}
				if p.sets {
					ops = append(ops, Op{kind: smembers, keys: []int{key}})
				}
				if p.lists {
					ops = append(ops, Op{kind: lrange, keys: []int{key}})
				}
				if p.zsets {
					ops = append(ops, Op{kind: zrange, keys: []int{key}})
				}
				if p.streams {
					ops = append(ops, Op{kind: xrange, keys: []int{key}}, Op{kind: xpending, keys: []int{key}})
				}
			}
			last.do(ops)
			last.connection.socket.Close()
		}
	}
	return r.history, r.failed
}

func all(count int) []int {
	keys := make([]int, count)
	for at := range keys {
		keys[at] = at
	}
	return keys
}

// killNowAndThen kills the server and starts it again, as often as the plan says.
func (r *run) killNowAndThen(random *rand.Rand) {
	total := int64(r.clients * r.operations)
	for crashed := range r.crashes {
		// Somewhere in its part of the history, but not in its last moments.
		part := total / int64(r.crashes)
		at := part*int64(crashed) + part/10 + random.Int64N(part/2)
		for r.done.Load() < at {
			time.Sleep(100 * time.Microsecond)
		}
		r.server.kill()
		gone := r.now()
		r.record(Op{kind: crash}, gone+1, "", gone+2)
		err := r.server.start()
		r.lock.Lock()
		r.gone = gone
		back := r.back
		r.back = make(chan struct{})
		r.lock.Unlock()
		if err != nil {
			r.fail(err)
		}
		close(back)
		if err != nil {
			return
		}
	}
}

// actor is one client at work.
type actor struct {
	*run
	number     int
	random     *rand.Rand
	connection *connection
	serial     int64
	// What it was told last of each key.
	seen map[int]int64
	// IDs of entries that it was told of last.
	told []int
	// What comes back when the connection it has is cut.
	back chan struct{}
}

func (c *actor) connect() bool {
	c.lock.Lock()
	c.back = c.run.back
	c.lock.Unlock()
	var err error
	if c.connection, err = dial(c.server.address); err != nil {
		if c.crashes == 0 {
			c.fail(err)
			return false
		}
		return c.wait()
	}
	return true
}

// wait waits until the server is back after a kill, and connects again.
func (c *actor) wait() bool {
	select {
	case <-c.back:
	// A server that does not start is to be reported as that.
	case <-time.After(2 * patience):
		c.fail(fmt.Errorf("client %d was cut off, but the server was not killed", c.number))
	}
	c.lock.Lock()
	failed := c.failed
	c.lock.Unlock()
	return failed == nil && c.connect()
}

func (c *actor) work(begin chan struct{}) {
	if !c.connect() {
		return
	}
	defer func() { c.connection.socket.Close() }()
	<-begin
	for left := c.operations; left > 0; {
		group := c.choose()
		left -= len(group)
		c.done.Add(int64(len(group)))
		if !c.do(group) {
			return
		}
	}
}

// do sends requests in one piece, and records what came back. Returns false if the client cannot go on.
func (c *actor) do(group []Op) bool {
	for _, op := range group {
		if op.kind != exec {
			c.connection.add(op.words(c.names)...)
			continue
		}
		c.connection.add("MULTI")
		for _, inner := range op.body {
			c.connection.add(inner.words(c.names)...)
		}
		c.connection.add("EXEC")
	}
	call := c.now()
	err := c.connection.flush()
	for at, op := range group {
		var reply string
		if err == nil {
			reply, err = c.reply(op)
		}
		if err != nil {
			return c.cutOff(group[at:], call, err)
		}
		op.client = c.number
		c.record(op, call, reply, c.now())
		c.note(op, reply)
	}
	return true
}

// reply reads what answers an operation: of a transaction, what EXEC says.
func (c *actor) reply(op Op) (string, error) {
	if op.kind == exec {
		for at := range len(op.body) + 1 {
			reply, err := c.connection.read()
			if err != nil {
				return "", err
			}
			if (at == 0 && reply != "+OK") || (at > 0 && reply != "+QUEUED") {
				return "not queued: " + reply, nil
			}
		}
	}
	switch {
	case op.times > 1:
		return c.connection.readRepeated(len(op.keys))
	case op.kind == exec:
		replies, reply, err := c.connection.readItems()
		if err != nil || replies == nil {
			return reply, err
		}
		for at, inner := range op.body {
			if at < len(replies) {
				replies[at] = ordered(inner.kind, replies[at])
			}
		}
		return array(replies), nil
	}
	reply, err := c.connection.read()
	if err == nil {
		reply = ordered(op.kind, reply)
	}
	return reply, err
}

// ordered is a reply whose items come in any order, in that of the model.
func ordered(kind Kind, reply string) string {
	switch kind {
	case hgetall:
		return inOrder(reply)
	case smembers, sinter, sunion, sdiff:
		return inAnyOrder(reply)
	case xreadgroup, xpending, xclaim:
		return withoutKey(kind, reply)
	}
	return reply
}

// cutOff records operations that got no reply: up to the moment when the server was gone they were done, or never.
func (c *actor) cutOff(group []Op, call int64, err error) bool {
	c.connection.socket.Close()
	if c.crashes == 0 {
		c.fail(fmt.Errorf("client %d: %w", c.number, err))
		return false
	}
	if !c.wait() {
		return false
	}
	c.lock.Lock()
	gone := c.gone
	c.lock.Unlock()
	for _, op := range group {
		// Nobody can tell whether something was read or watched.
		if op.writes() && op.kind != watch && op.kind != unwatch && call < gone {
			op.client = c.number
			c.record(op, call, unknown, gone)
		}
	}
	return true
}

// choose decides what comes next: one operation, or what begins with WATCH.
func (c *actor) choose() []Op {
	if c.scripts != "" && c.random.IntN(8) == 0 {
		return c.compared()
	}
	switch c.random.IntN(20) {
	case 0, 1:
		return c.watched()
	case 2, 3, 4, 5:
		return []Op{c.transaction()}
	}
	return []Op{c.any()}
}

// watched begins a transaction that depends on keys, as a careful client does, and leaves its EXEC for the end.
func (c *actor) watched() []Op {
	keys := c.some(1, 2)
	steps := [][]Op{{{kind: watch, keys: keys}}, {{kind: mget, keys: keys}}}
	for _, step := range steps {
		if !c.do(step) {
			return nil
		}
	}
	if c.random.IntN(8) == 0 {
		return []Op{{kind: unwatch}}
	}
	return []Op{c.transaction()}
}

func (c *actor) transaction() Op {
	op := Op{kind: exec}
	for range 1 + c.random.IntN(5) {
		inner := c.any()
		// Here everything is read under one lock.
		inner.times = 1
		op.body = append(op.body, inner)
	}
	if c.random.IntN(16) == 0 {
		// This one has to be alone.
		op.body = append(op.body, Op{kind: dbsize})
	}
	return op
}

// any is an operation by itself.
func (c *actor) any() Op {
	if c.hashes && c.random.IntN(8) > 0 {
		return c.anyOfHash()
	}
	if c.sets && c.random.IntN(8) > 0 {
		return c.anyOfSet()
	}
	if c.lists && c.random.IntN(8) > 0 {
		return c.anyOfList()
	}
	if c.zsets && c.random.IntN(8) > 0 {
		return c.anyOfSorted()
	}
	if c.streams && c.random.IntN(8) > 0 {
		return c.anyOfStream()
	}
	if c.scripts != "" && c.random.IntN(8) > 2 {
		return c.anyScript()
	}
	one := c.some(1, 1)
	switch n := c.random.IntN(100); {
	case n < 14:
		return Op{kind: get, keys: one}
	case n < 26:
		return Op{kind: set, keys: one, values: c.fresh(1)}
	case n < 35:
		return Op{kind: incr, keys: one, values: []int64{1 + c.random.Int64N(3)}}
	case n < 47:
		return Op{kind: mget, keys: c.some(2, c.keys)}
	case n < 52:
		keys := c.some(2, c.keys)
		return Op{kind: mget, keys: keys, times: longest/len(keys) + 1}
	case n < 66:
		keys := c.some(2, c.keys)
		return Op{kind: mset, keys: keys, values: c.fresh(len(keys))}
	case n < 72:
		return Op{kind: del, keys: c.some(1, 3)}
	case n < 76:
		return Op{kind: exists, keys: c.some(2, 3)}
	case n < 83:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 86:
		return Op{kind: renamenx, keys: c.some(2, 2)}
	case n < 90:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	case n < 92:
		keys := c.some(2, 2)
		return Op{kind: msetnx, keys: keys, values: c.fresh(2)}
	case n < 94:
		return Op{kind: setnx, keys: one, values: c.fresh(1)}
	case n < 96:
		return Op{kind: getset, keys: one, values: c.fresh(1)}
	case n < 99:
		return Op{kind: getdel, keys: one}
	}
	return Op{kind: flushdb}
}

// anyOfHash is an operation on a hash, or one that makes others of keys that are hashes.
func (c *actor) anyOfHash() Op {
	one := c.some(1, 1)
	some := func(least, most int) []int {
		return c.random.Perm(maxFields)[:least+c.random.IntN(most-least+1)]
	}
	switch n := c.random.IntN(100); {
	case n < 28:
		fields := some(1, maxFields)
		return Op{kind: hset, keys: one, fields: fields, values: c.fresh(len(fields))}
	case n < 32:
		return Op{kind: hsetnx, keys: one, fields: some(1, 1), values: c.fresh(1)}
	case n < 44:
		return Op{kind: hget, keys: one, fields: some(1, 1)}
	case n < 50:
		return Op{kind: hmget, keys: one, fields: some(2, maxFields)}
	case n < 64:
		return Op{kind: hdel, keys: one, fields: some(1, 4)}
	case n < 74:
		return Op{kind: hincr, keys: one, fields: some(1, 1), values: []int64{1 + c.random.Int64N(3)}}
	case n < 84:
		return Op{kind: hgetall, keys: one}
	case n < 88:
		return Op{kind: hlen, keys: one}
	case n < 93:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 97:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	}
	return Op{kind: del, keys: c.some(1, 2)}
}

// some picks different keys.
func (c *actor) some(least, most int) []int {
	most = min(most, c.keys)
	return c.random.Perm(c.keys)[:least+c.random.IntN(most-least+1)]
}

// fresh makes values that nobody else writes.
func (c *actor) fresh(count int) []int64 {
	values := make([]int64, count)
	for at := range values {
		c.serial++
		values[at] = int64(c.number+1)*1_000_000_000 + c.serial*1000
	}
	return values
}

func describe(op porcupine.Operation) string {
	return fmt.Sprintf("%10d..%-10d client %-2s %v -> %v", op.Call, op.Return, strconv.Itoa(op.ClientId), op.Input, op.Output)
}
