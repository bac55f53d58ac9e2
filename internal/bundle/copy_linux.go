package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharesBlocks makes file share the blocks of source. It returns false if the file system does not support this.
func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
