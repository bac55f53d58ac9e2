package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newLog(t *testing.T, path string, maxBytes int64, keep int) *logFile {
	t.Helper()
	l := &logFile{path: path, maxBytes: maxBytes, keep: keep}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close() })
	return l
}

func (l *logFile) Write(p []byte) (int, error) {
	l.write(p)
	return len(p), nil
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
	}
	return all
}

func TestLogFileRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "web.log")
	if err := os.WriteFile(path, []byte("from before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLog(t, path, 20, 2)
	for i := range 5 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	want := map[string]string{"web.log": "line 3\nline 4\n", "web.log.1": "line 1\nline 2\n",
		"web.log.2": "from before\nline 0\n"}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for i := range 2 {
		fmt.Fprintf(l, "more %d\n", i)
	}
	if got := contents(t, dir); len(got) != 3 || got["web.log.2"] != "line 1\nline 2\n" || l.dropped != 0 {
		t.Errorf("files %q, %d dropped, want three and none", got, l.dropped)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want a file for its owner alone", info.Mode(), err)
	}
}

func TestLogFileIsBounded(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "log")
		if err != nil {
			t.Fatal(err)
		}
		limit, keep := rapid.Int64Range(11, 60).Draw(t, "max"), rapid.IntRange(1, 3).Draw(t, "keep")
		l := &logFile{path: filepath.Join(dir, "x"), maxBytes: limit, keep: keep}
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		defer l.close()
		var all bytes.Buffer
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 8), 1, 60).Draw(t, "lines") {
			line := fmt.Sprintf("%02d%s\n", i, strings.Repeat("x", n))
			all.WriteString(line)
			l.write([]byte(line))
		}
		var total int64
		var joined []byte
		for n := keep; n >= 0; n-- {
			text, _ := os.ReadFile(l.numbered(n))
			if int64(len(text)) > limit {
				t.Fatalf("file %d holds %d bytes, limit %d", n, len(text), limit)
			}
			total += int64(len(text))
			joined = append(joined, text...)
		}
		if files, _ := os.ReadDir(dir); len(files) > keep+1 || total > limit*int64(keep+1) {
			t.Fatalf("%d files with %d bytes, want at most %d of %d", len(files), total, keep+1, limit)
		}
		if !bytes.HasSuffix(all.Bytes(), joined) || len(joined) == 0 && all.Len() > 0 {
			t.Fatalf("the files hold %q, not the end of %q", joined, all.Bytes())
		}
	})
}

func TestClosedLogFileDropsLines(t *testing.T) {
	t.Parallel()
	l := newLog(t, filepath.Join(t.TempDir(), "web.log"), maxLogFile, keptLogFiles)
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if l.write([]byte("late\n")); l.dropped != 1 {
		t.Errorf("after close: %d dropped, want one", l.dropped)
	}
	if err := l.close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestLogFileWithoutItsFolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l := newLog(t, filepath.Join(dir, "x"), 8, 1)
		fmt.Fprintln(l, "line 0")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(l, "line 1")
		fmt.Fprintln(l, "line 2")
		if l.dropped != 2 {
			t.Errorf("%d dropped, want two", l.dropped)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		<-time.After(rotateRetry)
		fmt.Fprintln(l, "line 3")
		if diff := cmp.Diff(map[string]string{"x": "... 2 lines dropped\nline 3\n"}, contents(t, dir)); diff != "" || l.dropped != 0 {
			t.Errorf("%d dropped, files (-want +got):\n%s", l.dropped, diff)
		}
	})
}

func TestLogFileOnAFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the limit that stands for a full disk can be set on Linux only")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "x")
	s, r := realSupervisor(t, Options{RestartLimit: -1}, Process{
		Name: "w", Argv: []string{selfPath()}, Env: []string{roleVariable + "=logger", "LOG=" + log},
		Limits: map[string]string{"fsize": "1000:unlimited"},
	})
	if err := s.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "exit status 0") {
		t.Errorf("Run = %v, want status 0", err)
	}
	if diff := cmp.Diff([]string{"stdout dropped 74"}, r.lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(log)
	const rest = "\n... 74 lines dropped\nand on\n"
	if err != nil || len(text) != 1000+len(rest) || !strings.HasSuffix(string(text), "line 026 of "+rest) {
		t.Errorf("%v, the file of %d bytes ends with %q", err, len(text), text[max(0, len(text)-30):])
	}
}

func TestLogFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink("/tmp/elsewhere", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe, dir, filepath.Join(dir, "none", "x")} {
		l := &logFile{path: path, maxBytes: maxLogFile, keep: keptLogFiles}
		if err := l.open(); err == nil {
			l.close()
			t.Errorf("%s is taken", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names it", path, err)
		}
	}
	if _, err := NewLogFolder(filepath.Join(pipe, "x")); err == nil {
		t.Error("a folder in a pipe is taken")
	}
}

func TestLogFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := NewLogFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New([]Process{{Name: "web", Shell: "echo out; echo err >&2; exit 1", OutputWait: hangGuard}},
		&Options{RestartLimit: -1, Output: f.Line})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run gives no error")
	}
	want := map[string]string{"web.stdout.log": "out\n", "web.stderr.log": "err\n"}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" || f.Dropped() != 0 {
		t.Errorf("%d dropped, files (-want +got):\n%s", f.Dropped(), diff)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Line("web", "stdout", []byte("late"))
	f.Line("clock", "stdout", []byte("late"))
	if f.Dropped() != 2 {
		t.Errorf("%d dropped after Close, want 2", f.Dropped())
	}
}

func TestLogFolderWithAnObstacle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "web.stdout.log")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := NewLogFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Line("web", "stdout", []byte("one"))
		f.Line("web", "stdout", []byte("two"))
		f.Line("web", "stderr", []byte("another file"))
		if f.Dropped() != 2 {
			t.Errorf("%d dropped, want 2", f.Dropped())
		}

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rotateRetry)
		f.Line("web", "stdout", []byte("three"))
		want := map[string]string{"web.stdout.log": "... 2 lines dropped\nthree\n", "web.stderr.log": "another file\n"}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
}

func TestLogFolderReportsAGapOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		obstacle := filepath.Join(dir, "web.stdout.log")
		if err := os.Mkdir(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := NewLogFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		f.Line("web", "stdout", []byte("one"))
		f.LinesDropped(LinesDropped{Process: "web", Stream: "stdout", Lines: 10})
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rotateRetry)
		f.LinesDropped(LinesDropped{Process: "web", Stream: "stdout", Lines: 20})
		f.Line("web", "stdout", []byte("two"))
		f.LinesDropped(LinesDropped{Process: "web", Stream: "stdout", Lines: 40})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"web.stdout.log": "... 31 lines dropped\ntwo\n... 40 lines dropped\n"}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
}

func (f *LogFolder) Dropped() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := int64(0)
	for _, file := range f.files {
		file.mu.Lock()
		total += file.dropped
		file.mu.Unlock()
	}
	return total
}
