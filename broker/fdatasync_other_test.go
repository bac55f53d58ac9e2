//go:build !linux

package broker

import "os"

// dataSync flushes a file: there is no way here to leave its times out.
func dataSync(f *os.File) error { return f.Sync() }
