package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

const (
	firstProcess   = "MPI_OPERATOR_FIRST_PROCESS"
	starterProcess = "MPI_OPERATOR_STARTER"
)

// supervise does the work in a process with its own group: Open MPI kills the group of this one when it has lost a
// worker, before that is reported.
func supervise() int {
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Env = append(os.Environ(),
		firstProcess+"="+strconv.Itoa(os.Getpid()), starterProcess+"="+strconv.Itoa(os.Getppid()))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	if err := child.Start(); err != nil {
		return fail(err)
	}
	go func() {
		for range signals {
			child.Process.Signal(syscall.SIGTERM)
		}
	}()
	child.Wait()
	if ended, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && ended.Signaled() {
		return 128 + int(ended.Signal())
	}
	return child.ProcessState.ExitCode()
}

// openStandardDescriptors opens those that the caller has closed.
func openStandardDescriptors() {
	for descriptor := range 3 {
		var facts syscall.Stat_t
		if syscall.Fstat(descriptor, &facts) == syscall.EBADF {
			syscall.Open(os.DevNull, syscall.O_RDWR, 0) // gets the lowest free number
		}
	}
}

func parentOf(process int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	_, facts, _ := strings.Cut(string(text), ") ")
	words := strings.Fields(facts)
	if len(words) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(words[1])
	return parent
}
