package broker

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync syncs a file's data as the store does.
func dataSync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
