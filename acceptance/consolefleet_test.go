package acceptance

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestConsoleShowsAllInstances(t *testing.T) {
	minutes(t)
	t.Parallel()
	f := newSharedQueue(t)
	app := writeBundle(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1")})
	var all []*member
	for range 3 {
		m := f.up(t, t.TempDir(), f.endpoint, app, "--name", "shop", "--port", testpeer.FreePort(t))
		m.await(t, "its app is ready", func(e event) bool { return e.Msg == "process ready" })
		all = append(all, m)
	}
	first, second := all[0], all[1]
	eventually(t, "all instances are known", func() bool {
		return strings.Count(first.tendril(t, "instances"), "running") == len(all)
	})
	var names, ids []string
	eventually(t, "the leader knows the health of all", func() bool {
		return strings.Contains(first.tendril(t, "health"), "3 instances")
	})
	for _, one := range first.known(t) {
		names, ids = append(names, one.Name), append(ids, one.ID)
	}
	f.queue.put(t, "a message")

	b := (&consoleEnvironment{process: first.process, data: first.dir}).signIn(t)
	b.look("light", 1200)
	for path, text := range map[string]string{"/": "Queues on " + names[0], "/app": "Restart the app", "/events": "environment shop started",
		"/logs": "receiving started", "/deployments": "Deploy to all instances", "/scaling": "Load of the instances"} {
		b.open(path)
		b.awaitText(text)
		b.awaitText("All instances")
		for _, name := range names {
			b.awaitText(name)
		}
		b.screenshot("fleet-" + strings.TrimPrefix(path, "/"))
	}

	b.open("/logs")
	b.click(`.tabs a[href*="` + ids[1] + `"]`)
	b.await("lines of the second instance only", `[...document.querySelectorAll('.lines li .why')].every(e => e.textContent === '`+names[1]+`')
		&& document.querySelectorAll('.lines li').length > 0 && location.search.includes('`+ids[1]+`')`)
	b.click(`.side a[data-key="e"]`)
	b.await("events of the second instance only", `location.pathname === '/events' && location.search.includes('`+ids[1]+`') &&
		document.querySelectorAll('#main tbody tr').length > 0 &&
		[...document.querySelectorAll('#main tbody tr')].every(row => row.cells[1].textContent === '`+names[1]+`')`)

	b.open("/logs?match=deploy-marker-not-there")
	b.awaitText("No line matches")
	b.open("/events")
	second.cmd.Process.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { second.cmd.Process.Signal(syscall.SIGCONT) })
	b.awaitText("No details of " + names[1] + ": cannot reach the instance at ")
	b.await("events of the others", `[...document.querySelectorAll('#main tbody tr')].some(row => row.cells[1].textContent === '`+names[2]+`')`)
	b.screenshot("fleet-stopped")
	second.cmd.Process.Signal(syscall.SIGCONT)
	b.await("the instance again", `!document.body.innerText.includes('No details of')`)
	if faults := b.faults(); faults != nil {
		t.Errorf("errors in the browser: %q", faults)
	}
}
