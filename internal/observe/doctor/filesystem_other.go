//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// Detection works only on Linux.
func networkFileSystem(*unix.Statfs_t) string { return "" }
