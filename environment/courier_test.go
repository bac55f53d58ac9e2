package environment

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/config"
	"tendril/deliver"
	"tendril/periodic"
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

// TestCourierTrust: where only the registry is trusted, a message that just
// looks like a run is an ordinary one: posted to the app's own path, with its
// body.
func TestCourierTrust(t *testing.T) {
	t.Parallel()
	type seen struct{ Path, Task, Tenant, Body string }
	var got []seen
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.URL.Path, r.Header.Get("X-Aws-Sqsd-Taskname"), r.Header.Get("X-Aws-Sqsd-Attr-Tenant"),
			string(body)})
	}))
	t.Cleanup(app.Close)
	h, err := deliver.NewHTTP(&deliver.HTTPOptions{Target: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	const run = "audit@2026-03-22T23:10:00Z"
	for _, tt := range []struct {
		name, trust string
		known       bool
		want        seen
	}{
		{"all are trusted", config.TrustAll, false, seen{"/audit", "audit", "acme", ""}},
		{"known to the registry", config.TrustRegistry, true, seen{"/audit", "audit", "acme", ""}},
		{"unknown to the registry", config.TrustRegistry, false, seen{"/", "", "acme", "elasticbeanstalk scheduled job"}},
		{"known with another path", config.TrustRegistry, true, seen{"/", "", "acme", "elasticbeanstalk scheduled job"}},
	} {
		got = nil
		path := "/audit"
		if tt.name == "known with another path" {
			path = "/admin"
		}
		e := &Environment{s: &config.Settings{PeriodicTrust: tt.trust}, report: &report{discard()}}
		e.agreed.Store(&registry{known: func(_ context.Context, id, path string) (bool, error) {
			return tt.known && id == run && path == "/audit", nil
		}})
		if r := (&courier{e: e, to: h}).Deliver(t.Context(), runMessage("m", path)); r.Outcome != queue.Done {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if diff := cmp.Diff([]seen{tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestRunIDs: a run that a person asked for says its own id, which must be one
// of its task and time.
func TestRunIDs(t *testing.T) {
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

func TestMemoryStoreIsAPeriodicStore(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newMemoryStore()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := periodic.ScheduledRun{ID: "audit@1", Task: "audit", ScheduledAt: at}
	f.Message.Attributes = []queue.Attribute{{Name: queue.AttributePath, Type: "String", Value: "/audit"}}
	since, _ := s.Since(ctx, 1, map[string]time.Time{"audit": at.Add(-time.Hour)})
	if !since["audit"].Equal(at.Add(-time.Hour)) {
		t.Errorf("a new task is accounted for since %v", since)
	}
	if c, _ := s.Claim(ctx, 1, f, 2); c.Tries != 0 {
		t.Errorf("try 2 was claimed before try 1: %+v", c)
	}
	if c, _ := s.Claim(ctx, 1, f, 1); c.Tries != 1 || c.Settled {
		t.Errorf("try 1: %+v", c)
	}
	s.Mark(ctx, 1, f, "m-1")
	s.Mark(ctx, 1, f, "m-2")
	if c, _ := s.Claim(ctx, 2, f, 2); c.Tries != 1 || !c.Settled || c.MessageID != "m-1" {
		t.Errorf("after the mark: %+v", c)
	}
	if since, _ := s.Since(ctx, 1, map[string]time.Time{"audit": at.Add(-time.Hour)}); !since["audit"].Equal(at) {
		t.Errorf("accounted for since %v, want %v", since["audit"], at)
	}
	s.Mark(ctx, 1, periodic.ScheduledRun{ID: "audit@0", Task: "audit", ScheduledAt: at}, "") // left out
	for run, want := range map[[2]string]bool{{"audit@1", "/audit"}: true, {"audit@1", "/admin"}: false,
		{"audit@0", ""}: false} {
		if known, _ := s.known(ctx, run[0], run[1]); known != want {
			t.Errorf("known(%q) = %v", run, known)
		}
	}
	later := periodic.ScheduledRun{ID: "audit@2", Task: "audit", ScheduledAt: at.Add(72 * time.Hour)}
	s.Claim(ctx, 1, later, 1)
	if known, _ := s.known(ctx, "audit@1", "/audit"); known {
		t.Error("records are kept for ever")
	}
}

func TestConflictKeepsItsText(t *testing.T) {
	t.Parallel()
	_, err := listen("listen", "127.0.0.1:notaport", true)
	if err == nil {
		t.Fatal("listened on no port")
	}
	l, err := listen("listen", "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = listen("console", l.Addr().String(), true)
	if err == nil || err.Error() != "--console "+l.Addr().String()+
		": the port is in use; stop what listens there, or give another port (0 takes any free one)" {
		t.Errorf("error = %v", err)
	}
}
