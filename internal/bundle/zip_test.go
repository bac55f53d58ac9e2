package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type item struct {
	name, data string
	mode       fs.FileMode // 0 means 0644
	method     uint16      // 0 means stored
	flags      uint16
	// foreign means that the archive is not from Unix, so the mode is meaningless.
	foreign bool
}

func link(name, target string) item {
	return item{name: name, data: target, mode: fs.ModeSymlink | 0o777}
}

func archive(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, i := range items {
		h := &zip.FileHeader{Name: i.name, Method: i.method, Flags: i.flags}
		if i.mode == 0 {
			i.mode = 0o644
		}
		if !i.foreign {
			h.SetMode(i.mode)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(i.name, "/") {
			if _, err := f.Write([]byte(i.data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (l limits) filled() limits {
	usual := usualLimits()
	return limits{archive: either(l.archive, usual.archive), entries: either(l.entries, usual.entries),
		bytes: either(l.bytes, usual.bytes), fileBytes: either(l.fileBytes, usual.fileBytes),
		ratio: either(l.ratio, usual.ratio), depth: either(l.depth, usual.depth)}
}

func either[T int | int64](set, usual T) T {
	if set != 0 {
		return set
	}
	return usual
}

func unpack(t testing.TB, data []byte, limits *limits) (dir string, err error) {
	t.Helper()
	outside := t.TempDir()
	from := filepath.Join(outside, "app.zip")
	if err := os.WriteFile(from, data, 0o644); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(outside, "a", "b")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(inside, "app")
	most := usualLimits()
	if limits != nil {
		most = limits.filled()
	}
	err = unpackWithin(from, dir, most)
	var found []string
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == dir {
			return fs.SkipDir
		}
		found = append(found, strings.TrimPrefix(path, outside))
		return nil
	}
	if err := filepath.WalkDir(outside, walk); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "/a", "/a/b", "/app.zip"}; !slices.Equal(found, want) {
		t.Fatalf("around the folder there is %q, want %q", found, want)
	}
	if _, gone := os.Lstat(dir); err != nil && gone == nil {
		t.Fatalf("the folder is there in spite of: %v", err)
	}
	return dir, err
}

func contents(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = fmt.Sprintf(" %q", data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			all = append(all, "link "+strings.TrimPrefix(path, dir)+" to "+target)
			return nil
		}
		all = append(all, info.Mode().String()+" "+strings.TrimPrefix(path, dir)+what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items []item
		want  []string
	}{
		"nothing": {nil, nil},
		"files and folders": {
			[]item{{name: "Procfile", data: "web: x\n", method: zip.Deflate}, {name: "empty/"}, {name: "a/b/c.txt", data: "c"}},
			[]string{`-rw-r----- /Procfile "web: x\n"`, "drwxr-x--- /a", "drwxr-x--- /a/b", `-rw-r----- /a/b/c.txt "c"`,
				"drwxr-x--- /empty"},
		},
		"modes": {
			[]item{{name: "run", mode: 0o700}, {name: "data", mode: 0o666},
				{name: "root", mode: 0o755 | fs.ModeSetuid | fs.ModeSetgid}, {name: "shut/", mode: fs.ModeDir},
				{name: "none", mode: fs.ModeSticky}},
			[]string{`-rw-r----- /data ""`, `-rw-r----- /none ""`, `-rwxr-x--- /root ""`, `-rwxr-x--- /run ""`,
				"drwxr-x--- /shut"},
		},
		"made on Windows": {
			[]item{{name: "Procfile", data: "web: x\r\n", foreign: true}, {name: "folder/", foreign: true}},
			[]string{`-rw-r----- /Procfile "web: x\r\n"`, "drwxr-x--- /folder"},
		},
		"names beyond ASCII": {
			[]item{{name: "über/日本.txt", data: "x"}, {name: "with blank:and colon"}, {name: "...three"}},
			[]string{`-rw-r----- /...three ""`, `-rw-r----- /with blank:and colon ""`, "drwxr-x--- /über",
				`-rw-r----- /über/日本.txt "x"`},
		},
		"links inside": {
			[]item{link("node_modules/.bin/tool", "../tool/cli.js"), {name: "node_modules/tool/cli.js", data: "x"},
				link("latest", "node_modules"), link("again", "./latest/tool/../tool")},
			[]string{
				"link /again to ./latest/tool/../tool", "link /latest to node_modules",
				"drwxr-x--- /node_modules", "drwxr-x--- /node_modules/.bin", "link /node_modules/.bin/tool to ../tool/cli.js",
				"drwxr-x--- /node_modules/tool", `-rw-r----- /node_modules/tool/cli.js "x"`,
			},
		},
		"hooks are made to start": {
			[]item{
				{name: ".platform/hooks/prebuild/a.sh", data: "#!/bin/sh\r\necho\r\n", foreign: true},
				{name: ".platform/confighooks/postdeploy/b", data: "\x7fELF"},
				{name: ".platform/hooks/prebuild/README", data: "text\r\n"},
				{name: ".platform/hooks/other/c.sh", data: "#!/bin/sh\r\n"},
				{name: "scripts/d.sh", data: "#!/bin/sh\r\n"},
			},
			[]string{
				"drwxr-x--- /.platform", "drwxr-x--- /.platform/confighooks", "drwxr-x--- /.platform/confighooks/postdeploy",
				`-rwxr-x--- /.platform/confighooks/postdeploy/b "\x7fELF"`, "drwxr-x--- /.platform/hooks",
				"drwxr-x--- /.platform/hooks/other",
				`-rw-r----- /.platform/hooks/other/c.sh "#!/bin/sh\r\n"`, "drwxr-x--- /.platform/hooks/prebuild",
				`-rw-r----- /.platform/hooks/prebuild/README "text\r\n"`,
				`-rwxr-x--- /.platform/hooks/prebuild/a.sh "#!/bin/sh\necho\n"`,
				"drwxr-x--- /scripts", `-rw-r----- /scripts/d.sh "#!/bin/sh\r\n"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := unpack(t, archive(t, c.items...), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, contents(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 256)
	for name, c := range map[string]struct {
		data   []byte
		limits *limits
		want   string
	}{
		"way out": {archive(t, item{name: "../evil"}), nil,
			`the entry "../evil" has "", "." or ".." in its path`},
		"way out in the middle": {archive(t, item{name: "a/../../evil"}), nil, `".." in its path`},
		"way out and back":      {archive(t, item{name: "a/../b"}), nil, `".." in its path`},
		"dot":                   {archive(t, item{name: "./a"}), nil, `".." in its path`},
		"two slashes":           {archive(t, item{name: "a//b"}), nil, `".." in its path`},
		"no name":               {archive(t, item{name: ""}), nil, `".." in its path`},
		"slash alone":           {archive(t, item{name: "/"}), nil, "has an absolute path"},
		"absolute": {archive(t, item{name: "/etc/passwd"}), nil,
			`the entry "/etc/passwd" has an absolute path`},
		"drive":       {archive(t, item{name: "C:/evil"}), nil, "has a drive letter in its path"},
		"backslashes": {archive(t, item{name: `..\..\evil`}), nil, "has a backslash in its name"},
		"NUL": {archive(t, item{name: "a\x00b"}), nil,
			`the entry "a\x00b" has a control character in its name`},
		"escape sequence": {archive(t, item{name: "a\x1b[2Jb"}), nil, "has a control character in its name"},
		"no UTF-8":        {archive(t, item{name: "a\xff"}), nil, "has a name that is not UTF-8"},
		"name too long":   {archive(t, item{name: long}), nil, "has a name of more than 255 bytes"},
		"too deep": {archive(t, item{name: strings.Repeat("d/", 64) + "f"}), nil,
			"is more than 64 folders deep"},
		"twice": {archive(t, item{name: "a"}, item{name: "a"}), nil, `the entry "a" is in the archive twice`},
		"twice by case": {archive(t, item{name: "a"}, item{name: "A"}), nil,
			`the entry "A" differs from "a" only in case`},
		"twice by a sign of Kelvin": {archive(t, item{name: "k"}, item{name: "\u212a"}), nil, "only in case"},
		"folder by case": {archive(t, item{name: "a/x"}, item{name: "A/y"}), nil,
			`lies in a folder that differs from "a" only in case`},
		"below a file": {archive(t, item{name: "a"}, item{name: "a/b"}), nil,
			`the entry "a/b" is below "a", which is not a folder`},
		"file where a folder is": {archive(t, item{name: "a/b"}, item{name: "a"}), nil,
			`the entry "a" is a folder according to another entry`},
		"below a link": {archive(t, link("a", "b"), item{name: "a/evil"}), nil, "which is not a folder"},
		"link where a folder is": {archive(t, item{name: "a/evil"}, link("a", "..")), nil,
			"is a folder according to another entry"},
		"link out": {archive(t, link("a", "../../evil")), nil,
			`the entry "a" is a link that leaves the bundle`},
		"link to a root": {archive(t, link("a", "/etc/passwd")), nil, "is a link that leaves the bundle"},
		"link through a link": {archive(t, item{name: "d/f"}, link("a", "."), link("b", "a/..")), nil,
			`the entry "b" is a link that leaves the bundle or leads back to itself`},
		"links one after the other": {archive(t, item{name: "d/e/f"}, link("d/up", "e/.."), link("x", "d/up/../d/up"),
			link("y", "x/../..")), nil, "leaves the bundle"},
		"links in a circle":     {archive(t, link("a", "b"), link("b", "a")), nil, "or leads back to itself"},
		"link to nowhere":       {archive(t, link("a", "b")), nil, "is a link to a missing file"},
		"link without a target": {archive(t, link("a", "")), nil, "is a link whose target is not a path"},
		"link with a NUL": {archive(t, link("a", "b\x00c"), item{name: "b"}), nil,
			"is a link whose target is not a path"},
		"link to a drive": {archive(t, link("a", `C:\evil`)), nil, "is a link whose target is not a path"},
		"link as long as a book": {archive(t, link("a", strings.Repeat("./", 4000))), nil,
			"is a link whose target is not a path"},
		"device": {archive(t, item{name: "a", mode: fs.ModeDevice | 0o644}), nil,
			`the entry "a" is not a file, a folder or a link`},
		"pipe": {archive(t, item{name: "a", mode: fs.ModeNamedPipe | 0o644}), nil,
			"is not a file, a folder or a link"},
		"socket": {archive(t, item{name: "a", mode: fs.ModeSocket | 0o644}), nil,
			"is not a file, a folder or a link"},
		"link that is a folder": {archive(t, item{name: "a/", mode: fs.ModeSymlink | 0o777}), nil,
			"is not a file, a folder or a link"},
		"encrypted":      {encrypted(t), nil, "is encrypted"},
		"unknown method": {method(t, 14), nil, "uses an unsupported compression method"},
		"damaged":        {damaged(t), nil, "is damaged"},
		"too many entries": {archive(t, many(21)...), &limits{entries: 20},
			"the archive has more than 20 entries"},
		"claims less than it has":     {claims(t, 10), nil, "is damaged"},
		"claims more than it has":     {claims(t, 1<<20), nil, "is damaged"},
		"claims more than is allowed": {claims(t, 1<<31), nil, `the entry "zeros" has more than 1073741824 bytes`},
		"one file too large": {archive(t, item{name: "a", data: strings.Repeat("x", 11)}), &limits{fileBytes: 10},
			`the entry "a" has more than 10 bytes`},
		"all files too large": {archive(t, many(21)...), &limits{bytes: 20}, "the files have more than 20 bytes in total"},
		"bomb":                {bomb(t, 17<<20), nil, "the files have more than 100 times the bytes of the archive"},
		"archive too large": {archive(t, item{name: "a", data: strings.Repeat("x", 100)}), &limits{archive: 50},
			"bytes, more than 50"},
		"entries that overlap": {overlapping(t), nil, `overlaps the entry "a"`},
		"no archive":           {[]byte("hello"), nil, "this is not a zip archive, or it is incomplete"},
		"empty file":           {nil, nil, "this is not a zip archive"},
		"cut off":              {archive(t, many(30)...)[:500], nil, "this is not a zip archive, or it is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := unpack(t, c.data, c.limits)
			var wrong *invalidError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || wrong.Problems[0].Hint == "" {
				t.Errorf("got %v\nwant %s, and a hint", err, c.want)
			}
			if !strings.Contains(err.Error(), "app.zip: ") {
				t.Errorf("%v does not name the archive", err)
			}
		})
	}
}

func many(n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{name: fmt.Sprintf("f%d", i), data: "x"}
	}
	return items
}

func encrypted(t testing.TB) []byte {
	data := archive(t, item{name: "a", data: "x"})
	at := bytes.LastIndex(data, []byte("PK\x01\x02"))
	data[at+8] |= 1
	return data
}

func method(t testing.TB, number uint16) []byte {
	data := archive(t, item{name: "a", data: "x"})
	at := bytes.LastIndex(data, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint16(data[at+10:], number)
	return data
}

func damaged(t testing.TB) []byte {
	data := archive(t, item{name: "a", data: "the data of it"})
	data[bytes.Index(data, []byte("the data"))] = 'T'
	return data
}

func bomb(t testing.TB, size int) []byte {
	return archive(t, item{name: "zeros", data: strings.Repeat("\x00", size), method: zip.Deflate})
}

func claims(t testing.TB, claimed uint32) []byte {
	data := bomb(t, 1000)
	at := bytes.LastIndex(data, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(data[at+24:], claimed)
	return data
}

func overlapping(t testing.TB) []byte {
	data := archive(t, item{name: "a", data: "shared"}, item{name: "b", data: "shared"})
	second := bytes.LastIndex(data, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(data[second+42:], 0) // offset of the entry's header
	return data
}

func TestUnpackListsTenProblems(t *testing.T) {
	t.Parallel()
	var items []item
	for i := range 30 {
		items = append(items, item{name: fmt.Sprintf("/f%d", i)})
	}
	_, err := unpack(t, archive(t, items...), nil)
	var wrong *invalidError
	if !errors.As(err, &wrong) || len(wrong.Problems) != 10 {
		t.Errorf("got %v, want ten problems", err)
	}
}

// The header states fewer entries than the archive has.
func TestUnpackBoundsMemory(t *testing.T) {
	var b bytes.Buffer
	record := make([]byte, 46+1)
	copy(record, "PK\x01\x02")
	record[28], record[46] = 1, 'x'
	const count = 700_000
	for range count {
		b.Write(record)
	}
	size := b.Len()
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], count%65536)
	binary.LittleEndian.PutUint16(end[10:], count%65536)
	binary.LittleEndian.PutUint32(end[12:], uint32(size))
	b.Write(end)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := unpack(t, b.Bytes(), &limits{entries: 1000})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
		t.Errorf("got %v", err)
	}
	if used := int64(after.TotalAlloc - before.TotalAlloc); used > 60<<20 {
		t.Errorf("%d MiB were allocated for a list that is refused", used>>20)
	}
}

func TestUnpackRejectsAnExistingTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "app.zip")
	if err := os.WriteFile(from, archive(t, item{name: "a"}), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		into string
		want error
	}{
		"a folder":           {dir, fs.ErrExist},
		"a file":             {from, fs.ErrExist},
		"in no folder":       {filepath.Join(dir, "absent", "app"), fs.ErrNotExist},
		"in a file":          {filepath.Join(from, "app"), nil},
		"in a folder, fresh": {filepath.Join(dir, "fresh"), nil},
	} {
		err := Unpack(from, c.into)
		switch {
		case c.want != nil && !errors.Is(err, c.want):
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		case c.want == nil && (err == nil) != strings.HasSuffix(name, "fresh"):
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := Unpack(filepath.Join(dir, "absent.zip"), filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no archive: %v", err)
	}
	if err := Unpack(dir, filepath.Join(dir, "x")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder for an archive: %v", err)
	}
}

func TestIsArchive(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"full.zip": string(archive(t, item{name: "a"})), "empty.zip": string(archive(t)),
		"app.py": "print()", "nothing": ""})
	for name, want := range map[string]bool{"full.zip": true, "empty.zip": true, "app.py": false, "nothing": false,
		".": false} {
		if got, err := IsArchive(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if _, err := IsArchive(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestUnpackThenOpen(t *testing.T) {
	t.Parallel()
	dir, err := unpack(t, archive(t,
		item{name: "Procfile", data: "web: ./server\n"}, item{name: "server", mode: 0o755},
		item{name: ".platform/hooks/predeploy/a.sh", data: "#!/bin/sh\r\n", foreign: true},
		item{name: ".ebextensions/a.config", data: `{"option_settings": [{"option_name": "A", "value": "b"}]}`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Hooks) != 1 || len(b.Hooks[0].Interpreter) > 0 || len(b.Warnings) > 0 || len(b.Environment()) != 1 ||
		len(b.Plan()) != 2 {
		t.Errorf("got %+v", b)
	}
}

func TestCompanionFilesOfMacOSAreIgnored(t *testing.T) {
	t.Parallel()
	const companion = "\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X"
	files := map[string]string{"Procfile": "web: ./server\n", "server": "", "app/x.py": "",
		".ebextensions/01.config":        `{"option_settings": [{"option_name": "A", "value": "b"}]}`,
		".platform/hooks/predeploy/a.sh": "#!/bin/sh\n",
		"._Procfile":                     companion, "._cron.yaml": companion, "__MACOSX/._app": companion, ".DS_Store": companion,
		".ebextensions/._01.config": companion, ".ebextensions/.DS_Store": companion,
		"app/.ebextensions/._01.config":    companion,
		".platform/hooks/predeploy/._a.sh": companion, ".platform/._hooks": companion, ".platform/hooks/._predeploy": companion,
	}
	var items []item
	for _, name := range slices.Sorted(maps.Keys(files)) {
		items = append(items, item{name: name, data: files[name], mode: 0o755})
	}
	unpacked, err := unpack(t, archive(t, items...), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"folder": folder(t, files), "archive": unpacked} {
		t.Run(name, func(t *testing.T) {
			b, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Settings) != 1 || len(b.Hooks) != 1 || len(b.Unsupported) > 0 {
				t.Errorf("settings %v, hooks %v, not used %v", b.Settings, b.Hooks, b.Unsupported)
			}
		})
	}
}

func TestTrustIsJudgedByTheSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		file, folder fs.FileMode
		trusted      bool
	}{
		{"private", 0o600, 0o700, true},
		{"readable", 0o644, 0o755, true},
		{"writable by everybody", 0o666, 0o755, false},
		{"in a folder that is writable by everybody", 0o644, 0o777, false},
		{"in a folder with the sticky bit", 0o644, 0o777 | fs.ModeSticky, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			below := filepath.Join(t.TempDir(), "archives")
			if err := os.Mkdir(below, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(below, "app.zip")
			if err := os.WriteFile(path, archive(t, item{name: "Procfile", data: "web: x\n"}), 0o600); err != nil {
				t.Fatal(err)
			}
			for at, mode := range map[string]fs.FileMode{path: c.file, below: c.folder} {
				if err := os.Chmod(at, mode); err != nil {
					t.Fatal(err)
				}
			}
			b, err := Open(folder(t, map[string]string{"Procfile": "web: x\n"}))
			if err != nil {
				t.Fatal(err)
			}
			b.Archive = path
			if err := b.Trusted(); (err == nil) != c.trusted {
				t.Errorf("%v, want trusted %t", err, c.trusted)
			}
		})
	}
}

// FuzzUnpack checks that nothing is written outside the folder, and that output is limited.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, item{name: "a/b", data: "x"}, item{name: "c/"}, link("d", "a/b")))
	f.Add(archive(f, item{name: "../evil"}))
	f.Add(archive(f, item{name: "d/f"}, link("a", "."), link("b", "a/..")))
	f.Add(archive(f, item{name: ".platform/hooks/prebuild/x", data: "#!/bin/sh\r\n"}))
	f.Add(overlapping(f))
	f.Add(claims(f, 10))
	f.Add(bomb(f, 5000))
	f.Add(damaged(f))
	f.Add(encrypted(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := &limits{entries: 50, bytes: 100_000, fileBytes: 50_000, depth: 8}
		dir, err := unpack(t, data, limits)
		if err != nil {
			return
		}
		total, count := int64(0), 0
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			count++
			info, err := d.Info()
			if err != nil {
				return err
			}
			switch mode := info.Mode(); {
			case mode.IsRegular():
				total += info.Size()
			case mode&fs.ModeSymlink != 0:
				if _, err := root.Stat(strings.TrimPrefix(path, dir+"/")); err != nil {
					t.Errorf("%s leads out: %v", path, err)
				}
			case !mode.IsDir():
				t.Errorf("%s is a %v", path, mode)
			}
			return nil
		})
		if err != nil || total > limits.bytes || count > 50*8+1 {
			t.Errorf("%d bytes, %d files, %v", total, count, err)
		}
	})
}
