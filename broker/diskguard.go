package broker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/host/datadir"
)

// diskGuard refuses sends while the free space is below a reserve, to keep space for deletes. In case other
// programs fill the disk, it holds a reserve file, which it removes once a write finds the disk full. While the
// data directory is lost, it refuses sends and administrative changes, because the next start would not find them.
type diskGuard struct {
	dir      string
	log      *slog.Logger
	free     func(dir string) (free, total int64, err error)
	mu       sync.Mutex
	checked  time.Time
	isLow    bool
	reserved int64            // size of the reserve file in bytes
	files    datadir.Identity // directory and database; while the store is open, also -wal and -shm
	lost     error            // how the files changed, or nil
}

const (
	// Space is low below maxReserve bytes or, on a small disk, below a sixteenth of it. The reserve file takes at most
	// an eighth of the disk.
	maxReserve   = 64 << 20
	reserveUnit  = 1 << 20
	measureEvery = 250 * time.Millisecond
	watchEvery   = 5 * time.Second
)

func newDiskGuard(dir string, log *slog.Logger) *diskGuard {
	return &diskGuard{dir: dir, log: log, free: freeSpace}
}

func (r *diskGuard) identifyFiles() {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.dir, databaseName)
	r.files = datadir.Identify(r.dir, path, path+"-wal", path+"-shm")
}

// checkBeforeClose ignores the -wal and -shm files, which closing the store removes.
func (r *diskGuard) checkBeforeClose() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = r.files[:min(2, len(r.files))]
	return r.refreshLost()
}

func (r *diskGuard) watch(stopped <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C:
			_ = r.checkFiles()
		}
	}
}

func (r *diskGuard) checkFiles() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refreshLost()
}

// The caller must hold the lock.
func (r *diskGuard) refreshLost() error {
	before := r.lost
	switch r.lost = r.files.Changed(); {
	case r.lost != nil && before == nil:
		r.log.Error("data directory lost, sends are rejected", "dir", r.dir, "err", r.lost,
			"hint", "restore it at its path; after a restart, only the files at that path are used")
	case r.lost == nil && before != nil:
		r.log.Info("data directory restored, sends are accepted", "dir", r.dir)
	}
	return r.lost
}

func freeSpace(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := int64(s.Bsize)
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil
}

// refusal returns the reason to refuse sends, or nil. justLow means that the free space fell below the reserve since
// the previous call.
func (r *diskGuard) refusal() (err error, justLow bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.isLow
	if r.lost != nil || time.Since(r.checked) >= measureEvery {
		r.measure()
	}
	switch {
	case r.lost != nil:
		err = errDataDirLost(r.lost)
	case r.isLow:
		err = errFull
	}
	return err, r.isLow && !before
}

// coverLog measures the free space if the log, now of the given size, exceeds the reserve file.
func (r *diskGuard) coverLog(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isLow && bytes > r.reserved {
		r.measure()
	}
}

func (r *diskGuard) shrinkReserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.wanted()
	if r.isLow || r.lost != nil || r.reserved <= want {
		return
	}
	f, err := datadir.OpenFile(r.reservePath())
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() < want: // the file was removed; measure allocates it again
		r.reserved = 0
	case f.Truncate(want) == nil:
		r.reserved = want
	}
}

func (r *diskGuard) wanted() int64 {
	info, err := os.Stat(filepath.Join(r.dir, databaseName+"-wal"))
	if err != nil {
		return reserveUnit
	}
	return roundUp(info.Size(), reserveUnit) + reserveUnit
}

func (r *diskGuard) isSpaceLow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLow
}

// measure measures the free space, and grows the reserve file with the log. Unknown free space counts as sufficient.
// The caller must hold the lock.
func (r *diskGuard) measure() {
	r.checked = time.Now()
	if r.refreshLost() != nil {
		return
	}
	free, total, err := r.free(r.dir)
	if err != nil {
		r.isLow = false
		return
	}
	reserve := min(maxReserve, total/16)
	r.isLow = free < reserve
	want := min(r.wanted(), total/8)
	more := want - r.reserved
	if r.isLow || more <= 0 || free < reserve+more {
		return
	}
	if r.reserve(want) == nil {
		r.reserved = want
	}
}

func (r *diskGuard) reserve(size int64) error {
	f, err := datadir.OpenFile(r.reservePath())
	if err != nil {
		return err
	}
	if err = errors.Join(allocate(f, size), f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.reservePath()))
	}
	return nil
}

func (r *diskGuard) giveUpReserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isLow = true
	r.reserved = 0
	r.checked = time.Now()
	if r.refreshLost() == nil {
		_ = os.Remove(r.reservePath())
	}
}

func (r *diskGuard) reservePath() string { return filepath.Join(r.dir, "reserve") }

const (
	pageSize = 4096
	// checkpointPages is the log length, in pages, that triggers a checkpoint. Small disks use less, down to
	// checkpointLeast.
	checkpointPages = 4_000
	checkpointLeast = 64
	// A restarting log is truncated to logLimit bytes, more than its usual length, because overwriting is faster than
	// extending.
	logLimit = checkpointPages * pageSize * 5 / 4
)

func (r *diskGuard) logPages() int64 {
	_, total, err := r.free(r.dir)
	if err != nil {
		return checkpointPages
	}
	return min(checkpointPages, max(checkpointLeast, total/64/pageSize))
}

func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}
