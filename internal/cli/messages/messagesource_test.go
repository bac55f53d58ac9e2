package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
	"tendril/queuetest"
)

type sendingQueue struct {
	sent   []queue.Outgoing
	refuse func(body string) error
}

func (o *sendingQueue) Send(_ context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	if len(msgs) > queue.MaxBatch {
		return nil, errors.New("too many at once")
	}
	out := make([]queue.Sent, len(msgs))
	for i, m := range msgs {
		if o.refuse != nil {
			if out[i].Err = o.refuse(m.Body); out[i].Err != nil {
				continue
			}
		}
		o.sent = append(o.sent, m)
		out[i].ID = fmt.Sprint("copy-", len(o.sent))
	}
	return out, nil
}

func (o *sendingQueue) bodies() []string {
	var bodies []string
	for _, m := range o.sent {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

func newSource(t *testing.T, n int, fifo bool) (*sqsSource, *queuetest.Fake, *sendingQueue) {
	t.Helper()
	fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo})
	for i := range n {
		out := queue.Outgoing{Body: fmt.Sprint(i)}
		if fifo {
			out.GroupID = fmt.Sprint("g", i%2)
		}
		if sent, err := fake.Send(t.Context(), []queue.Outgoing{out}); err != nil || sent[0].Err != nil {
			t.Fatal(err, sent)
		}
	}
	to := &sendingQueue{}
	return &sqsSource{
		name: "dead", from: fake, fifo: fifo, source: "jobs",
		open: func(_ context.Context, reference string) (target.Sender, error) {
			if reference != "jobs" && reference != "jobs.fifo" {
				return nil, fmt.Errorf("there is no %s", reference)
			}
			return to, nil
		},
	}, fake, to
}

func run(t *testing.T, p messageSource, which *selector, limit rate.Limit, do func(context.Context, []sourceMessage) (int,
	error)) (int,
	error) {
	t.Helper()
	c := &base.CLI{Err: &strings.Builder{}}
	dead := deadLetterQueues{{cli: c, queue: &target.Queue{Name: "dead"}, count: 10}}
	return dead.forEach(t.Context(), which, func(ctx context.Context, g *deadLetterQueue, s *selection) (int, error) {
		return g.process(ctx, p, s, limit, "done", do)
	})
}

func redriven(p messageSource, to string) func(context.Context, []sourceMessage) (int, error) {
	return func(ctx context.Context, messages []sourceMessage) (int, error) { return p.redrive(ctx, messages, to) }
}

func TestLookingAtSQSGivesEverythingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, _ := newSource(t, 25, false)
		begin := time.Now()
		messages, err := collect(t.Context(), p, (&selector{limit: 15}).begin())
		if err != nil || len(messages) != 15 {
			t.Fatalf("collected %d, %v", len(messages), err)
		}
		if n := fake.Count(queuetest.FakeVisible); n != 25 || time.Since(begin) != 0 {
			t.Errorf("%d of 25 visible after %v", n, time.Since(begin))
		}
		if got := fake.Calls(queuetest.FakeReceive); got != 2 {
			t.Errorf("%d receives for 15 messages, want 2", got)
		}
		all, err := collect(t.Context(), p, (&selector{all: true}).begin())
		if err != nil || len(all) != 25 || fake.Count(queuetest.FakeVisible) != 25 {
			t.Errorf("collected %d of 25, %v; %d visible", len(all), err, fake.Count(queuetest.FakeVisible))
		}
	})
}

func TestGivingBackSurvivesAnInterruption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, _ := newSource(t, 3, false)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range p.read(ctx, 10) {
			cancel()
			break
		}
		if err := p.release(ctx); err != nil || fake.Count(queuetest.FakeVisible) != 3 {
			t.Errorf("%v; %d of 3 visible", err, fake.Count(queuetest.FakeVisible))
		}
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Err: queue.ErrUnreachable} })
		p.holding["x"] = "receipt"
		if err := p.release(t.Context()); !errors.Is(err, queue.ErrUnreachable) ||
			!strings.Contains(err.Error(), "within 5m") {
			t.Errorf("a release that fails: %v", err)
		}
	})
}

func TestReleaseGivesUpOnlyWithoutProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, _ := newSource(t, 40, false)
		delayChanges := func(d time.Duration) {
			fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
				if c.Action == queuetest.FakeChangeVisibility {
					return queuetest.FakeFault{Latency: d}
				}
				return queuetest.FakeFault{}
			})
		}
		delayChanges(releaseTimeout / 2)
		messages, err := collect(t.Context(), p, (&selector{all: true}).begin())
		if n := fake.Count(queuetest.FakeVisible); len(messages) != 40 || n != 40 || err != nil {
			t.Errorf("collected %d, %v; %d of 40 visible", len(messages), err, n)
		}

		delayChanges(time.Hour)
		begin := time.Now()
		_, err = collect(t.Context(), p, (&selector{all: true}).begin())
		if took := time.Since(begin); took != emptyTime+releaseTimeout || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "40 messages") {
			t.Errorf("without a response: %v after %v", err, took)
		}
	})
}

func TestRedriveOnSQS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		selector selector
		want     string
		left     int
	}{
		{"all", selector{all: true}, "0 1 2 3 4 5 6 7 8 9 10 11", 0},
		{"a match", selector{filter: api.Selection{Match: "1"}}, "1 10 11", 9},
		{"a limit", selector{limit: 3}, "0 1 2", 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, fake, to := newSource(t, 12, false)
				n, err := run(t, p, &c.selector, rate.Inf, redriven(p, ""))
				if err != nil || strings.Join(to.bodies(), " ") != c.want || n != len(to.sent) {
					t.Errorf("moved %d (%v): %v", n, err, to.bodies())
				}
				if got := fake.Count(queuetest.FakeVisible); got != c.left {
					t.Errorf("%d are visible in the dead-letter queue, want %d", got, c.left)
				}
			})
		})
	}
}

func TestRedriveByIDSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, to := newSource(t, 12, false)
		all, err := collect(t.Context(), p, (&selector{all: true}).begin())
		if err != nil {
			t.Fatal(err)
		}
		n, err := run(t, p, &selector{ids: []string{all[7].ID, "gone"}}, rate.Inf, redriven(p, ""))
		if n != 1 || base.ExitCode(err) != base.ExitNotFound && !strings.Contains(fmt.Sprint(err), "gone") ||
			!slices.Equal(to.bodies(), []string{"7"}) {
			t.Errorf("moved %d %v, %v", n, to.bodies(), err)
		}
		if got := fake.Count(queuetest.FakeVisible); got != 11 {
			t.Errorf("%d visible, want 11", got)
		}
	})
}

func TestRedriveKeepsAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, to := newSource(t, 12, false)
		begin := time.Now()
		if _, err := run(t, p, &selector{limit: 12}, 2, redriven(p, "")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); len(to.sent) != 12 || took != 5*time.Second {
			t.Errorf("%d messages at 2/s took %v; want 5s, two of them at once", len(to.sent), took)
		}
	})
}

func TestRefusedMessagesStayDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, to := newSource(t, 5, false)
		to.refuse = func(body string) error {
			if body == "2" {
				return &queue.Error{Code: queue.CodeOverLimit}
			}
			return nil
		}
		n, err := run(t, p, &selector{all: true}, rate.Inf, redriven(p, ""))
		if n != 4 || !errors.Is(err, &queue.Error{Code: queue.CodeOverLimit}) || fake.Count(queuetest.FakeVisible) != 1 {
			t.Errorf("moved %d, %v; %d left", n, err, fake.Count(queuetest.FakeVisible))
		}
	})
}

func TestNothingIsDeletedBeforeItsCopyIsSafe(t *testing.T) {
	t.Parallel()
	for fault := range 8 {
		synctest.Test(t, func(t *testing.T) {
			p, fake, to := newSource(t, 25, false)
			calls := 0
			broken := func() error {
				if calls++; calls == fault {
					return queue.ErrUnreachable
				}
				return nil
			}
			fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Err: broken()} })
			to.refuse = func(string) error { return broken() }
			_, _ = run(t, p, &selector{all: true}, rate.Inf, redriven(p, ""))
			fake.SetFault(nil)
			rest, err := collect(t.Context(), &sqsSource{from: fake}, (&selector{all: true}).begin())
			if err != nil {
				t.Fatal(err)
			}
			safe := map[string]bool{}
			for _, body := range to.bodies() {
				safe[body] = true
			}
			for _, m := range rest {
				safe[m.Body] = true
			}
			if len(safe) != 25 {
				t.Errorf("with fault %d only %d of 25 messages are left", fault, len(safe))
			}
		})
	}
}

func TestRedriveOnFIFOKeepsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, fake, to := newSource(t, 9, true)
		p.source = "jobs.fifo"
		n, err := run(t, p, &selector{all: true}, rate.Inf, redriven(p, ""))
		if err != nil || n != 9 || fake.Count(queuetest.FakeVisible) != 0 {
			t.Fatalf("moved %d, %v", n, err)
		}
		last := map[string]string{}
		ids := map[string]bool{}
		for _, m := range to.sent {
			if m.Body <= last[m.GroupID] && last[m.GroupID] != "" {
				t.Errorf("group %s: %s came after %s", m.GroupID, m.Body, last[m.GroupID])
			}
			last[m.GroupID] = m.Body
			ids[m.DedupID] = true
			if !strings.HasPrefix(m.DedupID, "redrive-") {
				t.Errorf("deduplication id %q", m.DedupID)
			}
		}
		if len(ids) != 9 {
			t.Errorf("%d deduplication ids for 9 messages", len(ids))
		}
	})
}

func TestARefusedMessageIsNotOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, to := newSource(t, 6, true)
		p.source = "jobs.fifo"
		to.refuse = func(body string) error {
			if body == "2" {
				return &queue.Error{Code: queue.CodeOverLimit}
			}
			return nil
		}
		if _, err := run(t, p, &selector{all: true}, rate.Inf, redriven(p, "")); !errors.Is(err,
			&queue.Error{Code: queue.CodeOverLimit}) {
			t.Errorf("error %v", err)
		}
		if slices.Contains(to.bodies(), "4") {
			t.Errorf("sent %v: 4 overtook the refused 2 of its group", to.bodies())
		}
	})
}

func TestCopiesKeepEverything(t *testing.T) {
	t.Parallel()
	m := api.Message{ID: "m1", Body: "x",
		Attributes: api.Attributes{{Name: "raw", Type: "Binary", Value: "\x00"}}, GroupID: "g", TraceHeader: "Root=1",
		DedupID: "old"}
	got := copies([]sourceMessage{{Message: m}}, false)
	want := []queue.Outgoing{{Body: "x", Attributes: m.Attributes, GroupID: "g", TraceHeader: "Root=1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	large := sourceMessage{Message: api.Message{Body: strings.Repeat("x", 400<<10)}}
	if n := len(copies([]sourceMessage{large, large, large}, false)); n != 2 {
		t.Errorf("%d messages of 400 KiB in one send, want 2", n)
	}
	huge := sourceMessage{Message: api.Message{Body: strings.Repeat("x", 2<<20)}}
	if n := len(copies([]sourceMessage{huge, large}, false)); n != 1 {
		t.Errorf("%d messages in one send, want the first alone", n)
	}
}

func TestRedriveKnowsWhereTo(t *testing.T) {
	t.Parallel()
	p := &sqsSource{source: "jobs"}
	from := func(sources ...string) []sourceMessage {
		var all []sourceMessage
		for _, s := range sources {
			all = append(all, sourceMessage{Message: api.Message{ID: "m", DeadLetterSource: s}})
		}
		return all
	}
	for _, c := range []struct {
		messages []sourceMessage
		to       string
		want     string
		n        int
	}{
		{from("arn:aws:sqs:us-east-1:1:a", "arn:aws:sqs:us-east-1:1:a", "arn:aws:sqs:us-east-1:1:b"), "", "a", 2},
		{from("", "a"), "", "jobs", 1},
		{from("a", "b", ""), "c", "c", 3},
	} {
		got, err := p.destination(t.Context(), &c.messages[0], c.to)
		if n := p.sameDestination(c.messages, c.to); got != c.want || n != c.n || err != nil {
			t.Errorf("%s, %d, %v; want %s, %d", got, n, err, c.want, c.n)
		}
	}
	p.source = ""
	if _, err := p.destination(t.Context(), &from("")[0], ""); base.ExitCode(err) != base.ExitUsage {
		t.Errorf("no source: %v", err)
	}
}

func TestSiblingURL(t *testing.T) {
	t.Parallel()
	if got := target.SiblingURL("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
		"jobs-dead"); got != "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs-dead" {
		t.Error(got)
	}
}

func reasonOf(source string) queue.Attribute {
	return queue.Attribute{Name: queue.AttributeReason, Type: "String",
		Value: `{"reason":"HTTP 500","message_id":"m","source":"arn:aws:sqs:eu-west-1:123456789012:` + source + `"}`}
}

// Forged reason attributes must be ignored.
func TestReasonsDecideWhereDeadLettersGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, source, to, want string // want is the queue, or a substring of the error
		sources                []string
		fails                  bool
	}{
		{name: "a queue that sends here", source: "jobs", sources: []string{"mails", "jobs"}, want: "jobs"},
		{name: "a queue that does not", source: "payments", sources: []string{"mails", "jobs"},
			want: "came from payments, which does not use this dead-letter queue", fails: true},
		{name: "a queue that does not, but --to is given", source: "payments", to: "jobs", want: "jobs"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, fake, to := newSource(t, 0, false)
			p.source = "other"
			var asked int
			p.sources = func(context.Context) ([]string, error) { asked++; return tt.sources, nil }
			own := queue.Attribute{Name: "n", Type: "Number", Value: "7"}
			for range 12 {
				if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: "b",
					Attributes: []queue.Attribute{own, reasonOf(tt.source)}}}); err != nil {
					t.Fatal(err)
				}
			}
			n, err := run(t, p, &selector{all: true}, rate.Inf, redriven(p, tt.to))
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(to.sent) > 0 ||
					fake.Count(queuetest.FakeVisible) != 12 {
					t.Errorf("%s: moved %d, %v", tt.name, n, err)
				}
				return
			}
			if err != nil || n != 12 || len(to.sent) != 12 || asked > 1 {
				t.Fatalf("%s: moved %d, %v; asked %d times", tt.name, n, err, asked)
			}
			if diff := cmp.Diff([]queue.Attribute{own}, to.sent[11].Attributes); diff != "" {
				t.Errorf("%s: attributes (-want +got)\n%s", tt.name, diff)
			}
		})
	}
}
