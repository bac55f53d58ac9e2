package worker

import (
	"testing"
	"time"

	"tendril/queue"
)

func TestSettle(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failure := queue.Result{Outcome: queue.Failed, Status: 500}
	unreached := queue.Result{Outcome: queue.Unreached}
	asks := queue.Result{Outcome: queue.Failed, Status: 429, RetryAfter: 90 * time.Second}
	evt := Options{ErrorVisibilityTimeout: ptr(2 * time.Second)}
	zero := Options{ErrorVisibilityTimeout: ptr(time.Duration(0))}
	growing := Options{ErrorVisibilityTimeout: ptr(2 * time.Second),
		Backoff: Backoff{Min: 10 * time.Second, Max: time.Hour, Doublings: 9}}
	polite := growing
	polite.RespectRetryAfter = true
	tests := []struct {
		name string
		opts Options
		d    endedDelivery
		want action
	}{
		{"done is deleted", Options{}, endedDelivery{result: queue.Result{Outcome: queue.Done, Status: 200}},
			action{verb: remove}},
		{"done is deleted under a lapsed receipt too", evt,
			endedDelivery{result: queue.Result{Outcome: queue.Done}, lapsed: true}, action{verb: remove}},
		{"failed is left alone by default", Options{}, endedDelivery{result: failure}, action{verb: leave}},
		{"the zero result is a failure", Options{}, endedDelivery{}, action{verb: leave}},
		{"failed after an extension: when the visibility timeout of the receive ends",
			Options{VisibilityTimeout: 10 * time.Second},
			endedDelivery{result: failure, due: now.Add(4 * time.Second), extended: true}, action{retry, 4 * time.Second}},
		{"failed after that: at once", Options{VisibilityTimeout: 10 * time.Second},
			endedDelivery{result: failure, due: now.Add(-6 * time.Second), extended: true}, action{retry, 0}},
		{"failed after an extension: a configured delay counts from now", evt,
			endedDelivery{result: failure, due: now.Add(4 * time.Second), extended: true}, action{retry, 2 * time.Second}},
		{"failed after an extension, lapsed", Options{VisibilityTimeout: 10 * time.Second},
			endedDelivery{result: failure, due: now.Add(4 * time.Second), extended: true, lapsed: true}, action{verb: leave}},
		{"unreached comes again at once", growing, endedDelivery{result: unreached, returnable: true}, action{verb: returnNow}},
		{"unreached, but the receipt lapsed", Options{}, endedDelivery{result: unreached, returnable: true, lapsed: true},
			action{verb: leave}},
		{"unreached again and again is as failed", Options{}, endedDelivery{result: unreached}, action{verb: leave}},
		{"error visibility timeout", evt, endedDelivery{result: failure}, action{retry, 2 * time.Second}},
		{"error visibility timeout for unreached", evt, endedDelivery{result: unreached}, action{retry, 2 * time.Second}},
		{"error visibility timeout of zero is at once", zero, endedDelivery{result: failure}, action{retry, 0}},
		{"a lapsed receipt changes nothing", evt, endedDelivery{result: failure, lapsed: true}, action{verb: leave}},
		{"back-off goes before the error visibility timeout", growing, endedDelivery{result: failure, attempt: 3},
			action{retry, 40 * time.Second}},
		{"Retry-After is ignored by default", growing, endedDelivery{result: asks, attempt: 1},
			action{retry, 10 * time.Second}},
		{"Retry-After goes first when respected", polite, endedDelivery{result: asks, attempt: 1},
			action{retry, 90 * time.Second}},
		{"respected but not given", polite, endedDelivery{result: failure, attempt: 1}, action{retry, 10 * time.Second}},
		{"never hidden for more than 12 h from the receive", Options{ErrorVisibilityTimeout: ptr(12 * time.Hour)},
			endedDelivery{result: failure, receivedAt: now.Add(-2 * time.Hour)}, action{retry, 10*time.Hour - time.Second}},
		{"throttled: after the pause, whatever a failure would wait",
			Options{ErrorVisibilityTimeout: ptr(time.Hour), Backoff: Backoff{Min: time.Hour}},
			endedDelivery{result: queue.Result{Outcome: queue.Throttled}, pause: 3 * time.Second},
			action{retry, 3 * time.Second}},
		{"throttled, nothing configured", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Throttled, RetryAfter: time.Hour}, pause: 3 * time.Second},
			action{retry, 3 * time.Second}},
		{"throttled, but the receipt lapsed", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Throttled}, pause: 3 * time.Second, lapsed: true},
			action{verb: leave}},
		{"postponed: kept, whatever is configured", growing,
			endedDelivery{result: queue.Result{Outcome: queue.Postponed}, keepable: true}, action{keep, 100 * time.Millisecond}},
		{"postponed for a time", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Postponed, RetryAfter: 7 * time.Second}, keepable: true},
			action{keep, 7 * time.Second}},
		{"postponed for too short a time", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Postponed, RetryAfter: 1}, keepable: true},
			action{keep, 10 * time.Millisecond}},
		{"postponed for too long a time", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Postponed, RetryAfter: time.Hour}, keepable: true},
			action{keep, time.Minute}},
		{"postponed, cannot be kept", Options{}, endedDelivery{result: queue.Result{Outcome: queue.Postponed}},
			action{verb: returnNow}},
		{"postponed, lapsed", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Postponed}, keepable: true, lapsed: true}, action{verb: returnNow}},
		{"failed at the last receive goes to the dead-letter queue, whatever is configured", growing,
			endedDelivery{result: failure, deadLetter: true}, action{verb: deadLetter}},
		{"failed at the last receive, lapsed", Options{},
			endedDelivery{result: failure, deadLetter: true, lapsed: true}, action{verb: leave}},
		{"done at the last receive", Options{}, endedDelivery{result: queue.Result{Outcome: queue.Done}, deadLetter: true},
			action{verb: remove}},
		{"unreached at the last receive", evt, endedDelivery{result: unreached, deadLetter: true},
			action{retry, 2 * time.Second}},
		{"throttled at the last receive", Options{},
			endedDelivery{result: queue.Result{Outcome: queue.Throttled}, pause: 3 * time.Second, deadLetter: true},
			action{retry, 3 * time.Second}},
		{"what the app wants later goes before all else", polite, endedDelivery{attempt: 3,
			result: queue.Result{Status: 200, RetryAfter: 3 * time.Minute, Instruction: queue.Retry}},
			action{retry, 3 * time.Minute}},
		{"what the app wants at once", growing, endedDelivery{result: queue.Result{Instruction: queue.Retry}},
			action{retry, 0}},
		{"what the app wants later, lapsed", evt, endedDelivery{lapsed: true,
			result: queue.Result{RetryAfter: 3 * time.Minute, Instruction: queue.Retry}}, action{verb: leave}},
		{"what the app wants too late", Options{}, endedDelivery{receivedAt: now.Add(-time.Hour),
			result: queue.Result{RetryAfter: 12 * time.Hour, Instruction: queue.Retry}},
			action{retry, 11*time.Hour - time.Second}},
		{"dropped", evt, endedDelivery{
			result: queue.Result{Outcome: queue.Done, Status: 422, Instruction: queue.Drop}}, action{verb: remove}},
		{"a terminal status that has no dead-letter queue is a failure", evt,
			endedDelivery{result: queue.Result{Status: 422, Instruction: queue.TerminalStatus}},
			action{retry, 2 * time.Second}},
		{"nor for less than nothing", Options{ErrorVisibilityTimeout: ptr(12 * time.Hour)},
			endedDelivery{result: failure, receivedAt: now.Add(-13 * time.Hour)}, action{retry, 0}},
	}
	for _, tt := range tests {
		if tt.d.receivedAt.IsZero() {
			tt.d.receivedAt = now
		}
		if got := decide(&tt.opts, &tt.d, now); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestDecisiveResultSaysMostAboutTheApp(t *testing.T) {
	t.Parallel()
	done, failure := queue.Result{Outcome: queue.Done}, queue.Result{Outcome: queue.Failed}
	unreached, throttled := queue.Result{Outcome: queue.Unreached}, queue.Result{Outcome: queue.Throttled}
	postponed, unsent := queue.Result{Outcome: queue.Postponed}, queue.Result{Outcome: queue.Failed, Unsent: true}
	for _, tt := range []struct {
		name    string
		results []queue.Result
		want    int
	}{
		{"a single one", []queue.Result{unreached}, 0},
		{"a single one that was not sent", []queue.Result{unsent}, 0},
		{"the first answer", []queue.Result{postponed, unreached, throttled, done, failure}, 3},
		{"a failure is an answer", []queue.Result{throttled, failure, done}, 1},
		{"what was not sent is no answer", []queue.Result{unsent, failure}, 1},
		{"refused by the target rather than not reached", []queue.Result{unreached, throttled, unreached}, 1},
		{"not reached rather than postponed", []queue.Result{postponed, unreached, postponed}, 1},
		{"not reached rather than not sent", []queue.Result{unsent, unreached, unsent}, 1},
		{"the first that was not reached", []queue.Result{unreached, unreached, postponed}, 0},
		{"only postponed", []queue.Result{postponed, postponed}, 0},
	} {
		if got := decisive(tt.results); got != &tt.results[tt.want] {
			t.Errorf("%s: got %+v", tt.name, *got)
		}
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond)
	o := Options{Retention: time.Hour}
	tests := []struct {
		name     string
		receives int
		age      time.Duration
		want     bool
	}{
		{"young", 2, 59 * time.Minute, false},
		{"as old as it may be", 2, time.Hour, false},
		{"old", 2, 61 * time.Minute, true},
		{"old, but received for the first time", 1, 61 * time.Minute, false},
	}
	for _, tt := range tests {
		m := queue.Message{ReceiveCount: tt.receives, FirstReceivedAt: now.Add(-tt.age).Truncate(time.Millisecond)}
		if got := expired(&o, &m, now); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	if expired(&o, &queue.Message{ReceiveCount: 9}, now) {
		t.Error("a message without a first receive time must not expire")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		b      Backoff
		random float64
		want   []time.Duration // in seconds, from attempt 1
	}{
		{"doubles, then grows by the last step, up to the maximum",
			Backoff{Min: 10 * time.Second, Max: 300 * time.Second, Doublings: 3}, 0.9,
			[]time.Duration{10, 20, 40, 80, 160, 240, 300, 300}},
		{"no doubling grows linearly", Backoff{Min: 5 * time.Second, Max: time.Minute}, 0, []time.Duration{5, 10, 15}},
		{"jitter takes off its share", Backoff{Min: 100 * time.Second, Doublings: 1, Jitter: 0.5}, 0.5,
			[]time.Duration{75, 150, 300}},
		{"full jitter", Backoff{Min: 100 * time.Second, Jitter: 1}, 0.25, []time.Duration{75, 150}},
		{"jitter beyond its range", Backoff{Min: 100 * time.Second, Jitter: 7}, 0.25, []time.Duration{75}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			if got := tt.b.delay(i+1, tt.random); got != want*time.Second {
				t.Errorf("%s: attempt %d: got %v, want %v", tt.name, i+1, got, want*time.Second)
			}
		}
	}
	if got := (Backoff{Min: time.Hour, Doublings: 60}).delay(1000, 0); got != maxHidden {
		t.Errorf("without a maximum the delay is bounded by %v, got %v", maxHidden, got)
	}
	if got := (Backoff{Min: time.Second, Doublings: 3}).delay(0, 0); got != time.Second {
		t.Errorf("attempt 0 counts as the first, got %v", got)
	}
	if _, ok := retryDelay(&Options{}, &endedDelivery{}); ok {
		t.Error("the back-off is off when Min is not set")
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	for failures, want := range []time.Duration{100, 100, 200, 400, 500, 500} {
		if got := retryWait(failures, 100, 500, 0); got != want {
			t.Errorf("after %d failures: got %d, want %d", failures, got, want)
		}
	}
	if got := retryWait(1, 100, 500, 1); got != 50 {
		t.Errorf("chance takes off up to a half, got %d", got)
	}
	if got := retryWait(5000, time.Second, time.Minute, 0); got != time.Minute {
		t.Errorf("many failures stay at the limit, got %v", got)
	}
}
