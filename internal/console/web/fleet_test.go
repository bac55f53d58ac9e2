package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
)

type otherInstance struct {
	asked  int
	answer func(r *api.Request) (any, error)
}

func (*otherInstance) ID() string        { return "a" }
func (*otherInstance) Secrets() []string { return nil }

func (o *otherInstance) Answer(_ context.Context, id string, r *api.Request, into any) error {
	o.asked++
	if id != "b" || o.answer == nil {
		return api.NewError(http.StatusBadGateway, "cannot reach the instance at https://b", "")
	}
	answer, err := o.answer(r)
	if err != nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (*otherInstance) Follow(context.Context, string, *api.Request, func([]byte) error) error {
	return nil
}

func (s *site) share() {
	s.health.Environment = &health.Environment{Status: health.Ok, Instances: map[health.Status]int{health.Ok: 2}}
	s.instances = api.Instances{Instances: []api.KnownInstance{
		{ID: "a", Name: "worker-1 (7)", This: true, Source: "process", State: "running", TakesVersions: true},
		{ID: "b", Name: "worker-2 (8)", Source: "registry", State: "running", TakesVersions: true}}}
}

func (o *otherInstance) answerLines(lines *eventlog.Lines) {
	o.answer = func(r *api.Request) (any, error) {
		if r.Pattern != api.GetLogs.Pattern {
			return api.Status{State: "running", App: []api.Process{{Name: "web", State: "running", PID: 4321}}}, nil
		}
		q := eventlog.LineQuery{Range: eventlog.Range{Newest: true}}
		q.Limit, _ = strconv.Atoi(r.Query.Get("limit"))
		q.Until, _ = time.Parse(time.RFC3339, r.Query.Get("until"))
		return api.LineList{Lines: lines.Read(q)}, nil
	}
}

const instancesFilter = `aria-label="Instances"`

func TestPagesShowAllInstancesOrTheOneInTheAddress(t *testing.T) {
	s := newSite(t)
	s.status.App = []api.Process{{Name: "web", State: "running", PID: 1234}}
	s.share()
	lines := eventlog.NewLines()
	s.peers.answerLines(lines)
	at := time.Now()
	s.history.Lines.Add(eventlog.Line{At: at, Process: "web", Text: "first"})
	lines.Add(eventlog.Line{At: at.Add(time.Second), Process: "web", Text: "second"})
	s.history.Lines.Add(eventlog.Line{At: at.Add(2 * time.Second), Process: "web", Text: "third"})

	for _, path := range []string{"/", "/app", "/deployments", "/scaling", "/events", "/logs"} {
		page := s.get(path)
		wantText(t, page, instancesFilter, `aria-current="true">All instances</a>`, "worker-1 (7), this one", "worker-2 (8)")
		wantText(t, s.get(path+"?instance=b"), `aria-current="true">worker-2 (8)</a>`, `href="/logs?instance=b"`, `href="/queues"`)
	}
	if page := s.get("/queues"); strings.Contains(page, instancesFilter) {
		t.Error("a page without a filter shows one")
	}
	if page := s.get("/logs"); !regexp.MustCompile(`(?s)worker-1.*first.*worker-2.*second.*worker-1.*third`).MatchString(page) {
		t.Errorf("the lines of all instances are not in order:\n%s", page)
	}
	if page := s.get("/logs?instance=b"); strings.Contains(page, "first") || !strings.Contains(page, "second") {
		t.Errorf("the lines of one instance are\n%s", page)
	}
	wantText(t, s.get("/logs?instance=b&level=warn"), `<input type="hidden" name="instance" value="b">`)

	page := s.get("/app")
	wantText(t, page, "1234", "4321", `action="/app/web/restart"`)
	if strings.Contains(s.get("/app?instance=b"), `action="/app/web/restart"`) {
		t.Error("a process of another instance can be restarted")
	}
	wantText(t, s.get("/deployments"), "Deploy to all instances", "All 2 instances switch to it")
}

func TestUnreachableInstanceCostsALine(t *testing.T) {
	s := newSite(t)
	s.share()
	s.history.Lines.Add(eventlog.Line{At: time.Now(), Process: "web", Text: "still shown"})
	wantText(t, s.get("/logs"), "No details of worker-2 (8): cannot reach the instance at https://b", "still shown")
	for _, path := range []string{"/", "/app", "/deployments", "/scaling", "/events", "/logs"} {
		wantText(t, s.get(path+"?instance=b"), "No details of worker-2 (8): cannot reach the instance at https://b")
		wantText(t, s.get(path+"?instance=gone"), "No details of Instance gone: not found")
	}

	s.instances.Instances[1].NoDetails = "its console listens on loopback only"
	asked := s.peers.asked
	wantText(t, s.get("/logs"), "No details of worker-2 (8): its console listens on loopback only", "still shown")
	if s.peers.asked != asked {
		t.Error("it was contacted")
	}
}

func TestShowAllKeepsTheChosenInstance(t *testing.T) {
	s := newSite(t)
	s.share()
	for _, path := range []string{"/events", "/logs"} {
		wantText(t, s.get(path+"?match=nothing"), `<a href="`+path+`">Show all</a>`)
		wantText(t, s.get(path+"?instance=b&match=nothing"), `<a href="`+path+`?instance=b">Show all</a>`)
	}
}

func TestChosenInstanceIsUnknownWhileThisOneStops(t *testing.T) {
	s := newSite(t)
	s.share()
	s.instances.Instances = []api.KnownInstance{{Name: "worker-1 (7)", This: true, Source: "process", State: "draining"}}
	for _, path := range []string{"/", "/app", "/deployments", "/scaling", "/events", "/logs"} {
		wantText(t, s.get(path+"?instance=b"), "No details of Instance b: not found")
	}
}

func TestPagesOfSeveralInstancesFollowEachOther(t *testing.T) {
	s := newSite(t)
	s.share()
	lines := eventlog.NewLines()
	s.peers.answerLines(lines)
	start := time.Now()
	for i := range 2*pageSize + 10 {
		of := s.history.Lines
		if i%3 == 0 {
			of = lines
		}
		of.Add(eventlog.Line{At: start.Add(time.Duration(i) * time.Microsecond), Process: "web", Text: fmt.Sprintf("number %d.", i)})
	}
	seen := map[string]int{}
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	for path, pages := "/logs", 0; path != ""; pages++ {
		page := s.get(path)
		for _, text := range regexp.MustCompile(`number \d+\.`).FindAllString(page, -1) {
			seen[text]++
		}
		path = ""
		if found := next.FindStringSubmatch(page); found != nil {
			path = strings.ReplaceAll(found[1], "&amp;", "&")
		}
		if pages > 5 {
			t.Fatal("the pages do not end")
		}
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%q is on %d pages", text, n)
		}
	}
	if len(seen) != 2*pageSize+10 {
		t.Errorf("%d lines are shown", len(seen))
	}
}

func TestSingleInstanceHasNoFilter(t *testing.T) {
	s := newSite(t)
	s.instances = api.Instances{Instances: []api.KnownInstance{{Name: "worker-1 (7)", This: true}}}
	for _, path := range []string{"/", "/app", "/deployments", "/scaling", "/events", "/logs"} {
		if page := s.get(path); strings.Contains(page, instancesFilter) || strings.Contains(page, "<th>Instance</th>") {
			t.Errorf("%s shows instances", path)
		}
	}
	s.share()
	if _, page := s.asSession(nil, "", "GET", "/?instance=b", nil); strings.Contains(page, instancesFilter) || s.peers.asked > 0 {
		t.Errorf("an anonymous caller made %d requests to another instance", s.peers.asked)
	}
}
