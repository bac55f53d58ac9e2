package inspect

import (
	"path/filepath"
	"slices"
	"testing"

	"tendril/internal/cli/base"
)

// Otherwise an environment would be listed twice, as two of the same name.
func TestDataDirectoryIsKnownByItsAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, given := range []string{"data", "./data", dir + "/data/"} {
		c := &base.CLI{Environ: []string{"HOME=" + dir, "TENDRIL_DATA_DIR=" + given}}
		if dirs := knownDirectories(c); !slices.Contains(dirs, filepath.Join(dir, "data")) {
			t.Errorf("%s: looks into %q", given, dirs)
		}
	}
}
