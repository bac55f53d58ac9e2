//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// networkFileSystem returns "" because the type is unknown on this system.
func networkFileSystem(*unix.Statfs_t) string { return "" }
