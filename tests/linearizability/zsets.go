// What commands of sorted sets do to the model. Members have the names that those of sets have.

package main

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
)

// scores are what a sorted set has. It is a value that can be compared.
type scores struct {
	score [maxFields]int64
	// Bit n is set if member n is there.
	there uint8
}

func (z scores) has(member int) bool { return z.there>>member&1 == 1 }

func (z *scores) put(member int, score int64) {
	z.score[member] = score
	z.there |= 1 << member
}

func (z *scores) remove(member int) {
	z.score[member] = 0
	z.there &^= 1 << member
}

// ranked are the members in their order.
func (z scores) ranked() []int {
	var members []int
	for member := range maxFields {
		if z.has(member) {
			members = append(members, member)
		}
	}
	slices.SortFunc(members, func(one, other int) int {
		return cmp.Or(cmp.Compare(z.score[one], z.score[other]), cmp.Compare(memberName(one), memberName(other)))
	})
	return members
}

// reply has members and their scores in turn.
func (z scores) reply(members []int) string {
	var replies []string
	for _, member := range members {
		replies = append(replies, memberName(member), strconv.FormatInt(z.score[member], 10))
	}
	return array(replies)
}

func (s State) isSorted(key int) bool { return s.zsets[key].there != 0 }

// setSorted gives a key these members, or removes it if there are none.
func (s *State) setSorted(key int, members scores) {
	if members.there == 0 {
		s.remove(key)
		return
	}
	s.put(key, 0)
	s.zsets[key] = members
}

// sortedWords are the arguments of a request about sorted sets, for keys of these names.
func (op Op) sortedWords(keys []string) []string {
	words := []string{keys[op.keys[0]]}
	if op.kind == zunionstore || op.kind == zinterstore {
		words = append(words, strconv.Itoa(len(op.keys)-1))
		for _, key := range op.keys[1:] {
			words = append(words, keys[key])
		}
	}
	for at, member := range op.fields {
		if at < len(op.values) {
			words = append(words, strconv.FormatInt(op.values[at], 10))
		}
		words = append(words, memberName(member))
	}
	if op.kind == zrange {
		words = append(words, "0", "-1", "WITHSCORES")
	}
	return words
}

// scored are the members of a key for an operation that takes sets as well, where each has the score 1; false if it has neither.
func (s State) scored(key int) (scores, bool) {
	if s.isSet(key) {
		var found scores
		for member := range maxFields {
			if s.sets[key]>>member&1 == 1 {
				found.put(member, 1)
			}
		}
		return found, true
	}
	return s.zsets[key], !s.has(key) || s.isSorted(key)
}

// stored is what ZUNIONSTORE and ZINTERSTORE make of these keys; false if one of them is of another type.
func (s State) stored(kind Kind, keys []int) (scores, bool) {
	var result scores
	for at, key := range keys {
		own, fits := s.scored(key)
		if !fits {
			return result, false
		}
		if at == 0 {
			result = own
			continue
		}
		for member := range maxFields {
			switch {
			case own.has(member) && (result.has(member) || kind == zunionstore):
				result.put(member, result.score[member]+own.score[member])
			case kind == zinterstore:
				result.remove(member)
			}
		}
	}
	return result, true
}

// ofSorted does one operation on sorted sets and returns the state behind it and the reply.
func (s State) ofSorted(key int, op Op) (State, string) {
	if op.kind == zunionstore || op.kind == zinterstore {
		found, fits := s.stored(op.kind, op.keys[1:])
		if !fits {
			return s, wrongType
		}
		s.setSorted(key, found)
		return s, integer(bits.OnesCount8(found.there))
	}
	if s.has(key) && !s.isSorted(key) {
		return s, wrongType
	}
	before := s.zsets[key]
	after, count := before, 0
	reply := ""
	switch op.kind {
	case zadd:
		for at, member := range op.fields {
			if !after.has(member) {
				count++
			}
			after.put(member, op.values[at])
		}
	case zincr:
		member := op.fields[0]
		after.put(member, after.score[member]+op.values[0])
		reply = strconv.FormatInt(after.score[member], 10)
	case zrem:
		for _, member := range op.fields {
			if after.has(member) {
				count++
				after.remove(member)
			}
		}
	case zpopmin, zpopmax:
		members := before.ranked()
		if op.kind == zpopmax {
			slices.Reverse(members)
		}
		members = members[:min(1, len(members))]
		reply = before.reply(members)
		for _, member := range members {
			after.remove(member)
		}
	case zscore:
		if reply = "nil"; before.has(op.fields[0]) {
			reply = strconv.FormatInt(before.score[op.fields[0]], 10)
		}
	case zrange:
		reply = before.reply(before.ranked())
	case zcard:
		count = bits.OnesCount8(before.there)
	}
	if after != before {
		s.setSorted(key, after)
	}
	if reply == "" {
		reply = integer(count)
	}
	return s, reply
}

// anyOfSorted is an operation on sorted sets, or one that makes others of keys that are sorted sets.
func (c *actor) anyOfSorted() Op {
	one := c.some(1, 1)
	some := func(least, most int) []int {
		return c.random.Perm(maxFields)[:least+c.random.IntN(most-least+1)]
	}
	numbers := func(count int) []int64 {
		values := make([]int64, count)
		for at := range values {
			values[at] = 1 + c.random.Int64N(20)
		}
		return values
	}
	switch n := c.random.IntN(100); {
	case n < 24:
		fields := some(1, maxFields)
		return Op{kind: zadd, keys: one, fields: fields, values: numbers(len(fields))}
	case n < 34:
		return Op{kind: zincr, keys: one, fields: some(1, 1), values: numbers(1)}
	case n < 42:
		return Op{kind: zrem, keys: one, fields: some(1, 3)}
	case n < 54:
		return Op{kind: zpopmin + Kind(n%2), keys: one}
	case n < 60:
		return Op{kind: zscore, keys: one, fields: some(1, 1)}
	case n < 72:
		return Op{kind: zrange, keys: one}
	case n < 76:
		return Op{kind: zcard, keys: one}
	case n < 90:
		return Op{kind: zunionstore + Kind(n%2), keys: c.some(2, 4)}
	case n < 93:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 97:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	}
	return Op{kind: del, keys: c.some(1, 2)}
}
