// Command rueidis runs the checks of tests/clients/run with rueidis: with client-side caching, which is its default and
// wants CLIENT TRACKING, without it, and over RESP2.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"ferrite.test/clients/check"
)

var (
	ctx   = context.Background()
	equal = check.Equal
)

// suite is one mode: the options it adds, and a client of the emptied server.
type suite struct {
	change func(*rueidis.ClientOption)
	c      rueidis.Client
}

func (s suite) open(change func(*rueidis.ClientOption)) (rueidis.Client, error) {
	option := rueidis.ClientOption{InitAddress: []string{check.Addr}}
	s.change(&option)
	if change != nil {
		change(&option)
	}
	return rueidis.NewClient(option)
}

// do runs a command that is given as its words.
func do(c rueidis.Client, words ...string) rueidis.RedisResult {
	return c.Do(ctx, c.B().Arbitrary(words...).Build())
}

func (s suite) str(words ...string) string   { return check.Must(do(s.c, words...).ToString()) }
func (s suite) number(words ...string) int64 { return check.Must(do(s.c, words...).AsInt64()) }
func (s suite) isNil(words ...string) {
	check.True(rueidis.IsRedisNil(do(s.c, words...).Error()), "%v is not nil", words)
}
func (s suite) seconds(key string) time.Duration {
	return time.Duration(s.number("TTL", key)) * time.Second
}

func main() {
	fmt.Println("version", check.Module("github.com/redis/rueidis"))
	passed := true
	for _, mode := range []struct {
		name   string
		change func(*rueidis.ClientOption)
	}{
		{"default", func(*rueidis.ClientOption) {}},
		{"no_cache", func(o *rueidis.ClientOption) { o.DisableCache = true }},
		{"resp2", func(o *rueidis.ClientOption) { o.DisableCache, o.AlwaysRESP2 = true, true }},
	} {
		s, err := suite{change: mode.change}, error(nil)
		s.c, err = s.open(nil)
		check.Must(s.c, err)
		s.str("FLUSHALL")
		passed = check.Run(mode.name, s.checks(mode.name == "default")) && passed
		s.c.Close()
	}
	if !passed {
		os.Exit(1)
	}
}

func (s suite) checks(caching bool) []check.Check {
	checks := []check.Check{
		{Name: "connect", Body: s.connect}, {Name: "text", Body: s.text}, {Name: "binary", Body: s.binary},
		{Name: "empty", Body: s.empty}, {Name: "megabyte", Body: s.megabyte}, {Name: "set_options", Body: s.setOptions},
		{Name: "expire", Body: s.expire}, {Name: "increment", Body: s.increment}, {Name: "multi_key", Body: s.multiKey},
		{Name: "ranges", Body: s.ranges}, {Name: "bits", Body: s.bits}, {Name: "collections", Body: s.collections}, {Name: "delete", Body: s.delete},
		{Name: "scan", Body: s.scan}, {Name: "pipeline", Body: s.pipeline}, {Name: "deep_pipeline", Body: s.deepPipeline},
		{Name: "select", Body: s.selectDB},
		{Name: "client_info", Body: s.clientInfo}, {Name: "info", Body: s.info}, {Name: "config", Body: s.config},
		{Name: "command", Body: s.command}, {Name: "not_an_integer", Body: s.notAnInteger},
		{Name: "unknown_command", Body: s.unknownCommand}, {Name: "password", Body: s.password},
		{Name: "wrong_password", Body: s.wrongPassword}, {Name: "no_password", Body: s.noPassword},
		{Name: "reconnect", Body: s.reconnect},
	}
	if caching {
		checks = append(checks, check.Check{Name: "cache", Body: s.cache})
	}
	return checks
}

func (s suite) connect() {
	equal(s.str("PING"), "PONG")
	equal(s.str("ECHO", "hello"), "hello")
}

func (s suite) text() {
	equal(s.str("SET", "text", "café ✓"), "OK")
	equal(s.str("GET", "text"), "café ✓")
	s.isNil("GET", "absent")
}

func (s suite) binary() {
	equal(s.str("SET", check.EveryByte, check.EveryByte), "OK")
	equal(s.str("GET", check.EveryByte), check.EveryByte)
}

func (s suite) empty() {
	equal(s.str("SET", "", ""), "OK")
	equal(s.str("GET", ""), "")
	equal(s.number("STRLEN", ""), int64(0))
}

func (s suite) megabyte() {
	equal(s.str("SET", "megabyte", check.Megabyte), "OK")
	check.True(s.str("GET", "megabyte") == check.Megabyte, "a megabyte came back changed")
}

func (s suite) setOptions() {
	equal(s.str("SET", "option", "1", "NX"), "OK")
	s.isNil("SET", "option", "2", "NX")
	equal(s.str("SET", "option", "2", "XX"), "OK")
	s.isNil("SET", "option-absent", "2", "XX")
	equal(s.str("SET", "option", "3", "GET"), "2")
	equal(s.str("SET", "option", "4", "EX", "100"), "OK")
	check.Between(s.seconds("option"), 90*time.Second, 100*time.Second)
	equal(s.str("SET", "option", "5", "PX", "200000"), "OK")
	check.Between(s.seconds("option"), 190*time.Second, 200*time.Second)
}

func (s suite) expire() {
	s.str("SET", "expire", "x")
	equal(check.Must(do(s.c, "EXPIRE", "expire", "50").AsBool()), true)
	check.Between(s.seconds("expire"), 40*time.Second, 50*time.Second)
	equal(s.number("EXPIRE", "expire", "10", "GT"), int64(0))
	equal(s.number("PERSIST", "expire"), int64(1))
	equal(s.number("TTL", "expire"), int64(-1))
	equal(s.number("TTL", "absent"), int64(-2))
}

func (s suite) increment() {
	equal(s.number("INCR", "counter"), int64(1))
	equal(s.number("INCRBY", "counter", "41"), int64(42))
	equal(check.Must(do(s.c, "INCRBYFLOAT", "counter", "0.5").AsFloat64()), 42.5)
}

func (s suite) multiKey() {
	equal(s.str("MSET", "m1", "a", "m2", "b"), "OK")
	values := check.Must(do(s.c, "MGET", "m1", "absent", "m2").ToArray())
	equal([]bool{values[0].IsNil(), values[1].IsNil(), values[2].IsNil()}, []bool{false, true, false})
	byKey := check.Must(rueidis.MGet(s.c, ctx, []string{"m1", "m2"}))
	first, second := byKey["m1"], byKey["m2"]
	equal([]string{check.Must(first.ToString()), check.Must(second.ToString())}, []string{"a", "b"})
}

func (s suite) ranges() {
	equal(s.number("APPEND", "range", "Hello World"), int64(11))
	equal(s.str("GETRANGE", "range", "-5", "-1"), "World")
	equal(s.number("SETRANGE", "range", "6", "Redis"), int64(11))
}

func (s suite) bits() {
	equal(s.number("SETBIT", "bits", "7", "1"), int64(0))
	equal(s.number("SETBIT", "bits", "100", "1"), int64(0))
	equal(s.number("BITCOUNT", "bits"), int64(2))
}

func (s suite) collections() {
	strs := func(words ...string) []string { return check.Must(do(s.c, words...).AsStrSlice()) }
	equal(s.number("HSET", "hash", "f", "v", "n", "1"), int64(2))
	equal(s.number("HINCRBY", "hash", "n", "4"), int64(5))
	equal(check.Must(do(s.c, "HGETALL", "hash").AsStrMap()), map[string]string{"f": "v", "n": "5"})
	equal(s.number("SADD", "set", "a", "b"), int64(2))
	members := strs("SMEMBERS", "set")
	slices.Sort(members)
	equal(members, []string{"a", "b"})
	equal(s.number("ZADD", "sorted", "1", "a", "2.5", "b"), int64(2))
	scores := []rueidis.ZScore{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}}
	equal(check.Must(do(s.c, "ZRANGE", "sorted", "0", "-1", "WITHSCORES").AsZScores()), scores)
	equal(s.number("RPUSH", "list", "1", "2", "3"), int64(3))
	equal(s.str("LMOVE", "list", "other", "LEFT", "RIGHT"), "1")
	equal(strs("LRANGE", "list", "0", "-1"), []string{"2", "3"})
	equal(s.number("GEOADD", "places", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"), int64(2))
	equal(s.str("GEODIST", "places", "Palermo", "Catania", "km"), "166.2742")
	equal(s.number("PFADD", "visits", "x", "y"), int64(1))
	equal(s.number("PFCOUNT", "visits"), int64(2))
	equal(strs("BLPOP", "list", "1"), []string{"list", "2"})
	popped := check.Must(do(s.c, "BZPOPMIN", "sorted", "1").ToArray())
	equal(check.Must(popped[1].ToString()), "a")
	equal(check.Must(popped[2].AsFloat64()), 1.0)
}

func (s suite) delete() {
	s.str("MSET", "d1", "1", "d2", "2", "d3", "3")
	equal(s.number("EXISTS", "d1", "d2", "d3", "d1", "absent"), int64(4))
	equal(s.number("DEL", "d1", "absent"), int64(1))
	equal(s.number("UNLINK", "d2", "d3"), int64(2))
}

func (s suite) scan() {
	expected, words := []string{}, []string{"MSET"}
	for i := range 1000 {
		expected = append(expected, "scan:"+strconv.Itoa(i))
		words = append(words, expected[i], "x")
	}
	s.str(words...)
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return s.c.Do(ctx, s.c.B().Scan().Cursor(cursor).Match("scan:*").Count(50).Build()).AsScanEntry()
	})
	seen := slices.Sorted(scanner.Iter())
	equal(scanner.Err(), nil)
	slices.Sort(expected)
	equal(slices.Compact(seen), expected)
}

func (s suite) pipeline() {
	commands := rueidis.Commands{}
	for range 1000 {
		commands = append(commands, s.c.B().Incr().Key("pipe-counter").Build())
	}
	for i, reply := range s.c.DoMulti(ctx, commands...) {
		equal(check.Must(reply.AsInt64()), int64(i+1))
	}
}

func (s suite) deepPipeline() {
	for _, depth := range check.Depths {
		value := strings.Repeat("x", depth[1])
		s.str("SET", "deep", value)
		commands := make(rueidis.Commands, depth[0])
		for i := range commands {
			commands[i] = s.c.B().Get().Key("deep").Build()
		}
		for _, reply := range s.c.DoMulti(ctx, commands...) {
			check.True(check.Must(reply.ToString()) == value, "a reply is not the value")
		}
	}
}

func (s suite) selectDB() {
	other := check.Must(s.open(func(o *rueidis.ClientOption) { o.SelectDB = 3 }))
	defer other.Close()
	s.str("SET", "where", "zero")
	check.True(rueidis.IsRedisNil(do(other, "GET", "where").Error()), "database 3 shows database 0")
	equal(check.Must(do(other, "SET", "where", "three").ToString()), "OK")
	equal(s.str("GET", "where"), "zero")
	equal(check.Must(do(other, "FLUSHDB").ToString()), "OK")
}

func (s suite) clientInfo() {
	named := check.Must(s.open(func(o *rueidis.ClientOption) { o.ClientName = "checks" }))
	defer named.Close()
	equal(check.Must(do(named, "CLIENT", "GETNAME").ToString()), "checks")
	id := check.Must(do(named, "CLIENT", "ID").AsInt64())
	// In RESP3 this is a verbatim string, whose three-letter format this client leaves in front.
	info := strings.TrimPrefix(check.Must(do(named, "CLIENT", "INFO").ToString()), "txt:")
	check.True(strings.HasPrefix(info, fmt.Sprintf("id=%d addr=127.0.0.1:", id)), "CLIENT INFO: %q", info)
	check.True(strings.Contains(s.str("CLIENT", "LIST"), " name=checks "), "CLIENT LIST lacks the name")
}

func (s suite) info() {
	info := s.str("INFO")
	for _, line := range []string{"\r\nredis_version:", "\r\nrole:master\r\n", "\r\nloading:0\r\n", "\r\ndb0:keys="} {
		check.True(strings.Contains(info, line), "INFO lacks %q", line)
	}
}

func (s suite) config() {
	equal(check.Must(do(s.c, "CONFIG", "GET", "databases").AsStrMap()), map[string]string{"databases": "16"})
}

func (s suite) command() {
	table := check.Must(do(s.c, "COMMAND").ToArray())
	equal(int64(len(table)), s.number("COMMAND", "COUNT"))
	keys := check.Must(do(s.c, "COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2").AsStrSlice())
	equal(keys, []string{"a", "b"})
}

func (s suite) refusal(c rueidis.Client, words ...string) string {
	reply, ok := rueidis.IsRedisErr(do(c, words...).Error())
	check.True(ok, "%v did not fail with an error reply", words)
	return reply.Error()
}

func (s suite) notAnInteger() {
	s.str("SET", "word", "abc")
	equal(s.refusal(s.c, "INCR", "word"), "value is not an integer or out of range")
}

func (s suite) unknownCommand() {
	message := s.refusal(s.c, "NOSUCHCOMMAND", "x")
	check.True(strings.HasPrefix(message, "unknown command"), "got %q", message)
	equal(s.str("PING"), "PONG")
}

// locked connects to the server that wants a password; with RESP2 a refusal shows only at the first command.
func (s suite) locked(password string) error {
	client, err := s.open(func(o *rueidis.ClientOption) {
		o.InitAddress, o.Password = []string{check.Locked}, password
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client, "GET", "x").Error()
}

func (s suite) password() {
	err := s.locked(check.Password)
	check.True(err == nil || rueidis.IsRedisNil(err), "got %v", err)
}

func (s suite) wrongPassword() {
	err := s.locked("no")
	check.True(err != nil && strings.HasPrefix(err.Error(), "WRONGPASS"), "got %v", err)
}

func (s suite) noPassword() {
	err := s.locked("")
	check.True(err != nil && strings.HasPrefix(err.Error(), "NOAUTH"), "got %v", err)
}

func (s suite) reconnect() {
	victim := check.Must(s.open(nil))
	defer victim.Close()
	before := check.Must(do(victim, "CLIENT", "ID").AsInt64())
	equal(s.number("CLIENT", "KILL", "ID", strconv.FormatInt(before, 10)), int64(1))
	// A command that was not marked as read-only is not repeated by the client, so the first may fail.
	for range 100 {
		if after, err := do(victim, "CLIENT", "ID").AsInt64(); err == nil {
			check.True(after > before, "the killed connection answered")
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("did not reconnect within a second")
}

// cache reads through the client's own cache: the second read must come from it, and a write by another connection must
// reach it as an invalidation push.
func (s suite) cache() {
	writer := check.Must(s.open(func(o *rueidis.ClientOption) { o.DisableCache = true }))
	defer writer.Close()
	read := func() rueidis.RedisResult {
		return s.c.DoCache(ctx, s.c.B().Get().Key("cached").Cache(), time.Minute)
	}
	check.Must(do(writer, "SET", "cached", "1").ToString())
	equal(check.Must(read().ToString()), "1")
	check.True(read().IsCacheHit(), "the second read went to the server")
	check.Must(do(writer, "SET", "cached", "2").ToString())
	for range 100 {
		if check.Must(read().ToString()) == "2" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("the cache kept a value that was overwritten")
}
