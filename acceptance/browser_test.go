package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	noScripts bool

	mu     sync.Mutex
	errors []string
}

const patience = time.Minute

func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	path := testpeer.Program(t, "chromium-headless-shell")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(patience))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, base: base}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				b.fault("console: " + fmt.Sprint(e.Args))
			}
		case *runtime.EventExceptionThrown:
			b.fault("exception: " + e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.fault(string(e.Entry.Level) + ": " + e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, text)
}

func (b *browser) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.errors
	b.errors = nil
	return all
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, step := range steps {
		err := chromedp.Do(ctx, step)
		for isStale(err) {
			err = chromedp.Do(ctx, step)
		}
		if err != nil {
			b.t.Fatalf("%v\n%s", err, b.text())
		}
	}
}

func isStale(err error) bool {
	return err != nil && strings.Contains(err.Error(), "node with given id")
}

func (b *browser) open(path string) {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.base + path
	}
	b.do(chromedp.Navigate(path))
}

func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

func (b *browser) await(what, expression string) {
	b.t.Helper()
	for until := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if err == nil && is {
			return
		}
		if time.Now().After(until) {
			b.t.Fatalf("the page never had %s: %v\n%s", what, err, b.text())
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (b *browser) awaitText(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("the text %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// click repeats a click that misses because a live page has moved.
func (b *browser) click(selector string) {
	b.t.Helper()
	watch := fmt.Sprintf(`window.clickHit = false; document.addEventListener('click', event => {
		window.clickHit ||= event.target.closest(%q) !== null;
	}, {capture: true})`, selector)
	if b.noScripts {
		b.do(chromedp.WaitVisible(selector), chromedp.Click(selector))
		return
	}
	for range 5 {
		b.do(chromedp.WaitVisible(selector), chromedp.Evaluate[chromedp.Void](watch), chromedp.Click(selector))
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		missed, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.clickHit === false"))
		cancel()
		if err != nil || !missed {
			return
		}
	}
	b.t.Fatalf("no click reached %s:\n%s", selector, b.text())
}

func (b *browser) look(theme string, width int64) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, 800))
}

func (b *browser) scripts(on bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: !on})
	if err != nil {
		b.t.Fatal(err)
	}
	b.noScripts = !on
}

func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("TENDRIL_SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
