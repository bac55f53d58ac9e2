package environment

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tendril/config"
	"tendril/queue"
	"tendril/terminal"
	"tendril/worker"
)

// report prints what a person or a machine wants to read while the environment
// runs: short lines on a terminal, one JSON object per line elsewhere. Quiet
// leaves warnings and errors.
type report struct {
	log   *slog.Logger
	text  bool
	color bool
	quiet bool
	// sqsd prints deliveries as aws-sqsd does.
	sqsd bool
	// sample leaves out lines about deliveries when there are too many.
	sample *sampler
	kinds  [queue.Postponed + 1]*sample // by outcome

	mu  sync.Mutex
	out io.Writer
	buf bytes.Buffer
}

func newReport(opts *Options) *report {
	most := opts.Config.LogSample
	if most == 0 {
		most = -1 // all of them
	}
	r := &report{
		out: opts.Out, log: opts.Logger, text: opts.Terminal, color: opts.Color, quiet: opts.Config.Quiet,
		sqsd: opts.Config.LogFormat == config.LogSQSD, sample: newSampler(most),
	}
	for o := range r.kinds {
		r.kinds[o] = r.sample.of("worker", queue.Outcome(o).String())
	}
	return r
}

// leftOut tells how many lines were left out.
func (r *report) leftOut(all []leftOut) {
	for _, l := range all {
		level := slog.LevelInfo
		if l.kind.outcome != queue.Done.String() {
			level = slog.LevelWarn
		}
		r.note(level, l.kind.component, l.String()+" ("+l.kind.outcome+")", slog.String("outcome", l.kind.outcome),
			slog.Int("lines", l.lines))
	}
}

// tally tells once a second what was left out, until ctx ends.
func (r *report) tally(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.leftOut(r.sample.due(now))
		case <-ctx.Done():
			r.leftOut(r.sample.rest())
			return
		}
	}
}

// sent prints the begin of a delivery, which only aws-sqsd's format has.
func (r *report) sent(target string) {
	if !r.sqsd || r.quiet {
		return
	}
	if ok, _ := r.kinds[queue.Done].admit(time.Now()); ok {
		r.line(func(b *bytes.Buffer) { b.Write(appendSqsdSent(b.AvailableBuffer(), time.Now(), target)) })
	}
}

// line writes one line to the terminal, built by write.
func (r *report) line(write func(b *bytes.Buffer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf.Reset()
	write(&r.buf)
	r.buf.WriteByte('\n')
	r.out.Write(r.buf.Bytes())
}

// ANSI colours of a terminal.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

func (r *report) paint(b *bytes.Buffer, code, text string) {
	if !r.color {
		b.WriteString(text)
		return
	}
	b.WriteString("\x1b[" + code + "m" + text + "\x1b[0m")
}

// settled prints the end of one delivery.
func (r *report) settled(name, target string, s worker.Settled, next afterFailure) {
	failed := s.Outcome != queue.Done
	if r.quiet && !failed || r.sqsd && !failed {
		return
	}
	now := time.Now()
	ok, before := r.kinds[s.Outcome].admit(now)
	if before > 0 {
		r.leftOut([]leftOut{{lineKind{"worker", s.Outcome.String()}, before}})
	}
	if !ok {
		return
	}
	if r.sqsd {
		r.line(func(b *bytes.Buffer) { b.Write(appendSqsdSettled(b.AvailableBuffer(), now, &s)) })
		return
	}
	if r.text {
		r.line(func(b *bytes.Buffer) { r.settledText(b, s, next, now) })
		return
	}
	level := slog.LevelInfo
	if failed {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs, slog.String("component", "worker"), slog.String("queue", name), slog.String("message_id", s.ID),
		slog.String("target", target), slog.Int("attempt", s.Attempt), slog.Int("receive_count", s.ReceiveCount),
		slog.String("outcome", s.Outcome.String()), slog.Int64("duration_ms", s.Duration.Milliseconds()),
		slog.Int64("wait_ms", s.Wait.Milliseconds()))
	if s.Status != 0 {
		attrs = append(attrs, slog.Int("status", s.Status))
	}
	if s.Reason != "" {
		attrs = append(attrs, slog.String("reason", s.Reason))
	}
	if s.Answer != "" && !r.quiet {
		attrs = append(attrs, slog.String("answer", s.Answer))
	}
	switch {
	case next.dead != "":
		attrs = append(attrs, slog.Bool("last_attempt", true), slog.String("dead_letter_queue", next.dead))
	case !s.NextRetry.IsZero():
		attrs = append(attrs, slog.Time("next_retry_at", s.NextRetry))
	}
	if s.Late {
		attrs = append(attrs, slog.Bool("late", true))
	}
	if s.Err != nil {
		attrs = append(attrs, slog.String("err", s.Err.Error()))
	}
	r.log.LogAttrs(context.Background(), level, "settled", attrs...)
}

// settledText is one line such as
//
//	12:00:01 ✓ 200   12ms  4f0c2b1e-...
//	12:00:01 ✗ 500   12ms  4f0c2b1e-...  attempt 2: status 500 "no such order"; again in 5m0s
//	12:00:01 ✗ 500   12ms  4f0c2b1e-...  attempt 3: status 500; last of 3, goes to jobs-dead in 5m0s
func (r *report) settledText(b *bytes.Buffer, s worker.Settled, next afterFailure, now time.Time) {
	r.paint(b, dim, now.Format("15:04:05"))
	mark, code := " ✓ ", green
	if s.Outcome != queue.Done {
		mark, code = " ✗ ", red
	}
	r.paint(b, code, mark)
	status := "---"
	if s.Status != 0 {
		status = fmt.Sprint(s.Status)
	}
	fmt.Fprintf(b, "%s %7s  ", status, short(s.Duration))
	r.paint(b, dim, s.ID)
	switch {
	case s.Outcome != queue.Done:
		if s.Outcome == queue.Unreached && s.NextRetry.IsZero() {
			fmt.Fprintf(b, "  no attempt: %s; again when the app is ready", terminal.Plain(s.Reason, false))
			return
		}
		fmt.Fprintf(b, "  attempt %d: %s", s.Attempt, terminal.Plain(s.Reason, false))
		if s.Answer != "" && !r.quiet {
			fmt.Fprintf(b, " \"%s\"", terminal.Plain(s.Answer, false))
		}
		if s.NextRetry.IsZero() {
			return
		}
		in := short(max(s.NextRetry.Sub(now), 0))
		switch {
		case next.dead != "":
			fmt.Fprintf(b, "; last of %d, goes to %s in %s", next.most, next.dead, in)
		case next.known:
			fmt.Fprintf(b, "; again in %s", in)
		default:
			fmt.Fprintf(b, "; visible again in %s", in)
		}
	case s.Attempt > 1:
		fmt.Fprintf(b, "  attempt %d", s.Attempt)
	}
}

// short rounds a duration to what a glance takes in.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// app prints one line of the app's output.
func (r *report) app(process, stream string, line []byte) {
	if r.text {
		r.line(func(b *bytes.Buffer) {
			r.paint(b, cyan, process)
			b.WriteString(" | ")
			b.Write(line)
		})
		return
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "app output", slog.String("component", process),
		slog.String("stream", stream), slog.String("line", string(line)))
}

// sdk prints what the AWS SDK logs: on a terminal in one sentence, else with a constant
// message.
func (r *report) sdk(level slog.Level, text string) {
	if r.text {
		r.note(level, "aws", "the AWS SDK says: "+text)
		return
	}
	r.note(level, "aws", "AWS SDK message", slog.String("text", text))
}

// note prints what changed: a gate, a process, a warning. attrs appear in logs;
// the sentence alone must tell a person enough. A further line of it is indented,
// so that no text of others looks like a line of ours.
func (r *report) note(level slog.Level, component, sentence string, attrs ...slog.Attr) {
	if r.quiet && level < slog.LevelWarn || !r.log.Enabled(context.Background(), level) {
		return
	}
	if !r.text {
		r.log.LogAttrs(context.Background(), level, sentence,
			append([]slog.Attr{slog.String("component", component)}, attrs...)...)
		return
	}
	r.line(func(b *bytes.Buffer) {
		r.paint(b, dim, time.Now().Format("15:04:05"))
		mark, code := " · ", dim
		if level >= slog.LevelWarn {
			mark, code = " ! ", yellow
		}
		if level >= slog.LevelError {
			code = red
		}
		r.paint(b, code, mark)
		b.WriteString(strings.ReplaceAll(terminal.Plain(sentence, true), "\n", "\n  "))
	})
}
