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
	// maxLogFile is in bytes. A longer write is dropped.
	maxLogFile   = 10 << 20
	keptLogFiles = 5
	rotateRetry  = time.Second
)

// logFile is a rotated log file. It is safe for concurrent use.
type logFile struct {
	path     string
	maxBytes int64
	keep     int

	mu      sync.Mutex
	file    *os.File
	size    int64
	torn    bool
	closed  bool
	dropped int64
	retryAt time.Time
}

// open rejects links, which another user could have created, and does not block on a named pipe.
func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log file: %w: choose a writable path in an existing folder", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file: choose another path")
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("opening the log file %s: %w", l.path, err)
	}
	l.file = file
	l.size = info.Size()
	l.torn = false
	return nil
}

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
	l.torn = err != nil && (l.torn || n > 0) // a full disk may take part of a line
	if err != nil {
		l.dropped++
	}
}

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

func (l *logFile) rotate() error {
	if l.file != nil { // nil if an earlier rotation failed to reopen it
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

func (l *logFile) numbered(n int) string {
	if n == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(n)
}

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

// LogFolder writes output to files named as on Elastic Beanstalk: web.stdout.log and web.stderr.log. It rotates files
// at 10 MiB and keeps five. It is safe for concurrent use.
type LogFolder struct {
	dir string

	mu      sync.Mutex
	files   map[string]*logFile
	refused int64
	retryAt time.Time
	closed  bool
}

// NewLogFolder returns a LogFolder for dir, which it creates with mode 0700 if missing.
func NewLogFolder(dir string) (*LogFolder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the log folder: %w: choose a writable folder", err)
	}
	return &LogFolder{dir: dir, files: map[string]*logFile{}}, nil
}

// Line writes a line. Its signature matches [Options.Output].
func (f *LogFolder) Line(process, stream string, line []byte) {
	if file := f.file(process + "." + stream + ".log"); file != nil {
		file.write(append(line[:len(line):len(line)], '\n'))
	}
}

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

// Close closes all files.
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
