package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tendril/bundle"
	"tendril/yamlfile"
)

// Config is the outcome of reading the settings.
type Config struct {
	// Settings are the values in force.
	Settings
	// Warnings are what is allowed and worth knowing, in no particular order
	// of weight. They name places and options as problems do.
	Warnings []Problem
	// Aside names the settings of the bundle that change nothing because of what
	// else is set. Empty when all of them count.
	Aside []bundle.Finding

	options []Option
	// idle are the options whose value in force is one of Aside.
	idle   map[string]bool
	chains map[string][]Setting
	// queueOrigins are where the own settings of each of Queues come from, by
	// key.
	queueOrigins []map[string]Origin
	daemon       bool
}

// Load reads every source and returns the values in force. The error is an
// [*Error] that holds everything wrong at once; a value counts as wrong also
// where a higher layer overrides it. Nothing is created or changed on disk.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)
	l.readBundle()
	l.readFile()
	l.readEnvironment()
	l.readFlags()
	if len(l.problems) == 0 {
		l.derive() // from values that are right, lest one mistake be told twice
	}
	if len(l.problems) > 0 {
		return nil, &Error{Problems: l.problems}
	}
	l.warn()
	return l.cfg, nil
}

// Origin tells where the value in force of an option comes from. The name is
// any that [Lookup] knows; an unknown one has the zero Origin.
func (c *Config) Origin(name string) Origin {
	o, found := find(c.options, name)
	if !found {
		return Origin{}
	}
	return c.chains[o.Name][len(c.chains[o.Name])-1].Origin
}

// Idle reports whether the option's value in force is one of Aside.
func (c *Config) Idle(name string) bool { return c.idle[name] }

// IsSet reports whether somebody set the option, in whatever layer.
func (c *Config) IsSet(name string) bool { return c.Origin(name).Layer != Default }

// DaemonFile reports whether the settings file is one of aws-sqsd, whose
// daemon posts to http://localhost when nothing else is said.
func (c *Config) DaemonFile() bool { return c.daemon }

// loader is the state of one Load.
type loader struct {
	src      Sources
	vars     map[string]string
	cfg      *Config
	problems []Problem
	// own are the settings that each of Queues has for itself; empty when there
	// are none.
	own [][]assignment
	// views are the settings as each of Queues sees them.
	views []view
	// computedQueue is where the bundle has CloudFormation compute WorkerQueueURL;
	// the zero value when it does not.
	computedQueue Origin
}

// newLoader starts with the defaults.
func newLoader(src Sources) *loader {
	l := &loader{
		src:  src,
		vars: src.variables(),
		cfg:  &Config{options: Options(), chains: map[string][]Setting{}, idle: map[string]bool{}},
	}
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if o.Default != "" {
			if err := o.value.set(&l.cfg.Settings, o.Default); err != nil {
				l.refuse(Problem{Option: o.Name, Text: fmt.Sprintf("the default %s %v", o.Default, err)})
			}
		}
		l.record(o.Name, Origin{})
	}
	return l
}

func (l *loader) refuse(p Problem) { l.problems = append(l.problems, p) }

func (l *loader) warning(where, option, text, hint string) {
	l.cfg.Warnings = append(l.cfg.Warnings, Problem{Where: where, Option: option, Text: text, Hint: hint})
}

// assign puts a value in force, if it is right. The layers are read from the
// weakest to the strongest, so that the last one stays.
func (l *loader) assign(a assignment) {
	if a.option.Name == "config" {
		return // in force since the file was found, see configPath
	}
	if err := a.option.value.set(&l.cfg.Settings, a.withUnit()); err != nil {
		l.refuse(refusal(a, err))
		return
	}
	if a.option.Name == "queues" {
		l.dropOwn(a.origin)
	}
	l.record(a.option.Name, a.origin)
}

// dropOwn forgets the queues' own settings when a stronger layer names the
// queues anew.
func (l *loader) dropOwn(by Origin) {
	if slices.ContainsFunc(l.own, func(own []assignment) bool { return len(own) > 0 }) {
		l.warning(l.origin("queues").Where, "queues",
			fmt.Sprintf("these queues and their own settings are set aside: %s names the queues", by), "")
	}
	l.own = nil
}

// option returns the row of that name, which must exist.
func (l *loader) option(name string) *Option {
	i := slices.IndexFunc(l.cfg.options, func(o Option) bool { return o.Name == name })
	return &l.cfg.options[i]
}

// readFlags takes the flags in the order of the table.
func (l *loader) readFlags() {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		given := ""
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			text, set := l.src.Flags[name]
			switch {
			case !set:
			case given == "":
				given = name
				l.assign(assignment{option: o, origin: Origin{FromFlag, "--" + name}, name: name, text: text})
			case text != l.src.Flags[given]:
				l.refuse(Problem{Where: "--" + name, Option: o.Name,
					Text: fmt.Sprintf("this is the same option as --%s, with another value", given), Hint: "give one of them"})
			}
		}
	}
}

// record adds the value in force to the option's chain.
func (l *loader) record(name string, from Origin) {
	l.cfg.chains[name] = append(l.cfg.chains[name], Setting{from, l.option(name).value.get(&l.cfg.Settings)})
}

// configPath is the settings file that a flag or a variable names, and where.
func (l *loader) configPath() (string, Origin) {
	if path := l.src.Flags["config"]; path != "" {
		return path, Origin{FromFlag, "--config"}
	}
	if path := l.vars["TENDRIL_CONFIG"]; path != "" {
		return path, Origin{FromEnvironment, "TENDRIL_CONFIG"}
	}
	return "", Origin{}
}

// readFile takes the settings file, if there is one.
func (l *loader) readFile() {
	named, origin := l.configPath()
	f, problem := findFile(named, &l.src, l.vars)
	l.warnAboutBundleFile(f)
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
	l.problems = append(l.problems, problems...)
	if f.explicit && isDaemonFile(f.path, entries) {
		l.cfg.daemon = true
		l.readDaemonFile(f.path, entries)
		return
	}
	l.readOwnFile(f.path, entries)
}

// warnAboutBundleFile tells of a settings file beside the app that lies
// outside the search.
func (l *loader) warnAboutBundleFile(read *settingsFile) {
	if l.src.Bundle == nil {
		return
	}
	beside := filepath.Join(l.src.Bundle.Dir, "tendril.yaml")
	if _, err := readFile(beside); err != nil {
		return
	}
	if read != nil {
		if abs, err := filepath.Abs(read.path); err != nil || abs == beside {
			return
		}
	}
	l.warning(beside, "config", "this file is not read: settings come from tendril.yaml in the working folder",
		"start tendril in that folder, or give --config="+beside)
}

// readOwnFile takes a tendril.yaml.
func (l *loader) readOwnFile(path string, entries []entry) {
	lines := map[string]int{}
	for _, e := range entries {
		where := yamlfile.Place(path, e.line, 0)
		o := l.byKey(e)
		switch {
		case o == nil:
			l.refuse(l.unknownKey(where, e))
		case lines[o.Name] != 0:
			l.refuse(Problem{Where: where, Option: o.Name,
				Text: fmt.Sprintf("%s is already set in line %d", e.key, lines[o.Name]), Hint: "keep one of the two lines"})
		case e.items != nil:
			lines[o.Name] = e.line
			l.takeQueues(path, e)
		case e.list && !o.list:
			l.refuse(Problem{Where: where, Option: o.Name, Text: e.key + " is a list, and takes one value",
				Hint: "write " + e.key + ": " + o.example()})
		case e.null && o.Default != unset:
			a := assignment{option: o, name: e.key}
			l.refuse(Problem{Where: where, Option: o.Name, Text: e.key + " has no value",
				Hint: "write " + a.line(o.example()) + ", or delete the line"})
		default:
			lines[o.Name] = e.line
			if e.null {
				e.text = unset
			}
			l.assign(assignment{option: o, origin: Origin{FromFile, where}, name: e.key, text: e.text})
		}
	}
}

// byKey finds the option of an entry in tendril.yaml, nil for none.
func (l *loader) byKey(e entry) *Option {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if e.sqsd && slices.Contains(o.workerNames(), e.key) ||
			!e.sqsd && o.Key == e.key && e.key != "" {
			return o
		}
	}
	return nil
}

// unknownKey says what is wrong with a key, and which one may have been meant.
func (l *loader) unknownKey(where string, e entry) Problem {
	p := Problem{Where: where, Text: shown(e.key) + " is no option"}
	if e.sqsd {
		p.Text = shown(e.key) + " is no option of Elastic Beanstalk's aws:elasticbeanstalk:sqsd"
	}
	var known []string
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		name := o.Key
		if e.sqsd {
			name = ""
			if names := o.workerNames(); names != nil {
				name = names[0]
			}
		}
		if name == "" {
			continue
		}
		if slices.Contains(o.names(), e.key) || strings.EqualFold(name, e.key) {
			p.Option, p.Hint = o.Name, "here it is written "+name
			return p
		}
		known = append(known, name)
	}
	switch near := nearest(e.key, known); {
	case e.key == "config":
		p.Hint = "name the settings file with --config or TENDRIL_CONFIG"
	case !e.sqsd && daemonOnly(e.key) != "":
		p.Text, p.Hint = e.key+" is a key of aws-sqsd's own file", daemonOnly(e.key)
	case len(near) > 0:
		p.Hint = "did you mean " + orList(near) + "?"
	default:
		p.Hint = "docs/options.md lists every option; tendril explain OPTION tells about one"
	}
	return p
}
