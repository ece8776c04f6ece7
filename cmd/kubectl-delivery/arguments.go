package main

import (
	"errors"
	"strings"
)

// Letters of ssh's options that take a value; rsh's are among them.
const withValue = "BbcDEeFIiJLlmOoPpQRSWw"

// hostAndCommand sorts the arguments of a remote shell. Its options are for ssh and rsh, and are ignored:
// Intel MPI passes -q -x, MPICH -x, and horovodrun writes `HOST -p 22 COMMAND`.
func hostAndCommand(arguments []string) (host, command string, err error) {
	rest := withoutOptions(arguments)
	if len(rest) == 0 {
		return "", "", errors.New("no host given")
	}
	host, rest = rest[0], withoutOptions(rest[1:])
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	if len(rest) == 0 {
		return "", "", errors.New("no command given")
	}
	return host, strings.Join(rest, " "), nil // as ssh does
}

func withoutOptions(words []string) []string {
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' {
		option := words[0]
		words = words[1:]
		if option == "--" {
			break
		}
		if takesNext(option) && len(words) > 0 {
			words = words[1:]
		}
	}
	return words
}

// takesNext says whether the next word belongs to an option: -o X=Y, -qp 22, but not -p22 or --verbose.
func takesNext(option string) bool {
	if strings.HasPrefix(option, "--") {
		return false
	}
	first := strings.IndexAny(option[1:], withValue)
	return first == len(option)-2
}

// ours are the options of `exec` and `remote-shell`.
type ours struct {
	pod, container, namespace string
	stdin                     bool
	command                   []string
}

// parseOurs reads options up to `--`. Options of kubectl that change nothing here are accepted.
func parseOurs(arguments []string) (ours, error) {
	var found ours
	for len(arguments) > 0 {
		word := arguments[0]
		arguments = arguments[1:]
		if word == "--" {
			found.command = arguments
			return found, nil
		}
		name, value, hasValue := strings.Cut(word, "=")
		target := map[string]*string{
			"-c": &found.container, "--container": &found.container,
			"-n": &found.namespace, "--namespace": &found.namespace,
		}[name]
		switch {
		case target != nil && hasValue:
			*target = value
		case target != nil && len(arguments) > 0:
			*target, arguments = arguments[0], arguments[1:]
		case word == "-i" || word == "--stdin":
			found.stdin = true
		case word == "-q" || word == "--quiet":
		case !strings.HasPrefix(word, "-") && found.pod == "":
			found.pod = strings.TrimPrefix(strings.TrimPrefix(word, "pods/"), "pod/")
		default:
			return found, errors.New("unexpected " + word + " (the command comes after --)")
		}
	}
	return found, nil
}
