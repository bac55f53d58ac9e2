package acceptance

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func zipBundle(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), name)
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return archive
}

func (e *consoleEnvironment) deployVersions(t *testing.T) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "journal")
	for _, name := range []string{"two.zip", "three.zip"} {
		line := strings.Replace(appLine(journal, name), "web: ", `web: printf '\033[31m`+name+
			` listens\033[0m\033]0;title\007\n'; `, 1)
		e.run(t, "deploy", zipBundle(t, name, map[string]string{"Procfile": line, "cron.yaml": consoleTasks}))
	}
	bad := zipBundle(t, "four.zip", map[string]string{"Procfile": "web: echo no module named plum; exit 9\n"})
	if err := program(t, "deploy", bad, "--data-dir", e.data).Run(); err == nil {
		t.Error("a version that does not come up was deployed")
	}
}

func TestRollbackOverThePage(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	e.deployVersions(t)
	b := e.signIn(t)
	live := func(want string) {
		t.Helper()
		if out := e.run(t, "versions"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("the versions are\n%s\nwant %s", out, want)
		}
	}
	live("3 live three.zip")
	b.open("/deployments")
	b.awaitText("exited 3 times before it was ready")
	b.click("#version-2 summary")
	b.click("#version-2 button.primary")
	b.await("version 2 again", "document.querySelector('#version-5')?.innerText.includes('live')")
	live("5 (2 again) live two.zip")

	b.open("/app")
	b.awaitText("two.zip listens")
	if text := b.text(); strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "[31m") {
		t.Errorf("control characters of a terminal are shown: %q", text)
	}
	b.await("memory of the app", "/[0-9] MiB/.test(document.querySelector('#main tbody tr').innerText)")

	b.click("#process-web-2 .acts summary")
	b.click("#process-web-2 .acts button")
	b.await("the process in its place",
		"document.querySelector('#process-web') && !document.querySelector('#process-web-2')")
	eventually(t, "the restart left an event", func() bool {
		return strings.Contains(e.run(t, "events", "--kind", "act"), "restarted process web-2")
	})

	key := b.sessionKey()
	b.scripts(false)
	b.open("/deployments")
	b.click("#version-3 summary")
	b.click("#version-3 button.primary")
	b.goOnWithKey(key, ".result")
	for _, path := range []string{"/app", "/scaling", "/instances"} {
		b.open(path)
		b.do(chromedp.WaitVisible("#main table tbody tr"))
	}
	b.scripts(true)
	b.open("/deployments")
	b.await("version 3 again", "document.querySelector('#version-6')?.innerText.includes('live')")
	live("6 (3 again) live three.zip")
}
