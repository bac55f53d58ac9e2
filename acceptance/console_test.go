package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"

	"github.com/chromedp/chromedp"
)

var consoleScreens = []struct{ name, path, text string }{
	{"overview", "/", "Messages in and out per second"},
	{"queues", "/queues", "15 minutes"},
	{"queue", "/queues/jobs", "Attributes of the queue"},
	{"dead", "/dead?queue=jobs-dead", "Failure reasons"},
	{"tasks", "/tasks", "every day"},
	{"task", "/tasks/cleanup", "Last runs"},
	{"app", "/app", "Last lines"},
	{"deployments", "/deployments", "three.zip"},
	{"scaling", "/scaling", "Busy slots"},
	{"instances", "/instances", "This is the only instance"},
	{"events", "/events", "environment shop started"},
	{"logs", "/logs?match=receiving+started", "receiving started"},
	{"configuration", "/configuration", "Error visibility timeout"},
	{"configuration-all", "/configuration?match=e", "The weight is a queue's share of free slots."},
}

type consoleEnvironment struct {
	*process
	started event
	data    string
	bundle  string
	dead    string
	order   string
}

// A run of cleanup, which would be a message too, is not due for half a day.
var consoleTasks = fmt.Sprintf("version: 1\ncron:\n  - {name: cleanup, url: /tasks/cleanup, schedule: \"0 %d * * *\"}\n"+
	"  - {name: report, url: /tasks/report, schedule: \"*/10 * * * *\"}\n", time.Now().UTC().Add(12*time.Hour).Hour())

func startConsole(t *testing.T) *consoleEnvironment {
	t.Helper()
	data, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	bundle := writeBundle(t, map[string]string{
		"Procfile":     appLine(journal, "v1"),
		"cron.yaml":    consoleTasks,
		"tendril.yaml": "queues: [jobs, mail]\nmax_retries: 1\nerror_visibility_timeout: 1\nhttp_connections: 5\n",
	})
	p := launchIn(t, bundle, nil, "up", ".", "--allow-root", "--data-dir", data, "--listen", "127.0.0.1:0", "--console",
		"127.0.0.1:"+testpeer.FreePort(t), "--port", testpeer.FreePort(t), "--name", "shop")
	started := p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	e := &consoleEnvironment{process: p, started: started, data: data, bundle: bundle}
	e.dead = e.run(t, "send", "--queue", "jobs", "refuse 12")
	e.run(t, "send", "--queue", "jobs", "refuse 13")
	e.run(t, "send", "--queue", "mail", "refuse 14")
	for i := range 6 {
		e.order = e.run(t, "send", "--queue", "jobs", "--delay", "15m", "--attr", "tenant=a", fmt.Sprintf(
			`{"order": %d, "total": 12345678901234567890, "customer": {"name": "Ada <b>Lovelace</b>", "mail": null},
			"lines": [{"sku": "A-1", "gift": true}, {"sku": "B-2", "options": {"size": {"eu": 42}}}]}`, i))
	}
	e.run(t, "tasks", "run", "cleanup")
	awaitLedger(t, e, func(live map[string]int64) bool {
		return live["jobs-dead"] == 2 && live["mail-dead"] == 1 && live["jobs"] == 6
	})
	return e
}

func (e *consoleEnvironment) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := program(t, append(args, "--data-dir", e.data)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tendril %q: %v\n%s", args, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func (e *consoleEnvironment) sendLines(t *testing.T, queue, lines string) {
	t.Helper()
	cmd := program(t, "send", "--queue", queue, "--ndjson", "--data-dir", e.data)
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sending lines: %v\n%s", err, out)
	}
}

func awaitLedger(t *testing.T, e *consoleEnvironment, done func(live map[string]int64) bool) {
	t.Helper()
	var live map[string]int64
	for until := time.Now().Add(patience); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
		var st struct {
			Queues []struct {
				Name   string
				Ledger struct{ Live int64 }
			}
		}
		if err := json.Unmarshal([]byte(e.run(t, "status", "-o", "json")), &st); err != nil {
			t.Fatal(err)
		}
		live = map[string]int64{}
		for _, q := range st.Queues {
			live[q.Name] = q.Ledger.Live
		}
		if done(live) {
			return
		}
	}
	t.Fatalf("the queues hold %v", live)
}

func (e *consoleEnvironment) signIn(t *testing.T) *browser {
	t.Helper()
	link := regexp.MustCompile(`http://\S+`).FindString(e.run(t, "open", "--print"))
	u, err := url.Parse(link)
	if err != nil || u.Host == "" {
		t.Fatalf("tendril open printed no link: %q", link)
	}
	b := openBrowser(t, "http://"+u.Host)
	b.open(link)
	b.awaitText("shop")
	return b
}

func TestScreensLoadWithoutAnError(t *testing.T) {
	t.Parallel()
	modules := testpeer.NodeModules(t, "axe-core")
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	e := startConsole(t)
	e.deployVersions(t)
	b := e.signIn(t)
	type page = struct{ name, path, text string }
	screens := append(consoleScreens[:len(consoleScreens):len(consoleScreens)],
		page{"message", "/messages/" + e.dead + "?queue=jobs-dead", e.dead},
		page{"body", "/messages/" + e.order + "?queue=jobs", "12345678901234567890"},
		page{"edit", "/messages/" + e.dead + "/edit?queue=jobs-dead", "Edit and redrive"},
		page{"deletion", "/dead/jobs-dead/delete?queue=jobs-dead&which=all", "Type the number"})
	for _, sc := range screens {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				b.look(theme, width)
				b.open(sc.path)
				b.await(sc.name, fmt.Sprintf("document.body.textContent.includes(%q)", sc.text))
				if wide, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](
					"document.documentElement.scrollWidth - document.documentElement.clientWidth")); err != nil || wide > 0 {
					t.Errorf("%s at %d px is %d px too wide: %v", sc.name, width, wide, err)
				}
				b.screenshot(fmt.Sprintf("%s-%s-%d", sc.name, theme, width))
				for _, violation := range b.axe(string(axe)) {
					t.Errorf("%s, %s, %d px: %s", sc.name, theme, width, violation)
				}
				for _, fault := range b.faults() {
					t.Errorf("%s, %s, %d px: %s", sc.name, theme, width, fault)
				}
			}
		}
	}
}

func (b *browser) axe(script string) []string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](script+`;
		axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations
			.filter((v) => v.impact === 'serious' || v.impact === 'critical')
			.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.map((n) => n.html).slice(0, 3).join(' ')))`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func TestPolicyIsSeenToWork(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/queues")
	b.faults()
	b.do(chromedp.Evaluate[chromedp.Void](`document.body.insertAdjacentHTML('beforeend',
		'<p style="color: red">x</p><img src="https://192.0.2.1/x.png">')`))
	for until := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if text := strings.Join(b.faults(), "\n"); strings.Contains(text, "Content Security Policy") {
			return
		} else if time.Now().After(until) {
			t.Fatalf("inline style and a foreign image caused no error: %q", text)
		}
	}
}

func shortID(id string) string {
	short, _, _ := strings.Cut(id, "-")
	return short
}

func TestRowsChangeWhileMessagesFlow(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues/jobs")
	b.await("the mark of this load", "window.loaded = true")
	id := shortID(e.run(t, "send", "--queue", "jobs", "--delay", "15m", "arrives while the page is open"))
	b.awaitText(id)
	b.await("the same load", "window.loaded")

	b.click("#hold")
	later := shortID(e.run(t, "send", "--queue", "jobs", "--delay", "15m", "arrives while updates are paused"))
	<-time.After(2500 * time.Millisecond)
	if strings.Contains(b.text(), later) {
		t.Error("a paused page changed")
	}
	b.click("#hold")
	b.awaitText(later)

	b.open("/")
	b.await("the curve of a queue", "document.querySelector('#queue-jobs svg.spark path')?.getAttribute('d').length > 0")
	b.await("its rate", `/^[0-9]/.test(document.querySelector('#queue-jobs td[data-label="In/s"]').textContent)`)
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestActsOfPagesReachTheEnvironment(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues/mail")
	b.click("#main .acts details:nth-of-type(1) > summary")
	b.do(chromedp.SendKeys("#main input[name=reason]", "moving the mail server"))
	b.click("#main .acts button.primary")
	b.awaitText("mail is paused")
	b.awaitText("moving the mail server")
	<-time.After(2500 * time.Millisecond)
	if !strings.Contains(b.text(), "mail is paused") {
		t.Error("a live update took the result of the act away")
	}
	if out := e.run(t, "status"); !strings.Contains(out, "moving the mail server") {
		t.Errorf("the environment does not say that mail is paused:\n%s", out)
	}
	b.click("#main .acts form > button.primary")
	b.awaitText("mail is resumed")

	b.open("/tasks/report")
	b.click("#main .acts form > button.primary")
	b.awaitText("A run of report was enqueued.")
	b.await("the run", "document.querySelectorAll('#main table tbody tr').length > 0")
}

func TestPagesWorkWithoutScripts(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	key := b.sessionKey()
	b.scripts(false)
	b.open("/queues/jobs")
	b.click("#main .acts details:nth-of-type(2) > summary")
	b.do(chromedp.SendKeys("#main textarea[name=body]", "sent without scripts"),
		chromedp.SendKeys("#main input[name=delay]", "600"))
	b.click("#main .acts details[open] button.primary")
	b.goOnWithKey(key, ".result.ok")
	if out := e.run(t, "peek", "jobs", "-o", "json"); !strings.Contains(out, "sent without scripts") {
		t.Errorf("the queue does not have the message:\n%s", out)
	}

	b.open("/messages/" + e.order + "?queue=jobs")
	b.do(chromedp.WaitVisible(".tree .number"))
	b.click(".tree summary")
	b.do(chromedp.WaitReady(".tree > li > details:not([open])"))
	b.do(chromedp.Click("a[href*='as=raw']"), chromedp.WaitVisible("pre.body"))
}
