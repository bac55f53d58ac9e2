package broker

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// room watches the free space of the disk. Sends are refused while less than
// a reserve is left, so that deletes, which need a little room in the log
// themselves, go on. For the case that others fill the disk to the last byte
// it keeps a small file that can be given up.
type room struct {
	dir     string
	free    func(dir string) (free, total int64, err error)
	mu      sync.Mutex
	checked time.Time
	isLow   bool
	ballast bool // the file is there
}

const (
	reserveMost = 64 << 20
	ballastMost = 2 << 20
	roomEvery   = 250 * time.Millisecond
)

func newRoom(dir string) *room { return &room{dir: dir, free: freeSpace} }

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

// low reports whether there is too little room for sends.
func (r *room) low() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.checked.IsZero() || now.Sub(r.checked) >= roomEvery {
		r.checked = now
		r.look()
	}
	return r.isLow
}

// look measures. What cannot be measured is taken as enough.
func (r *room) look() {
	free, total, err := r.free(r.dir)
	if err != nil {
		r.isLow = false
		return
	}
	reserve, ballast := min(reserveMost, total/16), min(ballastMost, total/32)
	r.isLow = free < reserve
	if !r.isLow && !r.ballast && free >= reserve+ballast {
		r.ballast = writeBallast(r.path(), ballast) == nil
	}
}

// release gives the reserved file up, since the disk is full.
func (r *room) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isLow, r.ballast = true, false
	r.checked = time.Now()
	_ = os.Remove(r.path()) // a full disk stays full, and the caller will see
}

func (r *room) path() string { return filepath.Join(r.dir, "reserve") }

// writeBallast makes the file with real blocks behind it.
func writeBallast(path string, size int64) error {
	if info, err := os.Stat(path); err == nil && info.Size() == size {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for left := size; left > 0 && err == nil; left -= int64(len(zeros)) {
		_, err = f.Write(zeros[:min(left, int64(len(zeros)))])
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
