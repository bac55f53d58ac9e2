package eventlog

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"tendril/internal/host/datadir"
)

type files struct{ current, older string }

// eachFile opens the current file first, so that a concurrent rename repeats lines instead of losing them.
func (at files) eachFile(read func(io.Reader) (more bool, err error)) error {
	current, err := openToRead(at.current)
	if err != nil {
		return err
	}
	defer current.Close()
	older, err := openToRead(at.older)
	if err != nil {
		return err
	}
	defer older.Close()
	for _, f := range []io.Reader{older, current} {
		if more, err := read(f); err != nil || !more {
			return err
		}
	}
	return nil
}

type appender struct {
	files
	maxSegment int64
	file       *os.File
	size       int64
	torn       bool // the last line may be incomplete
}

func (a *appender) append(lines []byte) error {
	if a.file != nil && a.size > 0 && a.size+int64(len(lines)) > a.maxSegment {
		if err := os.Rename(a.current, a.older); err != nil {
			return err
		}
		_ = a.file.Close()
		a.file = nil
	}
	if a.file == nil {
		if err := a.open(); err != nil {
			return err
		}
	}

	if a.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := a.file.WriteAt(lines, a.size)
	if err != nil {
		return errors.Join(err, a.file.Truncate(a.size))
	}
	a.size += int64(n)
	a.torn = false
	return nil
}

func (a *appender) open() error {
	f, err := datadir.OpenFile(a.current)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && size > 0 {
		_, err = f.ReadAt(last, size-1)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.file = f
	a.size = size
	a.torn = last[0] != '\n'
	return nil
}

func (a *appender) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

func openToRead(path string) (io.ReadSeekCloser, error) {
	if err := datadir.CheckFile(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyFile{}, nil
	}
	return f, err
}

type emptyFile struct{}

func (emptyFile) Read([]byte) (int, error)       { return 0, io.EOF }
func (emptyFile) Seek(int64, int) (int64, error) { return 0, nil }
func (emptyFile) Close() error                   { return nil }
