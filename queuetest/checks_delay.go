package queuetest

import (
	"context"
	"time"

	"tendril/queue"
)

var delayChecks = map[string]check{
	"D1 delay: the queue's delay hides and is counted apart": func(e *checkRun) {
		q := e.create(attrs{"DelaySeconds": seconds(2 * e.short)})
		e.validFor(2 * e.short)
		e.send(q, text("b"))
		e.wantEmpty("it is delayed", q)
		e.wantCounts(q, "with a delay", "0", "0", "1")
		e.endValidity()
		e.wantReceives("after the delay", e.take(q), 1)
	},
	"D1 delay: a message's own delay wins, 0 too": func(e *checkRun) {
		q := e.create(attrs{"DelaySeconds": "60"})
		e.validFor(2 * e.short)
		e.send(q, queue.Outgoing{Body: "later", Delay: new(2 * e.short)},
			queue.Outgoing{Body: "now", Delay: new(time.Duration)}, text("much later"))
		e.wantNext("at once", q, "now")
		e.wantEmpty("the others are delayed", q)
		e.endValidity()
		e.wantNext("when its delay is over", q, "later")
	},
	"D2 delay: a FIFO message has none of its own": func(e *checkRun) {
		q := e.fifo(nil)
		m := grouped("g", "d", "b")
		m.Delay = new(2 * e.short)
		e.wantRefused("a delay", q, []queue.Outgoing{m}, queue.CodeInvalidParameterValue)
		m.Delay = new(time.Duration)
		e.send(q, m)
		e.take(q)
	},
	"D2 delay: a FIFO queue's delay holds for all": func(e *checkRun) {
		q := e.fifo(attrs{"DelaySeconds": seconds(2 * e.short)})
		m := grouped("g", "d", "b")
		m.Delay = new(time.Duration) // unlike on a standard queue, 0 does not override the queue's delay
		e.validFor(2 * e.short)
		e.send(q, m)
		e.wantEmpty("the queue delays it", q)
		e.endValidity()
		e.take(q)
	},
}

const longestWait = 20 * time.Second

var pollChecks = map[string]check{
	"D3 poll: the call's wait wins over the queue's": func(e *checkRun) {
		q := e.create(attrs{"ReceiveMessageWaitTimeSeconds": seconds(longestWait)})
		e.within(longestWait-time.Second, func(ctx context.Context) {
			got, err := q.Receive(ctx, queue.ReceiveRequest{Max: 1, Wait: new(time.Duration)})
			if err != nil || len(got) > 0 {
				e.errorf("a wait of 0 on a queue with 20 s: %s, %v", bodies(got), err)
			}
		})
	},
	"D3 poll: the queue's wait holds without another": func(e *checkRun) {
		q := e.create(attrs{"ReceiveMessageWaitTimeSeconds": seconds(longestWait)})
		time.AfterFunc(e.short, func() { e.sendLater(q, "b") })
		e.within(longestWait-time.Second, func(ctx context.Context) {
			if got, err := q.Receive(ctx, queue.ReceiveRequest{Max: 1}); err != nil || len(got) != 1 {
				e.errorf("a message was sent during the poll: received %s, %v", bodies(got), err)
			}
		})
	},
	"D4 poll: returns with the first message, does not wait to fill": func(e *checkRun) {
		q := e.standard()
		time.AfterFunc(e.short, func() { e.sendLater(q, "b") })
		e.within(longestWait-time.Second, func(ctx context.Context) {
			got, err := q.Receive(ctx, queue.ReceiveRequest{Max: 10, Wait: new(longestWait)})
			if err != nil || len(got) != 1 {
				e.errorf("received %s, %v; want the message that was sent meanwhile", bodies(got), err)
			}
		})
	},
	"poll: sees what becomes visible again": func(e *checkRun) {
		q := e.standard("b")
		m := e.receiveOne(q, time.Hour)
		time.AfterFunc(e.short, func() {
			if err := e.change(q, m.ReceiptHandle, 0); err != nil {
				e.errorf("showing the message: %v", err)
			}
		})
		e.wantNext("during the poll", q, "b")
	},
	"poll: many at once share the messages": checkManyPolls,
}

func (e *checkRun) within(limit time.Duration, do func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	do(ctx)
	if ctx.Err() != nil {
		e.errorf("no response within %s", limit)
	}
}

// sendLater may run outside the check's goroutine.
func (e *checkRun) sendLater(q Queue, body string) {
	if sent, err := q.Send(e.ctx, []queue.Outgoing{text(body)}); err != nil || sent[0].Err != nil {
		e.errorf("sending %q: %v, %v", body, sent, err)
	}
}

// Each message must be received, and once unless the suite sets Repeats.
func checkManyPolls(e *checkRun) {
	const receivers, messages = 4, 60
	q := e.standard()
	got := make(chan string, 2*messages)
	done := make(chan struct{}, receivers)
	for range receivers {
		go func() {
			defer func() { done <- struct{}{} }()
			e.receiveUntilEmpty(q, got)
		}()
	}

	missing := map[string]bool{}
	for len(missing) < messages {
		var batch []queue.Outgoing
		for range queue.MaxBatch {
			body := string(rune('!' + len(missing)))
			missing[body] = true
			batch = append(batch, text(body))
		}
		e.send(q, batch...)
	}
	for range receivers {
		<-done
	}

	close(got)
	received := map[string]bool{}
	for body := range got {
		if !missing[body] && !(received[body] && e.suite.Repeats) {
			e.errorf("%q was received twice, or never sent", body)
		}
		delete(missing, body)
		received[body] = true
	}
	if len(missing) > 0 {
		e.errorf("%d of %d messages were never received", len(missing), messages)
	}
}

func (e *checkRun) receiveUntilEmpty(q Queue, got chan<- string) {
	wait := 10 * time.Second
	visibility := 5 * time.Minute
	for {
		part, err := q.Receive(e.ctx, queue.ReceiveRequest{Max: 10, Wait: &wait, Visibility: &visibility})
		if err != nil {
			e.errorf("receiving: %v", err)
			return
		}
		if len(part) == 0 {
			return
		}
		for _, m := range part {
			got <- m.Body
		}
		if errs := q.Delete(e.ctx, receiptsOf(part)); errs != nil {
			e.errorf("deleting: %v", errs)
		}
	}
}
