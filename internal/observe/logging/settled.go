package logging

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"tendril/internal/host/terminal"
	"tendril/internal/worker"
	"tendril/queue"
)

// Redelivery describes an unfinished message's next redelivery.
type Redelivery struct {
	Known bool // the redrive policy is known, or not needed
	// DeadLetterQueue is set if the message moves there next.
	DeadLetterQueue string
	MaxReceives     int
}

// Sent prints the start of a delivery in the aws-sqsd format.
func (l *Logger) Sent(target func() string) {
	if l.opts.Format != SQSD || l.quiet() {
		return
	}
	if ok, _ := l.sampler.admit(queue.Done, time.Now()); ok {
		l.printer.print(func(b *bytes.Buffer) { b.Write(appendSqsdSent(b.AvailableBuffer(), time.Now(), target())) })
	}
}

// Settled prints the result of a delivery.
func (l *Logger) Settled(name, target string, s *worker.Settled, next Redelivery) {
	done := s.Outcome == queue.Done
	ignoresFailure := done && s.Reason != "" && s.Instruction != queue.Drop
	silent := done && (l.quiet() || l.opts.Format == SQSD)
	if silent && !ignoresFailure {
		return
	}
	now := time.Now()
	if !l.allow(s.Outcome, now) {
		return
	}

	if ignoresFailure {
		aboutMessage(l.With("component", "worker", "queue", name), s.ID, s.Task).Warn("message deleted, failures in response ignored",
			"target", target, "reason", s.Reason)
	}
	if silent {
		return
	}
	if o := l.observer.Load(); o != nil {
		var b bytes.Buffer
		l.appendSettled(false, &b, name, s, next, now)
		o.lines(&Record{At: now, Level: levelOf(s.Outcome), Text: b.String()})
	}

	switch l.opts.Format {
	case SQSD:
		l.printer.print(func(b *bytes.Buffer) { b.Write(appendSqsdSettled(b.AvailableBuffer(), now, s)) })
	case Text:
		l.printer.print(func(b *bytes.Buffer) {
			l.color.paint(b, dim, now.Format(time.TimeOnly))
			b.WriteByte(' ')
			l.appendSettled(l.color, b, name, s, next, now)
		})
	default:
		l.logSettled(name, target, s, next)
	}
}

func (l *Logger) logSettled(name, target string, s *worker.Settled, next Redelivery) {
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("component", "worker"), slog.String("queue", name), slog.String("message_id", s.ID),
		slog.String("target", target), slog.Int("attempt", s.Attempt), slog.Int("receive_count", s.ReceiveCount),
		slog.String("outcome", s.Outcome.String()), slog.Int64("duration_ms", s.Duration.Milliseconds()),
		slog.Int64("wait_ms", s.Wait.Milliseconds()))
	add := func(known bool, a slog.Attr) {
		if known {
			attrs = append(attrs, a)
		}
	}

	last := next.DeadLetterQueue != ""
	add(s.Task != "", slog.String("task", s.Task))
	add(s.Status != 0, slog.Int("status", s.Status))
	add(s.Reason != "", slog.String("reason", s.Reason))
	add(s.Answer != "" && !l.quiet(), slog.String("answer", s.Answer))
	add(last, slog.Bool("last_attempt", true))
	add(last, slog.String("dead_letter_queue", next.DeadLetterQueue))
	add(!last && !s.NextRetry.IsZero(), slog.Time("next_retry_at", s.NextRetry))
	add(s.Late, slog.Bool("late", true))
	add(s.Err != nil, slog.Any("err", s.Err))
	l.printing.LogAttrs(context.Background(), levelOf(s.Outcome), "settled", attrs...)
}

func (l *Logger) appendSettled(p painter, b *bytes.Buffer, name string, s *worker.Settled, next Redelivery, now time.Time) {
	mark, color := "✓ ", green
	if s.Outcome != queue.Done {
		mark, color = "✗ ", red
	}
	p.paint(b, color, mark)
	status := "---"
	if s.Status != 0 {
		status = fmt.Sprint(s.Status)
	}
	fmt.Fprintf(b, "%s %7s  ", status, roundedText(s.Duration))
	p.paint(b, dim, s.ID)
	fmt.Fprintf(b, "  %s", terminal.Plain(name, false))
	if s.Task != "" {
		fmt.Fprintf(b, " task %s", terminal.Plain(s.Task, false))
	}

	switch {
	case s.Outcome == queue.Done && s.Instruction == queue.Drop:
		l.appendAttempt(b, s)
	case s.Outcome == queue.Done && s.Attempt > 1:
		fmt.Fprintf(b, "  attempt %d", s.Attempt)
	case s.Outcome == queue.Done:
	case s.Outcome == queue.Unreached && s.NextRetry.IsZero():
		fmt.Fprintf(b, "  no attempt: %s; retried when the app is ready", terminal.Plain(s.Reason, false))
	default:
		l.appendAttempt(b, s)
		appendNext(b, s, next, now)
	}
}

func (l *Logger) appendAttempt(b *bytes.Buffer, s *worker.Settled) {
	fmt.Fprintf(b, "  attempt %d: %s", s.Attempt, terminal.Plain(s.Reason, false))
	if s.Answer != "" && !l.quiet() {
		fmt.Fprintf(b, " \"%s\"", terminal.Plain(s.Answer, false))
	}
}

func appendNext(b *bytes.Buffer, s *worker.Settled, next Redelivery, now time.Time) {
	in := max(s.NextRetry.Sub(now), 0).Round(time.Second)
	switch {
	case s.DeadLettering && s.Instruction.DeadLetters():
		fmt.Fprintf(b, "; moving to %s now", next.DeadLetterQueue)
	case s.DeadLettering:
		fmt.Fprintf(b, "; last of %d, moving to %s now", next.MaxReceives, next.DeadLetterQueue)
	case s.NextRetry.IsZero():
	case next.DeadLetterQueue != "":
		fmt.Fprintf(b, "; last of %d, moving to %s in %s", next.MaxReceives, next.DeadLetterQueue, in)
	case next.Known:
		fmt.Fprintf(b, "; next in %s", in)
	default:
		fmt.Fprintf(b, "; visible again in %s", in)
	}
}
