package logging

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"tendril/queue"
)

// Format is how lines are written.
type Format int

const (
	// JSON is one object per line.
	JSON Format = iota
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
	// PerSecond is how many lines about deliveries of one outcome are printed in a
	// second; 0 means all.
	PerSecond int
}

// Logger prints events, deliveries and the app's output. It is safe for concurrent use.
type Logger struct {
	*slog.Logger
	opts    Options
	sampler *sampler

	mu  sync.Mutex
	buf bytes.Buffer
}

// New returns a logger.
func New(opts Options) *Logger {
	l := &Logger{opts: opts, sampler: newSampler(opts.PerSecond)}
	if opts.Format == JSON {
		l.Logger = slog.New(slog.NewJSONHandler(opts.Out, &slog.HandlerOptions{Level: opts.Level}))
	} else {
		l.Logger = slog.New(&textHandler{logger: l})
	}
	return l
}

// quiet reports whether only warnings and errors are wanted.
func (l *Logger) quiet() bool { return l.opts.Level >= slog.LevelWarn }

// AppOutput prints one line that a process of the app wrote to a stream.
func (l *Logger) AppOutput(process, stream string, line []byte) {
	if l.opts.Format == JSON {
		l.LogAttrs(context.Background(), slog.LevelInfo, "app output", slog.String("component", process),
			slog.String("stream", stream), slog.String("line", string(line)))
		return
	}
	l.print(func(b *bytes.Buffer) {
		l.paint(b, cyan, process)
		b.WriteString(" | ")
		b.Write(line)
	})
}

// SDK logs what the AWS SDK reports.
func (l *Logger) SDK(level slog.Level, text string) {
	l.LogAttrs(context.Background(), level, "AWS SDK message", slog.String("component", "aws"), slog.String("text", text))
}

// Row is one line of a banner.
type Row struct{ Name, Value string }

// Banner prints a title, a name and rows, unless lines are JSON or only warnings are wanted. It
// reports whether the format has banners.
func (l *Logger) Banner(title, name string, rows []Row) bool {
	if l.opts.Format == JSON {
		return false
	}
	if l.quiet() {
		return true
	}
	l.print(func(b *bytes.Buffer) {
		l.paint(b, green, title)
		b.WriteString("  " + name)
		for _, r := range rows {
			fmt.Fprintf(b, "\n  %-12s %s", r.Name, r.Value)
		}
	})
	return true
}

// Postponed logs that a message was not delivered since its payload is not available, unless
// there are too many such lines.
func (l *Logger) Postponed(id string, retryIn time.Duration, err error) {
	if l.admit(queue.Postponed, time.Now()) {
		l.Warn("payload not available, delivery postponed", "component", "worker", "message_id", id,
			"outcome", queue.Postponed.String(), millis("retry_in", retryIn), "err", err)
	}
}

// admit reports whether a line about a delivery may be printed now.
func (l *Logger) admit(outcome queue.Outcome, now time.Time) bool {
	ok, omitted := l.sampler.kinds[outcome].admit(now)
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
			l.sampler.rest(l.logOmitted)
			return
		}
	}
}

func (l *Logger) logOmitted(outcome queue.Outcome, lines int) {
	level := slog.LevelInfo
	if outcome != queue.Done {
		level = slog.LevelWarn
	}
	l.LogAttrs(context.Background(), level, "lines left out", slog.String("component", "worker"),
		slog.String("outcome", outcome.String()), slog.Int("lines", lines))
}

// print writes the text that write appends, and a line feed, at once.
func (l *Logger) print(write func(b *bytes.Buffer)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
	write(&l.buf)
	l.buf.WriteByte('\n')
	l.opts.Out.Write(l.buf.Bytes())
}

// ANSI colours of a terminal.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

func (l *Logger) paint(b *bytes.Buffer, code, text string) {
	if !l.opts.Color {
		b.WriteString(text)
		return
	}
	b.WriteString("\x1b[" + code + "m" + text + "\x1b[0m")
}

// Interval limits a recurring line to one in each interval. The zero value never limits.
type Interval struct {
	Every time.Duration

	mu   sync.Mutex
	last time.Time
}

// Allow reports whether the line may be printed now.
func (i *Interval) Allow() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := time.Now(); i.last.IsZero() || now.Sub(i.last) >= i.Every {
		i.last = now
		return true
	}
	return false
}

// Short returns a duration rounded so that it can be read in one look.
func Short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
