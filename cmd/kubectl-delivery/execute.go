package main

import (
	"fmt"
	"os"
)

// execute is `kubectl exec`: it runs a command in a pod once, and returns its exit code.
func execute(arguments []string) int {
	given, err := parseOurs(arguments)
	if err == nil && (given.pod == "" || len(given.command) == 0) {
		err = fmt.Errorf("a pod and, after --, a command are required")
	}
	if err != nil {
		return fail(err)
	}
	known, err := loadConfig()
	if err != nil {
		return fail(err)
	}
	if given.namespace == "" {
		given.namespace = known.namespace
	}
	opened, err := open(known, request{
		namespace: given.namespace,
		pod:       given.pod,
		container: given.container,
		command:   given.command,
		stdin:     given.stdin,
		stdout:    os.Stdout,
		stderr:    os.Stderr,
	})
	if err != nil {
		return fail(err)
	}
	code, err := opened.run()
	if err != nil {
		return fail(err)
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "command terminated with exit code", code)
	}
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}
