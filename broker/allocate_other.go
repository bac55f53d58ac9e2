//go:build !linux

package broker

import "os"

// allocate reserves disk space for size bytes of a file.
func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
