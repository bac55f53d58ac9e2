//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// Network file systems are detected only on Linux.
func networkFileSystem(*unix.Statfs_t) string { return "" }
