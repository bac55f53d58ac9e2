package base

import (
	"bytes"
	"cmp"
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

// OpenBundle opens the bundle in a folder. Its errors have an exit status.
func OpenBundle(dir string) (*bundle.Bundle, error) {
	b, err := bundle.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Usagef("folder %s not found", dir).
			Hint("name the folder of the app and its Procfile, or a zip archive of its content")
	} else if err != nil {
		return nil, Fail(ExitUsage, err)
	}
	return b, nil
}

// IsArchive reports whether path is an archive.
func IsArchive(path string) bool {
	archive, err := bundle.IsArchive(path)
	return err == nil && archive
}

// OpenApp opens the app's folder or archive. An archive is unpacked to the data directory of the environment that runs
// it. called, if not "", replaces the archive's name as the environment's default name.
func OpenApp(c *CLI, cmd *cobra.Command, path, called string) (*bundle.Bundle, error) {
	if !IsArchive(path) {
		return OpenBundle(path)
	}

	b := &bundle.Bundle{Called: cmp.Or(called, bundle.ArchiveName(path))}
	cfg, err := c.LoadSettings(cmd, b)
	if err != nil {
		return nil, err
	}
	if b, err = unpackApp(c, cfg.DataDir, path, b.Called); err != nil {
		return nil, err
	}

	// The bundle's own settings may choose another data directory.
	if named, err := c.LoadSettings(cmd, b); err == nil && named.DataDir != cfg.DataDir {
		if err := bundle.RemoveVersion(b.Dir); err != nil {
			return nil, err
		}
		cfg = named
		if b, err = unpackApp(c, cfg.DataDir, path, b.Called); err != nil {
			return nil, err
		}
	}

	pruneUnlessRunning(c, cfg.DataDir, b.Dir)
	return b, nil
}

// pruneUnlessRunning keeps the versions of a running environment, which may still use one of the oldest.
func pruneUnlessRunning(c *CLI, dataDir, dir string) {
	if _, err := api.ReadInstance(dataDir); !errors.Is(err, api.ErrNotRunning) {
		return
	}
	if err := bundle.PruneVersions(dir); err != nil {
		c.PrintWarnings(yamlfile.Problem{Text: err.Error()})
	}
}

func unpackApp(c *CLI, dataDir, path, called string) (*bundle.Bundle, error) {
	dir, err := bundle.UnpackVersion(dataDir, path, time.Now())
	if err != nil {
		return nil, Fail(ExitUsage, err)
	}

	b, err := OpenBundle(dir)
	if err != nil {
		c.showAs(dir, path)
		return nil, errors.Join(err, bundle.RemoveVersion(dir))
	}

	b.Called = called
	b.Archive, err = filepath.Abs(path)
	return b, err
}

// OpenForInspection opens a folder, or unpacks an archive to a temporary folder. Output shows the archive's own name.
func (c *CLI) OpenForInspection(path string) (*bundle.Bundle, error) {
	if !IsArchive(path) {
		return OpenBundle(path)
	}

	folder, err := os.MkdirTemp("", "tendril-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder to unpack %s: %w", path, err)
	}
	c.AtEnd(func() { _ = os.RemoveAll(folder) })

	dir := filepath.Join(folder, bundle.ArchiveName(path))
	if err := bundle.Unpack(path, dir); err != nil {
		return nil, Fail(ExitUsage, err)
	}
	c.showAs(dir, path)
	return OpenBundle(dir)
}

func (c *CLI) showAs(unpacked, archive string) {
	c.Out = &renaming{c.Out, []byte(unpacked), []byte(archive)}
	c.Err = &renaming{c.Err, []byte(unpacked), []byte(archive)}
}

// renaming replaces a name in the output. The name must not be split across writes.
type renaming struct {
	w        io.Writer
	from, to []byte
}

func (r *renaming) Write(p []byte) (int, error) {
	if _, err := r.w.Write(bytes.ReplaceAll(p, r.from, r.to)); err != nil {
		return 0, err
	}
	return len(p), nil
}
