// Linearizability: whatever many clients at once are told could have been told to one after the other.
//
// Each history is what eight clients did to a few keys, and saw, in a few hundred operations: GET SET INCRBY MGET MSET DEL
// RENAME COPY and others, alone, in transactions, and in transactions that watch. Porcupine looks for an order of all of them
// which agrees with their times and with what the sequential model (model.go) answers. With -crashes the server is killed
// meanwhile and started again: what was answered must still be there, what was not answered may have been done or not. With -cold each
// command finds the values of its keys in the log alone (DEBUG OFFLOAD-ALL), so that it is parked until they are read back. With
// -hashes most keys are hashes of a few fields (hashes.go), with -sets sets of a few members (sets.go), with -lists lists
// (lists.go), with -zsets sorted sets (zsets.go), with -streams streams with a consumer group (streams.go); with -small 64 these are
// trees (DEBUG SMALL-BYTES). With -scripts many requests run scripts on strings (scripts.go).
//
// The seed is printed with what fails; the operations are the same with the same seed, how threads take turns is not.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long the search for an order may take.
const searchTime = 2 * time.Minute

func main() {
	threads := flag.String("threads", "2,4", "numbers of `workers`, each of which gets all histories")
	histories := flag.Int("histories", 10, "how many `histories`")
	clients := flag.Int("clients", 8, "how many `clients` at once")
	operations := flag.Int("operations", 40, "`operations` of each client")
	keys := flag.Int("keys", 4, "how many `keys` there are")
	crashes := flag.Int("crashes", 0, "how often the server is killed in each history, with appendfsync always")
	cold := flag.Bool("cold", false, "whether values are in the log alone whenever a command begins")
	hashes := flag.Bool("hashes", false, "whether most keys are hashes")
	sets := flag.Bool("sets", false, "whether most keys are sets")
	lists := flag.Bool("lists", false, "whether most keys are lists")
	zsets := flag.Bool("zsets", false, "whether most keys are sorted sets")
	streams := flag.Bool("streams", false, "whether most keys are streams with a consumer group")
	scripts := flag.String("scripts", "", "the `kind` of scripts that many requests run: proven, alone, slow, or all")
	small := flag.Int("small", 0, "from how many `bytes` on a collection is a tree")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "what chance begins with")
	output := flag.String("output", os.TempDir(), "the `directory` for pictures of what went wrong")
	flag.Parse()
	isKind := *scripts == "" || scriptKinds[*scripts] != nil
	if flag.NArg() != 1 || !isKind || (*scripts != "" && (*hashes || *sets || *lists || *zsets || *streams)) || *clients > maxClients || *keys > maxKeys {
		fmt.Fprintf(os.Stderr, "usage: linearizability [options] SERVER, with at most %d clients and %d keys\n", maxClients, maxKeys)
		os.Exit(2)
	}
	p := plan{clients: *clients, operations: *operations, keys: *keys, crashes: *crashes, cold: *cold, hashes: *hashes, sets: *sets,
		lists: *lists, zsets: *zsets, streams: *streams, scripts: *scripts}
	passed, failed := 0, 0
	for _, word := range strings.Split(*threads, ",") {
		workers, err := strconv.Atoi(word)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		began := time.Now()
		good, bad, checked := check(flag.Arg(0), workers, *histories, *small, p, *seed, *output)
		passed, failed = passed+good, failed+bad
		values := ""
		if p.cold {
			values = ", cold values"
		}
		if p.hashes {
			values += ", hashes"
		}
		if p.sets {
			values += ", sets"
		}
		if p.lists {
			values += ", lists"
		}
		if p.zsets {
			values += ", sorted sets"
		}
		if p.streams {
			values += ", streams"
		}
		if p.scripts != "" {
			values += ", scripts: " + p.scripts
		}
		if *small > 0 {
			values += fmt.Sprintf(", trees from %d bytes on", *small)
		}
		fmt.Printf("%d workers: %d histories of %d clients on %d keys, %d crashes each%s: %d operations, %d violations, %.1f s\n",
			workers, *histories, p.clients, p.keys, p.crashes, values, checked, bad, time.Since(began).Seconds())
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// check makes histories and looks at each. Returns how many were good and bad, and how many operations they had.
func check(binary string, workers, histories, small int, p plan, seed uint64, output string) (good, bad, operations int) {
	s, err := newServer(binary, workers, p, small)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 0, histories, 0
	}
	defer s.end()
	undecided := 0
	for number := range histories {
		history, err := makeHistory(s, p, number, seed+uint64(number))
		operations += len(history)
		if err != nil {
			fmt.Printf("history %d with %d workers, seed %d: %v\n%s", number, workers, seed, err, s.state())
			return good, bad + histories - number, operations
		}
		result, information := porcupine.CheckOperationsVerbose(model(p), history, searchTime)
		if result == porcupine.Ok {
			good++
			continue
		}
		// Where many operations had no reply there may be too many orders to search. That says nothing of the server.
		if result == porcupine.Unknown && undecided < 1+histories/20 {
			undecided++
			fmt.Printf("history %d with %d workers, seed %d: has too many orders to be decided\n", number, workers, seed)
			continue
		}
		bad++
		path := filepath.Join(output, fmt.Sprintf("history-%d-%d-%d", seed, workers, number))
		fmt.Printf("history %d with %d workers, seed %d: %s; see %s.{txt,html}\n", number, workers, seed, result, path)
		if err := write(path, p, history, information); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if p.cold && histories > 0 {
		if err := s.hasReadDisk(); err != nil {
			fmt.Println(err)
			return good, bad + 1, operations
		}
	}
	return good, bad, operations
}

// write keeps a history as text and as a picture.
func write(path string, p plan, history []porcupine.Operation, information porcupine.LinearizationInfo) error {
	sort.Slice(history, func(i, j int) bool { return history[i].Call < history[j].Call })
	var lines strings.Builder
	for _, op := range history {
		fmt.Fprintln(&lines, describe(op))
	}
	if err := os.WriteFile(path+".txt", []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return porcupine.VisualizePath(model(p), information, path+".html")
}

// model is the specification, as Porcupine takes it. Where the server is killed, an operation that got no answer leads to two states.
func model(p plan) porcupine.Model {
	describe := func(input, output any) string { return fmt.Sprintf("%v -> %v", input, output) }
	if p.crashes == 0 {
		return porcupine.Model{
			Init: func() any { return State{} },
			Step: func(state, input, output any) (bool, any) {
				next, reply := apply(state.(State), input.(Op))
				return reply == output.(string), next
			},
			Hash:              func(state any) uint64 { return hash(state.(State)) },
			DescribeOperation: describe,
		}
	}
	either := porcupine.NondeterministicModel{
		Init: func() []any { return []any{State{}} },
		Step: func(state, input, output any) []any {
			next, reply := apply(state.(State), input.(Op))
			switch output.(string) {
			case reply:
				return []any{next}
			case unknown:
				return []any{state, next}
			}
			return nil
		},
		Hash:              func(state any) uint64 { return hash(state.(State)) },
		DescribeOperation: describe,
	}
	return either.ToModel()
}
