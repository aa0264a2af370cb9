// What commands of streams with a consumer group do to the model. All IDs have the same first part: the server counts the
// second with `1-*`, so that the model knows which ID comes next.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The name of the only group of a stream, and how many consumers it has at most.
const (
	groupName    = "g"
	maxConsumers = 3
)

const (
	noGroup    = "-NOGROUP"
	tooSmall   = "-ERR The ID specified in XADD is equal or smaller than the target stream top item"
	groupThere = "-BUSYGROUP Consumer Group name already exists"
	noStream   = "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the " +
		"MKSTREAM option to create an empty stream automatically."
)

// counted is the ID of an XADD that leaves it to the server.
const counted = -1

// entry is one of a stream, or one that is pending. Its ID is `1-` and this number; its value is that of its only field, or
// the consumer that has it.
type entry struct {
	id    int
	value int64
}

// stream is what a key has. IDs of a new one begin with 0, so its last ID is -1.
type stream struct {
	last     int
	entries  []entry
	hasGroup bool
	// The last ID that was delivered to the group, and what its consumers have not acknowledged, in the order of IDs.
	read    int
	pending []entry
}

func packEntries(entries []entry) string {
	words := make([]string, len(entries))
	for at, one := range entries {
		words[at] = fmt.Sprintf("%d=%d", one.id, one.value)
	}
	return strings.Join(words, " ")
}

func unpackEntries(text string) []entry {
	var entries []entry
	for _, word := range strings.Fields(text) {
		id, value, _ := strings.Cut(word, "=")
		entries = append(entries, entry{number(id), int64(number(value))})
	}
	return entries
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

// pack makes a value that can be compared.
func (t stream) pack() string {
	text := fmt.Sprintf("%d;%s", t.last, packEntries(t.entries))
	if t.hasGroup {
		text += fmt.Sprintf(";%d;%s", t.read, packEntries(t.pending))
	}
	return text
}

func unpack(text string) stream {
	if text == "" {
		return stream{last: -1}
	}
	parts := strings.Split(text, ";")
	t := stream{last: number(parts[0]), entries: unpackEntries(parts[1])}
	if len(parts) == 4 {
		t.hasGroup, t.read, t.pending = true, number(parts[2]), unpackEntries(parts[3])
	}
	return t
}

// find is where an ID is, or would be.
func find(entries []entry, id int) (int, bool) {
	return slices.BinarySearchFunc(entries, id, func(one entry, id int) int { return one.id - id })
}

// without removes these IDs, and counts those that were there.
func without(entries []entry, ids []int) ([]entry, int) {
	var rest []entry
	for _, one := range entries {
		if !slices.Contains(ids, one.id) {
			rest = append(rest, one)
		}
	}
	return rest, len(entries) - len(rest)
}

func idName(id int) string { return "1-" + strconv.Itoa(id) }

func consumerName(consumer int) string { return "c" + strconv.Itoa(consumer) }

func entryReply(one entry) string {
	return array([]string{idName(one.id), array([]string{"f", strconv.FormatInt(one.value, 10)})})
}

func entriesReply(entries []entry) string {
	replies := make([]string, len(entries))
	for at, one := range entries {
		replies[at] = entryReply(one)
	}
	return array(replies)
}

func (s State) isStream(key int) bool { return s.streams[key] != "" }

// setStream gives a key this stream. A change of the group alone is none to WATCH.
func (s *State) setStream(key int, changed stream, isGroupAlone bool) {
	text := changed.pack()
	if s.streams[key] == text {
		return
	}
	if !isGroupAlone {
		s.put(key, 0)
	}
	s.streams[key] = text
}

// streamWords are the words of a request about a stream.
func (op Op) streamWords(keys []string) []string {
	key := keys[op.keys[0]]
	var ids []string
	for _, id := range op.ids {
		if id == counted {
			ids = append(ids, "1-*")
		} else {
			ids = append(ids, idName(id))
		}
	}
	switch op.kind {
	case xadd:
		return []string{"XADD", key, ids[0], "f", strconv.FormatInt(op.values[0], 10)}
	case xlen:
		return []string{"XLEN", key}
	case xrange:
		return []string{"XRANGE", key, "-", "+"}
	case xdel:
		return append([]string{"XDEL", key}, ids...)
	case xgroupCreate:
		return []string{"XGROUP", "CREATE", key, groupName, []string{"0", "$"}[op.fields[0]], "MKSTREAM"}
	case xgroupDestroy:
		return []string{"XGROUP", "DESTROY", key, groupName}
	case xreadgroup:
		count := strconv.FormatInt(op.values[0], 10)
		return []string{"XREADGROUP", "GROUP", groupName, consumerName(op.fields[0]), "COUNT", count, "STREAMS", key, ">"}
	case xack:
		return append([]string{"XACK", key, groupName}, ids...)
	case xclaim:
		return append(append([]string{"XCLAIM", key, groupName, consumerName(op.fields[0]), "0"}, ids...), "JUSTID")
	}
	return []string{"XPENDING", key, groupName}
}

// withoutKey is a reply without the name of the key in it, which the model does not know.
func withoutKey(kind Kind, reply string) string {
	if strings.HasPrefix(reply, noGroup) {
		return noGroup
	}
	if _, rest, found := strings.Cut(reply, " "); found && kind == xreadgroup && strings.HasPrefix(reply, "[[") {
		return "[[" + rest
	}
	return reply
}

// ofStream does one operation on a stream and returns the state behind it and the reply.
func (s State) ofStream(key int, op Op) (State, string) {
	if s.has(key) && !s.isStream(key) {
		return s, wrongType
	}
	t := unpack(s.streams[key])
	switch op.kind {
	case xadd:
		id := op.ids[0]
		if id == counted {
			id = t.last + 1
		} else if id <= t.last {
			return s, tooSmall
		}
		t.last = id
		t.entries = append(t.entries, entry{id, op.values[0]})
		s.setStream(key, t, false)
		return s, idName(id)
	case xlen:
		return s, integer(len(t.entries))
	case xrange:
		return s, entriesReply(t.entries)
	case xdel:
		rest, count := without(t.entries, op.ids)
		if count > 0 {
			t.entries = rest
			s.setStream(key, t, false)
		}
		return s, integer(count)
	case xgroupDestroy:
		if !s.has(key) {
			return s, noStream
		}
		if !t.hasGroup {
			return s, ":0"
		}
		t.hasGroup = false
		s.setStream(key, t, true)
		return s, ":1"
	case xgroupCreate:
		if t.hasGroup {
			return s, groupThere
		}
		t.hasGroup, t.read, t.pending = true, -1, nil
		if op.fields[0] == 1 {
			t.read = t.last
		}
		s.setStream(key, t, s.has(key))
		return s, "+OK"
	case xack:
		if !t.hasGroup {
			return s, ":0"
		}
	}
	if !t.hasGroup {
		return s, noGroup
	}
	return s.ofGroup(key, t, op)
}

// ofGroup does an operation on the group of a stream, which is there.
func (s State) ofGroup(key int, t stream, op Op) (State, string) {
	reply := ""
	switch op.kind {
	case xreadgroup:
		at, _ := find(t.entries, t.read+1)
		given := t.entries[at:]
		given = given[:min(len(given), int(op.values[0]))]
		if len(given) == 0 {
			return s, "nil"
		}
		for _, one := range given {
			t.read = one.id
			t.give(one.id, op.fields[0])
		}
		reply = "[[" + entriesReply(given) + "]]"
	case xack:
		var count int
		t.pending, count = without(t.pending, op.ids)
		reply = integer(count)
	case xclaim:
		var names []string
		for _, id := range op.ids {
			if _, isPending := find(t.pending, id); !isPending {
				continue
			}
			if _, isThere := find(t.entries, id); !isThere {
				// An entry that was deleted is pending no more.
				t.pending, _ = without(t.pending, []int{id})
				continue
			}
			t.give(id, op.fields[0])
			names = append(names, idName(id))
		}
		reply = array(names)
	case xpending:
		return s, t.summary()
	}
	s.setStream(key, t, true)
	return s, reply
}

// give makes an entry pending, with a consumer.
func (t *stream) give(id, consumer int) {
	at, isPending := find(t.pending, id)
	if !isPending {
		t.pending = slices.Insert(t.pending, at, entry{id: id})
	}
	t.pending[at].value = int64(consumer)
}

// summary is what XPENDING says.
func (t stream) summary() string {
	if len(t.pending) == 0 {
		return "[:0 nil nil nil]"
	}
	var counts [maxConsumers]int
	for _, one := range t.pending {
		counts[one.value]++
	}
	var consumers []string
	for consumer, count := range counts {
		if count > 0 {
			consumers = append(consumers, array([]string{consumerName(consumer), strconv.Itoa(count)}))
		}
	}
	last := t.pending[len(t.pending)-1].id
	return array([]string{integer(len(t.pending)), idName(t.pending[0].id), idName(last), array(consumers)})
}

var idInReply = regexp.MustCompile(`\b1-(\d+)\b`)

// noteStream keeps the IDs that a client was told of last, for those that it will name.
func (c *actor) noteStream(reply string) {
	for _, found := range idInReply.FindAllStringSubmatch(reply, -1) {
		c.told = append(c.told, number(found[1]))
	}
	c.told = c.told[max(0, len(c.told)-maxFields):]
}

// ids are some different ones that the client was told of, or others near them.
func (c *actor) ids() []int {
	var ids []int
	for range 1 + c.random.IntN(3) {
		id := c.random.IntN(2 * maxFields)
		if len(c.told) > 0 && c.random.IntN(4) > 0 {
			id = c.told[c.random.IntN(len(c.told))]
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// anyOfStream is an operation on a stream, or one that makes others of keys that are streams.
func (c *actor) anyOfStream() Op {
	one := c.some(1, 1)
	consumer := []int{c.number % maxConsumers}
	switch n := c.random.IntN(100); {
	case n < 22:
		id := counted
		if len(c.told) > 0 && c.random.IntN(4) == 0 {
			id = c.told[len(c.told)-1] + c.random.IntN(3)
		}
		return Op{kind: xadd, keys: one, values: c.fresh(1), ids: []int{id}}
	case n < 42:
		return Op{kind: xreadgroup, keys: one, fields: consumer, values: []int64{1 + c.random.Int64N(3)}}
	case n < 55:
		return Op{kind: xack, keys: one, ids: c.ids()}
	case n < 62:
		return Op{kind: xpending, keys: one}
	case n < 69:
		return Op{kind: xrange, keys: one}
	case n < 72:
		return Op{kind: xlen, keys: one}
	case n < 78:
		return Op{kind: xdel, keys: one, ids: c.ids()}
	case n < 84:
		return Op{kind: xclaim, keys: one, fields: consumer, ids: c.ids()}
	case n < 93:
		return Op{kind: xgroupCreate, keys: one, fields: []int{c.random.IntN(2)}}
	case n < 95:
		return Op{kind: xgroupDestroy, keys: one}
	case n < 97:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 99:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	}
	return Op{kind: del, keys: c.some(1, 2)}
}
