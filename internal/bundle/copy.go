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

const (
	maxCopiedFiles = 200_000
	maxCopiedBytes = 4 << 30
)

func notCopied() []string { return []string{".git", ".hg", ".svn"} }

func walkCopied(folder, dataDir string, add func(path, relative string, info fs.FileInfo) error) error {
	from, err := filepath.EvalSymlinks(folder) // may be a link to a release
	if err != nil {
		return err
	}
	excluded, _ := os.Stat(dataDir) // nil if there is no data directory
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if relative != "." && (slices.Contains(notCopied(), d.Name()) || excluded != nil && os.SameFile(info, excluded)) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return add(path, relative, info)
	})
}

type folderCopy struct {
	to      string
	files   int
	bytes   int64
	folders []copiedFolder // parents before their children
}

type copiedFolder struct {
	path string
	info fs.FileInfo
}

// copyFolder copies a folder completely or not at all, except for version control folders, the data directory and
// special files. It preserves permissions, times, links and, if run as root, owners, but makes folders writable for
// their owner.
func copyFolder(folder, dir, dataDir string) error {
	err := createFolder(dir, "copying", func(staging string) error {
		f := &folderCopy{to: staging}
		return f.run(folder, dataDir)
	})
	if err != nil {
		return fmt.Errorf("copying the folder %s: %w", folder, err)
	}

	return nil
}

// run sets the permissions and times of folders last, because creating files requires write permission and changes the
// times.
func (f *folderCopy) run(folder, dataDir string) error {
	if err := walkCopied(folder, dataDir, f.add); err != nil {
		return err
	}
	for _, folder := range slices.Backward(f.folders) {
		mode, modified := folder.info.Mode().Perm()|0o700, folder.info.ModTime()
		if err := errors.Join(os.Chmod(folder.path, mode), os.Chtimes(folder.path, modified, modified)); err != nil {
			return err
		}
	}
	return nil
}

func (f *folderCopy) add(path, relative string, info fs.FileInfo) (err error) {
	to := filepath.Join(f.to, relative)

	switch mode := info.Mode(); {
	case mode.IsDir():
		f.folders = append(f.folders, copiedFolder{to, info})
		err = os.MkdirAll(to, 0o700)
	case mode.Type() == fs.ModeSymlink:
		var target string
		if target, err = os.Readlink(path); err == nil {
			err = os.Symlink(target, to)
		}
	case mode.IsRegular():
		f.files++
		f.bytes += info.Size()
		if f.files > maxCopiedFiles || f.bytes > maxCopiedBytes {
			return fmt.Errorf("it has more than %d files or %d GiB: keep data outside of it, or run it in place with 'tendril up'",
				maxCopiedFiles, maxCopiedBytes>>30)
		}
		err = copyFile(path, to, info)
	default:
		return nil
	}

	if owner, ok := info.Sys().(*syscall.Stat_t); ok && err == nil && os.Geteuid() == 0 {
		err = os.Lchown(to, int(owner.Uid), int(owner.Gid))
	}

	return err
}

// openWalked opens a file that may have been replaced by a link or a FIFO since the walk.
func openWalked(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

func copyFile(path, to string, info fs.FileInfo) error {
	source, err := openWalked(path)
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	if !cloneContent(file, source) {
		_, err = io.Copy(file, source)
	}

	err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Close())
	if err != nil {
		return err
	}

	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
