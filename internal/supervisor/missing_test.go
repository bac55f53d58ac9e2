package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingProgramsAndFilesAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"app.py": 0o644, "run": 0o755, "plain": 0o644, "python3": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"./run":                       "",
		"./missing":                   "file not found: ./missing in DIR",
		"./missing --port 1 'a b'":    "file not found: ./missing in DIR",
		"/no/such/program":            "file not found: /no/such/program",
		"./plain":                     "DIR/plain is not an executable file: try chmod +x",
		"no-such-program x":           `program "no-such-program" not found in PATH "DIR": install it, or use its full path`,
		"python3 app.py":              "",
		"python3 gone.py":             "file not found: gone.py in DIR",
		"exec python3 -u gone.py arg": "file not found: gone.py in DIR",
		"python3 sub/gone.py --x":     "file not found: sub/gone.py in DIR",
		"python3 /no/such.py":         "file not found: /no/such.py",
		"python3":                     "",
		"python3 -m http.server":      "",
		"python3 -c gone.py":          "",
		"python3 $FILE":               "",
		"python3 'gone.py'":           "",
		"$RUN gone.py":                "",
		"./run gone.py":               "",
		"cd x && ./missing":           "",
		"A=1 ./missing":               "",
		"./missing | cat":             "",
	} {
		p := &Process{Name: "web", Shell: line, Dir: dir, Env: []string{"PATH=" + dir}}
		code := 127
		if strings.Contains(line, "python3") {
			code = 2
		}
		if got := p.missingFile(code); got != strings.ReplaceAll(want, "DIR", dir) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		if got := p.missingFile(129 - code); got != "" {
			t.Errorf("%s: with another status: %q", line, got)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".venv/bin"), 0o700),
		os.WriteFile(filepath.Join(dir, ".venv/bin/gunicorn"), nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	beside := &Process{Name: "web", Argv: []string{"gunicorn", "app:app"}, Dir: dir, Env: []string{"PATH=" + dir}}
	if _, _, err := commandOf(beside); err == nil || !strings.HasSuffix(err.Error(), ": use .venv/bin/gunicorn") {
		t.Errorf("a program in the virtual environment: %v", err)
	}
	argv := &Process{Name: "web", Argv: []string{"python3", "$gone.py"}, Env: []string{"PATH=" + dir}}
	if got := argv.missingFile(1); got != "file not found: $gone.py" {
		t.Errorf("without a shell: %q", got)
	}
	for arguments, want := range map[string]string{
		"-Xmx1g -jar app.jar": "", "-jar app.jar": "app.jar", "--max-old-space-size=4 a.js b.js": "a.js", "-e x": "",
		"": "", "-jar": "",
	} {
		if got := scriptOf(strings.Fields(arguments)); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}

func TestMissingFilesAreNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: 2}})
		s := m.supervisor(Options{}, Process{Name: "w", Shell: "sh gone.sh", Dir: "/no/such", Env: []string{"PATH=/bin"}})
		err := s.Run(t.Context())
		if want := "w failed and is not restarted: exit status 2: file not found: gone.sh in /no/such"; err == nil ||
			err.Error() != want {
			t.Errorf("Run: %v, want %s", err, want)
		}
	})
}
