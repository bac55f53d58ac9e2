package acceptance

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestARefusedFormKeepsItsInputInTheBrowser(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/queues/jobs")
	b.click("#main .acts details:nth-of-type(2) > summary")
	b.await("the focus in the first field", "document.activeElement.name === 'body'")
	b.fill("textarea[name=body]", "typed once")
	b.fill("input[name=message-attributes]", "{tenant}")
	b.click("#main .acts details[open] button.primary")
	b.await("the error beside its field", `document.querySelector('label:has([name=message-attributes]) + #refusal')
		?.innerText.includes('attributes must be JSON, such as')`)
	b.await("the input", `document.querySelector('textarea[name=body]').value === 'typed once' &&
		document.querySelector('input[name=message-attributes]').value === '{tenant}'`)
	b.await("the focus in the wrong field", "document.activeElement.name === 'message-attributes'")
	b.await("the error in view", `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('#refusal').getBoundingClientRect())`)
	b.stays("an update closed the form", "document.querySelector('textarea[name=body]').value === 'typed once' && "+
		"document.activeElement.name === 'message-attributes'")
	b.fill("input[name=message-attributes]", `{"tenant": "a"}`)
	b.click("#main .acts details[open] button.primary")
	b.awaitText("Sent as ")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestTheNewestLineOfTheLogStaysInView(t *testing.T) {
	t.Parallel()
	e := startConsole(t)
	b := e.signIn(t)
	b.look("light", 390)
	b.open("/logs")
	const atEnd = "(box => box.scrollHeight > box.clientHeight && box.scrollTop + box.clientHeight > box.scrollHeight - 24)(document.querySelector('[data-tail]'))"
	for range 20 {
		e.run(t, "send", "--queue", "mail", "a line of the log")
	}
	b.await("the end of the lines", atEnd)
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('[data-tail]').scrollTop = 0"))
	id := e.run(t, "send", "--queue", "mail", "refuse 15")
	b.await("the button", "/^[1-9][0-9]* new$/.test(document.querySelector('#waiting')?.textContent)")
	b.stays("the lines moved", "document.querySelector('[data-tail]').scrollTop === 0")
	b.click("#waiting")
	b.awaitText(id)
	b.await("the end of the lines again", atEnd)
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestChartsHaveValuesARangeInTheAddressAndTheWidthOfTheirBox(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/")
	b.await("values in the legend", `/^In \d[\d.]*\/sOut \d[\d.]*\/snow$/.test(document.querySelector('.legend')?.textContent)`)
	b.click("#charts .tabs a[href*='range=3h']")
	b.await("the range in the address", "location.search === '?range=3h'")
	b.do(chromedp.Reload())
	b.await("the range after a reload", "document.querySelector('#charts [aria-current]')?.textContent === '3 hours'")

	b.await("a chart", "document.querySelector('.plot canvas')")
	b.do(chromedp.Evaluate[chromedp.Void]("window.fetch = () => new Promise(() => {}); " + // no new values
		"document.querySelector('.charts').style.width = '400px'"))
	b.await("charts as wide as their boxes", "[...document.querySelectorAll('.plot')].every((box) => "+
		"!box.firstChild || box.firstChild.offsetWidth === box.clientWidth)")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}

func TestSigningOutHidesActions(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.open("/queues")
	b.click("form[action='/logout'] button")
	b.awaitText("Sign in")
	b.await("no actions", "document.querySelectorAll('form[method=post]').length === 0")
	b.click("a[href='/login']")
	b.awaitText("tendril open")
}

func TestPopupsFitNarrowScreens(t *testing.T) {
	t.Parallel()
	b := startConsole(t).signIn(t)
	b.look("light", 390)
	for path, count := range map[string]int{"/": 1, "/queues/mail": 4, "/dead?queue=jobs-dead": 2, "/app": 3} {
		b.open(path)
		b.await("popups of "+path, fmt.Sprintf("document.querySelectorAll('details.popup').length >= %d", count))
		b.await("popups within the screen of "+path, `[...document.querySelectorAll('details.popup')].every((popup) => {
			popup.open = true;
			const box = popup.querySelector('form, div').getBoundingClientRect();
			popup.open = false;
			return box.left >= 0 && box.right <= innerWidth && box.width > 200;
		})`)
	}
}
