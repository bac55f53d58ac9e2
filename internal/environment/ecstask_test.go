package environment

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
)

func TestTaskIsProtected(t *testing.T) {
	var mu sync.Mutex
	var asked []bool
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		on := strings.Contains(string(body), "true")
		mu.Lock()
		asked = append(asked, on)
		mu.Unlock()
		text := `{"protection":{"ProtectionEnabled":false}}`
		if on {
			text = `{"protection":{"ProtectionEnabled":true}}`
		}
		io.WriteString(w, text)
	}))
	defer agent.Close()
	t.Setenv("ECS_AGENT_URI", agent.URL+"/api/x")
	received := func() []bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
	app, release := slowApp(t)
	r := run(t, map[string]string{"target": app, "queue": "jobs"}, func(e *Environment) {
		e.scale.fleetTiming = fleet.Timing{ProtectAfter: -1, Look: 20 * time.Millisecond}
	})
	sendOne(t, r, "work")
	eventually(t, "protection", func() bool { return slices.Contains(received(), true) })
	r.stop()
	<-r.life.draining
	if last := received(); !last[len(last)-1] {
		t.Error("the protection ended before the work")
	}
	release()
	if err := <-r.done; err != nil {
		t.Errorf("the end: %v", err)
	}
	if last := received(); last[len(last)-1] {
		t.Error("it is still protected")
	}
}

// An unresponsive agent must not delay shutdown.
func TestTaskProtectionCanBeOff(t *testing.T) {
	asked := make(chan struct{}, 100)
	agent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer agent.Close()
	t.Setenv("ECS_AGENT_URI", agent.URL)
	for protection, work := range map[string]bool{"off": true, "auto": false} {
		app, release := slowApp(t)
		r := run(t, map[string]string{"target": app, "queue": "jobs", "scale-in-protection": protection},
			func(e *Environment) {
				e.scale.fleetTiming = fleet.Timing{ProtectAfter: -1, Look: 10 * time.Millisecond}
			})
		if work {
			sendOne(t, r, "work")
			eventually(t, "work", func() bool { return r.work.all[0].status().InWork > 0 })
			began := time.Now()
			eventually(t, "ten looks", func() bool { return time.Since(began) > 100*time.Millisecond })
		}
		release()
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		if len(asked) > 0 {
			t.Errorf("with %s the agent was asked", protection)
		}
	}
}

func TestInvalidAgentURIFailsStartup(t *testing.T) {
	t.Setenv("ECS_AGENT_URI", "169.254.170.2")
	z := sizing{opts: &Options{Logger: discard()}, settings: newSettings(new(config.Config))}
	if err := z.protectTask(t.Context()); err == nil || !strings.Contains(err.Error(), "ECS_AGENT_URI") {
		t.Error(err)
	}
}
