package acceptance

import (
	"archive/zip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

const dailyTasks = "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 3 * * *\"}\n"

func TestTasksComeAndGoWithVersions(t *testing.T) {
	t.Parallel()
	line := appLine(filepath.Join(t.TempDir(), "journal"), "1")
	version := func(cron string) string {
		files := map[string]string{"Procfile": line}
		if cron != "" {
			files["cron.yaml"] = cron
		}
		return writeBundle(t, files)
	}
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), version(dailyTasks))
	awaitWeb(t, s.process)
	for _, c := range []struct{ cron, says, tasks string }{
		{strings.ReplaceAll(dailyTasks, "tidy", "sweep"), "runs version 2 ", "sweep"},
		{strings.ReplaceAll(dailyTasks, "0 3", "0 33"), "cron.yaml:3", "sweep"},
		{strings.ReplaceAll(dailyTasks, "url:", "queue: others, url:"), "runs version 3 ", "tidy"},
		{"", "runs version 4 ", ""},
		{dailyTasks, "runs version 5 ", "tidy"},
	} {
		if out, _ := s.do("deploy", version(c.cron)); !strings.Contains(out, c.says) {
			t.Errorf("deploying the tasks %q: %s\nwant %q", c.cron, out, c.says)
		}
		out, _ := s.do("tasks", "list")
		for _, task := range []string{"tidy", "sweep"} {
			if strings.Contains(out, task) != (task == c.tasks) {
				t.Errorf("after the tasks %q there are\n%s\nwant %q alone", c.cron, out, c.tasks)
			}
		}
	}
	if out, code := s.do("reload"); code != 0 {
		t.Errorf("reload: %d %s", code, out)
	}
	without := version("")
	s.must("deploy", without)
	if err := os.WriteFile(filepath.Join(without, "cron.yaml"), []byte(dailyTasks), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := s.must("reload"); !strings.Contains(out, "1 periodic task of ") ||
		!strings.Contains(s.must("tasks", "list"), "tidy") {
		t.Errorf("a file that came into the folder of a version without: %s", out)
	}
	if err := os.Remove(filepath.Join(without, "cron.yaml")); err != nil {
		t.Fatal(err)
	}
	if out := s.must("reload"); !strings.Contains(out, "0 periodic tasks of ") ||
		strings.Contains(s.must("tasks", "list"), "tidy") {
		t.Errorf("a file that was taken out of the folder: %s", out)
	}
}

func TestTasksThatCameLater(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1")}
	begin := func() (*shop, string) {
		dir := writeBundle(t, files)
		s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), dir)
		awaitWeb(t, s.process)
		return s, dir
	}
	check := func(s *shop, args ...string) {
		t.Helper()
		if out, code := s.do(args...); code != 0 || strings.Contains(out, "next start") {
			t.Errorf("tendril %v: %d %s", args, code, out)
		}
		if out, code := s.do("tasks"); code != 0 || !strings.Contains(out, "tidy") {
			t.Errorf("after tendril %v tasks: %d %s", args, code, out)
		}
		s.await(t, "somebody enqueues", func(e event) bool { return strings.Contains(e.Msg, "leadership acquired") })
		if out, code := s.do("tasks", "run", "tidy"); code != 0 {
			t.Errorf("after tendril %v run: %d %s", args, code, out)
		}
		s.await(t, "the run", func(e event) bool { return e.Msg == "settled" && e.Outcome == "done" })
	}
	s, dir := begin()
	if err := os.WriteFile(filepath.Join(dir, "cron.yaml"), []byte(dailyTasks), 0o644); err != nil {
		t.Fatal(err)
	}
	check(s, "reload")
	s, _ = begin()
	files["cron.yaml"] = dailyTasks
	check(s, "deploy", writeBundle(t, files))
}

func TestVersionForOneThatNeverCameUp(t *testing.T) {
	t.Parallel()
	journal, data := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs",
		"--restart-limit", "1", writeBundle(t, map[string]string{"Procfile": "web: sleep 1000\n"}))
	if status, answer := deploy(t, data, started,
		writeBundle(t, map[string]string{"Procfile": "web: exit 1\n"})); status != http.StatusUnprocessableEntity {
		t.Errorf("deploying what ends at once: %d %s", status, answer)
	}
	if status, answer := deploy(t, data, started,
		writeBundle(t, map[string]string{"Procfile": appLine(journal, "3")})); status != http.StatusOK {
		t.Errorf("deploying what works: %d %s", status, answer)
	}
	id := sendBody(t, started, "1ms")
	awaitEmpty(t, started)
	if times, versions := readJournal(t, journal); times[id] != 1 || versions["3"] != 1 {
		t.Errorf("the message was worked on %d times, by %v", times[id], versions)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestReloadIsNotTakenBackByADeployment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, goOn := filepath.Join(dir, "tendril.yaml"), filepath.Join(dir, "goOn")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(config, "http_path: /a\n")
	line := appLine(filepath.Join(dir, "journal"), "1")
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t), "--config", config,
		writeBundle(t, map[string]string{"Procfile": line}))
	awaitWeb(t, s.process)
	next := writeBundle(t, map[string]string{
		"Procfile":                    line,
		".ebextensions/a.config":      "option_settings:\n  aws:elasticbeanstalk:sqsd:\n    MimeType: text/plain\n",
		".platform/hooks/predeploy/1": "#!/bin/sh\necho hook; until [ -e " + goOn + " ]; do sleep 0.02; done\n",
	})
	both := make(chan string, 2)
	ask := func(args ...string) {
		out, code := s.do(args...)
		both <- fmt.Sprint(args[0], " ", code, " ", out)
	}
	go ask("deploy", next)
	s.await(t, "its hook runs", func(e event) bool { return e.Line == "hook" })
	write(config, "http_path: /b\n")
	go ask("reload")
	select {
	case out := <-both:
		t.Fatalf("it did not wait: %s", out)
	case <-time.After(300 * time.Millisecond):
	}
	write(goOn, "")
	for range 2 {
		if out := <-both; !strings.Contains(out, " 0 ") || strings.HasPrefix(out, "reload") &&
			!strings.Contains(out, "in force now: http-path") {
			t.Error(out)
		}
	}
	if out, code := s.do("reload"); code != 0 || strings.Contains(out, "in force now") {
		t.Errorf("after both, a reload finds something: %d %s", code, out)
	}
}

func TestRefusedArchiveLeavesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs",
		writeBundle(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1")}))
	awaitWeb(t, p)
	archive := filepath.Join(t.TempDir(), "broken.zip")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	if _, err := z.Create("notes.txt"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if status, answer := deploy(t, data, started, archive); status != http.StatusBadRequest {
		t.Errorf("status %d: %s", status, answer)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "versions", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
