// Command limits runs checks of redis_rate with two clients at once, each with a pool of connections of its own: the
// limit is exact, and requests are allowed anew at its rate, not before. No check measures a duration: moments are
// compared by the server's clock.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"ferrite.test/clients/check"
)

const (
	burst = 20
	// clock is how far two clocks of one machine, and the milliseconds of a server, may be apart.
	clock = 10 * time.Millisecond
)

var (
	ctx = context.Background()
	// slow allows nothing anew while a check runs: one request in an hour.
	slow = redis_rate.Limit{Rate: burst, Burst: burst, Period: burst * time.Hour}
	// quick allows one request anew in each interval.
	quick    = redis_rate.Limit{Rate: 10, Burst: 2, Period: time.Second}
	interval = quick.Period / time.Duration(quick.Rate)
)

// suite is two clients of the emptied server, and a limiter of each.
type suite struct {
	clients  []*redis.Client
	limiters []*redis_rate.Limiter
}

func newSuite() suite {
	var s suite
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: check.Addr})
		s.clients = append(s.clients, client)
		s.limiters = append(s.limiters, redis_rate.NewLimiter(client))
	}
	check.Must(s.clients[0].FlushAll(ctx).Result())
	return s
}

// together sums the results of ask, called by four goroutines for each limiter at once.
func (s suite) together(ask func(*redis_rate.Limiter) int) int {
	var sum atomic.Int64
	var failure atomic.Value
	var asking sync.WaitGroup
	for _, limiter := range s.limiters {
		for range 4 {
			asking.Go(func() {
				defer func() {
					if failed := recover(); failed != nil {
						failure.Store(fmt.Sprint(failed))
					}
				}()
				sum.Add(int64(ask(limiter)))
			})
		}
	}
	asking.Wait()
	if failed := failure.Load(); failed != nil {
		panic(failed)
	}
	return int(sum.Load())
}

// allow asks for single requests, twice as many as the limit allows.
func (s suite) allow() {
	allowed := s.together(func(limiter *redis_rate.Limiter) int {
		sum := 0
		for range burst / 4 {
			sum += check.Must(limiter.Allow(ctx, "allow", slow)).Allowed
		}
		return sum
	})
	check.Equal(allowed, burst)
	result := check.Must(s.limiters[0].Allow(ctx, "allow", slow))
	check.Equal([]int{result.Allowed, result.Remaining}, []int{0, 0})
	check.True(result.RetryAfter > 0 && result.ResetAfter > 0, "no time until the next: %+v", result)
}

// allowAtMost asks for three requests at a time; the last are fewer.
func (s suite) allowAtMost() {
	allowed := s.together(func(limiter *redis_rate.Limiter) int {
		sum := 0
		for range burst / 4 {
			sum += check.Must(limiter.AllowAtMost(ctx, "at most", slow, 3)).Allowed
		}
		return sum
	})
	check.Equal(allowed, burst)
}

// reset allows all requests again.
func (s suite) reset() {
	check.Equal(check.Must(s.limiters[0].AllowN(ctx, "reset", slow, burst)).Allowed, burst)
	check.Equal(check.Must(s.limiters[1].Allow(ctx, "reset", slow)).Allowed, 0)
	check.Equal(s.limiters[1].Reset(ctx, "reset"), nil)
	check.Equal(check.Must(s.limiters[0].AllowN(ctx, "reset", slow, burst)).Allowed, burst)
}

func (s suite) now() time.Time { return check.Must(s.clients[0].Time(ctx).Result()) }

// renews asks without a pause, with both limiters in turn, until requests beyond the burst were refused, then allowed.
func (s suite) renews() {
	began, refused := s.now(), false
	for allowed, asked := 0, 0; !refused || allowed < quick.Burst+5; asked++ {
		if check.Must(s.limiters[asked%2].Allow(ctx, "renews", quick)).Allowed == 0 {
			refused = true
			continue
		}
		allowed++
		most := quick.Burst + int((s.now().Sub(began)+clock)/interval)
		check.True(allowed <= most, "%d requests were allowed, %d at most by the rate", allowed, most)
	}
}

func main() {
	fmt.Println("version", check.Module("github.com/go-redis/redis_rate/v10"))
	s := newSuite()
	if !check.Run("redis_rate", []check.Check{
		{Name: "allow", Body: s.allow}, {Name: "allow_at_most", Body: s.allowAtMost},
		{Name: "reset", Body: s.reset}, {Name: "renews", Body: s.renews},
	}) {
		os.Exit(1)
	}
}
