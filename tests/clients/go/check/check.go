// Package check holds what the two Go clients share: where the servers are, assertions, and one printed line per check.
package check

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The servers that tests/clients/run has started: one open, one that wants Password.
var (
	Addr     = "127.0.0.1:" + os.Getenv("CLIENTS_PORT")
	Locked   = "127.0.0.1:" + os.Getenv("CLIENTS_LOCKED_PORT")
	Password = os.Getenv("CLIENTS_PASSWORD")
)

// Deepest is how many requests the longest pipeline has.
var Deepest = Must(strconv.Atoi(os.Getenv("CLIENTS_DEEPEST")))

// Depths are pipelines: how many requests, and the bytes of the value that each is answered with.
var Depths = [][2]int{{1, 1}, {Deepest, 1}, {Deepest / 10, 1000}, {Deepest / 1000, 100_000}, {Deepest / 10_000, 1_000_000}}

// EveryByte has each byte value once; Megabyte repeats it to 1 MiB.
var (
	EveryByte = everyByte()
	Megabyte  = string(bytes.Repeat([]byte(EveryByte), 4096))
)

func everyByte() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

// Check is one named check of a client.
type Check struct {
	Name string
	Body func()
}

// Module returns the version of a dependency as it was built in.
func Module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == path {
				return dependency.Version[1:]
			}
		}
	}
	return "unknown"
}

// Now is a moment by CLOCK_MONOTONIC in nanoseconds.
func Now() int64 {
	var moment unix.Timespec
	Must(0, unix.ClockGettime(unix.CLOCK_MONOTONIC, &moment))
	return moment.Nano()
}

// Equal panics unless both values are deeply equal and of one type.
func Equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("got %#v, expected %#v", actual, expected))
	}
}

// Between panics unless low < actual <= high.
func Between(actual, low, high time.Duration) {
	if actual <= low || actual > high {
		panic(fmt.Sprintf("got %v, expected above %v, at most %v", actual, low, high))
	}
}

// True panics with the message unless the condition holds.
func True(condition bool, format string, arguments ...any) {
	if !condition {
		panic(fmt.Sprintf(format, arguments...))
	}
}

// Must returns the value, or panics with the error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Run runs the checks in order, prints a line for each, and reports whether all passed.
func Run(mode string, checks []Check) bool {
	passed := true
	for _, check := range checks {
		if failure := attempt(check.Body); failure != nil {
			fmt.Printf("not ok %s %s: %v\n", mode, check.Name, failure)
			passed = false
		} else {
			fmt.Printf("ok %s %s\n", mode, check.Name)
		}
	}
	return passed
}

func attempt(body func()) (failure any) {
	defer func() { failure = recover() }()
	body()
	return nil
}
