package broker

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

type deadlineWorld struct {
	t       *testing.T
	b       *Broker
	q       *Queue
	receipt string
	id      string
}

const deadlineAfter = 2 * time.Second

func newDeadlineWorld(t *testing.T, name string, delayed bool) *deadlineWorld {
	b := openTest(t, nil)
	create(t, b, "dead", nil)
	create(t, b, "dead.fifo", map[string]string{"FifoQueue": "true"})
	attributes, message := map[string]string{"VisibilityTimeout": "2"}, queue.Outgoing{Body: "a"}
	dead := "dead"
	if name == "work.fifo" {
		dead, attributes["FifoQueue"] = "dead.fifo", "true"
		message.GroupID, message.DedupID = "g", "d"
	}
	attributes["RedrivePolicy"] = policy(b, dead, 9)
	if delayed {
		attributes["DelaySeconds"] = "2"
	}
	w := &deadlineWorld{t: t, b: b, q: create(t, b, name, attributes)}
	w.id = send(t, w.q, message)[0].ID
	if !delayed {
		w.receipt = one(t, w.q).ReceiptHandle
	}
	live := liveOf(t, w.q)
	live.mu.Lock()
	live.alarm.timer.Stop()
	live.mu.Unlock()
	return w
}

func outcomeOf(errs []error) string {
	if errs == nil {
		return "ok"
	}
	return describe(errs[0])
}

func (w *deadlineWorld) change(visibility time.Duration) string {
	changes := []queue.VisibilityChange{{ReceiptHandle: w.receipt, Visibility: visibility}}
	return outcomeOf(w.q.ChangeVisibility(w.t.Context(), changes))
}

func (w *deadlineWorld) ledgers() string {
	of, err := w.b.Ledger(w.q.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := w.b.Attributes(w.q.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	total := w.b.TotalLedger()
	return fmt.Sprint(of.Visible, of.InFlight, of.Delayed, " ", total.Visible, total.InFlight, total.Delayed, " ",
		all["ApproximateNumberOfMessages"], all["ApproximateNumberOfMessagesNotVisible"],
		all["ApproximateNumberOfMessagesDelayed"])
}

func (w *deadlineWorld) receives() string {
	return fmt.Sprintf("%q", texts(take(w.t, w.q, 1)))
}

func TestG13DeadlinesDecideAndNotTheirTimers(t *testing.T) {
	t.Parallel()
	const expired = "InvalidParameterValueException: Value H for parameter ReceiptHandle is invalid. " +
		"Reason: The receipt handle has expired."
	tests := []struct {
		name, queue   string
		delayed       bool
		act           func(w *deadlineWorld) string
		before, after string
	}{
		{"FIFO delete", "work.fifo", false, func(w *deadlineWorld) string {
			return outcomeOf(w.q.Delete(w.t.Context(), []string{w.receipt}))
		}, "ok", expired},
		{"FIFO expire", "work.fifo", false, func(w *deadlineWorld) string {
			return outcomeOf(w.q.Expire(w.t.Context(), []string{w.receipt}))
		}, "ok", expired},
		{"FIFO change of visibility", "work.fifo", false, func(w *deadlineWorld) string {
			return w.change(time.Minute)
		}, "ok", expired},
		{"FIFO change of visibility to 0", "work.fifo", false, func(w *deadlineWorld) string {
			return w.change(0)
		}, "ok", expired},
		{"FIFO dead-lettering", "work.fifo", false, func(w *deadlineWorld) string {
			letters := []queue.DeadLetter{{Message: &queue.Message{ReceiptHandle: w.receipt}}}
			return outcomeOf(w.q.DeadLetter(w.t.Context(), letters))
		}, "ok", expired},
		{"FIFO receive", "work.fifo", false, (*deadlineWorld).receives, `""`, `"a"`},
		{"FIFO reschedule", "work.fifo", false, func(w *deadlineWorld) string {
			// The delay exceeds the 12-hour limit only for an in-flight message.
			err := w.q.Reschedule(w.t.Context(), w.id, queue.MaxVisibility-time.Second)
			return fmt.Sprint(err != nil)
		}, "true", "false"},
		{"standard delete (B2)", "work", false, func(w *deadlineWorld) string {
			return outcomeOf(w.q.Delete(w.t.Context(), []string{w.receipt}))
		}, "ok", "ok"},
		{"standard change of visibility hides nothing (B7)", "work", false, func(w *deadlineWorld) string {
			return w.change(time.Minute) + " " + w.receives()
		}, `ok ""`, `ok "a"`},
		{"standard receive", "work", false, (*deadlineWorld).receives, `""`, `"a"`},
		{"counts of messages in flight", "work", false, (*deadlineWorld).ledgers, "0 1 0 0 1 0 010", "1 0 0 1 0 0 100"},
		{"state of a message in flight", "work", false, func(w *deadlineWorld) string {
			stored, err := w.b.Message(w.t.Context(), "work", w.id)
			return fmt.Sprint(stored.State, " ", err)
		}, "inflight <nil>", "visible <nil>"},
		{"counts of delayed messages", "work", true, (*deadlineWorld).ledgers, "0 0 1 0 0 1 001", "1 0 0 1 0 0 100"},
		{"receive of a delayed message", "work", true, (*deadlineWorld).receives, `""`, `"a"`},
		{"receive of a delayed FIFO message", "work.fifo", true, (*deadlineWorld).receives, `""`, `"a"`},
		{"move task of messages in flight", "work", false, func(w *deadlineWorld) string {
			create(w.t, w.b, "source", map[string]string{
				"RedrivePolicy": policy(w.b, "work", 9)})
			startMove(w.t, w.b, w.b.ARN("work"), w.b.ARN("dead"), 0)
			synctest.Wait()
			task := lastMove(w.t, w.b, "work")
			return fmt.Sprint(task.ToMove, task.Moved)
		}, "0 0", "1 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for after, want := range map[time.Duration]string{deadlineAfter - time.Millisecond: test.before,
				deadlineAfter: test.after} {
				synctest.Test(t, func(t *testing.T) {
					w := newDeadlineWorld(t, test.queue, test.delayed)
					time.Sleep(after)
					got := strings.ReplaceAll(test.act(w), cmp.Or(w.receipt, "no receipt"), "H")
					if got != want {
						t.Errorf("%v after the receive or send: %s, want %s", after, got, want)
					}
				})
			}
		})
	}
}
