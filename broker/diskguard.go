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

// diskGuard watches the disk's free space. When it falls below a reserve, sends are refused so that deletes can
// continue, since these need space in the log and in the database. In case other programs fill the disk completely,
// it keeps a file as large as the log, which can be removed to free space.
//
// Sends and administration are also refused while the open files are not the ones in the data directory (removed,
// moved, unmounted or replaced), because the next start would not find their changes. Receives and deletes continue.
type diskGuard struct {
	dir      string
	log      *slog.Logger
	free     func(dir string) (free, total int64, err error)
	mu       sync.Mutex
	checked  time.Time
	isLow    bool
	reserved int64            // size of the reserve file in bytes
	files    datadir.Identity // the directory, the database and, while the store is open, its log
	lost     error            // how the open files differ from the directory's; nil if they are the same
}

const (
	maxReserve   = 64 << 20
	minReserved  = 1 << 20
	measureEvery = 250 * time.Millisecond
	// watchEvery is the interval of checking the directory without sends.
	watchEvery = 5 * time.Second
)

func newDiskGuard(dir string, log *slog.Logger) *diskGuard {
	return &diskGuard{dir: dir, log: log, free: freeSpace}
}

// opened records the identity of the store's files after it was opened and written to.
func (r *diskGuard) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.dir, databaseName)
	r.files = datadir.Identify(r.dir, path, path+"-wal", path+"-shm")
}

// closing drops the log from the watched files, since closing the store removes it, and checks the others.
func (r *diskGuard) closing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = r.files[:min(2, len(r.files))]
	return r.refreshLost()
}

// watch checks the directory until stopped is closed.
func (r *diskGuard) watch(stopped <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C:
			_ = r.checkFiles() // logs a change
		}
	}
}

// checkFiles returns how the open files differ from those in the data directory; nil if they are the same.
func (r *diskGuard) checkFiles() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refreshLost()
}

// refreshLost updates and returns r.lost, and logs when it changes. The lock is held.
func (r *diskGuard) refreshLost() error {
	before := r.lost
	switch r.lost = r.files.Changed(); {
	case r.lost != nil && before == nil:
		r.log.Error("data directory lost, sends are refused", "dir", r.dir, "err", r.lost,
			"hint", "put it back at its path; a restart finds only what is at the path then")
	case r.lost == nil && before != nil:
		r.log.Info("data directory is back, sends are accepted", "dir", r.dir)
	}
	return r.lost
}

// freeSpace returns the bytes available to ordinary users and the size of the file system.
func freeSpace(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := int64(s.Bsize)
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil
}

// refusal returns why sends are refused, or nil if they are accepted. justLow reports that space has just run low.
func (r *diskGuard) refusal() (err error, justLow bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.isLow
	if r.lost != nil || time.Since(r.checked) >= measureEvery {
		r.measure()
	}
	switch {
	case r.lost != nil:
		err = errLost(r.lost)
	case r.isLow:
		err = errFull
	}
	return err, r.isLow && !before
}

// grown measures at once if the log, now of the given length, has outgrown the reserve file.
func (r *diskGuard) grown(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isLow && bytes > r.reserved {
		r.measure()
	}
}

// logShrunk shrinks the reserve file after the log has shrunk.
func (r *diskGuard) logShrunk() {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.wanted()
	if r.isLow || r.lost != nil || r.reserved <= want {
		return
	}
	f, err := datadir.OpenFile(r.path())
	if err != nil {
		return // keeps its size
	}
	if errors.Join(f.Truncate(want), f.Close()) == nil {
		r.reserved = want
	}
}

// wanted returns the desired size of the reserve file: the log's size, rounded up, and another megabyte.
func (r *diskGuard) wanted() int64 {
	info, err := os.Stat(filepath.Join(r.dir, databaseName+"-wal"))
	if err != nil {
		return minReserved
	}
	return (info.Size()+minReserved-1)/minReserved*minReserved + minReserved
}

// tight reports whether space was low at the last measurement.
func (r *diskGuard) tight() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLow
}

// measure checks the files and the free space, updates r.isLow, and grows the reserve file with the log. An error
// counts as enough space. The lock is held.
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
	if more := want - r.reserved; !r.isLow && more > 0 && free >= reserve+more && r.reserve(want) == nil {
		r.reserved = want
	}
}

// reserve gives the reserve file size bytes of allocated blocks.
func (r *diskGuard) reserve(size int64) error {
	f, err := datadir.OpenFile(r.path())
	if err != nil {
		return err
	}
	if err = errors.Join(allocate(f, size), f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path()))
	}
	return nil
}

// giveUpReserve removes the reserve file because the disk is full.
func (r *diskGuard) giveUpReserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isLow, r.reserved = true, 0
	r.checked = time.Now()
	if r.refreshLost() == nil {
		_ = os.Remove(r.path()) // if this fails, the disk stays full and the caller notices
	}
}

func (r *diskGuard) path() string { return filepath.Join(r.dir, "reserve") }

const (
	pageSize = 4096
	// checkpointPages is the log's length in pages at which it is checkpointed; checkpointLeast applies to tiny
	// disks.
	checkpointPages = 4_000
	checkpointLeast = 64
	// logLimit is the length in bytes to which a restarting log is truncated. It is longer than a usual log because
	// overwriting a file is faster than extending it.
	logLimit = checkpointPages * pageSize * 5 / 4
)

// logPages returns the log's length at which it is checkpointed, which is shorter on a small disk.
func (r *diskGuard) logPages() int64 {
	_, total, err := r.free(r.dir)
	if err != nil {
		return checkpointPages
	}
	return min(checkpointPages, max(checkpointLeast, total/64/pageSize))
}

// writeZeros overwrites the first size bytes of a file.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}
