package archives

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxSize is the maximum size of an archive in bytes, as in Elastic Beanstalk.
const MaxSize = 512 << 20

// Store is shared by all instances. It is safe for concurrent use.
type Store interface {
	// Put is atomic, and may replace an archive.
	Put(ctx context.Context, name string, archive io.ReaderAt, size int64) error
	// Get's error wraps [fs.ErrNotExist] if the archive does not exist.
	Get(ctx context.Context, name string, w io.Writer) error
	Delete(ctx context.Context, name string) error
}

// Name returns the archive name for an environment and a digest.
func Name(environment, digest string) string {
	safe := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("-_.", c):
			return c
		}
		return '-'
	}, strings.TrimLeft(environment, "."))
	return safe + "-" + digest + ".zip"
}

// Digest returns a file's SHA-256 digest in hexadecimal, and its size. A size above [MaxSize] is an error.
func Digest(path string) (digest string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()

	sum := sha256.New()
	size, err = io.Copy(sum, file)
	if err != nil {
		return "", 0, err
	}
	if size > MaxSize {
		return "", 0, fmt.Errorf("the archive has %d bytes, more than %d: exclude files that the app does not need to run", size, MaxSize)
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}

// Fetch downloads an archive to path, unless the file there already has the digest.
func Fetch(ctx context.Context, from Store, name, digest string, size int64, path string) error {
	if have, _, err := Digest(path); err == nil && have == digest {
		return nil
	}
	return replaceFile(path, func(file *os.File) error {
		to := &verifier{to: file, remaining: size, sum: sha256.New()}
		if err := from.Get(ctx, name, to); err != nil {
			return err
		}
		return to.check(digest)
	})
}

func replaceFile(path string, write func(*os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".writing-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename

	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// ErrOtherContent means that a stored archive has a different size or digest.
var ErrOtherContent = errors.New("the stored archive does not match the version's digest: it was changed or is incomplete")

type verifier struct {
	to        io.Writer
	remaining int64
	sum       hash.Hash
}

func (v *verifier) Write(p []byte) (int, error) {
	if v.remaining -= int64(len(p)); v.remaining < 0 {
		return 0, ErrOtherContent
	}
	v.sum.Write(p)
	return v.to.Write(p)
}

func (v *verifier) check(digest string) error {
	if v.remaining != 0 || hex.EncodeToString(v.sum.Sum(nil)) != digest {
		return ErrOtherContent
	}
	return nil
}

// Folder is a store in a folder, for example on a network file system.
type Folder string

// Put implements [Store].
func (f Folder) Put(ctx context.Context, name string, archive io.ReaderAt, size int64) error {
	return replaceFile(filepath.Join(string(f), name), func(file *os.File) error {
		if _, err := io.Copy(file, &contextReader{ctx, io.NewSectionReader(archive, 0, size)}); err != nil {
			return err
		}
		return file.Sync()
	})
}

// Get implements [Store].
func (f Folder) Get(ctx context.Context, name string, w io.Writer) error {
	file, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, &contextReader{ctx, file})
	return err
}

// Delete implements [Store].
func (f Folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(filepath.Join(string(f), name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
