//go:build tools

// Package tools names the command that devcluster builds from this module.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
