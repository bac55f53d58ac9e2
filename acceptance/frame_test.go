package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (b *browser) innerText(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](
		fmt.Sprintf("document.querySelector(%q).innerText", selector)))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

func (b *browser) stays(what, expression string) {
	b.t.Helper()
	for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); <-time.After(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if err != nil || !is {
			b.t.Fatalf("%s: %v\n%s", what, err, b.text())
		}
	}
}

func (b *browser) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

func TestKeysOfTheConsole(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/queues/jobs")
	b.press("/")
	b.await("the focus in the search", "document.activeElement.matches('#main input[type=search]')")
	b.press("g") // in a field, the key would be text
	b.await("the letter", "document.activeElement.value.endsWith('g')")
	b.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.value = ''; document.activeElement.blur()"))

	b.press("?")
	b.await("the keys", "document.querySelectorAll('dialog[open]').length === 1")
	for _, want := range []string{"search", "Configuration", "this list"} {
		if text := b.innerText("dialog"); !strings.Contains(text, want) {
			t.Errorf("the list of keys lacks %q:\n%s", want, text)
		}
	}
	b.press(kb.Escape)
	b.await("no dialog", "!document.querySelector('dialog')")
	b.press("?")
	b.press("?")
	b.await("no dialog", "!document.querySelector('dialog')")

	b.press("g")
	b.press("c")
	b.awaitText("Error visibility timeout")
	b.await("the script", "!document.querySelector('#hold').hidden")
	b.press("g")
	b.press("o")
	b.awaitText("Messages in and out per second")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestLiveWaitsWhileSomebodyIsBusy(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues/jobs")
	for _, c := range []struct{ what, begin, end string }{
		{"dialog", "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))",
			"document.querySelector('dialog').close()"},
		{"menu", "document.querySelector('#main details.popup').open = true",
			"document.querySelector('#main details.popup').open = false"},
		{"selection", "getSelection().selectAllChildren(document.querySelector('#main h1'))",
			"getSelection().removeAllRanges()"},
		{"hidden tab", "Object.defineProperty(document, 'hidden', {value: true, configurable: true}); " +
			"document.dispatchEvent(new Event('visibilitychange'))",
			"delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"},
	} {
		b.do(chromedp.Evaluate[chromedp.Void](c.begin))
		id := shortID(e.run(t, "send", "--queue", "jobs", "--delay", "15m", "sent while there is a "+c.what))
		b.stays("the page changed while there was a "+c.what, fmt.Sprintf("!document.body.innerText.includes(%q)", id))
		b.do(chromedp.Evaluate[chromedp.Void](c.end))
		b.awaitText(id)
	}
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestNewRowsWaitWhileTheListIsScrolled(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.look("light", 390) // at this width, rows are cards, which make the page long
	b.open("/events")
	for range 12 {
		e.run(t, "queues", "pause", "mail")
		e.run(t, "queues", "resume", "mail")
	}
	b.await("a long list", "document.documentElement.scrollHeight > innerHeight + 800")
	b.do(chromedp.Evaluate[chromedp.Void]("scrollTo(0, 600)"))
	b.await("the place", "scrollY === 600")
	e.run(t, "queues", "pause", "mail", "--reason", "unseen until asked for")
	b.await("the button", "/^[1-9][0-9]* new$/.test(document.querySelector('#waiting')?.textContent)")
	b.stays("the list moved", "scrollY === 600 && !document.body.innerText.includes('unseen until asked for')")
	b.click("#waiting")
	b.awaitText("unseen until asked for")
	b.await("no button, at the top", "!document.querySelector('#waiting') && scrollY === 0")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestLostConnectionIsShown(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues")
	b.await("the stream", "document.querySelector('#live')._htmx?.sse")
	e.terminate(t)
	b.await("the bar", "document.querySelector('#lost')?.textContent.includes('Retrying')")
}

func TestErrorsAreShownInPlaceWithTheirRequest(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues/mail")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#main textarea[name=body]').value = 'x';
		document.querySelector('#main input[name=delay]').value = '99999';
		document.querySelector('#main input[name=delay]').form.requestSubmit()`))
	b.await("the failure", "document.querySelector('.result.failing')?.innerText.includes('Request ')")
	text := b.innerText(".result.failing")
	_, id, _ := strings.Cut(text, "Request ")
	if id = strings.TrimSpace(id); len(id) != 12 {
		t.Fatalf("the failure is %q", text)
	}
	e.await(t, "a line with the id "+id, func(line event) bool {
		return strings.HasPrefix(line.Msg, "console act") && line.attribute("request_id") == id
	})
}

func TestTimesAreExactOnHover(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/events")
	b.await("exact times", `[...document.querySelectorAll('time')].length > 0 && [...document.querySelectorAll('time')].every((t) =>
		/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/.test(t.title) && /^\d{4}-.*Z$/.test(t.dateTime) && /ago$|^in |now/.test(t.innerText))`)
}
