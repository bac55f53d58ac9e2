package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

const systemFile = "/etc/tendril/config.yaml"

// Sources holds the inputs of [Load]. The zero value reads only a settings file.
type Sources struct {
	// Flags contains the given flags by name or alias, without dashes.
	Flags map[string]string
	// Environ has the format of [os.Environ]. Empty values count as unset.
	Environ    []string
	Bundle     *bundle.Bundle
	Dir        string
	SystemFile string
	// File replaces the settings file on disk, to check a change before writing it; may be nil.
	File *File
	// Registry holds the settings for all instances; its path is their revision. It may be nil.
	Registry *File
	Root     bool
	// Free maps options to addresses and ports that replace their defaults, which are in use.
	Free map[string]string
}

// File is a settings file that may not exist on disk. Path is its name in messages.
type File struct {
	Path string
	Data []byte
	// Shared files have the settings for all instances. A key such as "http_path of payments" sets an option of one
	// queue.
	Shared bool
}

func variables(environ []string) map[string]string {
	vars := make(map[string]string, len(environ))
	for _, kv := range environ {
		if name, text, found := strings.Cut(kv, "="); found && text != "" {
			vars[name] = text
		}
	}
	return vars
}

// StateFolder returns the folder of all environments' data directories, or "" if the variables do not determine it.
func StateFolder(environ []string, root bool) string {
	path, _ := findStateFolder(variables(environ), root)
	return path
}

func findStateFolder(vars map[string]string, root bool) (path, reason string) {
	if list := filepath.SplitList(vars["STATE_DIRECTORY"]); len(list) > 0 {
		// systemd sorts the directories, so another one may come first.
		own := max(slices.IndexFunc(list, func(path string) bool { return filepath.Base(path) == "tendril" }), 0)
		return list[own], "STATE_DIRECTORY is set"
	}

	if state := vars["XDG_STATE_HOME"]; filepath.IsAbs(state) {
		return filepath.Join(state, "tendril"), "XDG_STATE_HOME is set"
	}
	if root {
		return "/var/lib/tendril", "the process runs as root"
	}
	if home := vars["HOME"]; home != "" {
		return filepath.Join(home, ".local", "state", "tendril"), "below the home folder"
	}

	return "", ""
}

func readEnvironment(l *loader) {
	for _, o := range l.rows {
		if name := firstSet(l, o.cloneVariables); name != "" {
			assignVariable(l, o, name)
			l.warnAt(name, o.Name, "use "+o.Variable+" instead",
				"this variable is only supported for compatibility with other daemons")
		}

		if name := firstSet(l, o.OtherVariables); name != "" {
			assignVariable(l, o, name)
		}

		for _, beanstalk := range slices.Backward(o.workerNames()) {
			if name := variablePrefix + beanstalk; l.vars[name] != "" {
				assignVariable(l, o, name)
			}
		}

		if l.vars[o.Variable] != "" {
			assignVariable(l, o, o.Variable)
		}
	}

	warnAboutVariables(l)
}

func assignVariable(l *loader, o *Option, name string) {
	l.assign(assignment{option: o, origin: Origin{fromEnvironment, name}, name: name, text: l.vars[name]})
}

func firstSet(l *loader, names []string) string {
	for _, n := range names {
		if l.vars[n] != "" {
			return n
		}
	}
	return ""
}

func warnAboutVariables(l *loader) {
	var own, others []string
	for _, o := range l.rows {
		own = append(own, o.Variable)
		for _, n := range o.workerNames() {
			own = append(own, variablePrefix+n)
		}
		others = slices.Concat(others, o.OtherVariables, o.cloneVariables)
	}

	for _, name := range slices.Sorted(maps.Keys(l.vars)) {
		switch {
		case slices.Contains(own, name), slices.Contains(others, name):
		case strings.HasPrefix(name, "SQSD_"):
			l.warnAt(name, "", "docs/options.md lists every option",
				"this variable of another daemon is not supported")
		case strings.HasPrefix(name, "TENDRIL_"):
			warnAboutTypo(l, name, own)
		}
	}
}

// warnAboutTypo ignores names that neither resemble an option nor start with variablePrefix, because tendril also reads
// variables that are not options.
func warnAboutTypo(l *loader, name string, own []string) {
	const typo = 2
	near := nearestOne(name, own)
	if strings.HasPrefix(name, variablePrefix) || near != "" && editDistance(fold(name), fold(near)) <= typo {
		hint := ""
		if near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		l.warnAt(name, "", hint, "unknown option; this variable has no effect")
	}
}

func readFlags(l *loader) {
	for _, o := range l.rows {
		given := ""
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			text, set := l.src.Flags[name]
			switch {
			case !set:
			case given == "":
				given = name
				l.assign(assignment{option: o, origin: Origin{fromFlag, "--" + name}, name: name, text: text})
			case text != l.src.Flags[given]:
				l.refuseAt("--"+name, o.Name, "use only one of them",
					"--%s sets the same option to a different value", given)
			}
		}
	}
}
