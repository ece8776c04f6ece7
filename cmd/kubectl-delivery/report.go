package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Variables, so that tests can have files of their own.
var (
	terminationLog = "/dev/termination-log"
	containerLog   = "/proc/1/fd/2"
)

// reporter tells the operator about a worker, in lines of the form
//
//	mpi-operator: event=lost worker=pi-worker-1 seconds=12 cause=Connection reset by peer
type reporter struct {
	worker  string
	began   time.Time
	isIntel bool // Intel MPI shows what this prints only when it ends
}

func (r reporter) seconds() int { return int(time.Since(r.began).Seconds()) }

func (r reporter) line(event, cause string) string {
	cause = strings.Join(strings.Fields(cause), " ") // one line
	return fmt.Sprintf("mpi-operator: event=%s worker=%s seconds=%d cause=%s\n", event, r.worker, r.seconds(), cause)
}

// say prints an event where the operator reads the log.
func (r reporter) say(event, cause string) {
	line := r.line(event, cause)
	if r.isIntel {
		appendTo(containerLog, line)
	}
	fmt.Fprint(os.Stderr, line)
}

// record adds an event to the termination message of the container.
func (r reporter) record(event, cause string) { appendTo(terminationLog, r.line(event, cause)) }

// recordContinuation records that a launcher which has lost a worker starts something: it continues without it.
func (r reporter) recordContinuation() {
	text, _ := os.ReadFile(terminationLog)
	hasLost := false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "mpi-operator: event=lost ") {
			hasLost = true
		} else if strings.HasPrefix(line, "mpi-operator: event=continued ") {
			hasLost = false
		}
	}
	if hasLost {
		appendTo(terminationLog, fmt.Sprintf("mpi-operator: event=continued worker=%s\n", r.worker))
	}
}

func appendTo(path, line string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	file.WriteString(line)
}
