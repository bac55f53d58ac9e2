package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

// Config is the outcome of reading the settings.
type Config struct {
	// Settings are the values in force.
	Settings
	// Warnings are what is allowed and worth knowing, in no particular order
	// of weight. They name places and options as problems do.
	Warnings []Problem
	// NotUsed names the settings of the bundle that change nothing because of what
	// else is set. Empty when all of them count.
	NotUsed []bundle.Finding

	options []Option
	// idle are the options whose value in force is one of NotUsed.
	idle   map[string]bool
	chains map[string][]Setting
	// queueOrigins are where the own settings of each of Queues come from, by key.
	queueOrigins []map[string]Origin
	daemon       bool
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

// Idle reports whether the option's value in force is one of NotUsed.
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
	// ownSettings are those that each of Queues has for itself; empty when there are none.
	ownSettings [][]assignment
	// views are the settings as each of Queues sees them.
	views []view
	// all is the settings as they hold for all queues.
	all *view
	// computedQueue is where the bundle has CloudFormation compute WorkerQueueURL; the zero value when it does not.
	computedQueue Origin
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
	if err := a.option.set(&l.cfg.Settings, a.withUnit()); err != nil {
		l.refuse(refusal(a, err))
		return
	}
	if a.option.Name == "queues" {
		l.dropOwn(a.origin)
	}
	l.record(a.option.Name, a.origin)
}

// dropOwn forgets the queues' own settings when a stronger layer names the queues anew.
func (l *loader) dropOwn(by Origin) {
	if slices.ContainsFunc(l.ownSettings, func(own []assignment) bool { return len(own) > 0 }) {
		l.warning(l.origin("queues").Where, "queues",
			fmt.Sprintf("these queues and their own settings are not used: %s names the queues", by), "")
	}
	l.ownSettings = nil
}

func (l *loader) option(name string) *Option {
	i := slices.IndexFunc(l.cfg.options, func(o Option) bool { return o.Name == name })
	return &l.cfg.options[i]
}

func (l *loader) record(name string, from Origin) {
	l.cfg.chains[name] = append(l.cfg.chains[name], Setting{from, l.option(name).get(&l.cfg.Settings)})
}

func (l *loader) origin(name string) Origin {
	chain := l.cfg.chains[name]
	return chain[len(chain)-1].Origin
}

// settle records a value that was worked out, in the layer that it was worked
// out from. A default's place says what it follows from.
func (l *loader) settle(name, reason string) {
	chain := l.cfg.chains[name]
	from := chain[len(chain)-1].Origin
	if from.Layer == Default {
		from.Where = reason
	}
	l.cfg.chains[name] = chain[:len(chain)-1]
	l.record(name, from)
}

// clash refuses two options that contradict each other, at the place of the first.
func (l *loader) clash(name, hint, format string, args ...any) {
	l.refuse(Problem{Where: l.origin(name).Where, Option: name, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// notUsed names the bundle's settings of these options as without effect.
func (l *loader) notUsed(why string, options ...string) {
	for _, s := range l.bundled() {
		for _, name := range options {
			o := l.option(name)
			if l.origin(name).Layer != FromBundle || !o.isBundled(s) || l.cfg.idle[name] {
				continue
			}
			l.cfg.idle[name] = true
			text := fmt.Sprintf("%s %s has no effect: %s", o.Beanstalk, shown(s.Value), why)
			l.cfg.NotUsed = append(l.cfg.NotUsed, l.src.Bundle.Finding(s.File, s.Line, text))
		}
	}
}

func (l *loader) bundled() []bundle.Setting {
	if l.src.Bundle == nil {
		return nil
	}
	return l.src.Bundle.InForce()
}

// endpoint is where the variables of every AWS SDK say that a service is; "" for Amazon's own place.
func (l *loader) endpoint(service string) string {
	if strings.EqualFold(l.vars["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"], "true") {
		return ""
	}
	return cmp.Or(l.vars["AWS_ENDPOINT_URL_"+service], l.vars["AWS_ENDPOINT_URL"])
}

// view is the settings as one queue sees them, or all queues do.
type view struct {
	*loader
	// prefix begins what is said about them: "queue payments: ", or "".
	prefix string
	s      *Settings
	// own is where the queue's own settings come from, by key.
	own map[string]Origin
}

// about warns at the place that set the option; a default that takes part has none.
func (v *view) about(name, hint, format string, args ...any) {
	where := ""
	if from := v.origin(name); from.Layer != Default {
		where = from.Where
	}
	v.warning(where, name, v.prefix+fmt.Sprintf(format, args...), hint)
}

// origin is where the value of an option comes from, as this view has it.
func (v *view) origin(name string) Origin {
	if own, found := v.own[v.option(name).Key]; found {
		return own
	}
	return v.loader.origin(name)
}

func (v *view) isSet(name string) bool { return v.origin(name).Layer != Default }

func (v *view) named(name string) string { return name + " " + v.option(name).get(v.s) }

// cite is an option's name and value, and the place that set it.
func (v *view) cite(name string) string { return fmt.Sprintf("%s (%s)", v.named(name), v.origin(name)) }

// idle warns that an option has no effect, if somebody set it; why goes on from there.
func (v *view) idle(name, why, hint string) {
	if v.isSet(name) {
		v.about(name, hint, "%s has no effect%s", v.named(name), why)
	}
}

// The parts of one Load, in their order.
type (
	// bundleReader takes the settings of the app's source bundle.
	bundleReader struct{ *view }
	// fileReader takes the settings file.
	fileReader struct{ *view }
	// deriver works out what nobody set, and settles what two options decide together.
	deriver struct{ *view }
	// scalingDeriver is the deriver of what scaling follows.
	scalingDeriver struct{ *view }
	// warner warns of settings that are allowed and seldom meant.
	warner struct{ *view }
)

// byKey finds the option of an entry in tendril.yaml, nil for none.
func (l fileReader) byKey(e entry) *Option {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if e.sqsd && slices.Contains(o.workerNames(), e.key) || !e.sqsd && o.Key == e.key && e.key != "" {
			return o
		}
	}
	return nil
}
