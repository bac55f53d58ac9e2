package environment

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/observe/health"
)

func TestInstancesAgreeOnTheHealthOfTheEnvironment(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("fleet-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	makeDead(t, server, 0)
	app, release := slowApp(t)
	release()
	up := func(more map[string]string) *running {
		flags := map[string]string{"queue-url": server.queues.endpoint + "/000000000000/jobs",
			"endpoint-url": server.queues.endpoint, "target": app, "lease": "5s"}
		for name, value := range more {
			flags[name] = value
		}
		return run(t, flags, nil)
	}

	first := up(map[string]string{"fleet-key-file": key})
	second := up(map[string]string{"fleet-key-file": key})
	both := []*running{first, second}
	for _, r := range both {
		eventually(t, "both instances are counted", func() bool {
			e := r.observe.report().Environment
			return e.IsShared() && e.Total() == 2 && e.Instances[health.NoData] == 0
		})
	}
	eventually(t, "exactly one of them leads", func() bool { return first.members.leads() != second.members.leads() })
	for _, r := range both {
		eventually(t, "only the leader publishes the health of the environment", func() bool {
			h := r.observe.publicHealth(health.NewHost(""))
			return h.HasCode == r.members.leads() && (!h.HasCode || h.Code <= health.Info.Code())
		})
	}

	third := up(nil)
	leader := first
	if second.members.leads() {
		leader = second
	}
	eventually(t, "the record of the instance without the key is refused", func() bool {
		list := leader.members.knownInstances()
		refused := 0
		for _, one := range list.Instances {
			if one.NotAuthenticated && one.Console == "" {
				refused++
			}
		}
		return refused == 1 && strings.Contains(strings.Join(list.Notes, " "), "is not used: it is not signed")
	})
	eventually(t, "it is not counted", func() bool {
		e := leader.observe.report().Environment
		var causes []string
		for _, c := range e.Causes {
			causes = append(causes, c.Text)
		}
		return e.Total() == 2 && strings.Contains(strings.Join(causes, " "), "Records are not authenticated")
	})
	eventually(t, "it sees all others", func() bool {
		e := third.observe.report().Environment
		return e != nil && e.Total() == 2
	})

	if err := server.end(); err != nil {
		t.Error(err)
	}
	eventually(t, "the lost registry is reported", func() bool {
		return first.observe.report().Environment.Status == health.NoData
	})
	if own := first.observe.report(); own.Status == health.NoData {
		t.Error("the instance's own health depends on the registry")
	}
}

// An instance with another key rejects the change.
func TestChangesAreRejectedWhileARecordIsNotAuthenticated(t *testing.T) {
	t.Parallel()
	server := run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	makeDead(t, server, 0)
	up := func(fleetKey string) *running {
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte(fleetKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return run(t, map[string]string{"queue-url": server.queues.endpoint + "/000000000000/jobs",
			"endpoint-url": server.queues.endpoint, "target": "http://127.0.0.1:1/", "lease": "5s", "fleet-key-file": key}, nil)
	}
	first := up("fleet-key-0123456789")
	up("other-key-0123456789")

	eventually(t, "the record of the other instance is refused", func() bool {
		others, err := first.members.others(t.Context())
		return err == nil && len(others) == 1 && others[0].Refused != nil && others[0].Follows
	})
	_, err := first.desired.pause(t.Context(), "", api.Reason{Reason: "upgrade"}, "owner")
	if !api.HasStatus(err, http.StatusConflict) || !strings.Contains(err.Error(), "(not authenticated)") {
		t.Errorf("pausing all instances: %v", err)
	}
	if isPaused(first.work.all[0].worker.Status()) || first.desired.revision() != 0 {
		t.Error("the rejected pause changed something")
	}
}

func TestSingleInstanceHasNoEnvironmentHealth(t *testing.T) {
	t.Parallel()
	r := run(t, map[string]string{"queue": "jobs", "target": "http://127.0.0.1:1/"}, nil)
	if got := r.observe.report(); got.Environment != nil {
		t.Errorf("the environment is %+v", got.Environment)
	}
	if h := r.observe.publicHealth(health.NewHost("")); !h.HasCode {
		t.Error("its health is not published")
	}
}
