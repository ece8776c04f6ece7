//go:build tools

// Package tools names the command that devcluster builds from this module.
package tools

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
