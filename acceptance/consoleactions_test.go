package acceptance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/console/web"

	documents "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

type pageAction struct {
	path    string
	prepare func()
	page    string
	before  string // JavaScript condition
	lead    func()
	form    string
	fields  map[string]string
	result  string
	back    string            // address; defaults to page
	after   string            // JavaScript condition, also after an update
	changes map[string]string // facts; nil if they vary
}

func TestEachActionKeepsTwoParameters(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	for _, c := range []struct{ queue, body string }{{"mail", "a&b"}, {"mail", "c"}} {
		e.run(t, "send", "--queue", c.queue, "--delay", "15m", c.body)
	}
	moved := e.run(t, "send", "--queue", "mail", "--delay", "15m", "moved")
	edited := e.run(t, "send", "--queue", "mail-dead", "to edit")
	e.run(t, "send", "--queue", "jobs-dead", "refuse 13, sent here")
	e.run(t, "queues", "create", "scratch", "--no-dead-letter-queue")
	e.run(t, "tasks", "pause", "report") // its runs would be messages, too
	b := e.signIn(t)
	_, err := chromedp.Call(b.ctx, documents.AddScriptToEvaluateOnNewDocument, documents.AddScriptToEvaluateOnNewDocumentParams{
		Source: `window.updates = 0; document.addEventListener('htmx:sse:after:message', () => { window.updates++; })`})
	if err != nil {
		t.Fatal(err)
	}

	const (
		mail    = "/queues/mail?match=a%26b&state=delayed"
		visible = "/queues/mail?match=a%26b&state=visible"
		scratch = "/queues/scratch?match=a%26b&state=visible"
		letters = "/dead?match=refuse+13&queue=jobs-dead&reason=HTTP+422+missing+customer+%23"
		other   = "/dead?match=refuse+12&queue=jobs-dead&reason=HTTP+422+missing+customer+%23"
		unused  = "?match=a%26b&reason=HTTP%20500"
	)
	rows := func(n int) string {
		return fmt.Sprintf("document.querySelectorAll('#main tr[id^=m-]').length === %d", n)
	}
	exists := func(selector string) string { return fmt.Sprintf("document.querySelector(%q)", selector) }
	message := "/messages/" + moved + "?queue=mail&as=raw"
	settings := e.settings(t)
	changed := strings.Replace(settings, "max_retries: 1", "max_retries: 3", 1)
	archive := func(name, line string) string {
		return zipBundle(t, name, map[string]string{"Procfile": line, "cron.yaml": consoleTasks})
	}

	actions := []pageAction{
		{path: "/pause", page: letters, before: rows(1), form: "/pause", fields: map[string]string{"reason": "x & y=z"},
			result: "All queues are paused", after: rows(1),
			changes: map[string]string{"pause of jobs": "x & y=z", "pause of mail": "x & y=z"}},
		{path: "/resume", page: "/?range=3h&match=a%26b", before: exists("#main form[action='/resume']"), form: "/resume",
			result:  "All queues are resumed",
			after:   "document.querySelector('#charts [aria-current]').textContent === '3 hours'",
			changes: map[string]string{"pause of jobs": "", "pause of mail": ""}},
		{path: "/queues/{name}/pause", page: mail, before: rows(1), form: "/queues/mail/pause",
			fields: map[string]string{"reason": "x & y=z"}, result: "mail is paused", after: rows(1),
			changes: map[string]string{"pause of mail": "x & y=z"}},
		{path: "/queues/{name}/resume", page: mail, before: rows(1), form: "/queues/mail/resume",
			result: "mail is resumed", after: rows(1), changes: map[string]string{"pause of mail": ""}},

		{path: "/queues/{name}/send", prepare: func() { e.run(t, "queues", "pause", "--all") }, page: visible, before: rows(0),
			form: "/queues/mail/send", fields: map[string]string{"body": "a&b, typed"}, result: "Sent as", after: rows(1),
			changes: map[string]string{"queue mail": "1 visible, 3 delayed"}},
		{path: "/messages/{id}/delay", page: message, before: exists("pre.body"), form: "/messages/" + moved + "/delay",
			fields: map[string]string{"seconds": "1800"}, result: "The message is hidden for 30 min.",
			after: "/in (2.|30) min/.test(document.querySelector('#main').innerText)", changes: map[string]string{}},
		{path: "/messages/{id}/retry", page: message, before: exists("pre.body"), form: "/messages/" + moved + "/retry",
			result: "The message is visible now.", after: exists("pre.body"),
			changes: map[string]string{"queue mail": "2 visible, 2 delayed"}},
		{path: "/messages/{id}/move", page: message, before: exists("pre.body"), form: "/messages/" + moved + "/move",
			fields: map[string]string{"to": "scratch"}, result: "The message was moved to scratch.", back: "/queues/mail",
			after: rows(3), changes: map[string]string{"queue mail": "1 visible, 2 delayed", "queue scratch": "1 visible, 0 delayed"}},
		{path: "/messages/{id}/delete", page: "/messages/" + moved + "?queue=scratch&as=hex", before: exists("pre.body"),
			form: "/messages/" + moved + "/delete", result: "The message was deleted.", back: "/queues/scratch", after: rows(0),
			changes: map[string]string{"queue scratch": "0 visible, 0 delayed"}},
		{path: "/messages/{id}/edit", page: "/messages/" + edited + "/edit?queue=mail-dead&match=a%26b",
			before: exists("textarea[name=body]"), form: "/messages/" + edited + "/edit",
			fields: map[string]string{"body": "a&b, edited", "to": "mail"}, result: "Sent as", back: "/dead?queue=mail-dead",
			after:   rows(1),
			changes: map[string]string{"queue mail": "2 visible, 2 delayed", "queue mail-dead": "1 visible, 0 delayed"}},
		{path: "/queues/{name}/purge", prepare: func() { e.sendLines(t, "scratch", "{\"body\": \"a&b\"}\n{\"body\": \"c\"}\n") },
			page: scratch, before: rows(1), form: "/queues/scratch/purge", fields: map[string]string{"confirm": "scratch"},
			result: "2 messages removed from scratch.", after: rows(0),
			changes: map[string]string{"queue scratch": "0 visible, 0 delayed"}},
		{path: "/queues/{name}/delete", page: scratch, before: rows(0), form: "/queues/scratch/delete",
			fields: map[string]string{"confirm": "scratch"}, result: "scratch was deleted", back: "/queues",
			after:   "document.querySelector('#queue-mail') && !document.querySelector('#queue-scratch')",
			changes: map[string]string{"queue scratch": ""}},

		{path: "/dead/redrive", page: letters, before: rows(1), form: "/dead/redrive", fields: map[string]string{"which": "all"},
			result: "Redriving 1 message.", after: rows(0),
			changes: map[string]string{"queue jobs": "1 visible, 6 delayed", "queue jobs-dead": "2 visible, 0 delayed"}},
		{path: "/dead/{name}/delete", page: other, before: rows(1), lead: func() {
			b.do(chromedp.SetValue("#main select[name=which]", "all"))
			b.click("#main button[formmethod=get]")
		}, form: "/dead/jobs-dead/delete", result: "Deleting 1 message.", after: rows(0),
			changes: map[string]string{"queue jobs-dead": "1 visible, 0 delayed"}},
		{path: "/dead/cancel", prepare: func() {
			e.sendLines(t, "mail-dead", strings.Repeat("{\"body\": \"a\"}\n", 60)+"{\"body\": \"a&b\"}\n")
			slow := program(t, "dead", "redrive", "--data-dir", e.data, "--queue", "mail-dead", "--all", "--to", "mail", "--rate", "1/s")
			if err := slow.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = slow.Wait() })
		}, page: "/dead?queue=mail-dead&match=a%26b", before: rows(1) + " && " + exists("#main progress"),
			form: "/dead/cancel", result: "Cancelled after", after: rows(1) + " && !" + exists("#main progress")},

		{path: "/tasks/{name}/run", page: "/tasks/cleanup" + unused, form: "/tasks/cleanup/run",
			result:  "A run of cleanup was enqueued.",
			changes: map[string]string{"queue jobs": "2 visible, 6 delayed"}},
		{path: "/tasks/{name}/pause", page: "/tasks/cleanup" + unused, form: "/tasks/cleanup/pause",
			fields: map[string]string{"reason": "x & y=z"}, result: "cleanup is paused.",
			after: "document.querySelector('#main').innerText.includes('x & y=z')", changes: map[string]string{"task cleanup": "x & y=z"}},
		{path: "/tasks/{name}/resume", page: "/tasks/cleanup" + unused, form: "/tasks/cleanup/resume",
			result: "cleanup runs again as scheduled.", changes: map[string]string{"task cleanup": "scheduled"}},

		{path: "/configuration/save", page: "/configuration?changed=1&match=max-retries",
			before: "document.querySelectorAll('#main .options tbody tr').length === 1", lead: func() {
				b.fill("#field-max-retries", "3")
				b.click("#main form.settings button.primary")
			}, form: "/configuration/save", result: "In force now: max-retries.",
			after:   "document.querySelectorAll('#main .options tbody tr').length === 1",
			changes: map[string]string{"settings": changed}},
		{path: "/app/{name}/restart", page: "/app?process=web&match=a%26b", before: exists("#process-web"),
			form: "/app/web/restart", result: "The restart is in progress.|web was restarted as web-2.",
			after: exists("#process-web-2") + " && !" + exists("#process-web"), changes: map[string]string{}},
		{path: "/deployments/deploy", page: "/deployments" + unused, form: "/deployments/deploy",
			fields: map[string]string{"path": archive("slow.zip", "web: exec sleep 600\n")}, result: "The deployment is in progress.",
			after: exists("form[action='/deployments/abort']"), changes: map[string]string{}},
		{path: "/deployments/abort", page: "/deployments" + unused, form: "/deployments/abort", result: "was aborted.",
			after: "!" + exists("form[action='/deployments/abort']"), changes: map[string]string{}},
		{path: "/deployments/rollback", prepare: func() {
			for _, name := range []string{"one.zip", "two.zip"} {
				e.run(t, "deploy", archive(name, appLine("/dev/null", name)))
			}
		}, page: "/deployments" + unused, form: "/deployments/rollback",
			result: "The deployment is in progress.|The environment runs .*one", changes: map[string]string{},
			after: "document.querySelector('#version-5')?.innerText.includes('live')"},
	}

	var tested []string
	for _, a := range actions {
		tested = append(tested, a.path)
	}
	slices.Sort(tested)
	if diff := cmp.Diff(web.Actions(), tested); diff != "" {
		t.Errorf("the rows are not the actions of the pages (-actions, +rows):\n%s", diff)
	}

	for _, a := range actions {
		t.Run(a.path, func(t *testing.T) {
			b.t = t
			b.perform(e, a)
		})
	}
	b.t = t
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func (b *browser) perform(e *consoleEnvironment, a pageAction) {
	b.t.Helper()
	if a.prepare != nil {
		a.prepare()
	}
	facts := e.facts(b.t)

	form := fmt.Sprintf("[...document.forms].find((form) => form.getAttribute('action') === %q)", a.form)
	b.open(a.page)
	if live := b.evaluate("document.querySelector('#live').getAttribute('hx-sse:connect') || ''"); live != "" {
		b.await("an update", "window.updates > 0")
	}
	b.await("the page", nonEmpty(a.before))
	b.keepsAddress(a.page)
	if a.lead != nil {
		a.lead()
	}
	b.await("the form", form)
	fields, _ := json.Marshal(a.fields)
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		const form = %s;
		for (const [name, value] of Object.entries(%s || {})) form.elements[name].value = value;
		form.requestSubmit([...form.elements].find((field) => field.matches('button:not([type=button], [formaction])')));
	}`, form, fields)))

	b.await("a result", "document.querySelector('#result > .result')")
	if result := b.innerText("#result > .result"); !regexp.MustCompile(a.result).MatchString(result) {
		b.t.Errorf("the result is %q, want %q", result, a.result)
	}
	b.await("an update after the result", "window.updates > 0")
	b.await("the page after the action", nonEmpty(a.after))
	b.await("the result after an update", "document.querySelector('#result > .result.ok')")
	if a.back == "" {
		a.back = a.page
	}
	b.keepsAddress(a.back)

	if a.changes == nil {
		return
	}
	diff := ""
	for until := time.Now().Add(patience); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
		changes := map[string]string{}
		now := e.facts(b.t)
		for name, value := range now {
			if value != facts[name] {
				changes[name] = value
			}
		}
		for name := range facts {
			if _, still := now[name]; !still {
				changes[name] = ""
			}
		}
		if diff = cmp.Diff(a.changes, changes); diff == "" {
			return
		}
	}
	b.t.Errorf("the action changed (-want +got):\n%s", diff)
}

func nonEmpty(condition string) string {
	if condition == "" {
		return "true"
	}
	return condition
}

func (b *browser) keepsAddress(want string) {
	b.t.Helper()
	b.await("the parameters "+want, fmt.Sprintf(`((now, want) => now.pathname === want.pathname &&
		[...now.searchParams].map(String).sort().join() === [...want.searchParams].map(String).sort().join() &&
		[null, undefined, now.searchParams.get('match') || ''].includes(document.querySelector('#main [type=search]')?.value)
		)(new URL(location), new URL(%q, location))`, want))
}

func (e *consoleEnvironment) facts(t *testing.T) map[string]string {
	t.Helper()
	var st api.Status
	if err := json.Unmarshal([]byte(e.run(t, "status", "-o", "json")), &st); err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{"settings": e.settings(t)}
	for _, q := range st.Queues {
		facts["queue "+q.Name] = fmt.Sprintf("%d visible, %d delayed", q.Ledger.Visible, q.Ledger.Delayed)
	}
	for _, w := range st.Workers {
		facts["pause of "+w.Queue] = w.PauseReason
	}
	for _, task := range st.Tasks.Tasks {
		facts["task "+task.Name] = "scheduled"
		if task.Paused {
			facts["task "+task.Name] = task.PauseReason
		}
	}
	return facts
}
