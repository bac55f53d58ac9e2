package acceptance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/observe/health"
	"tendril/internal/testing/testpeer"
)

func shopBundle(t *testing.T, text, dir string) {
	t.Helper()
	for name, content := range map[string]string{
		"Procfile":                       fenced(t, text, "web: python3 application.py"),
		".ebextensions/01-worker.config": fenced(t, text, "option_settings:"),
		"env.yaml":                       fenced(t, text, "SolutionStack:"),
		"application.py":                 "",
		".platform/hooks/predeploy/10-compile.sh": "#!/bin/sh\n",
	} {
		path := filepath.Join(dir, "shop", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBundlesPage(t *testing.T) {
	t.Parallel()
	text, dir := page(t, "docs/bundles.md"), t.TempDir()
	shopBundle(t, text, dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "shop"}, fenced(t, text, "command  01_migrate")},
		{typedLine(t, text, "explain HttpConnections"), fenced(t, text, "http-connections\n")},
	} {
		if out, code := tendril(t, dir, nil, c.args...); code != 0 || out != c.want {
			t.Errorf("tendril %v: %d\n%s\nwant\n%s", c.args, code, out, c.want)
		}
	}
}

func TestBundlesPageExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"thumbnails", "letters", "reports"} {
		out, code := tendril(t, "..", nil, "check", "examples/"+name)
		if code != 0 || strings.Contains(out, "warning") || strings.Contains(out, "\nnot used") ||
			!strings.Contains(out, "\nprocess  web: ") {
			t.Errorf("%s: %d\n%s", name, code, out)
		}
	}
}

func TestBundlesPageDefaults(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/bundles.md")
	for _, c := range []struct{ file, content, command string }{
		{"application.go", "", "go build -o bin/application application.go"},
		{"package.json", `{"scripts":{"start":"node x.js"}}`, "npm start"},
		{"app.js", "", "node app.js"},
		{"server.js", "", "node server.js"},
		{"application.py", "", "gunicorn --bind 127.0.0.1:$PORT --workers 1 --threads 15 application:application"},
	} {
		out, code := tendril(t, ".", nil, "check", writeBundle(t, map[string]string{c.file: c.content}))
		if code != 0 || !strings.Contains(out, ": "+c.command) || !strings.Contains(text, "`"+c.command+"`") {
			t.Errorf("%s: %d, want %s on the page and in\n%s", c.file, code, c.command, out)
		}
	}
}

func tracedBundle(t *testing.T, trace string) string {
	t.Helper()
	hook := func(name string) string { return fmt.Sprintf("#!/bin/sh\necho %s >> %s\n", name, trace) }
	return writeBundle(t, map[string]string{
		"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1"),
		"cron.yaml": "version: 1\ncron:\n  - name: tidy\n    url: /tidy\n" +
			"    schedule: \"0 3 * * *\"\n",
		".ebextensions/a.config":              "option_settings:\n  - option_name: MODE\n    value: one\n",
		".platform/hooks/predeploy/10.sh":     hook("hook"),
		".platform/hooks/postdeploy/10.sh":    hook("after"),
		".platform/confighooks/predeploy/1":   hook("settings"),
		".platform/confighooks/postdeploy/10": hook("settings-after"),
	})
}

func replaceIn(t *testing.T, path, old, by string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, by)), 0o755); err != nil {
		t.Fatal(err)
	}
}

func awaitHooks(t *testing.T, trace, want string) {
	t.Helper()
	got := ""
	for range 600 {
		text, _ := os.ReadFile(trace)
		if got = strings.Join(strings.Fields(string(text)), " "); got == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the hooks that ran are %q, want %q", got, want)
}

func TestAppPageHangup(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	dir := tracedBundle(t, trace)
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), dir)
	awaitHooks(t, trace, "hook after")

	replaceIn(t, filepath.Join(dir, "cron.yaml"), "0 3", "0 4")
	s.cmd.Process.Signal(syscall.SIGHUP)
	s.await(t, "the tasks are read again", func(e event) bool {
		return e.Msg == "periodic tasks reloaded" && e.attribute("changed") == "1"
	})
	if n := s.count(func(e event) bool { return e.Msg == "deployment started" }); n != 0 {
		t.Error("a change of cron.yaml alone is a deployment")
	}

	replaceIn(t, filepath.Join(dir, ".ebextensions/a.config"), "one", "two")
	s.cmd.Process.Signal(syscall.SIGHUP)
	awaitHooks(t, trace, "hook after settings settings-after")

	replaceIn(t, filepath.Join(dir, "Procfile"), "ACCEPTANCE_VERSION=1", "ACCEPTANCE_VERSION=2")
	s.cmd.Process.Signal(syscall.SIGHUP)
	awaitHooks(t, trace, "hook after settings settings-after hook after")
	if code := s.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestAppPageReloadWaits(t *testing.T) {
	t.Parallel()
	journal, goOn := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "goOn")
	dir := writeBundle(t, map[string]string{
		"Procfile":                        appLine(journal, "1"),
		".platform/hooks/postdeploy/1.sh": "#!/bin/sh\necho hook; until [ -e " + goOn + " ]; do sleep 0.02; done\n",
	})
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), dir)
	for version := 2; version <= 3; version++ {
		hooks := 0
		s.await(t, "another hook runs", func(e event) bool {
			if e.Line == "hook" {
				hooks++
			}
			return hooks == version-1
		})
		replaceIn(t, filepath.Join(dir, "Procfile"), fmt.Sprint("ACCEPTANCE_VERSION=", version-1),
			fmt.Sprint("ACCEPTANCE_VERSION=", version))
		s.cmd.Process.Signal(syscall.SIGHUP)
		if version == 2 {
			os.WriteFile(goOn, nil, 0o644)
			s.await(t, "it is deployed", func(e event) bool { return e.isDeploymentOf("2") })
			os.Remove(goOn)
		}
	}
	time.Sleep(100 * time.Millisecond)
	os.WriteFile(goOn, nil, 0o644)
	s.await(t, "it is deployed", func(e event) bool { return e.isDeploymentOf("3") })
	s.await(t, "the old one is gone", func(e event) bool { return e.Msg == "previous version stopped" })
	if code := s.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestAppPageRollBack(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t),
		writeBundle(t, map[string]string{"Procfile": appLine(journal, "1")}))
	awaitWeb(t, s.process)
	out, code := s.do("deploy", writeBundle(t, map[string]string{
		"Procfile": appLine(journal, "2"),
		".platform/hooks/predeploy/20-migrate.sh": "#!/bin/sh\necho 'no such table: orders'\nexit 7\n",
	}))
	_, want, _ := strings.Cut(fenced(t, page(t, "docs/app.md"), "preparing version 2"), "migrate.sh\n")
	if code != 1 || !strings.HasSuffix(shape(out), shape(want)) {
		t.Errorf("exit status %d\n%s\nwant 1 and\n%s", code, out, want)
	}
	s.must("send", "--wait", "1ms")
	if _, versions := readJournal(t, journal); versions["1"] != 1 || versions["2"] != 0 {
		t.Errorf("the message was worked on by %v, want version 1", versions)
	}
}

func awaitLines(t *testing.T, p *process, block string) {
	t.Helper()
	for line := range strings.Lines(block) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		message, attrs, _ := strings.Cut(strings.TrimLeft(text, "!· "), "  ")
		p.await(t, line, func(e event) bool { return e.Msg == message && e.hasAttributes(attrs) })
	}
}

func (e *event) isDeploymentOf(version string) bool {
	return e.Msg == "deployment started" && e.attribute("version") == version
}

var attributeText = regexp.MustCompile(`(\w+)=("[^"]*"|\S+)`)

func (e *event) hasAttributes(text string) bool {
	for _, a := range attributeText.FindAllStringSubmatch(text, -1) {
		if shape(e.attribute(a[1])) != shape(strings.Trim(a[2], `"`)) {
			return false
		}
	}
	return true
}

func TestAppPagePoison(t *testing.T) {
	t.Parallel()
	p, started, _ := appUp(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1")},
		"--error-visibility-timeout", "1", "--max-retries", "3")
	awaitWeb(t, p)
	for range 3 {
		sendBody(t, started, "5s")
	}
	inFlight(t, started)
	sendBody(t, started, "poison")
	awaitLines(t, p, fenced(t, page(t, "docs/app.md"), "17:56:06 ! app crashed"))
}

func TestAppPageCrashLoop(t *testing.T) {
	t.Parallel()
	once := filepath.Join(t.TempDir(), "once")
	line := strings.Replace(appLine(filepath.Join(t.TempDir(), "journal"), "1"), "web: ",
		fmt.Sprintf("web: if [ -e %s ]; then exit 7; fi; touch %s; ", once, once), 1)
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), "--restart-limit", "2",
		"--restart-window", "60",
		writeBundle(t, map[string]string{"Procfile": line}))
	awaitWeb(t, s.process)
	sendBody(t, s.started, "poison")
	awaitLines(t, s.process, fenced(t, page(t, "docs/app.md"), "17:59:08 ! process failed too often"))
	s.await(t, "it is Severe", func(e event) bool {
		return e.Msg == "health changed" && e.Status == "Severe"
	})
	out, code := s.do("health")
	if code != 2 {
		t.Errorf("tendril health exits with %d, want 2", code)
	}
	for line := range strings.Lines(fenced(t, page(t, "docs/health.md"), "Severe (Red)")) {
		if severity, text, cause := strings.Cut(line, ": "); cause && strings.Contains(severity, " for ") {
			line = text // the duration, and so the app's severity, varies
		}
		if want := shape(strings.TrimSpace(line)); !strings.Contains(shape(out), want) {
			t.Errorf("health does not say %q:\n%s", line, out)
		}
	}
	for path, want := range map[string]int{"/livez": 200, "/healthz": 200, "/readyz": 503, "/startupz": 200,
		"/api/v1/health": 200} {
		resp, err := http.Get(s.started.Console + path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s is %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestHealthPageStatuses(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/health.md")
	for _, s := range []health.Status{health.Ok, health.Info, health.Pending, health.NoData,
		health.Warning, health.Degraded, health.Severe} {
		if row := fmt.Sprintf("\n| %s | %s | %d | ", s, s.Color(), s.ExitCode()); !strings.Contains(text, row) {
			t.Errorf("no row begins with %q", row)
		}
	}
}
