package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharesBlocks makes an empty file share the blocks of another one. It returns false if the file system cannot do
// that.
func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
