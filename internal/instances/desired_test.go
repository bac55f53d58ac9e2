package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/cron/leader"
	"tendril/queue"
)

const fleetKey = "0123456789abcdef"

func newDesired(t *testing.T, key FleetKey) *DesiredState {
	t.Helper()
	d, err := NewDesired("jobs", key, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pauseQueue(t *testing.T, d *DesiredState, store Store, name string) Desired {
	t.Helper()
	now, err := d.Change(t.Context(), store, func(d *Desired) error {
		if d.Pauses == nil {
			d.Pauses = map[string]Pause{}
		}
		d.Pauses[name] = Pause{Reason: "maintenance", By: "owner"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func overwrite(t *testing.T, store Store, data string) {
	t.Helper()
	const name = "jobs/desired"
	stored, err := store.Read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	next := queue.Lease{Owner: "desired state", Version: stored.Version + "'", Duration: FreshFor, Data: data}
	if won, _, err := store.Swap(t.Context(), name, stored, next); !won || err != nil {
		t.Fatalf("overwritten: %t, %v", won, err)
	}
}

func TestStatesThatAreNotGenuineAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// attack receives the stored revisions 1 and 2.
		attack func(first, second string) string
		want   error
	}{
		{"signed with another key", func(_, second string) string {
			d, _ := FleetKey(fleetKey).open(second, "jobs")
			d.Revision++
			return FleetKey("fedcba9876543210").seal(d)
		}, ErrForged},
		{"changed content", func(_, second string) string { return strings.Replace(second, "maintenance", "nothing", 1) }, ErrForged},
		{"raised revision", func(_, second string) string {
			return strings.Replace(second, `"revision":2`, `"revision":9`, 1)
		}, ErrForged},
		{"without a signature", func(string, string) string { return `{"state":{"environment":"jobs","revision":9}}` }, ErrForged},
		{"not JSON", func(string, string) string { return "paused" }, ErrForged},
		{"empty", func(string, string) string { return "" }, ErrForged},
		{"replayed", func(first, _ string) string { return first }, ErrReplayed},
		{"another change of the same revision", func(first, _ string) string {
			d, _ := FleetKey(fleetKey).open(first, "jobs")
			d.Revision = 2
			return FleetKey(fleetKey).seal(d)
		}, ErrDiverged},
		{"of another environment", func(string, string) string {
			return FleetKey(fleetKey).seal(Desired{Environment: "payments", Revision: 9})
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := newFleet().store
			d := newDesired(t, fleetKey)
			pauseQueue(t, d, store, "a")
			first, _ := store.Read(t.Context(), "jobs/desired")
			pauseQueue(t, d, store, "b")
			second, _ := store.Read(t.Context(), "jobs/desired")

			overwrite(t, store, c.attack(first.Data, second.Data))
			now, err := d.Refresh(t.Context(), store)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if now.Revision != 2 || len(now.Pauses) != 2 {
				t.Errorf("the state became %+v", now)
			}
			if _, kept := d.Current(); !errors.Is(kept, err) {
				t.Errorf("the error shown is %v, want %v", kept, err)
			}
		})
	}
}

func TestChangeReplacesADivergedState(t *testing.T) {
	t.Parallel()
	lost, store := newFleet().store, newFleet().store
	here, there := newDesired(t, fleetKey), newDesired(t, fleetKey)
	pauseQueue(t, here, lost, "a")
	pauseQueue(t, there, store, "b")
	if _, err := here.Refresh(t.Context(), store); !errors.Is(err, ErrDiverged) {
		t.Errorf("reading the other revision 1: %v", err)
	}
	pauseQueue(t, here, store, "c")
	now, err := there.Refresh(t.Context(), store)
	if _, paused := now.Pauses["a"]; now.Revision != 2 || !paused || len(now.Pauses) != 2 || err != nil {
		t.Errorf("the other instance reads %+v, %v", now, err)
	}
	if again, err := here.Refresh(t.Context(), store); err != nil || again.Revision != 2 {
		t.Errorf("reading again: %+v, %v", again, err)
	}
}

func TestChangeReplacesAReplayedState(t *testing.T) {
	t.Parallel()
	store := newFleet().store
	d := newDesired(t, fleetKey)
	pauseQueue(t, d, store, "a")
	first, _ := store.Read(t.Context(), "jobs/desired")
	pauseQueue(t, d, store, "b")
	overwrite(t, store, first.Data)
	now := pauseQueue(t, d, store, "c")
	other, err := newDesired(t, fleetKey).Refresh(t.Context(), store)
	if now.Revision != 3 || other.Revision != 3 || len(other.Pauses) != 3 || err != nil {
		t.Errorf("changed to %+v; another instance reads %+v, %v", now, other, err)
	}
}

func TestStateSurvivesARestart(t *testing.T) {
	t.Parallel()
	kept := ""
	keep := func(text string) error { kept = text; return nil }
	d, err := NewDesired("jobs", fleetKey, "", keep)
	if err != nil {
		t.Fatal(err)
	}
	pauseQueue(t, d, newFleet().store, "a")

	if d, err = NewDesired("jobs", fleetKey, kept, keep); err != nil {
		t.Fatal(err)
	}
	if now, err := d.Refresh(t.Context(), newFleet().store); !errors.Is(err, ErrReplayed) || len(now.Pauses) != 1 {
		t.Errorf("after the registry was emptied: %+v, %v", now, err)
	}

	changed := strings.Replace(kept, "maintenance", "nothing", 1)
	if _, err := NewDesired("jobs", fleetKey, changed, keep); !errors.Is(err, ErrForged) {
		t.Errorf("a changed text: %v", err)
	}
}

func TestChangeKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	store := newFleet().store
	d := newDesired(t, fleetKey)
	pauseQueue(t, d, store, "a")
	state := []byte(`{"environment":"jobs","revision":7,"later":{"version":[3]},"pauses":{"a":{"at":"2026-01-01T00:00:00Z","until":5}},` +
		`"settings":{"revision":5,"at":"2026-01-01T00:00:00Z","groups":["x"]},"app":{"channels":1,` +
		`"current":{"number":1,"digest":"1","at":"2026-01-01T00:00:00Z","place":"one"},` +
		`"next":{"number":2,"digest":"2","at":"2026-01-01T00:00:00Z","place":"two"},"rollout":{"timeout":1,"weight":9}}}`)
	text, err := json.Marshal(signed{state, FleetKey(fleetKey).sign(desiredState, string(state))})
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, store, string(text))

	if _, err := d.Change(t.Context(), store, func(*Desired) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the error is %v", err)
	}
	now := pauseQueue(t, d, store, "b")
	if now.Revision != 8 || len(now.Pauses) != 2 {
		t.Errorf("changed to %+v", now)
	}
	want := []string{`"later":{"version":[3]}`, `"until":5`, `"groups":["x"]`, `"channels":1`, `"place":"one"`, `"place":"two"`, `"weight":9`}
	stored, _ := store.Read(t.Context(), "jobs/desired")
	for _, part := range want {
		if !strings.Contains(stored.Data, part) {
			t.Errorf("after a pause, %s is missing: %s", part, stored.Data)
		}
	}

	if _, err := d.Change(t.Context(), store, func(d *Desired) error {
		finished := d.App.finish()
		d.App = &finished
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stored, _ = store.Read(t.Context(), "jobs/desired")
	later, err := FleetKey(fleetKey).open(stored.Data, "jobs")
	if err != nil || !strings.Contains(string(later.App.Current.unknown), "two") || !strings.Contains(string(later.App.Earlier[0].unknown), "one") {
		t.Errorf("after the rollout: %s, %v", stored.Data, err)
	}
}

func TestStateOfAnEarlierVersionIsRead(t *testing.T) {
	t.Parallel()
	const text = `{"state":{"app":{"current":{"number":1,"digest":"2be42b6d5cf470f4d2870cb7cbe946b7a4b18271fd7c149e9ddf8be9b531cbb1",` +
		`"size":531,"name":"app","by":"start","at":"2026-11-28T13:09:32Z"}},"environment":"periodic:jobs","revision":3},` +
		`"signature":"wyBTpdQ3Xh-4qPLAxy6A54L5bCqvnTx44i9Xmbmq92A"}`
	d, err := NewDesired("periodic:jobs", "fleet-key-0123456789", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := d.Current(); now.Revision != 3 || now.App.Current.Number != 1 || now.App.Current.Size != 531 || now.Settings.Revision != 0 {
		t.Errorf("read %+v", now)
	}
}

func TestStateThatCannotBeKeptHasNoEffect(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	d, err := NewDesired("jobs", fleetKey, "", func(string) error { return full })
	if err != nil {
		t.Fatal(err)
	}
	store := newFleet().store
	pauseQueue(t, newDesired(t, fleetKey), store, "a")
	if now, err := d.Refresh(t.Context(), store); !errors.Is(err, full) || now.Revision != 0 {
		t.Errorf("revision %d, %v", now.Revision, err)
	}
}

func TestFleetKeyIsReplacedInTwoSteps(t *testing.T) {
	t.Parallel()
	const next = "fedcba9876543210"
	store := newFleet().store
	pauseQueue(t, newDesired(t, fleetKey), store, "a")
	both := newDesired(t, next+","+fleetKey)
	if now := pauseQueue(t, both, store, "b"); now.Revision != 2 {
		t.Errorf("with both keys: %+v", now)
	}
	if now, err := newDesired(t, next).Refresh(t.Context(), store); err != nil || len(now.Pauses) != 2 {
		t.Errorf("with the new key: %+v, %v", now, err)
	}
	if _, err := newDesired(t, fleetKey).Refresh(t.Context(), store); !errors.Is(err, ErrForged) {
		t.Errorf("with the previous key: %v", err)
	}
}

func TestFollowAppliesWhatAnotherCallerHasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, d := newFleet().store, newDesired(t, fleetKey)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var applied atomic.Int32
		go d.Follow(ctx, Following{Store: store, Failed: func(err error) { t.Error(err) }, Leads: func() bool { return false },
			Revision: func() int64 { now, _ := d.Current(); return now.Revision }, Apply: func() { applied.Add(1) }})
		time.Sleep(time.Minute)

		pauseQueue(t, newDesired(t, fleetKey), store, "jobs")
		if _, err := d.Refresh(ctx, store); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := applied.Load(); n != 1 {
			t.Errorf("the state was applied %d times, want once", n)
		}
	})
}

func TestConcurrentChangesAllTakeEffect(t *testing.T) {
	t.Parallel()
	store := newFleet().store
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { pauseQueue(t, newDesired(t, fleetKey), store, fmt.Sprint(i)) })
	}
	all.Wait()
	now, err := newDesired(t, fleetKey).Refresh(t.Context(), store)
	if err != nil || now.Revision != 20 || len(now.Pauses) != 20 {
		t.Errorf("revision %d with %d pauses, %v", now.Revision, len(now.Pauses), err)
	}
}

func TestPauseReachesAThousandInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		elections := newFleet()
		f := &fleet{store: elections.store} // counted separately
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()

		var mu sync.Mutex
		var delays []time.Duration
		var changed time.Time
		electors := make([]*leader.Elector, count)
		states := make([]*DesiredState, count)
		kills := make([]context.CancelFunc, count)
		for i := range count {
			opts, n := f.options()
			_, election := elections.options()
			states[i] = newDesired(t, fleetKey)
			var err error
			if electors[i], err = leader.New(election, leader.Options{Name: "jobs", Owner: fmt.Sprint(i), Revision: func() int64 {
				now, _ := states[i].Current()
				return now.Revision
			}}); err != nil {
				t.Fatal(err)
			}
			alive, kill := context.WithCancel(ctx)
			kills[i] = func() { n.down.Store(true); election.down.Store(true); kill() }
			running.Go(func() { _ = electors[i].Run(alive) })
			running.Go(func() {
				states[i].Follow(alive, Following{Store: opts.Store, Failed: func(err error) { t.Error(err) },
					Leads:    func() bool { _, leads := electors[i].Term(); return leads },
					Revision: func() int64 { return electors[i].Status().LeaderRevision },
					Apply: func() {
						mu.Lock()
						defer mu.Unlock()
						delays = append(delays, time.Since(changed))
					}})
			})
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)

		for _, round := range []string{"quiet", "the leader is killed right after the change"} {
			delays, changed = nil, time.Now()
			pauseQueue(t, states[500], f.store, round)
			if round != "quiet" {
				for i, e := range electors {
					if _, leads := e.Term(); leads {
						kills[i]()
					}
				}
			}
			time.Sleep(time.Minute)
			mu.Lock()
			slices.Sort(delays)
			if len(delays) < count-2 {
				t.Fatalf("%s: applied by %d others", round, len(delays))
			}
			p99 := delays[len(delays)*99/100]
			t.Logf("%s: p50 %s, p99 %s, last %s", round, delays[len(delays)/2], p99, delays[len(delays)-1])
			if p99 > 30*time.Second {
				t.Errorf("%s: the 99th percentile is %s", round, p99)
			}
			mu.Unlock()
		}

		reads := f.reads.Load()
		time.Sleep(2 * time.Minute)
		idle := float64(f.reads.Load()-reads) / 120
		t.Logf("without a change: %.1f reads a second", idle)
		if idle > 4.5 {
			t.Errorf("%.1f reads a second without a change", idle)
		}
	})
}

func TestNextStepWithSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		progress SettingsProgress
		settings Settings
		want     SettingsStep
	}{
		{"nothing was ever set", SettingsProgress{}, Settings{}, NoStep},
		{"new", SettingsProgress{Applied: 3}, Settings{Revision: 5}, ApplySettings},
		{"applied", SettingsProgress{Applied: 5}, Settings{Revision: 5}, NoStep},
		{"rejected", SettingsProgress{Applied: 3, Rejected: 5}, Settings{Revision: 5}, RollBackSettings},
		{"rolled back by another instance", SettingsProgress{Applied: 5}, Settings{Revision: 6, RolledBack: "no"}, ApplySettings},
		{"rolled back after a rejection", SettingsProgress{Applied: 3, Rejected: 5}, Settings{Revision: 6, RolledBack: "no"}, ApplySettings},
		{"the rollback is rejected as well", SettingsProgress{Applied: 3, Rejected: 6}, Settings{Revision: 6, RolledBack: "no"}, NoStep},
		{"changed after that", SettingsProgress{Applied: 3, Rejected: 6}, Settings{Revision: 7}, ApplySettings},
	} {
		if got := c.progress.Next(&c.settings); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestRolledBackSettings(t *testing.T) {
	t.Parallel()
	d := Desired{Revision: 4}
	d.SetSettings("rate: 1/s\n", "owner", true)
	d.Revision = 5
	d.SetSettings("rate: 2/s\n", "owner", true)
	d.Revision = 6
	d.RollBackSettings("too fast", "host (7)")
	if s := d.Settings; s.Revision != 6 || s.Text != "rate: 1/s\n" || s.Previous != "rate: 1/s\n" || s.RolledBack != "too fast" || s.By != "host (7)" {
		t.Errorf("rolled back to %+v", s)
	}
}

func TestRollbackRestoresSettingsThatAllHaveApplied(t *testing.T) {
	t.Parallel()
	applies := func(revision int64, rejected string) Instance {
		return Instance{Record: Record{Applies: []string{PartSettings}, SettingsRevision: revision, Rejected: rejected}}
	}
	for _, c := range []struct {
		name string
		all  []Instance
		want string
	}{
		{"applied by all", []Instance{applies(2, ""), applies(2, "")}, "second"},
		{"not applied yet", []Instance{applies(2, ""), applies(1, "")}, "first"},
		{"rejected", []Instance{applies(2, ""), applies(2, "too fast")}, "first"},
		{"not applied by an unreachable one", []Instance{applies(2, ""), {Record: applies(1, "").Record, Age: FreshFor}}, "second"},
		{"not applied by one with another key", []Instance{applies(2, ""), {Record: applies(1, "").Record, Refused: ErrForged}},
			"second"},
		{"not applied by one that ignores settings", []Instance{applies(2, ""), {}}, "second"},
	} {
		d := Desired{Revision: 1}
		d.SetSettings("first", "owner", true)
		d.Revision = 2
		d.SetSettings("second", "owner", d.Settings.AppliedBy([]Instance{applies(1, "")}))
		d.Revision = 3
		d.SetSettings("third", "owner", d.Settings.AppliedBy(c.all))
		d.Revision = 4
		if d.RollBackSettings("", "host"); d.Settings.Text != c.want {
			t.Errorf("%s: rolled back to %q, want %q", c.name, d.Settings.Text, c.want)
		}
	}
}

func TestSettingsAreRolledOutInBatches(t *testing.T) {
	t.Parallel()
	healthy := func(r *Record) bool { return r.Health == "Ok" }
	for name, c := range map[string]struct {
		apply func(one *Record, s Settings)
		want  []string
		fails string
	}{
		"all apply them": {nil, []string{"a", "b", "c"}, ""},
		"the second rejects them": {func(one *Record, s Settings) {
			if one.SettingsRevision = s.Revision; one.ID == "b" && s.Revision == 7 {
				one.Rejected = "web exited"
			}
		}, []string{"a", "b"}, "host b: web exited"},
		"the first becomes unhealthy": {func(one *Record, s Settings) {
			if one.SettingsRevision = s.Revision; s.Revision == 7 {
				one.Health = "Severe"
			}
		}, []string{"a"}, "not complete after 1m0s: host a is Severe:"},
		"the first never applies them": {func(*Record, Settings) {}, []string{"a"}, "not complete after 1m0s: host a has not applied it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Desired{Revision: 4}
			d.SetSettings("app-grace: 1s\n", "owner", true)
			d.Revision = 7
			d.RollOutSettings("app-grace: 2s\n", "owner", true, Rollout{BatchSize: 1, Timeout: time.Minute})
			s := d.Settings
			var all []Instance
			for _, id := range []string{"c", "a", "b"} {
				all = append(all, Instance{Record: Record{ID: id, Name: "host " + id, State: "running", Health: "Ok", Applies: []string{PartSettings},
					SettingsRevision: 4}})
			}
			all = append(all, Instance{Record: Record{ID: "aa", State: "draining", Applies: []string{PartSettings}, SettingsRevision: 4}})

			var conductor Conductor
			var until []string
			failed := ""
			for at := time.Unix(1000, 0); at.Before(time.Unix(2000, 0)) && failed == "" && s.Rollout != nil; at = at.Add(5 * time.Second) {
				next, why, changed := conductor.NextSettings(s, all, at, healthy)
				if s, failed = next, why; changed && failed == "" && s.Rollout != nil {
					until = append(until, s.Rollout.Until)
				}
				for i := range all {
					one := &all[i].Record
					wanted := s.For(one.ID)
					switch {
					case one.State == "draining":
					case c.apply != nil:
						c.apply(one, wanted)
					default:
						one.SettingsRevision = wanted.Revision
					}
				}
			}
			if !slices.Equal(until, c.want) || !strings.HasPrefix(failed, c.fails) || (failed == "") != (c.fails == "") {
				t.Errorf("the batches reached %q and failed with %q", until, failed)
			}
			if starting := s.For(""); s.Rollout != nil && starting.Text != "app-grace: 1s\n" {
				t.Errorf("an instance that starts meanwhile uses %+v", starting)
			}
		})
	}
}

func TestSettingsAreChangedDuringTheirRollout(t *testing.T) {
	t.Parallel()
	all := []Instance{{Record: Record{Applies: []string{PartSettings}, SettingsRevision: 2}}}
	d := Desired{Revision: 1}
	d.SetSettings("first", "owner", true)
	d.Revision = 2
	d.RollOutSettings("second", "owner", true, Rollout{BatchSize: 1})
	if d.Settings.AppliedBy(all) {
		t.Error("settings that are still being rolled out are a state to return to")
	}
	d.Settings.Rollout.Until = "b"
	d.Revision = 3
	d.RollOutSettings("third", "owner", d.Settings.AppliedBy(all), Rollout{BatchSize: 1})
	d.Settings.Rollout.Until = "a"
	for id, want := range map[string]string{"": "first 1", "a": "third 3", "b": "first 1"} {
		if s := d.Settings.For(id); fmt.Sprint(s.Text, " ", s.Revision) != want {
			t.Errorf("the instance %q uses %q of revision %d, want %s", id, s.Text, s.Revision, want)
		}
	}
	d.Revision = 4
	d.RollBackSettings("no", "host")
	for _, id := range []string{"", "a", "b"} {
		if s := d.Settings.For(id); s.Text != "first" || s.Revision != 4 {
			t.Errorf("after the rollback, the instance %q uses %q of revision %d", id, s.Text, s.Revision)
		}
	}
}
