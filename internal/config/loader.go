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

	// options are the rows of the table, bound to Settings.
	options []*Option
	// idle are the options whose value in force is in NotUsed.
	idle   map[string]bool
	chains map[string][]Setting
	// queueOrigins are where the own settings of each of Queues come from, by key.
	queueOrigins []map[string]Origin
	daemon       bool
}

// Origin returns the origin of an option's value in force. The name is
// any that [Lookup] knows; an unknown one has the zero Origin.
func (c *Config) Origin(name string) Origin {
	if o := find(c.options, name); o != nil {
		return c.last(o.Name).Origin
	}
	return Origin{}
}

// last is what was recorded last for an option.
func (c *Config) last(name string) Setting {
	chain := c.chains[name]
	return chain[len(chain)-1]
}

// Idle reports whether the option's value in force is one of NotUsed.
func (c *Config) Idle(name string) bool { return c.idle[name] }

// IsSet reports whether any layer sets the option.
func (c *Config) IsSet(name string) bool { return c.Origin(name).Layer != Default }

// DaemonFile reports whether the settings file is one of aws-sqsd, whose
// daemon posts to http://localhost by default.
func (c *Config) DaemonFile() bool { return c.daemon }

// loader is the state of one Load: the settings that hold for all queues, or one queue's view of them.
type loader struct {
	src  Sources
	vars map[string]string
	cfg  *Config
	// refused is everything that is wrong so far.
	refused *Error
	// ownSettings are those that each of Queues has for itself; empty if there aren't any.
	ownSettings [][]assignment
	// queues are the loaders of each of Queues.
	queues []*loader
	// computedQueue is where the bundle has CloudFormation compute WorkerQueueURL; the zero value when it does not.
	computedQueue Origin

	// all is the loader of the settings that hold for all queues.
	all *loader
	// s are the settings as this loader sees them, and rows the table bound to them.
	s    *Settings
	rows []*Option
	// prefix starts the warnings of a queue's loader: "queue payments: "; else "".
	prefix string
	// own is where the queue's own settings come from, by key.
	own map[string]Origin
}

func newLoader(src Sources) *loader {
	cfg := &Config{chains: map[string][]Setting{}, idle: map[string]bool{}}
	cfg.options = table(&cfg.Settings)
	l := &loader{src: src, vars: src.variables(), cfg: cfg, refused: &Error{}, s: &cfg.Settings, rows: cfg.options}
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

// ofQueue returns a loader of the settings s of one queue.
func (l *loader) ofQueue(s *Settings) *loader {
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

// assign puts a value in force, if it is right. The layers are read from the
// weakest to the strongest, so that the last one stays.
func (l *loader) assign(a assignment) {
	if a.option.Name == "config" {
		return // in force since the file was found, see configPath
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

// dropOwn forgets the queues' own settings when a stronger layer names the queues anew.
func (l *loader) dropOwn(by Origin) {
	if slices.ContainsFunc(l.ownSettings, func(own []assignment) bool { return len(own) > 0 }) {
		l.warnAt(l.origin("queues").Where, "queues", "",
			"these queues and their own settings are not used: %s names the queues", by)
	}
	l.ownSettings = nil
}

func (l *loader) option(name string) *Option {
	i := slices.IndexFunc(l.rows, func(o *Option) bool { return o.Name == name })
	return l.rows[i]
}

func (l *loader) record(name string, from Origin) {
	l.cfg.chains[name] = append(l.cfg.chains[name], Setting{from, l.option(name).value.get()})
}

// origin is where the value of an option comes from, as this loader sees it.
func (l *loader) origin(name string) Origin {
	if own, found := l.own[l.option(name).Key]; found {
		return own
	}
	return l.cfg.last(name).Origin
}

// settle records a value that was worked out, in the layer that it was worked
// out from. A default's place says what it follows from.
func (l *loader) settle(name, reason string) {
	from := l.cfg.last(name).Origin
	if from.Layer == Default {
		from.Where = reason
	}
	chain := l.cfg.chains[name]
	l.cfg.chains[name] = chain[:len(chain)-1]
	l.record(name, from)
}

// clash refuses two options that contradict each other, at the place of the first.
func (l *loader) clash(name, hint, format string, args ...any) {
	l.refuseAt(l.origin(name).Where, name, hint, format, args...)
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

// about warns at the place that set the option; a default that takes part has none.
func (l *loader) about(name, hint, format string, args ...any) {
	where := ""
	if from := l.origin(name); from.Layer != Default {
		where = from.Where
	}
	l.warnAt(where, name, hint, "%s", l.prefix+fmt.Sprintf(format, args...))
}

func (l *loader) isSet(name string) bool { return l.origin(name).Layer != Default }

func (l *loader) named(name string) string { return name + " " + l.option(name).value.get() }

// cite is an option's name and value, and the place that set it.
func (l *loader) cite(name string) string {
	return fmt.Sprintf("%s (%s)", l.named(name), l.origin(name))
}

// idle warns that an option that was set has no effect; why continues that sentence.
func (l *loader) idle(name, why, hint string) {
	if l.isSet(name) {
		l.about(name, hint, "%s has no effect%s", l.named(name), why)
	}
}
