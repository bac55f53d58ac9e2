package logging

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tendril/queue"
)

// Format is how lines are written.
type Format int

const (
	jsonLines Format = iota // one object per line
	// Text is for a person at a terminal.
	Text
	// SQSD is Text with deliveries as aws-sqsd logs them.
	SQSD
)

// Options configure a [Logger]. Only Out is required.
type Options struct {
	// Out receives whole lines.
	Out io.Writer
	// Format is how lines are written.
	Format Format
	// Color allows colours in Text and SQSD.
	Color bool
	// Level is the lowest level that is printed. From slog.LevelWarn on, successful
	// deliveries, the banner and excerpts of the app's answers are left out.
	Level slog.Level
	// PerSecond is how many lines about deliveries of one outcome are printed in a second; 0 means all.
	PerSecond int
}

// Logger prints events, deliveries and the app's output. It is safe for concurrent use.
type Logger struct {
	*slog.Logger
	printer  *printer
	opts     Options
	sampler  sampler
	observer atomic.Pointer[observer] // nil while nothing observes
	printing *slog.Logger             // prints what the observer is told of otherwise
}

// New returns a logger.
func New(opts Options) *Logger {
	l := &Logger{printer: &printer{out: opts.Out, color: opts.Color}, opts: opts}
	l.sampler.perSecond = opts.PerSecond
	var h slog.Handler = &textHandler{printer: l.printer, level: opts.Level}
	if opts.Format == jsonLines {
		h = slog.NewJSONHandler(opts.Out, &slog.HandlerOptions{Level: opts.Level, ReplaceAttr: inMillis})
	}
	l.printing = slog.New(h)
	l.Logger = slog.New(&observingHandler{h, textHandler{printer: &printer{}}, &l.observer})
	return l
}

// inMillis writes each duration in JSON as a number of milliseconds, and says so in its key: "retry_in_ms": 489.
func inMillis(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Int64(strings.TrimSuffix(a.Key, "_ms")+"_ms", a.Value.Duration().Milliseconds())
}

// quiet reports whether only warnings and errors are wanted.
func (l *Logger) quiet() bool { return l.opts.Level >= slog.LevelWarn }

// AppOutput prints one line that a process of the app wrote to a stream.
func (l *Logger) AppOutput(process, stream string, line []byte) {
	if o := l.observer.Load(); o != nil {
		o.lines(&Record{At: time.Now(), Process: process, Stream: stream, Text: string(line)})
	}
	if l.opts.Format == jsonLines {
		l.printing.LogAttrs(context.Background(), slog.LevelInfo, "app output", slog.String("component", process),
			slog.String("stream", stream), slog.String("line", string(line)))
		return
	}
	l.printer.print(func(b *bytes.Buffer) {
		l.printer.paint(b, cyan, process)
		b.WriteString(" | ")
		b.Write(line)
	})
}

// SDK logs what the AWS SDK reports.
func (l *Logger) SDK(level slog.Level, text string) {
	l.LogAttrs(context.Background(), level, "AWS SDK message", slog.String("component", "aws"), slog.String("text", text))
}

// Banner prints a title, a name and rows of a name and a value, unless lines are JSON or only warnings
// are wanted. It reports whether the format has banners.
func (l *Logger) Banner(title, name string, rows [][2]string) bool {
	if l.opts.Format != jsonLines && !l.quiet() {
		l.printer.print(func(b *bytes.Buffer) {
			l.printer.paint(b, green, title)
			b.WriteString("  " + name)
			for _, r := range rows {
				fmt.Fprintf(b, "\n  %-12s %s", r[0], r[1])
			}
		})
	}
	return l.opts.Format != jsonLines
}

// Postponed logs that a message was not delivered since its payload, or the registry of periodic
// tasks, is not available, unless there are too many such lines.
func (l *Logger) Postponed(id string, retryIn time.Duration, err error) {
	if l.admit(queue.Postponed, time.Now()) {
		l.Warn("delivery postponed", "component", "worker", "message_id", id,
			"outcome", queue.Postponed.String(), slog.Duration("retry_in", retryIn), "err", err)
	}
}

// admit reports whether a line about a delivery may be printed now.
func (l *Logger) admit(outcome queue.Outcome, now time.Time) bool {
	ok, omitted := l.sampler.admit(outcome, now)
	if omitted > 0 {
		l.logOmitted(outcome, omitted)
	}
	return ok
}

// ReportOmitted logs once a second how many lines sampling left out, until ctx is done.
func (l *Logger) ReportOmitted(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.sampler.due(now, l.logOmitted)
		case <-ctx.Done():
			l.sampler.due(time.Now().Add(time.Second), l.logOmitted) // all that is left
			return
		}
	}
}

func (l *Logger) logOmitted(outcome queue.Outcome, lines int) {
	l.LogAttrs(context.Background(), levelOf(outcome), "lines left out", slog.String("component", "worker"),
		slog.String("outcome", outcome.String()), slog.Int("lines", lines))
}

// levelOf is the level of lines about deliveries of an outcome.
func levelOf(outcome queue.Outcome) slog.Level {
	if outcome == queue.Done {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
