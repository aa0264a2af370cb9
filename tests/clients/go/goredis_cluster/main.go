// Command goredis_cluster runs the checks of tests/clients/cluster.py with go-redis's ClusterClient.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"ferrite.test/clients/check"
)

var (
	ctx   = context.Background()
	equal = check.Equal
)

type suite struct{ c *redis.ClusterClient }

func main() {
	// A node that is down is logged by default; the output of this program is its report.
	logging.Disable()
	fmt.Println("version", check.Module("github.com/redis/go-redis/v9"))
	s := suite{redis.NewClusterClient(&redis.ClusterOptions{Addrs: check.Nodes()[:1]})}
	defer s.c.Close()
	if !check.Run("cluster", []check.Check{
		{Name: "spread", Body: s.spread}, {Name: "hash_tags", Body: s.hashTags}, {Name: "pipeline", Body: s.pipeline},
		{Name: "transaction", Body: s.transaction}, {Name: "crossslot", Body: s.crossslot}, {Name: "reload", Body: s.reload},
		{Name: "node_down", Body: s.nodeDown}, {Name: "sharded_pubsub", Body: s.shardedPubSub},
	}) {
		os.Exit(1)
	}
}

// write gives every key a value: the first thousand by themselves, the others in pipelines.
func (s suite) write(mark string) {
	values := check.Marked(mark)
	for number, value := range values[:1000] {
		check.Must(s.c.Set(ctx, key(number), value, 0).Result())
	}
	check.Must(s.c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number, value := range values[1000:] {
			pipe.Set(ctx, key(1000+number), value, 0)
		}
		return nil
	}))
}

// read returns the values of all keys: the last thousand one by one, the others from a pipeline.
func (s suite) read() []string {
	last := []string{}
	for number := check.Keys - 1000; number < check.Keys; number++ {
		last = append(last, check.Must(s.c.Get(ctx, key(number)).Result()))
	}
	values := []string{}
	for _, reply := range check.Must(s.c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := range check.Keys - 1000 {
			pipe.Get(ctx, key(number))
		}
		return nil
	})) {
		values = append(values, reply.(*redis.StringCmd).Val())
	}
	return append(values, last...)
}

func key(number int) string { return "key:" + strconv.Itoa(number) }

func (s suite) spread() {
	s.write("a")
	equal(s.read(), check.Marked("a"))
	var nodes, all, least atomic.Int64
	least.Store(check.Keys)
	check.Must(0, s.c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		size, err := node.DBSize(ctx).Result()
		nodes.Add(1)
		all.Add(size)
		for old := least.Load(); size < old && !least.CompareAndSwap(old, size); old = least.Load() {
		}
		return err
	}))
	equal([]int64{nodes.Load(), all.Load()}, []int64{3, check.Keys})
	check.True(least.Load() > check.Keys/4, "a node has %d keys", least.Load())
	equal(check.Must(s.c.DBSize(ctx).Result()), int64(check.Keys))
}

func (s suite) hashTags() {
	for _, tag := range check.Tags() {
		keys, pairs, expected := []string{}, []any{}, []any{}
		for number := range 100 {
			keys = append(keys, fmt.Sprintf("{%s}:%d", tag, number))
			pairs = append(pairs, keys[number], keys[number])
			expected = append(expected, keys[number])
		}
		equal(check.Must(s.c.MSet(ctx, pairs...).Result()), "OK")
		equal(check.Must(s.c.MGet(ctx, keys...).Result()), expected)
		equal(check.Must(s.c.Del(ctx, keys...).Result()), int64(100))
	}
}

func (s suite) pipeline() {
	replies := check.Must(s.c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := range 500 {
			pipe.IncrBy(ctx, fmt.Sprintf("pipe:%d", number), int64(number))
			pipe.Get(ctx, fmt.Sprintf("pipe:%d", number))
			pipe.Del(ctx, fmt.Sprintf("pipe:%d", number))
		}
		return nil
	}))
	for at, reply := range replies {
		switch reply := reply.(type) {
		case *redis.StringCmd:
			equal(reply.Val(), strconv.Itoa(at/3))
		case *redis.IntCmd:
			equal(reply.Val(), []int64{int64(at / 3), 0, 1}[at%3])
		}
	}
}

// transaction counts with optimistic locking, as the documentation does.
func (s suite) transaction() {
	for _, tag := range check.Tags() {
		count := "{" + tag + "}:count"
		check.Must(0, s.c.Watch(ctx, func(tx *redis.Tx) error {
			equal(tx.Get(ctx, count).Err(), redis.Nil)
			replies, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, count, 1, 0)
				pipe.Incr(ctx, count)
				pipe.Del(ctx, count)
				return nil
			})
			equal(replies[1].(*redis.IntCmd).Val(), int64(2))
			return err
		}, count))
	}
}

func (s suite) crossslot() {
	err := s.c.MSet(ctx, "foo", 1, "bar", 2).Err()
	var reply redis.Error
	check.True(errors.As(err, &reply), "not a redis.Error: %T", err)
	equal(err.Error(), "CROSSSLOT Keys in request don't hash to the same slot")
	// This client sees it by itself.
	_, err = s.c.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "foo", 1, 0)
		pipe.Set(ctx, "bar", 1, 0)
		return nil
	})
	check.True(err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT"), "a transaction: %v", err)
}

func (s suite) reload() { check.Reload(s.write, s.read) }

func (s suite) nodeDown() {
	tags := check.Tags()
	for _, tag := range tags {
		check.Must(s.c.Set(ctx, "{"+tag+"}:down", tag, 0).Result())
	}
	check.Please("down")
	for _, tag := range []string{tags[0], tags[2]} {
		for range 100 {
			equal(check.Must(s.c.Get(ctx, "{"+tag+"}:down").Result()), tag)
		}
	}
	check.True(s.c.Get(ctx, "{"+tags[1]+"}:down").Err() != nil, "a node that is down has answered")
	check.Please("up")
	check.Until(func() bool { return s.c.Get(ctx, "{"+tags[1]+"}:down").Val() == tags[1] })
	for number, value := range s.read() {
		equal(value[1:], strconv.Itoa(number))
	}
}

func (s suite) shardedPubSub() {
	for _, tag := range check.Tags() {
		subscription := s.c.SSubscribe(ctx, tag)
		check.Must(subscription.Receive(ctx))
		equal(check.Must(s.c.SPublish(ctx, tag, "news").Result()), int64(1))
		select {
		case message := <-subscription.Channel():
			equal(*message, redis.Message{Channel: tag, Payload: "news"})
		case <-time.After(10 * time.Second):
			panic("no message came")
		}
		subscription.Close()
	}
}
