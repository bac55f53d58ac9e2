//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// networkFileSystem always returns "", because detection works only on Linux.
func networkFileSystem(*unix.Statfs_t) string { return "" }
