package main

import (
	"net"
	"os"
	"strings"
)

var hostsFile = "/etc/hosts"

// Hydra's proxies call back by the name of this host, and give up at once where it is not known. DNS may know
// it later than the worker, so they get the address.
func callBack(command, here string, server string) string {
	if here == "" || !strings.Contains(command, here) {
		return command
	}
	address := ownAddress(here, server)
	if address == "" {
		return command
	}
	command = strings.Replace(command, "--control-port "+here+":", "--control-port "+address+":", 1) // MPICH
	return strings.Replace(command, "--upstream-host "+here+" ", "--upstream-host "+address+" ", 1)  // Intel MPI
}

// ownAddress is what the kubelet has written to the hosts file of this pod. On the network of a node that is the
// file of the node, which may have addresses that lead nowhere; there it is the address that leads out.
func ownAddress(here, server string) string {
	text, _ := os.ReadFile(hostsFile)
	if !strings.Contains(string(text), "# Kubernetes-managed hosts file (host network).") {
		if found := addressIn(string(text), here); found != "" {
			return found
		}
	}
	connection, err := net.Dial("udp4", server) // sends nothing
	if err != nil {
		return ""
	}
	defer connection.Close()
	host, _, _ := net.SplitHostPort(connection.LocalAddr().String())
	return usable(host)
}

func addressIn(hosts, here string) string {
	for _, line := range strings.Split(hosts, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		for index, name := range words {
			if index > 0 && name == here && usable(words[0]) != "" {
				return words[0]
			}
		}
	}
	return ""
}

func usable(address string) string {
	ip := net.ParseIP(address)
	if ip == nil || ip.To4() == nil || ip.IsLoopback() {
		return ""
	}
	return address
}
