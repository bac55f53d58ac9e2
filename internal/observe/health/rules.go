package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

type finding struct {
	status Status
	cause  string
	// certain means that the finding is a fact or count, which is not smoothed.
	certain bool
}

// level is a threshold: values of at least at have the status.
type level struct {
	at     float64
	status Status
}

// reach returns the status of the highest level that v reaches, or "". Levels are in ascending order.
func reach(v float64, levels ...level) (s Status) {
	for _, l := range levels {
		if v >= l.at {
			s = l.status
		}
	}
	return s
}

// measured returns a finding based on a measurement, which is smoothed. It returns nil if the status is "".
func measured(s Status, format string, args ...any) []finding {
	if s == "" {
		return nil
	}
	return []finding{{s, fmt.Sprintf(format, args...), false}}
}

// certain returns a finding that is not smoothed, or nil if the status is "".
func certain(s Status, format string, args ...any) []finding {
	if s == "" {
		return nil
	}
	return []finding{{s, fmt.Sprintf(format, args...), true}}
}

const startLimit = 10 * time.Minute

// because formats a reason as a sentence to append. A process name at its start keeps its case.
func (in *inputs) because(reason string) string {
	s := strings.TrimRight(strings.TrimSpace(reason), ".")
	if s == "" {
		return ""
	}
	first, _, _ := strings.Cut(s, " ")
	isName := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.Name == first }) ||
		strings.HasSuffix(first, ":") || strings.ContainsFunc(first, unicode.IsDigit)
	if !isName {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return " " + s + "."
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

// notReadyGrace is how long an app may be unready before the status is Severe. Until then it may just be restarting.
const notReadyGrace = 20 * time.Second

func appRule(in *inputs) []finding {
	a := in.App
	if a.Ready || in.Operation.Name != "" || in.Draining {
		return nil
	}
	if !a.WasReady {
		return certain(Severe, "The app has not become ready in %s.%s", ago(in.Now.Sub(in.Started)), in.because(a.Reason))
	}
	status := Warning
	if in.Now.Sub(a.Since) >= notReadyGrace {
		status = Severe
	}
	reason := in.because(a.Reason)
	for _, p := range a.Processes {
		if p.GivenUp && strings.HasPrefix(a.Reason, p.Name+" ") {
			reason = "" // reported by processRule
		}
	}
	return certain(status, "The app has not been ready for %s and receives no messages.%s", ago(in.Now.Sub(a.Since)), reason)
}

func processRule(in *inputs) []finding {
	var found []finding
	for _, p := range in.App.Processes {
		last := ""
		if p.LastExit != "" {
			last = " Its last run ended with " + p.LastExit + "."
		}
		if p.GivenUp {
			next := "is not restarted"
			if p.RetryAfter > 0 {
				next = "is retried every " + ago(p.RetryAfter)
			}
			found = append(found, certain(Severe, "Process %s failed too often and %s.%s", p.Name, next, last)...)
			continue
		}
		found = append(found, certain(reach(float64(p.Restarts), level{1, Warning}, level{3, Degraded}, level{10, Severe}),
			"Process %s was restarted %s in the last 5 minutes.%s", p.Name, count(int64(p.Restarts), "time"), last)...)
	}
	return found
}

func operationRule(in *inputs) []finding {
	o := in.Operation
	if o.Name == "" {
		return nil
	}
	took := in.Now.Sub(o.Since)
	if took >= cmp.Or(o.Limit, startLimit) {
		return certain(Warning, "Still performing %s (running for %s).", o.Name, ago(took))
	}
	return certain(Info, "Performing %s (running for %s).", o.Name, ago(took))
}

func deploymentRule(in *inputs) []finding {
	d := in.Deployment
	if d.Failed == "" {
		return nil // a completed deployment is an event, not a cause
	}
	// This finding remains until a deployment succeeds.
	return certain(Warning, "The deployment of %s failed %s ago; the previous version is still running.%s", d.Version,
		ago(in.Now.Sub(d.Ended)), in.because(d.Failed))
}

func stopRule(in *inputs) []finding {
	switch {
	case in.Draining && in.InWork == 1:
		return certain(Info, "Draining: receiving has stopped, 1 delivery is in flight.")
	case in.Draining:
		return certain(Info, "Draining: receiving has stopped, %d deliveries are in flight.", in.InWork)
	case in.RegistryLost != "":
		return certain(Degraded, "Receiving has stopped.%s", in.because(in.RegistryLost))
	case in.Paused:
		return certain(Info, "Receiving is paused.")
	}
	return nil
}

// Failures among fewer than fewRequests deliveries in five minutes are not significant, unless there are at least
// fewFailures and they are the majority.
const fewRequests, fewFailures = 10, 3

func share(in *inputs, failed int64, words string, levels ...level) []finding {
	total := in.Deliveries.total()
	if failed == 0 || total == 0 {
		return nil
	}
	percent := 100 * float64(failed) / float64(total)
	status := reach(percent, levels...)
	if status == "" {
		return nil
	}
	few := ""
	if total < fewRequests {
		few = " There were too few in the last 5 minutes for a higher severity."
		if status == Severe && failed >= fewFailures {
			status = Warning
		} else {
			status = Info
		}
	}
	return certain(status, "%.1f %% of the deliveries (%d of %d) %s.%s", percent, failed, total, words, few)
}

func serverErrorRule(in *inputs) []finding {
	d := in.Deliveries
	failed := d[Server] + d[FailedInside] + d[NoAnswer]
	var ways []string // list only the kinds that occurred, because a function never returns 5xx
	add := func(n int64, words string) {
		switch n {
		case 0:
		case failed:
			ways = append(ways, words)
		default:
			ways = append(ways, fmt.Sprintf("%s (%d)", words, n))
		}
	}
	add(d[Server], "failing with HTTP 5xx")
	add(d[FailedInside], "failed by the function")
	add(d[NoAnswer], "without an answer")
	return share(in, failed, "are "+strings.Join(ways, " or "), level{3, Warning}, level{15, Degraded}, level{30, Severe})
}

// clientErrorRule has higher thresholds, because an app may have good reasons to reject a message.
func clientErrorRule(in *inputs) []finding {
	n, words := in.Deliveries[Client]+in.Deliveries[Other], "are erroring with HTTP 4xx, or a redirect"
	if in.IgnoreClientErrors {
		n, words = in.Deliveries[Other], "are answered with a redirect"
	}
	return share(in, n, words, level{10, Warning}, level{30, Degraded}, level{60, Severe})
}

func unreachedRule(in *inputs) []finding {
	return share(in, in.Deliveries[Unreached], "did not reach the app", level{5, Warning}, level{25, Degraded},
		level{60, Severe})
}

// unsentRule never exceeds Warning, because any sender can cause unsent messages and the app is not at fault.
func unsentRule(in *inputs) []finding {
	return share(in, in.Deliveries[Unsent],
		"failed before a request was sent, for example because the task path was rejected; see the log", level{10, Warning})
}

func latencyRule(in *inputs) []finding {
	if in.DeliveryLimit <= 0 || in.Deliveries.total() < fewRequests || in.P95 < in.DeliveryLimit*8/10 {
		return nil
	}
	return measured(Warning, "One in twenty deliveries takes %.3g s or longer; the limit is %.3g s.",
		in.P95.Seconds(), in.DeliveryLimit.Seconds())
}

func ageRule(in *inputs) []finding {
	q := in.Queue
	if !q.Known {
		return nil
	}
	if q.Retention > 0 && q.Oldest >= q.Retention*8/10 {
		return measured(Severe, "The oldest message%s has waited for %s; it is deleted after %s.", of(q.OldestIn), ago(q.Oldest),
			ago(q.Retention))
	}
	return measured(reach(q.Oldest.Minutes(), level{5, Warning}, level{30, Degraded}),
		"The oldest message%s has waited for %s.", of(q.OldestIn), ago(q.Oldest))
}

// of returns a phrase that names a queue, or "".
func of(name string) string {
	if name == "" {
		return ""
	}
	return " in " + name
}

func backlogRule(in *inputs) []finding {
	q := in.Queue
	if !q.Known || q.Backlog == 0 {
		return nil
	}
	status := Ok // mentioned in the report, but not a health problem
	if q.Oldest >= time.Minute {
		status = Info
	}
	return measured(status, "%s waiting in the queue%s.", count(q.Backlog, "message"), in.queueAge())
}

func deadLetterRule(in *inputs) []finding {
	q := in.Queue
	if !q.Known || q.DeadLetters == 0 {
		return nil
	}
	if q.NewDeadLetters > 0 {
		return certain(Warning, "%s in the dead-letter queue, %d of them in the last 5 minutes%s.",
			count(q.DeadLetters, "message"), q.NewDeadLetters, in.queueAge())
	}
	return certain(Info, "%s in the dead-letter queue%s.", count(q.DeadLetters, "message"), in.queueAge())
}

func (in *inputs) queueAge() string {
	if in.Queue.Taken.IsZero() {
		return ""
	}
	return " (" + ago(in.Now.Sub(in.Queue.Taken)) + " ago)"
}

// expiredRule reports messages that this instance deleted at the end of their retention period. It works even if the
// queue's other values are unknown.
func expiredRule(in *inputs) []finding {
	if in.Queue.Expired == 0 {
		return nil
	}
	return certain(Warning, "%s deleted in the last 5 minutes at the end of the retention period.",
		count(in.Queue.Expired, "message"))
}

func problemRule(in *inputs) (found []finding) {
	for _, text := range in.Problems {
		found = append(found, certain(Warning, "%s", strings.ToUpper(text[:1])+text[1:])...)
	}
	return found
}

func storeRule(in *inputs) []finding {
	if in.Queue.Failed == "" {
		return nil
	}
	return certain(Severe, "The queue does not accept messages.%s", in.because(in.Queue.Failed))
}

// dataDirRule covers data directories without embedded queues. storeRule covers those with them.
func dataDirRule(in *inputs) []finding {
	if in.DataDir.Lost == "" || in.DataDir.Embedded {
		return nil
	}
	return certain(Warning, "The data directory is lost: pauses, versions and events are not saved, and other "+
		"commands cannot find this environment.%s", in.because(in.DataDir.Lost))
}

func pollRule(in *inputs) []finding {
	p := in.Poll
	if p.problem.Since.IsZero() {
		return nil
	}
	failing := in.Now.Sub(p.problem.Since)
	if p.Final {
		return certain(Severe, "Reading the queue has been rejected for %s.%s", ago(failing), in.because(p.problem.Reason))
	}
	return measured(reach(failing.Seconds(), level{30, Warning}, level{120, Degraded}, level{300, Severe}),
		"The queue has not answered for %s.%s", ago(failing), in.because(p.problem.Reason))
}

func leaderRule(in *inputs) []finding {
	l := in.Leader
	if l.Tasks == 0 || in.NoLeader.IsZero() {
		return nil
	}
	without := in.Now.Sub(in.NoLeader)
	return measured(reach(without.Seconds(), level{60, Warning}, level{600, Degraded}),
		"No leader for %s, needed by %s.%s", ago(without), count(int64(l.Tasks), "periodic task"),
		in.because(l.Error))
}

// failedRuns is the number of consecutive failed runs that leads to a Warning. A single failed run is retried.
const failedRuns = 2

func taskRule(in *inputs) (found []finding) {
	for i := range in.Tasks {
		t := &in.Tasks[i]
		if t.Problem != "" {
			found = append(found, certain(Warning, "Enqueueing the periodic task %s fails.%s", t.Name,
				in.because(t.Problem))...)
		}
		status := Info
		if t.FailedRuns >= failedRuns {
			status = Warning
		}
		if t.FailedRuns > 0 {
			found = append(found, certain(status, "The periodic task %s failed in its last %s.%s", t.Name,
				counted(t.FailedRuns, "run"), in.because(t.LastFailure))...)
		}
		if t.Paused {
			found = append(found, certain(Info, "The periodic task %s is paused.%s", t.Name, in.because(t.Reason))...)
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
	return certain(Info, "The group keeps its size.%s", in.because(in.Scaling))
}

func cpuRule(in *inputs) []finding {
	h := in.Host
	if !h.CPU.Known {
		return nil
	}
	status := reach(h.CPU.Value, level{95, Info})
	// A busy worker uses much CPU time. That leads to a Warning only if other tasks on the machine have to wait.
	if status != "" && h.Load.Known && h.Load.Value >= 3*float64(h.CPUs) {
		return measured(Warning, "%.0f %% of CPU is in use, with a load of %.1f on %s.", h.CPU.Value, h.Load.Value,
			count(int64(h.CPUs), "processor"))
	}
	return measured(status, "%.0f %% of CPU is in use.", h.CPU.Value)
}

func memoryRule(in *inputs) []finding {
	h := in.Host
	if !h.MemoryFree.Known {
		return nil
	}
	used := 100 - 100*h.MemoryFree.Value/h.Memory
	return measured(reach(used, level{90, Warning}, level{97, Degraded}), "%.0f %% of memory is in use.", used)
}

// Thresholds for free disk space in bytes, which apply at any disk size.
const (
	fewFree = 1 << 30
	noFree  = 64 << 20
)

func diskRule(in *inputs) []finding {
	h := in.Host
	if !h.DiskFree.Known || h.Disk <= 0 {
		return nil
	}
	used, free := 100-100*h.DiskFree.Value/h.Disk, h.DiskFree.Value
	status := reach(used, level{90, Warning}, level{95, Degraded}, level{99, Severe})
	switch {
	case free < noFree:
		status = Severe
	case free >= 20*fewFree:
		status = ""
	case free >= fewFree && status == Severe:
		status = Degraded
	}
	refused := ""
	if free < min(noFree, h.Disk/16) {
		refused = " Sends to embedded queues are refused. Free space on that disk outside the data directory."
	}
	return measured(status, "%.0f %% of the disk of %s is in use, %.0f MiB are free.%s", used, h.Path, free/(1<<20), refused)
}
