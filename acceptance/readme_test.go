package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/testing/testpeer"
)

// The first two commands of the README run on other ports, as root and as another user.
func TestReadmeCommands(t *testing.T) {
	readme := page(t, "README.md")
	const send = `go run ./cmd/tendril send --wait '{"image":"002-noon.png","width":640}'`
	if !strings.Contains(readme, "\n    go run ./cmd/tendril up examples/thumbnails\n") ||
		!strings.Contains(readme, "\n$ "+send+"\n") {
		t.Fatal("the README's first commands are others now: test those")
	}
	const hint = "set its user with --app-user, or allow this with --allow-root"

	for _, tt := range []struct {
		name   string
		root   bool
		start  func(t *testing.T, dir string, args ...string) *process
		warned bool
	}{
		{name: "a user", start: func(t *testing.T, dir string, args ...string) *process {
			return launchIn(t, dir, nil, args...)
		}},
		{name: "root in a container", root: true, start: func(t *testing.T, dir string, args ...string) *process {
			return launchIn(t, dir, []string{"container=docker"}, args...)
		}},
		{name: "root on a machine", root: true, start: launchOnMachine, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.root != (os.Geteuid() == 0) {
				t.Skipf("NOT TESTED as %s: run the tests as root and as a user", tt.name)
			}
			dir := cloneOfThumbnails(t)
			data := filepath.Join(dir, "data")
			p := tt.start(t, dir, "up", "examples/thumbnails", "--data-dir", data, "--listen", "127.0.0.1:0", "--console",
				"127.0.0.1:0", "--port", testpeer.FreePort(t))
			// The example's periodic task may run meanwhile.
			p.await(t, "24 thumbnails were made", func(e event) bool {
				return e.Msg == "settled" && e.Outcome == "done" && countThumbnails(t, dir) >= 24
			})

			out, code := tendril(t, dir, nil, "send", "--wait", `{"image":"002-noon.png","width":640}`, "--data-dir", data)
			if code != 0 || !strings.Contains(out, " done: HTTP 200 ") {
				t.Errorf("send: exit status %d\n%s", code, out)
			}
			warned := p.count(func(e event) bool { return e.Msg == "app runs as root" && e.attribute("hint") == hint }) > 0
			if warned != tt.warned {
				t.Errorf("a warning of root: %t, want %t", warned, tt.warned)
			}
			if code := p.terminate(t); code != 0 {
				t.Errorf("exit status %d after TERM", code)
			}
		})
	}
}

func launchOnMachine(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	testpeer.MountNamespace(t)
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/machine.sh")
	if err != nil {
		t.Fatal(err)
	}
	shared := append([]string{dir, filepath.Dir(program(t).Path)}, strings.Fields(string(caches))...)
	command := append(append([]string{"--mount", "sh", script, t.TempDir()}, shared...), "--", program(t).Path)
	return launchCommand(t, exec.Command("unshare", append(command, args...)...))
}

func cloneOfThumbnails(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	example := "examples/thumbnails"
	if err := os.CopyFS(filepath.Join(dir, example), os.DirFS("../"+example)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, example, "out")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func countThumbnails(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "examples/thumbnails/out/0*.png"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
