package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"tendril/yamlfile"
)

// maxLink bounds where a link leads, in bytes.
const maxLink = 4096

// link makes the links of the archive, once everything else is in its place,
// and refuses those that lead out. What a link says is not enough to tell: one may
// lead through another. So they are also followed, by a system that refuses to
// leave the folder; until then nothing else follows them.
func (u *unpacking) link(root *os.Root) error {
	for _, e := range u.entries {
		if e.kind != linkEntry {
			continue
		}
		target, err := u.target(e)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(e.path), 0o750); err != nil {
			return fmt.Errorf("unpacking %s: %w", u.archive, err)
		}
		if err := root.Symlink(target, e.path); err != nil {
			return fmt.Errorf("unpacking %s: %w", u.archive, err)
		}
	}
	for _, e := range u.entries {
		if e.kind != linkEntry {
			continue
		}
		if _, err := root.Stat(e.path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return u.errorf("leave the link out", "%s is a link that leads nowhere", e.shown())
			}
			return u.errorf("let links lead to files of the bundle",
				"%s is a link that leads out of the bundle, or in a circle", e.shown())
		}
	}
	return nil
}

// target reads where a link leads, and refuses what can be told from that.
func (u *unpacking) target(e entry) (string, error) {
	from, err := e.file.Open()
	if err != nil {
		return "", u.damaged(e, err)
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, maxLink+1))
	if err != nil {
		return "", u.damaged(e, err)
	}
	target := string(data)
	switch {
	case target == "" || len(target) > maxLink || !utf8.ValidString(target) || strings.ContainsFunc(target,
		yamlfile.IsControl) ||
		strings.Contains(target, `\`):
		return "", u.errorf("let links lead to files of the bundle", "%s is a link whose target is no path", e.shown())
	case path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(e.path), target)):
		return "", u.errorf("let links lead to files of the bundle, by a relative path",
			"%s is a link that leads out of the bundle", e.shown())
	}
	return target, nil
}
