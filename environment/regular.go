package environment

import (
	"errors"
	"os"
	"syscall"
)

// errIrregular says that a path does not lead to a regular file.
var errIrregular = errors.New("it is not a regular file")

// openRegular opens a file whose path a user chose, for reading. A FIFO or a device is
// refused, and not waited for.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
