package api

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sampleInstance() *Instance {
	return &Instance{
		PID: os.Getpid(), Version: "1.2.3", Environment: "photos", Console: "127.0.0.1:9325",
		Endpoint: "http://127.0.0.1:9324", Region: "us-east-1", AccountID: "000000000000",
		Queues: []InstanceQueue{
			{Name: "photos", URL: "http://127.0.0.1:9324/000000000000/photos", DeadLetterQueue: "photos-dead", Embedded: true},
			{Name: "mail", URL: "https://sqs.eu-west-1.amazonaws.com/1/mail"},
		},
		StartedAt: time.Unix(1_700_000_000, 0).UTC(),
	}
}

func TestInstanceIsReadAsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	claim(t, dir)
	want := sampleInstance()
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadInstance(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	assertMode(t, filepath.Join(dir, InstanceFile), 0o600)
	if err := RemoveInstance(dir); err != nil {
		t.Fatal(err)
	}
	if err := RemoveInstance(dir); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadInstanceSaysWhatToDo(t *testing.T) {
	t.Parallel()
	stale := sampleInstance() // its PID now belongs to this test
	for _, c := range []struct {
		name   string
		lay    func(t *testing.T, dir string)
		absent bool
		want   string
	}{
		{"no file", func(*testing.T, string) {}, true, "start one with 'tendril up'"},
		{"a file of an ended process, whose id another one has", func(t *testing.T, dir string) {
			release, err := Claim(dir)
			if err := errors.Join(err, stale.Write(dir)); err != nil {
				t.Fatal(err)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
		}, true, "start one with 'tendril up'"},
		{"a damaged file", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, InstanceFile), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, false, "remove it"},
		{"a file without a claim", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, InstanceFile), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true, "use another --data-dir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.lay(t, dir)
			_, err := ReadInstance(dir)
			var said *Error
			if !errors.As(err, &said) || !strings.Contains(said.Hint, c.want) || !strings.Contains(said.Message, dir) {
				t.Errorf("error %#v, want the folder and the hint %q", err, c.want)
			}
			if errors.Is(err, ErrNotRunning) != c.absent {
				t.Errorf("errors.Is(ErrNotRunning) = %v, want %v", !c.absent, c.absent)
			}
		})
	}
}

func TestEnvironmentsWithTheSameNameHaveUniqueNames(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	var dirs []string
	for _, c := range []struct{ dir, environment string }{{"a/data", "shop"}, {"b/data", "shop"}, {"c", "shop"},
		{"d", "letters"}} {
		dir := filepath.Join(parent, c.dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		claim(t, dir)
		i := sampleInstance()
		i.Environment = c.environment
		if err := i.Write(dir); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	names := func(dirs ...string) string {
		var names []string
		for _, f := range Running(dirs) {
			names = append(names, f.Name)
		}
		return strings.Join(names, " ")
	}
	if got, want := names(dirs...), "letters shop@a/data shop@b/data shop@c"; got != want {
		t.Errorf("the names are %s, want %s", got, want)
	}
	if got := names(dirs[1:2]...); got != "shop" {
		t.Errorf("the name of the only environment is %s", got)
	}
}

func TestTokenIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, TokenFile)
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	token := NewToken()
	if len(token) != 64 || token == NewToken() {
		t.Fatalf("token %q is not 256 random bits", token)
	}
	if err := WriteToken(dir, token); err != nil {
		t.Fatal(err)
	}
	assertMode(t, path, 0o600)
	if got, err := ReadToken(dir); got != token || err != nil {
		t.Errorf("ReadToken = %q, %v", got, err)
	}
	if err := errors.Join(RemoveToken(dir), RemoveToken(dir)); err != nil {
		t.Error(err)
	}
}

func assertMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %v, want %v", path, got, want)
	}
}

func claim(t *testing.T, dir string) {
	t.Helper()
	release, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
}

func TestProcessThatWasNotReapedIsNotAlive(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("read from /proc")
	}
	cmd := exec.Command("cat")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	if !ProcessAlive(cmd.Process.Pid) {
		t.Error("a running process is not alive")
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	end := time.After(30 * time.Second)
	for ProcessAlive(cmd.Process.Pid) {
		select {
		case <-end:
			t.Fatal("a process that has exited is alive")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
