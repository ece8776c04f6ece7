// The exec client of launchers whose workers have no sshd, and the init container that delivers it.
//
//	kubectl-delivery                                   copies itself to $TARGET_DIR/kubectl
//	kubectl exec POD [-c CONTAINER] [-n NAMESPACE] [-i] -- COMMAND...
//	kubectl remote-shell [-c CONTAINER] -- [options] HOST COMMAND...
//	kubectl version
//
// It needs nothing of an image but /bin/sh. `remote-shell` is to exec what remote_shell.sh is to ssh:
// it waits for workers that do not run yet, and reports to the operator what becomes of them.
package main

import (
	"fmt"
	"os"
)

const version = "v1.0.0"

const usage = `kubectl exec POD [-c CONTAINER] [-n NAMESPACE] [-i] -- COMMAND...
kubectl remote-shell [-c CONTAINER] -- [options] HOST COMMAND...
kubectl version

This is not kubectl but the exec client of the MPI operator, at the path where launchers expect kubectl.
`

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 0 && os.Getenv("TARGET_DIR") != "" {
		os.Exit(deliver(os.Getenv("TARGET_DIR"), os.Getenv("NAMESPACE")))
	}
	if len(arguments) == 0 {
		arguments = []string{"help"}
	}
	switch arguments[0] {
	case "exec":
		os.Exit(execute(arguments[1:]))
	case "remote-shell":
		os.Exit(remoteShell(arguments[1:]))
	case "version", "--version":
		fmt.Println(version)
	case "help", "--help", "-h":
		fmt.Print(usage)
	default:
		fmt.Fprintf(os.Stderr, "error: unknown command %q\n\n%s", arguments[0], usage)
		os.Exit(1)
	}
}
