package config

import (
	"fmt"
	"slices"
	"strings"
)

// readEnvironment takes the variables of every option, the weakest first:
// those of aws-sqsd's clones, those of other programs, the Elastic Beanstalk
// names, the option's own.
func (l *loader) readEnvironment() {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if name := l.firstSet(o.cloneVariables); name != "" {
			l.assignVariable(o, name)
			l.warning(name, o.Name, "this variable is read for the sake of other daemons' users", "write "+o.Variable+" instead")
		}
		if name := l.firstSet(o.OtherVariables); name != "" {
			l.assignVariable(o, name)
		}
		for _, beanstalk := range slices.Backward(o.workerNames()) {
			if name := variablePrefix + beanstalk; l.vars[name] != "" {
				l.assignVariable(o, name)
			}
		}
		if l.vars[o.Variable] != "" {
			l.assignVariable(o, o.Variable)
		}
	}
	l.warnAboutVariables()
}

func (l *loader) assignVariable(o *Option, name string) {
	l.assign(assignment{option: o, origin: Origin{FromEnvironment, name}, name: name, text: l.vars[name]})
}

// firstSet returns the first of the variables that is set, "" for none.
func (l *loader) firstSet(names []string) string {
	for _, n := range names {
		if l.vars[n] != "" {
			return n
		}
	}
	return ""
}

// warnAboutVariables tells of variables that look like settings and are none.
func (l *loader) warnAboutVariables() {
	read, own := map[string]bool{}, []string{}
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		own = append(own, o.Variable)
		for _, n := range o.workerNames() {
			own = append(own, variablePrefix+n)
		}
		for _, n := range slices.Concat(o.OtherVariables, o.cloneVariables) {
			read[n] = true
		}
	}
	for _, n := range own {
		read[n] = true
	}
	for _, name := range sortedKeys(l.vars) {
		if read[name] {
			continue
		}
		switch {
		case strings.HasPrefix(name, "SQSD_"):
			l.warning(name, "", "this variable of another daemon is not read", "docs/options.md lists every option")
		case strings.HasPrefix(name, "TENDRIL_"):
			l.warnAboutTypo(name, own)
		}
	}
}

// warnAboutTypo stays silent about names that are far from every option's:
// the program and its tests have variables that are no options.
func (l *loader) warnAboutTypo(name string, own []string) {
	const typo = 2 // edits
	near := nearestOne(name, own)
	if strings.HasPrefix(name, variablePrefix) || near != "" && distance(fold(name), fold(near)) <= typo {
		hint := ""
		if near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		l.warning(name, "", "this variable is no option and has no effect", hint)
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
