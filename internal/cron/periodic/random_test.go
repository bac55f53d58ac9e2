package periodic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/internal/registry"
)

type script struct {
	kind   string
	period time.Duration
	missed Missed
	chance float64
	delay  time.Duration
	seed   uint64
	events []event
}

// event elects node (-1 for no leader), restarts it, or steps the clock.
type event struct {
	after time.Duration
	what  string
	node  int
	step  time.Duration
}

func draw(t *rapid.T) script {
	s := script{
		kind:   rapid.SampledFrom([]string{"embedded", "fifo", "standard"}).Draw(t, "kind"),
		period: time.Duration(rapid.IntRange(1, 40).Draw(t, "period")) * time.Second,
		missed: rapid.SampledFrom([]Missed{MissedAll, MissedAll, MissedOne, MissedSkip}).Draw(t, "missed"),
		chance: rapid.SampledFrom([]float64{0, 0.1, 0.3}).Draw(t, "chance"),
		delay:  rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond, time.Second}).Draw(t, "delay"),
		seed:   rapid.Uint64().Draw(t, "seed"),
	}
	if s.delay >= time.Second { // runs of a task are enqueued one at a time
		s.period = max(s.period, 15*time.Second)
	}
	for range rapid.IntRange(0, 12).Draw(t, "events") {
		e := event{
			after: time.Duration(rapid.IntRange(0, 15000).Draw(t, "after")) * time.Millisecond,
			what:  rapid.SampledFrom([]string{"elect", "elect", "elect", "die", "step"}).Draw(t, "what"),
			node:  rapid.IntRange(-1, 2).Draw(t, "node"),
			step: time.Duration(rapid.SampledFrom([]int{-86400, -3600, -20, -1, 1, 20, 3600, 86400}).Draw(t,
				"step")) * time.Second,
		}
		if s.kind == "fifo" && e.step.Abs() > time.Minute { // deduplication requires clocks that agree
			e.step /= 3600
		}
		s.events = append(s.events, e)
	}
	return s
}

type instance struct {
	node   *node
	cancel context.CancelFunc
	done   chan error
}

type scriptRun struct {
	*fleet
	script
	file      *File
	instances [3]*instance
	mu2       sync.Mutex
	reported  map[int64]bool
	wrong     []string
	stepped   bool
}

func (th *scriptRun) start(i int) {
	n := &node{fleet: th.fleet}
	var r Registry = runsOf(n)
	queueName := "jobs"
	if th.kind != "embedded" {
		r = registry.NewSentRuns(n, scope, n, n)
	}
	if th.kind == "fifo" {
		queueName = "jobs.fifo"
	}
	s := New(th.file, n, r, Options{Queue: queueName, Wall: th.wall, Events: Events{Skipped: th.skipped}})
	ctx, cancel := context.WithCancel(context.Background())
	in := &instance{node: n, cancel: cancel, done: make(chan error, 1)}
	go func() { in.done <- s.Run(ctx) }()
	th.instances[i] = in
}

func (th *scriptRun) skipped(e Skipped) {
	th.mu2.Lock()
	defer th.mu2.Unlock()
	switch e.Reason {
	case ReasonUncertain:
		th.reported[e.To.Unix()] = true
	case ReasonMissed:
		th.fleet.mu.Lock()
		defer th.fleet.mu.Unlock()
		for _, arrivals := range th.queues {
			for _, a := range arrivals {
				if a.task == e.Task && !a.scheduled.Before(e.From) && !a.scheduled.After(e.To) {
					th.wrong = append(th.wrong,
						fmt.Sprintf("%v is in the queue since %v and was reported as missed at %v", a.scheduled, a.at, time.Now().UTC()))
				}
			}
		}
	}
}

func (th *scriptRun) happen(e event) {
	time.Sleep(e.after)
	switch {
	case e.what == "step":
		th.fleet.mu.Lock()
		// A call may be applied after the clock was set back.
		if shown := time.Now().Add(th.step).Round(0); shown.After(th.high) {
			th.high = shown
		}
		th.step += e.step
		th.fleet.mu.Unlock()
		th.stepped = true
	case e.node < 0:
		th.elect(nil)
	case e.what == "die":
		old := th.instances[e.node]
		old.node.kill()
		old.cancel()
		<-old.done
		th.start(e.node)
	default:
		th.elect(th.instances[e.node].node)
	}
}

// problems must be called in a synctest bubble.
func (s script) problems() (problems []string) {
	th := &scriptRun{fleet: newFleet(), script: s, reported: map[int64]bool{}}
	th.fleet.delay, th.rng = s.delay, rand.New(rand.NewPCG(s.seed, 1))
	task := Task{Name: "t", URL: "/t", Schedule: Every(s.period), Missed: s.missed}
	th.file = &File{Tasks: []Task{task}}
	start := th.wall()
	for i := range th.instances {
		th.start(i)
	}
	th.elect(th.instances[0].node)
	// A task's times count from the first leader's first call.
	time.Sleep(5 * time.Second)
	synctest.Wait()
	th.faults(s.chance)
	for _, e := range s.events {
		th.happen(e)
	}
	th.faults(0)
	th.elect(th.instances[1].node)
	time.Sleep(4 * time.Minute)
	synctest.Wait()
	for _, in := range th.instances {
		in.cancel()
		<-in.done
	}
	return th.judge(start, th.wall().Add(-30*time.Second))
}

func (th *scriptRun) judge(start, end time.Time) (problems []string) {
	counts, last := map[int64]int{}, map[int64]arrival{}
	for _, arrivals := range th.queues {
		for _, a := range arrivals {
			at := a.scheduled.Unix()
			if counts[at]++; counts[at] > 1 && !th.mayRepeat(last[at], a, arrivals) {
				problems = append(problems, fmt.Sprintf("%v was enqueued %d times", a.scheduled, counts[at]))
			}
			last[at] = a
			if a.wall.Before(a.scheduled) {
				problems = append(problems, fmt.Sprintf("%v was early: %v", a.scheduled, a.wall))
			}
		}
	}
	problems = append(problems, th.wrong...)
	if th.stepped || th.missed != MissedAll {
		return problems
	}
	for at := Every(th.period).Next(start); at.Before(end); at = Every(th.period).Next(at) {
		if counts[at.Unix()] == 0 && (th.kind == "embedded" || !th.reported[at.Unix()]) {
			problems = append(problems, fmt.Sprintf("%v was missed", at))
		}
	}
	return problems
}

// mayRepeat allows a second message on a standard queue from a new leader, or once per term after a lost response.
func (th *scriptRun) mayRepeat(last, again arrival, all []arrival) bool {
	if th.kind != "standard" || last.id != again.id {
		return false
	}
	inTerm := 0
	for _, a := range all {
		if a.scheduled.Equal(again.scheduled) && a.term == again.term {
			inTerm++
		}
	}
	return last.term != again.term && inTerm <= 2 || last.lost && inTerm == 2
}

// Each run is enqueued exactly once, or as mayRepeat allows. No message is early, and no enqueued run is reported as
// missed. With the policy "all", no run is missed unless a clock was stepped.
func TestRandomFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		var problems []string
		synctest.Test(t, func(*testing.T) { problems = s.problems() })
		if len(problems) > 0 {
			rt.Fatalf("%+v\n%d problems, the first: %v", s, len(problems), problems[:min(5, len(problems))])
		}
	})
}
