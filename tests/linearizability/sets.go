// What commands of sets do to the model.

package main

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// memberName is an integer for every second member. Others are long enough that a few are a tree where the server makes trees
// of sets of 64 bytes.
func memberName(member int) string {
	if member%2 == 0 {
		return strconv.Itoa(1000 * member)
	}
	return "a-member-with-a-longer-name:" + strconv.Itoa(member)
}

func (s State) isSet(key int) bool { return s.sets[key] != 0 }

// setSet gives a key these members, or removes it if there are none.
func (s *State) setSet(key int, members uint8) {
	if members == 0 {
		s.remove(key)
		return
	}
	s.put(key, 0)
	s.sets[key] = members
}

// mask has a bit for each of these members.
func mask(members []int) uint8 {
	found := uint8(0)
	for _, member := range members {
		found |= 1 << member
	}
	return found
}

// sorted is the reply with these members, in the order of `inAnyOrder`.
func sorted(members uint8) string {
	var replies []string
	for member := range maxFields {
		if members>>member&1 == 1 {
			replies = append(replies, memberName(member))
		}
	}
	slices.Sort(replies)
	return array(replies)
}

// inAnyOrder sorts the members in a reply.
func inAnyOrder(reply string) string {
	if reply[0] != '[' {
		return reply
	}
	words := strings.Fields(strings.Trim(reply, "[]"))
	slices.Sort(words)
	return array(words)
}

// combined is what an operation makes of the sets of these keys; false if one of them is no set.
func (s State) combined(kind Kind, keys []int) (uint8, bool) {
	result := s.sets[keys[0]]
	for _, key := range keys {
		if s.has(key) && !s.isSet(key) {
			return 0, false
		}
		switch kind {
		case sinter, sinterstore:
			result &= s.sets[key]
		case sunion, sunionstore:
			result |= s.sets[key]
		}
	}
	if kind == sdiff || kind == sdiffstore {
		for _, key := range keys[1:] {
			result &^= s.sets[key]
		}
	}
	return result, true
}

// ofSet does one operation on sets and returns the state behind it and the reply.
func (s State) ofSet(key int, op Op) (State, string) {
	switch op.kind {
	case sinter, sunion, sdiff:
		if found, fits := s.combined(op.kind, op.keys); fits {
			return s, sorted(found)
		}
		return s, wrongType
	case sinterstore, sunionstore, sdiffstore:
		found, fits := s.combined(op.kind, op.keys[1:])
		if !fits {
			return s, wrongType
		}
		s.setSet(key, found)
		return s, integer(bits.OnesCount8(found))
	}
	if s.has(key) && !s.isSet(key) {
		return s, wrongType
	}
	before, named := s.sets[key], mask(op.fields)
	count := 0
	switch op.kind {
	case sadd:
		if count = bits.OnesCount8(named &^ before); count > 0 {
			s.setSet(key, before|named)
		}
	case srem:
		if count = bits.OnesCount8(named & before); count > 0 {
			s.setSet(key, before&^named)
		}
	case scard:
		count = bits.OnesCount8(before)
	case sismember:
		count = bits.OnesCount8(named & before)
	case smembers:
		return s, sorted(before)
	case smove:
		return s.moveMember(key, op.keys[1], named)
	}
	return s, integer(count)
}

// moveMember is SMOVE from a key that has a set, or nothing.
func (s State) moveMember(from, to int, member uint8) (State, string) {
	if !s.has(from) {
		return s, ":0"
	}
	if s.has(to) && !s.isSet(to) {
		return s, wrongType
	}
	if s.sets[from]&member == 0 {
		return s, ":0"
	}
	if from != to {
		before := s.sets[to]
		s.setSet(from, s.sets[from]&^member)
		// Those who watch the other key are not told of a member that was there, as in Redis.
		if before&member == 0 {
			s.setSet(to, before|member)
		}
	}
	return s, ":1"
}

// anyOfSet is an operation on sets, or one that makes others of keys that are sets.
func (c *actor) anyOfSet() Op {
	one := c.some(1, 1)
	some := func(least, most int) []int {
		return c.random.Perm(maxFields)[:least+c.random.IntN(most-least+1)]
	}
	switch n := c.random.IntN(100); {
	case n < 26:
		return Op{kind: sadd, keys: one, fields: some(1, maxFields)}
	case n < 38:
		return Op{kind: srem, keys: one, fields: some(1, 3)}
	case n < 46:
		return Op{kind: sismember, keys: one, fields: some(1, 1)}
	case n < 56:
		return Op{kind: smembers, keys: one}
	case n < 60:
		return Op{kind: scard, keys: one}
	case n < 66:
		return Op{kind: smove, keys: c.some(2, 2), fields: some(1, 1)}
	case n < 76:
		return Op{kind: []Kind{sinter, sunion, sdiff}[n%3], keys: c.some(2, 3)}
	case n < 90:
		return Op{kind: []Kind{sinterstore, sunionstore, sdiffstore}[n%3], keys: c.some(2, 4)}
	case n < 93:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 97:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	}
	return Op{kind: del, keys: c.some(1, 2)}
}
