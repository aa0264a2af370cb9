// What scripts do to the model: EVAL and EVALSHA of texts that name all of their keys, of texts that do not, and of texts that take long.

package main

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// script is what a script does. In its text stand K1 and K2 for its keys, V1 and V2 for its values, and WORK for something that takes as
// long as the request says.
type script struct {
	name   string
	keys   int
	values int
	// Whether it may change something.
	writes bool
	// Whether WORK comes before all changes.
	isClean bool
	text    string
}

// The scripts, as `Op.script` numbers them.
const (
	compareAndSet = iota
	addToBoth
	swap
	move
	readTwice
	failHalfway
)

var scripts = [...]script{
	{"compare-and-set", 1, 2, true, true, "local old = redis.call('get', K1) WORK " +
		"if old == V1 then redis.call('set', K1, V2) return 1 end return 0"},
	{"add-to-both", 2, 1, true, true, "local sum = (redis.call('get', K1) or 0) + V1 WORK " +
		"redis.call('set', K1, sum) return {redis.call('incrby', K2, V1), sum}"},
	{"swap", 2, 0, true, true, "local one, two = redis.call('get', K1), redis.call('get', K2) WORK " +
		"redis.call('del', K1, K2) if two then redis.call('set', K1, two) end " +
		"if one then redis.call('set', K2, one) end return {one, two}"},
	{"move", 2, 0, true, false, "local value = redis.call('getdel', K1) WORK " +
		"if value then redis.call('set', K2, value) end return value"},
	{"read-twice", 2, 0, false, true, "local one = redis.call('get', K1) WORK " +
		"return {one, redis.call('get', K2), redis.call('mget', K1, K2)}"},
	{"fail-halfway", 2, 1, true, false, "redis.call('set', K1, V1) WORK redis.call('del', K2) " +
		"return redis.error_reply('MINE ' .. V1)"},
}

// scriptForm is how a text names its keys, and what it does to take long.
type scriptForm int

const (
	// It names all of its keys, so that it runs beside others.
	proven scriptForm = iota
	// Its keys are in ARGV, or made of those of KEYS: no other runs beside it.
	undeclared
	computed
	// It has a loop, so that it runs on a thread of its own unless its last run was quick.
	slow
	slowUndeclared
)

var formNames = [...]string{"proven", "undeclared", "computed", "slow", "slow and undeclared"}

// The values of -scripts, and the forms that each of them chooses from.
var scriptKinds = map[string][]scriptForm{
	"proven": {proven},
	"alone":  {undeclared, computed},
	"slow":   {slow, slowUndeclared},
	"all":    {proven, proven, proven, undeclared, computed, slow, slowUndeclared},
}

// What stands for WORK: a loop until so many microseconds have passed, and a search of so many steps, as a power of two. A text with the
// words of a loop, or of a function, is not proven to use its keys alone.
const (
	lasting = "local from = redis.call('time') repeat local now = redis.call('time') " +
		"until (now[1] - from[1]) * 1000000 + now[2] - from[2] >= tonumber(WORD)"
	searching = "string.find(string.rep('a', WORD), string.rep('a?', WORD) .. string.rep('a', WORD) .. 'b')"
)

func (f scriptForm) isLoop() bool { return f == slow || f == slowUndeclared }

// hasKeysInArgv tells whether the request says that the script has no keys.
func (f scriptForm) hasKeysInArgv() bool { return f == undeclared || f == slowUndeclared }

// textOf is the text of a script in one of its forms.
func textOf(number int, form scriptForm) string {
	one := scripts[number]
	var pairs []string
	first := 1
	for key := 1; key <= one.keys; key++ {
		expression := fmt.Sprintf("KEYS[%d]", key)
		if form.hasKeysInArgv() {
			expression = fmt.Sprintf("ARGV[%d]", key)
			first++
		} else if form == computed {
			expression += " .. ''"
		}
		pairs = append(pairs, fmt.Sprintf("K%d", key), expression)
	}
	for value := range one.values {
		pairs = append(pairs, fmt.Sprintf("V%d", value+1), fmt.Sprintf("ARGV[%d]", first+value))
	}
	work := searching
	if form.isLoop() {
		work = lasting
	}
	word := fmt.Sprintf("ARGV[%d]", first+one.values)
	pairs = append(pairs, "WORK", strings.ReplaceAll(work, "WORD", word))
	return strings.NewReplacer(pairs...).Replace(one.text)
}

// allTexts are those of all scripts in all forms.
func allTexts() []string {
	var texts []string
	for number := range scripts {
		for form := range formNames {
			texts = append(texts, textOf(number, scriptForm(form)))
		}
	}
	return texts
}

func shaOf(text string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }

// scriptCall is what a request for a script says besides its keys and values.
type scriptCall struct {
	script int
	form   scriptForm
	// Whether it names the script by its SHA-1, and whether it lets it write.
	bySha, readOnly bool
	// How long it takes: microseconds, or the power of two of steps.
	work int
}

func (call scriptCall) String() string {
	return fmt.Sprintf("%s (%s, work %d)", scripts[call.script].name, formNames[call.form], call.work)
}

// scriptWords are the words of the request.
func (op Op) scriptWords(keys []string) []string {
	call := op.call
	command, text := "EVAL", textOf(call.script, call.form)
	if call.bySha {
		command, text = "EVALSHA", shaOf(text)
	}
	if call.readOnly {
		command += "_RO"
	}
	count := len(op.keys)
	if call.form.hasKeysInArgv() {
		count = 0
	}
	words := []string{command, text, strconv.Itoa(count)}
	for _, key := range op.keys {
		words = append(words, keys[key])
	}
	for _, value := range op.values {
		words = append(words, strconv.FormatInt(value, 10))
	}
	return append(words, strconv.Itoa(call.work))
}

// ofScript runs a script and returns the state after it and the reply.
func (s State) ofScript(op Op) (State, string) {
	one, two := op.keys[0], op.keys[len(op.keys)-1]
	before := s
	switch op.call.script {
	case compareAndSet:
		if !s.has(one) || s.value[one] != op.values[0] {
			return s, ":0"
		}
		s.put(one, op.values[1])
		return s, ":1"
	case addToBoth:
		s.put(one, s.value[one]+op.values[0])
		s.put(two, s.value[two]+op.values[0])
		return s, array([]string{integer(int(s.value[two])), integer(int(s.value[one]))})
	case swap:
		s.remove(one)
		s.remove(two)
		if before.has(two) {
			s.put(one, before.value[two])
		}
		if before.has(one) {
			s.put(two, before.value[one])
		}
		return s, array([]string{before.read(one), before.read(two)})
	case move:
		if s.remove(one) {
			s.put(two, before.value[one])
		}
		return s, before.read(one)
	case readTwice:
		replies := []string{s.read(one), s.read(two)}
		return s, array(append(replies, array(slices.Clone(replies))))
	case failHalfway:
		s.put(one, op.values[0])
		s.remove(two)
		return s, "-MINE " + strconv.FormatInt(op.values[0], 10)
	}
	panic(fmt.Sprint("no such script: ", op.call.script))
}

// anyScript is a request for any script.
func (c *actor) anyScript() Op { return c.scripted(c.random.IntN(len(scripts))) }

// compared changes a key from the value that it has just read, unless another has changed it meanwhile.
func (c *actor) compared() []Op {
	op := c.scripted(compareAndSet)
	if !c.do([]Op{{kind: get, keys: op.keys}}) {
		return nil
	}
	op.values[0] = c.seen[op.keys[0]]
	return []Op{op}
}

// scripted is a request for a script.
func (c *actor) scripted(script int) Op {
	forms := scriptKinds[c.scripts]
	call := scriptCall{
		script: script,
		form:   forms[c.random.IntN(len(forms))],
		bySha:  c.random.IntN(2) == 0,
	}
	one := scripts[script]
	call.readOnly = !one.writes && c.random.IntN(2) == 0
	call.work = c.duration(call.form, one.isClean)
	op := Op{kind: eval, keys: c.some(one.keys, one.keys), call: call}
	switch script {
	case compareAndSet:
		// What was seen last may still be there.
		op.values = append([]int64{c.seen[op.keys[0]]}, c.fresh(1)...)
	case addToBoth:
		op.values = []int64{1 + c.random.Int64N(3)}
	case failHalfway:
		op.values = c.fresh(1)
	}
	return op
}

// duration is how long a script takes: mostly long enough for others to come in between if they may. A loop, and at times a search, lasts for
// longer than a script may stay on the thread of its connection, unless it is as quick as others.
func (c *actor) duration(form scriptForm, isClean bool) int {
	isLong := c.random.IntN(4) > 1 || c.scripts == "slow"
	switch {
	case form.isLoop() && isLong:
		return 5500 + c.random.IntN(3000)
	case form.isLoop():
		return c.random.IntN(300)
	case form == proven && c.scripts == "all" && isClean && c.random.IntN(16) == 0:
		return 14
	}
	return 3 + c.random.IntN(7)
}

// note remembers the value of a key that a reply has told.
func (c *actor) note(op Op, reply string) {
	switch op.kind {
	case get, incr:
		if value, err := strconv.ParseInt(strings.TrimPrefix(reply, ":"), 10, 64); err == nil {
			c.seen[op.keys[0]] = value
		}
	case set:
		c.seen[op.keys[0]] = op.values[0]
	case eval:
		if op.call.script == compareAndSet && reply == ":1" {
			c.seen[op.keys[0]] = op.values[1]
		}
	}
	if c.streams {
		c.noteStream(reply)
	}
}
