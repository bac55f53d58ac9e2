package config

import (
	"fmt"
	"slices"
	"strings"
)

// onlyQueue is where the option queues comes from when a single queue is named.
const onlyQueue = "the one queue"

// deriveQueues works out which queues there are and what holds for each.
func (l deriver) deriveQueues() {
	backend := l.cfg.Backend // as it was chosen, for each queue to follow
	several := l.severalChosen()
	if !several {
		l.deriveBackend()
		l.deriveQueue()
		l.cfg.Queues, l.own = []QueueSettings{{Name: l.cfg.Queue, URL: l.cfg.QueueURL}}, nil
		backend = l.cfg.Backend
	}
	for i := range l.cfg.Queues {
		l.resolveQueue(i, backend)
	}
	l.deriveRegion()
	l.cfg.Strict = l.cfg.Queues[0].Weight == 0
	switch {
	case several:
		l.deriveFirst(backend)
	case l.isSet("queues"): // by a weaker layer than the single queue's
		l.record("queues", l.origin(l.singleQueue()))
	default:
		l.settle("queues", onlyQueue)
	}
}

// singleQueue is the option that names a single queue.
func (l deriver) singleQueue() string {
	if l.isSet("queue-url") {
		return "queue-url"
	}
	return "queue"
}

// severalChosen reports whether the option queues counts, rather than one
// that names a single queue: that of the stronger layer does.
func (l deriver) severalChosen() bool {
	if !l.isSet("queues") {
		return false
	}
	queues := l.origin("queues")
	for _, name := range []string{"queue-url", "queue"} {
		switch one := l.origin(name); {
		case one.Layer == Default:
		case one.Layer == queues.Layer:
			l.clash("queues", fmt.Sprintf("queues are named here and by the %s of %s", name, one), "delete one of them")
		case one.Layer > queues.Layer:
			l.warning(queues.Where, "queues", fmt.Sprintf("these queues are set aside: %s names one", one), "")
			return false
		default:
			l.warning(one.Where, name, fmt.Sprintf("this queue is set aside: %s names the queues", queues), "")
		}
	}
	return true
}

// deriveFirst lets the options that name a single queue tell of the first one.
func (l deriver) deriveFirst(backend string) {
	s, first := &l.cfg.Settings, &l.cfg.Queues[0]
	s.Queue, s.QueueURL, s.Backend = first.Name, first.URL, first.Backend
	for _, name := range []string{"queue", "queue-url"} {
		switch {
		case l.isSet(name):
			l.record(name, l.origin("queues"))
		case name == "queue" || s.QueueURL != "":
			l.settle(name, "the first of queues")
		}
	}
	switch {
	case backend == BackendAuto:
		l.settle("backend", "that of the first of queues")
	case backend != first.Backend:
		l.record("backend", l.cfg.QueueOrigin(0, "backend"))
	}
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

// resolveQueue puts a queue's own settings over those of all queues.
func (l deriver) resolveQueue(i int, backend string) {
	s := l.cfg.Settings
	s.Backend = backend
	s.Queues = []QueueSettings{l.cfg.Queues[i]}
	v := view{loader: l.loader, prefix: "queue " + s.Queues[0].Name + ": ", s: &s, own: map[string]Origin{}}
	if i < len(l.own) {
		v.overlay(l.own[i])
	}
	v.place()
	q := &s.Queues[0]
	if q.Concurrency == 0 {
		q.Concurrency = s.HTTPConnections
	}
	q.PerQueue = s.PerQueue
	l.cfg.Queues[i] = *q
	l.cfg.queueOrigins = append(l.cfg.queueOrigins, v.own)
	l.views = append(l.views, v)
}

// overlay applies a queue's own settings, which were checked when they were
// read. Where the queue says who gets its messages, nothing else does.
func (v *view) overlay(own []assignment) {
	for _, a := range own {
		switch a.option.Key {
		case "target", "function", "lambda":
			v.s.Target, v.s.Function, v.s.Lambda = "", "", ""
		}
	}
	for _, a := range own {
		if err := a.option.value.set(v.s, a.text); err != nil {
			v.refuse(refusal(a, err))
			continue
		}
		v.own[a.option.Key] = a.origin
		if a.option.Key == "arn" {
			v.own["url"] = a.origin
		}
	}
	base, path := splitTarget(v.s.Target)
	v.s.Target = base
	switch chosen, both := v.own["http_path"]; {
	case path == "":
	case !both:
		v.s.HTTPPath = path
		v.own["http_path"] = v.own["target"]
	case v.s.HTTPPath != path:
		v.refuse(Problem{Where: v.own["target"].Where, Option: "target",
			Text: fmt.Sprintf("the target has the path %s and http_path is %s (%s)", shown(path), v.s.HTTPPath, chosen),
			Hint: "leave the path out of one of them"})
	}
}

// place settles where the queue lives: a name is embedded unless somebody
// says sqs or it feeds a function on AWS, a URL or an ARN is Amazon SQS.
func (v *view) place() {
	q, s := &v.s.Queues[0], v.s
	own, chosen := v.own["backend"], v.loader.origin("backend")
	because := func(backend, why string) {
		s.Backend = backend
		if own == (Origin{}) {
			own = Origin{Default, why}
		}
		v.own["backend"] = own
	}
	switch queues := v.loader.origin("queues"); {
	case q.URL != "" && s.Backend != BackendEmbedded:
		because(BackendSQS, "it has a URL or an ARN")
	case q.URL != "" && own.Layer != Default:
		v.refuse(Problem{Where: own.Where, Option: "backend",
			Text: fmt.Sprintf("the queue cannot be embedded and be at %s", shown(q.URL)), Hint: "delete one of them"})
	case q.URL != "" && chosen.Layer <= queues.Layer:
		v.refuse(Problem{Where: chosen.Where, Option: "backend",
			Text: fmt.Sprintf("the queue %s cannot be embedded and be at the URL of %s", q.Name, queues),
			Hint: "write its name alone there, or delete the backend"})
	case q.URL != "":
		v.warning(queues.Where, "queues",
			fmt.Sprintf("the URL of %s is set aside: %s says that the queue is embedded", q.Name, chosen), "")
		q.URL = ""
	case s.Backend == BackendAuto && s.Function != "":
		because(BackendSQS, "its messages go to a function on AWS")
	case s.Backend == BackendAuto:
		because(BackendEmbedded, "it is a name")
	}
}

// deriveDestination settles who gets the messages: an app, a function on AWS or
// one on this machine. That of the stronger layer counts.
func (l deriver) deriveDestination() {
	names := slices.DeleteFunc([]string{"target", "function", "lambda"}, func(name string) bool { return !l.isSet(name) })
	slices.SortStableFunc(names, func(a, b string) int { return int(l.origin(b).Layer) - int(l.origin(a).Layer) })
	for _, other := range names[min(1, len(names)):] {
		first := names[0]
		if l.origin(first).Layer == l.origin(other).Layer {
			l.clash(other, fmt.Sprintf("messages can go to the %s of %s or to this %s", first, l.origin(first), other),
				"delete one of them, or set each for a queue of its own below queues")
			continue
		}
		l.about(other, fmt.Sprintf("%s is set aside: messages go to the %s of %s", l.named(other), first, l.origin(first)),
			"")
		switch other {
		case "target":
			l.cfg.Target = ""
		case "function":
			l.cfg.Function = ""
		case "lambda":
			l.cfg.Lambda = ""
		}
		l.record(other, l.origin(first))
	}
}

// QueueOrigin tells where a setting of the queue Queues[i] comes from, by its
// key in tendril.yaml: from the queue's own map, or from what holds for all.
func (c *Config) QueueOrigin(i int, key string) Origin {
	if own, found := c.queueOrigins[i][key]; found {
		return own
	}
	switch key {
	case "name", "url", "arn", "weight":
		return c.Origin("queues")
	case "max":
		return c.Origin("http-connections")
	}
	return c.Origin(strings.ReplaceAll(key, "_", "-"))
}
