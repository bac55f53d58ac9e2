package machine

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tendril/internal/bundle"
)

func show(t *testing.T, path string) string {
	t.Helper()
	is, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if to, err := os.Readlink(path); err == nil {
		return "-> " + filepath.Base(to)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s", is.Mode(), text)
}

func TestFilesAreWrittenWhereTheyDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "new", "file"), filepath.Join(dir, "link")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			fmt.Fprint(w, "far")
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	local := filepath.Join(dir, "local")
	if err := os.WriteFile(local, []byte("near"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(f bundle.MachineFile) bundle.MachineFile { f.Path = path; return f }
	for _, c := range []struct {
		file          bundle.MachineFile
		want          Outcome
		is, bak, link string
	}{
		{file(bundle.MachineFile{Content: "one"}), Changed, "-rw-r--r-- one", "", ""},
		{file(bundle.MachineFile{Content: "one"}), unchanged, "-rw-r--r-- one", "", ""},
		{file(bundle.MachineFile{Content: "one", Mode: 0o755, HasMode: true}), Changed, "-rwxr-xr-x one", "", ""},
		{file(bundle.MachineFile{Content: "two"}), Changed, "-rwxr-xr-x two", "-rwxr-xr-x one", ""},
		{file(bundle.MachineFile{Content: "twice"}), Changed, "-rwxr-xr-x twice", "-rwxr-xr-x two", ""},
		{file(bundle.MachineFile{Content: "twice", Mode: 0o600 | fs.ModeSetuid, HasMode: true}), Changed, "urw------- twice",
			"-rwxr-xr-x two", ""},
		{file(bundle.MachineFile{Source: server.URL + "/file", Mode: 0o640, HasMode: true}), Changed, "-rw-r----- far",
			"urw------- twice", ""},
		{file(bundle.MachineFile{Source: server.URL + "/file"}), unchanged, "-rw-r----- far", "urw------- twice", ""},
		{file(bundle.MachineFile{Source: local}), Changed, "-rw-r----- near", "-rw-r----- far", ""},
		{bundle.MachineFile{Path: link, IsLink: true, Content: path, Mode: 0o777, HasMode: true}, Changed, "-rw-r----- near",
			"-rw-r----- far", "-> file"},
		{bundle.MachineFile{Path: link, IsLink: true, Content: local, Mode: 0o400, HasMode: true}, Changed, "-rw-r----- near",
			"-rw-r----- far", "-> local"},
		{bundle.MachineFile{Path: link, IsLink: true, Content: local, Mode: 0o400, HasMode: true}, unchanged,
			"-rw-r----- near", "-rw-r----- far", "-> local"},
		{bundle.MachineFile{Path: link, Content: "now a file"}, Changed, "-rw-r----- near", "-rw-r----- far",
			"-rw-r--r-- now a file"},
	} {
		others := []Step{{Section: "files", Name: path}}
		got, err := NewApplier(&fakeSystem{}, others).file(t.Context(), &c.file)
		if err != nil || got != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.file, got, err, c.want)
		}
		if is, bak, to := show(t, path), show(t, path+".bak"), show(t, link); is != c.is || bak != c.bak || to != c.link {
			t.Errorf("%+v: %q, %q, %q; want %q, %q, %q", c.file, is, bak, to, c.is, c.bak, c.link)
		}
	}
	if is := show(t, local); is != "-r-------- near" {
		t.Errorf("the file that the link leads to is %q", is)
	}
	left, err := filepath.Glob(filepath.Join(dir, "new", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	for want, f := range map[string]bundle.MachineFile{
		"is a folder":                            {Path: dir, Content: "x"},
		"is a folder: give the link":             {Path: dir, IsLink: true, Content: "x"},
		"the server responded with 404":          file(bundle.MachineFile{Source: server.URL + "/none?secret=1"}),
		"no such file":                           file(bundle.MachineFile{Source: filepath.Join(dir, "none")}),
		"is not a regular file":                  file(bundle.MachineFile{Source: dir}),
		"unknown user no-such-user-of-this-test": file(bundle.MachineFile{Content: "x", Owner: "no-such-user-of-this-test"}),
	} {
		_, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

func TestLocalSourcesHaveAMaximumSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxDownload+1)); err != nil {
		t.Fatal(err)
	}
	a := NewApplier(&fakeSystem{}, nil)
	_, ofSource := a.source(t.Context(), &bundle.Source{Dir: filepath.Join(dir, "folder"), URL: path})
	_, ofFile := a.file(t.Context(), &bundle.MachineFile{Path: filepath.Join(dir, "file"), Source: path})
	for _, err := range []error{ofSource, ofFile} {
		if err == nil || !strings.Contains(err.Error(), "more than 1073741824 bytes") {
			t.Errorf("a file of %d bytes: %v", maxDownload+1, err)
		}
	}
}

func TestSourcesThatAreFIFOsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a := NewApplier(&fakeSystem{}, nil)
	_, ofSource := a.source(t.Context(), &bundle.Source{Dir: filepath.Join(dir, "folder"), URL: fifo})
	_, ofFile := a.file(t.Context(), &bundle.MachineFile{Path: filepath.Join(dir, "file"), Source: fifo})
	for _, err := range []error{ofSource, ofFile} {
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("reading from a FIFO: %v", err)
		}
	}
}

func TestAttributesOfAFileThatBecameALinkAreNotSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, target := filepath.Join(dir, "file"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.WriteFile(target, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Lstat(path)
	if err := errors.Join(err, os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}

	got, err := replaceFile(path, before, strings.NewReader("x"), attributes{0o666, ownership{-1, -1}})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%s, %v, want an error that names the file", got, err)
	}
	if is := show(t, target); is != "-rw------- x" {
		t.Errorf("the link's target is %q", is)
	}
}

type member struct {
	name, text, to string
	mode           int64
}

func tarOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Size: int64(len(m.text)), Mode: m.mode, Typeflag: tar.TypeReg}
		switch {
		case m.to != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.to
		case strings.HasSuffix(m.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name}
		h.SetMode(fs.FileMode(m.mode))
		text := m.text
		if m.to != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			text = m.to
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchivesAreUnpackedBelowTheirFolder(t *testing.T) {
	t.Parallel()
	good := []member{{name: "bin/", mode: 0o755}, {name: "bin/run", text: "run", mode: 0o755},
		{name: "/etc/a", text: "a", mode: 0o644}, {name: "run", to: "bin/run"}}
	for name, archive := range map[string][]byte{"tar": tarOf(t, good...), "gzip": gzipped(t, tarOf(t, good...)),
		"zip": zipOf(t, good...)} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "archive"), filepath.Join(dir, "to")
		if err := os.WriteFile(from, archive, 0o644); err != nil {
			t.Fatal(err)
		}
		for i, want := range []Outcome{Changed, unchanged, Changed} {
			if i == 2 {
				if err := os.WriteFile(filepath.Join(to, "etc", "a"), []byte("b"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := NewApplier(&fakeSystem{}, nil).source(t.Context(), &bundle.Source{Dir: to, URL: from})
			if got != want || err != nil {
				t.Errorf("%s, %d: %s, %v; want %s", name, i, got, err, want)
			}
		}
		if a, run, link := show(t, filepath.Join(to, "etc/a")), show(t, filepath.Join(to, "bin/run")),
			show(t, filepath.Join(to, "run")); a != "-rw-r--r-- a" || run != "-rwxr-xr-x run" || link != "-> run" {
			t.Errorf("%s: %q, %q, %q", name, a, run, link)
		}
	}
	for want, archive := range map[string][]byte{
		"points outside the folder": tarOf(t, member{name: "../x", text: "x", mode: 0o644}),
		`"l" points outside`:        tarOf(t, member{name: "l", to: "../x"}),
		`"m" points outside`:        zipOf(t, member{name: "m", to: "/etc"}),
		"neither a tar archive":     []byte(strings.Repeat("no archive ", 100)),
		"not an archive":            []byte("x"),
	} {
		dir := t.TempDir()
		from := filepath.Join(dir, "archive")
		if err := os.WriteFile(from, archive, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := NewApplier(&fakeSystem{}, nil).source(t.Context(), &bundle.Source{Dir: filepath.Join(dir, "to"), URL: from})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
			t.Errorf("%s: written outside", want)
		}
	}
}

func TestArchivesDoNotFollowLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to, out := filepath.Join(dir, "to"), filepath.Join(dir, "out")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(to, "link")); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(dir, "archive")
	if err := os.WriteFile(from, tarOf(t, member{name: "link/x", text: "x", mode: 0o644}), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := NewApplier(&fakeSystem{}, nil).source(t.Context(), &bundle.Source{Dir: to, URL: from})
	if _, lerr := os.Lstat(filepath.Join(out, "x")); err == nil || lerr == nil {
		t.Errorf("it was written through a link: %v, %v", err, lerr)
	}
}
