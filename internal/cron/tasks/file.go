package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"tendril/internal/config/yamlfile"
	"tendril/internal/cron/periodic"
)

// File is a cron.yaml.
type File struct {
	Path  string
	Tasks *periodic.File

	stamp string
}

// Open reads the file at path and logs its warnings. It returns the zero File if path is "".
func Open(path string, log *slog.Logger) (File, error) {
	if path == "" {
		return File{}, nil
	}
	f := File{Path: path, stamp: stamp(path)}
	var err error
	if f.Tasks, err = Read(path); err != nil {
		return File{}, err
	}
	for _, w := range f.Tasks.Warnings {
		attrs := []any{"file", w.Where, "reason", w.Text}
		if w.Hint != "" {
			attrs = append(attrs, "hint", w.Hint)
		}
		log.Warn("cron.yaml warning", attrs...)
	}
	return f, nil
}

// Read reads a cron.yaml. Invalid content is a [*periodic.Error]. Read does not block on FIFOs and devices.
func Read(path string) (*periodic.File, error) {
	data, _, err := yamlfile.ReadFile(path, periodic.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the periodic tasks: %w; name a readable file with --cron", err)
	}
	return periodic.ParseFile(path, data)
}

func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	inode := uint64(0) // distinguishes files with the same size and time
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(stat.Ino)
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), inode)
}

// Only the holder of Manager.changing may set inForce.
type watchedFile struct {
	inForce   atomic.Pointer[File] // never nil
	lastStamp atomic.Value         // last checked stamp, a string
	absent    atomic.Int32
}

func (f *watchedFile) path() string { return f.inForce.Load().Path }

func (f *watchedFile) tasks() []periodic.Task {
	if file := f.inForce.Load().Tasks; file != nil {
		return file.Tasks
	}
	return nil
}

func (f *watchedFile) mayOverlap(task string) bool {
	return !slices.ContainsFunc(f.tasks(), func(t periodic.Task) bool {
		return t.Name == task && t.Overlap == periodic.SkipOverlap
	})
}

func (f *watchedFile) setPath(path string) {
	file := *f.inForce.Load()
	file.Path = path
	f.inForce.Store(&file)
}

func (f *watchedFile) set(now File) {
	f.inForce.Store(&now)
	f.lastStamp.Store(now.stamp)
}

// A file may be missing briefly while it is replaced.
const absentChecks = 3

func (f *watchedFile) noticeChange() bool {
	now := stamp(f.path())
	if now != "" {
		f.absent.Store(0)
	} else if f.absent.Add(1) < absentChecks {
		return false
	}
	return f.lastStamp.Swap(now) != now
}

func (f *watchedFile) reread(required bool) (File, error) {
	f.noticeChange() // so that watch does not reload it
	now := File{Path: f.path(), Tasks: &periodic.File{}}
	if now.Path == "" {
		return now, nil
	}

	now.stamp = stamp(now.Path)
	tasks, err := Read(now.Path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return now, nil
	}
	if err != nil {
		return File{}, err
	}
	now.Tasks = tasks
	return now, nil
}

const watchInterval = 2 * time.Second

func (f *watchedFile) watch(ctx context.Context, reload func()) {
	tick := time.Tick(watchInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if f.noticeChange() {
			reload()
		}
	}
}
