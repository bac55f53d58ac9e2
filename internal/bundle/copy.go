package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// The limits of a folder that is copied.
const (
	maxCopiedFiles = 200_000
	maxCopiedBytes = 4 << 30
)

// notCopied are names that versions of an app do not need: histories of version control.
func notCopied() []string { return []string{".git", ".hg", ".svn"} }

// folderCopy is the copy of a folder under way.
type folderCopy struct {
	from, to string
	without  fs.FileInfo // a folder that is left out: the data directory
	files    int
	bytes    int64
	folders  []copiedFolder // each before those in it
}

// copiedFolder is a folder of the copy, with what is known about the original.
type copiedFolder struct {
	path string
	info fs.FileInfo
}

// copyFolder makes dir a copy of a folder, whole or not at all. Permissions and times are kept, and owners where root
// copies, but the owner can write to all folders of the copy; links stay what they are. Histories of version control, the data directory, sockets and pipes are left out.
// Files share their blocks with the original where the file system can do that, and are never hard links.
func copyFolder(folder, dir, dataDir string) error {
	from, err := filepath.EvalSymlinks(folder) // which may be a link to a release
	if err != nil {
		return err
	}

	without, _ := os.Stat(dataDir) // absent: nothing is left out

	err = makeWhole(dir, "copying", func(staging string) error {
		f := &folderCopy{from: from, to: staging, without: without}
		return f.run()
	})
	if err != nil {
		return fmt.Errorf("copying the folder %s: %w", folder, err)
	}

	return nil
}

// run copies all files, and then gives the folders their permissions and times, which each file in them changed.
func (f *folderCopy) run() error {
	err := filepath.WalkDir(f.from, f.add)
	for _, folder := range slices.Backward(f.folders) {
		if err != nil {
			return err
		}
		modified := folder.info.ModTime()
		err = errors.Join(os.Chmod(folder.path, folder.info.Mode().Perm()|0o700), os.Chtimes(folder.path, modified, modified))
	}
	return err
}

// add copies one file or folder.
func (f *folderCopy) add(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}

	info, err := d.Info()
	if err != nil {
		return err
	}

	if slices.Contains(notCopied(), d.Name()) || f.without != nil && os.SameFile(info, f.without) {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}

	relative, err := filepath.Rel(f.from, path)
	if err != nil {
		return err
	}

	to := filepath.Join(f.to, relative)

	switch {
	case d.IsDir():
		f.folders = append(f.folders, copiedFolder{to, info})
		err = os.MkdirAll(to, 0o700)
	case d.Type() == fs.ModeSymlink:
		var target string
		if target, err = os.Readlink(path); err == nil {
			err = os.Symlink(target, to)
		}
	case d.Type().IsRegular():
		f.files++
		f.bytes += info.Size()
		if f.files > maxCopiedFiles || f.bytes > maxCopiedBytes {
			return fmt.Errorf("it has more than %d files or %d GiB: keep data outside of it, or run it in place with 'tendril up'",
				maxCopiedFiles, maxCopiedBytes>>30)
		}
		err = copyFile(path, to, info)
	default:
		return nil // a socket, a pipe or a device
	}

	if owner, ok := info.Sys().(*syscall.Stat_t); ok && err == nil && os.Geteuid() == 0 {
		err = os.Lchown(to, int(owner.Uid), int(owner.Gid))
	}

	return err
}

// copyFile copies a regular file.
func copyFile(path, to string, info fs.FileInfo) error {
	source, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	if !sharesBlocks(file, source) {
		_, err = io.Copy(file, source)
	}

	err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Close())
	if err != nil {
		return err
	}

	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
