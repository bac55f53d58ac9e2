package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// cloneContent reports whether the file system could clone the content of source to file.
func cloneContent(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
