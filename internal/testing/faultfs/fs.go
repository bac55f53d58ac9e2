package faultfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// FS is a file system for SQLite. It is safe for concurrent use.
type FS struct {
	name string

	deciding sync.Mutex // held while fail runs
	calls    int        // changes to files since the last SetFail
	fail     func(op, path string, n int) int32

	mu    sync.Mutex
	syncs map[string]int // by base name
	disk  map[string]*shadow
}

type shadow struct {
	durable []byte
	pending []pendingWrite
}

type pendingWrite struct {
	offset   int64
	data     []byte
	truncate bool
}

func (p pendingWrite) apply(content []byte) []byte {
	end := p.offset + int64(len(p.data))
	if p.truncate {
		end = p.offset
	}
	if grow := end - int64(len(content)); grow > 0 {
		content = append(content, make([]byte, grow)...)
	}
	if p.truncate {
		return content[:end]
	}
	copy(content[p.offset:], p.data)
	return content
}

func (f *FS) before(op, path string) int32 {
	f.deciding.Lock()
	defer f.deciding.Unlock()
	f.calls++
	if f.fail == nil {
		return sqlite3.SQLITE_OK
	}
	return f.fail(op, path, f.calls)
}

func (f *FS) note(path string, w pendingWrite) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.shadow(path)
	s.pending = append(s.pending, w)
}

func (f *FS) shadow(path string) *shadow {
	s := f.disk[path]
	if s == nil {
		s = &shadow{}
		f.disk[path] = s
	}
	return s
}

// An existing file's content counts as synced.
func (f *FS) opening(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk[path] != nil {
		if _, err := os.Stat(path); err != nil {
			delete(f.disk, path)
		}
		return
	}
	if content, err := os.ReadFile(path); err == nil {
		f.disk[path] = &shadow{durable: content}
	}
}

func (f *FS) synced(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs[filepath.Base(path)]++
	s := f.shadow(path)
	for _, w := range s.pending {
		s.durable = w.apply(s.durable)
	}
	s.pending = nil
}

// PowerFailure copies a directory to its state after a power failure. Each unsynced write survives with probability
// keep; one in eight of the large ones survives only partially. Only existing files that SQLite has opened are copied.
func (f *FS) PowerFailure(t testing.TB, from, to string, keep float64, r *rand.Rand) {
	t.Helper()
	f.crash(t, from, to, func(w pendingWrite) (pendingWrite, bool) {
		if r.Float64() >= keep {
			return w, false
		}
		if len(w.data) > 512 && r.IntN(8) == 0 {
			w.data = w.data[:r.IntN(len(w.data)/512)*512]
		}
		return w, true
	})
}

// Kill copies a directory to its state after the process was killed: all writes survive.
func (f *FS) Kill(t testing.TB, from, to string) {
	t.Helper()
	f.crash(t, from, to, func(w pendingWrite) (pendingWrite, bool) { return w, true })
}

// crash processes files by name, so that a seed gives reproducible results.
func (f *FS) crash(t testing.TB, from, to string, left func(pendingWrite) (pendingWrite, bool)) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(f.disk)) {
		if filepath.Dir(path) != filepath.Clean(from) || strings.HasSuffix(path, "-shm") {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}

		s := f.disk[path]
		content := bytes.Clone(s.durable)
		for _, w := range s.pending {
			if w, kept := left(w); kept {
				content = w.apply(content)
			}
		}

		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Forget discards the state of a directory's files. None of them may be open.
func (f *FS) Forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.disk, func(path string, _ *shadow) bool { return filepath.Dir(path) == filepath.Clean(dir) })
}

// Syncs returns how often files with this base name were synced.
func (f *FS) Syncs(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs[name]
}

// Name returns the file system's name in SQLite.
func (f *FS) Name() string { return f.name }

// SetFail sets the function that returns SQLite's result code for each later call that changes a file; 0 means success.
// op is "open", "write", "truncate" or "sync", and n counts the calls from 1. Calls of fail are serialized; it may
// block. nil turns failures off.
func (f *FS) SetFail(fail func(op, path string, n int) int32) {
	f.deciding.Lock()
	defer f.deciding.Unlock()
	f.fail, f.calls = fail, 0
}

// The code below uses SQLite's C interface, as translated to Go by the driver's library: structures are in the
// library's memory, and functions are called through pointers.

// registered is keyed by the C addresses that SQLite passes.
var registered = struct {
	sync.Mutex
	systems map[uintptr]system
	files   map[uintptr]*faultFile
	methods map[uintptr]uintptr // replacements
}{systems: map[uintptr]system{}, files: map[uintptr]*faultFile{}, methods: map[uintptr]uintptr{}}

// open belongs to the underlying file system.
type system struct {
	fs   *FS
	open uintptr
}

type faultFile struct {
	fs       *FS
	path     string
	original *sqlite3.Tsqlite3_io_methods
}

type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closeFunc = func(tls *libc.TLS, file uintptr) int32
	writeFunc = func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32
	truncFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
)

func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p})) }

func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// New registers a file system for the duration of a test.
func New(t testing.TB) *FS {
	t.Helper()
	return register(t, 0)
}

// NewDefault registers a file system as SQLite's default for the duration of a test. Tests that use SQLite must not run
// in parallel.
func NewDefault(t testing.TB) *FS {
	t.Helper()
	return register(t, 1)
}

func register(t testing.TB, asDefault int32) *FS {
	t.Helper()
	f := &FS{name: strings.ReplaceAll(t.Name(), "/", "-") + "-faults", syncs: map[string]int{},
		disk: map[string]*shadow{}}
	tls := libc.NewTLS()
	name, err := libc.CString(f.name)
	if err != nil {
		t.Fatal(err)
	}

	sqlite3.Xsqlite3_initialize(tls)
	ordinary := at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	vfs := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*ordinary)))
	table := at[sqlite3.Tsqlite3_vfs](vfs)
	*table = *ordinary
	table.FzName = name
	table.FpNext = 0
	table.FxOpen = pointer[openFunc](faultOpen)

	registered.Lock()
	registered.systems[vfs] = system{f, ordinary.FxOpen}
	registered.Unlock()
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, asDefault); rc != sqlite3.SQLITE_OK {
		t.Fatalf("registering the file system: %d", rc)
	}

	t.Cleanup(func() {
		sqlite3.Xsqlite3_vfs_unregister(tls, vfs)
		registered.Lock()
		delete(registered.systems, vfs)
		registered.Unlock()
		libc.Xfree(tls, vfs)
		libc.Xfree(tls, name)
		tls.Close()
	})
	return f
}

func faultOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	registered.Lock()
	s := registered.systems[vfs]
	registered.Unlock()
	path := ""
	if name != 0 {
		path = libc.GoString(name)
	}

	if rc := s.fs.before("open", path); rc != sqlite3.SQLITE_OK {
		*at[uintptr](file) = 0 // tells SQLite not to close the file
		return rc
	}

	s.fs.opening(path)
	rc := function[openFunc](s.open)(tls, vfs, name, file, flags, out)
	if rc == sqlite3.SQLITE_OK {
		methods := *at[uintptr](file)
		registered.Lock()
		defer registered.Unlock()
		registered.files[file] = &faultFile{s.fs, path, at[sqlite3.Tsqlite3_io_methods](methods)}
		*at[uintptr](file) = replaceMethods(tls, methods)
	}
	return rc
}

// registered must be locked.
func replaceMethods(tls *libc.TLS, original uintptr) uintptr {
	if p := registered.methods[original]; p != 0 {
		return p
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	table := at[sqlite3.Tsqlite3_io_methods](p)
	*table = *at[sqlite3.Tsqlite3_io_methods](original)
	table.FxClose = pointer[closeFunc](faultClose)
	table.FxWrite = pointer[writeFunc](faultWrite)
	table.FxTruncate = pointer[truncFunc](faultTruncate)
	table.FxSync = pointer[syncFunc](faultSync)
	registered.methods[original] = p
	return p
}

func openFault(file uintptr) *faultFile {
	registered.Lock()
	defer registered.Unlock()
	return registered.files[file]
}

func faultClose(tls *libc.TLS, file uintptr) int32 {
	f := openFault(file)
	registered.Lock()
	delete(registered.files, file)
	registered.Unlock()
	return function[closeFunc](f.original.FxClose)(tls, file)
}

func faultWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	f := openFault(file)
	if rc := f.fs.before("write", f.path); rc != sqlite3.SQLITE_OK {
		return rc
	}
	rc := function[writeFunc](f.original.FxWrite)(tls, file, data, n, offset)
	if rc == sqlite3.SQLITE_OK {
		f.fs.note(f.path, pendingWrite{offset: offset, data: bytes.Clone(unsafe.Slice(at[byte](data), n))})
	}
	return rc
}

func faultTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f := openFault(file)
	if rc := f.fs.before("truncate", f.path); rc != sqlite3.SQLITE_OK {
		return rc
	}
	rc := function[truncFunc](f.original.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		f.fs.note(f.path, pendingWrite{offset: size, truncate: true})
	}
	return rc
}

func faultSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := openFault(file)
	if rc := f.fs.before("sync", f.path); rc != sqlite3.SQLITE_OK {
		return rc
	}
	rc := function[syncFunc](f.original.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		f.fs.synced(f.path)
	}
	return rc
}
