package main

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// What a worker sends along with the errors of a command. The first proves that the command began, the
// others that the link still reaches the worker: pings end at the API server.
const (
	begun = "\001mpi-operator begun\001"
	alive = "\001mpi-operator alive\001"
)

// The shell keeps the standard input for the command. What naps holds none of its outputs open, so that the
// session ends with the command; and what the shell says about processes that it kills is not shown. It does
// not wait for a nap that it ends: dash loses a signal for a child that has just begun.
const heartbeat = `printf '\001mpi-operator begun\001' >&2
{
  trap 'kill "$!"; exit' TERM
  while sleep %d 3>&- & wait "$!"; do printf '\001mpi-operator alive\001' >&3; done
} </dev/null >/dev/null 3>&2 2>/dev/null &
beat=$!
/bin/sh -c "$1"
code=$?
{ kill "$beat"; wait "$beat"; } 2>/dev/null
exit "$code"`

// withHeartbeat is a command whose link is known to be lost after so much silence.
func withHeartbeat(command string, nodeTimeout time.Duration) []string {
	period := max(int(nodeTimeout.Seconds())/12, 1)
	if nodeTimeout == 0 {
		period = 30 // so that nothing on the way closes an idle link
	}
	return []string{"/bin/sh", "-c", fmt.Sprintf(heartbeat, period), "sh", command}
}

// beats removes the heartbeats from the errors of a command.
type beats struct {
	target   io.Writer
	hasBegun bool
	held     []byte // what may be the beginning of a heartbeat
}

func (b *beats) Write(data []byte) (int, error) {
	held := append(b.held, data...)
	for {
		start := bytes.IndexByte(held, begun[0])
		if start < 0 {
			b.held = nil
			return b.pass(held, len(data))
		}
		b.pass(held[:start], 0)
		held = held[start:]
		switch {
		case bytes.HasPrefix(held, []byte(begun)):
			b.hasBegun = true
			held = held[len(begun):]
		case bytes.HasPrefix(held, []byte(alive)):
			held = held[len(alive):]
		case isBeginningOf(held, begun) || isBeginningOf(held, alive):
			b.held = bytes.Clone(held)
			return len(data), nil
		default:
			b.pass(held[:1], 0)
			held = held[1:]
		}
	}
}

func (b *beats) pass(data []byte, count int) (int, error) {
	if len(data) > 0 {
		if _, err := b.target.Write(data); err != nil {
			return 0, err
		}
	}
	return count, nil
}

func isBeginningOf(data []byte, text string) bool {
	return len(data) < len(text) && bytes.HasPrefix([]byte(text), data)
}
