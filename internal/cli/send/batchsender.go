package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type batchSender struct {
	c        *base.CLI
	to       target.Sender
	format   base.Format
	many     bool
	wait     bool
	verbose  bool
	embedded []string // the destination and its dead-letter queue; nil on Amazon SQS
	bar      *progressbar.ProgressBar

	batch   []line
	bytes   int
	sent    []string
	refused int
}

func (o *batchSender) send(ctx context.Context, messages iter.Seq2[line, error]) error {
	defer func() { _ = o.bar.Finish() }()
	if err := o.sendBatches(ctx, messages); err != nil {
		if o.many && len(o.sent) > 0 {
			o.c.PrintErrf("%s sent before this\n", base.Plural(len(o.sent), "message"))
		}
		return err
	}
	if o.refused > 0 {
		return base.Failedf("%d of %s rejected", o.refused, base.Plural(o.refused+len(o.sent), "message"))
	}
	return nil
}

func (o *batchSender) sendBatches(ctx context.Context, messages iter.Seq2[line, error]) error {
	for l, err := range messages {
		if err != nil {
			return errors.Join(o.flush(ctx), err)
		}
		if !l.msg.IsValidUTF8() {
			if !o.many {
				return base.Usagef("the message is not valid UTF-8").
					Hint("send bytes as a Binary attribute, or encode them with base64")
			}
			o.refused++
			o.c.PrintErrf("tendril: line %d: the message is not valid UTF-8\n", l.number)
			continue
		}

		size := l.msg.Size()
		if len(o.batch) == queue.MaxBatch || o.bytes+size > target.MaxBatchBytes {
			if err := o.flush(ctx); err != nil {
				return err
			}
		}
		o.batch = append(o.batch, l)
		o.bytes += size
	}
	return o.flush(ctx)
}

func (o *batchSender) flush(ctx context.Context) error {
	if len(o.batch) == 0 {
		return nil
	}

	batch := o.batch
	o.batch, o.bytes = nil, 0
	msgs := make([]queue.Outgoing, len(batch))
	for i := range batch {
		msgs[i] = batch[i].msg
	}

	results, err := o.sendAll(ctx, msgs)
	if err != nil {
		return base.Explained(withSendHint(err))
	}

	for i, r := range results {
		if r.Err != nil && !o.many {
			return base.Explained(withSendHint(r.Err))
		}
		if r.Err != nil {
			o.refused++
			o.c.PrintErrf("tendril: line %d: %v\n", batch[i].number, r.Err)
			continue
		}
		o.sent = append(o.sent, r.ID)
		if err := o.print(r); err != nil {
			return err
		}
	}

	return o.bar.Add(len(batch))
}

// sendAll sends the messages one by one if a FIFO queue rejects the batch, to find those without a group or
// deduplication ID.
func (o *batchSender) sendAll(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	results, err := o.to.Send(ctx, msgs)
	if err == nil || sendHint(err) == "" {
		return results, err
	}
	if len(msgs) == 1 {
		return []queue.Sent{{Err: err}}, nil
	}
	results = results[:0]
	for i := range msgs {
		one, err := o.sendAll(ctx, msgs[i:i+1])
		if err != nil {
			return nil, err
		}
		results = append(results, one...)
	}
	return results, nil
}

func sendHint(err error) string {
	for text, hint := range map[string]string{
		"must contain the parameter MessageGroupId":  "a FIFO queue needs a message group: add --group NAME",
		"MessageDeduplicationId provided explicitly": "add --dedup ID, or create the queue with --attribute ContentBasedDeduplication=true",
	} {
		if strings.Contains(err.Error(), text) {
			return hint
		}
	}
	return ""
}

func withSendHint(err error) error {
	if hint := sendHint(err); hint != "" {
		return base.Fail(base.ExitUsage, err, hint)
	}
	return err
}

func (o *batchSender) print(r queue.Sent) error {
	switch {
	case o.wait && o.many:
		return nil
	case o.wait:
		_, err := o.c.PrintErrf("message %s sent; waiting for its first attempt\n", r.ID)
		return err
	}
	return o.format.PrintEach(o.c, struct {
		ID             string `json:"message_id"`
		SequenceNumber string `json:"sequence_number,omitempty"`
	}{r.ID, r.SequenceNumber}, r.ID, r.ID)
}

func dialReceiver(w *target.Flags, p *target.Queue) (*api.Client, error) {
	client, err := w.Dial()
	if err != nil {
		return nil, fmt.Errorf("calling the environment that receives from the queue, for --wait: %w", err)
	}
	i := client.Instance
	if p.WorkedOnBy(&i) {
		return client, nil
	}
	works := cmp.Or(target.QueueNames(&i, ""), "no queue")
	return nil, base.Usagef("--wait would never return: environment %q receives from %s, not from %s", i.Environment,
		works, p.Name).Hint("omit --wait, or add the --data-dir of the environment that receives from it")
}

func (o *batchSender) awaitOutcomes(ctx context.Context, watch *api.Client, timeout time.Duration) error {
	var failed, running, unknown int
	for _, id := range o.sent {
		first, err := o.awaitOutcome(ctx, watch, id, timeout)
		if err != nil {
			return err
		}
		switch d := &first.delivery; {
		case d.Outcome == api.InWork:
			running++
		case !first.known || !d.Tried():
			unknown++
		case !d.Done():
			failed++
		}
		if err := o.printFirstOutcome(ctx, watch, first); err != nil {
			return err
		}
	}

	return attemptsError(failed, running, unknown)
}

type firstOutcome struct {
	delivery api.Delivery
	answer   string // the app's full answer, if it is stored
	known    bool
}

func (o *batchSender) awaitOutcome(ctx context.Context, watch *api.Client, id string, timeout time.Duration) (
	firstOutcome, error) {
	d, known, err := watch.Outcome(ctx, id, timeout)
	reason := "no attempt within " + timeout.String()
	if api.HasStatus(err, http.StatusConflict) { // draining
		reason, err = err.Error(), nil
	}
	if err != nil || d.Done() || d.Outcome == api.InWork {
		return firstOutcome{delivery: d, known: known}, err
	}

	last := o.lastStoredAttempt(ctx, watch, id)
	switch {
	case !known && last.Outcome != "":
		d = api.Delivery{MessageID: id, Queue: o.embedded[0], Outcome: last.Outcome, Status: last.Status,
			Reason: last.Reason, ReceiveCount: last.ReceiveCount, DurationMS: last.DurationMS, At: last.At,
			RetryAt: last.RetryAt}
		known = true
	case !known:
		d = api.Delivery{MessageID: id, Outcome: "unknown", Reason: reason}
	}
	return firstOutcome{d, last.Answer, known}, nil
}

func (o *batchSender) lastStoredAttempt(ctx context.Context, watch *api.Client, id string) (last api.Attempt) {
	for _, name := range o.embedded {
		m, err := watch.Message(ctx, name, id)
		if n := len(m.Attempts); err == nil && n > 0 {
			last = m.Attempts[n-1]
		}
	}
	return last
}

func (o *batchSender) printFirstOutcome(ctx context.Context, watch *api.Client, first firstOutcome) error {
	d := first.delivery
	var x *api.Exchange
	if o.verbose && first.known && d.Tried() {
		recorded, err := watch.Exchange(ctx, d.MessageID)
		switch {
		case api.HasStatus(err, http.StatusNotFound):
			o.c.PrintErrf("no request recorded for message %s: it went to a function, not to an app\n", d.MessageID)
		case err != nil:
			return err
		default:
			x = &recorded
		}
	}

	if x != nil && o.format == base.AsTable {
		if err := PrintExchange(o.c, x); err != nil {
			return err
		}
	}
	if err := o.format.PrintEach(o.c, outcomeJSON{d, x}, d.MessageID, base.Plain(deliveryText(d))); err != nil {
		return err
	}
	if o.format == base.AsTable && first.answer != d.Answer {
		return PrintAnswer(o.c, first.answer)
	}
	return nil
}

func embeddedNames(client *api.Client, to *target.Queue) (names []string) {
	for _, q := range client.Instance.Queues {
		if to.Remote == nil && q.Embedded && q.Name == to.Name {
			names = append(names, q.Name)
			if q.DeadLetterQueue != "" {
				names = append(names, q.DeadLetterQueue)
			}
		}
	}
	return names
}

type outcomeJSON struct {
	api.Delivery
	Exchange *api.Exchange `json:"exchange,omitempty"`
}

func attemptsError(failed, running, unknown int) error {
	var found, hints []string
	for _, kind := range []struct {
		count      int
		what, hint string
	}{
		{failed, "failed", "failed messages are retried until they succeed or are dead-lettered; " +
			"'tendril status' shows the worker"},
		{running, "still running", "'tendril status' shows them; a longer --timeout waits for them to finish"},
		{unknown, "not attempted in time", "'tendril status' shows the state of the worker"},
	} {
		if kind.count > 0 {
			found = append(found, base.Plural(kind.count, "message")+" "+kind.what)
			hints = append(hints, kind.hint)
		}
	}

	if len(found) == 0 {
		return nil
	}

	return base.Failedf("first attempt: %s", strings.Join(found, ", ")).Hint(hints...)
}

func deliveryText(d api.Delivery) string {
	text := fmt.Sprintf("%s %s", d.MessageID, d.Outcome)
	switch {
	case d.Done():
		status := cmp.Or(d.Reason, fmt.Sprintf("HTTP %d", d.Status))
		return fmt.Sprintf("%s: %s in %d ms, %d ms after the send", text, status, d.DurationMS, d.WaitMS+d.DurationMS)
	case d.Outcome == api.InWork:
		return fmt.Sprintf("%s: attempt %d has been running for %d ms", text, d.Attempt, d.DurationMS)
	}

	if d.Reason != "" {
		text += ": " + d.Reason
	}
	if d.Answer != "" {
		text += ` "` + d.Answer + `"`
	}

	if d.ReceiveCount > 0 {
		text += fmt.Sprintf(" (receive %d)", d.ReceiveCount)
	}

	switch {
	case d.DeadLetterQueue != "":
		text += ", the last attempt: moved to " + d.DeadLetterQueue
	case !d.RetryAt.IsZero():
		text += ", next attempt at " + d.RetryAt.Local().Format("15:04:05")
	}

	return text
}
