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

// diskGuard watches the free space of the disk. Sends are refused while less than
// a reserve is left, so that deletes go on, which need some space themselves: in
// the log, and in the database for what is still only in the log. For the case
// that others fill the disk to the last byte it keeps a file of that size,
// which can be given up.
//
// Sends and acts of administration are refused also while the open files are not those in the data directory, because
// it was removed, moved, unmounted or replaced: the next start would not find what they wrote. Receives and deletes go
// on.
type diskGuard struct {
	dir      string
	log      *slog.Logger
	free     func(dir string) (free, total int64, err error)
	mu       sync.Mutex
	checked  time.Time
	isLow    bool
	reserved int64            // bytes of the file
	files    datadir.Identity // the directory, the queues' file and, while the store is open, its log
	lost     error            // how the open files differ from those in the directory; nil while they are the same
}

const (
	maxReserve   = 64 << 20
	minReserved  = 1 << 20
	measureEvery = 250 * time.Millisecond
	// watchEvery is how often the directory is looked at while there are no sends.
	watchEvery = 5 * time.Second
)

func newDiskGuard(dir string, log *slog.Logger) *diskGuard {
	return &diskGuard{dir: dir, log: log, free: freeSpace}
}

// opened remembers the files of the store that was just opened, and written to.
func (r *diskGuard) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.dir, databaseName)
	r.files = datadir.Identify(r.dir, path, path+"-wal", path+"-shm")
}

// closing forgets the log of the store, which is removed when the store closes, and checks the directory and the queues'
// file as [diskGuard.checkFiles] does.
func (r *diskGuard) closing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = r.files[:min(2, len(r.files))]
	return r.refreshLost()
}

// watch looks at the directory until stopped is closed.
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

// checkFiles compares the open files with those in the data directory, and returns how they differ; nil while they are
// the same.
func (r *diskGuard) checkFiles() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refreshLost()
}

// refreshLost updates and returns r.lost, and logs when the files get lost or are back. The lock is held.
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

// freeSpace returns the bytes that an ordinary user may still write, and the
// size of the file system.
func freeSpace(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := int64(s.Bsize)
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil
}

// refusal says why sends are refused, nil while they are accepted; and whether there has just become too little space.
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

// grown looks at once if the log has become longer than the file; bytes is its
// length.
func (r *diskGuard) grown(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isLow && bytes > r.reserved {
		r.measure()
	}
}

// logShrunk gives back what the file reserves for a log that was longer.
func (r *diskGuard) logShrunk() {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.wanted()
	if r.isLow || r.lost != nil || r.reserved <= want {
		return
	}
	f, err := datadir.OpenFile(r.path())
	if err != nil {
		return // it stays as large as it is
	}
	if errors.Join(f.Truncate(want), f.Close()) == nil {
		r.reserved = want
	}
}

// wanted is what the log holds, in whole megabytes, and one more.
func (r *diskGuard) wanted() int64 {
	info, err := os.Stat(filepath.Join(r.dir, databaseName+"-wal"))
	if err != nil {
		return minReserved
	}
	return (info.Size()+minReserved-1)/minReserved*minReserved + minReserved
}

// tight reports whether there was too little space at the last measurement.
func (r *diskGuard) tight() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLow
}

// measure checks the files and the free space, updates r.isLow, and makes the reserve longer if the log has grown. Space
// that cannot be measured counts as enough. The lock is held.
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

// reserve makes the file as long as wanted, with real blocks behind it.
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

// giveUpReserve gives the reserved file up, since the disk is full.
func (r *diskGuard) giveUpReserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isLow, r.reserved = true, 0
	r.checked = time.Now()
	if r.refreshLost() == nil {
		_ = os.Remove(r.path()) // a full disk stays full, and the caller will see
	}
}

func (r *diskGuard) path() string { return filepath.Join(r.dir, "reserve") }

const (
	pageSize = 4096
	// checkpointPages is the length of the log, in pages, at which it is
	// copied into the database; checkpointLeast is that on a tiny disk.
	checkpointPages = 4_000
	checkpointLeast = 64
	// logLimit is the length in bytes to which a log that became longer is cut when it starts over. The usual length,
	// and what is written while it is copied, stays: to overwrite a file is faster than to make it longer.
	logLimit = checkpointPages * pageSize * 5 / 4
)

// logPages returns how long the log may become before it is copied into the
// database: less on a small disk.
func (r *diskGuard) logPages() int64 {
	_, total, err := r.free(r.dir)
	if err != nil {
		return checkpointPages
	}
	return min(checkpointPages, max(checkpointLeast, total/64/pageSize))
}

// writeZeros writes a file over from its beginning, size bytes long.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}
