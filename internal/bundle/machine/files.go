package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tendril/internal/bundle"
)

const (
	newMode   fs.FileMode = 0o644
	newFolder fs.FileMode = 0o755
)

func (a *Applier) file(ctx context.Context, f *bundle.MachineFile) (Outcome, error) {
	owner, err := findOwner(f.Owner, f.Group)
	if err != nil {
		return unchanged, err
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), newFolder); err != nil {
		return unchanged, err
	}
	if f.IsLink {
		return a.link(f, owner)
	}

	var content io.ReadSeeker = strings.NewReader(f.Content)
	if f.Source != "" {
		source, err := openSource(ctx, f.Source)
		if err != nil {
			return unchanged, err
		}
		defer source.Close()
		content = source.File
	}

	want := attributes{newMode, owner}
	if f.HasMode {
		want.mode = f.Mode
	}

	info, err := os.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Changed, replaceContent(f.Path, content, want)
	case err != nil:
		return unchanged, err
	case info.IsDir():
		return unchanged, fmt.Errorf("%s is a folder: give the file another path, or remove the folder", f.Path)
	case !info.Mode().IsRegular():
		return Changed, replaceContent(f.Path, content, want)
	}
	want.keepUnset(info, f)
	return replaceFile(f.Path, info, content, want)
}

func replaceFile(path string, info fs.FileInfo, content io.ReadSeeker, want attributes) (Outcome, error) {
	// The path may become a link, so only the open file is changed.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unchanged, err
	}
	defer f.Close()
	equal, err := sameContent(f, content)
	if err != nil {
		return unchanged, err
	}
	if equal {
		did, err := want.set(f, info)
		return changedIf(did), err
	}
	if err := backUp(path); err != nil {
		return unchanged, err
	}
	return Changed, replaceContent(path, content, want)
}

type attributes struct {
	mode fs.FileMode
	ownership
}

// ownership has -1 for the current owner, or for tendril's user if the file is new.
type ownership struct{ uid, gid int }

func (a *attributes) keepUnset(current fs.FileInfo, f *bundle.MachineFile) {
	if !f.HasMode {
		a.mode = permissions(current.Mode())
	}
	if stat, ok := current.Sys().(*syscall.Stat_t); ok {
		if a.uid < 0 {
			a.uid = int(stat.Uid)
		}
		if a.gid < 0 {
			a.gid = int(stat.Gid)
		}
	}
}

func (a attributes) set(f *os.File, info fs.FileInfo) (did bool, err error) {
	if a.matches(info) && permissions(info.Mode()) == a.mode {
		return false, nil
	}
	if !a.matches(info) {
		if err := f.Chown(a.uid, a.gid); err != nil {
			return true, err
		}
	}
	return true, f.Chmod(a.mode) // changing the owner clears the setuid bit
}

func (o ownership) matches(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	isOwner := !ok || o.uid < 0 || o.uid == int(stat.Uid)
	isGroup := !ok || o.gid < 0 || o.gid == int(stat.Gid)
	return isOwner && isGroup
}

func permissions(mode fs.FileMode) fs.FileMode {
	return mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

func modeBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

func replaceContent(path string, content io.ReadSeeker, want attributes) (err error) {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}

	// The leading dot hides the file from programs that run every file in a folder.
	to, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	_, err = io.Copy(to, content)
	if err == nil && (want.uid >= 0 || want.gid >= 0) {
		err = to.Chown(want.uid, want.gid)
	}
	if err == nil {
		err = to.Chmod(want.mode)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}

	return os.Rename(to.Name(), path)
}

func backUp(path string) error {
	backup := path + ".bak"
	if err := os.Remove(backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(path, backup)
}

func sameContent(f, content io.Reader) (bool, error) {
	const part = 64 << 10
	one, other := make([]byte, part), make([]byte, part)
	for {
		n, errOne := io.ReadFull(f, one)
		m, errOther := io.ReadFull(content, other)
		switch {
		case !bytes.Equal(one[:n], other[:m]):
			return false, nil
		case n < part:
			return true, withoutEOF(errOne, errOther)
		}
	}
}

func withoutEOF(errs ...error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	})...)
}

// link also sets the mode of the link's target, as cfn-init does, unless the target has its own step.
func (a *Applier) link(f *bundle.MachineFile, want ownership) (Outcome, error) {
	did := false
	if to, err := os.Readlink(f.Path); err != nil || to != f.Content {
		if err := replaceByLink(f.Path, f.Content); err != nil {
			return unchanged, err
		}
		did = true
	}

	info, err := os.Lstat(f.Path)
	if err != nil {
		return changedIf(did), err
	}

	if !want.matches(info) {
		did = true
		if err := os.Lchown(f.Path, want.uid, want.gid); err != nil {
			return Changed, err
		}
	}

	target := f.Content
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(f.Path), target)
	}

	info, err = os.Stat(target)
	if err != nil || permissions(info.Mode()) == f.Mode || slices.Contains(a.files, filepath.Clean(target)) {
		return changedIf(did), nil
	}

	return Changed, os.Chmod(target, f.Mode)
}

func replaceByLink(path, to string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Symlink(to, path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: give the link another path, or remove the folder", path)
	case info.Mode().IsRegular():
		err = backUp(path)
	}

	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return err
	}

	return os.Symlink(to, path)
}

func findOwner(name, group string) (o ownership, err error) {
	o.uid, err = findID(name, func() (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return u.Uid, nil
	})
	if err != nil {
		return o, err
	}

	o.gid, err = findID(group, func() (string, error) {
		g, err := user.LookupGroup(group)
		if err != nil {
			return "", err
		}
		return g.Gid, nil
	})
	return o, err
}

func findID(name string, lookUp func() (string, error)) (int, error) {
	if name == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	text, err := lookUp()
	if err != nil {
		return -1, err
	}
	return strconv.Atoi(text)
}
