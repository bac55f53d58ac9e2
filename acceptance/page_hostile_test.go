package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func (b *browser) evaluate(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// Browser extensions, such as spelling checkers, add attributes to forms.
func TestFormsSurviveExtensionsOfTheBrowser(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	for _, path := range []string{"/queues/jobs", "/dead?queue=jobs-dead", "/messages/" + e.order + "?queue=jobs"} {
		b.open(path)
		if names := b.evaluate(`[...document.querySelectorAll('form')].flatMap((form) => [...form.elements])
			.map((field) => field.name).filter((name) => name !== '' && name in HTMLFormElement.prototype).join()`); names != "" {
			t.Errorf("%s: fields hide the properties %s of their forms", path, names)
		}
		b.do(chromedp.Evaluate[chromedp.Void](`window.updates = 0;
			document.addEventListener('htmx:sse:after:message', () => { window.updates++; });
			document.querySelectorAll('form, form *').forEach((element) => element.setAttribute('data-gramm', 'false'))`))
		b.await("two updates of "+path, "window.updates > 1")
		b.await("no bar", "document.querySelector('#lost') === null")
	}
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}

func TestAScriptErrorIsNoLostConnection(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/queues/jobs")
	b.await("a stream", "document.querySelector('#live')._htmx.sse")
	b.do(chromedp.Evaluate[chromedp.Void](`window.streams = 0;
		const ask = window.fetch;
		window.fetch = (...args) => { window.streams++; return ask(...args); };
		htmx.swap = async () => { throw new Error('on purpose'); }`))
	e.run(t, "send", "--queue", "jobs", "--delay", "15m", "one more")
	b.awaitText("A script error stopped live updates")
	b.await("a closed stream", "document.querySelector('#live')._htmx.sse === undefined")
	b.stays("no other stream, and no lost connection",
		"window.streams === 0 && !document.body.innerText.includes('No connection to tendril')")
}

func TestBodiesOfOthersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	e.run(t, "queues", "pause", "mail")
	for body, word := range map[string]string{
		"\nfirst": `$'\nfirst'`, "a\rb": `$'a\rb'`, "x\r\ny": `$'x\r\ny'`, "@/etc/passwd": "@/etc/passwd",
		"hello\r\rdata: You are signed out\r\revent: x\r": `$'hello\r\rdata: You are signed out\r\revent: x\r'`,
	} {
		id := e.run(t, "send", "--queue", "mail", body)
		b.open("/messages/" + id + "?queue=mail&as=raw")
		shown := fmt.Sprintf(`document.querySelector('#main pre.body')?.textContent === %q && document.querySelector(
			'#main .copied pre').textContent === %q`, body, "tendril send --queue mail -- "+word)
		b.await("the body", shown)
		b.stays("the body after updates", shown+" && document.querySelector('#main h1').textContent.includes('"+id+"')")
	}
	e.run(t, "queues", "resume", "mail")
	e.run(t, "queues", "pause", "mail", "--reason", "hello\r\rdata: forged\r\r")
	b.open("/")
	b.stays("the overview", "document.querySelector('#main h1').textContent === 'Overview'")
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the pages had errors: %q", faults)
	}
}

func TestTheKeyOfASessionBelongsToOnePort(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	if key := b.evaluate("localStorage.getItem('session-key')"); len(key) < 20 {
		t.Errorf("the browser keeps the key %q", key)
	}
	if address := b.evaluate("location.href"); strings.Contains(address, "login") {
		t.Errorf("after the link the browser is at %s", address)
	}
	b.open("/queues/jobs")
	b.click("#main .acts details > summary")
	b.click("#main .acts details button.primary")
	b.awaitText("jobs is paused.")
	if cookies := b.evaluate("document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookies %s", cookies)
	}
	b.do(chromedp.Evaluate[chromedp.Void]("localStorage.removeItem('session-key')"))
	b.click("#main .acts form > button.primary")
	b.awaitText("Enter this session's key")
}
