//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// networkFileSystem detects network file systems only on Linux.
func networkFileSystem(*unix.Statfs_t) string { return "" }
