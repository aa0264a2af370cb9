// Command probes uses libraries for Go as their documentation begins, for tests/clients/libraries/measure. The first
// argument is the name of one. A library that works prints nothing and ends with 0.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

var (
	ctx    = context.Background()
	probes = map[string]func(*redis.Client) error{
		"asynq": jobs, "go_redis_streams": streams, "redis_rate": redisRate, "redsync": lock,
	}
)

func redisRate(client *redis.Client) error {
	limiter := redis_rate.NewLimiter(client)
	for _, expected := range []int{1, 1, 0} {
		result, err := limiter.Allow(ctx, "project:123", redis_rate.PerMinute(2))
		if err != nil {
			return err
		}
		if result.Allowed != expected {
			return fmt.Errorf("%d instead of %d", result.Allowed, expected)
		}
	}
	return nil
}

func lock(client *redis.Client) error {
	mutex := redsync.New(goredis.NewPool(client)).NewMutex("mutex")
	if err := mutex.Lock(); err != nil {
		return err
	}
	if _, err := mutex.Extend(); err != nil {
		return err
	}
	_, err := mutex.Unlock()
	return err
}

// jobs is a task at once, one that is due later, and one that may be there only once.
func jobs(client *redis.Client) error {
	server := asynq.NewServerFromRedisClient(client, asynq.Config{LogLevel: asynq.ErrorLevel, DelayedTaskCheckInterval: time.Second})
	heard := make(chan string, 2)
	handle := func(_ context.Context, task *asynq.Task) error {
		heard <- string(task.Payload())
		_, err := task.ResultWriter().Write([]byte("done"))
		return err
	}
	tasks := asynq.NewClientFromRedisClient(client)
	for payload, options := range map[string][]asynq.Option{
		"now":   {asynq.Unique(time.Minute), asynq.Retention(time.Minute)},
		"later": {asynq.ProcessIn(2 * time.Second)},
	} {
		if _, err := tasks.Enqueue(asynq.NewTask("kind", []byte(payload)), options...); err != nil {
			return err
		}
	}
	if _, err := tasks.Enqueue(asynq.NewTask("kind", []byte("now")), asynq.Unique(time.Minute)); !errors.Is(err, asynq.ErrDuplicateTask) {
		return fmt.Errorf("%v instead of a duplicate", err)
	}
	if err := server.Start(asynq.HandlerFunc(handle)); err != nil {
		return err
	}
	defer server.Shutdown()
	for _, expected := range []string{"now", "later"} {
		if found := <-heard; found != expected {
			return fmt.Errorf("%s instead of %s", found, expected)
		}
	}
	return nil
}

// streams is two consumers of one group, which wait before a producer adds entries.
func streams(producer *redis.Client) error {
	const count = 10
	if err := producer.XGroupCreateMkStream(ctx, "stream", "group", "$").Err(); err != nil {
		return err
	}
	heard, failed := make(chan string, count), make(chan error, 2)
	for _, name := range []string{"one", "other"} {
		client := redis.NewClient(producer.Options())
		go func() {
			read := &redis.XReadGroupArgs{Group: "group", Consumer: name, Streams: []string{"stream", ">"}, Count: 1, Block: 10 * time.Second}
			for {
				found, err := client.XReadGroup(ctx, read).Result()
				if err != nil {
					failed <- err
					return
				}
				entry := found[0].Messages[0]
				if err := client.XAck(ctx, "stream", "group", entry.ID).Err(); err != nil {
					failed <- err
					return
				}
				heard <- entry.Values["n"].(string)
			}
		}()
	}
	for n := range count {
		if err := producer.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []any{"n", n}}).Err(); err != nil {
			return err
		}
	}
	numbers := map[string]bool{}
	for range count {
		select {
		case number := <-heard:
			numbers[number] = true
		case err := <-failed:
			return err
		}
	}
	if len(numbers) != count {
		return fmt.Errorf("%v instead of %d numbers", numbers, count)
	}
	pending, err := producer.XPending(ctx, "stream", "group").Result()
	if err == nil && pending.Count != 0 {
		err = fmt.Errorf("%d are pending", pending.Count)
	}
	return err
}

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("LIBRARIES_PORT")})
	if err := probes[os.Args[1]](client); err != nil {
		fmt.Println("Error:", err)
		os.Exit(1)
	}
}
