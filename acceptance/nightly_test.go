package acceptance

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tendril/internal/testing/testpeer"
)

// A nightly run stores the result of each passing test in a folder for the commit, and skips these tests when
// restarted. TENDRIL_NIGHTLY_DIR is the parent folder; the default is in the user's cache folder.

// nightlyFolder returns "" if this is not a nightly run or the work tree has changes.
var nightlyFolder = sync.OnceValue(func() string {
	if !testpeer.Nightly() {
		return ""
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").Output()
	if err != nil || strings.Contains(string(commit), "-dirty") {
		return ""
	}
	root := os.Getenv("TENDRIL_NIGHTLY_DIR")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		root = filepath.Join(cache, "tendril-nightly")
	}
	return filepath.Join(root, strings.TrimSpace(string(commit)))
})

func resume(t *testing.T) {
	t.Helper()
	dir := nightlyFolder()
	if dir == "" {
		return
	}
	switch text, err := os.ReadFile(resultFile(dir, t.Name())); {
	case err == nil:
		t.Skipf("passed before at this commit: %s", text)
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
}

func resultFile(dir, test string) string { return filepath.Join(dir, url.PathEscape(test)+".txt") }

func report(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	t.Log(text)
	dir := nightlyFolder()
	if dir == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755),
			os.WriteFile(resultFile(dir, t.Name()), []byte(text+"\n"), 0o644)); err != nil {
			t.Errorf("writing the result: %v", err)
		}
		fmt.Printf("%s: %s\n", t.Name(), text)
	})
}

func writeNightlyTable(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return err
	}
	var table strings.Builder
	table.WriteString("| test | result |\n|---|---|\n")
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := url.PathUnescape(strings.TrimSuffix(filepath.Base(path), ".txt"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&table, "| %s | %s |\n", name, strings.TrimSpace(string(text)))
	}
	return os.WriteFile(filepath.Join(dir, "results.md"), []byte(table.String()), 0o644)
}

func TestNightlyTableHasEachResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"TestB": "lost 0 of 5", "TestA/A1 kill -9": "lost 0 of 7"} {
		if err := os.WriteFile(resultFile(dir, name), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeNightlyTable(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "| test | result |\n|---|---|\n| TestA/A1 kill -9 | lost 0 of 7 |\n| TestB | lost 0 of 5 |\n"
	if string(got) != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}
