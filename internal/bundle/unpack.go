package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// freeBytes are written without a look at the ratio: small archives of empty files are no bombs.
const freeBytes = 16 << 20

// Unpack writes the content of a zip archive into the new folder dir, whole or not at all: it is written beside dir,
// under another name, and renamed when everything is right. The folder that dir lies in must exist, dir must not:
// the error then wraps fs.ErrExist. Nothing is written anywhere else, whatever the archive says, and nothing is
// left behind by a failure. Files get the permission 0640, or 0750 where the archive has them executable, folders
// 0750; owners, times and set-user bits are not kept. Hooks get what the platforms of Elastic Beanstalk give them:
// the execute permission, and LF for CR LF. Links that stay inside are kept.
//
// The error is an [*invalidError] when the archive is at fault, with up to ten of its
// problems. Nothing is flushed to disk: after a crash of the machine, unpack anew.
func Unpack(archive, dir string) error { return unpackWithin(archive, dir, usualLimits()) }

func unpackWithin(archive, dir string, most limits) error {
	u := unpacking{archive: archive, limits: most}
	file, err := u.open()
	if err != nil {
		return err
	}
	defer file.Close()
	if err := u.check(file); err != nil {
		return err
	}
	if err = u.into(dir); err != nil && !errors.As(err, new(*invalidError)) {
		return fmt.Errorf("unpacking %s: %w", archive, err)
	}
	return err
}

// into makes the folder dir of the entries.
func (u *unpacking) into(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already: name another folder: %w", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return makeWhole(dir, "unpacking", u.fill)
}

// makeWhole makes the folder dir, whole or not at all: it is filled beside dir, under a hidden name with the kind of
// work in it, and renamed at the end.
func makeWhole(dir, what string, fill func(folder string) error) error {
	staging, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"."+what+"-*")
	if err != nil {
		return err
	}

	err = fill(staging)
	if err == nil {
		err = os.Rename(staging, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging)) // which does not follow links
	}
	return nil
}

// open opens the archive if it is a file of bearable size.
func (u *unpacking) open() (*os.File, error) {
	info, err := os.Stat(u.archive)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, u.errorf("give a zip archive or a folder", "this is not a regular file")
	}

	if u.size = info.Size(); u.size > u.limits.archive {
		return nil, u.errorf("leave out what the app does not need to run", "the archive has %d bytes, more than %d",
			u.size, u.limits.archive)
	}

	file, err := os.Open(u.archive)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}

	return file, nil
}

// fill writes every entry below the folder. Links come last, so that nothing is ever written through one.
func (u *unpacking) fill(folder string) error {
	if err := os.Chmod(folder, 0o750); err != nil {
		return err
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range u.entries {
		switch e.kind {
		case folderEntry:
			err = root.MkdirAll(e.path, 0o750)
		case fileEntry:
			if err = root.MkdirAll(filepath.Dir(e.path), 0o750); err == nil {
				err = u.writeFile(root, e)
			}
		}
		if err != nil {
			return err
		}
	}

	if err := u.link(root); err != nil {
		return err
	}

	return u.fixHooks(root)
}

func (u *unpacking) writeFile(root *os.Root, e entry) (err error) {
	from, err := e.file.Open()
	if err != nil {
		return u.damaged(e, err)
	}
	defer from.Close()
	permission := fs.FileMode(0o640)
	if e.executable {
		permission = 0o750
	}

	to, err := root.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, permission)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := to.Chmod(permission); err != nil { // whatever the umask
		return err
	}

	// One byte more than is allowed shows that there is more.
	allowed := min(u.limits.fileBytes, u.left())
	count, err := io.Copy(to, &blaming{u, e, io.LimitReader(from, allowed+1)})
	u.written += count
	if err == nil && count > allowed {
		err = u.tooMuch(e, count)
	}

	return err
}

// left is how many bytes may be written yet.
func (u *unpacking) left() int64 {
	return min(u.limits.bytes, max(freeBytes, u.size*u.limits.ratio)) - u.written
}

func (u *unpacking) tooMuch(e entry, count int64) error {
	switch {
	case count > u.limits.fileBytes:
		return u.errorf("remove the file and download it when the app starts", "%s has more than %d bytes", e.shown(),
			u.limits.fileBytes)
	case u.written > u.limits.bytes:
		return u.errorf("leave out what the app does not need to run", "the files have more than %d bytes in total",
			u.limits.bytes)
	}
	return u.errorf("this looks like an archive made to fill the disk; remove files that repeat the same byte",
		"the files have more than %d times the bytes of the archive", u.limits.ratio)
}

// blaming tells an archive that cannot be read from a disk that cannot be written.
type blaming struct {
	u    *unpacking
	e    entry
	from io.Reader
}

func (b *blaming) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.u.damaged(b.e, err)
	}
	return n, err
}
