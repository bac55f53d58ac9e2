package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

func deriveQueues(l *loader) {
	listed := checkQueueList(l)
	if !listed {
		deriveSingleQueue(l)
	}

	for i := range l.cfg.Queues {
		resolveQueue(l, i)
	}

	deriveRegion(l)
	l.cfg.Strict = l.cfg.Queues[0].Weight == 0
	switch {
	case listed:
		copyFirstQueue(l)
	case l.isSet("queues") && l.isSet("queue-url"):
		l.record("queues", l.origin("queue-url"))
	case l.isSet("queues"):
		l.record("queues", l.origin("queue"))
	default:
		l.recordDerived("queues", "the one queue")
	}
}

func deriveSingleQueue(l *loader) {
	deriveBackend(l)
	deriveQueueName(l)
	l.cfg.Queues = []QueueSettings{{Name: l.cfg.Queue, URL: l.cfg.QueueURL,
		Managed: l.cfg.Backend == BackendSQS && !l.isSet("queue") && !l.isSet("queue-url")}}
	l.ownSettings = nil
}

// checkQueueList decides between the option queues and those for a single queue.
func checkQueueList(l *loader) (used bool) {
	if !l.isSet("queues") {
		return false
	}

	queues := l.origin("queues")
	for _, name := range []string{"queue-url", "queue"} {
		switch one := l.origin(name); {
		case one.Layer == Default:
		case one.Layer == queues.Layer:
			l.refuseOption("queues", "delete one of them", "queues are set both here and by the %s of %s", name, one)
		case one.Layer > queues.Layer:
			l.warnAt(queues.Where, "queues", "", "these queues are not used: %s selects one", one)
			return false
		default:
			l.warnAt(one.Where, name, "", "this queue is not used: %s selects the queues", queues)
		}
	}

	return true
}

func copyFirstQueue(l *loader) {
	s, first := l.s, &l.cfg.Queues[0]
	backend := s.Backend
	s.Queue = first.Name
	s.QueueURL = first.URL
	s.Backend = first.Backend
	for _, name := range []string{"queue", "queue-url"} {
		switch {
		case l.isSet(name):
			l.record(name, l.origin("queues"))
		case name == "queue" || s.QueueURL != "":
			l.recordDerived(name, "the first of queues")
		}
	}

	switch {
	case backend == backendAuto:
		l.recordDerived("backend", "the backend of the first queue")
	case backend != first.Backend:
		l.record("backend", l.cfg.QueueOrigin(0, "backend"))
	}
}

func resolveQueue(l *loader, i int) {
	s := l.cfg.Settings
	s.Queues = []QueueSettings{l.cfg.Queues[i]}
	queue := l.forQueue(&s)
	if i < len(l.ownSettings) {
		applyOwnSettings(queue, l.ownSettings[i])
	}
	applyOwnSettings(queue, l.sharedSettings[s.Queues[0].Name])
	splitOwnTarget(queue)

	resolveBackend(queue)

	q := &s.Queues[0]
	q.Concurrency = q.Max
	if q.Max == 0 {
		q.Concurrency = s.HTTPConnections
	}

	q.PerQueue = s.PerQueue
	l.cfg.Queues[i] = *q
	l.cfg.queueOrigins = append(l.cfg.queueOrigins, queue.own)
	l.queues = append(l.queues, queue)
}

func applyOwnSettings(l *loader, own []assignment) {
	rows := queueTable(&l.s.Queues[0], l.rows)
	for _, a := range own {
		if slices.Contains(destinations(), a.option.Name) {
			replaceDestination(l, a)
		}
		if err := findByKey(rows, a.option.Key).value.set(a.text); err != nil {
			l.refuse(refusal(a, err))
			continue
		}
		l.own[a.option.Key] = a.origin
		if a.option.Key == "arn" {
			l.own["url"] = a.origin
		}
	}
}

func splitOwnTarget(l *loader) {
	base, path := splitTarget(l.s.Target)
	l.s.Target = base
	switch chosen, both := l.own["http_path"]; {
	case path == "":
	case !both:
		l.own["http_path"] = l.own["target"]
		if err := l.option("http-path").value.set(path); err != nil {
			l.refuseTargetPath(l.own["target"].Where, path, err)
		}
	case l.s.HTTPPath != path:
		l.refuseAt(l.own["target"].Where, "target", "remove the path from one of them",
			"the target has the path %s and http_path is %s (%s)", shown(path), l.s.HTTPPath, chosen)
	}
}

// resolveBackend resolves the backend auto: SQS for a URL, an ARN or a function on AWS, otherwise embedded.
func resolveBackend(l *loader) {
	q, s := &l.s.Queues[0], l.s
	var why string
	switch {
	case q.URL != "" && s.Backend == BackendEmbedded:
		resolveUnusedURL(l, q)
		return
	case q.URL != "":
		s.Backend, why = BackendSQS, "it has a URL or an ARN"
	case s.Backend != backendAuto:
		return
	case s.Function != "":
		s.Backend, why = BackendSQS, "its messages go to a function on AWS"
	default:
		s.Backend, why = BackendEmbedded, "it is a name"
	}

	if _, isSet := l.own["backend"]; !isSet {
		l.own["backend"] = Origin{Default, why}
	}
}

// resolveUnusedURL ignores the URL of an embedded queue if a higher layer than the queue's sets the backend, and
// otherwise reports the contradiction.
func resolveUnusedURL(l *loader, q *QueueSettings) {
	own := l.own["backend"]
	chosen := l.all.origin("backend")
	queues := l.all.origin("queues")
	switch {
	case own.Layer != Default:
		l.refuseAt(own.Where, "backend", "delete one of them",
			"the queue is set to embedded but has the URL %s", shown(q.URL))
	case chosen.Layer <= queues.Layer:
		l.refuseAt(chosen.Where, "backend", "use only its name there, or delete the backend",
			"the queue %s is set to embedded but has the URL of %s", q.Name, queues)
	default:
		l.warnAt(queues.Where, "queues", "",
			"the URL of %s is not used: %s selects an embedded queue", q.Name, chosen)
		q.URL = ""
	}
}

// Only one of the destinations applies to a queue.
func destinations() []string { return []string{"target", "function", "lambda"} }

// deriveDestination keeps only the destination from the strongest layer.
func deriveDestination(l *loader) {
	names := slices.DeleteFunc(destinations(), func(name string) bool { return !l.isSet(name) })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(l.origin(b).Layer, l.origin(a).Layer) })
	for _, other := range names[min(1, len(names)):] {
		first := names[0]
		dropDestination(l, other, first, l.origin(first))
		l.record(other, l.origin(first))
	}
}

func replaceDestination(l *loader, by assignment) {
	for _, name := range destinations() {
		if _, found := l.own[name]; found && name != by.option.Name {
			dropDestination(l, name, by.option.Name, by.origin)
			l.own[name] = by.origin
		}
		l.option(name).value.unset()
	}
}

// dropDestination warns, but rejects two destinations from the same layer.
func dropDestination(l *loader, name, used string, from Origin) {
	if l.origin(name).Layer == from.Layer {
		l.refuseOption(name, "delete one of them, or set each for its own queue below queues",
			"%smessages cannot go both to the %s of %s and to this %s", l.prefix, used, from, name)
		return
	}
	l.warnValue(name, "", "is not used: messages go to the %s of %s", used, from)
	l.option(name).value.unset()
}

// QueueOrigin returns the origin of a setting of Queues[i], given its key in tendril.yaml.
func (c *Config) QueueOrigin(i int, key string) Origin {
	if own, found := c.queueOrigins[i][key]; found {
		return own
	}
	return c.Origin(optionForAllQueues(key))
}

// refuseComputedQueue rejects a computed queue URL: a worker with its own empty queue would look healthy but do
// nothing.
func refuseComputedQueue(l *loader) {
	if l.computedQueue == (Origin{}) {
		return
	}
	for _, name := range []string{"queue-url", "queue", "queues", "backend"} {
		if l.origin(name).Layer > FromBundle {
			return
		}
	}
	l.refuseAt(l.computedQueue.Where, "queue-url", "set its URL with "+
		"--queue-url=https://sqs.REGION.amazonaws.com/ACCOUNT/NAME, or --backend=sqs and --name for a queue "+
		"created by tendril, or --backend=embedded to try the app with a local queue",
		"CloudFormation computes %s: the worker's queue is unknown here", workerQueueURL)
}

func deriveBackend(l *loader) {
	s := l.s
	switch {
	case s.Backend == backendAuto && s.QueueURL != "":
		s.Backend = BackendSQS
		l.recordDerived("backend", "queue-url is set")
	case s.Backend == backendAuto && s.Function != "" && s.Queue == "":
		l.refuseOption("function", "add queues, or backend: sqs and name for a queue created by tendril, or backend: "+
			"embedded for the embedded queue",
			"a function on AWS receives messages from Amazon SQS, but no queue is set")
	case s.Backend == backendAuto && s.Function != "":
		s.Backend = BackendSQS
		l.recordDerived("backend", "messages go to a function on AWS")
	case s.Backend == backendAuto:
		s.Backend = BackendEmbedded
		l.recordDerived("backend", "queue-url is not set")
	case s.Backend == BackendSQS && s.QueueURL == "" && s.Queue == "" && !namedOnPurpose(l):
		l.refuseOption("backend", "add queue-url, or queue with a name, or --name for a queue created by tendril",
			"no Amazon SQS queue is configured")
	case s.Backend == BackendEmbedded && s.QueueURL != "":
		dropQueueURL(l)
	}
}

// namedOnPurpose excludes a folder's name, because two apps in folders with the same name must not share a queue on
// Amazon SQS.
func namedOnPurpose(l *loader) bool {
	from := l.origin("name")
	return from.Layer > FromBundle || from.Layer == FromBundle && (l.src.Bundle == nil || from.Where != l.src.Bundle.Dir)
}

// dropQueueURL lets a stronger source select the embedded backend, so that a production settings file can be tested
// locally.
func dropQueueURL(l *loader) {
	l.cfg.QueueURL = ""
	backend, queue := l.origin("backend"), l.origin("queue-url")
	if backend.Layer <= queue.Layer {
		l.refuseOption("backend", "delete one of them", "the queue is set to embedded, but queue-url of %s is set", queue)
		return
	}
	l.warnAt(queue.Where, "queue-url", "", "this queue is not used: %s selects an embedded queue", backend)
	l.record("queue-url", backend)
}

func deriveQueueName(l *loader) {
	s := l.s
	switch {
	case s.QueueURL != "" && s.Queue != "":
		l.refuseOption("queue", "delete one of them", "a queue is set both here and by the queue-url of %s",
			l.origin("queue-url"))
	case s.QueueURL != "":
		s.Queue = lastSegment(s.QueueURL)
		l.recordDerived("queue", "the end of queue-url")
	case s.Queue == "":
		s.Queue = s.Name
		l.recordDerived("queue", "the environment's name")
	}
}

func deriveRegion(l *loader) {
	queues := l.cfg.Queues
	for i := range queues {
		found := regionOf(queues[i].URL)
		queues[i].Region = found
		if found != "" && l.origin("region") == (Origin{}) {
			l.cfg.Region = found
			l.recordDerived("region", "it is in the queue's URL")
		}
	}
	for i := range queues {
		queues[i].Region = cmp.Or(queues[i].Region, l.cfg.Region)
	}
}

func regionOf(queueURL string) string {
	found := ""
	if parts := strings.Split(queueURL, ":"); parts[0] == "arn" && len(parts) == 6 {
		found = parts[3]
	} else if u, err := url.Parse(queueURL); err == nil {
		found = regionOfHost(strings.ToLower(u.Hostname()))
	}
	found, _ = region(found)
	return found
}

// regionOfHost returns the label after "sqs" or, in legacy names, the label before "queue".
func regionOfHost(name string) string {
	if !amazonHost(name) {
		return ""
	}
	labels := strings.Split(name, ".")
	for i := range len(labels) - 1 {
		switch {
		case labels[i] == "sqs" || labels[i] == "sqs-fips":
			return labels[i+1]
		case i == 0 && labels[1] == "queue":
			return labels[0]
		}
	}
	return ""
}

func splitTarget(target string) (base, path string) {
	u, err := url.Parse(target)
	if target == "" || err != nil || u.Scheme == "unix" {
		return target, ""
	}
	if path = u.RequestURI(); path == "/" {
		path = ""
	}
	return u.Scheme + "://" + u.Host, path
}
