// Command goredis runs the checks of tests/clients/run with go-redis: its default (RESP3) and RESP2.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"ferrite.test/clients/check"
)

var (
	ctx   = context.Background()
	equal = check.Equal
)

// suite is one mode: a way to open clients, and a client of the emptied server.
type suite struct {
	protocol int
	c        *redis.Client
}

func (s suite) open(change func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: check.Addr, Protocol: s.protocol}
	if change != nil {
		change(options)
	}
	return redis.NewClient(options)
}

func main() {
	// A refused optional command is logged by default; the output of this program is its report.
	logging.Disable()
	fmt.Println("version", check.Module("github.com/redis/go-redis/v9"))
	passed := true
	// Protocol 0 means that the option was not given.
	for _, mode := range []struct {
		name     string
		protocol int
	}{{"default", 0}, {"resp2", 2}, {"resp3", 3}} {
		s := suite{protocol: mode.protocol}
		s.c = s.open(nil)
		check.Must(s.c.FlushAll(ctx).Result())
		passed = check.Run(mode.name, s.checks()) && passed
		s.c.Close()
	}
	if !passed {
		os.Exit(1)
	}
}

func (s suite) checks() []check.Check {
	return []check.Check{
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
		{Name: "reconnect", Body: s.reconnect}, {Name: "transaction", Body: s.transaction}, {Name: "listen", Body: s.listen},
	}
}

func (s suite) connect() {
	equal(check.Must(s.c.Ping(ctx).Result()), "PONG")
	equal(check.Must(s.c.Echo(ctx, "hello").Result()), "hello")
}

func (s suite) text() {
	equal(check.Must(s.c.Set(ctx, "text", "café ✓", 0).Result()), "OK")
	equal(check.Must(s.c.Get(ctx, "text").Result()), "café ✓")
	equal(s.c.Get(ctx, "absent").Err(), redis.Nil)
}

func (s suite) binary() {
	equal(check.Must(s.c.Set(ctx, check.EveryByte, check.EveryByte, 0).Result()), "OK")
	equal(check.Must(s.c.Get(ctx, check.EveryByte).Result()), check.EveryByte)
}

func (s suite) empty() {
	equal(check.Must(s.c.Set(ctx, "", "", 0).Result()), "OK")
	equal(check.Must(s.c.Get(ctx, "").Result()), "")
	equal(check.Must(s.c.StrLen(ctx, "").Result()), int64(0))
}

func (s suite) megabyte() {
	equal(check.Must(s.c.Set(ctx, "megabyte", check.Megabyte, 0).Result()), "OK")
	check.True(check.Must(s.c.Get(ctx, "megabyte").Result()) == check.Megabyte, "a megabyte came back changed")
}

func (s suite) setOptions() {
	equal(check.Must(s.c.SetNX(ctx, "option", "1", 0).Result()), true)
	equal(check.Must(s.c.SetNX(ctx, "option", "2", 0).Result()), false)
	equal(check.Must(s.c.SetXX(ctx, "option", "2", 0).Result()), true)
	equal(check.Must(s.c.SetXX(ctx, "option-absent", "2", 0).Result()), false)
	equal(check.Must(s.c.SetArgs(ctx, "option", "3", redis.SetArgs{Get: true}).Result()), "2")
	equal(check.Must(s.c.Set(ctx, "option", "4", 100*time.Second).Result()), "OK")
	check.Between(check.Must(s.c.TTL(ctx, "option").Result()), 90*time.Second, 100*time.Second)
	equal(check.Must(s.c.Set(ctx, "option", "5", 200_500*time.Millisecond).Result()), "OK")
	check.Between(check.Must(s.c.PTTL(ctx, "option").Result()), 190*time.Second, 200_500*time.Millisecond)
	equal(check.Must(s.c.Set(ctx, "option", "6", redis.KeepTTL).Result()), "OK")
	check.Between(check.Must(s.c.PTTL(ctx, "option").Result()), 190*time.Second, 200_500*time.Millisecond)
}

func (s suite) expire() {
	check.Must(s.c.Set(ctx, "expire", "x", 0).Result())
	equal(check.Must(s.c.Expire(ctx, "expire", 50*time.Second).Result()), true)
	check.Between(check.Must(s.c.TTL(ctx, "expire").Result()), 40*time.Second, 50*time.Second)
	equal(check.Must(s.c.ExpireGT(ctx, "expire", 10*time.Second).Result()), false)
	equal(check.Must(s.c.Persist(ctx, "expire").Result()), true)
	equal(check.Must(s.c.Persist(ctx, "expire").Result()), false)
	equal(check.Must(s.c.TTL(ctx, "expire").Result()), time.Duration(-1))
	equal(check.Must(s.c.TTL(ctx, "absent").Result()), time.Duration(-2))
	equal(check.Must(s.c.ExpireAt(ctx, "expire", time.Unix(4_102_444_800, 0)).Result()), true)
	equal(check.Must(s.c.ExpireTime(ctx, "expire").Result()), 4_102_444_800*time.Second)
}

func (s suite) increment() {
	equal(check.Must(s.c.Incr(ctx, "counter").Result()), int64(1))
	equal(check.Must(s.c.IncrBy(ctx, "counter", 41).Result()), int64(42))
	equal(check.Must(s.c.DecrBy(ctx, "counter", 2).Result()), int64(40))
	equal(check.Must(s.c.IncrByFloat(ctx, "counter", 0.5).Result()), 40.5)
	equal(check.Must(s.c.Get(ctx, "counter").Float64()), 40.5)
}

func (s suite) multiKey() {
	equal(check.Must(s.c.MSet(ctx, "m1", "a", "m2", "b", "m3", "").Result()), "OK")
	equal(check.Must(s.c.MGet(ctx, "m1", "absent", "m2", "m3").Result()), []any{"a", nil, "b", ""})
	equal(check.Must(s.c.MSetNX(ctx, "m4", "x", "m1", "y").Result()), false)
}

func (s suite) ranges() {
	equal(check.Must(s.c.Append(ctx, "range", "Hello World").Result()), int64(11))
	equal(check.Must(s.c.GetRange(ctx, "range", -5, -1).Result()), "World")
	equal(check.Must(s.c.SetRange(ctx, "range", 6, "Redis").Result()), int64(11))
	equal(check.Must(s.c.Get(ctx, "range").Result()), "Hello Redis")
}

func (s suite) bits() {
	equal(check.Must(s.c.SetBit(ctx, "bits", 7, 1).Result()), int64(0))
	equal(check.Must(s.c.SetBit(ctx, "bits", 100, 1).Result()), int64(0))
	equal(check.Must(s.c.GetBit(ctx, "bits", 100).Result()), int64(1))
	equal(check.Must(s.c.BitCount(ctx, "bits", nil).Result()), int64(2))
	equal(check.Must(s.c.BitPos(ctx, "bits", 1).Result()), int64(7))
	equal(check.Must(s.c.BitField(ctx, "bits", "INCRBY", "u8", 200, 300).Result()), []int64{44})
}

func (s suite) collections() {
	equal(check.Must(s.c.HSet(ctx, "hash", "f", "v", "n", 1).Result()), int64(2))
	equal(check.Must(s.c.HIncrBy(ctx, "hash", "n", 4).Result()), int64(5))
	equal(check.Must(s.c.HGetAll(ctx, "hash").Result()), map[string]string{"f": "v", "n": "5"})
	equal(check.Must(s.c.SAdd(ctx, "set", "a", "b").Result()), int64(2))
	members := check.Must(s.c.SMembers(ctx, "set").Result())
	slices.Sort(members)
	equal(members, []string{"a", "b"})
	scores := []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}}
	equal(check.Must(s.c.ZAdd(ctx, "sorted", scores...).Result()), int64(2))
	equal(check.Must(s.c.ZRangeWithScores(ctx, "sorted", 0, -1).Result()), scores)
	equal(check.Must(s.c.RPush(ctx, "list", 1, 2, 3).Result()), int64(3))
	equal(check.Must(s.c.LMove(ctx, "list", "other", "LEFT", "RIGHT").Result()), "1")
	equal(check.Must(s.c.LRange(ctx, "list", 0, -1).Result()), []string{"2", "3"})
	palermo := &redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556}
	catania := &redis.GeoLocation{Name: "Catania", Longitude: 15.087269, Latitude: 37.502669}
	equal(check.Must(s.c.GeoAdd(ctx, "places", palermo, catania).Result()), int64(2))
	equal(math.Round(check.Must(s.c.GeoDist(ctx, "places", "Palermo", "Catania", "km").Result())), 166.0)
	equal(check.Must(s.c.PFAdd(ctx, "visits", "x", "y").Result()), int64(1))
	equal(check.Must(s.c.PFCount(ctx, "visits").Result()), int64(2))
	equal(check.Must(s.c.BLPop(ctx, time.Second, "list").Result()), []string{"list", "2"})
	equal(*check.Must(s.c.BZPopMin(ctx, time.Second, "sorted").Result()), redis.ZWithKey{Z: scores[0], Key: "sorted"})
}

func (s suite) delete() {
	check.Must(s.c.MSet(ctx, "d1", 1, "d2", 2, "d3", 3).Result())
	equal(check.Must(s.c.Exists(ctx, "d1", "d2", "d3", "d1", "absent").Result()), int64(4))
	equal(check.Must(s.c.Del(ctx, "d1", "absent").Result()), int64(1))
	equal(check.Must(s.c.Unlink(ctx, "d2", "d3").Result()), int64(2))
}

func (s suite) scan() {
	expected, pairs := []string{}, []any{}
	for i := range 1000 {
		expected = append(expected, "scan:"+strconv.Itoa(i))
		pairs = append(pairs, expected[i], "x")
	}
	check.Must(s.c.MSet(ctx, pairs...).Result())
	seen := []string{}
	iterator := s.c.Scan(ctx, 0, "scan:*", 50).Iterator()
	for iterator.Next(ctx) {
		seen = append(seen, iterator.Val())
	}
	equal(iterator.Err(), nil)
	slices.Sort(expected)
	slices.Sort(seen)
	equal(slices.Compact(seen), expected)
}

func (s suite) pipeline() {
	pipe := s.c.Pipeline()
	for i := range 500 {
		pipe.Set(ctx, fmt.Sprintf("pipe:%d", i), i, 0)
		pipe.Get(ctx, fmt.Sprintf("pipe:%d", i))
	}
	for i, reply := range check.Must(pipe.Exec(ctx)) {
		if get, ok := reply.(*redis.StringCmd); ok {
			equal(get.Val(), strconv.Itoa(i/2))
		}
	}
}

// deepPipeline writes all requests before it reads the first reply.
func (s suite) deepPipeline() {
	for _, depth := range check.Depths {
		value := strings.Repeat("x", depth[1])
		pipe := s.c.Pipeline()
		pipe.Set(ctx, "deep", value, 0)
		for range depth[0] {
			pipe.Get(ctx, "deep")
		}
		replies := check.Must(pipe.Exec(ctx))
		equal(len(replies), depth[0]+1)
		for _, reply := range replies[1:] {
			check.True(reply.(*redis.StringCmd).Val() == value, "a reply is not the value")
		}
	}
}

// transaction counts with optimistic locking, from several goroutines, as the documentation does.
func (s suite) transaction() {
	replies := check.Must(s.c.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "tx-counter", 1, time.Hour)
		pipe.Incr(ctx, "tx-counter")
		return nil
	}))
	equal(replies[1].(*redis.IntCmd).Val(), int64(2))
	increment := func(tx *redis.Tx) error {
		count, err := tx.Get(ctx, "tx-counter").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "tx-counter", count+1, 0)
			return nil
		})
		return err
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var err error = redis.TxFailedErr
			for errors.Is(err, redis.TxFailedErr) {
				err = s.c.Watch(ctx, increment, "tx-counter")
			}
			check.True(err == nil, "a transaction failed: %v", err)
		})
	}
	group.Wait()
	equal(check.Must(s.c.Get(ctx, "tx-counter").Int()), 10)
}

// listen subscribes, publishes and receives through a Go channel, as the documentation does.
func (s suite) listen() {
	subscription := s.c.Subscribe(ctx, "news", "other")
	defer subscription.Close()
	check.Must(subscription.Receive(ctx))
	check.True(subscription.PSubscribe(ctx, "n?ws") == nil, "PSUBSCRIBE failed")
	messages := subscription.Channel()
	for check.Must(s.c.PubSubNumPat(ctx).Result()) == 0 {
		time.Sleep(time.Millisecond)
	}
	equal(check.Must(s.c.Publish(ctx, "news", "hello").Result()), int64(2))
	for _, pattern := range []string{"", "n?ws"} {
		select {
		case message := <-messages:
			equal(*message, redis.Message{Channel: "news", Pattern: pattern, Payload: "hello"})
		case <-time.After(10 * time.Second):
			panic("no message came")
		}
	}
}

func (s suite) selectDB() {
	other := s.open(func(o *redis.Options) { o.DB = 3 })
	defer other.Close()
	check.Must(s.c.Set(ctx, "where", "zero", 0).Result())
	equal(other.Get(ctx, "where").Err(), redis.Nil)
	check.Must(other.Set(ctx, "where", "three", 0).Result())
	equal(check.Must(s.c.Get(ctx, "where").Result()), "zero")
	equal(check.Must(other.DBSize(ctx).Result()), int64(1))
	check.Must(other.FlushDB(ctx).Result())
}

func (s suite) clientInfo() {
	named := s.open(func(o *redis.Options) { o.ClientName = "checks" })
	defer named.Close()
	equal(check.Must(named.ClientGetName(ctx).Result()), "checks")
	me := check.Must(named.ClientInfo(ctx).Result())
	equal([]any{me.Name, me.ID, me.DB}, []any{"checks", check.Must(named.ClientID(ctx).Result()), 0})
	check.True(strings.HasPrefix(me.Addr, "127.0.0.1:"), "address %q", me.Addr)
	equal(me.LAddr, check.Addr)
	list := check.Must(s.c.ClientList(ctx).Result())
	equal(strings.Count(list, " name=checks "), 1)
}

func (s suite) info() {
	check.Must(s.c.Set(ctx, "info", "x", 0).Result())
	info := check.Must(s.c.InfoMap(ctx).Result())
	equal(info["Replication"]["role"], "master")
	equal(strings.Count(info["Server"]["redis_version"], "."), 2)
	check.True(strings.HasPrefix(info["Keyspace"]["db0"], "keys="), "keyspace %v", info["Keyspace"])
}

func (s suite) config() {
	equal(check.Must(s.c.ConfigGet(ctx, "databases").Result()), map[string]string{"databases": "16"})
	equal(check.Must(s.c.ConfigGet(ctx, "no-such-setting").Result()), map[string]string{})
}

func (s suite) command() {
	table := check.Must(s.c.Command(ctx).Result())
	get := table["get"]
	check.True(get != nil && get.ReadOnly, "COMMAND lacks a read-only GET")
	equal([]int8{get.Arity, get.FirstKeyPos, get.LastKeyPos, get.StepCount}, []int8{2, 1, 1, 1})
	equal(check.Must(s.c.CommandGetKeys(ctx, "MSET", "a", "1", "b", "2").Result()), []string{"a", "b"})
}

func (s suite) notAnInteger() {
	check.Must(s.c.Set(ctx, "word", "abc", 0).Result())
	err := s.c.Incr(ctx, "word").Err()
	var reply redis.Error
	check.True(errors.As(err, &reply), "not a redis.Error: %T", err)
	equal(err.Error(), "ERR value is not an integer or out of range")
}

func (s suite) unknownCommand() {
	err := s.c.Do(ctx, "NOSUCHCOMMAND", "x").Err()
	check.True(err != nil && strings.HasPrefix(err.Error(), "ERR unknown command"), "got %v", err)
	equal(check.Must(s.c.Ping(ctx).Result()), "PONG")
}

func (s suite) locked(password string) error {
	client := s.open(func(o *redis.Options) { o.Addr, o.Password = check.Locked, password })
	defer client.Close()
	return client.Ping(ctx).Err()
}

func (s suite) password() { equal(s.locked(check.Password), nil) }

func (s suite) wrongPassword() {
	err := s.locked("no")
	check.True(redis.IsAuthError(err) && strings.HasPrefix(err.Error(), "WRONGPASS"), "got %v", err)
}

func (s suite) noPassword() {
	err := s.locked("")
	check.True(redis.IsAuthError(err) && strings.HasPrefix(err.Error(), "NOAUTH"), "got %v", err)
}

func (s suite) reconnect() {
	victim := s.open(func(o *redis.Options) { o.PoolSize = 1 })
	defer victim.Close()
	before := check.Must(victim.ClientID(ctx).Result())
	equal(check.Must(s.c.ClientKillByFilter(ctx, "ID", strconv.FormatInt(before, 10)).Result()), int64(1))
	check.True(check.Must(victim.ClientID(ctx).Result()) > before, "the killed connection answered")
}
