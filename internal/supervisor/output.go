package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"tendril/internal/host/terminal"
)

const (
	// A line takes an output slot per started slotBytes, because long lines need memory.
	outputSlots = 256
	slotBytes   = 1 << 10
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
	slots   *semaphore.Weighted
	lines   chan outputLine
	drained chan struct{}

	// stalled is set when sink does not accept a line in time, and cleared when it accepts one.
	stalled    atomic.Bool
	lostMu     sync.Mutex
	lost       map[string]*LinesDropped
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
		slots:   semaphore.NewWeighted(outputSlots),
		lines:   make(chan outputLine, outputSlots),
		drained: make(chan struct{}),
		lost:    map[string]*LinesDropped{},
	}
	go out.drain()
	return out
}

func (o *output) stream(name string) io.WriteCloser {
	return &lineWriter{name: name, max: o.maxLine, emit: o.put}
}

func (o *output) put(l outputLine) {
	isTooFast := !o.limiter.Allow()
	if isTooFast || !o.acquire(l.slots()) {
		o.lose(l.stream, isTooFast)
	} else {
		o.lines <- l
	}
	o.report(false)
}

func (l *outputLine) slots() int64 { return min(1+int64(len(l.text)/slotBytes), outputSlots) }

func (o *output) lose(stream string, isTooFast bool) {
	o.lostMu.Lock()
	defer o.lostMu.Unlock()
	if o.lost[stream] == nil {
		o.lost[stream] = &LinesDropped{Process: o.process, Stream: stream}
	}
	lost := o.lost[stream]
	lost.Lines++
	lost.TooFast = lost.TooFast || isTooFast
	o.total++
}

func (o *output) acquire(slots int64) bool {
	if o.slots.TryAcquire(slots) {
		return true
	}
	if o.stalled.Load() {
		return false
	}

	patience, cancel := context.WithTimeout(context.Background(), stallPatience)
	defer cancel()
	if o.slots.Acquire(patience, slots) != nil {
		o.stalled.Store(true)
		return false
	}
	return true
}

func (o *output) drain() {
	defer close(o.drained)
	for l := range o.lines {
		o.slots.Release(l.slots())
		text := terminal.Plain(string(l.text), true) // the text contains no line breaks
		if l.cut > 0 {
			text += fmt.Sprintf(" ... (%d bytes cut)", l.cut)
		}
		o.sink(l.stream, []byte(text))
		o.stalled.Store(false)
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
		o.lost[stream].Total = o.total
		o.dropped(*o.lost[stream])
	}
	clear(o.lost)
	o.lastReport = now
}

func (o *output) close() {
	o.report(true)
	close(o.lines)
	timer := time.NewTimer(sinkPatience)
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
