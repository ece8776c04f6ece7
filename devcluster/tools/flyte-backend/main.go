// The part of Flyte's back end that runs one MPI task: its plugin for MPIJobs builds the job and reads
// its status, and the plugin manager of its propeller creates, watches and deletes it.
//
//	flyte-backend KUBECONFIG
//
// reads an execution (see execution.go) as the first line of standard input, and then one command per
// line. It answers each with a line of JSON:
//
//	handle      evaluate the task: the first time this creates the MPIJob, later it reads its status
//	next        wait until the MPIJob has changed, as Flyte does, then handle
//	abort       delete the MPIJob
//	finalize    remove Flyte's finalizer
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	pluginsCore "github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/core"
	"github.com/flyteorg/flyte/flytestdlib/contextutils"
	"github.com/flyteorg/flyte/flytestdlib/promutils/labeled"
)

// answer is what Flyte would report after a command.
type answer struct {
	Phase  string    `json:"phase,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Error  string    `json:"error,omitempty"`
	Code   string    `json:"code,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	Logs   []logLink `json:"logs,omitempty"`
	// Failure is an error that Flyte does not report, but tries again after.
	Failure string `json:"failure,omitempty"`
}

type logLink struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
}

func main() {
	// Flyte counts from the first object on, and wants to know this before.
	labeled.SetMetricKeys(contextutils.NamespaceKey)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: flyte-backend KUBECONFIG < execution and commands")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	lines.Scan()
	task, err := readExecution(lines.Bytes())
	if err != nil {
		return err
	}
	if err := configure(task.metadata.request.Timeout.Duration); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	backend, err := startBackend(ctx, os.Args[1])
	if err != nil {
		return err
	}
	for lines.Scan() {
		done, err := backend.execute(ctx, lines.Text(), task)
		if err != nil {
			done.Failure = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
			return err
		}
	}
	return lines.Err()
}

func described(info pluginsCore.PhaseInfo) answer {
	described := answer{Phase: info.Phase().String(), Reason: info.Reason()}
	if err := info.Err(); err != nil {
		described.Code, described.Error, described.Kind = err.GetCode(), err.GetMessage(), err.GetKind().String()
	}
	if info.Info() != nil {
		for _, log := range info.Info().Logs {
			described.Logs = append(described.Logs, logLink{log.GetName(), log.GetUri()})
		}
	}
	return described
}
