package broker

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// faultFS is a file system for SQLite that passes everything on to the
// ordinary one, counts the calls that change something, fails those it is told
// to, and knows what a power failure would leave of each file: what was synced,
// and of the rest whatever the disk had got to.
type faultFS struct {
	name string

	mu    sync.Mutex
	calls int            // changes of files: opens, writes, truncations, syncs
	syncs map[string]int // by the last part of the file's name
	// fail decides the result code of a call; 0 lets it pass. n counts calls.
	fail func(op, file string, n int) int32
	disk map[string]*shadow
}

// shadow is what is known of one file.
type shadow struct {
	durable []byte
	pending []pendingWrite
}

// pendingWrite is a write, or a truncation, that was not synced yet.
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

// before counts a call and decides its fate.
func (f *faultFS) before(op, path string) int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fail == nil {
		return sqlite3.SQLITE_OK
	}
	return f.fail(op, filepath.Base(path), f.calls)
}

func (f *faultFS) note(path string, w pendingWrite) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.shadow(path)
	s.pending = append(s.pending, w)
}

func (f *faultFS) shadow(path string) *shadow {
	s := f.disk[path]
	if s == nil {
		s = &shadow{}
		f.disk[path] = s
	}
	return s
}

func (f *faultFS) synced(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs[filepath.Base(path)]++
	s := f.shadow(path)
	for _, w := range s.pending {
		s.durable = w.apply(s.durable)
	}
	s.pending = nil
}

// powerFailure writes what would be on the disk after the power failed now
// into a directory: of the writes that were not synced each with probability
// keep, and of one in eight of those only a part.
func (f *faultFS) powerFailure(t testing.TB, to string, keep float64, r *rand.Rand) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, s := range f.disk {
		if strings.HasSuffix(path, "-shm") {
			continue
		}
		content := bytes.Clone(s.durable)
		for _, w := range s.pending {
			if r.Float64() >= keep {
				continue
			}
			if len(w.data) > 512 && r.IntN(8) == 0 {
				w.data = w.data[:r.IntN(len(w.data)/512)*512]
			}
			content = w.apply(content)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *faultFS) syncsOf(file string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs[file]
}

// setFail replaces the decision.
func (f *faultFS) setFail(fail func(op, file string, n int) int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// From here on it is about SQLite's C interface, as the driver's library
// translates it to Go: structures lie in the library's memory, and functions
// are called through pointers in them. Only opening and the methods that change
// a file are replaced; a file's own structure stays as it is.

// registered are the file systems and open files by their C addresses, which
// is all that a call brings along.
var registered struct {
	sync.Mutex
	systems map[uintptr]*faultFS
	files   map[uintptr]*faultFile
	methods map[uintptr]uintptr // replaced tables by the original ones
}

type faultFile struct {
	fs       *faultFS
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

// pointer makes a C function pointer of a Go function, function the reverse,
// and at reads a structure at an address.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p})) }

func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// newFaultFS registers a file system for the time of a test.
func newFaultFS(t testing.TB) *faultFS {
	t.Helper()
	tls := libc.NewTLS()
	sqlite3.Xsqlite3_initialize(tls)
	f := &faultFS{name: strings.ReplaceAll(t.Name(), "/", "-") + "-faults", syncs: map[string]int{},
		disk: map[string]*shadow{}}
	size := unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})
	vfs := libc.Xcalloc(tls, 1, libc.Tsize_t(size))
	*at[sqlite3.Tsqlite3_vfs](vfs) = *at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	name, err := libc.CString(f.name)
	if err != nil {
		t.Fatal(err)
	}
	table := at[sqlite3.Tsqlite3_vfs](vfs)
	table.FzName, table.FpNext, table.FxOpen = name, 0, pointer[openFunc](faultOpen)
	registered.Lock()
	if registered.systems == nil {
		registered.systems, registered.files, registered.methods = map[uintptr]*faultFS{}, map[uintptr]*faultFile{},
			map[uintptr]uintptr{}
	}
	registered.systems[vfs] = f
	registered.Unlock()
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
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
	fs := registered.systems[vfs]
	registered.Unlock()
	path := ""
	if name != 0 {
		path = libc.GoString(name)
	}
	if rc := fs.before("open", path); rc != sqlite3.SQLITE_OK {
		*at[uintptr](file) = 0
		return rc
	}
	original := at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0)).FxOpen
	rc := function[openFunc](original)(tls, vfs, name, file, flags, out)
	if rc == sqlite3.SQLITE_OK {
		methods := *at[uintptr](file)
		registered.Lock()
		defer registered.Unlock()
		registered.files[file] = &faultFile{fs, path, at[sqlite3.Tsqlite3_io_methods](methods)}
		*at[uintptr](file) = replaceMethods(tls, methods)
	}
	return rc
}

// replaceMethods returns the table of methods that watches an original one.
// The lock is held.
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
