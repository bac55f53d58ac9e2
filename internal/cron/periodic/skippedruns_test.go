package periodic

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/registry"
)

type endsAfterSend struct {
	*node
	dies   bool // otherwise, responses are lost
	healed time.Time
}

func (l *endsAfterSend) after(err error) error {
	if l.dies {
		l.kill()
		return errLost
	}
	if time.Now().Before(l.healed) {
		return errLost
	}
	return err
}

func (l *endsAfterSend) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) ([]registry.Record,
	error) {
	for _, c := range changes {
		if message, _ := c.Next.Fields["message"].(string); message != "" {
			if err := l.after(nil); err != nil {
				return nil, err
			}
		}
	}
	return l.node.Swap(ctx, fence, changes...)
}

type embeddedEndsAfterSend struct {
	*registry.Runs
	leader *endsAfterSend
}

func (l embeddedEndsAfterSend) Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error) {
	answer, err := l.Runs.Enqueue(ctx, term, run)
	return answer, l.leader.after(err)
}

func TestRunsInTheQueueAreNotReportedAsMissed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"embedded", "fifo", "standard"} {
		for _, missed := range []Missed{MissedOne, MissedSkip, MissedAll} {
			for changes := range 4 {
				t.Run(fmt.Sprintf("%s/%s/%d changes of leader", kind, missed, changes), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { leadersEndAfterSend(t, kind, missed, changes) })
				})
			}
		}
	}
}

func leadersEndAfterSend(t *testing.T, kind string, missed Missed, changes int) {
	const period = 20 * time.Second
	th := &scriptRun{fleet: newFleet(), script: script{kind: kind}, reported: map[int64]bool{}}
	th.file = &File{Tasks: []Task{{Name: "t", URL: "/t", Schedule: Every(period), Missed: missed, Grace: time.Minute}}}
	times := map[int64]int{}
	start := time.Now()
	var last *instance
	for i := range changes + 1 {
		l := &endsAfterSend{node: &node{fleet: th.fleet}, dies: i < changes}
		if changes == 0 {
			l.healed = start.Add(2 * time.Minute)
		}
		var r Registry = embeddedEndsAfterSend{runsOf(l.node), l}
		if kind != "embedded" {
			r = registry.NewSentRuns(l, scope, l, l.node)
		}
		s := New(th.file, l.node, r,
			Options{Queue: map[string]string{"fifo": "jobs.fifo"}[kind], Events: Events{Skipped: func(e Skipped) {
				th.skipped(e)
				for at := e.From; e.Reason == ReasonMissed && !at.After(e.To); at = at.Add(period) {
					times[at.Unix()]++
				}
			}}})
		ctx, cancel := context.WithCancel(t.Context())
		last = &instance{node: l.node, cancel: cancel, done: make(chan error, 1)}
		go func() { last.done <- s.Run(ctx) }()
		th.elect(l.node)
		time.Sleep(95 * time.Second) // long enough to miss runs and to send one
		synctest.Wait()
		if i < changes {
			cancel()
			<-last.done
		}
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	last.cancel()
	<-last.done

	sent := 0
	for _, arrivals := range th.queues {
		sent += len(arrivals)
	}
	if sent < changes+5 {
		t.Errorf("only %d runs were enqueued", sent)
	}
	for _, wrong := range th.wrong {
		t.Error(wrong)
	}
	for at, n := range times {
		if n > 1 {
			t.Errorf("%v was reported as missed %d times", time.Unix(at, 0).UTC(), n)
		}
	}
}

func TestDeliveredRunIsNotUncertain(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newFleet()
			th := &scriptRun{fleet: w, reported: map[int64]bool{}}
			l := &endsAfterSend{node: &node{fleet: w}, dies: true}
			th.elect(l.node)
			at := time.Now().Add(time.Minute).UTC().Truncate(time.Second)
			task := Task{Name: "t", URL: "/t", Schedule: Every(time.Minute), Missed: MissedSkip}
			if _, err := runsOf(l.node).Since(t.Context(), w.term, map[string]registry.Start{"t": {At: at.Add(-time.Second)}}); err != nil {
				t.Fatal(err)
			}
			f := newScheduledRun(&task, Slot{ScheduledAt: at, DueAt: at}, runID("t", at), "jobs.fifo", false)
			time.Sleep(time.Minute)
			if _, err := registry.NewSentRuns(l, scope, l, l.node).Enqueue(t.Context(), w.term, f); err == nil {
				t.Fatal("the leader did not end")
			}
			time.Sleep(20 * time.Second)
			next := &node{fleet: w}
			s := New(&File{Tasks: []Task{task}}, next, registry.NewSentRuns(next, scope, next, next),
				Options{Queue: "jobs.fifo", Events: Events{Skipped: th.skipped}})
			if seen {
				s.Outcome(Outcome{Task: "t", ScheduledAt: at, MessageID: "m1", Attempt: 1, At: time.Now()})
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			th.elect(next)
			time.Sleep(5 * time.Second)
			cancel()
			<-done
			if len(th.wrong) > 0 || th.reported[at.Unix()] == seen {
				t.Errorf("delivered here %v: reported as perhaps enqueued %v, wrong %v", seen, th.reported, th.wrong)
			}
			if runs := s.History("t"); len(runs) != 1 || seen != (runs[0].Skipped == "" && runs[0].Attempts == 1) {
				t.Errorf("delivered here %v: history %+v", seen, runs)
			}
		})
	}
}
