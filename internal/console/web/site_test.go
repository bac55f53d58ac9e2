package web

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/autoscale"
	"tendril/internal/console"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
)

type site struct {
	*testing.T
	broker      *broker.Broker
	pages       *Site
	request     atomic.Pointer[http.Request] // the latest one
	server      *httptest.Server
	client      *http.Client
	status      api.Status
	paused      map[string]string
	tasks       api.TasksStatus
	history     console.History
	runs        []api.TaskRun
	settings    api.Configuration
	change      func(api.SettingsChange) (api.SettingsPreview, error)
	versions    []api.AppVersion
	decisions   api.ScaleDecisions
	instances   api.Instances
	health      health.Report
	pauseAnswer api.Paused
	deployed    []string
	deploy      func(ctx context.Context) (api.DeployResult, error)
	series      func(name string) (series.Curves, bool)
	peers       otherInstance
	referer     string
}

const ownersToken = "a-token-for-tests"

const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>{{.}}javascript:alert(3)`

func newSite(t *testing.T) *site { return newSiteWith(t, console.Access{}) }

func newSiteWith(t *testing.T, access console.Access) *site {
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s := &site{T: t, broker: b, paused: map[string]string{}, health: health.Report{Status: health.Ok}}
	s.history.Events = eventlog.Open(t.TempDir(), func(err error) { t.Error(err) })
	s.history.Lines = eventlog.NewLines()
	s.history.Endings = eventlog.OpenEndings(t.TempDir(), func(err error) { t.Error(err) })
	t.Cleanup(func() { s.history.Endings.Close() })
	t.Cleanup(func() { s.history.Events.Close() })
	var server *console.Server
	pages := New(Options{Client: func(r *http.Request) *api.Client { return console.NewInProcessClient(server, r) }})
	s.pages = pages
	pages.patience = time.Hour
	recorded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.request.Store(r)
		pages.ServeHTTP(w, r)
	})
	s.status = api.Status{State: api.StateRunning, Workers: []api.Worker{{Queue: "jobs",
		Target: "http://127.0.0.1:8080/", Concurrency: 10, Receiving: true}}}
	s.tasks = api.TasksStatus{File: "cron.yaml", Tasks: []api.Task{{Name: "cleanup", URL: "/clean",
		Schedule: "0 3 * * *", Words: "every day at 03:00", Next: []time.Time{time.Now().Add(time.Hour)}}}}
	server = console.New(&console.Options{
		Environment: "shop", Version: "1.2.3", Broker: b, Token: ownersToken, Access: access,
		Handlers: console.Handlers{Pages: recorded}, History: s.history, Peers: &s.peers,
		Status: func() api.Status {
			st := s.status
			st.Tasks = &s.tasks
			return st
		},
		Settings: console.Settings{
			Configuration: func() api.Configuration { return s.settings },
			PreviewChange: func(c api.SettingsChange) (api.SettingsPreview, error) { return s.change(c) },
			ChangeScope:   func(api.SettingsChange) string { return api.ScopeAct },
			ChangeSettings: func(_ context.Context, c api.SettingsChange) (api.SettingsPreview, error) {
				return s.change(c)
			},
		},
		Views: console.Views{
			Health: func() health.Report { return s.health },
			Scale: func() autoscale.Scale {
				return autoscale.Scale{QueueLoad: autoscale.QueueLoad{Backlog: 7, OldestSeconds: 65}, Desired: 2}
			},
			ScaleDecisions: func() api.ScaleDecisions { return s.decisions },
			Instances:      func() api.Instances { return s.instances },
			Series: func(name string) (series.Curves, bool) {
				if s.series == nil {
					return series.Curves{}, false
				}
				return s.series(name)
			},
		},
		Deploy: func(ctx context.Context, path string) (api.DeployResult, error) {
			s.deployed = append(s.deployed, path)
			return s.deploy(ctx)
		},
		Versions: console.VersionOptions{
			Versions: func(context.Context, bool) ([]api.AppVersion, error) { return s.versions, nil },
			Rollback: func(ctx context.Context, number int) (api.DeployResult, error) {
				s.deployed = append(s.deployed, fmt.Sprint("version ", number))
				return s.deploy(ctx)
			},
			RestartProcess: func(ctx context.Context, name string) (string, error) {
				s.deployed = append(s.deployed, "process "+name)
				_, err := s.deploy(ctx)
				return name + "-2", err
			},
			AbortDeploy: func(context.Context) (api.Deployment, error) {
				s.deployed = append(s.deployed, "abort")
				return *s.status.Deployment, nil
			},
		},
		Receiving: console.Receiving{
			Pause: func(_ context.Context, queue string, why api.Reason, _ string) (api.Paused, error) {
				s.paused[queue] = why.Reason
				return s.pauseAnswer, nil
			},
			Resume: func(_ context.Context, queue string, _ bool) (api.Paused, error) {
				delete(s.paused, queue)
				return s.pauseAnswer, nil
			},
		},
		Tasks: &console.TaskOptions{
			Status:  func() api.TasksStatus { return s.tasks },
			History: func(string) []api.TaskRun { return s.runs },
			Run: func(_ context.Context, name string) (api.TaskRun, error) {
				return api.TaskRun{Task: name, RunID: "1"}, nil
			},
			Pause:  func(_ context.Context, name, why, _ string) error { s.paused["task "+name] = why; return nil },
			Resume: func(_ context.Context, name string) error { delete(s.paused, "task "+name); return nil },
		},
	})
	s.server = httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); s.server.Close() })
	s.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *site) queue(name string, attributes map[string]string) {
	s.Helper()
	if err := s.broker.CreateQueue(s.Context(), name, attributes, nil); err != nil {
		s.Fatal(err)
	}
}

func (s *site) send(name, body string, attributes ...queue.Attribute) string {
	s.Helper()
	sent, err := s.broker.Queue(name).Send(s.Context(), []queue.Outgoing{{Body: body, Attributes: attributes}})
	if err != nil || sent[0].Err != nil {
		s.Fatal(err, sent)
	}
	return sent[0].ID
}

func (s *site) do(method, path string, form url.Values) (int, string, *http.Response) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.referer != "" {
		r.Header.Set("Referer", s.server.URL+s.referer)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(body), resp
}

func (s *site) get(path string) string {
	s.Helper()
	status, page, _ := s.do("GET", path, nil)
	if status != http.StatusOK {
		s.Fatalf("GET %s: %d %s", path, status, page)
	}
	return page
}

func (s *site) post(path string, form url.Values) string {
	s.Helper()
	status, page, resp := s.do("POST", path, form)
	if status != http.StatusSeeOther {
		s.Fatalf("POST %s: %d %s", path, status, page)
	}
	r, err := http.NewRequestWithContext(s.Context(), "GET", s.server.URL+resp.Header.Get("Location"), nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	if cookies := resp.Cookies(); len(cookies) > 0 {
		s.Errorf("the answer to a form sets cookies, which other ports can set too: %v", cookies)
	}
	resp, err = s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(body)
}

func wantText(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not contain %q:\n%s", text, page)
		}
	}
}

func TestEveryScreenRendersForAnEnvironmentWithoutAnything(t *testing.T) {
	s := newSite(t)
	for _, sc := range screens {
		if sc.form || strings.Contains(strings.ReplaceAll(sc.path, "{$}", ""), "{") {
			continue
		}
		page := s.get(strings.TrimSuffix(sc.path, "{$}"))
		wantText(t, page, "<h1>", "shop", `aria-current="page"`)
	}
}

func TestOverviewShowsQueuesRunsAndProblems(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	s.send("jobs", "one")
	wantText(t, s.get("/"), "Nothing needs attention.", `href="/queues/jobs"`, "cleanup", "every day at 03:00",
		"No recent failures.")
}

func TestQueuePageShowsFilteredMessages(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	first := s.send("jobs", `{"job": "first"}`)
	second := s.send("jobs", `{"job": "second"}`)
	page := s.get("/queues/jobs?match=second")
	wantText(t, page, second)
	if strings.Contains(page, first) {
		t.Error("a message that does not match is shown")
	}
	wantText(t, s.get("/queues/jobs?state=delayed"), "No message matches.")
}

func TestListsShowOnePageOfRows(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	for i := range pageSize + 5 {
		s.send("jobs", fmt.Sprint("number ", i, "."))
	}
	page := s.get("/queues/jobs")
	if got := strings.Count(page, `<tr id="m-`); got != pageSize {
		t.Fatalf("the first page has %d rows, want %d", got, pageSize)
	}
	_, after, found := strings.Cut(page, `<a href="/queues/jobs?after=`)
	next, _, _ := strings.Cut(after, `"`)
	if !found {
		t.Fatal("there is no next page")
	}
	page = s.get("/queues/jobs?after=" + next)
	if got := strings.Count(page, `<tr id="m-`); got != 5 {
		t.Fatalf("the second page has %d rows, want 5", got)
	}
	wantText(t, page, "number 54.", "First page")
}

func TestAbbreviatedMessageIDLeadsToThePageOfTheMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue("jobs", nil)
	id := s.send("jobs", "work")
	status, _, resp := s.do("GET", "/messages/"+id[:18]+"?as=hex&body=1", nil)
	if to := resp.Header.Get("Location"); status != http.StatusFound || to != "/messages/"+id+"?as=hex&body=1" {
		t.Fatalf("%d to %q", status, to)
	}
	wantText(t, s.get("/messages/"+id+"?as=hex&body=1"), "Message "+id)
}

func TestMessagePageShowsNumbersExactlyAndBytes(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	id := s.send("jobs", `{"id":12345678901234567890,"x":1.10}`,
		queue.Attribute{Name: "tenant", Type: "String", Value: "a"})
	wantText(t, s.get("/messages/"+id), "12345678901234567890", "1.10", "tenant", "tendril send --queue")
	wantText(t, s.get("/messages/"+id+"?as=hex"), "7b 22 69 64")
	if status, page, _ := s.do("GET", "/messages/none", nil); status != http.StatusNotFound {
		t.Errorf("a message that is not there: %d %s", status, page)
	}
}

func TestFormsCallTheAPI(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	page := s.post("/queues/jobs/send", url.Values{"body": {"sent by hand"}, "message-attributes": {`{"tries": 3}`},
		"back": {"/queues/jobs"}})
	wantText(t, page, "Sent as ", "sent by hand")

	wantText(t, s.post("/queues/jobs/pause", url.Values{"reason": {"too slow"}, "back": {"/queues/jobs"}}),
		"jobs is paused")
	if s.paused["jobs"] != "too slow" {
		t.Errorf("the environment was asked to pause %v", s.paused)
	}
	s.pauseAnswer = api.Paused{Revision: 4}
	wantText(t, s.post("/queues/jobs/resume", url.Values{"back": {"/queues/jobs"}}), "jobs is resumed on this instance, and on the others")
	if len(s.paused) != 0 {
		t.Errorf("paused after resume: %v", s.paused)
	}
	wantText(t, s.post("/tasks/cleanup/run", url.Values{"back": {"/tasks"}}), "A run of cleanup was enqueued.")
	s.post("/tasks/cleanup/pause", url.Values{"reason": {"audit"}})
	if s.paused["task cleanup"] != "audit" {
		t.Errorf("the environment was asked to pause %v", s.paused)
	}
}

func TestPurgeAsksForTheName(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	s.send("jobs", "one")
	wantText(t, s.post("/queues/jobs/purge", url.Values{"confirm": {"job"}, "back": {"/queues/jobs"}}),
		"nothing was removed", "type jobs", `data-field="confirm"`)
	wantText(t, s.post("/queues/jobs/purge", url.Values{"confirm": {"jobs"}, "back": {"/queues/jobs"}}),
		"1 message removed from jobs.")
}

func TestAQueueIsDeletedWhenItsNameWasTyped(t *testing.T) {
	s := newSite(t)
	s.queue("scratch", nil)
	s.send("scratch", "one")
	const form = `action="/queues/scratch/delete"`
	wantText(t, s.get("/queues/scratch"), form, "with 1 message permanently")
	wantText(t, s.post("/queues/scratch/delete", url.Values{"confirm": {"scrat"}, "back": {"/queues"}}),
		"confirm it with the name of the queue")
	wantText(t, s.post("/queues/scratch/delete", url.Values{"confirm": {"scratch"}, "back": {"/queues"}}),
		"scratch was deleted with 1 message.")
	s.queue("jobs", nil)
	s.status.Workers = []api.Worker{{Queue: "jobs"}}
	if page := s.get("/queues/jobs"); strings.Contains(page, "/queues/jobs/delete") {
		t.Errorf("a queue that is worked on can be deleted:\n%s", page)
	}
}

func TestNobodyWithoutARightSeesAPage(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	for _, path := range []string{"/queues/jobs", "/messages/x?queue=jobs"} {
		resp, err := s.client.Get(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), "tendril open") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	resp, err := s.client.PostForm(s.server.URL+"/queues/jobs/purge", url.Values{"confirm": {"jobs"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a purge without a right: %d", resp.StatusCode)
	}
}

func TestPagesForbidInlineCodeAndFrames(t *testing.T) {
	s := newSite(t)
	_, page, resp := s.do("GET", "/", nil)
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy %q allows what is unsafe", policy)
	}
	for _, banned := range []string{" style=", " onclick=", "<style", "javascript:"} {
		if strings.Contains(page, banned) {
			t.Errorf("the page contains %q, which the policy forbids", banned)
		}
	}
}

func TestFormsLeadToPagesOfThisSiteOnly(t *testing.T) {
	for back, want := range map[string]string{
		"/queues/jobs?x=1": "/queues/jobs?x=1", "": "/", "//evil.example": "/", "https://evil.example/": "/",
		`/\evil.example`: "/", "javascript:alert(1)": "/", "queues": "/", "/\r\nX: y": "/", "/%zz": "/",
	} {
		if got := ownPath(back); got != want {
			t.Errorf("a form that names %q leads to %q, want %q", back, got, want)
		}
	}
}

func TestLiveStreamSendsChangedPagesOnly(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", s.server.URL+"/live?at=/queues/jobs", nil)
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("the stream is %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	seen := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended without %q: %v", text, lines.Err())
	}
	seen("No messages here.")
	id := s.send("jobs", "a new one")
	seen(id)
}

func TestLiveStreamOfNoPageIsRefused(t *testing.T) {
	s := newSite(t)
	for _, at := range []string{"/nothing", "/live", "/assets/app.js"} {
		if status, _, _ := s.do("GET", "/live?at="+at, nil); status != http.StatusNotFound {
			t.Errorf("the stream of %s: %d, want 404", at, status)
		}
	}
}

func TestAssetsMayBeKeptForEver(t *testing.T) {
	s := newSite(t)
	for _, a := range assets() {
		status, _, resp := s.do("GET", a.path, nil)
		if status != http.StatusOK || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") ||
			resp.Header.Get("Content-Type") != a.kind {
			t.Errorf("%s: %d %v", a.path, status, resp.Header)
		}
	}
	if status, _, _ := s.do("GET", "/assets/app-000000000000.js", nil); status != http.StatusNotFound {
		t.Errorf("an asset with another hash: %d", status)
	}
}

func TestThirdPartyFilesAreThoseOfTheList(t *testing.T) {
	list, err := os.ReadFile("third_party/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			listed[name] = sum
		}
	}
	found := 0
	err = filepath.WalkDir("third_party", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SHA256SUMS" {
			return err
		}
		found++
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		name := strings.TrimPrefix(filepath.ToSlash(path), "third_party/")
		if got := hex.EncodeToString(sum[:]); got != listed[name] {
			t.Errorf("%s has the sum %s, and the list says %q", name, got, listed[name])
		}
		return err
	})
	if err != nil || found != len(listed) {
		t.Errorf("%d files, %d in the list, %v", found, len(listed), err)
	}
	for _, library := range []string{"htmx", "uplot"} {
		if _, ok := listed[library+"/LICENSE"]; !ok {
			t.Errorf("%s has no licence", library)
		}
	}
}

func FuzzMessageIsNeverMarkup(f *testing.F) {
	f.Add(hostile, hostile)
	f.Add(`{"a": "</pre><script>"}`, "x\x00y")
	f.Fuzz(func(t *testing.T, body, reason string) {
		v := &visit{site: New(Options{Client: func(*http.Request) *api.Client { return nil }}),
			screen: &messageScreens[0], r: httptest.NewRequest("GET", "/messages/1", nil), now: time.Now()}
		v.Status = api.Status{Environment: reason, Workers: []api.Worker{{Queue: reason, Progress: api.Progress{PauseReason: reason, Why: reason}}}}
		for _, data := range []struct {
			view string
			data any
		}{
			{"message", &messagePage{Message: api.Message{ID: reason, Queue: reason, Body: body,
				Attributes: api.Attributes{{Name: reason, Type: "String", Value: body}}, GroupID: body,
				DeadLetterSource: reason}, Text: body, Dead: true, Targets: []string{reason},
				Timeline: []attempt{{api.Attempt{Reason: reason, Answer: body, Instance: reason, Outcome: reason}}}}},
			{"message", hostileTreePage(t, body, reason)},
			{"dead", hostileDeadPage(body, reason)},
			{"bulk", &bulkPage{deadSelection: deadSelection{Queue: reason, IDs: []string{reason, body},
				Filter: deadFilter{Match: body, Attribute: reason, Since: reason, Until: body, Reason: reason, ByReason: true}},
				Total: api.Total{N: 2}, Reasons: []reasonGroup{{ReasonGroup: api.ReasonGroup{Reason: reason}, Path: "?x"},
					{ReasonGroup: api.ReasonGroup{Reason: body}, Path: "?y"}},
				Back: "/dead?" + deadFilter{Match: body, Reason: reason, ByReason: true}.query(reason)}},
			{"edit", &editPage{Message: api.Message{ID: reason, Queue: reason, Body: body, GroupID: reason},
				AttributesText: body, Targets: []string{reason, body}, Target: reason, FIFO: true}},
			{"overview", &overview{Attention: []attention{{Cause: health.Cause{Status: health.Severe, Text: reason, Remedy: body, Name: reason, Kind: health.KindDeadLetters},
				Most: &api.ReasonGroup{Reason: body}}},
				Environment: &health.Environment{Causes: []health.SharedCause{{Cause: health.Cause{Text: reason}, Count: 1, Instances: []string{body}}}},
				Problems:    []api.Problem{{Reason: body, Queue: reason, LastMessageID: reason}}, Queues: []queueRow{{Queue: api.Queue{Name: reason}, Reason: body}}}},
			{"task", &taskPage{Task: api.Task{Name: reason, PauseReason: body, URL: body}, Runs: []api.TaskRun{
				{Task: reason, Reason: body, Skipped: reason}}}},
			{"error", api.NewError(500, body, reason)},
		} {
			v.Data = data.data
			page, err := v.site.execute(view(data.view), v, "page")
			if err != nil {
				t.Fatal(err)
			}
			checkMarkup(t, data.view, page.String())
		}
	})
}

func hostileTreePage(t *testing.T, body, reason string) *messagePage {
	page := &messagePage{Message: api.Message{ID: "1", Queue: "jobs", Body: body}}
	if page.Tree, page.Whole = treeOf(body); page.Tree != nil {
		return page
	}
	text, err := json.Marshal(map[string]any{body: reason, reason: []any{body, map[string]string{reason: body}}})
	if err != nil {
		t.Fatal(err)
	}
	page.Body = string(text)
	if page.Tree, page.Whole = treeOf(page.Body); page.Tree == nil {
		t.Fatalf("no tree of %s", text)
	}
	return page
}

func hostileDeadPage(body, reason string) *deadPage {
	page := &deadPage{Queue: reason, Queues: []choice{{Label: reason, Path: "/dead?" + deadFilter{Match: body}.query(reason)},
		{Label: body, Path: "/dead"}}, Targets: []string{reason}, Filter: deadFilter{Match: body, Attribute: reason,
		Since: body, Until: reason, Reason: reason, ByReason: true, Bodies: true},
		Task: &api.MoveTask{Status: "FAILED", FailureReason: reason}, Messages: []api.Message{{ID: reason,
			Queue: reason, Body: body, DeadLetterSource: reason, Attempts: []api.Attempt{{Reason: reason, Answer: body,
				Status: 422}}}}, Next: "/dead?" + deadFilter{Attribute: reason}.query(body)}
	page.addGroups([]api.ReasonGroup{{Reason: reason, Count: 1, Hours: [24]int{1}}, {Reason: body}})
	return page
}

func checkMarkup(t *testing.T, view, page string) {
	t.Helper()
	if strings.Count(page, "<script") != 1 || strings.Contains(page, "<img src=x") {
		t.Fatalf("%s: text became markup:\n%s", view, page)
	}
	for rest := page; ; {
		_, after, found := strings.Cut(rest, `href="`)
		if !found {
			break
		}
		target, next, _ := strings.Cut(after, `"`)
		if target != "" && !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "#") &&
			!strings.HasPrefix(target, "?") {
			t.Fatalf("%s: a link leads to %q", view, target)
		}
		rest = next
	}
}
