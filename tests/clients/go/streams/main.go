// Command streams is a producer and a worker of a queue on a stream, with go-redis, for tests/clients/streams.py, which
// says what they print.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"ferrite.test/clients/check"
)

const (
	stream, group = "numbers", "workers"
	batch         = 10
	block         = 50 * time.Millisecond
	idle          = 200 * time.Millisecond
	pause         = 10 * time.Millisecond
)

var (
	ctx      = context.Background()
	hasEnded atomic.Bool
)

// isCut tells whether a request got no reply. An error that the server answers is one.
func isCut(err error) bool {
	var answered redis.Error
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	if errors.As(err, &answered) {
		panic(err)
	}
	time.Sleep(pause)
	return true
}

func produce(client *redis.Client, name string) {
	for serial := 0; !hasEnded.Load(); serial++ {
		number := fmt.Sprintf("%s%06d", name, serial)
		id, err := client.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"number", number}}).Result()
		if isCut(err) {
			fmt.Println("cut", number)
			continue
		}
		fmt.Println("added", number, id)
	}
}

func work(client *redis.Client, name string, holdAfter int) {
	acknowledged := 0
	for !hasEnded.Load() {
		entries := receive(client, name)
		if len(entries) > 0 && holdAfter >= 0 && acknowledged >= holdAfter {
			fmt.Println("holding")
			for !hasEnded.Load() {
				time.Sleep(pause)
			}
			return
		}
		for _, entry := range entries {
			if isCut(client.XAck(ctx, stream, group, entry.ID).Err()) {
				fmt.Println("unsure", entry.ID)
				continue
			}
			fmt.Println("acked", check.Now(), entry.ID)
			acknowledged++
		}
	}
}

// receive returns entries that others have left, or new ones.
func receive(client *redis.Client, name string) []redis.XMessage {
	asked, how := check.Now(), "claimed"
	claim := redis.XAutoClaimArgs{Stream: stream, Group: group, Consumer: name, MinIdle: idle, Start: "0-0", Count: batch}
	entries, _, err := client.XAutoClaim(ctx, &claim).Result()
	if !isCut(err) && len(entries) == 0 {
		asked, how = check.Now(), "new"
		read := redis.XReadGroupArgs{Group: group, Consumer: name, Streams: []string{stream, ">"}, Count: batch, Block: block}
		found, err := client.XReadGroup(ctx, &read).Result()
		if !isCut(err) && len(found) > 0 {
			entries = found[0].Messages
		}
	}
	for _, entry := range entries {
		fmt.Println("got", asked, how, entry.ID, entry.Values["number"])
	}
	return entries
}

func main() {
	part, words := os.Args[1], os.Args[2:]
	if part == "version" {
		fmt.Println("go-redis", check.Module("github.com/redis/go-redis/v9"))
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		hasEnded.Store(true)
	}()
	options := redis.Options{Addr: "127.0.0.1:" + words[0]}
	if part == "producer" {
		// A request that got no reply is not sent again.
		options.MaxRetries = -1
		produce(redis.NewClient(&options), words[1])
		return
	}
	holdAfter := -1
	if len(words) > 2 {
		holdAfter = check.Must(strconv.Atoi(words[2]))
	}
	work(redis.NewClient(&options), words[1], holdAfter)
}
