package deliver

import (
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

// The attributes by which a message says that it is the run of a periodic task.
// Every name that begins with the prefix belongs to the daemon and is never
// forwarded to the app.
const (
	periodicPrefix = "beanstalk.sqsd."
	periodicPath   = periodicPrefix + "path"
	periodicName   = periodicPrefix + "task_name"
	periodicTime   = periodicPrefix + "scheduled_time"
)

// task is one run of a periodic task.
type task struct {
	// target is the request target that its path attribute asked for.
	target string
	// path is that attribute as it was written, name the task's name and
	// scheduled the time it was due, as the header shows it; the last two are
	// "" when the message does not say.
	path, name, scheduled string
}

// periodicTask returns the task that m is a run of; nil for an ordinary
// message, which is one without a textual path attribute. The error says why
// the path was refused.
func periodicTask(m *queue.Message) (*task, error) {
	path, ok := periodicValue(m, periodicPath)
	if !ok {
		return nil, nil
	}
	target, err := ParsePath(path)
	if err != nil {
		return nil, fmt.Errorf("task path refused: %w", err)
	}
	t := &task{target: target, path: path}
	t.name, _ = periodicValue(m, periodicName)
	if at, ok := periodicValue(m, periodicTime); ok {
		t.scheduled = scheduledAt(at)
	}
	return t, nil
}

func periodicValue(m *queue.Message, name string) (string, bool) {
	for i := range m.Attributes {
		if a := &m.Attributes[i]; a.Name == name && isText(a) {
			return a.Value, true
		}
	}
	return "", false
}

// scheduledAt turns the queue's spelling of a time into the header's. What it
// cannot read it leaves as it is: the app may know better.
func scheduledAt(value string) string {
	value = strings.TrimSpace(value)
	for _, layout := range []string{"2006-01-02 15:04:05 UTC", "2006-01-02 15:04:05 -0700", time.RFC3339} {
		if at, err := time.Parse(layout, value); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return value
}
