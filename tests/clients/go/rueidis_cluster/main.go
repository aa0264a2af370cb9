// Command rueidis_cluster runs the checks of tests/clients/cluster.py with the cluster client of rueidis.
package main

import (
	"context"
	"fmt"
	"os"
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

type suite struct{ c rueidis.Client }

func main() {
	fmt.Println("version", check.Module("github.com/redis/rueidis"))
	s := suite{check.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: check.Nodes()[:1]}))}
	defer s.c.Close()
	if !check.Run("cluster", []check.Check{
		{Name: "spread", Body: s.spread}, {Name: "hash_tags", Body: s.hashTags}, {Name: "pipeline", Body: s.pipeline},
		{Name: "transaction", Body: s.transaction}, {Name: "crossslot", Body: s.crossslot}, {Name: "reload", Body: s.reload},
		{Name: "node_down", Body: s.nodeDown}, {Name: "sharded_pubsub", Body: s.shardedPubSub},
		{Name: "cache", Body: s.cache},
	}) {
		os.Exit(1)
	}
}

func key(number int) string { return "key:" + strconv.Itoa(number) }

func (s suite) set(key, value string) rueidis.Completed {
	return s.c.B().Set().Key(key).Value(value).Build()
}

func (s suite) get(key string) rueidis.Completed { return s.c.B().Get().Key(key).Build() }

// write gives every key a value: the first thousand by themselves, the others in one call.
func (s suite) write(mark string) {
	values, commands := check.Marked(mark), []rueidis.Completed{}
	for number, value := range values {
		if number < 1000 {
			equal(check.Must(s.c.Do(ctx, s.set(key(number), value)).ToString()), "OK")
		} else {
			commands = append(commands, s.set(key(number), value))
		}
	}
	for _, reply := range s.c.DoMulti(ctx, commands...) {
		equal(check.Must(reply.ToString()), "OK")
	}
}

// read returns the values of all keys: the last thousand one by one, the others from one call.
func (s suite) read() []string {
	last, commands, values := []string{}, []rueidis.Completed{}, []string{}
	for number := check.Keys - 1000; number < check.Keys; number++ {
		last = append(last, check.Must(s.c.Do(ctx, s.get(key(number))).ToString()))
	}
	for number := range check.Keys - 1000 {
		commands = append(commands, s.get(key(number)))
	}
	for _, reply := range s.c.DoMulti(ctx, commands...) {
		values = append(values, check.Must(reply.ToString()))
	}
	return append(values, last...)
}

func (s suite) spread() {
	s.write("a")
	equal(s.read(), check.Marked("a"))
	all, nodes := int64(0), s.c.Nodes()
	equal(len(nodes), 3)
	for _, node := range nodes {
		size := check.Must(node.Do(ctx, node.B().Dbsize().Build()).AsInt64())
		check.True(size > check.Keys/4, "a node has %d keys", size)
		all += size
	}
	equal(all, int64(check.Keys))
}

func (s suite) hashTags() {
	for _, tag := range check.Tags() {
		keys, pairs := []string{}, s.c.B().Mset().KeyValue()
		for number := range 100 {
			keys = append(keys, fmt.Sprintf("{%s}:%d", tag, number))
			pairs = pairs.KeyValue(keys[number], keys[number])
		}
		equal(check.Must(s.c.Do(ctx, pairs.Build()).ToString()), "OK")
		equal(check.Must(s.c.Do(ctx, s.c.B().Mget().Key(keys...).Build()).AsStrSlice()), keys)
		equal(check.Must(s.c.Do(ctx, s.c.B().Del().Key(keys...).Build()).AsInt64()), int64(100))
	}
	// Over several nodes, which a helper does by itself.
	keys, pairs := []string{}, map[string]string{}
	for number := range 100 {
		keys = append(keys, fmt.Sprintf("many:%d", number))
		pairs[keys[number]] = keys[number]
	}
	for _, failure := range rueidis.MSet(s.c, ctx, pairs) {
		equal(failure, nil)
	}
	for name, message := range check.Must(rueidis.MGet(s.c, ctx, keys)) {
		equal(check.Must(message.ToString()), name)
	}
	rueidis.MDel(s.c, ctx, keys)
}

func (s suite) pipeline() {
	commands := []rueidis.Completed{}
	for number := range 500 {
		name := fmt.Sprintf("pipe:%d", number)
		commands = append(commands,
			s.c.B().Incrby().Key(name).Increment(int64(number)).Build(), s.get(name), s.c.B().Del().Key(name).Build())
	}
	for at, reply := range s.c.DoMulti(ctx, commands...) {
		equal(check.Must(reply.AsInt64()), []int64{int64(at / 3), int64(at / 3), 1}[at%3])
	}
}

func (s suite) transaction() {
	for _, tag := range check.Tags() {
		count := "{" + tag + "}:count"
		check.Must(0, s.c.Dedicated(func(c rueidis.DedicatedClient) error {
			check.Must(c.Do(ctx, c.B().Watch().Key(count).Build()).ToString())
			check.True(rueidis.IsRedisNil(c.Do(ctx, c.B().Get().Key(count).Build()).Error()), "%s exists", count)
			replies := c.DoMulti(ctx,
				c.B().Multi().Build(), c.B().Set().Key(count).Value("1").Build(), c.B().Incr().Key(count).Build(),
				c.B().Del().Key(count).Build(), c.B().Exec().Build())
			done := check.Must(replies[4].ToArray())
			equal(check.Must(done[1].AsInt64()), int64(2))
			return nil
		}))
	}
}

func (s suite) crossslot() {
	// Keys of several slots in one command that the client builds are its own panic.
	node := s.c.Nodes()[check.Nodes()[0]]
	err := node.Do(ctx, node.B().Arbitrary("MSET", "foo", "1", "bar", "2").Build()).Error()
	reply, isReply := rueidis.IsRedisErr(err)
	check.True(isReply, "not a reply: %v", err)
	equal(reply.Error(), "CROSSSLOT Keys in request don't hash to the same slot")
}

func (s suite) reload() { check.Reload(s.write, s.read) }

func (s suite) nodeDown() {
	tags := check.Tags()
	for _, tag := range tags {
		check.Must(s.c.Do(ctx, s.set("{"+tag+"}:down", tag)).ToString())
	}
	check.Please("down")
	for _, tag := range []string{tags[0], tags[2]} {
		for range 100 {
			equal(check.Must(s.c.Do(ctx, s.get("{"+tag+"}:down")).ToString()), tag)
		}
	}
	// It tries again for as long as it may.
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	check.True(s.c.Do(soon, s.get("{"+tags[1]+"}:down")).Error() != nil, "a node that is down has answered")
	check.Please("up")
	check.Until(func() bool {
		value, _ := s.c.Do(ctx, s.get("{"+tags[1]+"}:down")).ToString()
		return value == tags[1]
	})
	for number, value := range s.read() {
		equal(value[1:], strconv.Itoa(number))
	}
}

func (s suite) shardedPubSub() {
	for _, tag := range check.Tags() {
		var release func()
		messages := make(chan rueidis.PubSubMessage, 1)
		// A dedicated connection follows no MOVED: the client has to know the map of today, which a read that
		// is moved makes it fetch.
		check.Until(func() bool {
			s.c.Do(ctx, s.get(tag))
			var c rueidis.DedicatedClient
			c, release = s.c.Dedicate()
			c.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(message rueidis.PubSubMessage) { messages <- message }})
			err := c.Do(ctx, c.B().Ssubscribe().Channel(tag).Build()).Error()
			if err != nil {
				release()
			}
			return err == nil
		})
		equal(check.Must(s.c.Do(ctx, s.c.B().Spublish().Channel(tag).Message("news").Build()).AsInt64()), int64(1))
		select {
		case message := <-messages:
			equal([]string{message.Channel, message.Message}, []string{tag, "news"})
		case <-time.After(10 * time.Second):
			panic("no message came")
		}
		release()
	}
}

// cache reads through the copies that the client keeps, of which a node that loses keys tells that they are worth nothing.
func (s suite) cache() {
	read := func(number int) string {
		return check.Must(s.c.DoCache(ctx, s.c.B().Get().Key(key(number)).Cache(), time.Minute).ToString())
	}
	s.write("c")
	for number := range 100 {
		equal(read(number), "c"+strconv.Itoa(number))
	}
	check.Please("swap")
	s.write("d")
	for number := range 100 {
		check.Until(func() bool { return strings.HasPrefix(read(number), "d") })
	}
}
