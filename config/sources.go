package config

import (
	"path/filepath"
	"slices"
	"strings"

	"tendril/bundle"
)

// variablePrefix begins the variables that carry an Elastic Beanstalk option
// name.
const variablePrefix = "TENDRIL_SQSD_"

// systemFile is the settings file of the machine.
const systemFile = "/etc/tendril/config.yaml"

// Sources are where [Load] looks. The zero value has no flags, no variables
// and no bundle, and still finds a settings file in the working folder or that
// of the machine.
type Sources struct {
	// Flags are the flags that were given, by name without dashes (an alias
	// counts as a name), and their values as text. Flags left at their default
	// do not belong here.
	Flags map[string]string
	// Environ is the environment as os.Environ gives it. A variable that is
	// set to nothing counts as not set.
	Environ []string
	// Bundle is the app's source bundle, whose settings count; nil when there
	// is none.
	Bundle *bundle.Bundle
	// Dir is the folder in which tendril.yaml is looked for; "" is the working
	// folder.
	Dir string
	// SystemFile is looked for last; "" is /etc/tendril/config.yaml.
	SystemFile string
	// Root tells that the process is root's: data then lies below /var/lib.
	Root bool
}

// variables returns the environment as a map, without empty ones. As in a
// process, the last of two equal names counts.
func (s *Sources) variables() map[string]string {
	vars := make(map[string]string, len(s.Environ))
	for _, kv := range s.Environ {
		if name, text, found := strings.Cut(kv, "="); found && text != "" {
			vars[name] = text
		}
	}
	return vars
}

// dataDir is where data lies when nobody says otherwise, and why there; "" when
// even the home folder is unknown.
func dataDir(vars map[string]string, root bool) (path, reason string) {
	if list := filepath.SplitList(vars["STATE_DIRECTORY"]); len(list) > 0 {
		// systemd sorts them: a second one, for the app, may come first.
		own := max(slices.IndexFunc(list, func(path string) bool { return filepath.Base(path) == "tendril" }), 0)
		return list[own], "STATE_DIRECTORY is set"
	}
	if state := vars["XDG_STATE_HOME"]; filepath.IsAbs(state) {
		return filepath.Join(state, "tendril"), "XDG_STATE_HOME is set"
	}
	if root {
		return "/var/lib/tendril", "this is root's process"
	}
	if home := vars["HOME"]; home != "" {
		return filepath.Join(home, ".local", "state", "tendril"), "below the home folder"
	}
	return "", ""
}
