package eventlog

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/internal/host/datadir"
	"tendril/internal/observe/event"
)

// Names of the event log's and the failure log's files. The newer file of each comes first.
const (
	CurrentFile       = "events.ndjson"
	OlderFile         = "events.1.ndjson"
	FailuresFile      = "failures.ndjson"
	OlderFailuresFile = "failures.1.ndjson"
)

type files struct{ current, older string }

func eventFiles(dir string) files {
	return files{filepath.Join(dir, CurrentFile), filepath.Join(dir, OlderFile)}
}

const (
	maxSegment = 4 << 20 // bytes per file
	// Events in memory, for readers that follow the log and while the disk is not writable.
	heldEvents = 512
	// Bytes of each file's end that are read at startup.
	tailBytes  = 256 << 10
	retryAfter = 5 * time.Second // after a failed write
)

// Log appends events to files in the data directory. It is safe for concurrent use.
type Log struct {
	files      files
	maxSegment int64
	failed     func(error)
	tail       tail[Event]

	mu      sync.Mutex
	pending []Event // not written yet
	poke    chan struct{}
	stop    chan struct{}
	stopped chan struct{}

	file    *os.File // nil if reopening failed
	size    int64
	torn    bool // the last line may be incomplete
	failing bool
}

// Open opens the log in an existing data directory. failed is called once with an error when writing starts to fail,
// and with nil when writing works again; it may be nil. In between, the newest events stay in memory.
func Open(dir string, failed func(error)) *Log { return open(eventFiles(dir), maxSegment, failed) }

// OpenFailures opens the log of failed deliveries, which is next to the event log.
func OpenFailures(dir string, failed func(error)) *Log {
	return open(files{filepath.Join(dir, FailuresFile), filepath.Join(dir, OlderFailuresFile)}, maxSegment, failed)
}

func open(at files, maxSegment int64, failed func(error)) *Log {
	if failed == nil {
		failed = func(error) {}
	}
	l := &Log{files: at, maxSegment: maxSegment, failed: failed,
		tail: tail[Event]{most: heldEvents, maxBytes: 1}, poke: make(chan struct{}, 1), stop: make(chan struct{}),
		stopped: make(chan struct{})}

	err := l.openFile()
	for _, path := range []string{at.older, at.current} {
		events, whole, failure := readEnd(path)
		err = errors.Join(err, failure)
		l.tail.dropped = l.tail.dropped || !whole
		for _, e := range events {
			if e.ID > l.tail.last {
				l.tail.push(e)
			}
		}
	}

	l.failing = err != nil
	if l.failing {
		failed(err)
	}
	go l.write()
	return l
}

// Newest returns the newest event, and false if there are no events.
func (l *Log) Newest() (e Event, found bool) {
	entries, _ := l.tail.held()
	if len(entries) == 0 {
		return e, false
	}
	return entries[len(entries)-1], true
}

// Happened implements [event.Listener].
func (l *Log) Happened(e event.Event) { l.Add(string(e.Kind), e.Text, e.Fields) }

// Add records an event with the current time. It does not block on disk writes.
func (l *Log) Add(kind, text string, fields map[string]string) {
	fields = bounded(fields)
	at := time.Now().UTC().Round(0)
	l.mu.Lock()
	defer l.mu.Unlock() // keeps pending in ID order
	l.pending = append(l.pending, l.tail.add(func(id int64) Event {
		return Event{ID: id, At: at, Kind: kind, Text: text, Fields: fields}
	}))
	if extra := len(l.pending) - heldEvents; extra > 0 {
		l.pending = slices.Delete(l.pending, 0, extra)
	}
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// LastID returns the ID of the newest event, or 0 if there are no events.
func (l *Log) LastID() int64 { return l.tail.lastID() }

// Changed returns a channel that is closed when the next event is added.
func (l *Log) Changed() <-chan struct{} { return l.tail.wait() }

// Read returns the events selected by q.
func (l *Log) Read(q Query) ([]Event, error) {
	entries, dropped := l.tail.held()
	s := selector[Event]{Range: q.Range, matches: q.matches}
	offer := func() {
		for _, e := range entries {
			if !s.take(e) {
				break
			}
		}
	}
	offer()
	enough := q.Newest && q.Limit > 0 && len(s.selected) == q.Limit
	if !dropped || enough || len(entries) > 0 && q.After >= entries[0].ID-1 {
		return s.result(), nil
	}

	s.selected = nil

	first := int64(math.MaxInt64)
	if len(entries) > 0 {
		first = entries[0].ID
	}
	err := scan(l.files, func(e Event) bool { return e.ID < first && s.take(e) })
	offer()
	return s.result(), err
}

// Close writes pending events and closes the file.
func (l *Log) Close() error {
	close(l.stop)
	<-l.stopped
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (l *Log) write() {
	defer close(l.stopped)
	var retry <-chan time.Time
	for {
		ending := false
		select {
		case <-l.poke:
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

// Events that cannot be written stay pending.
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
			l.pending = l.pending[max(len(l.pending)-heldEvents, 0):]
			return err
		}
	}
	return nil
}

func (l *Log) append(e *Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return nil // encoding strings cannot fail
	}
	line = append(line, '\n')
	if l.file != nil && l.size > 0 && l.size+int64(len(line)) > l.maxSegment {
		if err := os.Rename(l.files.current, l.files.older); err != nil {
			return err
		}
		_ = l.file.Close()
		l.file = nil
	}
	if l.file == nil {
		if err := l.openFile(); err != nil {
			return err
		}
	}

	if l.torn {
		line = append([]byte{'\n'}, line...)
	}

	n, err := l.file.WriteAt(line, l.size)
	if err != nil {
		// Remove the part of the line that was written, so that the next line starts in its place.
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size, l.torn = l.size+int64(n), false
	return nil
}

func (l *Log) openFile() error {
	f, err := datadir.OpenFile(l.files.current)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && size > 0 {
		_, err = f.ReadAt(last, size-1)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	l.size = size
	l.torn = last[0] != '\n'
	return nil
}

// Read returns the events in a data directory that q selects. An environment may be appending to the log at the same
// time.
func Read(dir string, q Query) ([]Event, error) {
	s := selector[Event]{Range: q.Range, matches: q.matches}
	err := scan(eventFiles(dir), s.take)
	return s.result(), err
}

// The events of both files are in order. scan stops when take returns false.
func scan(at files, take func(Event) bool) error {
	current, err := openToRead(at.current) // first, because it may be renamed to the older one
	if err != nil {
		return err
	}
	defer current.Close()
	older, err := openToRead(at.older)
	if err != nil {
		return err
	}
	defer older.Close()

	last := int64(0)
	for _, f := range []io.Reader{older, current} {
		more, err := decode(f, func(e Event) bool {
			if e.ID <= last {
				return true
			}
			last = e.ID
			return take(e)
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func openToRead(path string) (io.ReadSeekCloser, error) {
	if err := datadir.CheckFile(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty{}, nil
	}
	return f, err
}

type empty struct{}

func (empty) Read([]byte) (int, error)       { return 0, io.EOF }
func (empty) Seek(int64, int) (int64, error) { return 0, nil }
func (empty) Close() error                   { return nil }

func readEnd(path string) (events []Event, whole bool, err error) {
	f, err := openToRead(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(max(size-tailBytes, 0), io.SeekStart)
	}
	if err == nil { // the first line may be cut off and is then skipped
		_, err = decode(f, func(e Event) bool { events = append(events, e); return true })
	}
	return events, size <= tailBytes, err
}
