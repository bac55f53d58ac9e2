package queuetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestKnownDifferenceIsSkippedUntilItPasses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		failures []string
		known    bool
		errs     int
		skips    bool
	}{
		{"passes", nil, false, 0, false},
		{"fails", []string{"a", "b"}, false, 2, false},
		{"differs as known", []string{"a"}, true, 0, true},
		{"differs no more", nil, true, 1, false},
	}
	for _, test := range tests {
		errs, skip := outcome(test.failures, test.known, "why")
		if len(errs) != test.errs || (skip != "") != test.skips || test.skips && !strings.Contains(skip, "why") {
			t.Errorf("%s: errors %q, skip %q", test.name, errs, skip)
		}
	}
}

func TestExecuteRepeatsACheckThatWasTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			name     string
			run      func(*checkRun)
			inTime   bool
			failures []string
		}{
			{"nothing wrong", func(*checkRun) {}, true, nil},
			{"goes on after an error", func(e *checkRun) { e.errorf("1"); e.errorf("2") }, true, []string{"1", "2"}},
			{"ends at a fatal one", func(e *checkRun) { e.fatalf("1"); e.errorf("2") }, true, []string{"1"}},
			{"a fault in its window", func(e *checkRun) { e.validFor(2 * time.Second); e.wait(time.Second); e.errorf("1") },
				true, []string{"1"}},
			{"a failure seen too late", func(e *checkRun) {
				e.validFor(2 * time.Second)
				e.wait(2 * time.Second)
				e.errorf("1")
			}, false, nil},
			{"a fault after the window was settled",
				func(e *checkRun) { e.validFor(1); e.wait(2); e.endValidity(); e.errorf("1") }, true, []string{"1"}},
		}
		for _, test := range tests {
			e := &checkRun{ctx: t.Context()}
			if inTime := e.execute(test.run); inTime != test.inTime || !slices.Equal(e.failures, test.failures) {
				t.Errorf("%s: in time %v, faults %q", test.name, inTime, e.failures)
			}
		}
		e := &checkRun{}
		if e.execute(func(*checkRun) { panic("boom") }); len(e.failures) != 1 ||
			!strings.Contains(e.failures[0], "boom") {
			t.Errorf("a panic gave %q", e.failures)
		}
	})
}

func TestRepeatedCheckHasLongerTimeouts(t *testing.T) {
	t.Parallel()
	var timeouts []time.Duration
	s := Suite{Start: func(testing.TB) Server { return brokenQueue{} }}
	s.runCheck(t, "slow", func(e *checkRun) {
		timeouts = append(timeouts, e.short)
		if len(timeouts) < 3 {
			e.validFor(0)
			e.errorf("too late")
		}
	})
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(timeouts, want) {
		t.Errorf("timeouts %v, want %v", timeouts, want)
	}
}

type brokenQueue struct{}

func (brokenQueue) Create(context.Context, string, map[string]string) (Queue, error) {
	return brokenQueue{}, nil
}
func (brokenQueue) Handle(string) Queue { return brokenQueue{} }
func (brokenQueue) Send(_ context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	return make([]queue.Sent, len(msgs)), nil
}
func (brokenQueue) Receive(context.Context, queue.ReceiveRequest) ([]queue.Message, error) {
	time.Sleep(30 * time.Second)
	return nil, nil
}
func (brokenQueue) Delete(context.Context, []string) []error { return nil }
func (brokenQueue) ChangeVisibility(context.Context, []queue.VisibilityChange) []error {
	return nil
}
func (brokenQueue) Attributes(context.Context) (map[string]string, error)  { return nil, nil }
func (brokenQueue) SetAttributes(context.Context, map[string]string) error { return nil }
func (brokenQueue) Purge(context.Context) error                            { return nil }

func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	for name, c := range allChecks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &checkRun{ctx: t.Context(), server: brokenQueue{}, prefix: prefix(name), short: time.Second}
				if e.execute(c) && len(e.failures) == 0 {
					t.Error("a queue that forgets everything passes")
				}
			})
		})
	}
}

// numberedQueue is a queue whose sends return the given sequence numbers.
type numberedQueue struct {
	brokenQueue
	numbers []string
}

func (q *numberedQueue) Create(context.Context, string, map[string]string) (Queue, error) {
	return q, nil
}

func (q *numberedQueue) Send(context.Context, []queue.Outgoing) ([]queue.Sent, error) {
	number := q.numbers[0]
	q.numbers = q.numbers[1:]
	return []queue.Sent{{SequenceNumber: number}}, nil
}

func TestCheckSequenceRefusesEqualNumbers(t *testing.T) {
	t.Parallel()
	for numbers, fails := range map[string]bool{
		"1 2 3 4 5 6 7 8 9 10 11 12": false,
		"1 1 1 1 1 1 2 2 2 2 2 2":    true,
		"1 2 3 4 5 6 7 8 9 10 12 11": true,
	} {
		e := &checkRun{ctx: t.Context(), server: &numberedQueue{numbers: strings.Fields(numbers)}}
		if e.execute(checkSequence); len(e.failures) > 0 != fails {
			t.Errorf("%s: failures %q", numbers, e.failures)
		}
	}
}

func TestCheckNamesAreUnique(t *testing.T) {
	t.Parallel()
	total := 0
	for _, some := range checks {
		total += len(some)
	}
	if unique := len(allChecks()); unique != total {
		t.Errorf("%d checks have %d different names", total, unique)
	}
}
