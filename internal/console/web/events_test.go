package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
)

func TestEventsAreFilteredByTheAddress(t *testing.T) {
	s := newSite(t)
	s.history.Events.Add(string(event.Pause), "queue paused", map[string]string{"queue": "jobs", "reason": hostile})
	s.history.Events.Add(string(event.Deploy), "deployment started", map[string]string{"version": "7"})
	all := s.get("/events")
	wantText(t, all, "queue jobs paused", "deployment of version 7 started", "&lt;script&gt;", `aria-current="page"`)
	newestFirst := strings.Index(all, "deployment of version 7 started") < strings.Index(all, "queue jobs paused")
	if strings.Contains(all, "<script>alert") || !newestFirst {
		t.Errorf("the newest is not first, or a field is markup:\n%s", all)
	}
	for path, missing := range map[string]string{"/events?kind=pause": "deployment of version 7 started",
		"/events?match=version": "", "/events?kind=deploy&match=7": "queue jobs paused"} {
		page := s.get(path)
		if missing != "" && strings.Contains(page, missing) {
			t.Errorf("%s shows %q", path, missing)
		}
	}
	wantText(t, s.get("/events?kind=deploy"), `href="/events?kind=pause"`, `<input type="hidden" name="kind" value="deploy">`)
	wantText(t, s.get("/events?match=nothing"), "No event matches.")
	if status, page, _ := s.do("GET", "/events?kind=lunch", nil); status != http.StatusBadRequest {
		t.Errorf("a kind that does not exist: %d %s", status, page)
	}
	if status, page, _ := s.do("GET", "/events?after=x", nil); status != http.StatusBadRequest {
		t.Errorf("an id that is none: %d %s", status, page)
	}
}

func TestReadsOfPagesAreShownOnlyIfChosen(t *testing.T) {
	s := newSite(t)
	for _, kind := range []event.Kind{event.Act, event.Read} {
		s.history.Events.Add(string(kind), "console action", map[string]string{"who": "owner", "action": "bodies read",
			"subject": "from-" + string(kind)})
	}
	for address, want := range map[string]string{"/events": "owner read bodies in from-act",
		"/events?kind=read": "owner read bodies in from-read"} {
		page := s.get(address)
		wantText(t, page, want)
		if got := strings.Count(page, "owner read bodies"); got != 1 {
			t.Errorf("%s shows %d events:\n%s", address, got, page)
		}
	}
}

func TestEventsHavePages(t *testing.T) {
	s := newSite(t)
	for i := range pageSize + 5 {
		s.history.Events.Add(string(event.Act), "console act", map[string]string{"subject": fmt.Sprintf("number-%d.", i)})
	}
	page := s.get("/events?kind=act")
	if got := strings.Count(page, `<tr id="e-`); got != pageSize || strings.Contains(page, "number-4.") {
		t.Fatalf("the first page has %d rows, want %d", got, pageSize)
	}
	wantText(t, page, "Older events", "number-5.")
	page = s.get("/events?after=6&kind=act")
	if got := strings.Count(page, `<tr id="e-`); got != 5 {
		t.Fatalf("the second page has %d rows, want 5", got)
	}
	wantText(t, page, "number-0.", `<a href="/events?kind=act">First page</a>`)
}

func TestLogsAreFilteredByTheAddress(t *testing.T) {
	s := newSite(t)
	for _, line := range []eventlog.Line{
		{Process: eventlog.Own, Level: slog.LevelWarn, Text: "breaker open"},
		{Process: "web.1", Stream: "stderr", Text: hostile},
	} {
		line.At = time.Now()
		s.history.Lines.Add(line)
	}
	wantText(t, s.get("/logs"), "breaker open", "&lt;script&gt;", "Warning", "stderr")
	if page := s.get("/logs"); strings.Index(page, "breaker open") > strings.Index(page, "web.1") {
		t.Errorf("the oldest line is not first:\n%s", page)
	}
	page := s.get("/logs?process=web")
	if strings.Contains(page, "breaker open") {
		t.Errorf("another process is shown:\n%s", page)
	}
	wantText(t, page, "web.1", `<input type="hidden" name="process" value="web">`)
	if page := s.get("/logs?level=warn"); strings.Contains(page, "web.1") {
		t.Errorf("another level is shown:\n%s", page)
	}
	wantText(t, s.get("/logs?match=nothing"), "No line matches.")
	if status, page, _ := s.do("GET", "/logs?level=loud", nil); status != http.StatusBadRequest {
		t.Errorf("a level that does not exist: %d %s", status, page)
	}
}

func TestMessageIDsAreLinksToMessagesAlsoToPastOnes(t *testing.T) {
	s := newSite(t)
	const id = "4f0c2b1e-0ea4-451a-a703-a558b933e274"
	const link = `<a href="/messages/` + id + `">` + id + `</a>`
	s.history.Events.Add(string(event.Act), "console action", map[string]string{"who": "owner", "action": "message deleted",
		"subject": id, "note": hostile + id})
	s.history.Lines.Add(eventlog.Line{Process: eventlog.Own, At: time.Now(), Text: hostile + " message_id=" + id})
	s.history.Lines.Add(eventlog.Line{Process: "web", At: time.Now(), Text: "order 11111111-0ea4-451a-a703-a558b933e274"})
	s.runs = []api.TaskRun{{Task: "cleanup", MessageID: id, ScheduledAt: time.Now()}}
	events := s.get("/events")
	wantText(t, events, "owner deleted message "+link)
	logs := s.get("/logs")
	wantText(t, logs, "message_id="+link)
	for _, page := range []string{events, logs} {
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "/messages/11111111") {
			t.Errorf("a text is markup, or an id of the app is a link:\n%s", page)
		}
	}
	wantText(t, s.get("/tasks/cleanup"), `<a href="/messages/`+id+`">`)
	wantText(t, s.get("/queues"), `action="/messages"`)
	status, _, answer := s.do("GET", "/messages?message=+"+id, nil)
	if to := answer.Header.Get("Location"); status != http.StatusSeeOther || to != "/messages/"+id {
		t.Errorf("the search answers %d, Location %q", status, to)
	}

	for _, c := range []struct {
		name   string
		ending eventlog.Ending
		want   string
	}{
		{"completed", eventlog.Ending{Outcome: "done", Receives: 2}, "completed by jobs at 20"},
		{"dead-lettered", eventlog.Ending{Outcome: "dead-lettered", To: "jobs-dead"}, "UTC to jobs-dead"},
		{"deleted", eventlog.Ending{Outcome: api.MessageDeleted, By: "token ci"}, "UTC by token ci"},
		{"expired", eventlog.Ending{Outcome: api.MessageExpired}, "expired from jobs at 20"},
	} {
		c.ending.MessageID, c.ending.Queue = c.name, "jobs"
		s.history.Endings.Add(c.ending)
		if status, page, _ := s.do("GET", "/messages/"+c.name, nil); status != http.StatusNotFound || !strings.Contains(page, c.want) {
			t.Errorf("%s: %d, want %q in\n%s", c.name, status, c.want, page)
		}
	}
}
