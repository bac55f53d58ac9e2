package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

// Machine contains the sections of .ebextensions that change the machine. On AWS, cfn-init applies them. Source: AWS
// Elastic Beanstalk Developer Guide, "Customizing software on Linux servers".
type Machine struct {
	Configs  []MachineConfig
	Sections []Finding
	// NotUsed lists parts that have no effect even if the sections are applied.
	NotUsed []Finding
	// Content is a hash of the sections, independent of file names and line numbers; may be "".
	Content  string
	Problems []Problem
}

// Err returns the problems as an [*invalidError], or nil.
func (m *Machine) Err() error {
	if len(m.Problems) == 0 {
		return nil
	}
	return &invalidError{Problems: m.Problems}
}

// MachineConfig contains one file's sections, in the order in which cfn-init applies them.
type MachineConfig struct {
	Packages []Package
	Groups   []Group
	Users    []User
	Sources  []Source
	Files    []MachineFile
	Commands []Command
	Services []Service
}

// Place is a position in a configuration file.
type Place struct {
	File string
	Line int
}

// Package is a package to install.
type Package struct {
	Place
	// Manager is "rpm", "yum", "apt", "rubygems" or "python".
	Manager string
	Name    string
	// Versions are version numbers or, for rpm, URLs or file paths. If empty, any installed version is sufficient.
	Versions []string
}

// Group is a group of users.
type Group struct {
	Place
	Name string
	GID  string // numeric; may be ""
}

// User is a system user that cannot log in.
type User struct {
	Place
	Name   string
	UID    string   // numeric; may be ""
	Groups []string // supplementary
	Home   string   // absolute, not created; "" means the system's default
}

// Source is an archive to unpack into a folder.
type Source struct {
	Place
	Dir string // absolute
	URL string // https, http on this machine, or a file path
}

// MachineFile is a file or a symbolic link to create.
type MachineFile struct {
	Place
	Path string // absolute
	// Source is a URL (https, or http on this machine) or a file path; "" if Content is set. A link's Content is its
	// target.
	Source, Content string
	IsLink          bool
	Mode            fs.FileMode
	HasMode         bool
	// Owner and Group are names or IDs; "" keeps the current ones, or means root for a new file.
	Owner, Group string
}

// Service is a system service.
type Service struct {
	Place
	Name string
	// IsSystemd is false for a sysvinit script.
	IsSystemd bool
	// Enabled is whether the service starts at boot, Running whether it runs now; nil leaves the state unchanged.
	Enabled, Running *bool
	// RestartFor lists the steps whose changes restart the running service: "files /path", "sources /folder",
	// "commands NAME", "packages MANAGER NAME".
	RestartFor []string
}

func isMachineSection(name string) bool {
	switch name {
	case "packages", "groups", "users", "sources", "files", "commands", "services":
		return true
	}
	return false
}

// read collects problems separately, because they matter only if the machine sections are applied.
func (m *Machine) read(from *document, data []byte, sections []yamlfile.Pair) {
	unapplied := document{path: from.path, name: from.name}
	for _, p := range sections {
		unapplied.reportSection(p)
	}
	m.Sections = append(m.Sections, unapplied.findings...)

	applied := document{path: from.path, name: from.name}
	m.Configs = append(m.Configs, applied.machineConfig(sections))
	m.Problems = append(m.Problems, applied.problems...)
	m.NotUsed = append(m.NotUsed, applied.findings...)

	m.Content = contentHash(m.Content, data, sections)
}

func contentHash(previous string, data []byte, sections []yamlfile.Pair) string {
	content := sha256.New()
	io.WriteString(content, previous)
	for _, p := range sections {
		text, err := valueOf(p.Value)
		if err != nil {
			text = string(data)
		}
		fmt.Fprintf(content, "%q %q\n", p.Key, text)
	}
	return string(content.Sum(nil))
}

func (d *document) machineConfig(sections []yamlfile.Pair) (c MachineConfig) {
	for _, p := range sections {
		switch p.Key {
		case "packages":
			c.Packages = d.packages(p)
		case "groups":
			c.Groups = d.groups(p)
		case "users":
			c.Users = d.users(p)
		case "sources":
			c.Sources = d.sources(p)
		case "files":
			c.Files = d.files(p)
		case "commands":
			c.Commands = d.readCommands(p)
		case "services":
			c.Services = d.services(p)
		}
	}
	return c
}

var packageManagers = []string{"rpm", "yum", "apt", "rubygems", "python"}

func (d *document) packages(section yamlfile.Pair) (all []Package) {
	for _, manager := range d.entries(section) {
		if !slices.Contains(packageManagers, manager.Key) {
			d.notUsed(manager.Line, "packages of %s are not installed: the supported package managers are %s",
				yamlfile.Printable(manager.Key), strings.Join(packageManagers, ", "))
			continue
		}
		all = append(all, readEntries(d, section.Key, manager, func(e *entryReader, p yamlfile.Pair) Package {
			versions := slices.DeleteFunc(e.list(p), func(version string) bool { return version == "" })
			e.checkName(p, append(slices.Clone(versions), p.Key)...)
			if manager.Key == "rpm" && len(versions) == 0 {
				e.refuse(p, "write NAME: URL", "needs a URL or a file path")
			}
			return Package{Place: e.place(p), Manager: manager.Key, Name: p.Key, Versions: versions}
		})...)
	}

	slices.SortStableFunc(all, func(a, b Package) int {
		return cmp.Compare(slices.Index(packageManagers, a.Manager), slices.Index(packageManagers, b.Manager))
	})
	return all
}

func (d *document) groups(section yamlfile.Pair) []Group {
	return readEntries(d, section.Key, section, func(e *entryReader, p yamlfile.Pair) (g Group) {
		g = Group{Place: e.place(p), Name: p.Key}
		e.checkName(p, p.Key)
		e.readKeys(p, keys{"gid": into(&g.GID, e.number)})
		return g
	})
}

func (d *document) users(section yamlfile.Pair) []User {
	return readEntries(d, section.Key, section, func(e *entryReader, p yamlfile.Pair) (u User) {
		u = User{Place: e.place(p), Name: p.Key}
		e.checkName(p, p.Key)
		e.readKeys(p, keys{
			"uid":     into(&u.UID, e.number),
			"homeDir": func(v yamlfile.Pair) { u.Home = e.path(v, e.text(v)) },
			"groups": func(v yamlfile.Pair) {
				u.Groups = e.list(v)
				e.checkName(v, u.Groups...)
			},
		})
		return u
	})
}

func (d *document) sources(section yamlfile.Pair) []Source {
	return readEntries(d, section.Key, section, func(e *entryReader, p yamlfile.Pair) Source {
		return Source{Place: e.place(p), Dir: e.path(p, p.Key), URL: e.source(p)}
	})
}

func (d *document) files(section yamlfile.Pair) []MachineFile {
	all := readEntries(d, section.Key, section, (*entryReader).file)
	slices.SortFunc(all, func(a, b MachineFile) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func (e *entryReader) file(p yamlfile.Pair) (f MachineFile) {
	f = MachineFile{Place: e.place(p), Path: e.path(p, p.Key)}
	hasContent := false
	encoding := ""
	e.readKeys(p, keys{
		"content":  func(v yamlfile.Pair) { f.Content, hasContent = e.content(v), true },
		"source":   into(&f.Source, e.source),
		"encoding": into(&encoding, e.text),
		"owner":    into(&f.Owner, e.text),
		"group":    into(&f.Group, e.text),
		"mode": func(v yamlfile.Pair) {
			f.Mode, f.IsLink = e.mode(v)
			f.HasMode = true
		},
		"authentication": func(v yamlfile.Pair) {
			e.leaveOut(v, "refers to CloudFormation credentials, which are not available here: make the file public, or "+
				"download it in a command")
		},
		"context": func(v yamlfile.Pair) { e.leaveOut(v, "makes the file a template, which is not rendered") },
	})
	f.Content = e.decoded(p, f.Content, encoding)

	if e.isValid() && hasContent == (f.Source != "") {
		e.refuse(p, "write either content or source", "needs either content or source")
	}
	if f.IsLink {
		f.Content = strings.TrimSpace(f.Content)
		if e.isValid() && f.Content == "" {
			e.refuse(p, "write the link's target path as content", "has no link target")
		}
	}
	return f
}

func (e *entryReader) decoded(p yamlfile.Pair, content, encoding string) string {
	switch encoding {
	case "", "plain":
		return content
	case "base64":
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			e.refuse(p, "write base64, or leave out the encoding", "is not base64")
		}
		return string(text)
	}
	e.refuse(p, "write plain or base64", "has an unknown encoding")
	return content
}

func (d *document) services(section yamlfile.Pair) (all []Service) {
	for _, manager := range d.entries(section) {
		if manager.Key != "sysvinit" && manager.Key != "systemd" {
			d.notUsed(manager.Line, "services of %s are not started: the supported service managers are sysvinit and systemd",
				yamlfile.Printable(manager.Key))
			continue
		}
		all = append(all, readEntries(d, section.Key, manager, func(e *entryReader, p yamlfile.Pair) Service {
			s := e.service(p)
			s.IsSystemd = manager.Key == "systemd"
			return s
		})...)
	}
	return all
}

func (e *entryReader) service(p yamlfile.Pair) Service {
	s := Service{Place: e.place(p), Name: p.Key}
	e.checkName(p, p.Key)
	restartFor := func(v yamlfile.Pair) {
		for _, name := range e.list(v) {
			if v.Key != "commands" {
				name = filepath.Clean(name)
			}
			s.RestartFor = append(s.RestartFor, v.Key+" "+name)
		}
	}
	restartForPackages := func(v yamlfile.Pair) {
		for _, manager := range v.Value.Pairs {
			for _, name := range e.list(manager) {
				s.RestartFor = append(s.RestartFor, "packages "+manager.Key+" "+name)
			}
		}
	}

	e.readKeys(p, keys{
		"enabled":       func(v yamlfile.Pair) { on := e.flag(v); s.Enabled = &on },
		"ensureRunning": func(v yamlfile.Pair) { on := e.flag(v); s.Running = &on },
		"files":         restartFor, "sources": restartFor, "commands": restartFor,
		"packages": restartForPackages,
	})
	return s
}

func readEntries[T any](d *document, section string, of yamlfile.Pair, read func(*entryReader, yamlfile.Pair) T) (all []T) {
	for _, p := range d.entries(of) {
		e := d.entry(section, p)
		if one := read(e, p); e.isValid() {
			all = append(all, one)
		}
	}
	return all
}

// A key maps to the function that reads it, or to nil if it is ignored.
type keys map[string]func(yamlfile.Pair)

func into[T any](field *T, read func(yamlfile.Pair) T) func(yamlfile.Pair) {
	return func(p yamlfile.Pair) { *field = read(p) }
}

func (d *document) entry(section string, p yamlfile.Pair) *entryReader {
	e := &entryReader{document: d, section: section, name: p.Key}
	if embeddedFunction.MatchString(p.Key) {
		e.leaveComputedOut(p)
	}
	return e
}

func (e *entryReader) place(p yamlfile.Pair) Place { return Place{File: e.document.name, Line: p.Line} }

func (e *entryReader) isValid() bool { return !e.refused && !e.leftOut }

func (e *entryReader) readKeys(p yamlfile.Pair, known keys) {
	if p.Value.Kind != yamlfile.Mapping && p.Value.Kind != yamlfile.Null {
		e.refuse(p, `write "key: value" below it`, "is not a map")
		return
	}

	if e.skipComputed(p) {
		return
	}

	for _, v := range p.Value.Pairs {
		read, isKnown := known[v.Key]
		switch {
		case read != nil:
			read(v)
		case !isKnown:
			e.unknown(v, known)
		}
	}
}

func (e *entryReader) leaveOut(p yamlfile.Pair, why string) {
	e.leftOut = true
	e.document.notUsed(p.Line, "%s of %s %s %s; it is left out", p.Key, e.section, yamlfile.Printable(e.name), why)
}

func (e *entryReader) checkName(p yamlfile.Pair, names ...string) {
	for _, name := range names {
		if name == "" || name[0] == '-' || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			e.refuse(p, `use a name without spaces that does not start with "-"`, "has an invalid name")
			return
		}
	}
}

func (e *entryReader) number(p yamlfile.Pair) string {
	text := e.text(p)
	if _, err := strconv.ParseUint(text, 10, 32); err != nil && text != "" {
		e.refuse(p, "write a number", "is not a number")
	}
	return text
}

func (e *entryReader) path(p yamlfile.Pair, path string) string {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		e.refuse(p, "use a path that starts with /", "is not an absolute path")
	}
	return filepath.Clean(path)
}

// source rejects plain HTTP downloads from other machines, which could be changed in transit.
func (e *entryReader) source(p yamlfile.Pair) string {
	text := e.text(p)
	u, err := url.Parse(text)
	switch {
	case !e.isValid():
	case err != nil:
		e.refuse(p, "write https://HOST/PATH", "is not a URL")
	case u.Scheme == "file" && u.Host == "", u.Scheme == "" && filepath.IsAbs(text):
		return filepath.Clean(u.Path)
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && IsLoopback(u.Hostname()):
	default:
		e.refuse(p, "write https://HOST/PATH, or the path of a file on this machine", "is not a URL with https")
	}
	return text
}

// IsLoopback reports whether host is one of the usual names of this machine.
func IsLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

func (e *entryReader) content(p yamlfile.Pair) string {
	if holdsFunction(p.Value) {
		e.leaveComputedOut(p)
		return ""
	}
	text, err := valueOf(p.Value)
	if err != nil {
		e.refuse(p, "put the content in a file in the bundle", err.Error())
	}
	return text
}

var modePattern = regexp.MustCompile(`^[0-7]{3,6}$`)

func (e *entryReader) mode(p yamlfile.Pair) (permissions fs.FileMode, isLink bool) {
	text := e.text(p)
	if !modePattern.MatchString(text) {
		e.refuse(p, `write six octal digits, such as "000755", or "120777" for a link`, "is not a mode")
		return 0, false
	}

	const kind, link = 0o170000, 0o120000
	bits, _ := strconv.ParseUint(text, 8, 32) // the pattern guarantees octal digits
	if bits&kind != 0 && bits&kind != link && bits&kind != 0o100000 {
		e.refuse(p, `write six octal digits, such as "000755", or "120777" for a link`, "is not the mode of a file or link")
	}

	permissions = fs.FileMode(bits & 0o777)
	for bit, mode := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			permissions |= mode
		}
	}

	return permissions, bits&kind == link
}

// String returns "file:line".
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }
