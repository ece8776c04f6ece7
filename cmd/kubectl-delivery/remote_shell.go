package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	failure        = 255              // the exit code of ssh when ssh itself fails
	gaveUp         = 79               // as in remote_shell.sh
	killed         = 137              // of a command whose container was killed
	longestRefusal = 30 * time.Minute // an image may still be pulled. For a pod it waits forever
	lastWords      = time.Second      // for the end of a session that is being stopped
)

// shell is one call of the remote shell.
type shell struct {
	reporter
	request  request
	errors   *beats
	stopped  chan os.Signal
	starter  int // mpirun, or a program that stands for it
	refused  time.Time
	reported time.Time
	interval time.Duration // between reports
	limit    time.Duration // for the start; 0: none
}

// remoteShell runs a command in a worker as soon as it can, and returns its exit code.
func remoteShell(arguments []string) int {
	openStandardDescriptors()
	first, err := strconv.Atoi(os.Getenv(firstProcess))
	if err != nil {
		return supervise()
	}
	starter, _ := strconv.Atoi(os.Getenv(starterProcess))
	os.Unsetenv(firstProcess)
	os.Unsetenv(starterProcess)
	given, err := parseOurs(arguments)
	if err != nil {
		return fail(err)
	}
	host, command, err := hostAndCommand(given.command)
	if err != nil {
		return fail(err)
	}
	return newShell(given.container, host, command, starter).run(command, first)
}

func newShell(container, host, command string, starter int) *shell {
	worker, _, _ := strings.Cut(host, ".")
	timeout := nodeTimeout()
	errors := &beats{target: os.Stderr}
	now := time.Now()
	limit, _ := strconv.Atoi(os.Getenv("MPI_OPERATOR_INIT_TIMEOUT"))
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	return &shell{
		reporter: reporter{worker, now, strings.Contains(command, " --upstream-host ")},
		request: request{
			pod:         worker,
			container:   container,
			stdin:       true,
			stdout:      os.Stdout,
			stderr:      errors,
			nodeTimeout: timeout,
		},
		errors:   errors,
		stopped:  stopped,
		starter:  starter,
		reported: now,
		interval: 5 * time.Second,
		limit:    time.Duration(limit) * time.Second,
	}
}

// nodeTimeout is how long a silent link is taken for a node that may come back. 0 means forever.
func nodeTimeout() time.Duration {
	text := os.Getenv("MPI_OPERATOR_NODE_TIMEOUT_SECONDS")
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 || seconds > 999_999_999 {
		seconds = 360
	}
	return time.Duration(seconds) * time.Second
}

// run tries until the command has run, or it is no use to wait any more. `first` is the process that waits for this one.
func (s *shell) run(command string, first int) int {
	s.recordContinuation()
	// A host that is this very pod: a launcher that works, too, cannot exec into itself.
	here, _ := os.Hostname()
	if here == s.worker {
		return s.fail(syscall.Exec("/bin/sh", []string{"/bin/sh", "-c", command}, os.Environ()))
	}
	s.request.command = withHeartbeat(callBack(command, here, address()), s.request.nodeTimeout)
	for {
		code, err := s.try()
		if err == nil {
			return code
		}
		cause, missing := diagnose(err, s.errors.hasBegun)
		if missing == nothing {
			return s.fail(errors.New(cause))
		}
		if s.isHopeless(missing) {
			s.say("gave-up", cause)
			s.record("gave-up", cause)
			return gaveUp
		}
		if time.Since(s.reported) >= s.interval {
			s.say("waiting", cause)
			s.reported, s.interval = time.Now(), 30*time.Second
		}
		if code := s.pause(); code != 0 {
			return code
		}
		if os.Getppid() != first {
			return gaveUp // mpirun is gone
		}
	}
}

// try runs the command once. An error is about the link; of a lost one it is already recorded.
func (s *shell) try() (int, error) {
	known, err := loadConfig()
	if err != nil {
		return 0, err
	}
	s.request.namespace = known.namespace
	opened, err := open(known, s.request)
	if err != nil {
		return 0, err
	}
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		code, err := opened.run()
		ended <- result{code, err}
	}()
	var stop os.Signal
	for {
		select {
		case end := <-ended:
			s.recordLoss(end.code, end.err)
			if stop != nil {
				return stoppedBy(stop), nil
			}
			if lost := (*broken)(nil); errors.As(end.err, &lost) {
				s.fail(lost)
				s.endHydra(lost)
				return failure, nil
			}
			return end.code, end.err
		case stop = <-s.stopped:
			// At once it would not be recorded that the worker is the reason: mpirun may know before.
			time.AfterFunc(lastWords, func() { ended <- result{} })
		}
	}
}

func stoppedBy(stop os.Signal) int {
	number, _ := stop.(syscall.Signal)
	return 128 + int(number)
}

func (s *shell) recordLoss(code int, err error) {
	switch lost := (*broken)(nil); {
	case errors.As(err, &lost):
		s.record("lost", lost.message)
	case err != nil && s.errors.hasBegun:
		s.record("lost", err.Error())
	case err == nil && code == killed:
		s.record("lost", "the container or its process was killed")
	}
}

func (s *shell) fail(err error) int {
	fmt.Fprintf(os.Stderr, "mpi-operator: %s: %v\n", s.worker, err)
	return failure
}

type missing int

const (
	nothing missing = iota // it is no use to wait
	thePod
	theContainer
)

// diagnose says what is missing, and the cause in the server's words. Only what certainly did not begin is
// tried again.
func diagnose(err error, hasBegun bool) (string, missing) {
	cause := err.Error()
	has := func(words ...string) bool {
		for _, each := range words {
			if strings.Contains(cause, each) {
				return true
			}
		}
		return false
	}
	var refused *notStarted
	var ended *failed
	switch {
	case hasBegun:
		return cause, nothing
	case errors.As(err, &refused) && refused.code == http.StatusNotFound:
		return cause, thePod
	case errors.As(err, &refused) && refused.code == http.StatusBadRequest:
		if has("does not have a host assigned") {
			return cause, thePod
		}
		return cause, nothing
	case errors.As(err, &refused):
		return cause, theContainer
	case errors.As(err, &ended) && has("no such file or directory", "executable file not found", "permission denied"):
		return cause + " (the image of a worker needs /bin/sh)", nothing
	case errors.As(err, &ended):
		return cause, theContainer
	default:
		return cause, nothing
	}
}

func (s *shell) isHopeless(missing missing) bool {
	if s.limit > 0 {
		return time.Since(s.began) >= s.limit
	}
	if missing == thePod {
		s.refused = time.Time{}
		return false
	}
	if s.refused.IsZero() {
		s.refused = time.Now()
	}
	return time.Since(s.refused) >= longestRefusal
}

// pause waits longer and longer: a large job that waits for a queue would keep the API server busy. It returns an
// exit code if it was stopped.
func (s *shell) pause() int {
	waited := time.Since(s.began)
	wait := 5 * time.Second
	for _, step := range []struct{ until, wait time.Duration }{
		{time.Second, 200 * time.Millisecond},
		{10 * time.Second, 500 * time.Millisecond},
		{time.Minute, 2 * time.Second},
	} {
		if waited < step.until {
			wait = step.wait
			break
		}
	}
	select {
	case stop := <-s.stopped:
		return stoppedBy(stop)
	case <-time.After(wait):
		return 0
	}
}

// endHydra interrupts Hydra, which ignores that a session has ended. It waits for its proxy, which will not call
// any more; Intel's must be interrupted twice. Open MPI ends by itself.
func (s *shell) endHydra(lost *broken) {
	command := s.request.command[len(s.request.command)-1]
	isHydra := strings.Contains(command, "hydra_") && strings.Contains(command, "_proxy")
	if !isHydra || !lost.isTimedOut {
		return
	}
	time.Sleep(2 * time.Second) // it may have noticed
	for range 5 {
		if parentOf(os.Getppid()) != s.starter {
			return
		}
		syscall.Kill(s.starter, syscall.SIGINT)
		time.Sleep(time.Second)
	}
}
