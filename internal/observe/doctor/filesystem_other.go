//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// networkFileSystem is not supported on this system.
func networkFileSystem(*unix.Statfs_t) string { return "" }
