// What the server should do, one operation after the other: the specification that histories are checked against.

package main

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// The most keys and clients that a state has room for, and how many fields a hash may have.
const (
	maxKeys    = 8
	maxClients = 16
	maxFields  = 6
)

// State is everything the server knows: values, and who watches what. It is a value that can be compared.
type State struct {
	value [maxKeys]int64
	// Bit n is set if key n is there.
	there uint8
	// What keys that are hashes have, and which of the fields are there, as bits. A hash without fields is none.
	hashes [maxKeys]fields
	// The members of keys that are sets, as bits. A set without members is none.
	sets [maxKeys]uint8
	// The elements of keys that are lists, with blanks between. A list without elements is none.
	lists [maxKeys]string
	// What keys that are sorted sets have. A sorted set without members is none.
	zsets [maxKeys]scores
	// What keys that are streams have, packed; see stream. A stream without entries is one.
	streams [maxKeys]string
	// The keys that each client watches, as bits, and the clients of which one has changed.
	watched [maxClients]uint8
	dirty   uint16
}

// Kind is what an operation does.
type Kind int

const (
	get Kind = iota
	set
	setnx
	getset
	getdel
	incr
	mget
	mset
	msetnx
	del
	exists
	rename
	renamenx
	copyReplace
	dbsize
	flushdb
	watch
	unwatch
	exec
	hset
	hsetnx
	hget
	hmget
	hdel
	hincr
	hgetall
	hlen
	sadd
	srem
	scard
	sismember
	smembers
	smove
	sinter
	sunion
	sdiff
	sinterstore
	sunionstore
	sdiffstore
	lpush
	rpush
	lpop
	rpop
	llen
	lrange
	lmove
	zadd
	zincr
	zrem
	zpopmin
	zpopmax
	zscore
	zrange
	zcard
	zunionstore
	zinterstore
	xadd
	xlen
	xrange
	xdel
	xgroupCreate
	xgroupDestroy
	xreadgroup
	xack
	xclaim
	xpending
	eval
	// The server was killed and started again: nobody watches anything any more.
	crash
)

var names = [...]string{
	"GET", "SET", "SETNX", "GETSET", "GETDEL", "INCRBY", "MGET", "MSET", "MSETNX", "DEL", "EXISTS", "RENAME", "RENAMENX", "COPY",
	"DBSIZE", "FLUSHDB", "WATCH", "UNWATCH", "EXEC", "HSET", "HSETNX", "HGET", "HMGET", "HDEL", "HINCRBY", "HGETALL", "HLEN",
	"SADD", "SREM", "SCARD", "SISMEMBER", "SMEMBERS", "SMOVE", "SINTER", "SUNION", "SDIFF", "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE",
	"LPUSH", "RPUSH", "LPOP", "RPOP", "LLEN", "LRANGE", "LMOVE",
	"ZADD", "ZINCRBY", "ZREM", "ZPOPMIN", "ZPOPMAX", "ZSCORE", "ZRANGE", "ZCARD", "ZUNIONSTORE", "ZINTERSTORE",
	"XADD", "XLEN", "XRANGE", "XDEL", "XGROUP CREATE", "XGROUP DESTROY", "XREADGROUP", "XACK", "XCLAIM", "XPENDING",
	"EVAL", "(crash)",
}

// Op is one operation of one client.
type Op struct {
	kind   Kind
	client int
	// Numbers of keys, and the values for them, or for fields of the only key; members of a set are fields without values.
	keys   []int
	values []int64
	fields []int
	// IDs of entries of a stream.
	ids []int
	// The requests between MULTI and EXEC.
	body []Op
	// How often an MGET names its keys; more than once if it is to be so long that the server does not read them under one lock.
	times int
	// What an EVAL runs.
	call scriptCall
}

// longest is how many keys the server reads under one lock, and some more.
const longest = 2100

// unknown is the reply of an operation whose client was cut off: it was done, or not.
const unknown = "?"

// writes tells whether the operation may change anything.
func (op Op) writes() bool {
	switch op.kind {
	case get, mget, exists, dbsize, hget, hmget, hgetall, hlen, scard, sismember, smembers, sinter, sunion, sdiff, llen, lrange,
		zscore, zrange, zcard, xlen, xrange, xpending:
		return false
	case eval:
		return scripts[op.call.script].writes
	case exec:
		for _, inner := range op.body {
			if inner.writes() {
				return true
			}
		}
		return false
	}
	return true
}

// words are the arguments of the request, for keys of these names.
func (op Op) words(keys []string) []string {
	if op.kind == eval {
		return op.scriptWords(keys)
	}
	if xadd <= op.kind && op.kind <= xpending {
		return op.streamWords(keys)
	}
	words := []string{names[op.kind]}
	if zadd <= op.kind && op.kind <= zinterstore {
		return append(words, op.sortedWords(keys)...)
	}
	if lpush <= op.kind && op.kind <= lmove {
		for _, key := range op.keys {
			words = append(words, keys[key])
		}
		return append(words, op.listWords()...)
	}
	for at, key := range op.keys {
		words = append(words, keys[key])
		if at < len(op.values) && op.fields == nil {
			words = append(words, strconv.FormatInt(op.values[at], 10))
		}
	}
	for at, field := range op.fields {
		if op.kind >= sadd {
			words = append(words, memberName(field))
			continue
		}
		words = append(words, fieldName(field))
		if at < len(op.values) {
			words = append(words, strconv.FormatInt(op.values[at], 10))
		}
	}
	if op.kind == copyReplace {
		words = append(words, "REPLACE")
	}
	for range op.times - 1 {
		words = append(words, words[1:1+len(op.keys)]...)
	}
	return words
}

func (op Op) String() string {
	if op.kind == exec {
		var body []string
		for _, inner := range op.body {
			body = append(body, inner.String())
		}
		return "MULTI; " + strings.Join(body, "; ") + "; EXEC"
	}
	if op.kind == eval {
		return fmt.Sprint("EVAL ", op.call, " of keys ", op.keys, " with ", op.values)
	}
	short := make([]string, maxKeys)
	for at := range short {
		short[at] = "k" + strconv.Itoa(at)
	}
	words := strings.Join(Op{kind: op.kind, keys: op.keys, values: op.values, fields: op.fields, ids: op.ids}.words(short), " ")
	if op.times > 1 {
		return fmt.Sprintf("%s (its keys %d times)", words, op.times)
	}
	return words
}

func (s State) has(key int) bool { return s.there>>key&1 == 1 }

// touch notes a change of a key with those who watch it.
func (s *State) touch(key int) {
	for client, keys := range s.watched {
		if keys>>key&1 == 1 {
			s.dirty |= 1 << client
		}
	}
}

func (s *State) put(key int, value int64) {
	s.value[key] = value
	s.hashes[key] = fields{}
	s.sets[key] = 0
	s.lists[key] = ""
	s.zsets[key] = scores{}
	s.streams[key] = ""
	s.there |= 1 << key
	s.touch(key)
}

func (s *State) remove(key int) bool {
	if !s.has(key) {
		return false
	}
	s.value[key] = 0
	s.hashes[key] = fields{}
	s.sets[key] = 0
	s.lists[key] = ""
	s.zsets[key] = scores{}
	s.streams[key] = ""
	s.there &^= 1 << key
	s.touch(key)
	return true
}

// isCollection tells whether a key has no string.
func (s State) isCollection(key int) bool {
	return s.isHash(key) || s.isSet(key) || s.isList(key) || s.isSorted(key) || s.isStream(key)
}

// read is what MGET says of a key.
func (s State) read(key int) string {
	if !s.has(key) || s.isCollection(key) {
		return "nil"
	}
	return strconv.FormatInt(s.value[key], 10)
}

func (s *State) forget(client int) {
	s.watched[client] = 0
	s.dirty &^= 1 << client
}

func integer(n int) string { return ":" + strconv.Itoa(n) }

// apply does one operation and returns the state behind it and the reply.
func apply(s State, op Op) (State, string) {
	first := 0
	if len(op.keys) > 0 {
		first = op.keys[0]
	}
	switch op.kind {
	case get, getset, getdel, incr:
		if s.isCollection(first) {
			return s, wrongType
		}
	case lpush, rpush, lpop, rpop, llen, lrange, lmove:
		return s.ofList(first, op)
	case zadd, zincr, zrem, zpopmin, zpopmax, zscore, zrange, zcard, zunionstore, zinterstore:
		return s.ofSorted(first, op)
	case xadd, xlen, xrange, xdel, xgroupCreate, xgroupDestroy, xreadgroup, xack, xclaim, xpending:
		return s.ofStream(first, op)
	case sadd, srem, scard, sismember, smembers, smove, sinter, sunion, sdiff, sinterstore, sunionstore, sdiffstore:
		return s.ofSet(first, op)
	case hset, hsetnx, hget, hmget, hdel, hincr, hgetall, hlen:
		return s.ofHash(first, op)
	case eval:
		return s.ofScript(op)
	}
	switch op.kind {
	case get:
		return s, s.read(first)
	case set:
		s.put(first, op.values[0])
		return s, "+OK"
	case setnx:
		if s.has(first) {
			return s, ":0"
		}
		s.put(first, op.values[0])
		return s, ":1"
	case getset:
		old := s.read(first)
		s.put(first, op.values[0])
		return s, old
	case getdel:
		old := s.read(first)
		s.remove(first)
		return s, old
	case incr:
		s.put(first, s.value[first]+op.values[0])
		return s, integer(int(s.value[first]))
	case mget:
		replies := make([]string, len(op.keys))
		for at, key := range op.keys {
			replies[at] = s.read(key)
		}
		return s, array(replies)
	case msetnx:
		for _, key := range op.keys {
			if s.has(key) {
				return s, ":0"
			}
		}
		for at, key := range op.keys {
			s.put(key, op.values[at])
		}
		return s, ":1"
	case mset:
		for at, key := range op.keys {
			s.put(key, op.values[at])
		}
		return s, "+OK"
	case del:
		removed := 0
		for _, key := range op.keys {
			if s.remove(key) {
				removed++
			}
		}
		return s, integer(removed)
	case exists:
		found := 0
		for _, key := range op.keys {
			if s.has(key) {
				found++
			}
		}
		return s, integer(found)
	case rename, renamenx:
		return s.move(op)
	case copyReplace:
		if !s.has(first) {
			return s, ":0"
		}
		s.transfer(first, op.keys[1])
		return s, ":1"
	case dbsize:
		return s, integer(bits.OnesCount8(s.there))
	case flushdb:
		for key := range maxKeys {
			s.remove(key)
		}
		return s, "+OK"
	case watch:
		for _, key := range op.keys {
			s.watched[op.client] |= 1 << key
		}
		return s, "+OK"
	case unwatch:
		s.forget(op.client)
		return s, "+OK"
	case exec:
		return s.run(op)
	case crash:
		for client := range maxClients {
			s.forget(client)
		}
		return s, ""
	}
	panic(fmt.Sprint("no such operation: ", op.kind))
}

func (s State) move(op Op) (State, string) {
	from, to := op.keys[0], op.keys[1]
	if !s.has(from) {
		return s, "-ERR no such key"
	}
	if op.kind == renamenx {
		if s.has(to) {
			return s, ":0"
		}
	}
	if from != to {
		s.transfer(from, to)
		s.remove(from)
	}
	if op.kind == renamenx {
		return s, ":1"
	}
	return s, "+OK"
}

// run is EXEC: everything, unless a watched key has changed.
func (s State) run(op Op) (State, string) {
	isDirty := s.dirty>>op.client&1 == 1
	s.forget(op.client)
	if isDirty {
		return s, "nil"
	}
	replies := make([]string, len(op.body))
	for at, inner := range op.body {
		s, replies[at] = apply(s, inner)
	}
	return s, array(replies)
}

func array(replies []string) string { return "[" + strings.Join(replies, " ") + "]" }

func hash(s State) uint64 {
	sum := uint64(s.there)*0x9e3779b97f4a7c15 ^ uint64(s.dirty)<<32
	for at, value := range s.value {
		sum = (sum ^ uint64(value) ^ uint64(s.watched[at])<<48 ^ uint64(s.watched[at+maxKeys])<<56) * 0x100000001b3
		sum ^= sum >> 29
		sum = (sum ^ uint64(s.hashes[at].there) ^ uint64(s.sets[at])<<8) * 0x100000001b3
		for _, value := range s.hashes[at].value {
			sum = (sum ^ uint64(value)) * 0x100000001b3
		}
		for _, letter := range s.lists[at] {
			sum = (sum ^ uint64(letter)) * 0x100000001b3
		}
		for _, letter := range s.streams[at] {
			sum = (sum ^ uint64(letter)) * 0x100000001b3
		}
		sum = (sum ^ uint64(s.zsets[at].there)) * 0x100000001b3
		for _, score := range s.zsets[at].score {
			sum = (sum ^ uint64(score)) * 0x100000001b3
		}
	}
	return sum
}
