package check

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Keys is how many keys `key:0`, `key:1`, ... the checks of a cluster write.
const Keys = 10_000

// Nodes are the addresses of three nodes, Tags hash tags at home at each of them.
func Nodes() []string { return strings.Fields(os.Getenv("CLIENTS_NODES")) }
func Tags() []string  { return strings.Fields(os.Getenv("CLIENTS_TAGS")) }

var answers = bufio.NewReader(os.Stdin)

// Please asks the runner for something, and waits until it is done.
func Please(wish string) {
	fmt.Println("please", wish)
	Equal(strings.TrimSpace(Must(answers.ReadString('\n'))), "done")
}

// Until asks again every few milliseconds until the condition holds.
func Until(holds func() bool) {
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("it did not come true")
}

// Marked are the values of all keys with one mark.
func Marked(mark string) []string {
	values := make([]string, Keys)
	for number := range values {
		values[number] = mark + strconv.Itoa(number)
	}
	return values
}

// Reload is the check of maps that change while a client runs: `write` gives every key a value with a mark, `read` returns the values.
func Reload(write func(mark string), read func() []string) {
	Please("swap")
	write("b")
	Equal(read(), Marked("b"))
	Please("swap")
	// What has moved lies where it was before, with the values of then.
	values := read()
	moved := 0
	for number, value := range values {
		if value == "a"+strconv.Itoa(number) {
			moved++
		} else {
			Equal(value, "b"+strconv.Itoa(number))
		}
	}
	Equal(strconv.Itoa(moved), os.Getenv("CLIENTS_MOVED"))
	Please("swap")
	Equal(read(), Marked("b"))
	Please("swap")
	Equal(read(), values)
}
