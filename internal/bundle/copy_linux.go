package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// Some file systems do not support shared blocks.
func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
