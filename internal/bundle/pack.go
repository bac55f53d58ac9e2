package bundle

import (
	"archive/zip"
	"io"
	"io/fs"
	"os"
)

// Pack writes a folder as a zip archive, with permissions and links, but without version control folders, the data
// directory and special files.
func Pack(w io.Writer, folder, dataDir string) error {
	z := zip.NewWriter(w)
	err := walkCopied(folder, dataDir, func(path, relative string, info fs.FileInfo) error {
		if relative == "." {
			return nil
		}
		return packEntry(z, path, relative, info)
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func packEntry(z *zip.Writer, path, relative string, info fs.FileInfo) error {
	header, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	header.Name, header.Method = relative, zip.Deflate
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
	file, err := openWalked(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
