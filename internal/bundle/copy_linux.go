package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

func sharesBlocks(file, source *os.File) bool {
	return unix.IoctlFileClone(int(file.Fd()), int(source.Fd())) == nil
}
