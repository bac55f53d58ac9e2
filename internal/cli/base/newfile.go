package base

import (
	"errors"
	"io"
	"os"
)

// WriteNew is [CreateNew] for public text.
func WriteNew(path, text string) error {
	return CreateNew(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// CreateNew writes a file that must not exist yet. It leaves no incomplete file.
func CreateNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
