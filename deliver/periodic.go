package deliver

import (
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

// scheduledRun is the part of a request's head that tells of a scheduled run.
type scheduledRun struct {
	// target is the request target that the run's path asked for, path the path as it
	// was written.
	target, path string
	// task is the task's name, scheduledAt when it was due, as the header shows it; ""
	// when the message does not say.
	task, scheduledAt string
}

// runOf returns what is posted for m where it is a scheduled run; nil for an ordinary
// message. The error says why the path was refused.
func runOf(m *queue.Message) (*scheduledRun, error) {
	if m.Run == nil {
		return nil, nil
	}
	target, err := queue.ParsePath(m.Run.Path)
	if err != nil {
		return nil, fmt.Errorf("task path refused: %w", err)
	}
	return &scheduledRun{target: target, path: m.Run.Path, task: m.Run.Task, scheduledAt: scheduledAt(m.Run.Time)}, nil
}

// scheduledAt turns the queue's spelling of a time into the header's. What it
// cannot read it leaves as it is: the app may know better.
func scheduledAt(value string) string {
	value = strings.TrimSpace(value)
	for _, layout := range []string{queue.RunTimeLayout, "2006-01-02 15:04:05 -0700", time.RFC3339} {
		if at, err := time.Parse(layout, value); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return value
}
