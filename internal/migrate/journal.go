package migrate

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"tendril/internal/host/datadir"
)

// Journal records on disk which messages were sent, as lines of JSON. It is safe for concurrent use.
type Journal struct {
	path string

	mu       sync.Mutex
	synced   sync.Cond
	file     *os.File
	written  int64
	syncedTo int64
	syncing  bool
	err      error // first failed write or fsync, after which the file is unreliable
	begun    bool
	header   header
	accepted map[key]bool
	intended map[key]time.Time // time of the first send of messages with an unknown outcome
	resent   int
	deleted  int
}

// key is a hash of a message ID. It saves memory, because a queue may contain millions of messages.
type key [16]byte

func keyOf(id string) key {
	sum := sha256.Sum256([]byte(id))
	return key(sum[:16])
}

type header struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Source      int    `json:"source"`
	Destination int    `json:"destination"`
}

type record struct {
	Begin  *header  `json:"begin,omitempty"`
	At     int64    `json:"at,omitempty"` // Unix milliseconds
	Send   []string `json:"send,omitempty"`
	Accept []string `json:"accept,omitempty"`
	Forget []string `json:"forget,omitempty"`
	Gone   int      `json:"gone,omitempty"`
}

// OpenJournal opens or creates a journal. It fails if the file is damaged or belongs to another migration.
func OpenJournal(path, from, to string) (*Journal, error) {
	f, err := datadir.OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &Journal{path: path, file: f, header: header{From: from, To: to}, accepted: map[key]bool{},
		intended: map[key]time.Time{}}
	j.synced.L = &j.mu
	if err = j.load(); err == nil && j.begun && (j.header.From != from || j.header.To != to) {
		err = fmt.Errorf("%s is the journal of a migration from %s to %s; finish that one, or remove the file", path,
			j.header.From, j.header.To)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// load removes an incomplete last record, which a crash may leave.
func (j *Journal) load() error {
	in := bufio.NewReader(j.file)
	good := int64(0)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}

		var r record
		if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
			return fmt.Errorf("reading the journal %s at byte %d: %w", j.path, good, err)
		}
		good += int64(len(line))
		j.replay(&r)
	}

	if err := j.file.Truncate(good); err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	_, err := j.file.Seek(good, io.SeekStart)
	return err
}

func (j *Journal) replay(r *record) {
	if r.Begin != nil {
		j.begun, j.header = true, *r.Begin
	}
	for _, id := range r.Send {
		j.intend(keyOf(id), time.UnixMilli(r.At))
	}
	j.accept(r.Accept)
	for _, id := range r.Forget {
		delete(j.intended, keyOf(id))
	}
	j.deleted += r.Gone
}

func (j *Journal) intend(k key, at time.Time) {
	if _, found := j.intended[k]; found {
		j.resent++
	} else if !j.accepted[k] {
		j.intended[k] = at
	}
}

// Begun reports whether a run has started.
func (j *Journal) Begun() bool { return j.begun }

// Begin records both queues' message counts before the first run.
func (j *Journal) Begin(source, destination int) error {
	j.header.Source, j.header.Destination = source, destination
	if err := j.write(record{Begin: &j.header}, true); err != nil {
		return err
	}
	j.begun = true
	return nil
}

// SourceBefore returns the source's message count before the first run.
func (j *Journal) SourceBefore() int { return j.header.Source }

// DestinationBefore returns the destination's message count before the first run.
func (j *Journal) DestinationBefore() int { return j.header.Destination }

// Intend records that messages are about to be sent. Unless durable is true, a power failure may lose the record.
func (j *Journal) Intend(ids []string, durable bool) error {
	now := time.Now()
	j.mu.Lock()
	for _, id := range ids {
		j.intend(keyOf(id), now)
	}
	j.mu.Unlock()
	return j.write(record{At: now.UnixMilli(), Send: ids}, durable)
}

// Accept durably records that messages were accepted.
func (j *Journal) Accept(ids []string) error {
	if err := j.write(record{Accept: ids}, true); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accept(ids)
	return nil
}

func (j *Journal) accept(ids []string) {
	for _, id := range ids {
		j.accepted[keyOf(id)] = true
		delete(j.intended, keyOf(id))
	}
}

func (j *Journal) forget(ids ...string) {
	j.mu.Lock()
	for _, id := range ids {
		delete(j.intended, keyOf(id))
	}
	j.mu.Unlock()
	_ = j.write(record{Forget: ids}, false) // if this fails, the messages count as uncertain
}

func (j *Journal) recordDeleted(n int) error {
	j.mu.Lock()
	j.deleted += n
	j.mu.Unlock()
	return j.write(record{Gone: n}, false)
}

// Accepted reports whether a message was accepted.
func (j *Journal) Accepted(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.accepted[keyOf(id)]
}

func (j *Journal) intendedAt(id string) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.intended[keyOf(id)]
}

// Sent returns the number of accepted messages.
func (j *Journal) Sent() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.accepted)
}

// Uncertain returns the number of messages with an unknown outcome.
func (j *Journal) Uncertain() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.intended)
}

func (j *Journal) counts() (resent, deleted int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.resent, j.deleted
}

func (j *Journal) write(r record, durable bool) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		_, j.err = j.file.Write(append(line, '\n'))
	}
	j.written++
	if durable {
		j.sync()
	}

	if j.err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, j.err)
	}
	return nil
}

// Concurrent calls share an fsync. The caller must hold j.mu, which sync releases during the fsync.
func (j *Journal) sync() {
	for end := j.written; j.err == nil && j.syncedTo < end; {
		if j.syncing {
			j.synced.Wait()
			continue
		}

		j.syncing = true
		upTo := j.written
		j.mu.Unlock()
		err := j.file.Sync()
		j.mu.Lock()

		j.syncing = false
		j.syncedTo = upTo
		if err != nil {
			j.err = err
		}
		j.synced.Broadcast()
	}
}

// Close closes the file and keeps it for the next run.
func (j *Journal) Close() error { return j.file.Close() }

// Remove closes and deletes the file.
func (j *Journal) Remove() error { return errors.Join(j.file.Close(), os.Remove(j.path)) }
