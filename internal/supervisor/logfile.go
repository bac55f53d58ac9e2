package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// maxLogFile is how long a log file may grow, in bytes, before it is renamed to
	// PATH.1. What is written at once and is longer than this is dropped.
	maxLogFile = 10 << 20
	// keptLogFiles is how many older files are kept, PATH.1 being the youngest.
	keptLogFiles = 5
	// rotateRetry is the pause after a file could not be rotated or opened.
	rotateRetry = time.Second
)

// logFile is a file of bounded size that only its owner may read. A write that
// the disk refuses is dropped and counted, and the next one is tried again. Its
// methods may be called from any goroutine.
type logFile struct {
	path     string
	maxBytes int64
	keep     int

	mu   sync.Mutex
	file *os.File // nil where it could not be opened again
	size int64
	// torn: the last write ended within a line.
	torn    bool
	closed  bool
	dropped int64
	// retryAt is when a rotation that failed may be tried again.
	retryAt time.Time
}

// open opens the path, which is created or continued. The flags keep it from
// following a link that somebody put there, and from waiting at a pipe.
func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log file: %w: choose a path in a folder that exists and may be written to", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file: choose another path")
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("opening the log file %s: %w", l.path, err)
	}
	l.file, l.size, l.torn = file, info.Size(), false
	return nil
}

// write appends p, which should be whole lines, in one piece: a file is renamed
// before it would grow too long.
func (l *logFile) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || int64(len(p)) > l.maxBytes || !l.makeRoom(int64(len(p))) {
		l.dropped++
		return
	}
	if l.torn {
		p = append([]byte{'\n'}, p...)
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.torn = err != nil && (l.torn || n > 0) // a disk that is full may take a part of a line
	if err != nil {
		l.dropped++
	}
}

// makeRoom reports whether n bytes, and one to end a torn line, fit into the
// open file, which it rotates for that.
func (l *logFile) makeRoom(n int64) bool {
	if l.file != nil && (l.size == 0 || l.size+n+1 <= l.maxBytes) {
		return true
	}
	if time.Now().Before(l.retryAt) {
		return false
	}
	if l.rotate() != nil {
		l.retryAt = time.Now().Add(rotateRetry)
		return false
	}
	return true
}

// rotate renames every file to the next number, drops the last, and opens a new one.
func (l *logFile) rotate() error {
	if l.file != nil { // or it was renamed already, and only the opening failed
		for n := l.keep - 1; n >= 0; n-- {
			if err := os.Rename(l.numbered(n), l.numbered(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		_ = l.file.Close()
		l.file = nil
	}
	return l.open()
}

// numbered is the path of the n-th older file; 0 is the present one.
func (l *logFile) numbered(n int) string {
	if n == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(n)
}

// close ends the file; what is written afterwards is dropped.
func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	file := l.file
	l.closed, l.file = true, nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// LogFolder keeps the output of each process in files of its own, named as
// Elastic Beanstalk names them: web.stdout.log and web.stderr.log. A file of 10 MiB
// is renamed, and five older ones are kept. Its methods may be called from any goroutine.
type LogFolder struct {
	dir string

	mu    sync.Mutex
	files map[string]*logFile
	// refused counts lines of files that could not be opened.
	refused int64
	retryAt time.Time
	closed  bool
}

// NewLogFolder keeps its files in dir, which is created, for the owner alone,
// where it is missing.
func NewLogFolder(dir string) (*LogFolder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the log folder: %w: choose a folder that may be written to", err)
	}
	return &LogFolder{dir: dir, files: map[string]*logFile{}}, nil
}

// Line writes one line; it is an [Options.Output].
func (f *LogFolder) Line(process, stream string, line []byte) {
	if file := f.file(process + "." + stream + ".log"); file != nil {
		file.write(append(line[:len(line):len(line)], '\n'))
	}
}

// file returns an open file, or nil where it cannot be opened now.
func (f *LogFolder) file(name string) *logFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.files[name]; file != nil {
		return file
	}
	if !f.closed && !time.Now().Before(f.retryAt) {
		file := &logFile{path: filepath.Join(f.dir, name), maxBytes: maxLogFile, keep: keptLogFiles}
		if file.open() == nil {
			f.files[name] = file
			return file
		}
		f.retryAt = time.Now().Add(rotateRetry)
	}
	f.refused++
	return nil
}

// Close ends all files.
func (f *LogFolder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.close())
	}
	return errors.Join(errs...)
}
