package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestExecLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		exec bool
	}{
		{"python3 app.py", true},
		{"  ./bin/server --port $PORT", true},
		{"gunicorn app:app -b 0.0.0.0:${PORT:-5000}", true},
		{"node server.js > log 2>&1", true},
		{"node 'a;b' \"c&d\" e\\;f", true},
		{"go run .", true},
		{"/opt/app#1/run # a comment", true},
		{"a && b", false},
		{"a; b", false},
		{"a | tee log", false},
		{"a &", false},
		{"(a)", false},
		{"a $(nproc)", false},
		{"a `nproc`", false},
		{"a \"$(nproc)\"", false},
		{"PORT=80 ./app", false},
		{"cd app", false},
		{"exec ./app", false},
		{"if true", false},
		{"{ ./app", false},
		{"! ./app", false},
		{"$RUNNER app", false},
		{"a\nb", false},
		{"a 'unfinished", false},
		{"a \"unfinished", false},
		{"a \\", false},
		{"# only a comment", false},
		{"", false},
		{"   ", false},
	}
	for _, tt := range tests {
		got := execLine(tt.line)
		if strings.HasPrefix(got, "exec ") != (tt.exec || strings.HasPrefix(tt.line, "exec ")) {
			t.Errorf("execLine(%q) = %q, want a leading exec: %t", tt.line, got, tt.exec)
		}
		if !strings.HasSuffix(got, strings.TrimLeft(tt.line, " \t")) {
			t.Errorf("execLine(%q) = %q changes the command", tt.line, got)
		}
	}
}

func TestExecKeepsMeaning(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`printf '%s|' a 'b c' "d  e" f\ g`,
		`printf '%s|' "$HOME" ${NONE:-x-y} 2>&1`,
		`printf '%s|' "\"quoted\"" '$HOME' \$HOME`,
		`printf '%s|' {a,b} '!' # rest`,
		`env`,
	} {
		if !isSimpleCommand(line) {
			t.Errorf("isSimpleCommand(%q) = false", line)
		}
		if plain, execed := shellOutput(t, line), shellOutput(t, execLine(line)); plain != execed {
			t.Errorf("%q prints %q, with exec %q", line, plain, execed)
		}
	}
}

func shellOutput(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.Command(shellPath, "-c", line)
	cmd.Env = []string{"HOME=/home/app", "PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("running %q: %v", line, err)
	}
	return string(out)
}

func FuzzExecLine(f *testing.F) {
	for _, seed := range []string{"go run .", "a && b", "a 'b;c' \"d\"", "A=1 b", "x 2>&1", "a \\", "$(x)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		simple := isSimpleCommand(line)
		if !simple && execLine(line) != line {
			t.Errorf("execLine(%q) changed a line that is not simple", line)
		}
		bare := !strings.ContainsAny(line, `'"\`)
		if simple && bare && strings.ContainsAny(strings.NewReplacer(">&", "", "<&", "").Replace(line), ";&|()`\n") {
			t.Errorf("isSimpleCommand(%q) overlooked an operator", line)
		}
	})
}

func TestLookPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for _, folder := range []string{first, second} {
		if err := os.MkdirAll(filepath.Join(folder, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(second, "app"), 0o755)
	write(filepath.Join(first, "data"), 0o644)
	env := []string{"PATH=/nowhere", "PATH=" + first + ":" + second + ":.:"}
	tests := []struct {
		file, dir, want, err string
	}{
		{"app", dir, filepath.Join(second, "app"), ""},
		{"./second/app", dir, "./second/app", ""},
		{filepath.Join(second, "app"), "/", filepath.Join(second, "app"), ""},
		{"data", dir, "", "program"},
		{"folder", dir, "", "program"},
		{"./first/data", dir, "", "chmod +x"},
		{"./none", dir, "", "no such file"},
		{"none", first, "", "use its full path"},
	}
	for _, tt := range tests {
		got, err := lookPath(tt.file, tt.dir, env)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("lookPath(%q) error = %v, want one with %q", tt.file, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("lookPath(%q) = %q, %v, want %q", tt.file, got, err, tt.want)
		}
	}
	if got, err := lookPath("sh", "", nil); err != nil || !strings.HasSuffix(got, "/sh") {
		t.Errorf("lookPath without PATH = %q, %v, want the system's sh", got, err)
	}
}
