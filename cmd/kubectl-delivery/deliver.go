package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Holds the namespace of the job beside the program, for pods without that file of their account. kubexec.sh
// recognises the program by it.
const namespaceFile = "namespace"

// deliver copies this program to a directory, and renames it at the end, so that no one sees half a file.
func deliver(directory, namespace string) int {
	target := filepath.Join(directory, "kubectl")
	err := copySelf(target)
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, namespaceFile), []byte(namespace), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Println("kubectl is at", target)
	return 0
}

func copySelf(target string) error {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer source.Close()
	partial := fmt.Sprintf("%s.%d", target, os.Getpid())
	copied, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, source)
	if closing := copied.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(partial, 0o755) // whatever the umask is
	}
	if err == nil {
		err = os.Rename(partial, target)
	}
	if err != nil {
		os.Remove(partial)
	}
	return err
}
