package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

// Config is the loaded configuration; see [Load].
type Config struct {
	Settings
	Warnings []Problem
	NotUsed  []bundle.Finding

	options      []*Option
	idle         map[string]bool
	chains       map[string][]Setting
	queueOrigins []map[string]Origin
	daemon       bool
}

// Origin returns the origin of an option's value, or the zero Origin for names that [Lookup] does not find.
func (c *Config) Origin(name string) Origin {
	if o := findByName(c.options, name); o != nil {
		return c.last(o.Name).Origin
	}
	return Origin{}
}

func (c *Config) last(name string) Setting {
	chain := c.chains[name]
	return chain[len(chain)-1]
}

// Idle reports whether the option is set but has no effect; see NotUsed and Warnings.
func (c *Config) Idle(name string) bool { return c.idle[name] }

// IsSet reports whether any source sets the option.
func (c *Config) IsSet(name string) bool { return c.Origin(name).Layer != Default }

// DaemonFile reports whether the settings file is an aws-sqsd file.
func (c *Config) DaemonFile() bool { return c.daemon }

// Each queue has its own loader; all is the loader of the settings for all queues.
type loader struct {
	src            Sources
	vars           map[string]string
	cfg            *Config
	refused        *Error
	ownSettings    [][]assignment          // of each of cfg.Queues
	sharedSettings map[string][]assignment // from the registry, by queue name
	queues         []*loader
	computedQueue  Origin

	all    *loader
	s      *Settings
	rows   []*Option
	prefix string
	own    map[string]Origin // of a queue's own settings, by key
}

func newLoader(src Sources) *loader {
	cfg := &Config{chains: map[string][]Setting{}, idle: map[string]bool{}}
	cfg.options = table(&cfg.Settings)
	l := &loader{src: src, vars: variables(src.Environ), cfg: cfg, refused: &Error{},
		sharedSettings: map[string][]assignment{}, s: &cfg.Settings, rows: cfg.options}
	l.all = l

	for _, o := range l.rows {
		if o.Default != "" {
			if err := o.value.set(o.Default); err != nil {
				l.refuseAt("", o.Name, "", "the default %s %v", o.Default, err)
			}
		}
		l.record(o.Name, Origin{})
	}

	return l
}

func (l *loader) forQueue(s *Settings) *loader {
	queue := *l
	queue.s = s
	queue.rows = table(s)
	queue.prefix = "queue " + s.Queues[0].Name + ": "
	queue.own = map[string]Origin{}
	return &queue
}

func (l *loader) refuse(problems ...Problem) {
	l.refused.Problems = append(l.refused.Problems, problems...)
}

func (l *loader) refuseAt(where, option, hint, format string, args ...any) {
	l.refuse(Problem{Where: where, Option: option, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (l *loader) warnAt(where, option, hint, format string, args ...any) {
	l.cfg.Warnings = append(l.cfg.Warnings,
		Problem{Where: where, Option: option, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (l *loader) assign(a assignment) {
	if a.option.Name == "config" {
		return
	}
	if err := a.option.value.set(a.withUnit()); err != nil {
		l.refuse(refusal(a, err))
		return
	}
	if a.option.Name == "queues" {
		l.dropOwn(a.origin)
	}
	l.record(a.option.Name, a.origin)
}

func (l *loader) dropOwn(by Origin) {
	if slices.ContainsFunc(l.ownSettings, func(own []assignment) bool { return len(own) > 0 }) {
		l.warnAt(l.origin("queues").Where, "queues", "",
			"these queues and their settings are not used: %s selects the queues", by)
	}
	l.ownSettings = nil
}

func (l *loader) option(name string) *Option {
	return firstOption(l.rows, func(o *Option) bool { return o.Name == name })
}

func (l *loader) record(name string, from Origin) {
	l.cfg.chains[name] = append(l.cfg.chains[name], Setting{from, l.option(name).value.get()})
}

func (l *loader) origin(name string) Origin {
	if own, found := l.own[l.option(name).Key]; found {
		return own
	}
	return l.cfg.last(name).Origin
}

// recordDerived replaces the last value. Only a default gets the reason.
func (l *loader) recordDerived(name, reason string) {
	from := l.cfg.last(name).Origin
	if from.Layer == Default {
		from.Where = reason
	}
	chain := l.cfg.chains[name]
	l.cfg.chains[name] = chain[:len(chain)-1]
	l.record(name, from)
}

func (l *loader) refuseOption(name, hint, format string, args ...any) {
	l.refuseAt(l.whereSet(name), name, hint, format, args...)
}

// refuseValue and warnValue complete the sentence "NAME VALUE ...".
func (l *loader) refuseValue(name, hint, format string, args ...any) {
	l.refuseOption(name, hint, "%s %s", l.named(name), fmt.Sprintf(format, args...))
}

func (l *loader) warnValue(name, hint, format string, args ...any) {
	l.warnAbout(name, hint, "%s %s", l.named(name), fmt.Sprintf(format, args...))
}

// reportIdleBundleOptions marks options that the bundle sets and nothing overrides as idle, and adds a finding at the
// place of each. For options set elsewhere, see warnUnused.
func (l *loader) reportIdleBundleOptions(why string, options ...string) {
	l.noteBundled(options, "has no effect: "+why)
	for _, name := range options {
		if l.isFromBundle(name) {
			l.cfg.idle[name] = true
		}
	}
}

// noteBundled completes the sentence "OPTION VALUE ..." about the bundle's settings.
func (l *loader) noteBundled(options []string, text string) {
	for _, s := range l.bundled() {
		for _, name := range options {
			if o := l.option(name); o.isSetBy(s) && l.isFromBundle(name) && !l.cfg.idle[name] {
				text := fmt.Sprintf("%s %s %s", o.Beanstalk, shown(s.Value), text)
				l.cfg.NotUsed = append(l.cfg.NotUsed, l.src.Bundle.Finding(s.File, s.Line, text))
			}
		}
	}
}

func (l *loader) isFromBundle(name string) bool { return l.origin(name).Layer == FromBundle }

func (l *loader) bundled() []bundle.Setting {
	if l.src.Bundle == nil {
		return nil
	}
	return l.src.Bundle.InForce()
}

func (l *loader) endpoint(service string) string {
	if strings.EqualFold(l.vars["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"], "true") {
		return ""
	}
	return cmp.Or(l.vars["AWS_ENDPOINT_URL_"+service], l.vars["AWS_ENDPOINT_URL"])
}

func (l *loader) warnAbout(name, hint, format string, args ...any) {
	l.warnAt(l.whereSet(name), name, hint, "%s", l.prefix+fmt.Sprintf(format, args...))
}

func (l *loader) whereSet(name string) string {
	if l.isSet(name) {
		return l.origin(name).Where
	}
	return ""
}

func (l *loader) isSet(name string) bool { return l.origin(name).Layer != Default }

func (l *loader) named(name string) string { return name + " " + l.option(name).value.get() }

func (l *loader) cite(name string) string {
	return fmt.Sprintf("%s (%s)", l.named(name), l.origin(name))
}

func (l *loader) warnUnused(name, why, hint string) {
	if l.isSet(name) {
		l.warnValue(name, hint, "has no effect%s", why)
	}
}
