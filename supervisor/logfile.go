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

// rotateRetry is the pause after a rotation that failed.
const rotateRetry = time.Second

// LogFileOptions bound a [LogFile]. The zero value, and a nil *LogFileOptions,
// are the defaults.
type LogFileOptions struct {
	// MaxBytes is how long the file may grow before it is moved aside; 0 means
	// 10 MiB. What is written at once and is longer than this is dropped.
	MaxBytes int64
	// Keep is how many older files are kept, PATH.1 being the youngest; 0 means
	// 5, negative none. All together never hold more than (Keep+1) × MaxBytes.
	Keep int
}

func (o *LogFileOptions) withDefaults() (LogFileOptions, error) {
	var set LogFileOptions
	if o != nil {
		set = *o
	}
	if set.MaxBytes < 0 {
		return set, fmt.Errorf("MaxBytes is %d: it cannot be negative; 0 means 10 MiB", set.MaxBytes)
	}
	if set.MaxBytes == 0 {
		set.MaxBytes = 10 << 20
	}
	if set.Keep == 0 {
		set.Keep = 5
	}
	set.Keep = max(set.Keep, 0)
	return set, nil
}

// LogFile is a file of bounded size that only its owner may read. A write that
// the disk refuses is dropped and counted, and the next one is tried again: it
// never fails for the writer. Its methods may be called from any goroutine.
type LogFile struct {
	path string
	opts LogFileOptions

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

// NewLogFile opens the file at path, which is created or continued. The error
// says why that cannot be: what is there must be a regular file.
func NewLogFile(path string, opts *LogFileOptions) (*LogFile, error) {
	set, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	l := &LogFile{path: path, opts: set}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// open opens the path. The flags keep it from following a link that somebody
// put there, and from waiting at a pipe.
func (l *LogFile) open() error {
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

// Write appends p, which should be whole lines, in one piece: a file is moved
// aside before it would grow too long. It always takes p; see [LogFile.Dropped].
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.append(p) {
		l.dropped++
	}
	return len(p), nil
}

func (l *LogFile) append(p []byte) bool {
	if l.closed || int64(len(p)) > l.opts.MaxBytes || !l.makeRoom(int64(len(p))) {
		return false
	}
	if l.torn {
		p = append([]byte{'\n'}, p...)
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	if err != nil {
		// A disk that is full may take a part of a line.
		l.torn = l.torn || n > 0
		return false
	}
	l.torn = false
	return true
}

// makeRoom reports whether n bytes, and one to end a torn line, fit into the
// open file, which it moves aside for that.
func (l *LogFile) makeRoom(n int64) bool {
	fits := l.file != nil && (l.size == 0 || l.size+n+1 <= l.opts.MaxBytes)
	if fits {
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

// rotate moves every file one further, drops the last, and opens a new one.
func (l *LogFile) rotate() error {
	if l.file == nil {
		// It was moved already, and only the opening failed.
		return l.open()
	}
	if l.opts.Keep == 0 {
		err := l.file.Truncate(0)
		if err == nil {
			l.size, l.torn = 0, false
		}
		return err
	}
	for n := l.opts.Keep - 1; n >= 0; n-- {
		err := os.Rename(l.numbered(n), l.numbered(n+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_ = l.file.Close()
	l.file = nil
	return l.open()
}

// numbered is the path of the n-th older file; 0 is the present one.
func (l *LogFile) numbered(n int) string {
	if n == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(n)
}

// Close ends the file; what is written afterwards is dropped.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// LogFolder keeps the output of each process in files of its own, named as
// Elastic Beanstalk names them: web.stdout.log and web.stderr.log. Its methods
// may be called from any goroutine.
type LogFolder struct {
	dir  string
	opts LogFileOptions

	mu    sync.Mutex
	files map[string]*LogFile
	// refused counts lines of files that could not be opened.
	refused int64
	retryAt time.Time
	closed  bool
}

// NewLogFolder keeps its files in dir, which is created, for the owner alone,
// where it is missing. opts bound each file.
func NewLogFolder(dir string, opts *LogFileOptions) (*LogFolder, error) {
	set, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("log folder %s: %w", dir, err)
	}
	if set.Keep == 0 {
		set.Keep = -1
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the log folder: %w: choose a folder that may be written to", err)
	}
	return &LogFolder{dir: dir, opts: set, files: map[string]*LogFile{}}, nil
}

// Line writes one line; it is an [Options.Output].
func (f *LogFolder) Line(process, stream string, line []byte) {
	if file := f.file(process + "." + stream + ".log"); file != nil {
		_, _ = file.Write(append(line[:len(line):len(line)], '\n'))
	}
}

// file returns an open file, or nil where it cannot be opened now.
func (f *LogFolder) file(name string) *LogFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.files[name]; file != nil {
		return file
	}
	if !f.closed && !time.Now().Before(f.retryAt) {
		file, err := NewLogFile(filepath.Join(f.dir, name), &f.opts)
		if err == nil {
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
	f.closed = true
	f.mu.Unlock()
	return f.each((*LogFile).Close)
}

func (f *LogFolder) each(do func(*LogFile) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []error
	for _, file := range f.files {
		all = append(all, do(file))
	}
	return errors.Join(all...)
}
