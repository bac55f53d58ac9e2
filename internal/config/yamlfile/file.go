package yamlfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrIrregular means that a path names a directory, FIFO, socket or device.
var ErrIrregular = errors.New("not a regular file")

// ReadFile reads a regular file without blocking on FIFOs. It stops one byte beyond most, to detect larger files. The
// error is an [*fs.PathError].
func ReadFile(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		err = &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	return data, info, err
}
