//go:build !linux

package broker

import "os"

// dataSync syncs a file; this platform has no fdatasync.
func dataSync(f *os.File) error { return f.Sync() }
