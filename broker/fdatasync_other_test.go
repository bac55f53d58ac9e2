//go:build !linux

package broker

import "os"

func dataSync(f *os.File) error { return f.Sync() }
