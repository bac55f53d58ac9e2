//go:build !linux

package broker

import "os"

// allocate makes a file size bytes long with real blocks behind it.
func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
