package trust

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Error says that others decide what is in a file or folder.
type Error struct {
	// Path is the file or folder.
	Path string
	// Text says who decides: "it belongs to the user alice".
	Text string
	// Fix is the command that changes that.
	Fix string
	// Everybody tells that any user of the machine may write there.
	Everybody bool
}

// Error names the path and says who decides.
func (e *Error) Error() string { return e.Path + ": " + e.Text }

// File returns an [*Error] when another user decides what is in a file, or may
// replace it; nil when only this user does. What is missing is not checked.
func File(path string) error {
	for _, at := range []string{path, filepath.Dir(path)} {
		if err := check(at); err != nil {
			return err
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return missing(err)
	}
	return check(filepath.Dir(real))
}

// mostChecked bounds how many files Folder looks at.
const mostChecked = 2000

// Folder returns an [*Error] when another user decides what is in a folder, or in one of the files and folders in
// it, with all that is below them; nil when only this user does. What is missing is not checked.
func Folder(dir string, inside ...string) error {
	if err := check(dir); err != nil {
		return err
	}
	left := mostChecked
	for _, name := range inside {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, _ fs.DirEntry, err error) error {
			if left--; err != nil || left < 0 {
				return missing(err)
			}
			return check(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func missing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return missing(err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		if wrong := judge(info.Mode(), stat.Uid, stat.Gid, uint32(os.Geteuid())); wrong != nil {
			wrong.Path, wrong.Fix = path, wrong.Fix+" "+path
			return wrong
		}
	}
	return nil
}

// Owns reports whether this user owns a file.
func Owns(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}

// judge says who beside the user self, and root, decides what is in a file or folder;
// nil for nobody. In a folder with the sticky bit nobody can replace another's file.
func judge(mode fs.FileMode, uid, gid, self uint32) *Error {
	if mode.IsDir() && mode&fs.ModeSticky != 0 {
		mode &^= 0o022
	}
	octal := fmt.Sprintf(" may write to it (mode %04o)", mode.Perm())
	switch Decide(mode, uid, gid, self) {
	case Owner:
		return &Error{Text: "it belongs to the user " + userName(uid), Fix: "chown " + userName(self)}
	case Everybody:
		return &Error{Text: "every user" + octal, Fix: "chmod go-w", Everybody: true}
	case Group:
		return &Error{Text: "the group " + groupName(gid) + octal, Fix: "chmod g-w"}
	}
	return nil
}

// Others tells who else decides what is in a file or folder.
type Others int

// Who else decides: nobody, the user that owns it, every user, or the members of its group.
const (
	Nobody Others = iota
	Owner
	Everybody
	Group
)

// Decide tells who beside the user self decides what is in a file or folder with this
// mode, owner and group. Root may own it, since root can do everything anyway. The group may write
// where it is the user's own, which then has the user's number.
func Decide(mode fs.FileMode, uid, gid, self uint32) Others {
	switch {
	case uid != self && uid != 0:
		return Owner
	case mode&0o002 != 0:
		return Everybody
	case mode&0o020 != 0 && gid != self:
		return Group
	}
	return Nobody
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
