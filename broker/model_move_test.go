package broker

import (
	"context"
	"errors"
	"reflect"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
)

type modelTask struct {
	handle        string
	to            string // "" for the source of each message
	rate          int
	status        MoveStatus
	last          int // last arrival to move
	moved, toMove int64
	began, acted  time.Time // acted is the time of the latest progress or restart
	unknown       bool
	// touched contains the FIFO groups with a message that was not visible at some time.
	touched map[string]bool
}

func (k *modelTask) running() bool { return k != nil && k.status == MoveRunning }

func (m *model) startMove(t *rapid.T) {
	k := &modelTask{status: MoveRunning, touched: map[string]bool{}, last: m.arrivals,
		began: time.Now(), acted: time.Now(),
		to:   rapid.SampledFrom([]string{"", modelWork, modelOther}).Draw(t, "to"),
		rate: rapid.SampledFrom([]int{0, 7, 71}).Draw(t, "rate")}
	for _, x := range m.in(modelDead) {
		if x.visible(time.Now()) {
			k.toMove++
		} else {
			k.touched[x.group] = true
		}
		k.unknown = k.unknown || !x.dead && k.to == ""
	}
	to := ""
	if k.to != "" {
		to = m.b.ARN(k.to + m.suffix)
	}
	handle, err := m.b.StartMoveTask(context.Background(),
		MoveRequest{Source: m.b.ARN(modelDead + m.suffix), Destination: to, Rate: k.rate})
	if m.task.running() {
		if !errors.Is(err, ErrMoveRunning) {
			t.Fatalf("a second task beside one that runs: %v", err)
		}
		return
	}
	m.must(err)
	m.task, k.handle = k, handle
	synctest.Wait()
	m.lookAtMove(t, false)
}

func (m *model) cancelMove(t *rapid.T) {
	k := m.task
	if k == nil {
		t.Skip("no task was started yet")
	}
	moved, err := m.b.CancelMoveTask(context.Background(), k.handle)
	if !k.running() {
		if !errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			t.Fatalf("cancelling a task that is %s: %v", k.status, err)
		}
		return
	}
	m.must(err)
	if k.status = MoveCancelled; moved != k.moved {
		t.Fatalf("the task was cancelled after %d messages, want %d", moved, k.moved)
	}
	synctest.Wait()
}

// killed means that a kill may have lost the latest visibility deadlines.
func (m *model) lookAtMove(t *rapid.T, killed bool) {
	k := m.task
	if !k.running() {
		return
	}
	is := m.moveTask(t)
	if is.Moved != k.moved {
		k.acted = time.Now()
		m.takeOver(t, k, killed)
	}
	if k.moved != is.Moved {
		t.Fatalf("the task says that it moved %d messages, and %d were moved", is.Moved, k.moved)
	}
	if is.Status == MoveRunning && time.Since(k.acted) > 2*moveRetry {
		t.Fatalf("the task has moved nothing for %v, and runs", time.Since(k.acted))
	}
	if k.status = is.Status; k.status != MoveRunning {
		m.checkEnd(t, k)
	}
}

func (m *model) takeOver(t *rapid.T, k *modelTask, killed bool) {
	to := k.to
	if to == "" {
		to = modelWork
	}
	stay := map[string]bool{}
	for _, x := range m.in(modelDead) {
		s, err := m.b.Message(context.Background(), to+m.suffix, x.id)
		if err != nil {
			stay[x.group] = true
			continue
		}
		forgotten := killed && time.Since(x.since) <= 2*storeAfter
		switch {
		case x.arrival > k.last:
			t.Fatalf("%s was moved, and arrived after the task was started", x.body)
		case !x.dead && k.to == "":
			t.Fatalf("%s was moved, and does not say where it came from", x.body)
		case x.until.After(time.Now()) && !forgotten:
			t.Fatalf("%s was moved while it was in flight until %v", x.body, x.until)
		case m.fifo && stay[x.group]:
			t.Fatalf("%s was moved before one of its group that was sent earlier", x.body)
		case s.SentAt.After(time.Now()) || time.Since(s.SentAt) > delayGrid*time.Millisecond:
			t.Fatalf("%s was moved now, and its time is %v", x.body, s.SentAt)
		case s.ReceiveCount != x.count:
			t.Fatalf("%s has %d receives, want %d", x.body, s.ReceiveCount, x.count)
		}
		x.count = s.ReceiveCount
		k.moved++
		m.moved(x, to, s.SentAt)
	}
}

func (m *model) checkEnd(t *rapid.T, k *modelTask) {
	behind := map[string]bool{}
	left := false
	for _, x := range m.in(modelDead) {
		switch free := x.until.IsZero() && x.since.Before(k.began) && !x.due.After(k.began); {
		case x.arrival > k.last, m.fifo && (k.touched[x.group] || behind[x.group]), !m.fifo && !free:
		case x.dead || k.to != "":
			t.Fatalf("the task is %s, and left %s behind", k.status, x.body)
		default:
			left, behind[x.group] = true, true
		}
	}
	switch {
	case k.status == MoveCancelled:
		t.Fatal("the task is cancelled, and nobody did that")
	case left && k.status != MoveFailed, !k.unknown && k.status != MoveCompleted:
		t.Fatalf("the task is %s", k.status)
	}
}

func (m *model) moveTask(t *rapid.T) MoveTask {
	tasks, err := m.b.MoveTasks(m.b.ARN(modelDead+m.suffix), 1)
	m.must(err)
	if len(tasks) != 1 {
		t.Fatalf("the latest task is not listed: %+v", tasks)
	}
	return tasks[0]
}

func (m *model) checkMove(t *rapid.T) {
	k := m.task
	if k == nil {
		return
	}
	m.lookAtMove(t, false)
	want := MoveTask{MoveRequest: MoveRequest{Source: m.b.ARN(modelDead + m.suffix), Rate: k.rate}, Status: k.status,
		Moved: k.moved, ToMove: k.toMove, StartedAt: k.began}
	if k.to != "" {
		want.Destination = m.b.ARN(k.to + m.suffix)
	}
	if k.running() {
		want.Handle = k.handle
	}
	got := m.moveTask(t)
	if got.StartedAt.Equal(want.StartedAt) {
		got.StartedAt = want.StartedAt
	}
	if k.status == MoveFailed {
		want.FailureReason = reasonNoSource
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("task %+v, want %+v", got, want)
	}
}
