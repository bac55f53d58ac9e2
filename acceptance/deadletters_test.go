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
	for i := range 40 {
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
	b.awaitText("42 of 42 redriven")
	awaitLedger(t, e, func(live map[string]int64) bool { return live["jobs-dead"] == 0 && live["jobs"] == 48 })
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
	b.await("the open group", "document.querySelector('#main tr.chosen')")
	const twoRows = "document.querySelectorAll('#main tr[id^=m-]').length === 2"
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
