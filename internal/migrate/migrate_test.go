package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

type fakeQueue struct {
	fifo     bool
	items    []Item
	at       int
	dedup    map[string]time.Time
	received []queue.Outgoing
	onSend   func(messages []queue.Outgoing) (before, after error)
	onDelete func(items []Item) error
	refuses  string
	fails    func(body string) error
	countErr error

	mu    sync.Mutex
	calls int
}

func (f *fakeQueue) Take(_ context.Context, n int) ([]Item, error) {
	n = min(n, len(f.items)-f.at)
	taken := slices.Clone(f.items[f.at : f.at+n])
	f.at += n
	return taken, nil
}

func (f *fakeQueue) Rewind() { f.at = 0 }

func (f *fakeQueue) Delete(_ context.Context, items []Item) []error {
	if f.onDelete != nil {
		if err := f.onDelete(items); err != nil {
			return slices.Repeat([]error{err}, len(items))
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	for _, it := range items {
		if i := slices.IndexFunc(f.items, func(x Item) bool { return x.ID == it.ID }); i >= 0 {
			f.items = slices.Delete(f.items, i, i+1)
			if i < f.at {
				f.at--
			}
		}
	}
	return nil
}

func (f *fakeQueue) Count(context.Context) (Count, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Count{Visible: len(f.items) + len(f.received)}, f.countErr
}

func (f *fakeQueue) Send(_ context.Context, messages []queue.Outgoing) ([]queue.Sent, error) {
	f.mu.Lock()
	f.calls++
	f.mu.Unlock()
	var after error
	if f.onSend != nil {
		var before error
		if before, after = f.onSend(messages); before != nil {
			return nil, before
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	sent := make([]queue.Sent, len(messages))
	for i, m := range messages {
		if f.refuses != "" && m.Body == f.refuses {
			sent[i].Err = queue.Errorf(queue.CodeInvalidParameterValue, "too large")
			continue
		}
		if f.fails != nil {
			if sent[i].Err = f.fails(m.Body); sent[i].Err != nil {
				continue
			}
		}
		if at, known := f.dedup[m.DedupID]; m.DedupID != "" {
			if known && time.Since(at) < 5*time.Minute {
				continue
			}
			f.dedup[m.DedupID] = time.Now()
		}
		f.received = append(f.received, m)
	}
	return sent, after
}

func (f *fakeQueue) bodies() (all []string) {
	for _, m := range f.received {
		all = append(all, m.Body)
	}
	return all
}

func newFake(fifo bool, bodies ...string) *fakeQueue {
	f := &fakeQueue{fifo: fifo, dedup: map[string]time.Time{}}
	for i, body := range bodies {
		m := queue.Outgoing{Body: body}
		if fifo {
			m.GroupID = body[:1]
		}
		f.items = append(f.items, Item{ID: fmt.Sprint("id", i), Message: m})
	}
	return f
}

func numbered(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

func openJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func migrated(t *testing.T, path string, from, to *fakeQueue, o Options) (*Result, error) {
	t.Helper()
	j := openJournal(t, path)
	from.Rewind()
	o.FIFO, o.SourceExact, o.DestinationExact = from.fifo, true, true
	r, err := Run(t.Context(), from, to, j, o)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return r, err
}

func TestAllMessagesAreMoved(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			bodies := slices.Concat(numbered("a", 25), numbered("b", 25))
			from, to := newFake(fifo, bodies...), newFake(fifo)
			r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
			if err != nil || !r.Balanced() || r.Sent != 50 || r.Deleted != 50 || r.SourceCount != 50 ||
				r.DestinationCount != 50 {
				t.Fatalf("%+v, %v", r, err)
			}
			for _, group := range []string{"a", "b"} {
				got := slices.DeleteFunc(to.bodies(), func(body string) bool { return !strings.HasPrefix(body, group) })
				if fifo && !slices.Equal(got, numbered(group, 25)) {
					t.Errorf("order %v", got)
				}
			}
		})
	}
}

var errKilled = errors.New("killed")

func TestKilledRunIsContinued(t *testing.T) {
	for _, c := range []struct {
		step     string
		sent     bool
		accepted bool
	}{{"before the send", false, false}, {"after the send", true, false}, {"before the delete", true, true}} {
		for _, fifo := range []bool{false, true} {
			for _, later := range []time.Duration{time.Second, 10 * time.Minute} {
				t.Run(fmt.Sprint(c.step, fifo, later), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						path := filepath.Join(t.TempDir(), "j")
						from, to := newFake(fifo, numbered("a", 40)...), newFake(fifo)
						if fifo {
							for i := range from.items {
								from.items[i].Message.GroupID = fmt.Sprint(i % 10)
							}
						}
						to.onSend = func([]queue.Outgoing) (before, after error) {
							switch {
							case to.calls != 3 || c.accepted:
								return nil, nil
							case c.sent:
								return nil, errKilled
							}
							return errKilled, nil
						}
						from.onDelete = func([]Item) error {
							if c.accepted && to.calls == 3 {
								return errKilled
							}
							return nil
						}
						if r, err := migrated(t, path, from, to, Options{}); !errors.Is(err, errKilled) {
							t.Fatalf("%+v, %v", r, err)
						}
						time.Sleep(later)
						from.onDelete, to.onSend = nil, nil
						r, err := migrated(t, path, from, to, Options{})
						if err != nil || !r.Balanced() || r.Sent != 40 || r.Deleted != 40 || len(from.items) != 0 {
							t.Fatalf("%+v, %v; %d left", r, err, len(from.items))
						}
						want := 40
						if !fifo && c.sent && !c.accepted {
							want = 50
						}
						if len(to.received) != want || len(slices.Compact(slices.Sorted(slices.Values(to.bodies())))) != 40 {
							t.Errorf("the destination has %d messages, want %d: %v", len(to.received), want, to.bodies())
						}
					})
				})
			}
		}
	}
}

func TestUncertainFIFOMessagesNeedADecision(t *testing.T) {
	for decision, want := range map[Decision]int{Undecided: 0, Resend: 2, Drop: 1} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			from, to := newFake(true, "a"), newFake(true)
			to.onSend = func([]queue.Outgoing) (before, after error) { return nil, errKilled }
			if _, err := migrated(t, path, from, to, Options{}); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			to.onSend = nil
			to.received = append(to.received, queue.Outgoing{Body: "foreign"})
			r, err := migrated(t, path, from, to, Options{Uncertain: decision})
			if decision == Undecided {
				if !errors.Is(err, ErrUncertain) || len(from.items) != 1 {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if err != nil || r.Balanced() || len(from.items) != 0 || len(to.received) != want+1 {
				t.Errorf("%s: %+v, %v, %v", decision, r, err, to.bodies())
			}
		})
	}
}

func TestMessagesOfAFIFOQueueAreSentAgainWhileTheDestinationKnowsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "j")
		from, to := newFake(true, "a"), newFake(true)
		to.onSend = func([]queue.Outgoing) (before, after error) { return nil, errKilled }
		if _, err := migrated(t, path, from, to, Options{}); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		to.onSend = nil
		to.received = append(to.received, queue.Outgoing{Body: "foreign"})
		r, err := migrated(t, path, from, to, Options{})
		if err != nil || len(from.items) != 0 || !slices.Equal(to.bodies(), []string{"a", "foreign"}) {
			t.Errorf("%+v, %v; %v", r, err, to.bodies())
		}
	})
}

func TestCallIsRepeatedAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newFake(false, numbered("a", 10)...), newFake(false)
		lost := queue.Errorf(queue.CodeUnreachable, "no answer")
		to.onSend = func([]queue.Outgoing) (before, after error) {
			if to.calls == 1 {
				return nil, lost
			}
			return nil, nil
		}
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
		if err != nil || !r.Balanced() || r.Resent != 10 || r.DestinationCount != 20 || r.Sent != 10 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestRefusedMessageKeepsItsGroupAtTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newFake(true, "a0", "a1", "b0", "a2", "b1"), newFake(true)
		to.refuses = "a1"
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{})
		if err != nil || !r.Balanced() || r.Sent != 3 || r.Reasons[Refused] != 1 || r.Reasons[Behind] != 1 || r.Left != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if got := to.bodies(); slices.Contains(got, "a2") || len(got) != 3 {
			t.Errorf("the destination has %v", got)
		}
	})
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delayed := func() *fakeQueue {
			from := newFake(false, "now", "soon", "later")
			from.items[1].VisibleAt = time.Now().Add(90 * time.Second)
			from.items[2].VisibleAt = time.Now().Add(time.Hour)
			return from
		}
		delays := func(f *fakeQueue) (all []string) {
			for _, m := range f.received {
				all = append(all, m.Body, m.Delay.String())
			}
			return all
		}
		from, to := delayed(), newFake(false)
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{MaxDelay: 15 * time.Minute})
		if want := []string{"now", "0s", "soon", "1m30s"}; err != nil || !r.Balanced() || r.Reasons[DueLater] != 1 ||
			!slices.Equal(delays(to), want) {
			t.Errorf("%+v, %v, %v", r, err, delays(to))
		}
		from, to = delayed(), newFake(false)
		r, err = migrated(t, filepath.Join(t.TempDir(), "k"), from, to, Options{MaxDelay: 15 * time.Minute, CutDelays: true})
		if want := []string{"now", "0s", "soon", "1m30s", "later", "15m0s"}; err != nil || r.DelaysCut != 1 ||
			!slices.Equal(delays(to), want) {
			t.Errorf("%+v, %v, %v", r, err, delays(to))
		}
	})
}

func TestFIFOMessagesInFlightAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newFake(true, "a0", "a1", "b0"), newFake(true)
		from.items[0].InFlight, from.items[0].VisibleAt = true, time.Now().Add(time.Minute)
		waited := 0
		r, err := migrated(t, filepath.Join(t.TempDir(), "j"), from, to, Options{Wait: 15 * time.Minute,
			Waiting: func(Count) { waited++ }})
		if err != nil || !r.Balanced() || !slices.Equal(to.bodies(), []string{"b0", "a0", "a1"}) || waited < 50 {
			t.Errorf("%+v, %v, %v", r, err, to.bodies())
		}
		from, to = newFake(true, "a0"), newFake(true)
		from.items[0].InFlight, from.items[0].VisibleAt = true, time.Now().Add(time.Hour)
		if r, err := migrated(t, filepath.Join(t.TempDir(), "k"), from, to, Options{Wait: time.Minute}); err != nil ||
			r.Balanced() || r.Left != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestJournalOfAnotherMigrationIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	if err := j.Begin(1, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, "a", "c"); err == nil {
		t.Error("it was accepted")
	}
	if again := openJournal(t, path); !again.Begun() || again.SourceBefore() != 1 || again.DestinationBefore() != 2 {
		t.Errorf("%+v", again.header)
	}
}

// A pipe can be written to, but not synced.
func TestAcceptedMessagesAreSynced(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	j := openJournal(t, filepath.Join(t.TempDir(), "j"))
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	j.file = writer
	if err := j.Intend([]string{"x"}, false); err != nil {
		t.Errorf("an intention is synced: %v", err)
	}
	if err := j.Accept([]string{"x"}); err == nil {
		t.Error("an accepted message is not synced")
	}
}

func TestJournalWithACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	if err := errors.Join(j.Begin(3, 0), j.Intend([]string{"x", "y"}, true), j.Accept([]string{"x"})); err != nil {
		t.Fatal(err)
	}
	size, err := j.file.Seek(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for cut := size - 1; cut > size-15; cut-- {
		if err := j.file.Truncate(cut); err != nil {
			t.Fatal(err)
		}
		again := openJournal(t, path)
		if again.Accepted("x") || again.Uncertain() != 2 {
			t.Errorf("cut at %d of %d: %d uncertain", cut, size, again.Uncertain())
		}
		if err := again.Accept([]string{"y"}); err != nil {
			t.Fatal(err)
		}
		if third := openJournal(t, path); !third.Accepted("y") || third.Sent() != 1 {
			t.Errorf("what was written behind the cut is not there")
		}
		if err := errors.Join(j.file.Truncate(0), again.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.file.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Begin(3, 0), j.Intend([]string{"x", "y"}, true), j.Accept([]string{"x"})); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		in        Result
		uncertain int
		deleted   int
		arrived   int
		problems  int
	}{
		"all":       {Result{SourceCount: 5, Sent: 5, DestinationBefore: 2, DestinationCount: 7}, 0, 5, 0, 0},
		"skipped":   {Result{SourceCount: 5, Sent: 4, Left: 1, Skipped: 1, DestinationCount: 4}, 0, 4, 0, 0},
		"arrivals":  {Result{SourceCount: 5, Sent: 8, DestinationCount: 8}, 0, 8, 3, 0},
		"copies":    {Result{SourceCount: 5, Sent: 5, Resent: 2, DestinationCount: 6}, 0, 5, 0, 0},
		"no copies": {Result{FIFO: true, SourceCount: 5, Sent: 5, Resent: 2, DestinationCount: 6}, 0, 5, 0, 1},
		"stopped":   {Result{SourceCount: 5, Sent: 3, Deleted: 2, Left: 3, DestinationCount: 3}, 0, 2, 0, 1},
		"uncertain": {Result{SourceCount: 5, Sent: 3, Deleted: 3, Left: 2, DestinationCount: 5}, 2, 3, 0, 1},
		"vanished":  {Result{SourceCount: 5, Sent: 3, DestinationCount: 3}, 0, 3, 0, 1},
		"consumed":  {Result{SourceCount: 5, Sent: 5, DestinationCount: 4}, 0, 5, 0, 1},
		"foreign":   {Result{SourceCount: 5, Sent: 5, DestinationCount: 6}, 0, 5, 0, 1},
	} {
		r := c.in
		r.Reconcile(c.uncertain)
		if r.Deleted != c.deleted || r.Arrived != c.arrived || len(r.Problems) != c.problems {
			t.Errorf("%s: deleted %d, arrived %d, problems %q", name, r.Deleted, r.Arrived, r.Problems)
		}
	}
}

func TestAttributesOfACopy(t *testing.T) {
	create, missing := Attributes(map[string]string{"VisibilityTimeout": "45", "MaximumMessageSize": "1048576",
		"FifoQueue": "true", "QueueArn": "arn:x", "ApproximateNumberOfMessages": "3", "Policy": "{}", "RedrivePolicy": "{}",
		"KmsMasterKeyId": "alias/a", "SqsManagedSseEnabled": "false"})
	if len(create) != 2 || create["VisibilityTimeout"] != "45" || create["FifoQueue"] != "true" ||
		!slices.Equal(missing, []string{"Policy", "KmsMasterKeyId"}) {
		t.Errorf("%v, %v", create, missing)
	}
	wanted, has := map[string]string{"A": "1", "B": "true", "C": "2"}, map[string]string{"A": "1", "B": "True", "C": "3"}
	if got := Differing(wanted, has); !slices.Equal(got, []string{"C"}) {
		t.Errorf("differing %v", got)
	}
}

func TestRedrivePolicyRoundTrip(t *testing.T) {
	arn := "arn:aws:sqs:eu-west-1:123456789012:jobs-dead"
	if name, n := queue.ParseRedrivePolicy(RedrivePolicy(arn, 7)); name != "jobs-dead" || n != 7 {
		t.Errorf("%q, %d", name, n)
	}
}
