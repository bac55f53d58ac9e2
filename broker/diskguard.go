package broker

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tendril/datadir"
)

// diskGuard watches the free space of the disk. Sends are refused while less than
// a reserve is left, so that deletes go on, which need some space themselves: in
// the log, and in the database for what is still only in the log. For the case
// that others fill the disk to the last byte it keeps a file of that size,
// which can be given up.
type diskGuard struct {
	dir      string
	free     func(dir string) (free, total int64, err error)
	mu       sync.Mutex
	checked  time.Time
	isLow    bool
	reserved int64 // bytes of the file
}

const (
	maxReserve   = 64 << 20
	minReserved  = 1 << 20
	measureEvery = 250 * time.Millisecond
)

func newDiskGuard(dir string) *diskGuard { return &diskGuard{dir: dir, free: freeSpace} }

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

// low reports whether there is too little space for sends, and whether it has
// just become so.
func (r *diskGuard) low() (low, just bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.isLow
	if time.Since(r.checked) >= measureEvery {
		r.measure()
	}
	return r.isLow, r.isLow && !before
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
	if r.isLow || r.reserved <= want {
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

// tight reports what low said last.
func (r *diskGuard) tight() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLow
}

// measure looks at the disk. What cannot be measured is taken as enough.
func (r *diskGuard) measure() {
	r.checked = time.Now()
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
	_ = os.Remove(r.path()) // a full disk stays full, and the caller will see
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
