package send

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

func TestAttemptsError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failed, running, unknown int
		want                     string
	}{
		{0, 0, 0, ""}, {2, 0, 0, "first attempt: 2 messages failed"}, {0, 0, 1, "1 message not attempted in time"},
		{0, 2, 0, "2 messages still running"}, {1, 0, 1, "first attempt: 1 message failed, 1 message not attempted in time"},
	} {
		err := attemptsError(c.failed, c.running, c.unknown)
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || base.ExitCode(err) != base.ExitFailed || len(base.HintsOf(err)) == 0) {
			t.Errorf("attemptsError(%d, %d, %d) = %v, want %q", c.failed, c.running, c.unknown, err, c.want)
		}
	}
}

func TestSendKeepsWithinTheSizeOfABatch(t *testing.T) {
	t.Parallel()
	var calls []int
	o := &batchSender{c: &base.CLI{Out: io.Discard, Err: io.Discard}, many: true,
		to: sendFunc(func(msgs []queue.Outgoing) []queue.Sent {
			bytes := 0
			for i := range msgs {
				bytes += msgs[i].Size()
			}
			if bytes > target.MaxBatchBytes && len(msgs) > 1 {
				t.Errorf("%d messages of %d bytes in one call", len(msgs), bytes)
			}
			calls = append(calls, len(msgs))
			return make([]queue.Sent, len(msgs))
		})}
	o.bar = o.c.Progress(-1, "sent", false)
	var lines strings.Builder
	for range 3 {
		lines.WriteString(strings.Repeat("x", 500<<10) + "\n")
	}
	for range 12 {
		lines.WriteString("x\n")
	}
	if err := o.send(t.Context(), messagesIn(strings.NewReader(lines.String()), true)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, []int{2, 10, 3}) {
		t.Errorf("messages per call %v, want 2, 10, 3", calls)
	}
}

func TestDeliveryTexts(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "done", Status: 200, DurationMS: 12,
			WaitMS: 3}): "m1 done: HTTP 200 in 12 ms, 15 ms after the send",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "failed", Reason: "HTTP 500",
			ReceiveCount: 2}): "m1 failed: HTTP 500 (receive 2)",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "unreached", Reason: "connection refused",
			RetryAt: time.Unix(0, 0)}): "m1 unreached: connection refused, next attempt at " +
			time.Unix(0, 0).Format("15:04:05"),
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "filtered"}): "m1 filtered",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: api.InWork, Attempt: 2,
			DurationMS: 900}): "m1 in work: attempt 2 has been running for 900 ms",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "failed", Reason: "HTTP 500", Answer: "oops",
			DeadLetterQueue: "jobs-dead"}): `m1 failed: HTTP 500 "oops", the last attempt: moved to jobs-dead`,
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

type sendFunc func([]queue.Outgoing) []queue.Sent

func (f sendFunc) Send(_ context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	return f(msgs), nil
}
