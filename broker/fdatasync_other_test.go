//go:build !linux

package broker

import "os"

// dataSync is the equivalent on platforms without fdatasync.
func dataSync(f *os.File) error { return f.Sync() }
