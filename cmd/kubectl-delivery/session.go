package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The channels of the protocol: the first byte of each message.
const (
	stdinChannel  = 0
	stdoutChannel = 1
	stderrChannel = 2
	statusChannel = 3
	closeChannel  = 255
)

// v5 can end the standard input. Servers before Kubernetes 1.30 know only v4.
const halfClosing = "v5.channel.k8s.io"

const (
	dialTimeout = 15 * time.Second
	pingPeriod  = 30 * time.Second // so that nothing between here and the API server closes an idle link
	chunk       = 32 * 1024
)

// request is a command to run in a pod.
type request struct {
	namespace, pod, container string
	command                   []string
	stdin                     bool
	stdout, stderr            io.Writer
	nodeTimeout               time.Duration // a link that is silent for so long is lost; 0: never
}

// notStarted is an error before the API server accepted the request, with its HTTP status if it answered.
type notStarted struct {
	code    int
	message string
}

func (e *notStarted) Error() string { return e.message }

// failed is what the API server says about a command that could not be run to its end.
type failed struct{ message string }

func (e *failed) Error() string { return e.message }

// broken is a link that ended before the command did.
type broken struct {
	message    string
	isTimedOut bool // nothing came from the node for too long
}

func (e *broken) Error() string { return e.message }

// status is what the server sends when a command has ended, and in answers to what it refuses.
type status struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Details struct {
		Causes []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"causes"`
	} `json:"details"`
}

type session struct {
	connection *websocket.Conn
	request    request
	writing    sync.Mutex
}

// open connects to the API server, which connects to the kubelet of the pod.
func open(known config, wanted request) (*session, error) {
	dialer := websocket.Dialer{
		NetDialContext:   (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:  known.tls,
		HandshakeTimeout: 2 * dialTimeout,
		Subprotocols:     []string{halfClosing, "v4.channel.k8s.io"},
		ReadBufferSize:   chunk,
		WriteBufferSize:  chunk + 1,
	}
	headers := http.Header{"Authorization": {"Bearer " + known.token}}
	connection, response, err := dialer.Dial(target(known, wanted), headers)
	if err != nil {
		return nil, refusal(response, err)
	}
	return &session{connection: connection, request: wanted}, nil
}

func target(known config, wanted request) string {
	query := url.Values{"command": wanted.command, "stdout": {"true"}, "stderr": {"true"}}
	if wanted.stdin {
		query.Set("stdin", "true")
	}
	if wanted.container != "" {
		query.Set("container", wanted.container)
	}
	path := url.PathEscape
	return fmt.Sprintf("wss://%s/api/v1/namespaces/%s/pods/%s/exec?%s",
		known.address, path(wanted.namespace), path(wanted.pod), query.Encode())
}

func refusal(response *http.Response, err error) error {
	if response == nil {
		return &notStarted{message: err.Error()}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64*1024))
	var answer status
	message := response.Status
	if json.Unmarshal(body, &answer) == nil && answer.Message != "" {
		message = answer.Message
	}
	return &notStarted{response.StatusCode, message}
}

// run forwards all streams until the command has ended, and returns its exit code.
func (s *session) run() (int, error) {
	defer s.connection.Close()
	if s.request.stdin {
		go s.forwardInput()
	}
	ended := make(chan struct{})
	defer close(ended)
	go s.ping(ended)
	return s.receive()
}

func (s *session) receive() (int, error) {
	for {
		if s.request.nodeTimeout > 0 {
			s.connection.SetReadDeadline(time.Now().Add(s.request.nodeTimeout))
		}
		_, message, err := s.connection.ReadMessage()
		if err != nil {
			return 0, s.brokenBy(err)
		}
		if len(message) == 0 {
			continue
		}
		switch message[0] {
		case stdoutChannel:
			s.request.stdout.Write(message[1:])
		case stderrChannel:
			s.request.stderr.Write(message[1:])
		case statusChannel:
			if len(message) > 1 {
				return exitCode(message[1:])
			}
		}
	}
}

func (s *session) brokenBy(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		message := fmt.Sprintf("Timeout, worker %s not responding", s.request.pod)
		return &broken{message, true}
	}
	return &broken{"the connection was closed: " + err.Error(), false}
}

func exitCode(text []byte) (int, error) {
	var answer status
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, &failed{"malformed status: " + err.Error()}
	}
	if answer.Status == "Success" {
		return 0, nil
	}
	if answer.Reason == "NonZeroExitCode" {
		for _, cause := range answer.Details.Causes {
			if code, err := strconv.Atoi(cause.Message); err == nil && cause.Reason == "ExitCode" {
				return code, nil
			}
		}
	}
	return 0, &failed{answer.Message}
}

func (s *session) forwardInput() {
	buffer := make([]byte, 1+chunk)
	buffer[0] = stdinChannel
	for {
		count, err := os.Stdin.Read(buffer[1:])
		if count > 0 && s.send(buffer[:1+count]) != nil {
			return
		}
		if err != nil {
			break
		}
	}
	if s.connection.Subprotocol() == halfClosing {
		s.send([]byte{closeChannel, stdinChannel})
	}
}

func (s *session) send(message []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.connection.WriteMessage(websocket.BinaryMessage, message)
}

func (s *session) ping(ended <-chan struct{}) {
	ticker := time.NewTicker(pingPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			s.connection.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingPeriod))
		}
	}
}
