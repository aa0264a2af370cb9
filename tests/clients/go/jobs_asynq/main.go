// Command jobs_asynq is asynq, for tests/clients/jobs.py, which says what its parts print.
//
// A job runs at least once. A worker has a lease of 30 s, which it renews; a job whose lease ended 30 s ago is given to another
// worker within a minute. Jobs of one priority are a queue of their own, and times are whole seconds.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"ferrite.test/clients/check"
)

const (
	capabilities = "at-least-once delays order priorities repeats=1000 results scheduler"
	// kind is the type of all jobs; the payload is a job's name.
	kind      = "perform"
	look      = 50 * time.Millisecond
	pause     = 10 * time.Millisecond
	retention = 10 * time.Minute
)

var (
	ctx = context.Background()
	// expected are beginnings of errors that a server may answer: to a script, of a job that is done; after a start; and to
	// what a client asks about itself.
	expected = []string{"NOT FOUND", "NOSCRIPT", "LOADING", "ERR unknown subcommand"}
)

// observer panics where the server answers that a request is wrong, and tells of jobs that the server has noted as done.
type observer struct{ done func(id string) }

func (o observer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (o observer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o observer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		var answered redis.Error
		if errors.As(err, &answered) && err != redis.Nil && !begins(err.Error(), expected) {
			panic(fmt.Sprint(command.Args(), err))
		}
		if err == nil {
			o.look(command)
		}
		return err
	}
}

func begins(text string, beginnings []string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}

// look finds asynq's script that moves a job to those that are done: EVAL or EVALSHA, the script, and six keys.
func (o observer) look(command redis.Cmder) {
	words := command.Args()
	if o.done == nil || len(words) < 10 || fmt.Sprint(words[2]) != "6" || !strings.HasSuffix(fmt.Sprint(words[5]), ":completed") {
		return
	}
	o.done(fmt.Sprint(words[9]))
}

func connect(port string, retries int, done func(string)) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: retries})
	client.AddHook(observer{done})
	return client
}

// options are numbers by their words, such as `delay=100`.
func options(words []string) map[string]int {
	found := map[string]int{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		found[name] = check.Must(strconv.Atoi(value))
	}
	return found
}

// queueOf is the queue of a priority.
func queueOf(name string, priority int) string {
	if priority == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, priority)
}

type producer struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	// queues are those that jobs were added to, by their names without priorities.
	queues map[string]map[string]bool
}

func produce(port string) {
	// A request that got no reply is not sent again.
	connection := connect(port, -1, nil)
	p := producer{asynq.NewClientFromRedisClient(connection), asynq.NewInspectorFromRedisClient(connection), map[string]map[string]bool{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "add":
			p.add(words[1], words[2], options(words[3:]))
		case "left":
			fmt.Println("left", words[1], insist(func() (int, error) { return p.left(words[1]) }))
		case "result":
			fmt.Println("result", words[2], insist(func() (string, error) { return p.result(words[3]) }))
		}
	}
}

// insist asks until there is an answer.
func insist[T any](ask func() (T, error)) T {
	for {
		answer, err := ask()
		if err == nil {
			return answer
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(pause)
	}
}

func (p producer) add(name, job string, chosen map[string]int) {
	queue, asked := queueOf(name, chosen["priority"]), check.Now()
	if p.queues[name] == nil {
		p.queues[name] = map[string]bool{}
	}
	p.queues[name][queue] = true
	how := []asynq.Option{asynq.Queue(queue), asynq.Retention(retention)}
	if delay := chosen["delay"]; delay > 0 {
		// asynq keeps whole seconds, and leaves out what is more.
		due := time.Now().Add(time.Duration(delay)*time.Millisecond + time.Second - time.Nanosecond)
		how = append(how, asynq.ProcessAt(due.Truncate(time.Second)))
	}
	info, err := p.client.Enqueue(asynq.NewTask(kind, []byte(job)), how...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(pause)
		fmt.Println("cut", asked, job)
		return
	}
	fmt.Println("added", asked, job, queue+"/"+info.ID)
}

func (p producer) left(name string) (int, error) {
	sum := 0
	for queue := range p.queues[name] {
		info, err := p.inspector.GetQueueInfo(queue)
		if errors.Is(err, asynq.ErrQueueNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += info.Size - info.Completed
	}
	return sum, nil
}

func (p producer) result(identifier string) (string, error) {
	queue, id, _ := strings.Cut(identifier, "/")
	info, err := p.inspector.GetTaskInfo(queue, id)
	if errors.Is(err, asynq.ErrTaskNotFound) || err == nil && len(info.Result) == 0 {
		return "none", nil
	}
	if err != nil {
		return "", err
	}
	return string(info.Result), nil
}

// worker does jobs, and holds some once it has finished enough.
type worker struct {
	chosen   map[string]int
	mutex    sync.Mutex
	jobs     map[string]string
	finished int
}

func (w *worker) ProcessTask(_ context.Context, task *asynq.Task) error {
	job := string(task.Payload())
	fmt.Println("started", check.Now(), job)
	w.mutex.Lock()
	w.jobs[task.ResultWriter().TaskID()] = job
	hold, limited := w.chosen["hold"]
	isHeld := limited && w.finished >= hold
	w.mutex.Unlock()
	if isHeld {
		fmt.Println("holding", job)
		select {}
	}
	time.Sleep(time.Duration(w.chosen["work"]) * time.Millisecond)
	_, err := task.ResultWriter().Write([]byte(strings.ToUpper(job)))
	return err
}

func (w *worker) done(id string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	fmt.Println("finished", check.Now(), w.jobs[id])
	w.finished++
}

func work(port, name string, chosen map[string]int) {
	w := &worker{chosen: chosen, jobs: map[string]string{}}
	queues := map[string]int{}
	for priority := range max(chosen["priorities"], 1) {
		if chosen["priorities"] == 0 {
			queues[name] = 1
		} else {
			// A higher number goes first.
			queues[queueOf(name, priority+1)] = chosen["priorities"] - priority
		}
	}
	server := asynq.NewServerFromRedisClient(connect(port, 0, w.done), asynq.Config{
		Concurrency: chosen["concurrency"], Queues: queues, StrictPriority: true, TaskCheckInterval: look, DelayedTaskCheckInterval: look,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	check.Must(0, server.Start(w))
	io.Copy(io.Discard, os.Stdin)
	server.Shutdown()
}

// schedule adds a job again and again.
func schedule(port, name, job, every string) {
	scheduler := asynq.NewSchedulerFromRedisClient(connect(port, -1, nil), nil)
	task := asynq.NewTask(kind, []byte(job), asynq.Queue(name), asynq.Retention(retention))
	check.Must(scheduler.Register("@every "+every+"ms", task))
	check.Must(0, scheduler.Start())
	io.Copy(io.Discard, os.Stdin)
	scheduler.Shutdown()
}

func main() {
	part, words := os.Args[1], os.Args[2:]
	switch part {
	case "version":
		fmt.Println("asynq", check.Module("github.com/hibiken/asynq"))
	case "capabilities":
		fmt.Println(capabilities)
	case "producer":
		produce(words[0])
	case "worker":
		work(words[0], words[1], options(words[2:]))
	case "scheduler":
		schedule(words[0], words[1], words[2], words[3])
	}
}
