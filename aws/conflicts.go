package aws

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings are those of a worker that a queue's own attributes can contradict.
type Settings struct {
	// Retention is how long after its first receive the worker still tries a
	// message. 0 leaves it out of the comparison.
	Retention time.Duration
	// Visibility is what the worker asks for at each receive. 0 makes every
	// message visible again at once.
	Visibility time.Duration
	// Inactivity is how long the worker waits for the app to say something.
	// 0 leaves it out of the comparison.
	Inactivity time.Duration
	// TerminalCodes tells that some statuses are to send a message to the dead-letter queue.
	TerminalCodes bool
}

// Conflict is something about a queue that its worker's owner should know
// before messages are lost or run twice.
type Conflict struct {
	// Name says what it is about in a few words, for programs.
	Name string
	// Text says what is so, what follows from it, and what to do.
	Text string
	// Fact is true where nothing is wrong: the queue is of a kind that its
	// worker's owner should have in mind.
	Fact bool
}

// Conflicts compares the settings with the attributes of a queue, as
// [Queue.Attributes] returns them, and returns what does not fit together, the
// worst first. An attribute that is not there is not judged, save the redrive
// policy, which SQS leaves out when there is none.
func Conflicts(s Settings, attrs map[string]string) []Conflict {
	var found []Conflict
	add := func(name, format string, args ...any) {
		found = append(found, Conflict{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	fact := func(name, format string, args ...any) {
		found = append(found, Conflict{Name: name, Text: fmt.Sprintf(format, args...), Fact: true})
	}
	most, err := maxReceiveCount(attrs["RedrivePolicy"])
	switch {
	case strings.TrimSpace(attrs["RedrivePolicy"]) == "":
		effect := ""
		if s.TerminalCodes {
			effect = " (also with one of terminal-codes)"
		}
		add("no-dead-letter-queue", "the queue has no dead-letter queue: a message that always fails%s is tried again "+
			"until its retention ends, and is then gone; create one and set the queue's RedrivePolicy (maxReceiveCount 10 "+
			"is a good start)", effect)
	case err != nil:
		add("policy-unreadable", "the queue's RedrivePolicy cannot be read (%v): check it in the SQS console", err)
	case most == 1:
		add("one-receive", "the queue's maxReceiveCount is 1: a message whose first receive is lost on the way, or cut "+
			"short by a restart, goes to the dead-letter queue without ever being tried; set it to 3 or more")
	}
	switch keeps, ok := attributeSeconds(attrs, "MessageRetentionPeriod"); {
	case !ok || s.Retention == 0:
	case s.Retention < keeps:
		add("retention-shorter", "the worker deletes a message %s after its first receive, though the queue keeps it for "+
			"%s: raise the retention period of the worker if late messages still matter", s.Retention, keeps)
	case s.Retention > keeps:
		add("retention-longer", "the worker tries a message for %s, but the queue drops it %s after it was sent: "+
			"raise the queue's MessageRetentionPeriod (up to 336h0m0s), or lower the retention period of the worker",
			s.Retention, keeps)
	}
	if s.Inactivity > 0 && s.Visibility < s.Inactivity {
		add("visibility-short", "visibility timeout %s is shorter than the inactivity timeout %s: the worker extends it "+
			"while the app works, but if the worker is paused or killed, a second attempt may begin while the first still "+
			"runs; set the visibility timeout above %[2]s", s.Visibility, s.Inactivity)
	}
	if attrs["FifoQueue"] == "true" {
		fact("fifo-order", "this is a FIFO queue: messages of one group run one at a time and in order, so a failing "+
			"message holds up its group until it succeeds, expires or is dead-lettered; parallel work needs several groups")
		if attrs["ContentBasedDeduplication"] == "false" {
			fact("fifo-deduplication", "the queue has no content-based deduplication: every sender must give a "+
				"deduplication id")
		}
	}
	if delay, ok := attributeSeconds(attrs, "DelaySeconds"); ok && delay > 0 {
		fact("delayed-delivery", "the queue hides every new message for %s before the worker can receive it (its "+
			"DelaySeconds)", delay)
	}
	return found
}

// maxReceiveCount reads a redrive policy, where the number may be a string.
func maxReceiveCount(policy string) (int, error) {
	var p struct {
		MaxReceiveCount json.RawMessage `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return 0, err
	}
	text := strings.Trim(string(p.MaxReceiveCount), `"`)
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("maxReceiveCount %q is not a number", text)
	}
	return n, nil
}

func attributeSeconds(attrs map[string]string, name string) (time.Duration, bool) {
	n, err := strconv.Atoi(attrs[name])
	return time.Duration(n) * time.Second, err == nil
}
