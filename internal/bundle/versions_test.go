package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPruneVersions(t *testing.T) {
	t.Parallel()
	day := func(hour int) string {
		return time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC).Format(versionTime)
	}
	for name, c := range map[string]struct {
		there      []string // paths below versions/; folders end in a slash
		dir, inUse string
		gone       []string
	}{
		"one name": {
			[]string{day(1) + "/shop/", day(2) + "/shop/", day(3) + "/shop/", day(4) + "/shop/", day(5) + "/shop/",
				day(6) + "/shop/"}, day(6) + "/shop", "",
			[]string{day(1)},
		},
		"numbers in the names": {
			[]string{day(1) + "/shop-1.0.1/", day(2) + "/shop-1.0.2/", day(3) + "/shop-1.0.3/", day(4) + "/shop-1.0.4/",
				day(5) + "/shop-1.0.5/", day(6) + "/shop-1.0.6/", day(7) + "/shop-1.0.7/"}, day(7) + "/shop-1.0.7", "",
			[]string{day(1), day(2)},
		},
		"an old one serves": {
			[]string{day(1) + "/a/", day(2) + "/b/", day(3) + "/c/", day(4) + "/d/", day(5) + "/e/", day(6) + "/f/",
				day(7) + "/g/"}, day(7) + "/g",
			day(1) + "/a", []string{day(2)},
		},
		"a folder in an old one serves": {
			[]string{day(1) + "/a/app/", day(2) + "/b/", day(3) + "/c/", day(4) + "/d/", day(5) + "/e/", day(6) + "/f/",
				day(7) + "/g/"}, day(7) + "/g",
			day(1) + "/a/app", []string{day(2)},
		},
		"the clock was set back": {
			[]string{day(1) + "/e/", day(2) + "/a/", day(3) + "/b/", day(4) + "/c/", day(5) + "/d/", day(6) + "/f/",
				day(7) + "/g/"}, day(1) + "/e",
			day(4) + "/c", []string{day(2)},
		},
		"the new one was removed": {
			[]string{day(1) + "/a/", day(2) + "/b/", day(3) + "/c/", day(4) + "/d/", day(5) + "/e/", day(6) + "/f/"},
			day(7) + "/g", "", []string{day(1)},
		},
		"no more than five": {
			[]string{day(1) + "/a/", day(2) + "/b/", day(3) + "/c/", day(4) + "/d/", day(5) + "/e/"}, day(5) + "/e", "", nil,
		},
		"broken off, or under way": {
			[]string{day(1) + "/.a.unpacking-1/", day(2) + "/", day(3) + "/b/", day(4) + "/c/", day(5) + "/.d.unpacking-2/x/",
				day(6) + "/", day(7) + "/e/", day(8) + "/f/", day(9) + "/g/"}, day(9) + "/g", "",
			[]string{day(1), day(2)},
		},
		"no versions": {
			[]string{"mine/shop/", "20261120/shop/", "2026-11-20/", day(1), day(2) + "/a/", day(3) + "/b/", day(4) + "/c/",
				day(5) + "/d/", day(6) + "/e/", day(7) + "/f/"}, day(7) + "/f", "", []string{day(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, f := range c.there {
				files[filepath.Join("data", versionsFolder, f)+f[len(strings.TrimRight(f, "/")):]] = ""
			}
			versions := filepath.Join(folder(t, files), "data", versionsFolder)
			inUse := ""
			if c.inUse != "" {
				inUse = filepath.Join(versions, c.inUse)
			}
			if err := PruneVersions(filepath.Join(versions, c.dir), inUse); err != nil {
				t.Fatal(err)
			}
			var gone []string
			for _, f := range c.there {
				if _, err := os.Stat(filepath.Join(versions, f)); err != nil {
					first, _, _ := strings.Cut(f, "/")
					gone = append(gone, first)
					if _, err := os.Stat(filepath.Join(versions, first)); err == nil {
						t.Errorf("the folder of %s is left, empty", f)
					}
				}
			}
			if diff := cmp.Diff(c.gone, gone); diff != "" {
				t.Error(diff)
			}
		})
	}
}
