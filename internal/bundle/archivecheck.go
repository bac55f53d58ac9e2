package bundle

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tendril/internal/config/yamlfile"
)

const (
	// bytesPerEntry limits the bytes read to list the entries, because the count in the header may be wrong.
	bytesPerEntry = 320
	maxElement    = 255 // bytes of a path element, the limit of file systems
	maxShown      = 10  // problems reported
)

type entryKind int

const (
	folderEntry entryKind = iota
	fileEntry
	linkEntry
)

type entry struct {
	file       *zip.File
	path       string
	kind       entryKind
	executable bool
}

func (e entry) shown() string { return fmt.Sprintf("the entry %q", yamlfile.Short(e.path)) }

func (u *unpacking) check(file *os.File) error {
	reader := &limitedReaderAt{from: file, left: int64(u.limits.entries)*bytesPerEntry + 1<<20}
	archive, err := zip.NewReader(reader, u.size)
	switch {
	case reader.left < 0, err == nil && len(archive.File) > u.limits.entries:
		return u.errorf("exclude files that the app does not need to run", "the archive has more than %d entries",
			u.limits.entries)
	case errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF):
		return u.errorf("create it with zip, or name a folder", "this is not a zip archive, or it is incomplete")
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return fmt.Errorf("reading %s: %w", u.archive, err)
	}

	reader.unlimited = true // while the entries are read
	paths := takenPaths{}
	for _, f := range archive.File {
		if e, ok := u.readEntry(f, paths); ok {
			u.entries = append(u.entries, e)
		} else if len(u.problems) == maxShown {
			break
		}
	}

	if len(u.problems) == 0 {
		u.refuseOverlap()
	}
	if len(u.problems) > 0 {
		return &invalidError{Problems: u.problems}
	}

	return nil
}

// limitedReaderAt fails once left is negative.
type limitedReaderAt struct {
	from      io.ReaderAt
	left      int64
	unlimited bool
}

func (l *limitedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if !l.unlimited {
		l.left -= int64(len(p))
		if l.left < 0 {
			return 0, zip.ErrFormat
		}
	}
	return l.from.ReadAt(p, at)
}

func (u *unpacking) readEntry(f *zip.File, paths takenPaths) (e entry, ok bool) {
	e = entry{file: f, path: strings.TrimSuffix(f.Name, "/")}
	refuse := func(hint, text string) (entry, bool) {
		u.refuse(hint, "the entry %q %s", yamlfile.Short(f.Name), text)
		return entry{}, false
	}
	if text, hint := nameProblem(f.Name, u.limits.depth); text != "" {
		return refuse(hint, text)
	}

	switch mode := f.Mode(); mode.Type() {
	case 0:
		e.kind, e.executable = fileEntry, mode&0o111 != 0
	case fs.ModeDir:
		e.kind = folderEntry
	case fs.ModeSymlink:
		e.kind = linkEntry
	default:
		return refuse("remove it: a bundle contains only files, folders and links", "is not a file, a folder or a link")
	}

	switch {
	case f.Flags&1 != 0:
		return refuse("zip the bundle without a password", "is encrypted")
	case e.kind == fileEntry && f.UncompressedSize64 > uint64(u.limits.fileBytes):
		return refuse("remove the file and download it when the app starts",
			fmt.Sprintf("has more than %d bytes", u.limits.fileBytes))
	}

	if text := paths.add(e.path, e.kind); text != "" {
		return refuse("use paths that also differ on case-insensitive file systems", text)
	}

	return e, true
}

func nameProblem(name string, depth int) (text, hint string) {
	const relative = "zip the bundle from inside its folder, so that all names are relative to it"
	switch {
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8", "zip the bundle with a program that writes names in UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return yamlfile.IsControl(r) || r == '\t' }):
		return "has a control character in its name", "rename the file"
	case strings.Contains(name, `\`):
		return "has a backslash in its name", "zip the bundle with a program that writes slashes between folders"
	case strings.HasPrefix(name, "/"):
		return "has an absolute path", relative
	case len(name) > 1 && name[1] == ':' && unicode.IsLetter(rune(name[0])):
		return "has a drive letter in its path", relative
	}

	elements := strings.Split(strings.TrimSuffix(name, "/"), "/")
	if len(elements) > depth {
		return fmt.Sprintf("is more than %d folders deep", depth), "move it up"
	}

	for _, element := range elements {
		switch {
		case element == "." || element == ".." || element == "":
			return `has "", "." or ".." in its path`, relative
		case len(element) > maxElement:
			return fmt.Sprintf("has a name of more than %d bytes", maxElement), "rename it"
		}
	}

	return "", ""
}

// takenPaths has case-folded paths as keys.
type takenPaths map[string]takenPath

type takenPath struct {
	path string
	kind entryKind
	// named means that the archive has an entry for the path itself.
	named bool
}

func (t takenPaths) add(name string, kind entryKind) (problem string) {
	key := foldCase(name)
	before, taken := t[key]
	switch {
	case taken && before.path != name:
		return fmt.Sprintf("differs from %q only in case", yamlfile.Short(before.path))
	case taken && before.named:
		return "is in the archive twice"
	case taken && kind != folderEntry:
		return "is a folder according to another entry"
	}

	if problem := t.addParents(name); problem != "" {
		return problem
	}
	t[key] = takenPath{path: name, kind: kind, named: true}
	return ""
}

func (t takenPaths) addParents(name string) (problem string) {
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		key := foldCase(parent)
		above, taken := t[key]
		switch {
		case taken && above.path != parent:
			return fmt.Sprintf("lies in a folder that differs from %q only in case", yamlfile.Short(above.path))
		case taken && above.kind != folderEntry:
			return fmt.Sprintf("is below %q, which is not a folder", yamlfile.Short(above.path))
		case !taken:
			t[key] = takenPath{path: parent, kind: folderEntry}
		}
	}
	return ""
}

func foldCase(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// refuseOverlap rejects entries that share bytes, with which a small archive could expand without limit.
func (u *unpacking) refuseOverlap() {
	type span struct {
		begin, end int64
		e          entry
	}
	var spans []span
	for _, e := range u.entries {
		begin, err := e.file.DataOffset()
		size := e.file.CompressedSize64
		if err != nil || size > uint64(u.size) || begin+int64(size) > u.size {
			u.refuse("create the archive again", "%s is outside the archive", e.shown())
			return
		}
		if size > 0 {
			spans = append(spans, span{begin, begin + int64(size), e})
		}
	}

	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(spans); i++ {
		if spans[i].begin < spans[i-1].end {
			u.refuse("this archive looks malicious; create it again with zip", "%s overlaps %s", spans[i].e.shown(),
				spans[i-1].e.shown())
			return
		}
	}
}

const maxLink = 4096

// Links may lead through other links, so each is also resolved within root once all are created.
func (u *unpacking) createLinks(root *os.Root) error {
	var links []entry
	for _, e := range u.entries {
		if e.kind == linkEntry {
			links = append(links, e)
		}
	}

	for _, e := range links {
		target, err := u.linkTarget(e)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(e.path), 0o750); err != nil {
			return err
		}
		if err := root.Symlink(target, e.path); err != nil {
			return err
		}
	}

	for _, e := range links {
		_, err := root.Stat(e.path)
		if errors.Is(err, fs.ErrNotExist) {
			return u.errorf("remove the link", "%s is a link to a missing file", e.shown())
		}
		if err != nil {
			return u.errorf("link only to files of the bundle",
				"%s is a link that leaves the bundle or leads back to itself", e.shown())
		}
	}
	return nil
}

func (u *unpacking) linkTarget(e entry) (string, error) {
	from, err := e.file.Open()
	if err != nil {
		return "", u.damaged(e, err)
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, maxLink+1))
	if err != nil {
		return "", u.damaged(e, err)
	}

	target := string(data)
	isPath := target != "" && len(target) <= maxLink && utf8.ValidString(target) &&
		!strings.ContainsFunc(target, yamlfile.IsControl) && !strings.Contains(target, `\`)
	switch {
	case !isPath:
		return "", u.errorf("link only to files of the bundle", "%s is a link whose target is not a path", e.shown())
	case path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(e.path), target)):
		return "", u.errorf("link to files of the bundle by a relative path",
			"%s is a link that leaves the bundle", e.shown())
	}
	return target, nil
}

const maxFixed = 1 << 20

// fixHooks fixes hooks zipped on Windows, as Elastic Beanstalk does: scripts and ELF programs become executable, and
// scripts get LF line breaks.
func (u *unpacking) fixHooks(root *os.Root) error {
	for i := range u.entries {
		if e := &u.entries[i]; e.kind == fileEntry && isHook(e.path) {
			if err := u.fixHook(root, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *unpacking) fixHook(root *os.Root, e *entry) error {
	if e.file.UncompressedSize64 > maxFixed {
		return nil
	}

	data, err := root.ReadFile(e.path)
	if err != nil {
		return err
	}

	text := string(data)
	script := strings.HasPrefix(text, "#!")
	switch {
	case script && strings.Contains(text, "\r\n"):
		if err := root.WriteFile(e.path, []byte(strings.ReplaceAll(text, "\r\n", "\n")), 0o750); err != nil {
			return err
		}
	case !script && !strings.HasPrefix(text, "\x7fELF"):
		return nil
	}

	return root.Chmod(e.path, 0o750)
}

func isHook(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || parts[0] != platformName {
		return false
	}
	isHooksFolder := parts[1] == "hooks" || parts[1] == "confighooks"
	isHidden := strings.HasPrefix(parts[3], ".")
	return isHooksFolder && slices.Contains(stages(), Stage(parts[2])) && !isHidden
}

type unpacking struct {
	archive  string
	limits   limits
	size     int64
	written  int64
	entries  []entry
	problems []Problem
}

func (u *unpacking) problem(hint, format string, args ...any) Problem {
	return Problem{Where: u.archive, Text: fmt.Sprintf(format, args...), Hint: hint}
}

func (u *unpacking) refuse(hint, format string, args ...any) {
	u.problems = append(u.problems, u.problem(hint, format, args...))
}

func (u *unpacking) errorf(hint, format string, args ...any) error {
	return &invalidError{Problems: []Problem{u.problem(hint, format, args...)}}
}

func (u *unpacking) damaged(e entry, err error) error {
	if errors.Is(err, zip.ErrAlgorithm) {
		return u.errorf("zip the bundle with the usual method (deflate)", "%s uses an unsupported compression method",
			e.shown())
	}
	return u.errorf("create the archive again", "%s is damaged: %v", e.shown(), err)
}

type limits struct {
	archive   int64 // bytes
	entries   int
	bytes     int64 // of all files
	fileBytes int64 // of one file
	ratio     int64 // unpacked bytes per archive byte; 16 MiB are always allowed
	depth     int
}

// usualLimits allows the largest archives that Elastic Beanstalk accepts, 500 MB.
func usualLimits() limits {
	return limits{archive: 512 << 20, entries: 50_000, bytes: 2 << 30, fileBytes: 1 << 30, ratio: 100, depth: 64}
}
