package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tendril/bundle"
)

// readBundle takes what the app's folder says.
func (l *loader) readBundle() {
	b := l.src.Bundle
	if b == nil {
		return
	}
	if name := b.Name(); name != "" {
		l.assign(assignment{option: l.option("name"), origin: Origin{FromBundle, b.Dir}, name: "name", text: name})
	}
	if m := b.Manifest; m.Name != "" {
		l.assign(assignment{option: l.option("name"), origin: Origin{FromBundle, place(filepath.Join(b.Dir, "env.yaml"), m.NameLine)}, name: "EnvironmentName", text: m.Name})
	}
	for _, s := range b.Settings {
		l.takeSetting(s)
	}
}

// takeSetting takes one option setting; a value of "" takes back what the
// bundle set before. The bundle itself tells of namespaces that have no effect.
func (l *loader) takeSetting(s bundle.Setting) {
	origin := Origin{FromBundle, place(s.File, s.Line)}
	if s.Namespace == bundle.NamespaceHealth {
		l.takeHealthSetting(origin, s)
		return
	}
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if !o.isBundled(s) {
			continue
		}
		a := assignment{option: o, origin: origin, name: s.Option, text: s.Value, minutes: o.beanstalkMinutes}
		if a.minutes && s.Value != "" && strings.Trim(s.Value, "0123456789") == "" {
			a.text += "m"
		}
		if a.text == "" {
			a.text = o.Default
		}
		if s.Value != "" || o.Default != "" && l.isSet(o.Name) {
			l.assign(a)
		}
		return
	}
	switch s.Namespace {
	case bundle.NamespaceWorker, bundle.NamespaceGroup, bundle.NamespaceTrigger:
		l.unknownSetting(origin, s)
	}
}

// isBundled reports whether a bundle's setting is this option's.
func (o *Option) isBundled(s bundle.Setting) bool {
	if s.Namespace == bundle.NamespaceEnvironment {
		return slices.Contains(o.properties, s.Option)
	}
	return o.Beanstalk != "" && s.Namespace == o.Namespace && (s.Option == o.Beanstalk || slices.Contains(o.beanstalkAliases, s.Option))
}

// unknownSetting refuses a mistyped name, and tells of an option that
// Elastic Beanstalk has and that means nothing here.
func (l *loader) unknownSetting(origin Origin, s bundle.Setting) {
	if s.Namespace == bundle.NamespaceGroup && slices.Contains([]string{"Availability Zones", "Custom Availability Zones", "EnableCapacityRebalancing"}, s.Option) {
		l.warning(origin.Where, "", s.Option+" has no effect: no instances are created", "")
		return
	}
	var known []string
	for i := range l.cfg.options {
		if o := &l.cfg.options[i]; o.Namespace == s.Namespace && o.Beanstalk != "" {
			known = append(known, o.Beanstalk)
		}
	}
	p := Problem{Where: origin.Where, Text: fmt.Sprintf("%s is no option of Elastic Beanstalk's %s", shown(s.Option), s.Namespace), Hint: "it has " + strings.Join(known, ", ")}
	if near := nearest(s.Option, known); len(near) > 0 {
		p.Hint = "did you mean " + orList(near) + "?"
	}
	l.refuse(p)
}
