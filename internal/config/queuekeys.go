package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

const ofOneQueue = " of "

func queueKeys(q *QueueSettings) []*Option {
	keys := []*Option{{
		Key: "name", Example: "jobs", Help: "Name of the queue, embedded, or on Amazon SQS with backend: sqs.",
		value: checked(&q.Name, allowedQueueName, queueName),
	}, {
		Key: "url", Example: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs", Help: "URL of the queue on Amazon SQS.",
		value: checked(&q.URL, "an http or https URL that ends in the queue's name", queueURL),
	}, {
		Key: "arn", Example: "arn:aws:sqs:eu-west-1:123456789012:jobs", Help: "ARN of the queue, instead of its URL.",
		value: checked(&q.URL, "an ARN that ends in the queue's name", queueURL),
	}, {
		Key: "weight", Example: "1",
		Help:  "Share of free slots; without weights the queues have strict priority in list order.",
		value: integer(&q.Weight, 1, maxWeight),
	}, {
		Key: "max", Example: "10", Help: "Maximum messages of this queue in flight.",
		value: integer(&q.Max, 1, 1000),
	}}
	for _, o := range keys {
		o.Name = queuesKey
	}

	return keys
}

func queueTable(q *QueueSettings, rows []*Option) []*Option {
	return append(queueKeys(q), slices.DeleteFunc(slices.Clone(rows), func(o *Option) bool { return !o.PerQueue })...)
}

func assignQueues(l *loader, file string, e entry) {
	before := len(l.refused.Problems)
	var queues []QueueSettings
	var own [][]assignment
	for _, item := range e.items {
		q, settings := readQueue(l, file, item)
		queues = append(queues, q)
		own = append(own, settings)
	}
	if len(l.refused.Problems) > before {
		return
	}

	origin := inFile(file, e.line)
	if err := checkQueues(queues); err != nil {
		l.refuseAt(origin.Where, "queues", "give every queue a weight, and use each name once",
			"queues %s", err.Error())
		return
	}

	l.cfg.Queues = queues
	l.ownSettings = own
	l.record("queues", origin)
}

func readQueue(l *loader, file string, item entry) (QueueSettings, []assignment) {
	where := yamlfile.Place(file, item.line, 0)
	if item.pairs == nil {
		return readShortQueue(l, where, item.text), nil
	}

	// The rows of the queue's own keys, such as weight, set q. The rows of per-queue options only validate.
	var q QueueSettings
	var own []assignment
	rows := queueTable(&q, table(&Settings{}))
	lineOf := map[string]int{}
	refused := false
	for _, e := range item.pairs {
		a, ok := readQueueKey(l, inFile(file, e.line), e, lineOf, rows)
		if !ok {
			refused = true
			continue
		}
		own = append(own, a)
	}

	checkQueueKeys(l, where, lineOf, refused)
	if q.URL != "" {
		q.Name = lastSegment(q.URL)
	}

	return q, own
}

func readShortQueue(l *loader, where, text string) QueueSettings {
	q, err := parseQueue(text)
	if err != nil {
		l.refuseAt(where, "queues", "use - jobs, or - name: jobs with its settings below", "%s %v", shown(text), err)
	}
	return q
}

func readQueueKey(l *loader, from Origin, e entry, lineOf map[string]int, rows []*Option) (assignment, bool) {
	o := findByKey(rows, e.key)
	if o == nil {
		l.refuse(unknownQueueKey(rows, from.Where, e))
		return assignment{}, false
	}

	a, ok := parseAssignment(l, from, o, e, lineOf)
	if !ok {
		return a, false
	}

	if err := o.value.set(a.text); err != nil {
		l.refuse(refusal(a, err))
		return a, false
	}

	return a, true
}

// readSharedQueueKey also accepts settings of queues that this instance lacks. They have no effect.
func readSharedQueueKey(l *loader, from Origin, e entry, key, queue string) {
	rows := queueTable(&QueueSettings{}, table(&Settings{}))
	if o := findByKey(rows, key); o != nil && o.PerInstance() != "" {
		l.refuse(perInstanceQueueKey(o, from.Where, e.key, key))
		return
	}
	e.key = key
	if a, ok := readQueueKey(l, from, e, map[string]int{}, rows); ok {
		l.sharedSettings[queue] = append(l.sharedSettings[queue], a)
	}
}

func perInstanceQueueKey(o *Option, where, name, key string) Problem {
	if o.Name == queuesKey {
		return Problem{Where: where, Option: name, Text: shown(name) + " cannot be set for all instances: it belongs to " +
			"each instance's own list of queues",
			Hint: "set the key " + key + " of this queue, below " + queuesKey + " in the settings file of each instance"}
	}
	return o.perInstanceProblem(where, name)
}

func checkQueueKeys(l *loader, where string, lineOf map[string]int, refused bool) {
	refuseSecond(l, where, lineOf, "name", "url", "arn")
	named := lineOf["name"] > 0 || lineOf["url"] > 0 || lineOf["arn"] > 0
	if !named && !refused {
		l.refuseAt(where, "queues", "add a name, such as name: jobs; for a queue on Amazon SQS, add its url or arn",
			"this queue has no name")
	}
	refuseSecond(l, where, lineOf, destinations()...)
}

func refuseSecond(l *loader, where string, lineOf map[string]int, keys ...string) {
	present := slices.DeleteFunc(keys, func(key string) bool { return lineOf[key] == 0 })
	for _, key := range present[min(1, len(present)):] {
		l.refuseAt(where, "queues", "delete one of them",
			"this queue has both %s (line %d) and %s (line %d)", present[0], lineOf[present[0]], key, lineOf[key])
	}
}

func unknownQueueKey(rows []*Option, where string, e entry) Problem {
	p := Problem{Where: where, Option: "queues", Text: shown(e.key) + " is not a per-queue setting"}
	var names []string
	for _, o := range rows {
		names = append(names, o.Key)
	}

	_, weightErr := strconv.ParseUint(e.text, 10, 16)
	_, nameErr := queueName(e.key)
	o, known := Lookup(e.key)
	switch near := Nearest(e.key, names); {
	case known && o.Name == "http-connections":
		p.Hint = "use max"
	case known && (o.Name == "queue" || o.Name == "queue-url"):
		p.Hint = "use name, url or arn"
	case known && o.PerQueue:
		p.Hint = "use " + o.Key
	case known:
		p.Hint = "it applies to all queues: put it at the top level of the file"
	case len(near) > 0:
		p.Hint = "did you mean " + orList(near) + "?"
	case weightErr == nil && nameErr == nil:
		p.Hint = fmt.Sprintf("for a queue and its weight use %s:%s without a space, or name: %s and weight: %s", e.key,
			yamlfile.Short(e.text), e.key, yamlfile.Short(e.text))
	default:
		p.Hint = "a queue can have " + strings.Join(names, ", ")
	}

	return p
}
