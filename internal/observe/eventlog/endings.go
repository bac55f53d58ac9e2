package eventlog

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Files with the endings of messages, newer first.
const (
	EndingsFile      = "endings.log"
	OlderEndingsFile = "endings.1.log"
)

const (
	maxEndings  = 32 << 20 // bytes per file, about 450,000 messages
	maxUnstored = 4 << 20  // bytes waiting for the disk
	storeEvery  = time.Second
	storeSize   = 64 << 10 // limits the memory of a busy queue
)

// Ending records how a message left a queue.
type Ending struct {
	At               time.Time
	MessageID, Queue string
	Outcome          string // such as "done" or "dead-lettered"
	Receives         int    // 0 if unknown
	To               string // target queue, or ""
	By               string // who deleted or moved it, or ""
}

// Filtered is the outcome of a message that the filter deleted. The queue reports such a message as done.
const Filtered = "filtered"

// A line with the outcome lost stands for the endings lost before it.
const lost = "lost"

// appendTo quotes the last field, so that a truncated line is invalid.
func (e *Ending) appendTo(b []byte) []byte {
	b = append(append(b, e.MessageID...), '\t')
	b = append(strconv.AppendInt(b, e.At.UnixMilli(), 10), '\t')
	b = append(append(b, e.Queue...), '\t')
	b = append(append(b, e.Outcome...), '\t')
	b = append(strconv.AppendInt(b, int64(e.Receives), 10), '\t')
	b = append(append(b, e.To...), '\t')
	return append(strconv.AppendQuote(b, strings.ToValidUTF8(e.By[:min(len(e.By), maxField)], "")), '\n')
}

func parseEnding(line []byte) (e Ending, ok bool) {
	fields := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
	if len(fields) != 7 {
		return e, false
	}
	at, err1 := strconv.ParseInt(fields[1], 10, 64)
	receives, err2 := strconv.Atoi(fields[4])
	by, err3 := strconv.Unquote(fields[6])
	return Ending{MessageID: fields[0], At: time.UnixMilli(at).UTC(), Queue: fields[2], Outcome: fields[3], Receives: receives,
		To: fields[5], By: by}, errors.Join(err1, err2, err3) == nil
}

// Endings records how messages left their queues. It is safe for concurrent use.
type Endings struct {
	failed func(error)
	stop   chan struct{}
	ended  chan struct{}
	full   chan struct{} // signaled at storeSize

	mu       sync.Mutex // guards unstored and spare
	unstored []byte
	spare    []byte

	writing sync.Mutex // guards file and failing; locked before mu
	file    appender
	failing bool
}

// OpenEndings opens the endings in an existing data directory. failed is as for [Open], but must not be nil.
func OpenEndings(dir string, failed func(error)) *Endings {
	return openEndings(dir, maxEndings, failed)
}

func openEndings(dir string, maxSegment int64, failed func(error)) *Endings {
	at := files{filepath.Join(dir, EndingsFile), filepath.Join(dir, OlderEndingsFile)}
	l := &Endings{failed: failed, stop: make(chan struct{}), ended: make(chan struct{}), full: make(chan struct{}, 1),
		file: appender{maxSegment: maxSegment, files: at}}
	go l.run()
	return l
}

// Add records an ending now. Endings are lost if more than 4 MiB wait for the disk.
func (l *Endings) Add(e Ending) { l.AddAll(1, func(int) Ending { return e }) }

// AddAll records n endings at once. ending must not use l.
func (l *Endings) AddAll(n int, ending func(i int) Ending) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unstored) > maxUnstored {
		l.unstored = (&Ending{At: now, Outcome: lost}).appendTo(l.unstored[:0])
	}
	before := len(l.unstored)
	for i := range n {
		e := ending(i)
		e.At = now
		l.unstored = e.appendTo(l.unstored)
	}
	if before < storeSize && len(l.unstored) >= storeSize {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// Find returns the latest ending of a message sent to queue, or a later purge of its queue, or the zero value. No
// endings after since are missing; since is zero if there are no endings.
func (l *Endings) Find(id, queue string) (found Ending, since time.Time, err error) {
	s := endingSearch{prefix: append([]byte(id), '\t'), queue: queue}
	err = l.eachLine(s.visit)
	return s.found, s.since, err
}

// endingSearch follows a message from queue to queue.
type endingSearch struct {
	prefix []byte // of the message's lines
	queue  string // current; may be ""
	found  Ending
	since  time.Time
}

func (s *endingSearch) visit(line []byte) {
	isMessage, hasNoID := bytes.HasPrefix(line, s.prefix), line[0] == '\t'
	if !s.since.IsZero() && !isMessage && !hasNoID {
		return
	}
	e, valid := parseEnding(line)
	if !valid {
		return
	}

	if s.since.IsZero() || e.Outcome == lost {
		s.since = e.At
	}
	isPurge := hasNoID && e.Queue == s.queue && s.queue != ""
	if isMessage && s.found.Outcome != Filtered || isPurge {
		s.found = e
	}
	if isMessage {
		s.queue = e.To
	}
}

// IDs returns up to most message IDs with the prefix start, in the order of their endings.
func (l *Endings) IDs(start string, most int) ([]string, error) {
	var ids []string
	err := l.eachLine(func(line []byte) {
		if !bytes.HasPrefix(line, []byte(start)) || len(ids) == most {
			return
		}
		if e, valid := parseEnding(line); valid && !slices.Contains(ids, e.MessageID) {
			ids = append(ids, e.MessageID)
		}
	})
	return ids, err
}

func (l *Endings) eachLine(visit func(line []byte)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.store() // lines that cannot be stored are read from memory
	visitAll := func(r io.Reader) (bool, error) {
		return eachLine(r, func(line []byte) bool { visit(line); return true })
	}
	err := l.file.eachFile(visitAll)

	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = visitAll(bytes.NewReader(l.unstored))
	return err
}

// Close stores the remaining endings and closes the file.
func (l *Endings) Close() error {
	close(l.stop)
	<-l.ended
	return l.file.close()
}

func (l *Endings) run() {
	defer close(l.ended)
	every := time.Tick(storeEvery)
	for running := true; running; {
		select {
		case <-every:
		case <-l.full:
		case <-l.stop:
			running = false
		}
		l.writing.Lock()
		err := l.store()
		changed := l.failing != (err != nil)
		l.failing = err != nil
		l.writing.Unlock()
		if changed {
			l.failed(err)
		}
	}
}

// store requires the lock writing. Lines that cannot be stored stay in memory.
func (l *Endings) store() error {
	l.mu.Lock()
	lines := l.unstored
	if len(lines) == 0 {
		l.mu.Unlock()
		return nil
	}
	l.unstored, l.spare = l.spare, nil
	l.mu.Unlock()

	err := l.file.append(lines)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.unstored = append(lines, l.unstored...)
	case cap(lines) <= 2*storeSize:
		l.spare = lines[:0]
	}
	return err
}
