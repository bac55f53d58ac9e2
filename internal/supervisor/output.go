package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"tendril/internal/host/terminal"
)

const (
	outputBuffer = 256
	// stallPatience is how long a full buffer blocks the process before lines are dropped.
	stallPatience = 500 * time.Millisecond
	// burstSeconds is how many seconds' worth of lines may come at once, for example a long stack trace.
	burstSeconds       = 5
	dropReportInterval = time.Second
)

// output drops lines while sink blocks, so that the process is not blocked.
type output struct {
	process string
	sink    func(stream string, line []byte)
	dropped func(LinesDropped)
	maxLine int
	limiter *rate.Limiter
	lines   chan outputLine
	drained chan struct{}

	// stalled is set when sink does not accept a line in time, and cleared when it accepts one.
	stalled    atomic.Bool
	lostMu     sync.Mutex
	lost       map[string]int64
	total      int64
	lastReport time.Time
}

type outputLine struct {
	stream string
	text   []byte
	cut    int
}

func newOutput(process string, sink func(string, []byte), o *Options) *output {
	out := &output{
		process: process,
		sink:    sink,
		dropped: o.Events.LinesDropped,
		maxLine: o.MaxLine,
		limiter: rate.NewLimiter(rate.Limit(o.LinesPerSecond), burstSeconds*o.LinesPerSecond),
		lines:   make(chan outputLine, outputBuffer),
		drained: make(chan struct{}),
		lost:    map[string]int64{},
	}
	go out.drain()
	return out
}

func (o *output) stream(name string) io.WriteCloser {
	return &lineWriter{name: name, max: o.maxLine, emit: o.put}
}

func (o *output) put(l outputLine) {
	if !o.limiter.Allow() || !o.offer(l) {
		o.lose(l.stream)
	}
	o.report(false)
}

func (o *output) lose(stream string) {
	o.lostMu.Lock()
	defer o.lostMu.Unlock()
	o.lost[stream]++
	o.total++
}

func (o *output) offer(l outputLine) bool {
	select {
	case o.lines <- l:
		o.stalled.Store(false)
		return true
	default:
	}

	if o.stalled.Load() {
		return false
	}

	patience := time.NewTimer(stallPatience)
	defer patience.Stop()
	select {
	case o.lines <- l:
		return true
	case <-patience.C:
		o.stalled.Store(true)
		return false
	}
}

func (o *output) drain() {
	defer close(o.drained)
	for l := range o.lines {
		text := terminal.Plain(string(l.text), true) // the text contains no line breaks
		if l.cut > 0 {
			text += fmt.Sprintf(" ... (%d bytes cut)", l.cut)
		}
		o.sink(l.stream, []byte(text))
	}
}

func (o *output) report(last bool) {
	o.lostMu.Lock()
	defer o.lostMu.Unlock()
	now := time.Now()
	if len(o.lost) == 0 || o.dropped == nil || !last && now.Sub(o.lastReport) < dropReportInterval {
		return
	}
	for _, stream := range slices.Sorted(maps.Keys(o.lost)) {
		o.dropped(LinesDropped{Process: o.process, Stream: stream, Lines: o.lost[stream], Total: o.total})
	}
	clear(o.lost)
	o.lastReport = now
}

func (o *output) close(patience time.Duration) {
	o.report(true)
	close(o.lines)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-o.drained:
	case <-timer.C:
	}
}

// lineWriter never returns an error, so that the process does not get SIGPIPE.
type lineWriter struct {
	name string
	max  int
	emit func(outputLine)
	part []byte
	cut  int
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.keep(p)
			return n, nil
		}
		w.keep(p[:end])
		w.flush()
		p = p[end+1:]
	}
	return n, nil
}

func (w *lineWriter) Close() error {
	if len(w.part) > 0 || w.cut > 0 {
		w.flush()
	}
	return nil
}

func (w *lineWriter) keep(p []byte) {
	room := min(w.max-len(w.part), len(p))
	w.part = append(w.part, p[:room]...)
	w.cut += len(p) - room
}

func (w *lineWriter) flush() {
	text := w.part
	if w.cut == 0 {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	w.emit(outputLine{stream: w.name, text: bytes.Clone(text), cut: w.cut})
	w.part, w.cut = w.part[:0], 0
}
