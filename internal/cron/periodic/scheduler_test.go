package periodic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/registry"
	"tendril/queue"
)

type transcript struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (tr *transcript) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at := time.Since(tr.start).Truncate(time.Second)
	tr.lines = append(tr.lines, fmt.Sprintf("%v ", at)+fmt.Sprintf(format, args...))
}

func (tr *transcript) take() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	text := strings.Join(tr.lines, "\n")
	tr.lines = nil
	return text
}

func (tr *transcript) events() Events {
	since := func(at time.Time) time.Duration { return at.Sub(tr.start.Truncate(time.Second)) }
	return Events{
		Led: func(e Led) { tr.add("led %d", e.Term) },
		Enqueued: func(e Enqueued) {
			manual := ""
			if e.Manual {
				manual = " by hand"
			}
			tr.add("enqueued %s %v late %v%s", e.Task, since(e.ScheduledAt), e.Lateness, manual)
		},
		Skipped: func(e Skipped) {
			tr.add("skipped %s %v to %v: %d %s", e.Task, since(e.From), since(e.To), e.Count, e.Reason)
		},
		Failed:       func(e Failed) { tr.add("failed %s, again in %v", e.Task, e.Retry) },
		Reloaded:     func(e Reloaded) { tr.add("reloaded %+v", e) },
		ClockStepped: func(e ClockStepped) { tr.add("clock %v", e.By.Round(time.Second)) },
		PauseChanged: func(e PauseChanged) { tr.add("held %+v", e) },
	}
}

type stage struct {
	*fleet
	*Scheduler
	node *node
	tr   *transcript
}

func play(t *testing.T, tasks []Task, opts Options, f func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFleet()
		n, tr := &node{fleet: w}, &transcript{start: time.Now()}
		opts.Events, opts.Wall = tr.events(), w.wall
		if opts.Queue == "" {
			opts.Queue = "jobs"
		}
		w.elect(n)
		s := New(&File{Tasks: tasks}, n, runsOf(n), opts)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		f(&stage{fleet: w, Scheduler: s, node: n, tr: tr})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *stage) until(t *testing.T, at time.Duration, want string) {
	t.Helper()
	time.Sleep(time.Until(s.tr.start.Add(at)))
	synctest.Wait()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if diff := cmp.Diff(want, s.tr.take()); diff != "" {
		t.Errorf("until %v: %s", at, diff)
	}
}

func every(name string, seconds int) Task {
	return Task{Name: name, URL: "/" + name, Schedule: Every(time.Duration(seconds) * time.Second)}
}

func TestRunsAreEnqueuedOnTime(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60), every("b", 90)}, Options{}, func(s *stage) {
		s.until(t, 2*time.Minute, `0s led 1
			1m0s enqueued a 1m0s late 0s
			1m30s enqueued b 1m30s late 0s
			2m0s enqueued a 2m0s late 0s`)
		tasks := s.Status()
		if len(tasks) != 2 || tasks[1].Next.Sub(s.tr.start) != 3*time.Minute {
			t.Errorf("status %+v", tasks)
		}
	})
}

func TestNextLeaderCatchesUp(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, time.Minute, "0s led 1\n1m0s enqueued a 1m0s late 0s")
		s.elect(nil)
		s.until(t, 139*time.Second, "")
		s.elect(s.node)
		s.until(t, 140*time.Second, "2m19s led 2\n2m19s enqueued a 2m0s late 19s")
		s.elect(&node{fleet: s.fleet})
		s.until(t, 460*time.Second, "")
		s.elect(s.node)
		s.until(t, 461*time.Second, `7m40s led 4
			7m40s skipped a 3m0s to 6m0s: 4 missed
			7m40s enqueued a 7m0s late 40s`)
	})
}

// The first leader dies before its first call.
func TestAStandbyKnowsWhenItBegan(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.elect(nil)
		s.fleet.mu.Lock()
		s.store = registry.NewMemory()
		s.fleet.mu.Unlock()
		s.until(t, 75*time.Second, "0s led 1")
		s.elect(s.node)
		s.until(t, 76*time.Second, "1m15s led 2\n1m15s enqueued a 1m0s late 15s")
	})
}

func TestFailuresAreRepeated(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, 59*time.Second, "0s led 1")
		s.faults(1)
		s.until(t, 68*time.Second,
			"1m0s failed a, again in 1s\n1m1s failed a, again in 2s\n1m3s failed a, again in 4s\n1m7s failed a, again in 8s")
		if tasks := s.Status(); tasks[0].Failing != 4 {
			t.Errorf("failing %d times", tasks[0].Failing)
		}
		s.faults(0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// The earlier try may have been applied.
		got := s.tr.take()
		if got != "1m15s enqueued a 1m0s late 15s" && got != "1m15s skipped a 1m0s to 1m0s: 1 enqueued before" ||
			len(s.queues["jobs"]) != 1 {
			t.Errorf("%s; %d messages", got, len(s.queues["jobs"]))
		}
	})
}

func (w *fleet) faults(chance float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chance = chance
}

func (w *fleet) setClock(step time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step = step
}

func TestRegistryIsAskedAgain(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.elect(nil)
		s.faults(1)
		s.elect(s.node)
		s.until(t, 50*time.Second, `0s led 1
			0s led 2
			0s failed , again in 1s
			1s failed , again in 2s
			3s failed , again in 4s
			7s failed , again in 8s
			15s failed , again in 16s
			31s failed , again in 30s`)
		s.faults(0)
		s.until(t, 62*time.Second, "1m1s enqueued a 1m0s late 1s")
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{Paused: []string{"a"}}, func(s *stage) {
		s.until(t, 65*time.Second, "0s led 1\n1m0s skipped a 1m0s to 1m0s: 1 paused")
		if err := s.SetPaused("a", false); err != nil {
			t.Error(err)
		}
		s.until(t, 2*time.Minute, "1m5s held {Task:a Paused:false}\n2m0s enqueued a 2m0s late 0s")
		if err := s.SetPaused("a", true); err != nil {
			t.Error(err)
		}
		if _, _, err := s.RunNow(context.Background(), "a"); err != nil {
			t.Error(err)
		}
		s.until(t, 3*time.Minute,
			"2m0s held {Task:a Paused:true}\n2m0s enqueued a 2m0s late 0s by hand\n3m0s skipped a 3m0s to 3m0s: 1 paused")
		s.elect(s.node)
		_ = s.SetPaused("a", false)
		s.until(t, 185*time.Second, "3m0s held {Task:a Paused:false}\n3m0s led 2")
		for _, err := range []error{s.SetPaused("b", true), s.SetPaused("b", false)} {
			if err == nil || !strings.Contains(err.Error(), "use a") {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	running := make(map[string]bool)
	var mu sync.Mutex
	a, b := every("a", 60), every("b", 60)
	a.Overlap = SkipOverlap
	opts := Options{Running: func(task Task) bool { mu.Lock(); defer mu.Unlock(); return running[task.Name] }}
	set := func(is bool) { mu.Lock(); defer mu.Unlock(); running["a"], running["b"] = is, is }
	play(t, []Task{a, b}, opts, func(s *stage) {
		set(true)
		time.Sleep(61 * time.Second)
		got := s.tr.take()
		if !strings.Contains(got, "skipped a 1m0s to 1m0s: 1 previous run unfinished") ||
			!strings.Contains(got, "enqueued b 1m0s") {
			t.Error(got)
		}
		set(false)
		time.Sleep(60 * time.Second)
		if got := s.tr.take(); !strings.Contains(got, "enqueued a 2m0s") {
			t.Error(got)
		}
	})
}

func TestOverlapWithOtherInstances(t *testing.T) {
	t.Parallel()
	running, failed := map[string]bool{"a": true, "b": true}, errors.New("no answer")
	var mu sync.Mutex
	a, b := every("a", 60), every("b", 60)
	a.Overlap = SkipOverlap
	var answer error
	set := func(is bool, err error) { mu.Lock(); defer mu.Unlock(); running["a"], answer = is, err }
	opts := Options{RunningElsewhere: func(_ context.Context, task string) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return running[task], answer
	}}
	play(t, []Task{a, b}, opts, func(s *stage) {
		time.Sleep(61 * time.Second)
		got := s.tr.take()
		if !strings.Contains(got, "skipped a 1m0s to 1m0s: 1 previous run unfinished") ||
			!strings.Contains(got, "enqueued b 1m0s") {
			t.Error(got)
		}
		set(false, failed)
		time.Sleep(60 * time.Second)
		if got := s.tr.take(); strings.Contains(got, "enqueued a") || !strings.Contains(got, "failed a") {
			t.Error(got)
		}
		for _, st := range s.Status() {
			if problem := st.Problem; strings.Contains(problem, "no answer") != (st.Task.Name == "a") {
				t.Errorf("the problem of %s is %q", st.Task.Name, problem)
			}
		}
		set(false, nil)
		time.Sleep(30 * time.Second)
		if got := s.tr.take(); !strings.Contains(got, "enqueued a 2m0s") || s.Status()[0].Problem != "" {
			t.Error(got)
		}
	})
}

func TestReload(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60), every("b", 60)}, Options{}, func(s *stage) {
		s.until(t, 30*time.Second, "0s led 1")
		changed, url := every("a", 20), every("c", 45)
		s.Reload(&File{Tasks: []Task{changed, url}})
		s.until(t, 45*time.Second,
			"30s reloaded {Tasks:2 Added:1 Removed:1 Changed:1}\n40s enqueued a 40s late 0s\n45s enqueued c 45s late 0s")
		url.URL = "/elsewhere"
		s.Reload(&File{Tasks: []Task{changed, url}})
		s.elect(s.node) // the registry does not override the change
		s.until(t, 50*time.Second, "45s reloaded {Tasks:2 Added:0 Removed:0 Changed:1}\n45s led 2")
		s.Reload(nil)
		s.until(t, 5*time.Minute, "50s reloaded {Tasks:0 Added:0 Removed:2 Changed:0}")
		if err := s.SetPaused("a", true); err == nil || !strings.Contains(err.Error(), "has no tasks") {
			t.Errorf("error %v", err)
		}
	})
}

func TestTheRegistryLearnsOfSchedules(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60), every("b", 60)}, Options{}, func(s *stage) {
		s.until(t, 30*time.Second, "0s led 1")
		want := func(a, b time.Duration) {
			t.Helper()
			for task, every := range map[string]time.Duration{"a": a, "b": b} {
				got := s.stored(registry.KindTask, task).Fields["schedule"]
				if want := fmt.Sprintf("every %v UTC", every); got != want {
					t.Errorf("the registry knows the schedule %v of %s, want %s", got, task, want)
				}
			}
		}
		want(time.Minute, time.Minute)
		s.Reload(&File{Tasks: []Task{every("a", 20), every("b", 60)}})
		s.until(t, 31*time.Second, "30s reloaded {Tasks:2 Added:0 Removed:0 Changed:1}")
		want(20*time.Second, time.Minute)
	})
}

func TestARefusedTermIsReportedOnce(t *testing.T) {
	t.Parallel()
	var refused []int64
	lead := &fixedTerm{term: 4}
	s := New(nil, lead, nil, Options{Events: Events{Refused: func(r Refused) { refused = append(refused, r.Term) }}})
	for _, step := range []struct {
		term, leads int64
		want        string
	}{{4, 4, "[4]"}, {4, 4, "[4]"}, {4, 0, "[4]"}, {4, 5, "[4]"}, {5, 5, "[4 5]"}} {
		lead.term = step.leads
		s.report(&attempt{runs: make([]registry.Run, 1), term: step.term, err: queue.ErrStaleTerm}, 0)
		if got := fmt.Sprint(refused); got != step.want {
			t.Errorf("after %+v the refused terms are %s", step, got)
		}
	}
}

type fixedTerm struct{ term int64 }

func (l *fixedTerm) Term() (int64, bool) { return l.term, l.term != 0 }

func (l *fixedTerm) Changed() <-chan struct{} { return nil }

type countingRegistry struct{ asked int }

func (r *countingRegistry) Since(context.Context, int64, map[string]registry.Start) (map[string]queue.TaskTimes, error) {
	r.asked++
	return nil, nil
}

func (r *countingRegistry) Enqueue(context.Context, int64, registry.Run) (registry.EnqueueResult, error) {
	r.asked++
	return registry.EnqueueResult{}, nil
}

func (r *countingRegistry) Skip(context.Context, int64, []registry.Run) (map[string]registry.RunRecord, error) {
	r.asked++
	return nil, nil
}

func TestStandbyDoesNotReadTheRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := &countingRegistry{}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s := New(&File{Tasks: []Task{every("a", 1)}}, &fixedTerm{}, registry, Options{Queue: "jobs"})
		if err := s.Run(ctx); err != nil || registry.asked > 0 {
			t.Errorf("it was asked %d times, %v", registry.asked, err)
		}
	})
}

func TestHistoryCountsReportedRuns(t *testing.T) {
	t.Parallel()
	h := history{maxRuns: 1}
	h.add(Run{Task: "a"})
	h.addEnqueuedBefore("a", noon(), "m")
	h.recordOutcome(Outcome{Task: "a", ScheduledAt: noon(), MessageID: "m"})
	if n := h.count(); n != 3 {
		t.Errorf("%d reports, want 3", n)
	}
}

func TestHistoryKeepsTheLastAttempt(t *testing.T) {
	t.Parallel()
	h := history{maxRuns: 1}
	for _, o := range []Outcome{
		{Attempt: 1, At: noon(), Result: queue.Result{Status: 500}},
		{Attempt: 2, At: noon(), Result: queue.Result{Status: 503}},
		{Attempt: 2, At: noon().Add(time.Minute), Result: queue.Result{Status: 200}},
		{Attempt: 1, At: noon().Add(time.Hour), Result: queue.Result{Status: 504}},
	} {
		h.recordOutcome(o)
	}
	if r := h.runs("")[0]; r.Attempts != 2 || r.Result.Status != 200 || !r.FinishedAt.Equal(noon().Add(time.Minute)) {
		t.Errorf("attempt %d, status %d, finished at %s", r.Attempts, r.Result.Status, r.FinishedAt)
	}
}

func TestHistoryHasOneEntryForARunReportedAsUncertain(t *testing.T) {
	t.Parallel()
	outcome := Outcome{Task: "a", ScheduledAt: noon(), MessageID: "m1", Attempt: 1, Result: queue.Result{Status: 200}}
	attempt := &attempt{runs: []registry.Run{{Task: "a", ScheduledAt: noon()}}, err: registry.ErrUncertain}
	for name, reportedFirst := range map[string]bool{"before its delivery": true, "after its delivery": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reasons []Reason
			failures := 0
			s := New(nil, &fixedTerm{}, nil, Options{Events: Events{Failed: func(Failed) { failures++ },
				Skipped: func(e Skipped) { reasons = append(reasons, e.Reason) }}})
			want, wantFailures := ReasonAlready, 0
			if reportedFirst {
				want, wantFailures = ReasonUncertain, 1
				s.report(attempt, 0)
			}
			s.Outcome(outcome)
			if !reportedFirst {
				s.report(attempt, 0)
			}
			if got := s.History("a"); len(got) != 1 || got[0].MessageID != "m1" || got[0].Skipped != "" || got[0].Result.Status != 200 {
				t.Errorf("history %+v", got)
			}
			if len(reasons) != 1 || reasons[0] != want || failures != wantFailures {
				t.Errorf("reported as %q and %d failures, want %q and %d", reasons, failures, want, wantFailures)
			}
		})
	}
}

func TestLeasesOfAQueue(t *testing.T) {
	t.Parallel()
	for lease, want := range map[string]bool{LeaseName("jobs"): true, RunningLease("jobs", "a"): true,
		VersionLease("jobs", "v1"): true, LeaseName("jobs") + "/instances/0": true, LeaseName("jobs") + "/desired": true,
		LeaseName("jobs2") + "/desired": false, LeaseName("mail"): false, RunningLease("mail", "a"): false, "jobs": false} {
		if got := OwnsLease("jobs", lease); got != want {
			t.Errorf("%s is one of the queue: %v, want %v", lease, got, want)
		}
	}
}

func TestUnknownTask(t *testing.T) {
	t.Parallel()
	var tasks []Task
	for _, name := range strings.Split("abcdefghijk", "") {
		tasks = append(tasks, every(name, 60))
	}
	for n, want := range map[int]string{0: "the environment has no tasks", 1: "use a", 10: "h, i and j",
		11: "i, j and others"} {
		s := New(&File{Tasks: tasks[:n]}, &fixedTerm{}, nil, Options{})
		_, _, err := s.RunNow(t.Context(), "none")
		if said, _, _ := strings.Cut(fmt.Sprint(err), ";"); !strings.HasSuffix(said, want) {
			t.Errorf("with %d tasks: %v, want %q", n, err, want)
		}
	}
}

func TestSmallStepsOfTheClockAreNotReported(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, 30*time.Second, "0s led 1")
		s.setClock(time.Second)
		s.until(t, 40*time.Second, "")
		s.setClock(-time.Millisecond)
		s.until(t, 50*time.Second, "41s clock -1s")
	})
}

func TestRestoredTaskDoesNotCatchUp(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60), every("b", 100)}, Options{}, func(s *stage) {
		s.until(t, 70*time.Second, "0s led 1\n1m0s enqueued a 1m0s late 0s")
		s.Reload(&File{Tasks: []Task{every("b", 100)}})
		s.until(t, 190*time.Second, "1m10s reloaded {Tasks:1 Added:0 Removed:1 Changed:0}\n1m40s enqueued b 1m40s late 0s")
		s.Reload(&File{Tasks: []Task{every("a", 60), every("b", 100)}})
		s.until(t, 195*time.Second, "3m10s reloaded {Tasks:2 Added:1 Removed:0 Changed:0}")
		s.elect(s.node)
		s.until(t, 230*time.Second, "3m15s led 2\n3m20s enqueued b 3m20s late 0s")
		s.elect(nil)
		s.until(t, 255*time.Second, "")
		s.elect(s.node)
		s.until(t, 256*time.Second, "4m15s led 3\n4m15s enqueued a 4m0s late 15s")
	})
}

func TestNextProcessCatchesUp(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, 70*time.Second, "0s led 1\n1m0s enqueued a 1m0s late 0s")
		s.elect(nil)
		s.until(t, 135*time.Second, "")
		n := &node{fleet: s.fleet}
		s.elect(n)
		next := New(&File{Tasks: []Task{every("a", 60)}}, n, runsOf(n),
			Options{Queue: "jobs", Events: s.tr.events(), Wall: s.fleet.wall})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- next.Run(ctx) }()
		s.until(t, 136*time.Second, "2m15s led 2\n2m15s enqueued a 2m0s late 15s")
		cancel()
		<-done
	})
}

func TestRunNowAndHistory(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{History: 3}, func(s *stage) {
		s.elect(nil)
		f, sent, err := s.RunNow(context.Background(), "a")
		if err != nil || sent.ID != "m1" || !f.Manual || !strings.HasPrefix(f.ID, runID("a", f.ScheduledAt)+"#") {
			t.Errorf("%+v, %+v, %v", f, sent, err)
		}
		if _, _, err := s.RunNow(context.Background(), "x"); err == nil {
			t.Error("a task that there is not was run")
		}
		s.faults(1)
		if _, _, err := s.RunNow(context.Background(), "a"); err == nil {
			t.Error("no error")
		}
		s.faults(0)
		s.Outcome(Outcome{Task: "a", ScheduledAt: f.ScheduledAt, MessageID: "m1", Attempt: 1,
			Result: queue.Result{Status: 500}})
		s.Outcome(Outcome{Task: "a", ScheduledAt: f.ScheduledAt, MessageID: "m1", Attempt: 2,
			Result: queue.Result{Outcome: queue.Done, Status: 200, Duration: time.Second}})
		other := Outcome{Task: "b", ScheduledAt: f.ScheduledAt, MessageID: "m9", Attempt: 1,
			Result: queue.Result{Outcome: queue.Done}}
		s.Outcome(other)
		got := s.History("")
		if len(got) != 2 || got[0].Task != "b" || got[0].ID != "" || got[1].Attempts != 2 || got[1].Result.Status != 200 ||
			got[1].Result.Outcome != queue.Done || !got[1].Manual {
			t.Errorf("history %+v", got)
		}
		// A delivery may end before Enqueue returns.
		s.history.add(Run{Task: "b", ScheduledAt: f.ScheduledAt, MessageID: "m9", ID: "late", Lateness: time.Second})
		if got := s.History("b"); len(got) != 1 || got[0].Attempts != 1 || got[0].ID != "late" ||
			got[0].Lateness != time.Second {
			t.Errorf("history %+v", got)
		}
		for i := range 5 {
			s.history.add(Run{Task: fmt.Sprint(i)})
		}
		if got := s.History(""); len(got) != 3 || got[0].Task != "4" || got[2].Task != "2" {
			t.Errorf("history %+v", got)
		}
	})
}

// A queue may be paused while a delivery waits for a connection or a function's process.
func TestHistoryIgnoresDeliveriesWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.Outcome(Outcome{Task: "a", ScheduledAt: noon(), MessageID: "m1", Attempt: 1, Result: queue.Result{Status: 500}})
		s.Outcome(Outcome{Task: "a", ScheduledAt: noon(), MessageID: "m1", Attempt: 2,
			Result: queue.Result{Outcome: queue.Postponed}})
		s.Outcome(Outcome{Task: "a", ScheduledAt: noon().Add(time.Minute), MessageID: "m2", Attempt: 1,
			Result: queue.Result{Outcome: queue.Postponed}})
		if got := s.History(""); len(got) != 1 || got[0].Attempts != 1 || got[0].Result.Status != 500 {
			t.Errorf("history %+v", got)
		}
	})
}

func TestHistoryListsRunsThatWereEnqueuedBefore(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.fleet.mu.Lock()
		absent := s.stored(registry.KindRun, runID("a", s.tr.start.Add(time.Minute)))
		sent := absent.With(registry.Fields{"message": "m7", "settled": true, "tries": int64(1)})
		if _, err := s.store.Swap(t.Context(), registry.Fence{}, registry.Change{Old: absent, Next: sent}); err != nil {
			t.Fatal(err)
		}
		s.fleet.mu.Unlock()
		s.until(t, 125*time.Second, "0s led 1\n1m0s skipped a 1m0s to 1m0s: 1 enqueued before\n2m0s enqueued a 2m0s late 0s")
		s.setClock(-90 * time.Second)
		s.until(t, 215*time.Second, `2m6s clock -1m30s
			2m30s skipped a 1m0s to 1m0s: 1 enqueued before
			3m30s skipped a 2m0s to 2m0s: 1 enqueued before`)
		got := s.History("")
		if len(got) != 2 || got[1].MessageID != "m7" || got[1].ID != "" || got[1].Skipped != "" || got[0].ID == "" ||
			got[0].Skipped != "" {
			t.Errorf("history %+v", got)
		}
	})
}

func TestClockIsSet(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, 2*time.Minute+500*time.Millisecond, "0s led 1\n1m0s enqueued a 1m0s late 0s\n2m0s enqueued a 2m0s late 0s")
		s.setClock(-90 * time.Second)
		s.until(t, 4*time.Minute+20*time.Second,
			"2m1s clock -1m30s\n2m30s skipped a 1m0s to 1m0s: 1 enqueued before\n"+
				"3m30s skipped a 2m0s to 2m0s: 1 enqueued before")
		s.until(t, 4*time.Minute+31*time.Second, "4m30s enqueued a 3m0s late 0s")
		s.setClock(time.Hour - 90*time.Second)
		time.Sleep(2 * time.Second)
		got := s.tr.take()
		if !strings.Contains(got, "clock 1h0m0s") || !strings.Contains(got, "enqueued a 1h3m0s") ||
			strings.Count(got, "enqueued") != 1 || !strings.Contains(got, "skipped a 4m0s to 1h2m0s: 59 missed") {
			t.Error(got)
		}
		s.setClock(0) // the clock is right again, so the skipped runs are enqueued on time
		time.Sleep(2 * time.Minute)
		if got := s.tr.take(); !strings.Contains(got, "enqueued a 5m0s late 0s") ||
			!strings.Contains(got, "enqueued a 6m0s late 0s") {
			t.Error(got)
		}
	})
}

func TestNextLeaderAfterAClockThatRanAhead(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.setClock(time.Hour)
		time.Sleep(70*time.Second + 500*time.Millisecond)
		if got := s.tr.take(); !strings.Contains(got, "1m0s enqueued a 1h1m0s late 0s") {
			t.Error(got)
		}
		s.setClock(0)
		s.until(t, 130*time.Second, "1m11s clock -1h0m0s\n2m0s enqueued a 2m0s late 0s")
		s.elect(nil)
		s.until(t, 200*time.Second, "")
		s.elect(s.node)
		s.until(t, 235*time.Second, `3m20s led 2
			3m20s skipped a 1m0s to 1m0s: 1 missed
			3m20s skipped a 2m0s to 2m0s: 1 enqueued before
			3m20s enqueued a 3m0s late 20s`)
		s.until(t, 245*time.Second, "4m0s enqueued a 4m0s late 0s")
		s.elect(s.node)
		s.until(t, 250*time.Second, `4m5s led 3
			4m5s skipped a 1m0s to 1m0s: 1 missed
			4m5s skipped a 2m0s to 3m0s: 2 enqueued before
			4m5s skipped a 4m0s to 4m0s: 1 enqueued before`)
	})
}

func TestNewTaskAfterTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.until(t, time.Second, "0s led 1")
		s.elect(nil)
		s.setClock(-2 * time.Minute)
		s.until(t, 15*time.Second, "1s clock -2m0s")
		s.elect(s.node)
		s.until(t, 70*time.Second, "15s led 2\n1m0s enqueued a -1m0s late 0s")
	})
}

func TestNextLeaderAfterTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	a := every("a", 60)
	a.Missed, a.Grace = MissedAll, 2*time.Hour
	play(t, []Task{a}, Options{}, func(s *stage) {
		s.until(t, 130*time.Second+500*time.Millisecond, `0s led 1
			1m0s enqueued a 1m0s late 0s
			2m0s enqueued a 2m0s late 0s`)
		s.elect(nil)
		synctest.Wait()
		s.setClock(-50 * time.Second)
		s.until(t, 135*time.Second, "2m11s clock -50s")
		s.elect(s.node)
		s.until(t, 235*time.Second, `2m15s led 2
			2m15s skipped a 1m0s to 1m0s: 1 enqueued before
			2m50s skipped a 2m0s to 2m0s: 1 enqueued before
			3m50s enqueued a 3m0s late 0s`)
	})
}

func TestClockIsSetBackBehindTheStart(t *testing.T) {
	t.Parallel()
	a := every("a", 60)
	a.Missed = MissedAll
	play(t, []Task{a}, Options{}, func(s *stage) {
		s.until(t, 90*time.Second+500*time.Millisecond, "0s led 1\n1m0s enqueued a 1m0s late 0s")
		s.setClock(-10 * time.Minute) // to -8m30s
		s.until(t, 100*time.Second, "1m31s clock -10m0s")
		s.elect(nil)
		s.until(t, 260*time.Second, "")
		s.elect(s.node)
		s.until(t, 265*time.Second, `4m20s led 2
			4m20s enqueued a -8m0s late 2m20s
			4m20s enqueued a -7m0s late 1m20s
			4m20s enqueued a -6m0s late 20s`)
		s.elect(nil)
		s.until(t, 315*time.Second, "")
		n := &node{fleet: s.fleet}
		s.elect(n)
		next := New(&File{Tasks: []Task{a}}, n, runsOf(n),
			Options{Queue: "jobs", Events: s.tr.events(), Wall: s.fleet.wall})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- next.Run(ctx) }()
		s.until(t, 316*time.Second, `5m15s led 3
			5m15s skipped a -8m0s to -8m0s: 1 enqueued before
			5m15s skipped a -7m0s to -7m0s: 1 enqueued before
			5m15s skipped a -6m0s to -6m0s: 1 enqueued before
			5m15s enqueued a -5m0s late 15s`)
		cancel()
		<-done
	})
}

func TestStopWaitsForCallsInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFleet()
		n, tr := &node{fleet: w}, &transcript{start: time.Now()}
		w.elect(n)
		s := New(&File{Tasks: []Task{every("a", 60)}}, n, slowly{runsOf(n)}, Options{Queue: "jobs", Events: tr.events()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(61 * time.Second)
		cancel()
		<-done
		if got := tr.take(); got != "0s led 1\n1m4s enqueued a 1m0s late 0s" {
			t.Error(got)
		}
	})
}

type slowly struct{ *registry.Runs }

func (s slowly) Enqueue(ctx context.Context, term int64, f registry.Run) (registry.EnqueueResult, error) {
	pause(ctx, 4*time.Second)
	return s.Runs.Enqueue(ctx, term, f)
}

// A blocked call uses up one of the concurrent calls.
func TestOneQueueDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFleet()
		n, tr := &node{fleet: w}, &transcript{start: time.Now()}
		w.elect(n)
		s := New(&File{Tasks: []Task{every("hangs", 60), every("a", 60), every("b", 60)}}, n, hangs{runsOf(n)},
			Options{Queue: "jobs", Concurrency: 2, Events: tr.events()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(75 * time.Second)
		got := tr.take()
		for _, want := range []string{"1m0s enqueued a 1m0s", "1m0s enqueued b 1m0s", "1m10s failed hangs, again in 1s"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
		cancel()
		<-done
	})
}

// A follower enqueues nothing, so it reports no failures.
func TestFailuresEndWithTheTerm(t *testing.T) {
	t.Parallel()
	play(t, []Task{every("a", 60)}, Options{}, func(s *stage) {
		s.faults(1)
		s.until(t, 62*time.Second, `0s led 1
			1m0s failed a, again in 1s
			1m1s failed a, again in 2s`)
		s.elect(nil)
		synctest.Wait()
		if task := s.Status()[0]; task.Failing != 0 || task.Problem != "" {
			t.Errorf("after the term: %d failures, %q", task.Failing, task.Problem)
		}
	})
}

func TestFailureOfAnEndedTermIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFleet()
		n, tr := &node{fleet: w}, &transcript{start: time.Now()}
		w.elect(n)
		s := New(&File{Tasks: []Task{every("a", 60)}}, n, slowly{runsOf(n)}, Options{Queue: "jobs", Events: tr.events()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(61 * time.Second)
		w.elect(&node{fleet: w}) // while the call is in progress
		time.Sleep(10 * time.Second)
		if task := s.Status()[0]; task.Failing != 0 || task.Problem != "" || len(w.queues) != 0 {
			t.Errorf("after the term: %d failures, %q; queues %v", task.Failing, task.Problem, w.queues)
		}
		cancel()
		<-done
	})
}

type hangs struct{ *registry.Runs }

func (h hangs) Enqueue(ctx context.Context, term int64, f registry.Run) (registry.EnqueueResult, error) {
	if f.Task == "hangs" {
		<-ctx.Done()
		return registry.EnqueueResult{}, ctx.Err()
	}
	return h.Runs.Enqueue(ctx, term, f)
}

type losesLeadOnce struct{ *node }

func (f losesLeadOnce) Term() (int64, bool) {
	term, ok := f.node.Term()
	f.mu.Lock()
	defer f.mu.Unlock()
	if first := time.Unix(946684860, 0); !time.Now().Before(first) && f.sent == 0 {
		f.sent--
		return term, ok
	}
	return term, ok && f.sent == 0
}

func TestLeadershipIsCheckedBeforeTheEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFleet()
		n, tr := &node{fleet: w}, &transcript{start: time.Now()}
		w.elect(n)
		s := New(&File{Tasks: []Task{every("a", 60)}}, losesLeadOnce{n}, runsOf(n), Options{Queue: "jobs", Events: tr.events()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(3 * time.Minute)
		cancel()
		<-done
		if got := tr.take(); got != "0s led 1" || w.sent != -1 || len(w.queues) != 0 {
			t.Errorf("%s; asked %d; queues %v", got, w.sent, w.queues)
		}
	})
}
