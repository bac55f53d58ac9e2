package web

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tendril/internal/console"
)

var liveAddress = regexp.MustCompile(`hx-sse:connect="([^"]*)"`)

func (s *site) stream(address string) string {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+address, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var part []string
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "" {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			part = append(part, data)
		}
	}
	return strings.Join(part, "\n")
}

func TestLiveUpdatesAskForTheWholeAddressOfEveryPage(t *testing.T) {
	s := newSite(t)
	id := s.dead("a", "no", "one")[0]
	for _, sc := range screens {
		if sc.form || sc.still {
			continue
		}
		t.Run(sc.view, func(t *testing.T) {
			name := "jobs"
			if sc.view == "task" {
				name = "cleanup"
			}
			path := strings.NewReplacer("{$}", "", "{name}", name, "{id}", id).Replace(sc.path)
			address := path + "?first=a%26b+c&second=%23d&queue=jobs-dead"
			match := liveAddress.FindStringSubmatch(s.get(address))
			if match == nil {
				t.Fatal("the page has no stream")
			}
			stream, err := url.Parse(html.UnescapeString(match[1]))
			if err != nil {
				t.Fatal(err)
			}
			if got := stream.Query()["at"]; len(got) != 1 || got[0] != address {
				t.Errorf("the stream is about %q, want %q", got, address)
			}
			wantText(t, html.UnescapeString(s.stream(stream.String())), `value="`+address+`"`)
		})
	}
}

func TestLiveUpdatesKeepFilters(t *testing.T) {
	s := newSite(t)
	s.dead("a", `{"error":"missing customer_id"}`, "one", "two")
	s.dead("b", "no such tenant", "three", "four", "five")
	for address, rows := range map[string]int{
		"/dead?queue=jobs-dead&reason=HTTP+422+missing+customer_id":                  2,
		"/dead?queue=jobs-dead&match=e&attribute=tenant%3Db":                         2,
		"/queues/jobs-dead?state=visible&match=two":                                  1,
		"/dead?queue=jobs-dead&reason=HTTP+422+no+such+tenant&match=f":               2,
		"/dead?queue=jobs-dead&since=2000-01-01T00%3A00&until=2000-01-02T00%3A00":    0,
		"/queues/jobs-dead?state=delayed&match=e":                                    0,
		"/dead?queue=jobs-dead&attribute=tenant%3Da&since=2000-01-01T00%3A00&body=1": 2,
	} {
		match := liveAddress.FindStringSubmatch(s.get(address))
		part := s.stream(html.UnescapeString(match[1]))
		if got := strings.Count(part, `<tr id="m-`); got != rows {
			t.Errorf("the update of %s has %d rows, want %d", address, got, rows)
		}
	}
}

func TestLiveUpdatesOfAnAbbreviatedMessageContinueWithItsID(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	id := s.send("jobs", "one")
	wantText(t, s.stream("/live?at=/messages/"+id[:8]), `value="/messages/`+id+`"`)

	r := s.request.Load()
	at, sc := s.pages.screenAt(r.WithContext(context.WithoutCancel(r.Context())), "/messages/"+id[:8])
	page := livePage{sc, at}
	w := httptest.NewRecorder()
	if err := s.pages.sendUpdate(&stream{events: console.StartEvents(w)}, &page); err != nil {
		t.Fatal(err)
	}
	if got := page.at.URL.Path; got != "/messages/"+id {
		t.Errorf("the next update shows %s", got)
	}
}

func TestExpensiveLiveUpdatesAreRarer(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: time.Second, 100 * time.Millisecond: time.Second,
		500 * time.Millisecond: 4500 * time.Millisecond, 3 * time.Second: aliveEvery} {
		if got := liveWait(took); got != want {
			t.Errorf("after an update of %s the next one follows %s later, want %s", took, got, want)
		}
	}
}
