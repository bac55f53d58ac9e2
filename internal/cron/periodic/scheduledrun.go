package periodic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

const defaultBody = "elasticbeanstalk scheduled job"

func newScheduledRun(t *Task, s Slot, id, queueName string, manual bool) registry.Run {
	at := s.ScheduledAt.UTC().Truncate(time.Second)
	text := func(name, value string) queue.Attribute {
		return queue.Attribute{Name: name, Type: "String", Value: value}
	}

	m := queue.Outgoing{Body: cmp.Or(t.Payload, defaultBody)}
	m.Attributes = append([]queue.Attribute{
		text(queue.AttributePath, t.URL), text(queue.AttributeTask, t.Name),
		text(queue.AttributeTime, at.Format(queue.RunTimeLayout)),
	}, t.Attributes...)

	if manual {
		m.Attributes = append(m.Attributes, text(queue.AttributeRun, id))
	}
	if queue.IsFIFO(queueName) {
		m.GroupID, m.DedupID = groupID(t.Name), digest(id)
	}

	return registry.Run{Task: t.Name, ScheduledAt: at, Path: t.URL, DueAt: s.DueAt, ID: id, Manual: manual,
		Queue: queueName, Message: m}
}

func runID(task string, at time.Time) string { return task + "@" + at.UTC().Format(time.RFC3339) }

// IDOf returns the ID of a message's run, or "" if it is unknown or inconsistent.
func IDOf(run *queue.Run) string {
	if !run.Named() {
		return ""
	}
	id := runID(run.Task, run.ScheduledAt)
	switch {
	case run.ID == "":
		return id
	case strings.HasPrefix(run.ID, id+"#"):
		return run.ID
	}
	return ""
}

// groupID returns a message group ID, which SQS limits to 128 ASCII characters.
func groupID(task string) string {
	if strings.ContainsFunc(task, func(c rune) bool { return c <= ' ' || c > '~' }) || len(task) > 100 {
		task = digest(task)
	}
	return "periodic-" + task
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
