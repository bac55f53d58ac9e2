package bundle

import (
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Pack writes a folder as a zip archive, with permissions and links. Like a deployment of a folder, it skips version
// control folders, the data directory and special files.
func Pack(w io.Writer, folder, dataDir string) error {
	from, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	without, _ := os.Stat(dataDir) // nil without a data directory
	z := zip.NewWriter(w)
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if slices.Contains(notCopied(), d.Name()) || without != nil && os.SameFile(info, without) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return packEntry(z, path, from, info)
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func packEntry(z *zip.Writer, path, from string, info fs.FileInfo) error {
	header, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(from, path)
	if err != nil {
		return err
	}
	header.Name, header.Method = filepath.ToSlash(name), zip.Deflate
	switch {
	case info.IsDir():
		header.Name += "/"
	case info.Mode().Type() == fs.ModeSymlink, info.Mode().IsRegular():
	default:
		return nil
	}

	to, err := z.CreateHeader(header)
	if err != nil || info.IsDir() {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		_, err = io.WriteString(to, target)
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
