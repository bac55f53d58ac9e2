package migrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func TestCallThatIsTooLongIsSplit(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			from, to := newFake(fifo, numbered("a", 10)...), newFake(fifo)
			for i := range from.items {
				if fifo {
					from.items[i].Message.GroupID = fmt.Sprint(i)
				}
			}
			most := 0
			to.onSend = func(messages []queue.Outgoing) (before, after error) {
				large := slices.ContainsFunc(messages, func(m queue.Outgoing) bool { return m.Body == "a7" })
				if len(messages) > 3 || large {
					return queue.Errorf(queue.CodeBatchRequestTooLong, "too long"), nil
				}
				most = max(most, len(messages))
				return nil, nil
			}
			r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
			if err != nil || !r.Balanced() || r.Sent != 9 || r.Resent != 0 || r.Reasons[Refused] != 1 || r.Left != 1 {
				t.Errorf("FIFO %t: %+v, %v", fifo, r, err)
			}
			if got := slices.Sorted(slices.Values(to.bodies())); most < 2 || len(got) != 9 || slices.Contains(got, "a7") {
				t.Errorf("FIFO %t: up to %d at once, the destination has %v", fifo, most, got)
			}
		})
	}
}

// Only messages that the destination may already have count as resent.
func TestMessagesThatFailForNowAreSentAgain(t *testing.T) {
	for code, resent := range map[string]int{queue.CodeRequestThrottled: 0, "ThrottlingException": 0,
		queue.CodeStorageFailed: 0, queue.CodeUnreachable: 2} {
		for _, fifo := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "j")
				from, to := newFake(fifo, "a0", "b1", "c2", "d3"), newFake(fifo)
				failed := map[string]bool{}
				to.fails = func(body string) error {
					if again := failed[body]; again || body < "c" {
						return nil
					}
					failed[body] = true
					return queue.Errorf(code, "not now")
				}
				began := time.Now()
				r, err := migrated(t, path, from, to, Options{})
				if err != nil || !r.Balanced() || r.Sent != 4 || r.Resent != resent || to.calls != 2 {
					t.Errorf("%s, FIFO %t: %+v, %v; %d calls", code, fifo, r, err, to.calls)
				}
				if time.Since(began) < time.Second {
					t.Errorf("%s: sent again after %s, want a pause", code, time.Since(began))
				}
				if j := openJournal(t, path); j.Uncertain() != 0 || j.Sent() != 4 {
					t.Errorf("%s: the journal has %d sent, %d uncertain", code, j.Sent(), j.Uncertain())
				}
			})
		}
	}
}

func TestErrorThatStaysEndsTheRun(t *testing.T) {
	for code, calls := range map[string]int{queue.CodeAccessDenied: 1, queue.CodeRequestThrottled: maxSendRetries + 1} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			from, to := newFake(false, numbered("a", 5)...), newFake(false)
			cause := queue.Errorf(code, "no")
			to.fails = func(string) error { return cause }
			if r, err := migrated(t, path, from, to, Options{}); !errors.Is(err, cause) || to.calls != calls ||
				!strings.Contains(err.Error(), "sending 5 messages") {
				t.Errorf("%s: %+v, %v; %d calls, want %d", code, r, err, to.calls, calls)
			}
			to.fails = nil
			if r, err := migrated(t, path, from, to, Options{}); err != nil || !r.Balanced() || r.Sent != 5 {
				t.Errorf("%s: the next run: %+v, %v", code, r, err)
			}
		})
	}
}

func TestQueueThatCannotBeCountedEndsTheRun(t *testing.T) {
	failure := errors.New("no answer")
	for what, spoil := range map[string]func(from, to *fakeQueue){
		"counting the messages at the source":      func(from, _ *fakeQueue) { from.countErr = failure },
		"counting the messages at the destination": func(_, to *fakeQueue) { to.countErr = failure },
	} {
		from, to := newFake(false, "a0"), newFake(false)
		spoil(from, to)
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
		if !errors.Is(err, failure) || !strings.Contains(err.Error(), what) || len(from.items) != 1 || to.calls != 0 {
			t.Errorf("%s: %v, %d left, %d calls", what, err, len(from.items), to.calls)
		}
		if r.Balanced() {
			t.Errorf("%s: a queue that was not counted is balanced: %+v", what, r)
		}
	}
}

func TestResultIsCompleteIfTheFinalCountFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no answer")
		from, to := newFake(false, "later"), newFake(false)
		from.items[0].VisibleAt = time.Now().Add(time.Hour)
		from.onDelete = func([]Item) error {
			from.mu.Lock()
			defer from.mu.Unlock()
			from.countErr = failure
			return nil
		}
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{MaxDelay: 15 * time.Minute, CutDelays: true})
		if !errors.Is(err, failure) || r.Sent != 1 || r.Deleted != 1 || r.DelaysCut != 1 ||
			r.SourceCount != 1 || r.Balanced() {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestDueTimeIsSentWhereTheDestinationTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newFake(false, "now", "later"), newFake(false)
		due := time.Now().Add(48 * time.Hour)
		from.items[1].VisibleAt = due
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
		if err != nil || !r.Balanced() || len(to.received) != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		now, later := to.received[0], to.received[1]
		if now.Delay == nil || *now.Delay != 0 || !now.NotBefore.IsZero() {
			t.Errorf("visible: %+v", now)
		}
		if later.Delay != nil || !later.NotBefore.Equal(due) {
			t.Errorf("due later: %+v", later)
		}
	})
}

func TestMessageThatIsSentAgainCountsOnceAsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newFake(false, "later"), newFake(false)
		from.items[0].VisibleAt = time.Now().Add(time.Hour)
		to.fails = func(string) error {
			if to.calls > 1 {
				return nil
			}
			return queue.Errorf(queue.CodeRequestThrottled, "not now")
		}
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{MaxDelay: 15 * time.Minute, CutDelays: true})
		if err != nil || r.Sent != 1 || to.calls < 2 || r.DelaysCut != 1 {
			t.Errorf("%+v, %v; %d calls", r, err, to.calls)
		}
	})
}

func TestLargeMessagesAreSentInCallsThatFit(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			for i := range 5 {
				bodies = append(bodies, strings.Repeat(fmt.Sprint(i), 400<<10))
			}
			from, to := newFake(fifo, bodies...), newFake(fifo)
			to.onSend = func(messages []queue.Outgoing) (before, after error) {
				bytes := 0
				for i := range messages {
					bytes += messages[i].Size()
				}
				if bytes > queue.MaxMessageSize {
					t.Errorf("FIFO %t: a call of %d bytes", fifo, bytes)
				}
				return nil, nil
			}
			r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
			if err != nil || !r.Balanced() || r.Sent != 5 || to.calls != 3 {
				t.Errorf("FIFO %t: %+v, %v; %d calls", fifo, r, err, to.calls)
			}
		})
	}
}

func TestDamagedJournalIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	if err := errors.Join(j.Begin(2, 0), j.Accept([]string{"x"}), j.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Index(string(text), "\n") + 1
	damaged := string(text[:first]) + "{\n" + string(text[first:])
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("reading the journal %s at byte %d", path, first)
	if _, err := OpenJournal(path, "a", "b"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != damaged {
		t.Errorf("the file was changed: %q, %v", left, err)
	}
}

func TestLinesOfAResult(t *testing.T) {
	r := Result{Arrived: 1, Resent: 2, DelaysCut: 3, Reasons: map[Reason]int{DueLater: 4, Refused: 5, Behind: 6},
		Problems: []string{"1 message still at the source"}}
	for i := range 7 {
		r.refused(fmt.Sprint("id", i), errors.New("too large"))
	}
	want := []string{
		"1 message arrived at the source in the meantime",
		"2 messages sent again after an interruption: there may be two of them",
		"3 messages due later: they become visible after the destination's longest delay",
		"4 messages left: due later than the destination can delay them; run this again when they are due, or add " +
			"--cut-delays",
		"5 messages left: rejected by the destination",
		"6 messages left: behind a rejected message of the same group",
		"id0: too large", "id1: too large", "id2: too large", "id3: too large", "id4: too large",
		"1 message still at the source",
	}
	if diff := cmp.Diff(want, r.Lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.FIFO = true
	if diff := cmp.Diff(slices.Delete(want, 1, 2), r.Lines()); diff != "" {
		t.Errorf("FIFO (-want +got)\n%s", diff)
	}
	if lines := (&Result{Sent: 5, Deleted: 5}).Lines(); len(lines) != 0 {
		t.Errorf("of a plain result: %q", lines)
	}
}
