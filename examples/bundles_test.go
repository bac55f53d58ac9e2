package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/bundle"
	"tendril/internal/delivery/deliver"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestExampleBundlesAreComplete(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"thumbnails": "prebuild build predeploy start postdeploy",
		"reports":    "predeploy start",
		"letters":    "predeploy start",
	} {
		b, err := bundle.Open(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range b.Unsupported {
			t.Errorf("%s is not used: %s", dir, f)
		}
		for _, w := range b.Warnings {
			t.Errorf("%s: %s", dir, w)
		}
		var phases []string
		for _, s := range b.Plan() {
			phases = append(phases, string(s.Phase))
		}
		if got := strings.Join(phases, " "); got != want || len(b.Settings) == 0 || b.Name() != dir {
			t.Errorf("%s, called %s, has the steps %s, want %s, and %d settings", dir, b.Name(), got, want, len(b.Settings))
		}
	}
}

// The test runs everything a deployment runs, except for the app.
func TestHooksOfTheExamples(t *testing.T) {
	t.Parallel()
	for dir, program := range map[string]string{"thumbnails": "go", "reports": "python3", "letters": "node"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			testpeer.Program(t, program)
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "PORT=5000")
			for _, p := range b.Environment() {
				env = append(env, p.Option+"="+p.Value)
			}
			for _, s := range append(b.Plan(), b.ConfigPlan()...) {
				if s.Phase == bundle.PhaseStart {
					continue
				}
				argv := s.Argv
				if s.Shell != "" {
					argv = []string{"/bin/sh", "-c", s.Shell}
				}
				cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
				cmd.Dir, cmd.Env = s.Dir, env
				if output, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v\n%s", s.Phase, s.Name, err, output)
				}
			}
		})
	}
}

func TestLetters(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "node")
	out := t.TempDir()
	_, port, _ := runBundle(t, "letters", "LETTERS_DIR="+out, "LETTERS_FROM=Letters <letters@example.com>")
	http, err := deliver.NewClient(&deliver.Options{Target: fmt.Sprintf("http://127.0.0.1:%d/letters", port),
		QueueName: "letters"})
	if err != nil {
		t.Fatal(err)
	}
	defer http.Close()
	letters, err := os.ReadFile("letters/letters.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(letters), "\n")
	for _, c := range []struct {
		id, body string
		status   int
	}{
		{"l-1", first, 200},
		{"l-1", first, 200},
		{"l-2", "no letter", 422},
		{"l-3", "null", 422},
		{"l-4", `{"to":"a\nBcc: b","subject":"x"}`, 422},
		{"../l-5", first, 400},
		{"l-6", strings.Repeat(" ", 2<<20), 413},
	} {
		if r := http.Deliver(t.Context(), &queue.Message{ID: c.id, ReceiveCount: 1, Body: c.body}); r.Status != c.status {
			t.Errorf("%s: status %d (%s), want %d", c.id, r.Status, r.Reason, c.status)
		}
	}
	letter, err := os.ReadFile(filepath.Join(out, "l-1.eml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "From: Letters <letters@example.com>\nTo: ada@example.com\nSubject: The engine\n\n" +
		"It weaves algebraic patterns.\n"; string(letter) != want {
		t.Errorf("got %q, want %q", letter, want)
	}
	if files, _ := filepath.Glob(filepath.Join(out, "*")); len(files) != 1 {
		t.Errorf("files %v, want the one letter", files)
	}
}
