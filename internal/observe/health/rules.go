package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type level struct {
	at     float64
	status Status
}

// levels must be ascending.
func statusAt(v float64, levels ...level) (s Status) {
	for _, l := range levels {
		if v >= l.at {
			s = l.status
		}
	}
	return s
}

func measured(c Cause) []finding {
	if c.Status == "" {
		return nil
	}
	return []finding{{Cause: c, measured: true}}
}

func fact(c Cause) []finding {
	if c.Status == "" {
		return nil
	}
	return []finding{{Cause: c}}
}

const startLimit = 10 * time.Minute

func (in *inputs) because(reason string) string {
	s := strings.TrimRight(strings.TrimSpace(reason), ".:")
	if s == "" {
		return ""
	}
	first, _, _ := strings.Cut(s, " ")
	isName := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.Name == first }) ||
		strings.HasSuffix(first, ":") || strings.ContainsFunc(first, unicode.IsDigit)
	if !isName {
		s = capitalized(s)
	}
	return " " + s + "."
}

func capitalized(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

func ago(d time.Duration) string {
	n, unit := int64(max(d, 0)/time.Second), "second"
	switch {
	case d >= 48*time.Hour:
		n, unit = int64(d/(24*time.Hour)), "day"
	case d >= 2*time.Hour:
		n, unit = int64(d/time.Hour), "hour"
	case d >= 2*time.Minute:
		n, unit = int64(d/time.Minute), "minute"
	}
	return count(n, unit)
}

func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

const notReadyGrace = 20 * time.Second

func appRule(in *inputs) []finding {
	a := in.App
	if a.Ready || in.Operation.Name != "" || in.Draining {
		return nil
	}
	c := Cause{Kind: "app", Status: Warning, Since: a.Since, Remedy: "tendril doctor"}
	what, state := "The app", "is not ready and receives no messages"
	if in.Now.Sub(a.Since) >= notReadyGrace {
		c.Status = Severe
	}
	if !a.WasReady {
		c.Status = Severe
		c.Since = in.Started
		state = "has not become ready since startup"
	}
	if len(a.Processes) == 0 && len(a.Queues) > 0 {
		what = "The app of " + strings.Join(a.Queues, ", ")
	}

	reason := in.because(a.Reason)
	for _, p := range a.Processes {
		if !strings.HasPrefix(a.Reason, p.Name+" ") {
			continue
		}
		c.Name, c.Remedy = p.Name, logsOf(p.Name)
		if p.GivenUp {
			reason = ""
		}
	}
	c.Text = what + " " + state + "." + reason
	return fact(c)
}

func logsOf(process string) string { return "tendril logs " + process }

func processRule(in *inputs) (found []finding) {
	for _, p := range in.App.Processes {
		c := Cause{Kind: "process", Name: p.Name, Remedy: logsOf(p.Name)}
		if p.GivenUp {
			next := "is not restarted"
			if p.RetryAfter > 0 {
				next = "is retried every " + ago(p.RetryAfter)
			}
			c.Status, c.Text = Severe, fmt.Sprintf("Process %s failed too often and %s.", p.Name, next)
		} else {
			c.Status = statusAt(float64(p.Restarts), level{1, Warning}, level{3, Degraded}, level{10, Severe})
			c.Text = fmt.Sprintf("Process %s was restarted %s in the last 5 minutes.", p.Name, count(int64(p.Restarts), "time"))
		}
		if p.LastExit != "" {
			c.Text += " Its last run ended with " + p.LastExit + "."
		}
		found = append(found, fact(c)...)
	}
	return found
}

func operationRule(in *inputs) []finding {
	o := in.Operation
	if o.Name == "" {
		return nil
	}
	c := Cause{Kind: "operation", Status: Info, Text: "Performing " + o.Name + ".", Remedy: "tendril events --kind deploy",
		Since: o.Since}
	if in.Now.Sub(o.Since) >= cmp.Or(o.Limit, startLimit) {
		c.Status = Warning
		c.Text = "Still performing " + o.Name + "."
		c.Remedy = "tendril deploy --abort"
	}
	return fact(c)
}

func deploymentRule(in *inputs) []finding {
	d := in.Deployment
	if d.Failed == "" {
		return nil
	}
	return fact(Cause{Kind: "deployment", Status: Warning, Since: d.Ended, Remedy: logsOfFailure(in), Text: fmt.Sprintf(
		"The deployment of %s failed; the previous version is still running.%s", d.Version, in.because(d.Failed))})
}

var (
	failedStep    = regexp.MustCompile(`(?:^|: )the (\w+) step `)
	replicaNumber = regexp.MustCompile(`-\d+$`)
)

// Failed steps and processes need not log warnings, so the remedy names the step or process.
func logsOfFailure(in *inputs) string {
	failed := in.Deployment.Failed
	if step := failedStep.FindStringSubmatch(failed); step != nil {
		return logsOf(step[1])
	}
	first, _, _ := strings.Cut(failed, " ")
	nameOf := func(replica string) string { return replicaNumber.ReplaceAllString(replica, "") }
	if slices.ContainsFunc(in.App.Processes, func(p Process) bool { return nameOf(p.Name) == nameOf(first) }) {
		return logsOf(first)
	}
	return "tendril logs --level warn"
}

func registryLossRule(in *inputs) []finding {
	if in.RegistryLost == "" || in.Draining {
		return nil
	}
	return fact(Cause{Kind: "registry", Status: Degraded, Remedy: "tendril instances",
		Text: "Receiving has stopped." + in.because(in.RegistryLost)})
}

func drainRule(in *inputs) []finding {
	if !in.Draining {
		return nil
	}
	inFlight := 0
	for i := range in.Queues {
		inFlight += in.Queues[i].InWork
	}
	text := fmt.Sprintf("Draining: receiving has stopped, %d deliveries are in flight.", inFlight)
	if inFlight == 1 {
		text = "Draining: receiving has stopped, 1 delivery is in flight."
	}
	return fact(Cause{Kind: "drain", Status: Info, Text: text, Remedy: "tendril status"})
}

// If all queues are paused, only the first reports it.
func pauseRule(in *inputs, q *queueInputs) []finding {
	if !q.Paused || in.Draining {
		return nil
	}
	what, name := "Queue "+q.Name+" is paused", q.Name
	remedy := "tendril queues resume " + q.Name
	allPaused := !slices.ContainsFunc(in.Queues, func(q queueInputs) bool { return !q.Paused })
	if allPaused && len(in.Queues) > 1 {
		if q.Name != in.Queues[0].Name {
			return nil
		}
		what, name = "All queues are paused", ""
		remedy = "tendril queues resume --all"
	}
	return fact(Cause{Kind: KindPaused, Name: name, Status: Info, Since: q.PausedAt, Remedy: remedy,
		Text: what + by(q.PausedBy) + "." + in.because(q.PauseReason)})
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// Failures among fewer than fewDeliveries deliveries are Info, or Warning if their share is Severe and at least
// fewFailures failed.
const fewDeliveries, fewFailures = 10, 3

func (q *queueInputs) failureShare(in *inputs, kind string, failures []Class, words string, levels ...level) []finding {
	failed, total := q.Deliveries.of(failures), q.Deliveries.total()
	if failed == 0 || total == 0 {
		return nil
	}
	percent := 100 * float64(failed) / float64(total)
	status := statusAt(percent, levels...)
	if status == "" {
		return nil
	}

	note := ""
	if total < fewDeliveries {
		note = " There were too few for a higher severity."
		if status == Severe && failed >= fewFailures {
			status = Warning
		} else {
			status = Info
		}
	}
	c := Cause{Kind: kind, Name: q.Name, Status: status, Remedy: "tendril logs --level warn",
		Text: fmt.Sprintf("%.1f %% of the deliveries from %s in the last 5 minutes (%d of %d) %s.%s", percent, q.Name, failed,
			total, words, note)}
	if last := q.LastFailed.latest(failures); last.MessageID != "" {
		c.Text += " The last reason:" + in.because(last.Reason)
		c.Remedy = "tendril logs --match " + last.MessageID
	}
	return fact(c)
}

func serverErrorRule(in *inputs, q *queueInputs) []finding {
	d := q.Deliveries
	failures := []Class{Server, FailedInside, NoAnswer}
	failed := d.of(failures)
	var ways []string
	for i, words := range []string{"failing with HTTP 5xx", "failed by the function", "without a response"} {
		switch n := d[failures[i]]; n {
		case 0:
		case failed:
			ways = append(ways, words)
		default:
			ways = append(ways, fmt.Sprintf("%s (%d)", words, n))
		}
	}

	found := q.failureShare(in, "server-errors", failures, "are "+strings.Join(ways, " or "), level{3, Warning},
		level{15, Degraded}, level{30, Severe})
	if found != nil && 2*d[NoAnswer] > failed && len(in.App.Processes) > 0 { // the app hangs
		found[0].Remedy = "tendril restart " + in.App.Processes[0].Name
	}
	return found
}

// An app may have good reasons to reject messages, so thresholds are high.
func clientErrorRule(in *inputs, q *queueInputs) []finding {
	failures, words := []Class{Client, Other}, "are erroring with HTTP 4xx or a redirect"
	if in.IgnoreClientErrors {
		failures, words = []Class{Other}, "are redirected"
	}
	return q.failureShare(in, "client-errors", failures, words, level{10, Warning}, level{30, Degraded}, level{60, Severe})
}

func unreachedRule(in *inputs, q *queueInputs) []finding {
	return q.failureShare(in, "unreached", []Class{Unreached}, "did not reach the app", level{5, Warning},
		level{25, Degraded}, level{60, Severe})
}

// Any sender can cause unsent messages, so the status is at most Warning.
func unsentRule(in *inputs, q *queueInputs) []finding {
	return q.failureShare(in, "unsent", []Class{Unsent},
		"failed before a request was sent, for example because the task path was rejected", level{10, Warning})
}

func latencyRule(_ *inputs, q *queueInputs) []finding {
	if q.DeliveryLimit <= 0 || q.Deliveries.total() < fewDeliveries || q.P95 < q.DeliveryLimit*8/10 {
		return nil
	}
	return measured(Cause{Kind: "latency", Name: q.Name, Status: Warning, Remedy: "tendril explain inactivity-timeout",
		Text: fmt.Sprintf("One in twenty deliveries from %s takes %.3g s or longer; the limit is %.3g s.", q.Name,
			q.P95.Seconds(), q.DeliveryLimit.Seconds())})
}

func ageRule(in *inputs, q *queueInputs) []finding {
	if !q.Known {
		return nil
	}
	c := Cause{Kind: "age", Name: q.Name, Remedy: "tendril queues show " + q.Name,
		Status: statusAt(q.Oldest.Minutes(), level{1, Info}, level{5, Warning}, level{30, Degraded}),
		Text:   fmt.Sprintf("The oldest message in %s has waited for %s", q.Name, ago(q.Oldest))}
	if q.Backlog > 1 {
		c.Text = fmt.Sprintf("The oldest of %d messages in %s has waited for %s", q.Backlog, q.Name, ago(q.Oldest))
	}
	if q.Retention > 0 && q.Oldest >= q.Retention*8/10 {
		c.Status = Severe
		c.Text += "; it is deleted after " + ago(q.Retention)
	}
	c.Text += q.asOf(in) + "."
	switch {
	case q.Paused:
		c.Remedy = "tendril queues resume " + q.Name
	case q.Why != "":
		c.Text += in.because(q.Why)
	}
	return measured(c)
}

func (q *queueInputs) asOf(in *inputs) string {
	if q.Taken.IsZero() {
		return ""
	}
	return " (" + ago(in.Now.Sub(q.Taken)) + " ago)"
}

func deadLetterRule(in *inputs, q *queueInputs) []finding {
	if !q.Known || q.DeadLetters == 0 || in.isReportedByAnother(q) {
		return nil
	}
	to := cmp.Or(q.DeadLetterQueue, "the dead-letter queue of "+q.Name)
	c := Cause{Kind: KindDeadLetters, Name: q.DeadLetterQueue, Status: Info, Remedy: "tendril dead reasons -q " + q.Name,
		Text: count(q.DeadLetters, "message") + " in " + to}
	if !q.Taken.IsZero() {
		c.Text = "About " + c.Text
	}
	if q.NewDeadLetters > 0 {
		c.Status = Warning
		c.Text += fmt.Sprintf(", %d of them in the last 5 minutes", q.NewDeadLetters)
	}
	c.Text += q.asOf(in) + "."
	return []finding{{Cause: c, undated: q.OldDeadLetters && q.NewDeadLetters == 0}}
}

func (in *inputs) isReportedByAnother(q *queueInputs) bool {
	return slices.ContainsFunc(in.Queues, func(other queueInputs) bool {
		return other.DeadLetterQueue == q.DeadLetterQueue && other.Name < q.Name && other.Known
	})
}

func expiredRule(_ *inputs, q *queueInputs) []finding {
	if q.Expired == 0 {
		return nil
	}
	return fact(Cause{Kind: "expired", Name: q.Name, Status: Warning, Remedy: "tendril queues show " + q.Name,
		Text: count(q.Expired, "message") + " of " + q.Name + " deleted in the last 5 minutes at the end of the retention period."})
}

func problemRule(in *inputs) (found []finding) {
	for _, p := range in.Problems {
		found = append(found, fact(Cause{Kind: "stored", Name: p.Queue, Status: Warning, Remedy: p.Remedy,
			Text: capitalized(p.Text)})...)
	}
	return found
}

func storeRule(in *inputs) []finding {
	if in.Store == "" {
		return nil
	}
	return fact(Cause{Kind: "store", Status: Severe, Remedy: "tendril doctor",
		Text: "The embedded queues do not accept messages." + in.because(in.Store)})
}

func dataDirRule(in *inputs) []finding {
	if in.DataDir.Lost == "" || in.DataDir.Embedded {
		return nil
	}
	return fact(Cause{Kind: "data-dir", Status: Warning, Remedy: "tendril doctor", Text: "The data directory is lost: pauses, " +
		"versions and events are not saved, and other commands cannot find this environment." + in.because(in.DataDir.Lost)})
}

func pollRule(in *inputs, q *queueInputs) []finding {
	p := q.Poll.problem
	if p.Since.IsZero() {
		return nil
	}
	c := Cause{Kind: "receive", Name: q.Name, Since: p.Since, Remedy: "tendril doctor"}
	if q.Poll.Final {
		c.Status, c.Text = Severe, "Receiving from queue "+q.Name+" is denied."+in.because(p.Reason)
		return fact(c)
	}
	c.Status = statusAt(in.Now.Sub(p.Since).Seconds(), level{30, Warning}, level{120, Degraded}, level{300, Severe})
	c.Text = "Queue " + q.Name + " does not respond." + in.because(p.Reason)
	return measured(c)
}

func leaderRule(in *inputs) []finding {
	l := in.Leader
	if l.Tasks == 0 || in.NoLeader.IsZero() {
		return nil
	}
	return measured(Cause{Kind: "leader", Since: in.NoLeader, Remedy: "tendril tasks",
		Status: statusAt(in.Now.Sub(in.NoLeader).Seconds(), level{60, Warning}, level{600, Degraded}),
		Text:   "No leader for " + count(int64(l.Tasks), "periodic task") + "." + in.because(l.Error)})
}

// A single failed run may still succeed when it is retried.
const failedRunsWarning = 2

func taskRule(in *inputs) (found []finding) {
	for i := range in.Tasks {
		t := &in.Tasks[i]
		if t.Problem != "" {
			found = append(found, fact(Cause{Kind: "enqueue", Name: t.Name, Status: Warning, Remedy: "tendril tasks",
				Text: "Enqueueing the periodic task " + t.Name + " fails." + in.because(t.Problem)})...)
		}
		if t.FailedRuns > 0 {
			status := Info
			if t.FailedRuns >= failedRunsWarning {
				status = Warning
			}
			found = append(found, fact(Cause{Kind: "task", Name: t.Name, Status: status, Remedy: "tendril tasks history " + t.Name,
				Text: "The periodic task " + t.Name + " failed in its last " + counted(t.FailedRuns, "run") + "." +
					in.because(t.LastFailure)})...)
		}
		if t.Paused {
			found = append(found, fact(Cause{Kind: "task-paused", Name: t.Name, Status: Info, Since: t.PausedAt,
				Remedy: "tendril tasks resume " + t.Name,
				Text:   "The periodic task " + t.Name + " is paused" + by(t.PausedBy) + "." + in.because(t.PauseReason)})...)
		}
	}
	return found
}

func counted(n int, one string) string {
	if n == 1 {
		return one
	}
	return count(int64(n), one)
}

func scalingRule(in *inputs) []finding {
	if in.Scaling == "" {
		return nil
	}
	return fact(Cause{Kind: "scaling", Status: Info, Remedy: "tendril scale",
		Text: "The group keeps its size." + in.because(in.Scaling)})
}

func cpuRule(in *inputs) []finding {
	h := in.Host
	if !h.CPU.Known {
		return nil
	}
	c := Cause{Kind: "cpu", Status: statusAt(h.CPU.Value, level{95, Info}), Remedy: "top",
		Text: fmt.Sprintf("%.0f %% of CPU is in use.", h.CPU.Value)}
	// A worker may use all CPU time unless other programs have to wait.
	if c.Status != "" && h.Load.Known && h.Load.Value >= 3*float64(h.CPUs) {
		c.Status = Warning
		c.Text = fmt.Sprintf("%.0f %% of CPU is in use, with a load of %.1f on %s.", h.CPU.Value, h.Load.Value,
			count(int64(h.CPUs), "processor"))
	}
	return measured(c)
}

func memoryRule(in *inputs) []finding {
	h := in.Host
	if !h.MemoryFree.Known {
		return nil
	}
	used := 100 - 100*h.MemoryFree.Value/h.Memory
	return measured(Cause{Kind: "memory", Status: statusAt(used, level{90, Warning}, level{97, Degraded}), Remedy: "top",
		Text: fmt.Sprintf("%.0f %% of memory is in use.", used)})
}

// In bytes. Embedded queues reject sends below minDiskSpace, or a sixteenth of a smaller disk.
const (
	lowDiskSpace = 1 << 30
	minDiskSpace = 64 << 20
)

func diskRule(in *inputs) []finding {
	h := in.Host
	if !h.DiskFree.Known || h.Disk <= 0 {
		return nil
	}
	free := h.DiskFree.Value
	used := 100 - 100*free/h.Disk
	c := Cause{Kind: "disk", Status: statusAt(used, level{90, Warning}, level{95, Degraded}, level{99, Severe}),
		Remedy: "du -axh " + h.Mount + " | sort -h | tail",
		Text:   fmt.Sprintf("%.0f %% of the disk of %s is in use, %.0f MiB are free.", used, h.Path, free/(1<<20))}
	switch {
	case free < minDiskSpace:
		c.Status = Severe
	case free >= 20*lowDiskSpace:
		c.Status = ""
	case free >= lowDiskSpace && c.Status == Severe:
		c.Status = Degraded
	}
	if free < min(minDiskSpace, h.Disk/16) {
		c.Text += " Sends to embedded queues are rejected. Delete unneeded messages, or files below " +
			h.Mount + ", but none in the data directory."
	}
	return measured(c)
}
