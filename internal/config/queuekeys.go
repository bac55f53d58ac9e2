package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

// In tendril.yaml the queues may be a list of maps, of which each has the
// queue's name, URL or ARN and settings of its own:
//
//	queues:
//	  - name: payments
//	    weight: 3
//	    http_path: /payments
//	  - url: https://sqs.eu-west-1.amazonaws.com/123456789012/reports
//	    weight: 1
//
// A key is read by the option of that name, into a copy of the settings of which Queues holds that one queue; so a
// value is checked by one rule wherever it stands.

func queueKeys() []Option {
	set := func(v value, field func(*QueueSettings) any) value {
		v.field = func(s *Settings) any { return field(&s.Queues[0]) }
		return v
	}
	keys := []Option{{
		Key: "name", Example: "jobs", Help: "The queue's name: embedded, or on Amazon SQS where backend says so.",
		value: set(checked(allowedQueueName, queueName), func(q *QueueSettings) any { return &q.Name }),
	}, {
		Key: "url", Example: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs", Help: "The queue's URL on Amazon SQS.",
		value: set(checked("an http or https URL that ends in the queue's name", queueURL),
			func(q *QueueSettings) any { return &q.URL }),
	}, {
		Key: "arn", Example: "arn:aws:sqs:eu-west-1:123456789012:jobs", Help: "The queue's ARN, in place of its URL.",
		value: set(checked("an ARN that ends in the queue's name", queueURL), func(q *QueueSettings) any { return &q.URL }),
	}, {
		Key: "weight", Example: "1",
		Help:  "The queue's share of free slots; without weights the order of the list is strict.",
		value: set(integer(1, maxWeight), func(q *QueueSettings) any { return &q.Weight }),
	}, {
		Key: "max", Example: "10", Help: "The most messages of this queue in work at once.",
		value: set(integer(1, 1000), func(q *QueueSettings) any { return &q.Concurrency }),
	}}
	for i := range keys {
		keys[i].Name = "queues"
	}
	return keys
}

// queueKey finds the option that reads a key of a queue, nil for none.
func (l fileReader) queueKey(key string) *Option {
	keys := queueKeys()
	if i := slices.IndexFunc(keys, func(o Option) bool { return o.Key == key }); i >= 0 {
		return &keys[i]
	}
	for i := range l.cfg.options {
		if o := &l.cfg.options[i]; o.PerQueue && o.Key == key {
			return o
		}
	}
	return nil
}

func queueKeyNames(options []Option) []string {
	var names []string
	for _, o := range queueKeys() {
		names = append(names, o.Key)
	}
	for i := range options {
		if options[i].PerQueue {
			names = append(names, options[i].Key)
		}
	}
	return names
}

func (l fileReader) takeQueues(file string, e entry) {
	before := len(l.problems)
	var queues []QueueSettings
	var own [][]assignment
	for _, item := range e.items {
		q, set := l.readQueue(file, item)
		queues, own = append(queues, q), append(own, set)
	}
	origin := Origin{fromFile, yamlfile.Place(file, e.line, 0)}
	if len(l.problems) > before {
		return // of checks among queues that are not right by themselves
	}
	if err := checkQueues(queues); err != nil {
		l.refuse(Problem{Where: origin.Where, Option: "queues", Text: "queues " + err.Error(),
			Hint: "write weight: 1 below a queue that has none; each name once"})
		return
	}
	l.cfg.Queues, l.ownSettings = queues, own
	l.record("queues", origin)
}

// readQueue reads one item of the list, and returns the queue and what it sets for itself.
func (l fileReader) readQueue(file string, item entry) (QueueSettings, []assignment) {
	where := yamlfile.Place(file, item.line, 0)
	if item.pairs == nil {
		q, err := parseQueue(item.text)
		if err != nil {
			l.refuse(Problem{Where: where, Option: "queues", Text: fmt.Sprintf("%s %v", shown(item.text), err),
				Hint: "write - jobs, or - name: jobs and its settings below"})
		}
		return q, nil
	}
	scratch := Settings{Queues: make([]QueueSettings, 1)}
	q := &scratch.Queues[0]
	before := len(l.problems)
	var own []assignment
	lines := map[string]int{}
	for _, e := range item.pairs {
		if a, ok := l.readQueueKey(file, e, lines, &scratch); ok {
			own = append(own, a)
		}
	}
	l.checkQueueKeys(where, lines, len(l.problems) > before)
	if q.URL != "" {
		q.Name = lastSegment(q.URL)
	}
	return *q, own
}

// readQueueKey checks one key of a queue and returns it for the time when the settings of all queues are known.
func (l fileReader) readQueueKey(file string, e entry, lines map[string]int, scratch *Settings) (assignment, bool) {
	where, o := yamlfile.Place(file, e.line, 0), l.queueKey(e.key)
	if o == nil {
		l.refuse(l.unknownQueueKey(where, e))
		return assignment{}, false
	}
	a, ok := l.admit(where, o, e, lines)
	if !ok {
		return a, false
	}
	if err := o.set(scratch, a.text); err != nil {
		l.refuse(refusal(a, err))
		return a, false
	}
	return a, true
}

// checkQueueKeys checks the keys of one queue against one another; a queue of
// which a key was refused is not blamed for having no name.
func (l fileReader) checkQueueKeys(where string, lines map[string]int, refused bool) {
	one := func(keys ...string) string {
		first := ""
		for _, k := range keys {
			switch {
			case lines[k] == 0:
			case first == "":
				first = k
			default:
				l.refuse(Problem{Where: where, Option: "queues", Text: fmt.Sprintf("this queue has %s (line %d) and %s (line "+
					"%d), of which one can be", first, lines[first], k, lines[k]), Hint: "delete one of them"})
			}
		}
		return first
	}
	if one("name", "url", "arn") == "" && !refused {
		l.refuse(Problem{Where: where, Option: "queues", Text: "this queue is not named",
			Hint: "write name: jobs, or url: or arn: for a queue on Amazon SQS"})
	}
	one("target", "function", "lambda")
}

// unknownQueueKey says what is wrong with a key of a queue, and which one may have been meant.
func (l fileReader) unknownQueueKey(where string, e entry) Problem {
	p := Problem{Where: where, Option: "queues", Text: shown(e.key) + " is not a setting of one queue"}
	names := queueKeyNames(l.cfg.options)
	_, err := strconv.Atoi(e.text)
	_, nameErr := queueName(e.key)
	o, known := find(l.cfg.options, e.key)
	switch near := Nearest(e.key, names); {
	case known && o.Name == "http-connections":
		p.Hint = "here it is written max"
	case known && (o.Name == "queue" || o.Name == "queue-url"):
		p.Hint = "here it is written name, url or arn"
	case known && o.PerQueue:
		p.Hint = "here it is written " + o.Key
	case known:
		p.Hint = "it holds for all queues: write it at the top of the file, without blanks in front"
	case len(near) > 0:
		p.Hint = "did you mean " + orList(near) + "?"
	case err == nil && nameErr == nil:
		p.Hint = fmt.Sprintf("for a queue and its weight write %s:%s without a blank, or name: %s and weight: %s", e.key,
			yamlfile.Short(e.text), e.key, yamlfile.Short(e.text))
	default:
		p.Hint = "a queue may have " + strings.Join(names, ", ")
	}
	return p
}
