package environment

import (
	"testing"
	"time"

	"tendril/periodic"
	"tendril/queue"
)

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
