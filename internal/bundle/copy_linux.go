package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharesBlocks has an empty file share the blocks of another one, and reports whether the file system could do that.
func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
