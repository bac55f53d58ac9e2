package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestDeadLettersAreRedrivenInTheBrowser(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	e.run(t, "tasks", "pause", "report") // its runs would be messages, too
	e.run(t, "queues", "pause", "jobs")  // redriven messages stay in the paused queue
	e.run(t, "queues", "pause", "mail")

	b.open("/dead?queue=mail-dead")
	b.click("#main td.reason a")
	b.await("the open group", "document.querySelector('#main tr.chosen')")
	b.awaitText("refuse 14")
	b.click("#main .acts details > summary") // an open menu pauses updates of the page
	b.do(chromedp.SetValue("#main select[name=which]", "all"))
	b.await("the choice of all", "document.querySelector('#main select[name=which]').value === 'all'")
	b.click("#main .acts details button.primary")
	b.awaitText("Redriving 1 message.")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["mail-dead"] == 0 && live["mail"] == 1 })

	var bodies strings.Builder
	for i := range 100 { // 20 s, however slowly the pages load
		fmt.Fprintf(&bodies, "{\"body\": \"refuse %d\"}\n", i)
	}
	e.sendLines(t, "jobs-dead", bodies.String())
	b.open("/dead?queue=jobs-dead")
	b.click("#main .acts details > summary")
	b.do(chromedp.SetValue("#main select[name=which]", "all"))
	b.await("the choice of all", "document.querySelector('#main select[name=which]').value === 'all'")
	b.do(chromedp.SetValue("#main .acts input[name=rate]", "2"), chromedp.SetValue("#main .acts select[name=to]", "jobs"))
	b.click("#main .acts details button.primary")
	b.await("a progress bar", "document.querySelector('#main progress')")
	b.screenshot("dead-progress-light-1280")
	b.open("/")
	b.open("/dead?queue=jobs-dead")
	b.await("progress that goes on", "document.querySelector('#main progress').value > 0")
	b.awaitText("102 of 102 redriven")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["jobs-dead"] == 0 && live["jobs"] == 108 })
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}

func (b *browser) goOnWithKey(key, element string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible("#main input[name=session-key]"), chromedp.SendKeys("#main input[name=session-key]", key))
	b.click("#main button.primary")
	b.do(chromedp.WaitVisible(element))
}

func (b *browser) sessionKey() string {
	b.t.Helper()
	return b.evaluate("localStorage.getItem('session-key')")
}

func TestDeadLettersWithoutScripts(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	e.run(t, "queues", "pause", "jobs")
	e.sendLines(t, "jobs-dead", "{\"body\": \"refuse a\"}\n{\"body\": \"refuse b\"}\n")
	key := b.sessionKey()
	b.scripts(false)

	b.open("/messages/" + e.dead + "?queue=jobs-dead")
	b.click("#main .acts a.button")
	b.do(chromedp.SetValue("#main textarea[name=body]", "mended by hand"))
	b.click("#main .acts button.primary")
	b.goOnWithKey(key, ".result.ok")
	if out := e.run(t, "peek", "jobs", "-n", "100", "-o", "json"); !strings.Contains(out, "mended by hand") {
		t.Errorf("the queue does not have the edited message:\n%s", out)
	}

	b.open("/dead?queue=jobs-dead&match=refuse+13")
	b.click("#main td.mark input")
	b.click("#main .acts details > summary")
	b.click("#main .acts details button.primary")
	b.goOnWithKey(key, ".result.ok")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["jobs-dead"] == 2 })

	b.open("/dead?queue=jobs-dead")
	b.do(chromedp.SetValue("#main select[name=which]", "all"))
	b.click("#main .acts button[formmethod=get]")
	b.do(chromedp.WaitVisible("#main input[name=confirm]"), chromedp.SendKeys("#main input[name=confirm]", "2"))
	b.click("#main button.danger")
	b.goOnWithKey(key, ".result.ok")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["jobs-dead"] == 0 })
}

func TestMessageActsInTheBrowser(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	e.run(t, "queues", "pause", "mail")
	id := e.run(t, "send", "--queue", "mail", "waits")
	b.open("/messages/" + id + "?queue=mail")
	b.click("#main .acts details:nth-of-type(1) > summary")
	b.do(chromedp.SendKeys("#main input[name=seconds]", "900"))
	b.click("#main .acts details[open] button.primary")
	b.awaitText("The message is hidden for 15 min.")
	b.click("#main .acts form > button.primary")
	b.awaitText("The message is visible now.")
	b.click("#main details.more > summary")
	b.awaitText("tendril send --queue mail -- waits")
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the page had errors: %q", faults)
	}
}

func TestLiveUpdatesKeepFiltersInTheBrowser(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	e.run(t, "queues", "pause", "mail")
	e.run(t, "queues", "pause", "jobs")
	e.sendLines(t, "mail", "{\"body\": \"apple\"}\n{\"body\": \"banana\"}\n{\"body\": \"apple pie\", \"delay_seconds\": 600}\n")
	e.sendLines(t, "jobs-dead", strings.Repeat("{\"body\": \"sent here\"}\n", 20))
	const oneRow = "document.querySelectorAll('#main tr[id^=m-]').length === 1"
	for path, shows := range map[string]string{
		"/dead?queue=jobs-dead&match=refuse+13":  oneRow,
		"/queues/mail?state=visible&match=apple": oneRow,
		"/logs?process=web&level=error":          "document.body.innerText.includes('No line matches.')",
	} {
		b.open(path)
		b.await("the rows of "+path, shows)
		b.stays("the rows of "+path, shows)
	}

	b.open("/dead?queue=jobs-dead")
	b.click("#main tbody tr:nth-of-type(2) td.reason a")
	const twoRows = "document.querySelectorAll('#main tr[id^=m-]').length === 2"
	b.await("the open group", "document.querySelector('#main tr.chosen') && "+twoRows)
	b.stays("the rows of the group", twoRows)
	b.click("#main .acts details > summary")
	b.do(chromedp.SetValue("#main select[name=which]", "all"))
	b.click("#main .acts details button.primary")
	b.awaitText("Redriving 2 messages.")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["jobs-dead"] == 20 })
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}

// Only one of four groups matches both the attribute and the reason.
func TestBulkActionsAffectTheMessagesOfTwoFilters(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	e.run(t, "tasks", "pause", "report") // its runs would be messages, too
	e.run(t, "queues", "create", "scratch", "--no-dead-letter-queue")
	var lines strings.Builder
	for i := range 24 {
		body := []string{"refuse a", "refuse 7 of these"}[i%2]
		fmt.Fprintf(&lines, "{\"body\": %q, \"attributes\": {\"tenant\": %q}}\n", body, []string{"a&b=c", "d"}[i/2%2])
	}
	e.sendLines(t, "mail", lines.String())
	awaitLedger(t, e, func(live map[string]int64) bool { return live["mail-dead"] == 25 })
	e.run(t, "queues", "pause", "mail")

	b := e.signIn(t)
	rows := func(n int) string {
		return fmt.Sprintf("document.querySelectorAll('#main tr[id^=m-]').length === %d", n)
	}
	b.open("/dead?queue=mail-dead")
	b.fill("#main input[name=attribute]", "tenant=a&b=c")
	b.click("#main form.filter button")
	b.await("the messages with the attribute", rows(12))
	b.click("#main td.reason a[href*='these']")
	b.await("the messages with both", rows(6)+" && document.querySelector('#main tr.chosen')")
	const filter = "/dead?attribute=tenant%3Da%26b%3Dc&queue=mail-dead&reason=HTTP+422+missing+customer+%23+of+these"
	b.keepsAddress(filter)
	b.stays("the filter", rows(6))
	b.do(chromedp.Reload())
	b.await("the filter after a reload", rows(6))
	b.open("/logs")
	b.do(chromedp.NavigateBack())
	b.await("the filter after Back", rows(6))
	b.keepsAddress(filter)

	choose := func(which string) {
		b.do(chromedp.SetValue("#main select[name=which]", which))
		b.await("the choice", fmt.Sprintf("document.querySelector('#main select[name=which]').value === %q", which))
	}
	b.click("#main .acts details > summary")
	choose("all")
	b.await("their number", "document.querySelector('#main option[value=all]').innerText === 'all 6 that match'")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#main .acts input[name=rate]').value = '900'"))
	b.click("#main .acts details button.primary")
	b.await("the refused rate", "document.querySelector('#result .failing, #refusal')")
	b.keepsAddress(filter)
	b.await("the filter on the page of a refused form", rows(6))

	b.open(filter)
	b.click("#main .acts details > summary")
	choose("all")
	b.do(chromedp.SetValue("#main .acts select[name=to]", "scratch"))
	b.click("#main .acts details button.primary")
	b.awaitText("Redriving 6 messages.")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["mail-dead"] == 19 && live["scratch"] == 6 })
	b.await("no message that matches", rows(0))
	b.keepsAddress(filter)
	moved := e.run(t, "peek", "scratch", "-n", "100", "-o", "json")
	if n := strings.Count(moved, "refuse 7 of these"); n != 6 || strings.Count(moved, "a\\u0026b=c")+strings.Count(moved, "a&b=c") != 6 {
		t.Errorf("scratch holds other messages than those of the filter:\n%s", moved)
	}

	const second = "/dead?attribute=tenant%3Dd&match=refuse+a&queue=mail-dead"
	b.open(second)
	b.await("the messages of the second filter", rows(6))
	choose("all")
	b.click("#main button[formmethod=get]")
	b.awaitText("whose body contains refuse a, with the attribute tenant=d.")
	b.fill("#main input[name=confirm]", "5")
	b.click("#main button.danger")
	b.awaitText("the confirmed number is 5, but 6 messages would be deleted")
	export := b.innerText("#main form p.why code")
	exported := e.run(t, append(strings.Fields(strings.NewReplacer("'refuse a'", "refuse+a", "'", "", " --file dead.ndjson", "").
		Replace(export))[1:], "--match", "refuse a")...)
	if n := strings.Count(exported, `"body":"refuse a"`); n != 6 || strings.Count(exported, "\n") != 5 {
		t.Errorf("%s exported\n%s", export, exported)
	}
	b.fill("#main input[name=confirm]", "6")
	b.click("#main button.danger")
	b.awaitText("Deleting 6 messages.")
	b.keepsAddress(second)
	awaitLedger(t, e, func(live map[string]int64) bool { return live["mail-dead"] == 13 })

	b.open("/dead?attribute=tenant%3Dd&queue=mail-dead&reason=HTTP+422+missing+customer+%23+of+these")
	b.await("the messages of the third filter", rows(6))
	choose("page")
	b.click("#main .acts details > summary")
	b.click("#main .acts details button.primary")
	b.awaitText("6 messages moved.")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["mail-dead"] == 7 && live["mail"] == 6 })
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}

func TestLogsAndEventsKeepTwoFilters(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	e.run(t, "queues", "pause", "mail", "--reason", "a&b=c")
	e.run(t, "queues", "pause", "jobs", "--reason", "another")
	b := e.signIn(t)
	for _, c := range []struct{ path, row, text, missing string }{
		{"/logs?process=tendril&level=warn&match=dead-lettered", "#main [data-tail] li", "message dead-lettered", "receiving started"},
		{"/events?kind=pause&match=a%26b%3Dc", "#main tr[id^=e-]", "queue mail paused: a&b=c", "another"},
	} {
		shown := fmt.Sprintf("[...document.querySelectorAll(%q)].some((row) => row.innerText.includes(%q)) && !document.querySelector('#main').innerText.includes(%q)",
			c.row, c.text, c.missing)
		b.open(c.path)
		b.await("the rows of "+c.path, shown)
		b.stays("the rows of "+c.path, shown)
		b.do(chromedp.Reload())
		b.await("the rows after a reload", shown)
		b.do(chromedp.Evaluate[chromedp.Void]("window.before = true"))
		b.click("#main form.filter button:not([type=button])")
		b.await("the rows after another search", "!window.before && "+shown)
		b.open("/queues")
		b.do(chromedp.NavigateBack())
		b.await("the rows after Back", shown)
		b.keepsAddress(c.path)
	}
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}
