package inspect

import (
	"path/filepath"
	"slices"
	"testing"

	"tendril/internal/cli/base"
)

// A relative path would list the environment a second time.
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
