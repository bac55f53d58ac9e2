package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharesBlocks returns false if the file system does not support shared blocks.
func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
