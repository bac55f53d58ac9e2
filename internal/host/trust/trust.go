package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Error means that other users control the contents of a file or folder.
type Error struct {
	Path     string
	Text     string
	Fix      string
	AllUsers bool
}

// Error returns the path and the text.
func (e *Error) Error() string { return e.Path + ": " + e.Text }

// File returns an [*Error] if another user controls a file. Errors about all local users take precedence. If the file
// is missing, only its folder is checked.
func File(path string) error {
	found := worse(checkPath(path), checkPath(filepath.Dir(path)))
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return worse(found, ignoreMissing(err))
	}
	return worse(found, checkPath(filepath.Dir(target)))
}

const mostChecked = 200_000

// Folder is [File] for a folder. It also checks the entries of dir named in inside and all files below them, and fails
// if there are too many.
func Folder(dir string, inside ...string) error { return checkFolder(mostChecked, dir, inside) }

func checkFolder(most int, dir string, inside []string) error {
	found := File(dir)
	checked := 0
	for _, name := range inside {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return ignoreMissing(err)
			}
			checked++
			if checked > most {
				return fmt.Errorf("%s has more than %d files, too many to check who can change them", dir, most)
			}
			found = worse(found, checkPath(path))
			return nil
		})
		found = worse(found, err)
	}
	return found
}

func worse(first, second error) error {
	if first == nil || concernsAllUsers(second) && !concernsAllUsers(first) {
		return second
	}
	return first
}

func concernsAllUsers(err error) bool {
	unsafe, ok := errors.AsType[*Error](err)
	return ok && unsafe.AllUsers
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func checkPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return ignoreMissing(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if unsafe := judge(info.Mode(), stat.Uid, stat.Gid, uint32(os.Geteuid())); unsafe != nil {
		unsafe.Path = path
		unsafe.Fix += " " + path
		return unsafe
	}
	return nil
}

// Owns reports whether the process's effective user owns a file.
func Owns(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}

func judge(mode fs.FileMode, uid, gid, self uint32) *Error {
	if mode.IsDir() && mode&fs.ModeSticky != 0 {
		mode &^= 0o022
	}

	others := Controllers(mode, uid, gid, self)
	if others == Owner && mode&0o002 != 0 {
		others = AllUsers // the more serious problem
	}

	canWrite := fmt.Sprintf(" can write to it (mode %04o)", mode.Perm())
	switch others {
	case Owner:
		return &Error{Text: "it belongs to user " + userName(uid), Fix: "chown " + userName(self)}
	case AllUsers:
		return &Error{Text: "every user" + canWrite, Fix: "chmod go-w", AllUsers: true}
	case Group:
		return &Error{Text: "group " + groupName(gid) + canWrite, Fix: "chmod g-w"}
	}
	return nil
}

// Others are the other users who control a file or folder.
type Others int

// The values of [Others].
const (
	None Others = iota
	Owner
	AllUsers
	Group
)

// Controllers returns which users besides self control a file or folder. It trusts root and the user's private group,
// whose GID equals the UID.
func Controllers(mode fs.FileMode, uid, gid, self uint32) Others {
	switch {
	case uid != self && uid != 0:
		return Owner
	case mode&0o002 != 0:
		return AllUsers
	case mode&0o020 != 0 && gid != self:
		return Group
	}
	return None
}

func userName(uid uint32) string {
	id := strconv.Itoa(int(uid))
	if u, err := user.LookupId(id); err == nil {
		id = u.Username
	}
	return id
}

func groupName(gid uint32) string {
	id := strconv.Itoa(int(gid))
	if g, err := user.LookupGroupId(id); err == nil {
		id = g.Name
	}
	return id
}
