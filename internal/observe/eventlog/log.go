package eventlog

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/internal/observe/event"
)

// Files of the event log and the failure log, newer first.
const (
	CurrentFile       = "events.ndjson"
	OlderFile         = "events.1.ndjson"
	FailuresFile      = "failures.ndjson"
	OlderFailuresFile = "failures.1.ndjson"
)

func eventFiles(dir string) files {
	return files{filepath.Join(dir, CurrentFile), filepath.Join(dir, OlderFile)}
}

const (
	maxSegment = 4 << 20 // bytes per file
	keptEvents = 512     // in memory, for readers and while the disk is not writable
	tailBytes  = 256 << 10
	retryAfter = 5 * time.Second // after a failed write
)

// Log appends events to files. It is safe for concurrent use.
type Log struct {
	file   appender
	failed func(error)
	tail   tail[Event]

	mu      sync.Mutex
	pending []Event
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}

	failing bool
}

// Open opens the log in an existing data directory. failed, which may be nil, receives an error when writing starts to
// fail, and nil when it works again.
func Open(dir string, failed func(error)) *Log { return open(eventFiles(dir), maxSegment, failed) }

// OpenFailures opens the log of failed deliveries in the same directory.
func OpenFailures(dir string, failed func(error)) *Log {
	return open(files{filepath.Join(dir, FailuresFile), filepath.Join(dir, OlderFailuresFile)}, maxSegment, failed)
}

func open(at files, maxSegment int64, failed func(error)) *Log {
	if failed == nil {
		failed = func(error) {}
	}
	l := &Log{file: appender{files: at, maxSegment: maxSegment}, failed: failed,
		tail: tail[Event]{maxEntries: keptEvents}, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		stopped: make(chan struct{})}

	err := l.file.open()
	for _, path := range []string{at.older, at.current} {
		events, whole, readErr := readTail(path)
		err = errors.Join(err, readErr)
		l.tail.load(events, whole)
	}

	l.failing = err != nil
	if l.failing {
		failed(err)
	}
	go l.write()
	return l
}

// Newest returns the newest event, if any.
func (l *Log) Newest() (e Event, found bool) {
	entries, _ := l.tail.snapshot()
	if len(entries) == 0 {
		return e, false
	}
	return entries[len(entries)-1], true
}

// Happened implements [event.Listener].
func (l *Log) Happened(e event.Event) { l.Add(string(e.Kind), e.Text, e.Fields) }

// Add records an event now, without waiting for the disk.
func (l *Log) Add(kind, text string, fields map[string]string) {
	fields = boundedFields(fields)
	at := time.Now().UTC().Round(0)
	l.mu.Lock()
	defer l.mu.Unlock() // keeps pending in ID order
	l.pending = append(l.pending, l.tail.add(func(id int64) Event {
		return Event{ID: id, At: at, Kind: kind, Text: text, Fields: fields}
	}))
	if extra := len(l.pending) - keptEvents; extra > 0 {
		l.pending = slices.Delete(l.pending, 0, extra)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// LastID returns the newest event's ID, or 0.
func (l *Log) LastID() int64 { return l.tail.lastID() }

// Changed returns a channel that is closed when the next event is added.
func (l *Log) Changed() <-chan struct{} { return l.tail.wait() }

// Read returns the events selected by q.
func (l *Log) Read(q Query) ([]Event, error) {
	recent, dropped := l.tail.snapshot()
	firstRecent := int64(math.MaxInt64)
	if len(recent) > 0 {
		firstRecent = recent[0].ID
	}

	s := selector[Event]{Range: q.Range, matches: q.matches}
	s.offerAll(recent)
	enough := q.Newest && q.Limit > 0 && len(s.selected) == q.Limit
	if !dropped || enough || q.After >= firstRecent-1 {
		return s.result(), nil
	}

	s.selected = nil
	err := scan(l.file.files, func(e Event) bool { return e.ID < firstRecent && s.offer(e) })
	s.offerAll(recent)
	return s.result(), err
}

// Close writes pending events and closes the file.
func (l *Log) Close() error {
	close(l.stop)
	<-l.stopped
	return l.file.close()
}

func (l *Log) write() {
	defer close(l.stopped)
	var retry <-chan time.Time
	for {
		ending := false
		select {
		case <-l.wake:
		case <-retry:
		case <-l.stop:
			ending = true
		}
		err := l.flush()
		if failing := err != nil; failing != l.failing {
			l.failing = failing
			l.failed(err)
		}
		retry = nil
		if err != nil {
			retry = time.After(retryAfter)
		}
		if ending {
			return
		}
	}
}

func (l *Log) flush() error {
	l.mu.Lock()
	events := l.pending
	l.pending = nil
	l.mu.Unlock()
	for i := range events {
		if err := l.append(&events[i]); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pending = append(events[i:len(events):len(events)], l.pending...)
			l.pending = l.pending[max(len(l.pending)-keptEvents, 0):]
			return err
		}
	}
	return nil
}

func (l *Log) append(e *Event) error {
	line, _ := json.Marshal(e) // always encodes
	return l.file.append(append(line, '\n'))
}

// Read returns the selected events in a data directory, even if an environment is appending to the log.
func Read(dir string, q Query) ([]Event, error) {
	s := selector[Event]{Range: q.Range, matches: q.matches}
	err := scan(eventFiles(dir), s.offer)
	return s.result(), err
}

// scan skips repeated IDs, see [files.eachFile].
func scan(at files, visit func(Event) bool) error {
	last := int64(0)
	return at.eachFile(func(f io.Reader) (more bool, err error) {
		return decode(f, func(e Event) bool {
			if e.ID <= last {
				return true
			}
			last = e.ID
			return visit(e)
		})
	})
}

func readTail(path string) (events []Event, whole bool, err error) {
	f, err := openToRead(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()

	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(max(size-tailBytes, 0), io.SeekStart)
	}
	if err != nil {
		return nil, false, err
	}
	_, err = decode(f, func(e Event) bool { events = append(events, e); return true })
	return events, size <= tailBytes, err
}
