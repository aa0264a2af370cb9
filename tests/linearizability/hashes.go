// What commands of hashes do to the model.

package main

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"

// fields are what a hash has. It is a value that can be compared.
type fields struct {
	value [maxFields]int64
	// Bit n is set if field n is there.
	there uint8
}

// fieldName is long enough that a few fields are a tree where the server makes trees of hashes of 64 bytes.
func fieldName(field int) string { return "a-field-with-a-longer-name:" + strconv.Itoa(field) }

func (f fields) read(field int) string {
	if f.there>>field&1 == 0 {
		return "nil"
	}
	return strconv.FormatInt(f.value[field], 10)
}

// put sets a field. Returns whether it is new.
func (f *fields) put(field int, value int64) bool {
	isNew := f.there>>field&1 == 0
	f.value[field] = value
	f.there |= 1 << field
	return isNew
}

func (f *fields) remove(field int) bool {
	was := f.there>>field&1 == 1
	f.value[field] = 0
	f.there &^= 1 << field
	return was
}

func (s State) isHash(key int) bool { return s.hashes[key].there != 0 }

// transfer gives a key what another has.
func (s *State) transfer(from, to int) {
	before := *s
	s.put(to, before.value[from])
	s.hashes[to] = before.hashes[from]
	s.sets[to] = before.sets[from]
	s.lists[to] = before.lists[from]
	s.zsets[to] = before.zsets[from]
	s.streams[to] = before.streams[from]
}

// setHash gives a key these fields, or removes it if there are none.
func (s *State) setHash(key int, hash fields) {
	if hash.there == 0 {
		s.remove(key)
		return
	}
	s.put(key, 0)
	s.hashes[key] = hash
}

// ofHash does one operation on a hash and returns the state behind it and the reply.
func (s State) ofHash(key int, op Op) (State, string) {
	if s.has(key) && !s.isHash(key) {
		return s, wrongType
	}
	hash := s.hashes[key]
	count := 0
	switch op.kind {
	case hset:
		for at, field := range op.fields {
			if hash.put(field, op.values[at]) {
				count++
			}
		}
		s.setHash(key, hash)
	case hsetnx:
		if hash.there>>op.fields[0]&1 == 0 {
			hash.put(op.fields[0], op.values[0])
			s.setHash(key, hash)
			count = 1
		}
	case hincr:
		hash.put(op.fields[0], hash.value[op.fields[0]]+op.values[0])
		s.setHash(key, hash)
		count = int(hash.value[op.fields[0]])
	case hdel:
		for _, field := range op.fields {
			if hash.remove(field) {
				count++
			}
		}
		if count > 0 {
			s.setHash(key, hash)
		}
	case hlen:
		count = bits.OnesCount8(hash.there)
	case hget:
		return s, hash.read(op.fields[0])
	case hmget:
		replies := make([]string, len(op.fields))
		for at, field := range op.fields {
			replies[at] = hash.read(field)
		}
		return s, array(replies)
	case hgetall:
		var replies []string
		for field := range maxFields {
			if hash.there>>field&1 == 1 {
				replies = append(replies, fieldName(field), hash.read(field))
			}
		}
		return s, array(replies)
	}
	return s, integer(count)
}

// inOrder puts the fields in the reply to HGETALL, which come in any order, into that of the model.
func inOrder(reply string) string {
	words := strings.Fields(strings.Trim(reply, "[]"))
	if reply[0] != '[' || len(words)%2 == 1 {
		return reply
	}
	pairs := slices.Collect(slices.Chunk(words, 2))
	slices.SortFunc(pairs, slices.Compare)
	return array(slices.Concat(pairs...))
}
