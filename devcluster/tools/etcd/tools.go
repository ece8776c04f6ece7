//go:build tools

// Package tools names the command that devcluster builds from this module.
package tools

import _ "go.etcd.io/etcd/server/v3"
