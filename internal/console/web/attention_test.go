package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/console"
	"tendril/internal/observe/health"
	"tendril/queue"
)

func TestAtMostFiveLinesNeedAttention(t *testing.T) {
	s := newSite(t)
	for i := range 7 {
		name := fmt.Sprintf("q%d", i)
		s.health.Details = append(s.health.Details, health.Cause{Kind: health.KindDeadLetters, Name: name + "-dead",
			Status: health.Warning, Text: "1 message in " + name + "-dead.", Remedy: "tendril dead reasons -q " + name})
		s.queue(name+"-dead", nil)
		s.queue(name, map[string]string{"RedrivePolicy": fmt.Sprintf(
			`{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:%s-dead", "maxReceiveCount": 1}`, name)})
		s.send(name+"-dead", "one")
	}
	page := s.get("/")
	first, rest, found := strings.Cut(page, "<summary>2 more</summary>")
	if got := strings.Count(first, "<li>\n"); got != shownAttention || !found {
		t.Errorf("%d lines are shown, want %d:\n%s", got, shownAttention, page)
	}
	wantText(t, rest, "1 message in q6-dead.", "tendril dead reasons -q q6", `href="/dead/q6-dead/redrive?which=all"`)
	for _, path := range []string{"/", "/queues"} {
		if strings.Contains(s.get(path), `<tr id="queue-q0-dead"`) {
			t.Errorf("%s has a row for a dead-letter queue, which is in the row of its source", path)
		}
	}
}

func TestTheAddressHasTheRangeOfTheCharts(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	for address, want := range map[string]string{"/": "15m", "/?range=3h": "3h", "/queues/jobs?range=24h": "24h",
		"/?range=1y": "15m"} {
		wantText(t, s.get(address), `data-range="`+want+`"`)
	}
	wantText(t, s.get("/queues/jobs?match=x"), `href="/queues/jobs?match=x&amp;range=3h"`, `data-queue="jobs"`)
}

func TestQueuesAreStillPausedWhileOneIsPaused(t *testing.T) {
	s := newSite(t)
	s.status.Workers = []api.Worker{{Queue: "a", Progress: api.Progress{Paused: true}}, {Queue: "b"}}
	wantText(t, s.get("/"), `action="/pause"`, `action="/resume"`)
	s.status.Workers[1].Paused = true
	if strings.Contains(s.get("/"), `action="/pause"`) {
		t.Error("paused queues can be paused")
	}
}

func TestFormsAreShownToThoseWhoMayAct(t *testing.T) {
	for _, c := range []struct {
		name          string
		access        console.Access
		scopes        []string
		acts, deploys bool
		refused       []string
	}{
		{"all", console.Access{}, api.Scopes(), true, true, nil},
		{"read and act", console.Access{}, []string{"read", "act"}, true, false, []string{"/deployments/deploy"}},
		{"read", console.Access{}, []string{"read"}, false, false, []string{"/queues/jobs/pause", "/deployments/deploy"}},
		{"read-only console", console.Access{ReadOnly: true}, api.Scopes(), false, false, []string{"/queues/jobs/pause"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSiteWith(t, c.access)
			id := s.dead("a", "no", "one")[0]
			s.status.App = []api.Process{{Name: "web", State: "running"}}
			cookie, key := s.session(c.scopes...)
			acts, deploys := 0, 0
			for _, sc := range screens {
				if sc.form || sc.view == "configuration" {
					continue
				}
				name := "jobs"
				if sc.view == "task" {
					name = "cleanup"
				}
				if sc.still {
					name = "jobs-dead"
				}
				path := strings.NewReplacer("{$}", "", "{name}", name, "{id}", id).Replace(sc.path) + "?queue=jobs-dead&which=all"
				_, page := s.asSession(cookie, key, "GET", path, nil)
				deploying := strings.Count(page, `action="/deployments/`) + strings.Count(page, `action="/app/`)
				deploys += deploying
				acting := strings.Count(page, `method="post"`) - strings.Count(page, `action="/logout"`) - deploying
				if acts += acting; sc.still && acting > 0 != c.acts {
					t.Errorf("%s shows %d forms that act", path, acting)
				}
			}
			if acts > 0 != c.acts || deploys > 0 != c.deploys {
				t.Errorf("%d forms that act and %d that deploy are shown", acts, deploys)
			}
			for _, path := range c.refused {
				s.asSession(cookie, key, "POST", path, url.Values{"back": {"/"}})
				if _, page := s.asSession(cookie, key, "GET", "/", nil); !strings.Contains(page, `class="result failing"`) {
					t.Errorf("%s was accepted", path)
				}
			}
		})
	}
}

func TestSignInAndSignOut(t *testing.T) {
	s := newSite(t)
	status, page := s.asSession(nil, "", "GET", "/", nil)
	wantText(t, page, `href="/login"`)
	if status != http.StatusOK || strings.Contains(page, `method="post"`) {
		t.Errorf("without a session: %d %s", status, page)
	}
	for address, title := range map[string]string{"/login": "Sign in", "/login?code=used": "This link has expired"} {
		status, page := s.asSession(nil, "", "GET", address, nil)
		wantText(t, page, "<h1>"+title+"</h1>", "tendril open")
		if status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", address, status)
		}
	}
	cookie, key := s.session(api.Scopes()...)
	_, page = s.asSession(cookie, key, "GET", "/", nil)
	wantText(t, page, "Sign out", `action="/pause"`)
	s.asSession(cookie, key, "POST", "/logout", url.Values{})
	if _, page = s.asSession(cookie, key, "GET", "/", nil); strings.Contains(page, "Sign out") {
		t.Error("the session goes on after signing out")
	}
}

func (s *site) session(scopes ...string) (*http.Cookie, string) {
	s.Helper()
	body, _ := json.Marshal(api.LoginRequest{Scopes: scopes})
	r, _ := http.NewRequestWithContext(s.Context(), "POST", s.server.URL+"/api/v1/login", bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	var link api.LoginLink
	err = json.NewDecoder(resp.Body).Decode(&link)
	resp.Body.Close()
	if err != nil {
		s.Fatal(err)
	}
	resp, err = s.client.Get(s.server.URL + link.Path)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	page := string(text)
	_, key, _ := strings.Cut(page, `data-key="`)
	key, _, _ = strings.Cut(key, `"`)
	if len(resp.Cookies()) != 1 || key == "" {
		s.Fatalf("the link opened no session: %s", page)
	}
	return resp.Cookies()[0], key
}

func (s *site) asSession(cookie *http.Cookie, key, method, path string, form url.Values) (int, string) {
	s.Helper()
	if form != nil {
		form.Set(keyField, key)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != nil {
		r.AddCookie(cookie)
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

func TestARefusedFormKeepsItsInput(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	s.referer = "/queues/jobs?state=delayed"
	page := s.post("/queues/jobs/send", url.Values{"body": {"kept <b>body</b>"}, "message-attributes": {"{"},
		"back": {"/elsewhere"}})
	wantText(t, page, `attributes must be JSON, such as {&#34;tenant&#34;: &#34;a&#34;, &#34;tries&#34;: 3}`,
		`data-action="/queues/jobs/send"`, `data-field="message-attributes"`, "kept &lt;b&gt;body", "Delayed 0")
	if strings.Contains(page, "unexpected end") {
		t.Errorf("the page quotes the JSON parser:\n%s", page)
	}
}

func TestLongBodiesAreCutAndNotStreamed(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	body := `["` + strings.Repeat("long text ", 100_000) + `"]`
	path := "/messages/" + s.send("jobs", body) + "?queue=jobs"
	page := s.get(path)
	wantText(t, page, "Only the first 64 KiB are shown.", "The body is too long for a command")
	if len(page) > 2*maxShownBody {
		t.Errorf("the page has %d bytes", len(page))
	}
	address := regexp.MustCompile(`href="([^"]*)" download`).FindStringSubmatch(page)
	if got := s.get(html.UnescapeString(address[1])); got != body {
		t.Errorf("the download at %q has %d bytes, want %d", address[1], len(got), len(body))
	}
	short := s.send("jobs", "a short text", queue.Attribute{Name: "note", Type: "String", Value: strings.Repeat("note ", 20_000)})
	page = s.get("/messages/" + short + "?queue=jobs")
	if wantText(t, page, "note note", "note n…"); len(page) > 2*maxShownBody {
		t.Errorf("the page with a long attribute has %d bytes", len(page))
	}
	match := liveAddress.FindStringSubmatch(page)
	update := s.stream(strings.ReplaceAll(match[1], "&amp;", "&"))
	if strings.Contains(update, "a short text") || strings.Contains(update, "note") {
		t.Errorf("an update repeats the body or an attribute:\n%s", update)
	}
}

func TestLinesHaveTheColorsOfTheirOutput(t *testing.T) {
	for line, want := range map[string]string{
		`plain <b>`:                          "plain &lt;b&gt;",
		`\x1b[31mfailed\x1b[0m: no`:          `<span class="ansi red">failed</span>: no`,
		`\x1b[1;92mok\x1b[39m`:               `<span class="ansi green">ok</span>`,
		`\x1b[38;5;196mother\x1b[0m`:         "other",
		`\x1b[31mred\x1b[1;38;5;34mother`:    `<span class="ansi red">red</span>other`,
		`\x1b[48;5;31mbackground\x1b[0m`:     "background",
		`\x1b[48;5;236;32mboth`:              `<span class="ansi green">both</span>`,
		`\x1b[38;2;31;31;31;1;32mboth`:       `<span class="ansi green">both</span>`,
		`\x1b[33mheld\x1b[1m on\x1b[m off`:   `<span class="ansi yellow">held</span><span class="ansi yellow"> on</span> off`,
		`\x1b]0;title\a\x1b[37mwhite\x1b[0m`: "white",
	} {
		if got := string(colored(line)); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
}
