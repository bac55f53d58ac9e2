package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/observe/health"
)

type followers struct {
	app       App
	all       []Instance
	conductor Conductor
	now       time.Time
	breaks    int
}

func newFollowers(ids ...string) *followers {
	f := &followers{app: App{}.begin(AppVersion{Name: "one"}, Rollout{}), now: time.Unix(1000, 0)}
	for _, id := range ids {
		f.add(id)
	}
	return f
}

func (f *followers) add(id string) {
	f.all = append(f.all, Instance{Record: Record{ID: id, Name: "host " + id, Health: "Ok",
		App: AppReport{Takes: true, Number: f.app.Wanted("").Number}}})
}

func (f *followers) deploy(of int, how Rollout) {
	how.Timeout = time.Minute
	f.app = f.app.begin(AppVersion{Of: of}, how)
}

func (f *followers) step(after time.Duration) string {
	f.now = f.now.Add(after)
	f.app, _ = f.conductor.Next(f.app, f.all, f.now, func(r *Record) bool { return r.Health == "Ok" })
	running := map[int][]string{}
	for i := range f.all {
		one := &f.all[i]
		if want := f.app.Wanted(one.ID).Number; !one.Counts() {
			continue
		} else if want == f.breaks {
			one.App.Failed, one.App.Error = want, "web exited"
		} else {
			one.App.Number = want
		}
		running[one.App.Number] = append(running[one.App.Number], one.ID)
	}
	var texts []string
	for number := 1; number <= 5; number++ {
		if running[number] != nil {
			texts = append(texts, fmt.Sprintf("%d: %s", number, strings.Join(running[number], "")))
		}
	}
	return strings.Join(texts, ", ")
}

func TestRolloutSwitchesOneBatchAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		how  Rollout
		want []string
	}{
		{"all at once", Rollout{}, []string{"2: abcd", "2: abcd", "2: abcd"}},
		{"one by one", Rollout{BatchSize: 1}, []string{"1: bcd, 2: a", "1: bcd, 2: a", "1: cd, 2: ab", "1: cd, 2: ab",
			"1: d, 2: abc", "1: d, 2: abc", "2: abcd"}},
		{"half", Rollout{BatchPercent: 50}, []string{"1: cd, 2: ab", "1: cd, 2: ab", "2: abcd", "2: abcd"}},
		{"less than one", Rollout{BatchPercent: 1}, []string{"1: bcd, 2: a"}},
		{"three", Rollout{BatchSize: 3}, []string{"1: d, 2: abc", "1: d, 2: abc", "2: abcd"}},
		{"without health", Rollout{BatchSize: 2, IgnoreHealth: true}, []string{"1: cd, 2: ab", "2: abcd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFollowers("a", "b", "c", "d")
			f.deploy(0, c.how)
			for i, want := range c.want {
				if got := f.step(settleTime); got != want {
					t.Errorf("after step %d they run %s, want %s", i+1, got, want)
				}
			}
			for range 8 {
				f.step(settleTime)
			}
			if f.app.Next != nil && len(c.want) > 1 || f.app.Current.Number != 2 && len(c.want) > 1 {
				t.Errorf("the rollout has not ended: %+v", f.app)
			}
		})
	}
}

func TestFailedBatchIsRolledBackEverywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(f *followers)
		want  string
	}{
		{"does not start", func(f *followers) { f.breaks = 2 }, ": web exited"},
		{"unhealthy", func(f *followers) {
			f.all[2].Health, f.all[2].Causes = "Severe", []health.Cause{{Text: "All deliveries fail."}}
		},
			"host c is Severe: All deliveries fail."},
		{"aborted", func(f *followers) {
			d := Desired{App: &f.app}
			if err := d.AbortRollout("aborted by owner"); err != nil {
				t.Error(err)
			}
			f.app = *d.App
		}, "aborted by owner"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFollowers("a", "b", "c")
			f.deploy(0, Rollout{BatchSize: 2})
			f.step(0)
			f.step(settleTime)
			c.spoil(f)
			for range 8 {
				f.step(settleTime)
			}
			if got := f.step(settleTime); got != "1: abc" {
				t.Errorf("they run %s", got)
			}
			if f.app.Next != nil || !f.app.Withdrawn(2) || f.app.Withdrawn(1) || !strings.Contains(f.app.Earlier[0].Error, c.want) {
				t.Errorf("the state is %+v", f.app)
			}
			if f.deploy(0, Rollout{}); f.app.Next.Number != 3 {
				t.Errorf("the next version has number %d", f.app.Next.Number)
			}
		})
	}
}

func TestUnhealthyBatchHoldsTheNext(t *testing.T) {
	t.Parallel()
	f := newFollowers("a", "b")
	f.deploy(0, Rollout{BatchSize: 1})
	f.step(0)
	f.all[0].Health = "Degraded"
	f.step(settleTime)
	f.all[0].Health = "Ok"
	if got := f.step(settleTime); got != "1: b, 2: a" {
		t.Errorf("right after the batch became healthy: %s", got)
	}
	if got := f.step(settleTime); got != "2: ab" {
		t.Errorf("once it stayed healthy: %s", got)
	}
}

func TestRollbackWithdrawsTheCurrentVersionAtOnce(t *testing.T) {
	t.Parallel()
	f := newFollowers("a", "b")
	f.deploy(0, Rollout{})
	for range 4 {
		f.step(settleTime)
	}
	f.deploy(1, Rollout{})
	if !f.app.Withdrawn(2) || f.app.Wanted("a").Number != 3 || f.app.Wanted("").Number != 3 {
		t.Fatalf("before the leader has decided, the state is %+v", f.app)
	}
	f.breaks = 3
	if got := f.step(0); got != "2: ab" {
		t.Errorf("they run %s", got)
	}
	if f.step(0); f.app.Next != nil || f.app.Withdrawn(2) || !f.app.Withdrawn(3) {
		t.Errorf("after the rollback failed, the state is %+v", f.app)
	}
}

func TestRolloutSkipsInstancesThatCannotBeReached(t *testing.T) {
	t.Parallel()
	f := newFollowers("a", "b", "c")
	f.all[0].Age = FreshFor
	f.all = append(f.all, Instance{Record: Record{ID: "0", Name: "without an app"}})
	f.all = append(f.all, Instance{Refused: ErrForged, Record: Record{ID: "1", Name: "forged", Health: "Severe",
		App: AppReport{Takes: true, Failed: 2}}})
	f.deploy(0, Rollout{BatchSize: 1})
	if got := f.step(0); !strings.Contains(got, "2: b") {
		t.Errorf("the first batch: %s", got)
	}
	f.all[1].Age = FreshFor
	f.add("aa")
	f.add("d")
	for range 8 {
		f.step(settleTime)
	}
	if f.app.Next != nil || f.all[5].App.Number != 2 || f.all[6].App.Number != 2 {
		t.Errorf("the state is %+v of %+v", f.app, f.all)
	}
	for i := range f.all {
		f.all[i].Age = 0
	}
	if got := f.step(0); !strings.HasPrefix(got, "2: ") || strings.Contains(got, ",") {
		t.Errorf("after all can be reached again: %s", got)
	}
}

func TestSuccessorContinuesTheRollout(t *testing.T) {
	t.Parallel()
	f := newFollowers("a", "b", "c")
	f.deploy(0, Rollout{BatchSize: 1})
	f.step(0)
	f.conductor = Conductor{}
	f.step(settleTime)
	f.conductor = Conductor{}
	f.step(settleTime) // a new leader waits for the whole settle time
	if got := f.step(settleTime); got != "1: c, 2: ab" {
		t.Errorf("they run %s", got)
	}
}

type lateApp struct {
	running atomic.Int64
	held    atomic.Bool
}

func (a *lateApp) Running() int          { return int(a.running.Load()) }
func (a *lateApp) Hold(reason string)    { a.held.Store(reason != "") }
func (a *lateApp) Abort(context.Context) {}
func (a *lateApp) Deploy(_ context.Context, v *AppVersion) error {
	time.Sleep(5 * time.Second)
	a.running.Store(int64(v.Number))
	time.Sleep(5 * time.Second)
	return nil
}

func TestNoDeliveryStartsAfterALateAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts, n := f.options()
		state, app := newDesired(t, fleetKey), &lateApp{}
		var begun []int
		change := func(alter func(*Desired) error) {
			if _, err := state.Change(t.Context(), n, alter); err != nil {
				t.Fatal(err)
			}
		}
		begin := func(d *Desired) error {
			_, err := d.BeginRollout(AppVersion{}, Rollout{Timeout: time.Hour})
			return err
		}
		change(begin)
		app.running.Store(1)
		rollouts := NewRollouts(state, app)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			rollouts.Run(ctx, &RolloutOptions{Fleet: &Fleet{Store: n, ID: "a", Others: NewWatcher(opts),
				Self:  func() Record { return Record{App: rollouts.Report()} },
				Leads: func() bool { return true }, Healthy: func(*Record) bool { return true }},
				Log: opts.Log, Active: func() bool { return true }, Changed: rollouts.Apply,
				Begun: func(_ context.Context, now *App) {
					begun = append(begun, now.Next.Number)
					if now.Until != "" {
						t.Error("the rollout began with a batch")
					}
				},
				Finished: func(*App, *App) {}, Tried: func() {}})
		})
		change(begin)
		time.Sleep(4 * time.Second)
		change(func(d *Desired) error { return d.AbortRollout("aborted") })
		rollouts.Apply()
		for range 300 {
			if app.running.Load() == 2 && !app.held.Load() {
				t.Fatal("deliveries start on the withdrawn version")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if app.Running() != 1 || app.held.Load() {
			t.Errorf("at the end it runs version %d, deliveries held: %t", app.Running(), app.held.Load())
		}
		stop()
		running.Wait()
		if !slices.Equal(begun, []int{2}) {
			t.Errorf("the rollouts %v began", begun)
		}
	})
}

func TestOneRolloutAtATime(t *testing.T) {
	t.Parallel()
	var d Desired
	first, err := d.BeginRollout(AppVersion{Name: "seed"}, Rollout{})
	if err != nil || first.Number != 1 || d.App.Next != nil || !errors.Is(d.AbortRollout(""), ErrNoRollout) {
		t.Fatalf("the first version: %+v, %v", d.App, err)
	}
	if second, err := d.BeginRollout(AppVersion{}, Rollout{}); err != nil || second.Number != 2 || d.App.Current.Number != 1 {
		t.Errorf("the second version: %+v, %v", d.App, err)
	}
	if busy, err := d.BeginRollout(AppVersion{}, Rollout{}); !errors.Is(err, ErrRolloutInProgress) || busy.Number != 2 {
		t.Errorf("during a rollout: %+v, %v", busy, err)
	}
}

func TestArchivesAreUnneededHoweverTheRolloutEnds(t *testing.T) {
	t.Parallel()
	version := func(digest string) AppVersion { return AppVersion{Digest: digest} }
	failed := func(digest string) AppVersion { return AppVersion{Digest: digest, Error: "not ready"} }
	restorable := []AppVersion{version("5"), version("4"), version("3"), version("2"), version("1")}
	many := slices.Repeat([]AppVersion{failed("failed")}, listedVersions-1)
	for name, c := range map[string]struct {
		earlier []AppVersion
		want    []string
	}{
		"a failed version":                    {append([]AppVersion{failed("failed")}, restorable...), []string{"failed"}},
		"a failed version is deployed again":  {[]AppVersion{failed("next")}, nil},
		"a failed version that served before": {[]AppVersion{failed("3"), version("3")}, nil},
		"too old to be restored":              {append(restorable, version("0")), []string{"0"}},
		"restorable if the rollout fails":     {restorable, nil},
		"the last one that is listed":         {append(many, version("1")), []string{"failed", "1"}},
		"the current one too":                 {append(many, version("current")), []string{"failed"}},
	} {
		next := version("next")
		app := App{Current: version("current"), Next: &next, Earlier: c.earlier}
		if got := app.Unneeded(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestListOfVersionsIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	app := App{}.begin(AppVersion{Name: "good"}, Rollout{})
	for range 40 {
		app = app.begin(AppVersion{Name: long, By: long, Digest: long[:64], At: time.Unix(0, 0)}, Rollout{}).fail(long)
		app = app.begin(AppVersion{Name: long, By: long, Digest: long[:64], At: time.Unix(0, 0)}, Rollout{}).finish()
	}
	d := Desired{Environment: "jobs", App: &app}
	if text := FleetKey(fleetKey).seal(d); len(text) > 12<<10 {
		t.Errorf("the state has %d bytes", len(text))
	}
	if app.Withdrawn(app.Current.Number) || !app.Withdrawn(1) {
		t.Error("a version that is no longer listed may be used")
	}
	if kept := app.Restorable(); len(kept) != KeptVersions || slices.ContainsFunc(kept, func(v AppVersion) bool { return v.Error != "" }) {
		t.Errorf("%d versions can be restored", len(kept))
	}
}

type deployee struct {
	*process
	state    *DesiredState
	rollouts *Rollouts
	fleet    *deployFleet
	running  atomic.Int64
}

type deployFleet struct {
	*fleet
	leader  atomic.Pointer[deployee]
	breaks  atomic.Int64
	mu      sync.Mutex
	busiest int
	busy    int
}

func (f *deployFleet) start(t *testing.T, name string) *deployee {
	opts, n := f.options()
	ctx, kill := context.WithCancel(t.Context())
	d := &deployee{process: &process{network: n, kill: kill}, state: newDesired(t, fleetKey), fleet: f}
	d.rollouts = NewRollouts(d.state, d)
	if first, err := d.state.Refresh(t.Context(), n); err == nil && first.App != nil {
		d.running.Store(int64(first.App.Wanted("").Number))
	}
	record := func() Record { return Record{Name: name, State: "running", Health: "Ok", App: d.rollouts.Report()} }
	d.Member = NewMember(opts, record, func() Load { return Load{} })
	leads := func() bool { return f.leader.Load() == d }
	d.ended.Go(func() { d.Run(ctx) })
	d.ended.Go(func() {
		d.state.Follow(ctx, Following{Store: n, Leads: leads, Apply: d.rollouts.Apply, Failed: func(error) {}, Revision: func() int64 {
			if leader := f.leader.Load(); leader != nil {
				now, _ := leader.state.Current()
				return now.Revision
			}
			return 0
		}})
	})
	d.ended.Go(func() {
		d.rollouts.Run(ctx, &RolloutOptions{Fleet: &Fleet{Store: n, ID: d.ID(), Self: record, Others: NewWatcher(opts),
			Leads: leads, Healthy: func(r *Record) bool { return r.Health == "Ok" }},
			Log: opts.Log, Active: func() bool { return ctx.Err() == nil },
			Changed: d.rollouts.Apply, Begun: func(context.Context, *App) {}, Finished: func(*App, *App) {}, Tried: func() {}})
	})
	return d
}

func (d *deployee) Running() int { return int(d.running.Load()) }

func (d *deployee) Hold(string) {}

func (d *deployee) Abort(context.Context) {}

func (d *deployee) Deploy(_ context.Context, v *AppVersion) error {
	d.fleet.count(1)
	time.Sleep(5 * time.Second)
	d.fleet.count(-1)
	if int64(v.Number) == d.fleet.breaks.Load() {
		return errors.New("web exited")
	}
	d.running.Store(int64(v.Number))
	return nil
}

func (f *deployFleet) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy += n
	f.busiest = max(f.busiest, f.busy)
}

func TestRolloutSurvivesItsLeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &deployFleet{fleet: newFleet()}
		seed := newDesired(t, fleetKey)
		begin := func() AppVersion {
			var v AppVersion
			if _, err := seed.Change(t.Context(), f.store, func(d *Desired) (err error) {
				v, err = d.BeginRollout(AppVersion{}, Rollout{BatchSize: 2, Timeout: 5 * time.Minute})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return v
		}
		begin()
		var all []*deployee
		for i := range 10 {
			all = append(all, f.start(t, fmt.Sprint("host ", i)))
		}
		runAll := func(number int64) bool {
			return !slices.ContainsFunc(all, func(d *deployee) bool { return d.running.Load() != number })
		}
		die := func() {
			if leader := f.leader.Swap(nil); leader != nil {
				leader.kill()
				leader.ended.Wait()
				all = slices.DeleteFunc(all, func(d *deployee) bool { return d == leader })
			}
			time.Sleep(15 * time.Second)
			f.leader.Store(all[0])
		}
		time.Sleep(time.Minute)

		begin()
		for range 3 {
			die()
			time.Sleep(time.Minute)
		}
		all = append(all, f.start(t, "midway"))
		for began := time.Now(); !runAll(2) && time.Since(began) < 30*time.Minute; time.Sleep(time.Second) {
		}
		if !runAll(2) || f.busiest > 3 {
			t.Errorf("all run version 2: %t; at most %d switched at the same time", runAll(2), f.busiest)
		}
		time.Sleep(time.Minute)
		if now, _ := seed.Refresh(t.Context(), f.store); now.App.Current.Number != 2 {
			t.Fatalf("the state is %+v", now.App)
		}

		f.breaks.Store(3)
		begin()
		time.Sleep(10 * time.Second)
		die()
		time.Sleep(2 * time.Minute)
		if now, _ := seed.Refresh(t.Context(), f.store); !runAll(2) || now.App.Next != nil || !now.App.Withdrawn(3) {
			t.Errorf("all returned to version 2: %t, the state is %+v", runAll(2), now.App)
		}
		f.leader.Store(nil)
		for _, d := range all {
			d.kill()
			d.ended.Wait()
		}
	})
}
