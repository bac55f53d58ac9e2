package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(selector), chromedp.Focus(selector),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).select()", selector)),
		chromedp.KeyEvent(text))
}

func (e *consoleEnvironment) settings(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.bundle, "tendril.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestConfigurationChangeActsOnTheEnvironment(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	key := b.sessionKey()
	for _, c := range []struct {
		scripts bool
		path    string
	}{{true, "/with-scripts"}, {false, "/without-scripts"}} {
		b.scripts(c.scripts)
		before := e.settings(t)
		b.open("/configuration")
		b.fill("#field-http-path", c.path)
		b.fill("#field-max-retries", "1")
		b.do(chromedp.SendKeys("#field-max-retries", "\r"))
		if !c.scripts {
			b.goOnWithKey(key, ".difference")
		}
		b.do(chromedp.WaitVisible(".difference"))
		if after := e.settings(t); after != before {
			t.Fatalf("the file was changed before anybody confirmed it:\n%s", after)
		}
		if text := b.innerText(".difference"); !strings.Contains(text, "+ http_path: "+c.path) ||
			strings.Contains(text, "max_retries") {
			t.Errorf("the difference is\n%s", text)
		}
		b.click("#main form.acts button.primary")
		if !c.scripts {
			b.goOnWithKey(key, ".result.ok")
		}
		b.do(chromedp.WaitVisible(".result.ok"))
		if text := b.innerText(".result.ok"); !strings.Contains(text, "In force now: http-path.") {
			t.Errorf("the result is %q", text)
		}
		if after := e.settings(t); !strings.Contains(after, "http_path: "+c.path) ||
			!strings.Contains(after, "max_retries: 1") {
			t.Errorf("the file is\n%s", after)
		}
		if out := e.run(t, "config", "show", "http-path", "-o", "json"); !strings.Contains(out, c.path) {
			t.Errorf("in force is\n%s", out)
		}
		e.run(t, "send", "--queue", "jobs", "--wait", "posted to "+c.path)
	}

	before := e.settings(t)
	b.open("/configuration")
	b.fill("#field-http-connections", "5000")
	b.do(chromedp.SendKeys("#field-http-connections", "\r"))
	b.goOnWithKey(key, "#wrong-http-connections")
	if text := b.innerText("#option-http-connections"); !strings.Contains(text, "allowed: 1 to 1000") {
		t.Errorf("the row is\n%s", text)
	}
	b.open("/configuration?match=data-dir")
	if text := b.innerText("#option-data-dir"); !strings.Contains(text, "set by the flag --data-dir") {
		t.Errorf("the row of a locked option is\n%s", text)
	}
	if e.settings(t) != before {
		t.Error("a mistake changed the file")
	}

	b.open("/configuration?match=http-path")
	b.click("#option-http-path button[name=unset]")
	b.goOnWithKey(key, ".difference")
	b.click("#main form.acts button.primary")
	b.goOnWithKey(key, ".result.ok")
	if after := e.settings(t); strings.Contains(after, "http_path") {
		t.Errorf("the file still has the option:\n%s", after)
	}
}

func TestConfigurationKeepsWhatIsTypedWhileThePageIsLive(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.open("/configuration")
	b.await("the stream", "document.querySelector('#live')._htmx?.sse")
	b.click("details.topic > summary")
	e.run(t, "send", "--queue", "mail", "--delay", "15m", "changes the counts")
	e.run(t, "queues", "pause", "mail", "--reason", "shown in the header")
	b.awaitText("1 queue paused")
	b.await("the open topic", "document.querySelector('details.topic').open")
	b.fill("#field-http-path", "/typed")
	b.do(chromedp.Focus("#field-mime-type"), chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	e.run(t, "queues", "resume", "mail")
	b.stays("an update replaced what was typed", "document.querySelector('#field-http-path').value === '/typed' && "+
		"document.body.innerText.includes('1 queue paused')")
	b.fill("#field-http-path", "/")
	b.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	b.await("the update that waited", "!document.body.innerText.includes('1 queue paused')")
}
