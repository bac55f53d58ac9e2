//go:build !linux

package broker

import "os"

// This platform has no fdatasync.
func dataSync(f *os.File) error { return f.Sync() }
