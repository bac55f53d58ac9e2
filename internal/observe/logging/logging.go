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

// Format is the format of log lines.
type Format int

const (
	jsonLines Format = iota
	// Text is for terminals.
	Text
	// SQSD is Text, but logs deliveries like aws-sqsd.
	SQSD
)

// Options configure a [Logger]. Only Out is required.
type Options struct {
	Out    io.Writer
	Format Format
	Color  bool
	// At slog.LevelWarn and higher, successful deliveries, the banner and response excerpts are also omitted.
	Level slog.Level
	// PerSecond limits delivery lines per second and outcome; 0 means no limit.
	PerSecond int
}

// Logger prints events, deliveries and the app's output. It is safe for concurrent use.
type Logger struct {
	*slog.Logger
	printer  *printer
	color    painter
	opts     Options
	sampler  sampler
	observer atomic.Pointer[observer]
	printing *slog.Logger // without the observer
}

// New returns a logger.
func New(opts Options) *Logger {
	l := &Logger{printer: &printer{out: opts.Out}, color: painter(opts.Color), opts: opts}
	l.sampler.perSecond = opts.PerSecond
	var h slog.Handler = &textHandler{printer: l.printer, color: l.color, level: opts.Level}
	if opts.Format == jsonLines {
		h = slog.NewJSONHandler(opts.Out, &slog.HandlerOptions{Level: opts.Level, ReplaceAttr: inMillis})
	}
	l.printing = slog.New(h)
	l.Logger = slog.New(&observingHandler{h, textHandler{}, &l.observer})
	return l
}

func inMillis(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Int64(strings.TrimSuffix(a.Key, "_ms")+"_ms", a.Value.Duration().Milliseconds())
}

func (l *Logger) quiet() bool { return l.opts.Level >= slog.LevelWarn }

// AppOutput prints a line of app output.
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
		l.color.paint(b, cyan, process)
		b.WriteString(" | ")
		b.Write(line)
	})
}

// SDK logs a message of the AWS SDK.
func (l *Logger) SDK(level slog.Level, text string) {
	l.LogAttrs(context.Background(), level, "AWS SDK message", slog.String("component", "aws"), slog.String("text", text))
}

// Banner prints a title, a name and rows below slog.LevelWarn. It returns false for JSON, which has no banner.
func (l *Logger) Banner(title, name string, rows [][2]string) bool {
	if l.opts.Format != jsonLines && !l.quiet() {
		l.printer.print(func(b *bytes.Buffer) {
			l.color.paint(b, green, title)
			b.WriteString("  " + name)
			for _, r := range rows {
				fmt.Fprintf(b, "\n  %-12s %s", r[0], r[1])
			}
		})
	}
	return l.opts.Format != jsonLines
}

// Postponed returns a listener for deliveries postponed because the payload or the task registry is unavailable.
func (l *Logger) Postponed(name string) func(m *queue.Message, retryIn time.Duration, err error) {
	return func(m *queue.Message, retryIn time.Duration, err error) {
		if l.allow(queue.Postponed, time.Now()) {
			aboutMessage(l.With("component", "worker", "queue", name), m.ID, m.Attribute(queue.AttributeTask)).Warn("delivery postponed",
				"outcome", queue.Postponed.String(), slog.Duration("retry_in", retryIn), "err", err)
		}
	}
}

func (l *Logger) allow(outcome queue.Outcome, now time.Time) bool {
	ok, omitted := l.sampler.admit(outcome, now)
	if omitted > 0 {
		l.logOmitted(outcome, omitted)
	}
	return ok
}

// ReportOmitted logs every second how many lines were omitted, until ctx is done.
func (l *Logger) ReportOmitted(ctx context.Context) {
	tick := time.Tick(time.Second)
	for {
		select {
		case now := <-tick:
			l.sampler.reportOmitted(now, l.logOmitted)
		case <-ctx.Done():
			l.sampler.reportOmitted(time.Now().Add(time.Second), l.logOmitted) // also the current second's
			return
		}
	}
}

func (l *Logger) logOmitted(outcome queue.Outcome, lines int) {
	l.LogAttrs(context.Background(), levelOf(outcome), "log lines omitted", slog.String("component", "worker"),
		slog.String("outcome", outcome.String()), slog.Int("lines", lines))
}

func levelOf(outcome queue.Outcome) slog.Level {
	if outcome == queue.Done {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
