package environment

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/config"
	"tendril/logging"
	"tendril/worker"
)

// spoken is an environment whose lines go to the buffer.
func spoken() (*Environment, *bytes.Buffer) {
	var out bytes.Buffer
	return &Environment{report: &report{logging.New(logging.Options{Out: &out})}}, &out
}

// TestThrottledIsSaidNowAndThen: a function that refuses each invocation of many
// is told of once, and again as long as it goes on.
func TestThrottledIsSaidNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, out := spoken()
		jobs, mails := e.throttleVoice("jobs", "lambda:f"), e.throttleVoice("mails", "lambda:f")
		for range 25 {
			jobs(worker.Throttled{For: time.Second, Reason: "too many requests"})
			time.Sleep(time.Second)
		}
		mails(worker.Throttled{For: time.Second})
		if n := strings.Count(out.String(), "nothing is received from jobs for 1s"); n != 3 {
			t.Errorf("%d lines about jobs in 25 s, want 3:\n%s", n, out)
		}
		if n := strings.Count(out.String(), "nothing is received from mails"); n != 1 {
			t.Errorf("%d lines about the first of mails, want 1", n)
		}
	})
}

func TestLimitsAreNamed(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"rate": "are kept back by the limit of rate", "breaker": "are kept back by the breaker",
		"limit": "are kept back by the limits", "": "are kept back by the limits",
	} {
		e, out := spoken()
		e.limited("jobs", worker.Limited{Reason: reason})
		e.limited("jobs", worker.Limited{Reason: reason, Over: true, For: time.Second})
		if was := strings.Replace(want, "are", "were", 1) + " for 1s\""; !strings.Contains(out.String(), want+"\"") ||
			!strings.Contains(out.String(), was) {
			t.Errorf("%q: %s", reason, out)
		}
	}
}

// TestOrderIsThatOfJoining: a queue that only a periodic task uses is looked at
// first, though it was made last.
func TestOrderIsThatOfJoining(t *testing.T) {
	t.Parallel()
	of := func(weight int) *Environment {
		e := &Environment{}
		for _, name := range []string{"jobs", "mails", "nightly"} {
			l := newLine(&config.QueueSettings{Weight: weight})
			l.queue, l.forTask = queueRef{name: name}, name == "nightly"
			e.lines = append(e.lines, l)
		}
		return e
	}
	if got, want := of(0).orderText(), "nightly, then jobs, then mails"; got != want {
		t.Errorf("strict: %q, want %q", got, want)
	}
	if got, want := of(1).orderText(), "nightly 33%, jobs 33%, mails 33% of free slots"; got != want {
		t.Errorf("by weight: %q, want %q", got, want)
	}
}
