// The server under test: a process with a directory of its own, killed at the end.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	process "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type server struct {
	binary  string
	threads int
	// Whether what was answered must be there after a kill.
	durable bool
	// Whether the values of the keys that a command names are in the log alone when it begins.
	cold bool
	// From how many bytes on a hash is a tree, unless it is 0.
	small int
	// Texts of scripts that clients call by their SHA-1.
	texts     []string
	directory string
	address   string
	process   *process.Cmd
	// Closed when the process has ended.
	ended chan struct{}
}

// portTaken says that another process has taken the port before the server did.
var portTaken = errors.New("the port is in use")

func newServer(binary string, threads int, p plan, small int) (*server, error) {
	directory, err := os.MkdirTemp("", "ferrite-linearizability-")
	if err != nil {
		return nil, err
	}
	s := &server{binary: binary, threads: threads, durable: p.crashes > 0, cold: p.cold, small: small, directory: directory}
	if p.scripts != "" {
		s.texts = allTexts()
	}
	return s, s.start()
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// start starts the process and waits until it answers, with its data loaded.
func (s *server) start() error {
	var err error
	for range 5 {
		if err = s.startOnce(); !errors.Is(err, portTaken) {
			return err
		}
	}
	return err
}

func (s *server) startOnce() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.address = fmt.Sprintf("127.0.0.1:%d", port)
	arguments := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.directory, "--save", ""}
	if s.durable {
		arguments = append(arguments, "--appendonly", "yes", "--appendfsync", "always")
	} else if s.cold {
		arguments = append(arguments, "--appendonly", "yes")
	} else {
		arguments = append(arguments, "--appendonly", "no")
	}
	if s.cold || s.small > 0 {
		arguments = append(arguments, "--enable-debug-command", "local")
	}
	if !strings.HasPrefix(filepath.Base(s.binary), "redis") {
		arguments = append(arguments, "--threads", strconv.Itoa(s.threads))
	}
	log, err := os.OpenFile(filepath.Join(s.directory, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = process.Command(s.binary, arguments...)
	s.process.Stdout, s.process.Stderr = log, log
	// A server must not outlive its tests, however they end.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		s.process.Wait()
		close(s.ended)
	}()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && s.isRunning(); time.Sleep(2 * time.Millisecond) {
		if c, err := dial(s.address); err == nil {
			err := c.expect("+PONG", "PING")
			if err == nil && s.cold {
				err = c.expect("+OK", "DEBUG", "OFFLOAD-ALL", "1")
			}
			if err == nil && s.small > 0 {
				err = c.expect("+OK", "DEBUG", "SMALL-BYTES", strconv.Itoa(s.small))
			}
			for at := 0; err == nil && at < len(s.texts); at++ {
				err = c.expect(shaOf(s.texts[at]), "SCRIPT", "LOAD", s.texts[at])
			}
			c.socket.Close()
			if err == nil {
				return nil
			}
		}
	}
	hasEnded := !s.isRunning()
	s.kill()
	output, _ := os.ReadFile(filepath.Join(s.directory, "output"))
	if hasEnded && bytes.Contains(output, []byte("Address already in use")) {
		os.Remove(filepath.Join(s.directory, "output"))
		return portTaken
	}
	return fmt.Errorf("%s does not answer: %s", s.binary, output)
}

func (s *server) isRunning() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// hasReadDisk returns an error if the server has read no value from its log since it was started: histories would say nothing about such
// values.
func (s *server) hasReadDisk() error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.socket.Close()
	info, err := c.ask("INFO", "everything")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(info, "\r\n") {
		if reads, found := strings.CutPrefix(line, "disk_reads:"); found && reads != "0" {
			return nil
		}
	}
	return fmt.Errorf("no value was read from the log")
}

// kill ends the process at once, and waits until it is gone.
func (s *server) kill() {
	s.process.Process.Kill()
	<-s.ended
}

// state says whether the process still runs, and what it wrote last.
func (s *server) state() string {
	const shown = 4096
	state := "it runs"
	if !s.isRunning() {
		state = "it has ended"
	}
	output, _ := os.ReadFile(filepath.Join(s.directory, "output"))
	return fmt.Sprintf("server: %s, and wrote last:\n%s\n", state, output[max(0, len(output)-shown):])
}

func (s *server) end() {
	s.kill()
	removeRings(s.directory)
	os.RemoveAll(s.directory)
}

// removeRings removes the rings that a killed server has left in the system's memory for the next start in a directory:
// their headers name it.
func removeRings(directory string) {
	rings, _ := filepath.Glob("/dev/shm/ferrite-*")
	for _, ring := range rings {
		file, err := os.Open(ring)
		if err != nil {
			continue
		}
		header := make([]byte, 4096)
		count, _ := io.ReadFull(file, header)
		file.Close()
		if bytes.Contains(header[:count], []byte(directory+"/")) {
			os.Remove(ring)
		}
	}
}
