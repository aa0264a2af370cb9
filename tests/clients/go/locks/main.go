// Command locks runs checks of redsync between processes: a lock excludes, its holder extends it, and after a kill of its holder
// it is free when its time to live ends, not before. No check measures a duration: moments are compared by the server's clock.
//
//	locks holder NAME MS    is a process that takes a lock, prints when that ends, and holds it until it is killed
//	locks counter           is a process that counts under a lock
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"ferrite.test/clients/check"
)

const (
	// clock is how far two clocks of one machine, and the milliseconds of a server, may be apart.
	clock  = 10 * time.Millisecond
	pause  = 10 * time.Millisecond
	long   = time.Minute
	short  = 500 * time.Millisecond
	rounds = 200
	tries  = 10_000
)

var (
	ctx    = context.Background()
	client = redis.NewClient(&redis.Options{Addr: check.Addr})
	locks  = redsync.New(goredis.NewPool(client))
)

// lock is one that is asked for until it is free.
func lock(name string, expiry time.Duration, more ...redsync.Option) *redsync.Mutex {
	options := []redsync.Option{redsync.WithExpiry(expiry), redsync.WithTries(tries), redsync.WithRetryDelay(pause)}
	return locks.NewMutex(name, append(options, more...)...)
}

func now() time.Time { return check.Must(client.Time(ctx).Result()) }

// count increments a number by GET and SET under a lock.
func count() {
	mutex := lock("count", long)
	for range rounds {
		check.Equal(mutex.Lock(), nil)
		number, err := client.Get(ctx, "number").Int()
		check.True(err == nil || err == redis.Nil, "%v", err)
		check.Equal(client.Set(ctx, "number", number+1, 0).Err(), nil)
		check.True(check.Must(mutex.Unlock()), "it was not held")
	}
}

func hold(name string, expiry time.Duration) {
	check.Equal(lock(name, expiry).Lock(), nil)
	fmt.Println(now().Add(check.Must(client.PTTL(ctx, name).Result())).UnixMilli())
	select {}
}

func process(words ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], words...)
	command.Stderr = os.Stderr
	return command
}

func excludes() {
	others := []*exec.Cmd{process("counter"), process("counter")}
	for _, other := range others {
		check.Equal(other.Start(), nil)
	}
	count()
	for _, other := range others {
		check.Equal(other.Wait(), nil)
	}
	check.Equal(check.Must(client.Get(ctx, "number").Int()), 3*rounds)
	check.Equal(check.Must(client.Exists(ctx, "count").Result()), int64(0))
}

func isHeld() {
	one, other := lock("held", long), lock("held", long, redsync.WithTries(1))
	check.Equal(one.Lock(), nil)
	var taken *redsync.ErrTaken
	check.True(errors.As(other.TryLock(), &taken), "two hold one lock")
	check.True(one.Until().After(time.Now()), "it has ended")
	check.True(check.Must(one.Valid()), "it is not valid")
	ok, err := other.Unlock()
	check.True(!ok && err != nil, "the lock of another is released")
	check.True(check.Must(one.Unlock()), "it was not held")
	check.Equal(other.TryLock(), nil)
	check.True(check.Must(other.Unlock()), "it was not held")
}

func holderKilled() {
	holder := process("holder", "killed", fmt.Sprint(short.Milliseconds()))
	output := check.Must(holder.StdoutPipe())
	check.Equal(holder.Start(), nil)
	line := check.Must(bufio.NewReader(output).ReadString('\n'))
	ends := time.UnixMilli(check.Must(strconv.ParseInt(strings.TrimSpace(line), 10, 64)))
	check.Equal(holder.Process.Kill(), nil)
	holder.Wait()
	mutex := lock("killed", long)
	check.Equal(mutex.Lock(), nil)
	has := now()
	check.True(!has.Before(ends.Add(-clock)), "it was free %v before its end", ends.Sub(has))
	check.True(check.Must(mutex.Unlock()), "it was not held")
}

// extended is a lock that lives through several of its times, and one that had ended before it was extended.
func extended() {
	mutex, other := lock("extended", short), lock("extended", long, redsync.WithTries(1))
	check.Equal(mutex.Lock(), nil)
	ends := now().Add(3 * short)
	for now().Before(ends) {
		check.True(check.Must(mutex.Extend()), "it was not held")
		check.True(other.TryLock() != nil, "two hold one lock")
		time.Sleep(pause)
	}
	check.True(check.Must(mutex.Unlock()), "it was not held")
	check.Equal(mutex.Lock(), nil)
	for check.Must(client.Exists(ctx, "extended").Result()) == 1 {
		time.Sleep(pause)
	}
	ok, err := mutex.Extend()
	check.True(!ok && err != nil, "an ended lock is extended")
	check.Equal(other.TryLock(), nil)
	ok, err = mutex.Unlock()
	check.True(!ok && err != nil, "an ended lock is released")
	check.True(check.Must(other.Unlock()), "it was not held")
}

// quorum is a lock on three databases, of which two decide.
func quorum() {
	var pools []*redis.Client
	for database := range 3 {
		pools = append(pools, redis.NewClient(&redis.Options{Addr: check.Addr, DB: database}))
	}
	all := redsync.New(goredis.NewPool(pools[0]), goredis.NewPool(pools[1]), goredis.NewPool(pools[2]))
	mutex := all.NewMutex("quorum", redsync.WithTries(1), redsync.WithExpiry(long))
	check.Equal(pools[0].Set(ctx, "quorum", "another", 0).Err(), nil)
	check.Equal(mutex.Lock(), nil)
	check.Equal(check.Must(pools[1].Get(ctx, "quorum").Result()), mutex.Value())
	check.True(check.Must(mutex.Unlock()), "it was not held")
	check.Equal(check.Must(pools[1].Exists(ctx, "quorum").Result()), int64(0))
	check.Equal(pools[1].Set(ctx, "quorum", "another", 0).Err(), nil)
	check.True(mutex.Lock() != nil, "one of three decides")
	check.Equal(check.Must(pools[2].Exists(ctx, "quorum").Result()), int64(0))
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "counter" {
		count()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "holder" {
		hold(os.Args[2], time.Duration(check.Must(strconv.Atoi(os.Args[3])))*time.Millisecond)
	}
	fmt.Println("version", check.Module("github.com/go-redsync/redsync/v4"))
	check.Must(client.FlushAll(ctx).Result())
	if !check.Run("redsync", []check.Check{
		{Name: "excludes", Body: excludes}, {Name: "is_held", Body: isHeld}, {Name: "holder_killed", Body: holderKilled},
		{Name: "extended", Body: extended}, {Name: "quorum", Body: quorum},
	}) {
		os.Exit(1)
	}
}
