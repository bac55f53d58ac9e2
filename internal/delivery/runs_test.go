package delivery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/cron/periodic"
	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

func runMessage(id, path string) *queue.Message {
	return &queue.Message{ID: id, Body: "elasticbeanstalk scheduled job", ReceiveCount: 1, Attributes: []queue.Attribute{
		{Name: "beanstalk.sqsd.path", Type: "String", Value: path},
		{Name: "beanstalk.sqsd.scheduled_time", Type: "String", Value: "2026-03-22 23:10:00 UTC"},
		{Name: "beanstalk.sqsd.task_name", Type: "String", Value: "audit"},
		{Name: "tenant", Type: "String", Value: "acme"},
	}}
}

func TestOnlyKnownRunsAreTrusted(t *testing.T) {
	t.Parallel()
	type seen struct{ Path, Task, Tenant, Body string }
	var got []seen
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.URL.Path, r.Header.Get("X-Aws-Sqsd-Taskname"), r.Header.Get("X-Aws-Sqsd-Attr-Tenant"),
			string(body)})
	}))
	t.Cleanup(app.Close)
	h, err := deliver.NewClient(&deliver.Options{Target: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	const run = "audit@2026-03-22T23:10:00Z"
	for _, tt := range []struct {
		name         string
		trust, known bool
		want         seen
	}{
		{"all are trusted", false, false, seen{"/audit", "audit", "acme", ""}},
		{"known to the registry", true, true, seen{"/audit", "audit", "acme", ""}},
		{"unknown to the registry", true, false, seen{"/", "", "acme", "elasticbeanstalk scheduled job"}},
		{"known with another path", true, true, seen{"/", "", "acme", "elasticbeanstalk scheduled job"}},
	} {
		got = nil
		path := "/audit"
		if tt.name == "known with another path" {
			path = "/admin"
		}
		opts := &Options{Target: h}
		if tt.trust {
			opts.Known = func(_ context.Context, id, path string) (bool, error) {
				return tt.known && id == run && path == "/audit", nil
			}
		}
		if r := ForWorker(opts).Deliver(t.Context(), runMessage("m", path)); r.Outcome != queue.Done {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if diff := cmp.Diff([]seen{tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestRunsWaitForTheRegistry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want queue.Outcome
	}{{periodic.ErrUndecided, queue.Postponed}, {errors.New("no answer"), queue.Postponed},
		{queue.ErrUnreachable, queue.Postponed}, {queue.ErrDenied, queue.Failed}} {
		d := &takesAll{}
		opts := &Options{Target: d, FIFO: true, Known: func(context.Context, string, string) (bool, error) {
			return false, tt.err
		}}
		run, behind, other := runMessage("m", "/audit"), letter("tasks/2"), letter("h/3")
		run.GroupID = "tasks"
		results := deliverAll(t.Context(), opts, run, behind, other)
		if results[0].Outcome != tt.want || results[1].Outcome != tt.want || results[2].Outcome != queue.Done ||
			!slices.Equal(d.bodies, []string{"3"}) {
			t.Errorf("%v: %+v, handed over %v", tt.err, results, d.bodies)
		}
	}
}

type account struct {
	begun []string
	ended []periodic.Outcome
}

func (a *account) Begun(task string)              { a.begun = append(a.begun, task) }
func (a *account) Ended(outcome periodic.Outcome) { a.ended = append(a.ended, outcome) }

func TestRunsAreAccountedFor(t *testing.T) {
	t.Parallel()
	var a account
	opts := &Options{Target: &takesAll{}, Account: func() RunAccount { return &a }}
	deliverAll(t.Context(), opts, runMessage("m", "/audit"), letter("2"))
	if !slices.Equal(a.begun, []string{"audit"}) || len(a.ended) != 1 || a.ended[0].MessageID != "m" ||
		a.ended[0].Task != "audit" || a.ended[0].Result.Outcome != queue.Done || a.ended[0].Attempt != 1 {
		t.Errorf("begun %v, ended %+v", a.begun, a.ended)
	}
	opts.Account = func() RunAccount { return nil }
	if r := deliverAll(t.Context(), opts, runMessage("m", "/audit")); r[0].Outcome != queue.Done || len(a.begun) != 1 {
		t.Errorf("without an account: %+v", r)
	}
}

func TestBegunIsReportedForDeliveredMessages(t *testing.T) {
	t.Parallel()
	opts, _ := fetching(fetcherFunc(func(context.Context, string) ([]byte, error) { return nil, errors.New("gone") }))
	var paths []string
	opts.Begun = func(path string) { paths = append(paths, path) }
	deliverAll(t.Context(), opts, letter("->k"), runMessage("m", "/audit"), letter("2"))
	if !slices.Equal(paths, []string{"/audit", ""}) {
		t.Errorf("begun: %q", paths)
	}
}

func TestRunsAreNotUnwrapped(t *testing.T) {
	t.Parallel()
	opts, d := fetching(fetcherFunc(func(context.Context, string) ([]byte, error) { return []byte("fetched"), nil }))
	run := runMessage("m", "/audit")
	pointer := letter("->k")
	run.Body, run.Attributes = pointer.Body, append(run.Attributes, pointer.Attributes...)
	if r := deliverAll(t.Context(), opts, run); r[0].Outcome != queue.Done || d.bodies[0] != pointer.Body {
		t.Errorf("%+v, handed over %q", r, d.bodies)
	}
}

func TestRunID(t *testing.T) {
	t.Parallel()
	for extra, want := range map[string]string{
		"":                                  "audit@2026-03-22T23:10:00Z",
		"audit@2026-03-22T23:10:00Z#ABC":    "audit@2026-03-22T23:10:00Z#ABC",
		"other@2026-03-22T23:10:00Z#ABC":    "",
		"audit@2026-03-22T23:11:00Z#ABC":    "",
		"audit@2026-03-22T23:10:00Z-or-not": "",
	} {
		m := runMessage("m", "/audit")
		if extra != "" {
			m.Attributes = append(m.Attributes, queue.Attribute{Name: queue.AttributeRun, Type: "String", Value: extra})
		}
		if id := periodic.IDOf(queue.ParseRun(m)); id != want {
			t.Errorf("with run id %q: %q, want %q", extra, id, want)
		}
	}
	if id := periodic.IDOf(queue.ParseRun(&queue.Message{})); id != "" {
		t.Errorf("an ordinary message has the run id %q", id)
	}
}
