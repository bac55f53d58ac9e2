package environment

import (
	"os"
	"path/filepath"
	"testing"

	"tendril/config"
)

// TestVersionNumbersAreNotUsedAgain, also not by the next process, by one that cannot read
// the file, or where a link stands in its place.
func TestVersionNumbersAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(show string) *Environment {
		cfg, err := config.Load(config.Sources{Flags: map[string]string{"data-dir": dir, "console": show}})
		if err != nil {
			t.Fatal(err)
		}
		return New(Options{Config: cfg, Logger: discard()})
	}
	mustBe := func(when string, e *Environment, want int) {
		t.Helper()
		if got := e.nextVersion(); got != want {
			t.Errorf("%s: version %d, want %d", when, got, want)
		}
	}
	first := start("127.0.0.1:0")
	mustBe("the first", first, 1)
	mustBe("a deployment", first, 2)
	mustBe("a restart", start("127.0.0.1:0"), 3)
	mustBe("no file is written", start("off"), 1)
	again := start("127.0.0.1:0")
	mustBe("the next restart", again, 4)
	path := filepath.Join(dir, versionFile)
	if err := os.WriteFile(path, []byte("many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustBe("a damaged file", again, 5)
	mustBe("a file that was put right", start("127.0.0.1:0"), 6)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("70\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	mustBe("a link", again, 6)
	if text, err := os.ReadFile(target); string(text) != "70\n" {
		t.Errorf("the link's target holds %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left is %q, %v", left, err)
	}
}
