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

// Journal is the account, on disk, of what was sent from one queue to another. Each line is a record in JSON; a last
// line that is cut short by a crash is left out. It is safe for concurrent use.
type Journal struct {
	path string

	mu       sync.Mutex
	synced   sync.Cond // of mu: syncedTo has grown, or err is set
	file     *os.File
	written  int64 // records
	syncedTo int64
	syncing  bool
	err      error // of a write or an fsync: the file is not to be trusted after it
	begun    bool
	header   header
	accepted map[key]bool
	intended map[key]time.Time // and not accepted: when the first call began
	resent   int               // how often a message was sent again of which nobody knew
	deleted  int               // at the source, as far as it was noted
}

// key stands for a message id: a queue has millions.
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

// record is one line: the header, or what is to be sent, or what was accepted.
type record struct {
	Begin  *header  `json:"begin,omitempty"`
	At     int64    `json:"at,omitempty"` // Unix milliseconds
	Send   []string `json:"send,omitempty"`
	Accept []string `json:"accept,omitempty"`
	Forget []string `json:"forget,omitempty"`
	Gone   int      `json:"gone,omitempty"` // how many were deleted at the source
}

// OpenJournal opens the journal of a migration, or begins one. The error says so where path is that of another one.
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

// load reads the records, and cuts off one that was not written to its end.
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
	for _, id := range r.Accept {
		j.accepted[keyOf(id)] = true
		delete(j.intended, keyOf(id))
	}
	for _, id := range r.Forget {
		delete(j.intended, keyOf(id))
	}
	j.deleted += r.Gone
}

// intend keeps the first time: from then on a destination may know the message.
func (j *Journal) intend(k key, at time.Time) {
	if _, found := j.intended[k]; found {
		j.resent++
	} else if !j.accepted[k] {
		j.intended[k] = at
	}
}

// Begun reports whether a run has begun.
func (j *Journal) Begun() bool { return j.begun }

// Begin notes what both queues hold before the first run.
func (j *Journal) Begin(source, destination int) error {
	j.header.Source, j.header.Destination = source, destination
	if err := j.write(record{Begin: &j.header}, true); err != nil {
		return err
	}
	j.begun = true
	return nil
}

// SourceBefore and DestinationBefore are how many messages the queues held before the first run.
func (j *Journal) SourceBefore() int { return j.header.Source }

// DestinationBefore is the other one.
func (j *Journal) DestinationBefore() int { return j.header.Destination }

// Intend notes that messages are about to be sent. With durable it is on disk when it returns: else a power failure,
// but no kill, may undo it.
func (j *Journal) Intend(ids []string, durable bool) error {
	now := time.Now()
	j.mu.Lock()
	for _, id := range ids {
		j.intend(keyOf(id), now)
	}
	j.mu.Unlock()
	return j.write(record{At: now.UnixMilli(), Send: ids}, durable)
}

// Accept notes that messages were accepted. It returns when that is on disk.
func (j *Journal) Accept(ids []string) error {
	if err := j.write(record{Accept: ids}, true); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range ids {
		j.accepted[keyOf(id)] = true
		delete(j.intended, keyOf(id))
	}
	return nil
}

// forget notes that messages were not accepted.
func (j *Journal) forget(ids ...string) {
	j.mu.Lock()
	for _, id := range ids {
		delete(j.intended, keyOf(id))
	}
	j.mu.Unlock()
	_ = j.write(record{Forget: ids}, false) // without it a message counts as uncertain, which is safe
}

// deletedAnother notes that n more were deleted at the source.
func (j *Journal) deletedAnother(n int) error {
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

// intendedAt is when the first call with a message began of which nobody knows whether it was accepted.
func (j *Journal) intendedAt(id string) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.intended[keyOf(id)]
}

// Sent is how many messages were accepted, over all runs.
func (j *Journal) Sent() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.accepted)
}

// Uncertain is of how many nobody knows whether they were accepted.
func (j *Journal) Uncertain() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.intended)
}

// counts returns how often a message was sent again, and how many are known to be deleted at the source.
func (j *Journal) counts() (resent, deleted int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.resent, j.deleted
}

// write appends a record. Those that wait for the disk share an fsync.
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

	for mine := j.written; durable && j.err == nil && j.syncedTo < mine; {
		if j.syncing {
			j.synced.Wait()
			continue
		}
		j.syncing = true
		upTo := j.written
		j.mu.Unlock()
		err := j.file.Sync()
		j.mu.Lock()
		if j.syncing, j.syncedTo = false, upTo; err != nil {
			j.err = err
		}
		j.synced.Broadcast()
	}

	if j.err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, j.err)
	}
	return nil
}

// Close closes the file, and keeps it for the next run.
func (j *Journal) Close() error { return j.file.Close() }

// Remove ends the migration.
func (j *Journal) Remove() error { return errors.Join(j.file.Close(), os.Remove(j.path)) }
