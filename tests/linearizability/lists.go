// What commands of lists do to the model.

package main

import (
	"slices"
	"strconv"
	"strings"
)

// The ends of a list, as LMOVE names them.
var ends = [...]string{"LEFT", "RIGHT"}

func (s State) isList(key int) bool { return s.lists[key] != "" }

// elements are those of a key.
func (s State) elements(key int) []string { return strings.Fields(s.lists[key]) }

// setList gives a key these elements, or removes it if there are none.
func (s *State) setList(key int, elements []string) {
	if len(elements) == 0 {
		s.remove(key)
		return
	}
	s.put(key, 0)
	s.lists[key] = strings.Join(elements, " ")
}

func pushAt(elements []string, end int, element string) []string {
	if end == 0 {
		return slices.Insert(elements, 0, element)
	}
	return append(elements, element)
}

func popAt(elements []string, end int) ([]string, string) {
	if end == 0 {
		return elements[1:], elements[0]
	}
	last := len(elements) - 1
	return elements[:last], elements[last]
}

// listWords are the arguments behind the keys of a request about lists.
func (op Op) listWords() []string {
	var words []string
	for _, value := range op.values {
		words = append(words, strconv.FormatInt(value, 10))
	}
	switch op.kind {
	case lrange:
		words = append(words, "0", "-1")
	case lmove:
		words = append(words, ends[op.fields[0]], ends[op.fields[1]])
	}
	return words
}

// ofList does one operation on lists and returns the state behind it and the reply.
func (s State) ofList(key int, op Op) (State, string) {
	if s.has(key) && !s.isList(key) {
		return s, wrongType
	}
	elements := s.elements(key)
	switch op.kind {
	case lpush, rpush:
		for _, value := range op.values {
			elements = pushAt(elements, int(op.kind-lpush), strconv.FormatInt(value, 10))
		}
		s.setList(key, elements)
	case lpop, rpop:
		if len(elements) == 0 {
			return s, "nil"
		}
		rest, element := popAt(elements, int(op.kind-lpop))
		s.setList(key, rest)
		return s, element
	case lrange:
		return s, array(elements)
	case lmove:
		return s.moveElement(key, op.keys[1], op.fields)
	}
	return s, integer(len(elements))
}

// moveElement is LMOVE from a key that has a list, or nothing.
func (s State) moveElement(from, to int, at []int) (State, string) {
	if !s.has(from) {
		return s, "nil"
	}
	if s.has(to) && !s.isList(to) {
		return s, wrongType
	}
	rest, element := popAt(s.elements(from), at[0])
	if from == to {
		s.setList(to, pushAt(rest, at[1], element))
		return s, element
	}
	s.setList(to, pushAt(s.elements(to), at[1], element))
	s.setList(from, rest)
	return s, element
}

// anyOfList is an operation on lists, or one that makes others of keys that are lists.
func (c *actor) anyOfList() Op {
	one := c.some(1, 1)
	end := Kind(c.random.IntN(2))
	switch n := c.random.IntN(100); {
	case n < 26:
		return Op{kind: lpush + end, keys: one, values: c.fresh(1 + c.random.IntN(3))}
	case n < 46:
		return Op{kind: lpop + end, keys: one}
	case n < 60:
		return Op{kind: lrange, keys: one}
	case n < 64:
		return Op{kind: llen, keys: one}
	case n < 90:
		return Op{kind: lmove, keys: c.some(2, 2), fields: []int{c.random.IntN(2), c.random.IntN(2)}}
	case n < 93:
		return Op{kind: rename, keys: c.some(2, 2)}
	case n < 96:
		return Op{kind: copyReplace, keys: c.some(2, 2)}
	}
	return Op{kind: del, keys: c.some(1, 2)}
}
