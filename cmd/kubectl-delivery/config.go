package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// config is how to reach the API server as the service account of this pod.
type config struct {
	address   string // host and port
	namespace string
	token     string
	tls       *tls.Config
}

// loadConfig reads the files of the service account, each time, because kubelets renew its token.
func loadConfig() (config, error) {
	directory := serviceAccount
	if other := os.Getenv("MPI_OPERATOR_SERVICE_ACCOUNT"); other != "" {
		directory = other
	}
	token, err := os.ReadFile(filepath.Join(directory, "token"))
	if err != nil {
		return config{}, errors.New("this pod has no token of its service account: " + err.Error())
	}
	authority, err := os.ReadFile(filepath.Join(directory, "ca.crt"))
	if err != nil {
		return config{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return config{
		address:   address(),
		namespace: namespace(directory),
		token:     strings.TrimSpace(string(token)),
		tls:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}, nil
}

func address() string {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "kubernetes.default.svc:443"
	}
	return net.JoinHostPort(host, port)
}

func namespace(directory string) string {
	own, _ := os.Executable()
	for _, file := range []string{
		filepath.Join(directory, "namespace"),
		filepath.Join(filepath.Dir(own), namespaceFile),
	} {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text))
		}
	}
	return "default"
}
