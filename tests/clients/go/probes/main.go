// Command probes uses libraries for Go as their documentation begins, for tests/clients/libraries/measure. The first
// argument is the name of one. A library that works prints nothing and ends with 0.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

var (
	ctx    = context.Background()
	probes = map[string]func(*redis.Client) error{"redis_rate": redisRate}
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

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("LIBRARIES_PORT")})
	if err := probes[os.Args[1]](client); err != nil {
		fmt.Println("Error:", err)
		os.Exit(1)
	}
}
