package base

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config/yamlfile"
)

// OpenBundle opens the bundle in a folder; an error has its exit status.
func OpenBundle(dir string) (*bundle.Bundle, error) {
	b, err := bundle.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Usagef("there is no folder %s", dir).
			Hint("name the folder of the app and its Procfile, or a zip archive of its content")
	} else if err != nil {
		return nil, Fail(ExitUsage, err)
	}
	return b, nil
}

// IsArchive reports whether an argument names an archive rather than a folder.
// What is not there is told by whoever opens it.
func IsArchive(path string) bool {
	archive, err := bundle.IsArchive(path)
	return err == nil && archive
}

// OpenApp opens the folder or archive that is to be run. An archive is unpacked in the data directory, in a folder
// that stays as long as it is among the newest. When it holds no bundle, nothing is left behind.
func OpenApp(c *CLI, cmd *cobra.Command, path string) (*bundle.Bundle, error) {
	if !IsArchive(path) {
		return OpenBundle(path)
	}
	// The settings with the bundle in them are read later; none that it has says where data lies.
	dataDir, err := c.DataDir(cmd)
	if err != nil {
		return nil, err
	}

	dir, err := bundle.UnpackVersion(dataDir, path, time.Now())
	if err != nil {
		return nil, Fail(ExitUsage, err)
	}

	b, err := OpenBundle(dir)
	if err != nil {
		c.Err = &renaming{c.Err, []byte(dir), []byte(path)}
		return nil, errors.Join(err, bundle.RemoveVersion(dir))
	}

	if b.Archive, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	// One that runs there will refuse this one, and may run an old version.
	if _, err := api.ReadInstance(dataDir); errors.Is(err, api.ErrNotRunning) {
		if err := bundle.PruneVersions(dir); err != nil {
			c.PrintWarnings(yamlfile.Problem{Text: err.Error()})
		}
	}

	return b, nil
}

// LookInto opens a folder or an archive to look at. What is in an archive is unpacked for a moment; whatever is
// printed calls that folder by the archive's name. The folder is removed when the command has ended.
func (c *CLI) LookInto(path string) (*bundle.Bundle, error) {
	if !IsArchive(path) {
		return OpenBundle(path)
	}

	folder, err := os.MkdirTemp("", "tendril-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to unpack %s in: %w", path, err)
	}
	c.AtEnd(func() { _ = os.RemoveAll(folder) }) // the system removes what is left

	dir := filepath.Join(folder, bundle.ArchiveName(path))
	if err := bundle.Unpack(path, dir); err != nil {
		return nil, Fail(ExitUsage, err)
	}
	c.Out = &renaming{c.Out, []byte(dir), []byte(path)}
	c.Err = &renaming{c.Err, []byte(dir), []byte(path)}
	return OpenBundle(dir)
}

// renaming is a writer that calls a folder by another name. Each write must hold the folder whole or not at all.
type renaming struct {
	w        io.Writer
	from, to []byte
}

// Write writes p with the new name in the place of the old one.
func (r *renaming) Write(p []byte) (int, error) {
	if _, err := r.w.Write(bytes.ReplaceAll(p, r.from, r.to)); err != nil {
		return 0, err
	}
	return len(p), nil
}
