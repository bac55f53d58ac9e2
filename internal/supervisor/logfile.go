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
	maxLogFile   = 10 << 20 // bytes
	keptLogFiles = 5
	rotateRetry  = time.Second
)

// logFile is a rotated log file, opened by the first write. It writes the number of dropped lines before the next line, or
// when it is closed.
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

// open rejects symbolic links, which another user could have created, and does not block on a named pipe.
func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", l.path)
	}
	if err != nil {
		_ = file.Close()
		return err
	}
	l.file = file
	l.size = info.Size()
	l.torn = false
	return nil
}

func (l *logFile) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writeDropped(len(line)) || !l.append(line) {
		l.dropped++
	}
}

// writeDropped writes the number of dropped lines, if any. It makes room for a line of the given length behind it.
func (l *logFile) writeDropped(length int) (ok bool) {
	var marker []byte
	if l.dropped > 0 {
		marker = fmt.Appendf(nil, "... %d lines dropped\n", l.dropped)
	}
	ok = !l.closed && l.makeRoom(int64(len(marker)+length)) && (marker == nil || l.append(marker))
	if ok {
		l.dropped = 0
	}
	return ok
}

func (l *logFile) addDropped(lines int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped += lines
}

func (l *logFile) append(p []byte) (ok bool) {
	if l.torn {
		p = append([]byte{'\n'}, p...)
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.torn = err != nil && (l.torn || n > 0) // a full disk may take part of a line
	return err == nil
}

func (l *logFile) makeRoom(n int64) bool {
	if l.file != nil && (l.size == 0 || l.size+n+1 <= l.maxBytes) { // 1 after a torn line
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
	if l.file != nil { // nil until opened
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
	if l.dropped > 0 {
		l.writeDropped(0)
	}
	file := l.file
	l.closed, l.file = true, nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// LogFolder writes output to files named as on Elastic Beanstalk, such as web.stdout.log and web.stderr.log. It rotates
// files at 10 MiB and keeps five older ones of each. It is safe for concurrent use.
type LogFolder struct {
	dir string

	mu     sync.Mutex
	files  map[string]*logFile
	closed bool
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
	f.file(process, stream).write(append(line[:len(line):len(line)], '\n'))
}

// LinesDropped counts lines dropped before they reached the file. Its signature matches [Events.LinesDropped].
func (f *LogFolder) LinesDropped(d LinesDropped) { f.file(d.Process, d.Stream).addDropped(d.Lines) }

func (f *LogFolder) file(process, stream string) *logFile {
	name := process + "." + stream + ".log"
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[name] == nil {
		f.files[name] = &logFile{path: filepath.Join(f.dir, name), maxBytes: maxLogFile, keep: keptLogFiles, closed: f.closed}
	}
	return f.files[name]
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
