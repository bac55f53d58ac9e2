package periodic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tendril/internal/config/yamlfile"
	"tendril/queue"
)

const (
	defaultGrace  = 5 * time.Minute // of a missed run
	maxGrace      = 24 * time.Hour
	maxJitter     = time.Hour
	maxName       = 128 // bytes
	maxAttributes = 6   // SQS allows ten, including tendril's
)

// Task is an entry of a cron.yaml.
type Task struct {
	// Name is unique, printable text of 1 to 128 bytes.
	Name string
	// URL is a request path, optionally with a query.
	URL      string
	Schedule Schedule
	// Jitter is the maximum delay of a run, up to 1 h. Delays are derived from names and times, so that all instances
	// agree.
	Jitter  time.Duration
	Overlap Overlap
	Missed  Missed
	// Grace is the maximum lateness of a missed run, up to 24 h; 0 means 5 min.
	Grace time.Duration
	// Payload is the message body; "" means Elastic Beanstalk's default.
	Payload string
	// Attributes contains up to 6 additional message attributes, sorted by name.
	Attributes []queue.Attribute
	// Queue is a name, URL or ARN; "" means the environment's queue.
	Queue string
	Line  int
}

func (t *Task) grace() time.Duration { return cmp.Or(t.Grace, defaultGrace) }

// Overlap is the policy for a run due before the previous one has finished; "" means [Allow].
type Overlap string

// Policies for overlapping runs.
const (
	Allow       Overlap = "allow"
	SkipOverlap Overlap = "skip"
)

// Missed is the policy for runs more than 10 s late, but within the grace; "" means [MissedOne].
type Missed string

// Policies for missed runs.
const (
	// MissedOne enqueues the latest missed run, unless a newer one is due.
	MissedOne  Missed = "one"
	MissedAll  Missed = "all"
	MissedSkip Missed = "skip"
)

type taskReader struct {
	*reader
	task             *Task
	zone, expression string
	lines            map[string]int
}

func (r *taskReader) readPair(pair *yamlfile.Pair) {
	key := pair.Key
	if key == "attributes" {
		r.readAttributes(pair)
		return
	}
	if examples[key] == "" {
		r.warn(pair.Line, key, yamlfile.Shown(key)+" is unknown and was ignored", "a task has the keys name, url, schedule, "+
			"timezone, jitter, overlap, missed, grace, payload, queue and attributes")
		return
	}
	text, ok := scalar(pair.Value)
	if !ok || strings.TrimSpace(text) == "" {
		r.refuse(pair.Line, key, key+" has no plain value", writeLine+examples[key])
		return
	}
	r.refuseFor(pair.Line, key, r.set(key, text))
}

type invalidError struct{ text, hint string }

func (e *invalidError) Error() string { return e.text + ": " + e.hint }

func (r *reader) refuseFor(line int, key string, err error) {
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		r.refuse(line, key, invalid.text, invalid.hint)
	case err != nil:
		r.refuse(line, key, err.Error(), "")
	}
}

const writeLine = "write a line such as "

var examples = map[string]string{
	"name": "name: backup-job", "url": "url: /backup", "schedule": `schedule: "0 23 * * *"`,
	"timezone": "timezone: Europe/Berlin", "jitter": "jitter: 30s", "overlap": "overlap: skip", "missed": "missed: one",
	"grace": "grace: 300s", "queue": "queue: punctual", "payload": "payload: full",
}

func (r *taskReader) set(key, text string) (err error) {
	t := r.task
	switch key {
	case "name":
		t.Name, err = text, checkName(text)
	case "url":
		t.URL = text
		if _, problem := queue.ParsePath(text); problem != nil {
			err = &invalidError{fmt.Sprintf("the url %s is not a path, %s", yamlfile.Shown(text), problem),
				"write a path on the app, such as /backup"}
		}
	case "schedule":
		r.expression = text
	case "timezone":
		r.zone = text
	case "jitter":
		t.Jitter, err = parseDuration(key, text, 0, maxJitter)
	case "grace":
		t.Grace, err = parseDuration(key, text, time.Second, maxGrace)
	case "overlap":
		t.Overlap, err = oneOf(key, Overlap(text), Allow, SkipOverlap)
	case "missed":
		t.Missed, err = oneOf(key, Missed(text), MissedOne, MissedAll, MissedSkip)
	case "payload":
		t.Payload, err = text, checkCharacters("payload", text)
	case "queue":
		t.Queue, err = text, checkQueue(text)
	}

	return err
}

var queueForm = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.fifo)?$`)

func checkQueue(text string) error {
	switch {
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }):
		return &invalidError{"invalid queue " + yamlfile.Shown(text), "use a name, URL or ARN"}
	case isUnencrypted(text):
		return &invalidError{"the queue " + yamlfile.Shown(text) + " would receive messages and session tokens unencrypted",
			"use https, or the queue's name with --endpoint-url"}
	case strings.Contains(text, "://"), strings.HasPrefix(text, "arn:"):
		return nil
	case len(text) > 80 || !queueForm.MatchString(text):
		return &invalidError{"invalid queue name " + yamlfile.Shown(text),
			"use 1 to 80 letters, digits, hyphens and underscores, with .fifo at the end for a FIFO queue"}
	}
	return nil
}

func (r *taskReader) finish() {
	for _, key := range []string{"name", "url", "schedule"} {
		if r.lines[key] == 0 {
			r.refuse(r.task.Line, key, "the task has no "+key, writeLine+examples[key])
		}
	}
	zone, err := loadZone(r.zone)
	if err != nil {
		r.refuse(r.lines["timezone"], "timezone", err.Error(),
			"write a name such as Europe/Berlin, or leave the line out for UTC")
	}
	if r.expression != "" {
		r.task.Schedule, err = parseSchedule(r.expression, zone)
		r.refuseFor(r.lines["schedule"], "schedule", err)
	}
}

func loadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("the time zone %s is different on each machine", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %s", yamlfile.Shown(name))
	}
	return zone, nil
}

// isUnencrypted reports whether text is an http URL on another machine. A file in the app must not redirect signed
// calls there.
func isUnencrypted(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !strings.EqualFold(u.Scheme, "http") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !ip.IsLoopback())
}

func checkName(name string) error {
	if len(name) > maxName {
		return &invalidError{fmt.Sprintf("the name is longer than %d bytes", maxName), "write a shorter one"}
	}
	if name != strings.TrimSpace(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return &invalidError{"the name " + yamlfile.Shown(name) + " has invisible characters, or spaces at the start or end",
			"use letters, digits and hyphens, for example backup-job"}
	}
	return nil
}

func checkCharacters(what, text string) error {
	for _, c := range text {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == utf8.RuneError || c == 0xFFFE || c == 0xFFFF {
			return &invalidError{"the " + what + " has a character that SQS does not accept", "write text"}
		}
	}
	return nil
}

func parseDuration(key, text string, low, top time.Duration) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	d, err := time.ParseDuration(trimmed)
	if err != nil {
		d, err = time.ParseDuration(trimmed + "s")
	}
	if err != nil || d < low || d > top {
		return 0, &invalidError{fmt.Sprintf("the %s %s is not a time from %s to %s", key, yamlfile.Shown(text), low, top),
			writeLine + key + ": 30s"}
	}
	return d, nil
}

func oneOf[T ~string](key string, value T, allowed ...T) (T, error) {
	if slices.Contains(allowed, value) {
		return value, nil
	}
	var words []string
	for _, a := range allowed {
		words = append(words, string(a))
	}
	return "", &invalidError{"invalid " + key + " " + yamlfile.Shown(string(value)), "use one of " + joinWords(words)}
}

func (r *taskReader) readAttributes(pair *yamlfile.Pair) {
	const hint = `write a map below it, such as "  tenant: blue"`
	if pair.Value.Kind != yamlfile.Mapping {
		r.refuse(pair.Line, "attributes", "attributes is not a map", hint)
		return
	}

	seen := map[string]int{}
	for _, inner := range pair.Value.Pairs {
		name, line := inner.Key, inner.Line
		value, ok := scalar(inner.Value)
		unaccepted := checkCharacters("attribute "+yamlfile.Shown(name), value)
		switch {
		case !r.checkUnique(seen, name, line):
		case !ok || value == "":
			r.refuse(line, "attributes", "the attribute "+yamlfile.Shown(name)+" has no plain value", hint)
		case !isAttributeName(name):
			r.refuse(line, "attributes", "invalid attribute name "+yamlfile.Shown(name),
				"use letters, digits, hyphens, underscores and single dots; names starting with aws., amazon. or "+
					"beanstalk.sqsd. are reserved")
		case unaccepted != nil:
			r.refuseFor(line, "attributes", unaccepted)
		case len(r.task.Attributes) == maxAttributes:
			r.refuse(line, "attributes", fmt.Sprintf("there are more than %d attributes", maxAttributes),
				"put the task's data into payload")
			return
		default:
			r.task.Attributes = append(r.task.Attributes, queue.Attribute{Name: name, Type: "String", Value: value})
		}
	}

	slices.SortFunc(r.task.Attributes, func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) })
}

func isAttributeName(name string) bool {
	lower := strings.ToLower(name)
	for _, reserved := range []string{"aws.", "amazon.", queue.RunPrefix} {
		if strings.HasPrefix(lower, reserved) {
			return false
		}
	}
	return len(name) <= 256 && attributeForm.MatchString(name)
}

var attributeForm = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
