//go:build !linux

package doctor

import "golang.org/x/sys/unix"

func networkFileSystem(*unix.Statfs_t) string { return "" }
