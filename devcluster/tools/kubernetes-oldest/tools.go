//go:build tools

// Package tools names the commands of the oldest Kubernetes that the operator supports.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
