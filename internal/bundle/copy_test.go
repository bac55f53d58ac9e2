package bundle

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestAFolderIsCopiedAsItIs(t *testing.T) {
	t.Parallel()
	source := folder(t, map[string]string{"shop/app.py": "one", "shop/node_modules/x/index.js": "x", "shop/.git/HEAD": "ref",
		"shop/data/queues.db": "db", "shop/run": "#!/bin/sh\n"})
	source = filepath.Join(source, "shop")
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := errors.Join(os.Symlink("app.py", filepath.Join(source, "main.py")), os.Chmod(filepath.Join(source, "run"), 0o755),
		syscall.Mkfifo(filepath.Join(source, "pipe"), 0o600), os.Symlink(source, source+"-current"),
		os.Chtimes(filepath.Join(source, "app.py"), then, then))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := UnpackVersion(filepath.Join(source, "data"), source+"-current", then)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "app.py"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}

	var found []string
	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
		} else if !d.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	if want := []string{"app.py", "main.py", "node_modules/x/index.js", "run"}; !slices.Equal(found, want) {
		t.Errorf("the copy has %q, want %q", found, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "main.py"))
	info, err2 := os.Stat(filepath.Join(dir, "main.py"))
	if err != nil || err2 != nil || string(text) != "one" || !info.ModTime().Equal(then) {
		t.Errorf("the copy of a file has %q of %v, %v, %v", text, info.ModTime(), err, err2)
	}
	if info, err := os.Stat(filepath.Join(dir, "run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of a program: %v, %v", info.Mode(), err)
	}
}

func TestAFolderNamedLikeVersionControlIsPacked(t *testing.T) {
	t.Parallel()
	source := filepath.Join(folder(t, map[string]string{".git/Procfile": "web: run", ".git/.hg/HEAD": "ref"}), ".git")
	var packed bytes.Buffer
	if err := Pack(&packed, source, source); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil || len(archive.File) != 1 || archive.File[0].Name != "Procfile" {
		t.Errorf("the archive has %d entries: %v", len(archive.File), err)
	}
}

func TestALargeFolderIsNotCopied(t *testing.T) {
	t.Parallel()
	source, data := folder(t, map[string]string{"shop/large": ""}), t.TempDir()
	if err := os.Truncate(filepath.Join(source, "shop", "large"), maxCopiedBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := UnpackVersion(data, filepath.Join(source, "shop"), time.Now()); err == nil {
		t.Error("it was copied")
	}
	if left, err := filepath.Glob(filepath.Join(data, "versions", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
