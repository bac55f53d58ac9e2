package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// freeBytes is the unpacked size up to which the ratio is not checked, because so few bytes are harmless.
const freeBytes = 16 << 20

// Unpack unpacks a zip archive into the new folder dir, all or nothing. If dir exists, the error wraps fs.ErrExist; if
// the archive is invalid, it is an [*invalidError]. Files get mode 0640, or 0750 if they are executable, and folders
// 0750. Owners, times and setuid bits are not preserved. As on Elastic Beanstalk, hooks become executable, and
// hook scripts get LF line breaks. The files are not synced to disk.
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
	if err = u.unpackInto(dir); err != nil && !errors.As(err, new(*invalidError)) {
		return fmt.Errorf("unpacking %s: %w", archive, err)
	}
	return err
}

func (u *unpacking) unpackInto(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already: name another folder: %w", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return createFolder(dir, "unpacking", u.fill)
}

// createFolder creates dir completely or not at all: it renames a staging folder once fill has succeeded. doing is part
// of the staging folder's name.
func createFolder(dir, doing string, fill func(staging string) error) error {
	staging, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"."+doing+"-*")
	if err != nil {
		return err
	}

	err = fill(staging)
	if err == nil {
		err = os.Rename(staging, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging)) // does not follow links
	}
	return nil
}

func (u *unpacking) open() (*os.File, error) {
	info, err := os.Stat(u.archive)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, u.errorf("use a zip archive or a folder", "this is not a regular file")
	}

	if u.size = info.Size(); u.size > u.limits.archive {
		return nil, u.errorf("exclude files that the app does not need to run", "the archive has %d bytes, more than %d",
			u.size, u.limits.archive)
	}

	file, err := os.Open(u.archive)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}

	return file, nil
}

// fill creates links after writing the entries, so that no entry is written through a link.
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

	if err := u.createLinks(root); err != nil {
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
	if err := to.Chmod(permission); err != nil { // regardless of the umask
		return err
	}

	// An extra byte reveals a file that is too large.
	allowed := min(u.limits.fileBytes, u.remaining())
	count, err := io.Copy(to, &entryContent{u, e, io.LimitReader(from, allowed+1)})
	u.written += count
	if err == nil && count > allowed {
		err = u.tooMuch(e, count)
	}

	return err
}

func (u *unpacking) remaining() int64 {
	return min(u.limits.bytes, max(freeBytes, u.size*u.limits.ratio)) - u.written
}

func (u *unpacking) tooMuch(e entry, count int64) error {
	switch {
	case count > u.limits.fileBytes:
		return u.errorf("remove the file and download it when the app starts", "%s has more than %d bytes", e.shown(),
			u.limits.fileBytes)
	case u.written > u.limits.bytes:
		return u.errorf("exclude files that the app does not need to run", "the files have more than %d bytes in total",
			u.limits.bytes)
	}
	return u.errorf("this archive looks designed to fill the disk; remove files that repeat the same byte",
		"the files have more than %d times the bytes of the archive", u.limits.ratio)
}

// entryContent distinguishes read errors from write errors.
type entryContent struct {
	u    *unpacking
	e    entry
	from io.Reader
}

func (c *entryContent) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.u.damaged(c.e, err)
	}
	return n, err
}
