package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tendril/internal/config/yamlfile"
	"tendril/internal/host/trust"
)

type settingsFile struct {
	path string
	data []byte
	info fs.FileInfo
}

// findFile returns an untrusted file together with its problem.
func findFile(l *loader, named string) (*settingsFile, *Problem) {
	if file := l.src.File; file != nil {
		return &settingsFile{path: file.Path, data: file.Data}, nil
	}

	if named != "" {
		f, err := readFile(named)
		if err != nil {
			return nil, unreadable(named, err)
		}
		return f, nil
	}

	for _, path := range candidates(l) {
		f, err := readFile(path)
		switch {
		case err == nil:
			return f, f.checkTrust()
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		default:
			return nil, unreadable(path, err)
		}
	}

	return nil, nil
}

func candidates(l *loader) []string {
	paths := []string{filepath.Join(l.src.Dir, "tendril.yaml")}
	if home := l.vars["XDG_CONFIG_HOME"]; filepath.IsAbs(home) {
		paths = append(paths, filepath.Join(home, "tendril", "config.yaml"))
	} else if home := l.vars["HOME"]; home != "" {
		paths = append(paths, filepath.Join(home, ".config", "tendril", "config.yaml"))
	}
	return append(paths, cmp.Or(l.src.SystemFile, systemFile))
}

func readFile(path string) (*settingsFile, error) {
	data, info, err := yamlfile.ReadFile(path, maxFile)
	return &settingsFile{path: path, data: data, info: info}, err
}

// checkTrust rejects a file found by searching that other users can change, because it may name commands to run.
func (f *settingsFile) checkTrust() *Problem {
	hint := "name the file with --config=" + f.path + " or TENDRIL_CONFIG if you trust it"
	var wrong *trust.Error
	switch err := trust.File(f.path); {
	case errors.As(err, &wrong):
		whose := wrong.Text
		if wrong.Path != f.path {
			whose = "it is in the folder " + wrong.Path + ": " + wrong.Text
		}
		return &Problem{Where: f.path, Option: "config", Text: "the settings file is not trusted: " + whose,
			Hint: "type '" + wrong.Fix + "', or " + hint}
	case err != nil:
		return unreadable(f.path, err)
	}

	if now, err := os.Stat(f.path); err != nil || !os.SameFile(f.info, now) {
		return &Problem{Where: f.path, Option: "config", Text: "the settings file was replaced while being read",
			Hint: "try again"}
	}

	return nil
}

func unreadable(path string, err error) *Problem {
	p := Problem{Where: path, Option: "config", Text: "settings file not found",
		Hint: "use --config with a file that this user can read"}
	if !errors.Is(err, fs.ErrNotExist) {
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			err = reason.Err
		}
		p.Text = fmt.Sprintf("reading the settings file: %v", err)
	}
	return &p
}

func configPath(l *loader) (string, Origin) {
	if path := l.src.Flags["config"]; path != "" {
		return path, Origin{fromFlag, "--config"}
	}
	if path := l.vars["TENDRIL_CONFIG"]; path != "" {
		return path, Origin{fromEnvironment, "TENDRIL_CONFIG"}
	}
	return "", Origin{}
}

func readSettingsFile(l *loader) {
	named, origin := configPath(l)
	f, problem := findFile(l, named)
	warnAboutBundleFile(l, f)
	if problem != nil {
		l.refuse(*problem)
		return
	}

	if f == nil {
		return
	}
	if named == "" {
		origin = Origin{Default, "it was found there"}
	}
	l.cfg.ConfigFile = f.path
	l.record("config", origin)
	entries, problems := parseDocument(f.path, f.data)
	l.refuse(problems...)
	if named != "" && isDaemonFile(f.path, entries) {
		l.cfg.daemon = true
		readDaemonFile(l, f.path, entries)
		return
	}

	readEntries(l, fromFile, f.path, entries)
}

func readRegistry(l *loader) {
	if f := l.src.Registry; f != nil {
		entries, problems := parseDocument(f.Path, f.Data)
		l.refuse(problems...)
		readEntries(l, FromRegistry, f.Path, entries)
	}
}

func warnAboutBundleFile(l *loader, read *settingsFile) {
	if l.src.Bundle == nil {
		return
	}

	beside := filepath.Join(l.src.Bundle.Dir, "tendril.yaml")
	if info, err := os.Stat(beside); err != nil || !info.Mode().IsRegular() {
		return
	}

	if read != nil {
		if abs, err := filepath.Abs(read.path); err != nil || abs == beside {
			return
		}
	}

	l.warnAt(beside, "config", "start tendril in that folder, or add --config="+beside,
		"file ignored: settings come from tendril.yaml in the working folder")
}

func findByEntry(l *loader, e entry) *Option {
	if !e.sqsd {
		return findByKey(l.rows, e.key)
	}
	return firstOption(l.rows, func(o *Option) bool { return slices.Contains(o.workerNames(), e.key) })
}

func readEntries(l *loader, layer Layer, path string, entries []entry) {
	lines := map[string]int{}
	for _, e := range entries {
		where := path
		if layer == fromFile {
			where = yamlfile.Place(path, e.line, 0)
		}
		if key, queue, ofOne := strings.Cut(e.key, ofOneQueue); ofOne && layer == FromRegistry {
			readSharedQueueKey(l, Origin{layer, where}, e, key, queue)
			continue
		}
		o := findByEntry(l, e)
		if o == nil {
			l.refuse(unknownKey(l, where, e))
			continue
		}

		if layer == FromRegistry && o.PerInstance() != "" {
			l.refuse(o.perInstanceProblem(where, o.Name))
			continue
		}
		a, ok := parseAssignment(l, Origin{layer, where}, o, e, lines)
		switch {
		case !ok:
		case e.items != nil:
			assignQueues(l, path, e)
		case e.list && !o.list:
			l.refuseAt(where, o.Name, "write "+e.key+": "+o.example(),
				"%s takes one value, not a list", e.key)
		default:
			l.assign(a)
		}
	}
}

// lineOf maps the keys read so far to their lines.
func parseAssignment(l *loader, from Origin, o *Option, e entry, lineOf map[string]int) (assignment, bool) {
	a := assignment{option: o, origin: from, name: e.key, text: e.text}
	switch first := lineOf[o.Key]; {
	case first != 0:
		l.refuseAt(from.Where, o.Name, "keep only one of the two lines", "%s is already set on line %d", e.key, first)
		return a, false
	case e.null && o.Default != unset:
		l.refuseAt(from.Where, o.Name, "write "+a.line(o.example())+", or delete the line",
			"%s has no value", e.key)
		return a, false
	case e.null:
		a.text = unset
	}

	lineOf[o.Key] = e.line
	return a, true
}

func unknownKey(l *loader, where string, e entry) Problem {
	p := Problem{Where: where, Text: shown(e.key) + " is not an option"}
	if e.sqsd {
		p.Text += " of Elastic Beanstalk's aws:elasticbeanstalk:sqsd"
	}

	var known []string
	for _, o := range l.rows {
		key := o.Key
		if e.sqsd {
			key = o.workerName()
		}
		switch {
		case key == "":
		case slices.Contains(o.names(), e.key), strings.EqualFold(key, e.key):
			p.Option = o.Name
			p.Hint = "use " + key
			return p
		default:
			known = append(known, key)
		}
	}

	switch near := Nearest(e.key, known); {
	case e.key == "config":
		p.Hint = "name the settings file with --config or TENDRIL_CONFIG"
	case !e.sqsd && insteadOfDaemonKey[e.key] != "":
		p.Text = e.key + " is a key of aws-sqsd's own file"
		p.Hint = insteadOfDaemonKey[e.key]
	case len(near) > 0:
		p.Hint = "did you mean " + orList(near) + "?"
	default:
		p.Hint = "docs/options.md lists every option; 'tendril explain OPTION' explains one"
	}
	return p
}
