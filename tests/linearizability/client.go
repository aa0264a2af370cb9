// A connection: requests out, replies in, as text that can be compared.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// How long a reply may take before the server counts as stuck.
const patience = 60 * time.Second

type connection struct {
	socket net.Conn
	input  *bufio.Reader
	output []byte
}

func dial(address string) (*connection, error) {
	socket, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	// If nobody listens, and the system gives the socket the same port as its own, it is connected to itself.
	if socket.LocalAddr().String() == socket.RemoteAddr().String() {
		socket.Close()
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	return &connection{socket: socket, input: bufio.NewReader(socket)}, nil
}

// add puts a request behind the others that `flush` will send in one piece.
func (c *connection) add(words ...string) {
	c.output = fmt.Appendf(c.output, "*%d\r\n", len(words))
	for _, word := range words {
		c.output = fmt.Appendf(c.output, "$%d\r\n%s\r\n", len(word), word)
	}
}

func (c *connection) flush() error {
	c.socket.SetDeadline(time.Now().Add(patience))
	_, err := c.socket.Write(c.output)
	c.output = c.output[:0]
	return err
}

// ask sends one request and waits for its reply.
func (c *connection) ask(words ...string) (string, error) {
	c.add(words...)
	if err := c.flush(); err != nil {
		return "", err
	}
	return c.read()
}

// expect sends one request, to which there is one right reply.
func (c *connection) expect(right string, words ...string) error {
	reply, err := c.ask(words...)
	if err == nil && reply != right {
		err = fmt.Errorf("%s: %s", strings.Join(words, " "), reply)
	}
	return err
}

// read returns the next reply: `+OK`, `:1`, `-ERR ...`, the text of a bulk string, `nil`, or `[...]` around those of an array.
func (c *connection) read() (string, error) {
	replies, reply, err := c.readItems()
	if err == nil && replies != nil {
		return array(replies), nil
	}
	return reply, err
}

// readRepeated reads an array in which the same items come again and again, and returns them once.
func (c *connection) readRepeated(count int) (string, error) {
	replies, reply, err := c.readItems()
	if err != nil || replies == nil {
		return reply, err
	}
	for at := range replies {
		if replies[at] != replies[at%count] {
			return fmt.Sprintf("[%s at first, then %s]", replies[at%count], replies[at]), nil
		}
	}
	return array(replies[:count]), nil
}

// readItems reads one reply; of an array its items.
func (c *connection) readItems() ([]string, string, error) {
	line, err := c.input.ReadString('\n')
	if err != nil {
		return nil, "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '+', ':', '-':
		return nil, line, nil
	}
	count, err := strconv.Atoi(line[1:])
	if err != nil || (line[0] != '$' && line[0] != '*') {
		return nil, "", fmt.Errorf("not a reply: %q", line)
	}
	if count < 0 {
		return nil, "nil", nil
	}
	if line[0] == '$' {
		text := make([]byte, count+2)
		if _, err := io.ReadFull(c.input, text); err != nil {
			return nil, "", err
		}
		return nil, string(text[:count]), nil
	}
	replies := make([]string, count)
	for at := range replies {
		if replies[at], err = c.read(); err != nil {
			return nil, "", err
		}
	}
	return replies, "", nil
}
