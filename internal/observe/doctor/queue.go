package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// QueueFits is the ID of the finding for a queue without problems.
const QueueFits = "queue"

const maxRetention = 14 * 24 * time.Hour

// Examine returns the findings about a queue, unsorted. It does not check missing attributes, except the redrive
// policy, which SQS omits if unset.
func (q *Queue) Examine() []Finding { return q.examine(true) }

func (q *Queue) examine(running bool) []Finding {
	e := &queueExamination{queue: q, running: running}
	switch {
	case q.Missing && !q.OnSQS:
		e.found.add(Error, "queue-missing", fmt.Sprintf("queue %s no longer exists", q.Name),
			"no messages can be received from it or sent to it", "restart the environment: 'tendril up' creates it")
		return e.found
	case q.Missing && q.Managed:
		e.found.ok(QueueFits, "queue %s does not exist yet: 'tendril up' creates it", q.Name)
	case q.Missing:
		e.found.add(Error, "queue-missing", fmt.Sprintf("queue %s does not exist", q.Name),
			"'tendril up' would fail", fmt.Sprintf("tendril queues create %s --backend sqs", q.Name))
		return e.found
	}

	e.checkVisibility()
	e.checkAttempts()
	if q.Attributes != nil {
		e.checkRedrivePolicy()
		e.checkDeadLetterQueue()
		e.checkRetention()
		e.noteProperties()
	}

	if len(e.found) == 0 {
		e.found.ok(QueueFits, "queue %s: timeouts, retention and dead-letter queue are consistent", q.Name)
	}
	return e.found
}

type queueExamination struct {
	queue   *Queue
	running bool
	found   findings
}

func (q *queueExamination) add(level Level, id, what, why, remedy string) {
	q.found.add(level, id, "queue "+q.queue.Name+": "+what, why, remedy)
}

func (q *queueExamination) settingRemedy(option string, d time.Duration) string {
	value := ceilSeconds(d) + "s"
	switch {
	case q.queue.SeveralQueues:
		return fmt.Sprintf("add to tendril.yaml, below the queue %s: %s: %s", q.queue.Name,
			strings.ReplaceAll(option, "-", "_"), value)
	case q.running:
		return fmt.Sprintf("tendril config set %s=%s", option, value)
	}
	return fmt.Sprintf("tendril up --%s=%s", option, value)
}

func attributeRemedy(url, name, value string) string {
	return fmt.Sprintf("aws sqs set-queue-attributes --queue-url %s --attributes %s=%s", url, name, value)
}

func (q *queueExamination) checkVisibility() {
	t := &q.queue.Times
	switch {
	case t.Attempt == 0:
	case t.Visibility == 0:
		q.add(Error, "visibility-short", "visibility-timeout 0 does not hide a message during its delivery",
			"it is delivered many times at once", q.settingRemedy("visibility-timeout", t.Attempt))
	case t.Visibility < t.Attempt:
		q.add(Warning, "visibility-short", fmt.Sprintf("visibility timeout %s is shorter than an attempt may take: %s, by %s",
			durationText(t.Visibility), durationText(t.Attempt), t.AttemptText),
			"tendril extends it while the app works, but if tendril is paused or killed, a second attempt starts "+
				"during the first", q.settingRemedy("visibility-timeout", t.Attempt))
	}
}

func (q *queueExamination) checkAttempts() {
	t := &q.queue.Times
	attempts := t.MaxRetries
	if _, receives := queue.ParseRedrivePolicy(q.queue.Attributes["RedrivePolicy"]); receives > 0 {
		attempts = receives
	}
	if t.Pause == nil || attempts < 2 {
		return
	}
	var pauses time.Duration
	for attempt := 1; attempt < attempts && pauses <= maxRetention; attempt++ {
		pauses += t.Pause(attempt)
	}

	limit, limitName := t.Retention, "the retention period"
	remedy := q.settingRemedy("retention-period", pauses+time.Hour)
	if keeps, known := secondsAttribute(q.queue.Attributes, "MessageRetentionPeriod"); q.queue.OnSQS && known && keeps < limit {
		limit, limitName = keeps, "its MessageRetentionPeriod"
		if q.queue.URL != "" {
			remedy = attributeRemedy(q.queue.URL, "MessageRetentionPeriod", ceilSeconds(pauses+time.Hour))
		}
	}
	if limit == 0 || pauses <= limit {
		return
	}
	if pauses > maxRetention {
		remedy = "reduce backoff-max, or the number of attempts"
	}
	q.add(Warning, "retention-short",
		fmt.Sprintf("%d attempts take up to %s, longer than %s of %s", attempts, durationText(pauses), limitName,
			durationText(limit)),
		"a message that keeps failing is deleted before its last attempt, and never reaches the dead-letter queue", remedy)
}

func (q *queueExamination) checkRedrivePolicy() {
	policy := strings.TrimSpace(q.queue.Attributes["RedrivePolicy"])
	_, receives := queue.ParseRedrivePolicy(policy)
	switch {
	case policy == "" && q.queue.Missing:
	case policy == "":
		what := "it has no dead-letter queue"
		if q.queue.Times.TerminalCodes != "" {
			what += ", so that terminal-codes " + q.queue.Times.TerminalCodes + " has no effect"
		}
		create := ""
		if q.queue.OnSQS {
			create = fmt.Sprintf("tendril queues create %s --backend sqs --no-dead-letter-queue -a "+
				"MessageRetentionPeriod=1209600, then ", queue.DeadLetterName(q.queue.Name))
		}
		q.add(Warning, "no-dead-letter-queue", what,
			"a message that always fails is retried until its retention period ends, and is then lost",
			create+q.redriveRemedy(10))
	case receives == 0:
		q.add(Error, "policy-unreadable", fmt.Sprintf("its RedrivePolicy is invalid: %q", policy),
			"the number of receives before dead-lettering is unknown", q.redriveRemedy(10))
	case receives == 1:
		remedy := q.redriveRemedy(3)
		if !q.queue.OnSQS {
			remedy = "set max-retries to 3, and restart the environment"
		}
		q.add(Warning, "one-receive", "its maxReceiveCount is 1",
			"a message whose first receive is lost, or interrupted by a restart, is dead-lettered without an attempt", remedy)
	}
}

func (q *queueExamination) redriveRemedy(receives int) string {
	if !q.queue.OnSQS {
		return "restart the environment: 'tendril up' sets it"
	}
	arn := cmp.Or(q.queue.Attributes["QueueArn"], "ARN-OF-"+q.queue.Name)
	target := queue.DeadLetterName(arn)
	if dead, _ := queue.ParseRedrivePolicy(strings.TrimSpace(q.queue.Attributes["RedrivePolicy"])); dead != "" {
		target = arn[:strings.LastIndexByte(arn, ':')+1] + dead
	}
	return fmt.Sprintf(`aws sqs set-queue-attributes --queue-url %s --attributes `+
		`'{"RedrivePolicy": "{\"deadLetterTargetArn\": \"%s\", \"maxReceiveCount\": \"%d\"}"}'`, q.queue.URL, target, receives)
}

func (q *queueExamination) checkDeadLetterQueue() {
	dead := q.queue.Dead
	switch {
	case dead == nil:
	case dead.Missing:
		onSQS := ""
		if q.queue.OnSQS {
			onSQS = " --backend sqs"
		}
		q.add(Error, "dead-letter-queue", fmt.Sprintf("its dead-letter queue %s does not exist", dead.Name),
			"messages that always fail are retried until their retention period ends, and are then lost",
			fmt.Sprintf("tendril queues create %s%s --no-dead-letter-queue -a MessageRetentionPeriod=1209600", dead.Name, onSQS))
	case q.queue.OnSQS && q.queue.Attributes["FifoQueue"] != "true":
		q.checkDeadLetterRetention(dead)
	}
}

func (q *queueExamination) checkDeadLetterRetention(dead *DeadLetterQueue) {
	keeps, known := secondsAttribute(q.queue.Attributes, "MessageRetentionPeriod")
	deadKeeps, deadKnown := secondsAttribute(dead.Attributes, "MessageRetentionPeriod")
	if !known || !deadKnown || deadKeeps > keeps || deadKeeps >= maxRetention {
		return
	}
	q.add(Warning, "dead-letter-retention", fmt.Sprintf("its dead-letter queue %s keeps messages for %s, the queue "+
		"itself for %s", dead.Name, durationText(deadKeeps), durationText(keeps)),
		"dead letters keep their age: a late failure is deleted before anyone has seen it",
		attributeRemedy(cmp.Or(dead.URL, "URL-OF-"+dead.Name), "MessageRetentionPeriod", "1209600"))
}

func (q *queueExamination) checkRetention() {
	worker := q.queue.Times.Retention
	keeps, known := secondsAttribute(q.queue.Attributes, "MessageRetentionPeriod")
	switch {
	case !known || worker == 0 || !q.queue.OnSQS:
	case worker < keeps:
		q.add(Warning, "retention-shorter", fmt.Sprintf("the worker deletes a message %s after its first receive, "+
			"but the queue keeps it for %s", durationText(worker), durationText(keeps)), "late messages are lost",
			q.settingRemedy("retention-period", keeps))
	case worker > keeps:
		q.add(Warning, "retention-longer", fmt.Sprintf("the worker retries a message for %s, but the queue drops it "+
			"%s after it was sent", durationText(worker), durationText(keeps)),
			"a message that keeps failing is lost before it is dead-lettered",
			attributeRemedy(q.queue.URL, "MessageRetentionPeriod", ceilSeconds(worker))+", or "+
				q.settingRemedy("retention-period", keeps))
	}
}

func (q *queueExamination) noteProperties() {
	attributes := q.queue.Attributes
	if attributes["FifoQueue"] == "true" {
		q.found.ok("fifo-order", "queue %s is a FIFO queue: messages of one group run one at a time and in order, so "+
			"a failing message blocks its group until it succeeds, expires or is dead-lettered", q.queue.Name)
		if attributes["ContentBasedDeduplication"] == "false" {
			q.found.ok("fifo-deduplication", "queue %s has no content-based deduplication: every sender must set a "+
				"deduplication ID", q.queue.Name)
		}
	}
	if delay, known := secondsAttribute(attributes, "DelaySeconds"); known && delay > 0 {
		q.found.ok("delayed-delivery", "queue %s hides every new message for %s (its DelaySeconds)",
			q.queue.Name, durationText(delay))
	}
}

func secondsAttribute(attributes map[string]string, name string) (time.Duration, bool) {
	n, err := strconv.Atoi(attributes[name])
	return time.Duration(n) * time.Second, err == nil
}
