package bundle

import (
	"fmt"
	"os"
	"strings"
)

// maxMended bounds a hook whose line ends are mended: 1 MiB.
const maxMended = 1 << 20

// mendHooks makes hooks out of archives that were made on Windows start: it
// gives programs and scripts the execute permission, and scripts LF for CR LF, as
// the platforms of Elastic Beanstalk do.
func (u *unpacking) mendHooks(root *os.Root) error {
	for i := range u.entries {
		if e := &u.entries[i]; e.kind == fileEntry && isHook(e.path) {
			if err := u.mendHook(root, e); err != nil {
				return fmt.Errorf("unpacking %s: %w", u.archive, err)
			}
		}
	}
	return nil
}

func (u *unpacking) mendHook(root *os.Root, e *entry) error {
	if e.file.UncompressedSize64 > maxMended {
		return nil
	}
	data, err := root.ReadFile(e.path)
	if err != nil {
		return err
	}
	text := string(data)
	if !strings.HasPrefix(text, "#!") {
		if strings.HasPrefix(text, "\x7fELF") {
			return root.Chmod(e.path, 0o750)
		}
		return nil
	}
	if strings.Contains(text, "\r\n") {
		if err := root.WriteFile(e.path, []byte(strings.ReplaceAll(text, "\r\n", "\n")), 0o750); err != nil {
			return err
		}
	}
	return root.Chmod(e.path, 0o750)
}

// isHook reports whether a path is that of a hook: .platform/hooks/STAGE/FILE.
func isHook(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || parts[0] != platformName || parts[1] != "hooks" && parts[1] != "confighooks" ||
		strings.HasPrefix(parts[3], ".") {
		return false
	}
	switch Stage(parts[2]) {
	case Prebuild, Predeploy, Postdeploy:
		return true
	}
	return false
}
