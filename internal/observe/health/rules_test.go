package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func well() inputs {
	return inputs{
		Now: noon, Started: noon.Add(-time.Hour),
		App: appInputs{Ready: true, WasReady: true},
		Queues: []queueInputs{{QueueState: QueueState{Name: "jobs", Known: true, DeadLetterQueue: "jobs-dead"},
			Deliveries: counts{Success: 1000}}},
		Host: Reading{CPU: known(40), Load: known(1), CPUs: 4, MemoryFree: known(4 << 30), Memory: 8 << 30,
			DiskFree: known(50 << 30), Disk: 100 << 30, Path: "/data/jobs", Mount: "/data"},
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	before := func(d time.Duration) time.Time { return noon.Add(-d) }
	requests := func(in *inputs, good, client, server int64) {
		in.Queues[0].Deliveries = counts{Success: good, Client: client, Server: server}
	}
	for _, c := range []struct {
		name   string
		change func(*inputs)
		want   Status
		cause  string
	}{
		{"nothing", func(*inputs) {}, Ok, ""},
		{"a paused task", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", Paused: true, PausedBy: "ann", PauseReason: "too slow"}}
		}, Info, "The periodic task cleanup is paused by ann. Too slow."},
		{"a task that failed once", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", FailedRuns: 1, LastFailure: "HTTP 500"}}
		}, Info, "The periodic task cleanup failed in its last run. HTTP 500."},
		{"a task that always fails", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", FailedRuns: 20, LastFailure: "HTTP 500"}}
		}, Warning, "The periodic task cleanup failed in its last 20 runs. HTTP 500."},
		{"a task that failed twice", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", FailedRuns: 2}}
		}, Warning, "The periodic task cleanup failed in its last 2 runs."},
		{"a task that succeeds", func(in *inputs) { in.Tasks = []TaskState{{Name: "cleanup"}} }, Ok, ""},
		{"a paused task that failed", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", Paused: true, FailedRuns: 3}}
		}, Warning, "The periodic task cleanup failed in its last 3 runs."},
		{"a task that is not enqueued", func(in *inputs) {
			in.Tasks = []TaskState{{Name: "cleanup", Problem: "queue jobs does not exist"}}
		}, Warning, "Enqueueing the periodic task cleanup fails. Queue jobs does not exist."},
		{"scale-in held", func(in *inputs) { in.Scaling = "scale-in is held: one of 3 was measured" }, Info,
			"The group keeps its size. Scale-in is held: one of 3 was measured."},
		{"the name of a queue in a reason", func(in *inputs) {
			in.Queues[0].Poll = pollFailure{Problem{before(time.Minute), "hl: 127.0.0.1:1 did not respond"}, true}
		}, Severe, "Receiving from queue jobs is denied. hl: 127.0.0.1:1 did not respond."},
		{"the name of a replica in a reason", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web"}}
			in.Deployment = Deployment{Version: "v2", Ended: noon, Failed: "web-2 was not ready within 14s"}
		}, Warning, "; the previous version is still running. web-2 was not ready within 14s. (tendril logs web-2)"},
		{"the first replica's name in a reason", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web-2"}}
			in.Deployment = Deployment{Version: "v2", Ended: noon, Failed: "web exited 3 times before it was ready: exit status 1"}
		}, Warning, "Web exited 3 times before it was ready: exit status 1. (tendril logs web)"},
		{"a step in a reason", func(in *inputs) {
			in.Deployment = Deployment{Version: "v2", Ended: noon,
				Failed: "the predeploy step hooks/10.sh failed after 4ms: exit status 7"}
		}, Warning, "failed after 4ms: exit status 7. (tendril logs predeploy)"},
		{"a disk of which sends are refused", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 1<<30, known(50<<20)
		}, Severe, "50 MiB are free. Sends to embedded queues are rejected. Delete unneeded messages, or files below /data, but none in the data directory."},
		{"a small disk with more than its reserve", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 300<<20, known(24<<20)
		}, Severe, "24 MiB are free. (du"},
		{"a small disk with exactly its reserve", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 320<<20, known(20<<20)
		}, Severe, "20 MiB are free. (du"},

		{"a start", func(in *inputs) {
			in.App = appInputs{Reason: "port 5000 refused"}
			in.Started = before(12 * s)
		}, Pending, "Performing initialization. Port 5000 refused."},
		{"a start without the data directory", func(in *inputs) {
			in.App = appInputs{}
			in.Started = before(12 * s)
			in.Store = "/data was removed or moved"
		}, Severe, "The embedded queues do not accept messages. /data was removed or moved."},
		{"a long start", func(in *inputs) {
			in.App = appInputs{}
			in.Started = before(10 * min)
		}, Severe, "The app has not become ready since startup."},
		{"a start with its own limit", func(in *inputs) {
			in.App = appInputs{}
			in.Started = before(20 * min)
			in.StartLimit = h
		}, Pending, ""},
		{"a start given up", func(in *inputs) {
			in.App = appInputs{Processes: []Process{{Name: "web", GivenUp: true, LastExit: "exit status 1"}}}
			in.Started = before(12 * s)
		}, Severe, "Process web failed too often and is not restarted. Its last run ended with exit status 1."},
		{"not ready while another process was given up", func(in *inputs) {
			in.App.Ready, in.App.Since, in.App.Reason = false, before(20*s), "web ended"
			in.App.Processes = []Process{{Name: "clock", GivenUp: true}}
		}, Severe, "and receives no messages. Web ended."},
		{"not ready for a moment", func(in *inputs) {
			in.App.Ready, in.App.Since = false, before(10*s)
		}, Warning, "The app is not ready and receives no messages."},
		{"not ready", func(in *inputs) {
			in.App.Ready, in.App.Since, in.App.Reason = false, before(20*s), "it exited"
		}, Severe, "and receives no messages. It exited."},
		{"not ready while draining", func(in *inputs) { in.App.Ready, in.Draining = false, true }, Info, "Draining"},
		{"one restart", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web", Restarts: 1}}
		}, Warning, "Process web was restarted 1 time in the last 5 minutes."},
		{"three restarts", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web", Restarts: 3}}
		}, Degraded, "3 times"},
		{"ten restarts", func(in *inputs) { in.App.Processes = []Process{{Name: "web", Restarts: 10}} }, Severe, "10 times"},
		{"another process given up", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web"}, {Name: "clock", GivenUp: true}}
		}, Severe, "Process clock failed"},
		{"a process given up and tried", func(in *inputs) {
			in.App.Processes = []Process{{Name: "mailer", GivenUp: true, RetryAfter: min, LastExit: "exit status 1"}}
		}, Severe, "Process mailer failed too often and is retried every 60 seconds. Its last run ended with exit " +
			"status 1."},

		{"an operation", func(in *inputs) {
			in.Operation = Operation{Name: "application deployment", Since: before(31 * s)}
		}, Info, "Performing application deployment."},
		{"an operation while not ready", func(in *inputs) {
			in.Operation = Operation{Name: "deployment", Since: before(31 * s)}
			in.App.Ready = false
		}, Info, "Performing"},
		{"a long operation", func(in *inputs) {
			in.Operation = Operation{Name: "deployment", Since: before(10 * min)}
		}, Warning, "Still performing"},
		{"a completed deployment", func(in *inputs) { in.Deployment = Deployment{Version: "v2", Ended: before(23 * s)} }, Ok, ""},
		{"an old message of a queue", func(in *inputs) {
			in.Queues[0].Name, in.Queues[0].Oldest = "mail", 6*min
		}, Warning, "The oldest message in mail has waited for 6 minutes."},
		{"a deployment that failed", func(in *inputs) {
			in.Deployment = Deployment{Version: "v2", Ended: before(9 * h), Failed: "it was not ready in 60s"}
		}, Warning, "failed; the previous version is still running. It was not ready in 60s."},

		{"2.9 % of 5xx", func(in *inputs) { requests(in, 971, 0, 29) }, Ok, ""},
		{"3 % of 5xx", func(in *inputs) {
			requests(in, 970, 0, 30)
		}, Warning, "3.0 % of the deliveries from jobs in the last 5 minutes (30 of 1000) are failing with HTTP 5xx."},
		{"15 % of 5xx", func(in *inputs) { requests(in, 850, 0, 150) }, Degraded, "15.0 %"},
		{"60 % of 5xx", func(in *inputs) {
			requests(in, 40, 0, 60)
		}, Severe, "60.0 % of the deliveries from jobs in the last 5 minutes (60 of 100) are failing with HTTP 5xx."},
		{"30 % of 5xx", func(in *inputs) { requests(in, 70, 0, 30) }, Severe, "30.0 %"},
		{"no answers", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Success: 50, Server: 10, NoAnswer: 40}
		}, Severe, "50.0 % of the deliveries from jobs in the last 5 minutes (50 of 100) are failing with HTTP 5xx (10) or without a response (40)."},
		{"nothing but no answers", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Success: 60, NoAnswer: 40}
		}, Severe, "40.0 % of the deliveries from jobs in the last 5 minutes (40 of 100) are without a response."},
		{"a hanging app", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web"}}
			in.Queues[0].Deliveries = counts{Success: 10, NoAnswer: 40}
			in.Queues[0].LastFailed[NoAnswer] = Failure{"42", "no response within 20s", 1}
		}, Severe, "are without a response. The last reason: No response within 20s. (tendril restart web)"},
		{"an app that hangs and fails equally often", func(in *inputs) {
			in.App.Processes = []Process{{Name: "web"}}
			in.Queues[0].Deliveries = counts{Success: 10, NoAnswer: 20, Server: 20}
			in.Queues[0].LastFailed[NoAnswer] = Failure{"42", "no response within 20s", 1}
		}, Severe, "No response within 20s. (tendril logs --match 42)"},
		{"a function that fails", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Success: 970, FailedInside: 30}
		}, Warning, "3.0 % of the deliveries from jobs in the last 5 minutes (30 of 1000) are failed by the function."},
		{"a function that fails or hangs", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Success: 80, FailedInside: 5, NoAnswer: 15}
		}, Degraded, "20.0 % of the deliveries from jobs in the last 5 minutes (20 of 100) are failed by the function (5) or without a response (15)."},
		{"an app and a function that fail", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Server: 20, FailedInside: 30}
		}, Severe, "100.0 % of the deliveries from jobs in the last 5 minutes (50 of 50) are failing with HTTP 5xx (20) or failed by the function (30)."},
		{"9.9 % of 4xx", func(in *inputs) { requests(in, 901, 99, 0) }, Ok, ""},
		{"10 % of 4xx", func(in *inputs) {
			requests(in, 90, 10, 0)
		}, Warning, "10.0 % of the deliveries from jobs in the last 5 minutes (10 of 100) are erroring with HTTP 4xx"},
		{"30 % of 4xx", func(in *inputs) { requests(in, 70, 30, 0) }, Degraded, ""},
		{"60 % of 4xx", func(in *inputs) { requests(in, 40, 60, 0) }, Severe, ""},
		{"60 % of 4xx, ignored", func(in *inputs) { requests(in, 40, 60, 0); in.IgnoreClientErrors = true }, Ok, ""},
		{"redirects, 4xx ignored", func(in *inputs) {
			in.Queues[0].Deliveries, in.IgnoreClientErrors = counts{Success: 30, Client: 10, Other: 60}, true
		}, Severe, "60.0 % of the deliveries from jobs in the last 5 minutes (60 of 100) are redirected."},
		{"redirects", func(in *inputs) { in.Queues[0].Deliveries = counts{Success: 40, Other: 60} }, Severe, "or a redirect"},
		{"too few", func(in *inputs) {
			requests(in, 0, 9, 0)
		}, Warning, "100.0 % of the deliveries from jobs in the last 5 minutes (9 of 9) are erroring with HTTP 4xx or a redirect. There were too few for a higher severity."},
		{"just enough", func(in *inputs) { requests(in, 0, 10, 0) }, Severe, "(10 of 10)"},
		{"the fewest failures that are a Warning", func(in *inputs) { requests(in, 0, 3, 0) }, Warning, "(3 of 3)"},
		{"far too few", func(in *inputs) { requests(in, 0, 2, 0) }, Info, "(2 of 2)"},
		{"too few, and some went well", func(in *inputs) {
			requests(in, 5, 4, 0)
		}, Info, "44.4 % of the deliveries from jobs in the last 5 minutes (4 of 9)"},
		{"unreached", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Success: 40, Unreached: 60}
		}, Severe, "60.0 % of the deliveries from jobs in the last 5 minutes (60 of 100) did not reach the app."},
		{"some unreached", func(in *inputs) { in.Queues[0].Deliveries = counts{Success: 95, Unreached: 5} }, Warning, ""},
		{"more unreached", func(in *inputs) { in.Queues[0].Deliveries = counts{Success: 75, Unreached: 25} }, Degraded, ""},
		{"9 % unsent", func(in *inputs) { in.Queues[0].Deliveries = counts{Success: 91, Unsent: 9} }, Ok, ""},
		{"unsent", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Unsent: 100}
		}, Warning, "100.0 % of the deliveries from jobs in the last 5 minutes (100 of 100) failed before a request was sent"},
		{"near the limit", func(in *inputs) {
			in.Queues[0].DeliveryLimit, in.Queues[0].P95 = 180*s, 144*s
		}, Warning, "takes 144 s or longer; the limit is 180 s."},
		{"near the limit, just enough", func(in *inputs) {
			in.Queues[0].Deliveries, in.Queues[0].DeliveryLimit, in.Queues[0].P95 = counts{Success: 10}, 180*s, 144*s
		}, Warning, "takes 144 s"},
		{"near the limit, too few", func(in *inputs) {
			in.Queues[0].Deliveries, in.Queues[0].DeliveryLimit, in.Queues[0].P95 = counts{Success: 9}, 180*s, 144*s
		}, Ok, ""},
		{"below the limit", func(in *inputs) { in.Queues[0].DeliveryLimit, in.Queues[0].P95 = 180*s, 143*s }, Ok, ""},
		{"no limit", func(in *inputs) { in.Queues[0].P95 = h }, Ok, ""},

		{"a young message", func(in *inputs) { in.Queues[0].Oldest = min - 1 }, Ok, ""},
		{"an old message", func(in *inputs) {
			in.Queues[0].Oldest = 5 * min
		}, Warning, "The oldest message in jobs has waited for 5 minutes."},
		{"an old message that waits alone", func(in *inputs) {
			in.Queues[0].Backlog, in.Queues[0].Oldest = 1, 5*min
		}, Warning, "The oldest message in jobs has waited for 5 minutes."},
		{"an older message", func(in *inputs) { in.Queues[0].Oldest = 30 * min }, Degraded, "30 minutes"},
		{"near the end of retention", func(in *inputs) {
			in.Queues[0].Oldest, in.Queues[0].Retention = 77*h, 96*h
		}, Severe, "has waited for 3 days; it is deleted after 4 days."},
		{"at four fifths of retention", func(in *inputs) {
			in.Queues[0].Oldest, in.Queues[0].Retention = 80*min, 100*min
		}, Severe, "is deleted after 100 minutes"},
		{"below four fifths of retention", func(in *inputs) {
			in.Queues[0].Oldest, in.Queues[0].Retention = 80*min-1, 100*min
		}, Degraded, ""},
		{"an age not known", func(in *inputs) { in.Queues[0].Known, in.Queues[0].Oldest = false, h }, Ok, ""},
		{"a backlog without old messages", func(in *inputs) { in.Queues[0].Backlog = 20 }, Ok, ""},
		{"a backlog of a minute", func(in *inputs) {
			q := &in.Queues[0]
			q.Backlog, q.Oldest, q.Taken, q.Why = 20, min, before(25*s), "no free slot: mail holds 20 of 20"
		}, Info, "The oldest of 20 messages in jobs has waited for 60 seconds (25 seconds ago). No free slot: mail holds 20 of 20."},
		{"dead letters", func(in *inputs) {
			in.Queues[0].DeadLetters, in.Queues[0].Taken = 5, before(15*s)
		}, Info, "About 5 messages in jobs-dead (15 seconds ago)."},
		{"new dead letters", func(in *inputs) {
			in.Queues[0].DeadLetters, in.Queues[0].NewDeadLetters = 5, 2
		}, Warning, "5 messages in jobs-dead, 2 of them in the last 5 minutes."},
		{"expired messages", func(in *inputs) {
			in.Queues[0].Known, in.Queues[0].Expired = false, 1
		}, Warning, "1 message of jobs deleted in the last 5 minutes at the end of the retention period."},
		{"a failed store", func(in *inputs) {
			in.Store = "input/output error"
		}, Severe, "The embedded queues do not accept messages. Input/output error."},

		{"a short silence of the queue", func(in *inputs) { in.Queues[0].Poll.problem.Since = before(29 * s) }, Ok, ""},
		{"a silence of the queue", func(in *inputs) {
			in.Queues[0].Poll.problem.Since, in.Queues[0].Poll.problem.Reason = before(30*s), "no route to host"
		}, Warning, "Queue jobs does not respond. No route to host."},
		{"a longer silence", func(in *inputs) { in.Queues[0].Poll.problem.Since = before(2 * min) }, Degraded, ""},
		{"a long silence", func(in *inputs) { in.Queues[0].Poll.problem.Since = before(5 * min) }, Severe, ""},
		{"a refusal", func(in *inputs) {
			in.Queues[0].Poll.problem.Since, in.Queues[0].Poll.Final, in.Queues[0].Poll.problem.Reason = before(s), true, "access denied"
		}, Severe, "Receiving from queue jobs is denied. Access denied."},

		{"no leader for a moment", func(in *inputs) { in.Leader.Tasks, in.NoLeader = 2, before(59*s) }, Ok, ""},
		{"no leader", func(in *inputs) {
			in.Leader, in.NoLeader = LeaderState{Tasks: 2, Error: "throttled"}, before(min)
		}, Warning, "No leader for 2 periodic tasks. Throttled."},
		{"no leader for long", func(in *inputs) {
			in.Leader.Tasks, in.NoLeader = 1, before(10*min)
		}, Degraded, "1 periodic task."},
		{"no leader and no tasks", func(in *inputs) { in.NoLeader = before(h) }, Ok, ""},

		{"94 % of CPU", func(in *inputs) { in.Host.CPU = known(94) }, Ok, ""},
		{"95 % of CPU", func(in *inputs) { in.Host.CPU = known(95) }, Info, "95 % of CPU is in use."},
		{"CPU and load", func(in *inputs) {
			in.Host.CPU, in.Host.Load = known(100), known(12)
		}, Warning, "100 % of CPU is in use, with a load of 12.0 on 4 processors."},
		{"load alone", func(in *inputs) { in.Host.Load = known(100) }, Ok, ""},
		{"no machine", func(in *inputs) { in.Host = Reading{} }, Ok, ""},
		{"90 % of memory", func(in *inputs) {
			in.Host.Memory, in.Host.MemoryFree = 1000, known(100)
		}, Warning, "90 % of memory is in use."},
		{"97 % of memory", func(in *inputs) { in.Host.Memory, in.Host.MemoryFree = 1000, known(30) }, Degraded, ""},
		{"90 % of the disk", func(in *inputs) {
			in.Host.DiskFree = known(10 << 30)
		}, Warning, "90 % of the disk of /data/jobs is in use, 10240 MiB are free."},
		{"95 % of the disk", func(in *inputs) { in.Host.DiskFree = known(5 << 30) }, Degraded, ""},
		{"99 % of the disk", func(in *inputs) { in.Host.Disk, in.Host.DiskFree = 10<<30, known(100<<20) }, Severe, ""},
		{"99 % of a large disk", func(in *inputs) { in.Host.Disk, in.Host.DiskFree = 1<<40, known(8<<30) }, Degraded, ""},
		{"99 % of a huge disk", func(in *inputs) { in.Host.Disk, in.Host.DiskFree = 1<<50, known(100<<30) }, Ok, ""},
		{"a huge disk with just enough", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 1000<<30, known(20<<30)
		}, Ok, ""},
		{"a large disk with just enough", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 200<<30, known(1<<30)
		}, Degraded, ""},
		{"a small disk with just enough", func(in *inputs) {
			in.Host.Disk, in.Host.DiskFree = 128<<20, known(64<<20)
		}, Ok, ""},
		{"a file system without a size", func(in *inputs) { in.Host.Disk, in.Host.DiskFree = 0, known(0) }, Ok, ""},
		{"no room on a small disk", func(in *inputs) { in.Host.Disk, in.Host.DiskFree = 256<<20, known(60<<20) }, Severe, ""},

		{"draining", func(in *inputs) {
			in.Draining, in.Queues[0].InWork = true, 3
		}, Info, "Draining: receiving has stopped, 3 deliveries are in flight."},
		{"paused", func(in *inputs) {
			in.Queues[0].Paused, in.Queues[0].PauseReason, in.Queues[0].PausedBy = true, "incident 12", "owner"
		}, Info, "Queue jobs is paused by owner. Incident 12."},
		{"an app elsewhere", func(in *inputs) {
			in.App.Ready, in.App.Since, in.App.Queues = false, before(20*s), []string{"jobs", "mail"}
		}, Severe, "The app of jobs, mail is not ready and receives no messages."},
		{"the last failure", func(in *inputs) {
			requests(in, 0, 0, 12)
			in.Queues[0].LastFailed[Server] = Failure{"42", "HTTP 500: card declined:", 1}
		}, Severe, "are failing with HTTP 5xx. The last reason: HTTP 500: card declined. (tendril"},
		{"a later failure of another class", func(in *inputs) {
			requests(in, 0, 12, 0)
			in.Queues[0].LastFailed[Client] = Failure{"41", "HTTP 422", 1}
			in.Queues[0].LastFailed[NoAnswer] = Failure{"42", "the app exited", 2}
		}, Severe, "are erroring with HTTP 4xx or a redirect. The last reason: HTTP 422. (tendril logs --match 41)"},
		{"the later of two failures", func(in *inputs) {
			in.Queues[0].Deliveries = counts{Server: 6, NoAnswer: 6}
			in.Queues[0].LastFailed[Server] = Failure{"42", "HTTP 500", 4}
			in.Queues[0].LastFailed[NoAnswer] = Failure{"41", "no response within 20s", 3}
		}, Severe, "The last reason: HTTP 500. (tendril logs --match 42)"},
	} {
		in := well()
		c.change(&in)
		r := reportOf(causesOf(judge(in)))
		if r.Status != c.want || r.Color != c.want.Color() {
			t.Errorf("%s: %v (%s), want %s", c.name, r, r.Color, c.want)
		}
		switch found := slices.ContainsFunc(r.Details, func(one Cause) bool {
			return strings.Contains(one.Text+" ("+one.Remedy+")", c.cause)
		}); {
		case c.want != Ok && len(r.Causes) == 0:
			t.Errorf("%s: %s without a cause", c.name, c.want)
		case c.cause == "" && c.want == Ok && len(r.Causes) > 0:
			t.Errorf("%s: causes %q", c.name, r.Causes)
		case c.cause != "" && !found:
			t.Errorf("%s: causes %q, want %q", c.name, r.Causes, c.cause)
		}
		for _, cause := range r.Details {
			if cause.Remedy == "" || cause.Kind == "" {
				t.Errorf("%s: %+v has no remedy or kind", c.name, cause)
			}
		}
		for _, s := range r.Causes {
			if !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") || strings.Contains(s, "  ") {
				t.Errorf("%s: %q is not a sentence", c.name, s)
			}
		}
	}
}

func TestCausesThatQueuesShareAreReportedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(jobs, mail *queueInputs)
		want   []string
	}{
		{"all queues are paused", func(jobs, mail *queueInputs) {
			jobs.Paused = true
			jobs.PausedBy = "ann"
			mail.Paused = true
		}, []string{"All queues are paused by ann."}},
		{"one queue is paused", func(_, mail *queueInputs) { mail.Paused = true }, []string{"Queue mail is paused."}},
		{"the same dead letters", func(jobs, mail *queueInputs) {
			jobs.DeadLetters = 2
			mail.DeadLetters = 2
			mail.DeadLetterQueue = "jobs-dead"
		}, []string{"2 messages in jobs-dead."}},
		{"different dead letters", func(jobs, mail *queueInputs) {
			jobs.DeadLetters = 2
			mail.DeadLetters = 3
			mail.DeadLetterQueue = "mail-dead"
		}, []string{"2 messages in jobs-dead.", "3 messages in mail-dead."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := well()
			in.Queues = append(in.Queues, queueInputs{QueueState: QueueState{Name: "mail", Known: true}})
			c.change(&in.Queues[0], &in.Queues[1])
			if got := reportOf(causesOf(judge(in))).Causes; !slices.Equal(got, c.want) {
				t.Errorf("causes %q, want %q", got, c.want)
			}
		})
	}
}

func TestReportFromAnOlderVersionHasNoDetails(t *testing.T) {
	t.Parallel()
	r := Report{Status: Degraded, Causes: []string{"A.", "B."}}
	want := []Cause{{Status: Degraded, Text: "A."}, {Status: Degraded, Text: "B."}}
	if got := r.Each(); !cmp.Equal(got, want) {
		t.Errorf("the causes are %+v", got)
	}
}

func TestOnlyCausesAsBadAsTheReportExplainIt(t *testing.T) {
	t.Parallel()
	severe, warning := Cause{Status: Severe, Text: "A."}, Cause{Status: Warning, Text: "B."}
	r := reportOf([]Cause{warning, severe})
	if got := r.Explaining(); !cmp.Equal(got, []Cause{severe}) {
		t.Errorf("the causes are %+v", got)
	}
}

func TestLogAttributesOmitWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		causes []Cause
		want   []any
	}{
		{"no cause", nil, nil},
		{"no remedy", []Cause{{Status: Info, Text: "A."}}, []any{"reason", "A."}},
		{"one remedy for two causes", []Cause{{Status: Info, Text: "A.", Remedy: "x"}, {Status: Info, Text: "B.", Remedy: "x"}},
			[]any{"reason", "A. B.", "hint", "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := reportOf(c.causes)
			if got := r.LogAttrs(); !slices.Equal(got, c.want) {
				t.Errorf("the attributes are %q, want %q", got, c.want)
			}
		})
	}
}

func TestWorstCauseComesFirst(t *testing.T) {
	t.Parallel()
	in := well()
	in.Queues[0].Paused = true
	in.Host.CPU, in.Host.MemoryFree = known(99), known(2<<28)
	in.Queues[0].Deliveries = counts{Success: 40, Server: 60}
	r := reportOf(causesOf(judge(in)))
	want := []string{"60.0 % of the deliveries from jobs in the last 5 minutes (60 of 100) are failing with HTTP 5xx.",
		"94 % of memory is in use.", "Queue jobs is paused.",
		"99 % of CPU is in use."}
	if diff := cmp.Diff(want, r.Causes); diff != "" || r.Status != Severe {
		t.Errorf("%s %s", r.Status, diff)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s     Status
		color Color
		exit  int
	}{
		{Ok, Green, 0}, {Info, Green, 0}, {Warning, Yellow, 1}, {Degraded, Red, 2}, {Severe, Red, 2},
		{NoData, Grey, 3}, {Pending, Grey, 3}, {"", Grey, 3},
	} {
		if c.s.Color() != c.color || c.s.ExitCode() != c.exit {
			t.Errorf("%q: %s %d", c.s, c.s.Color(), c.s.ExitCode())
		}
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	long := noon.Add(-time.Hour)
	for _, c := range []struct {
		name           string
		change         func(*inputs)
		ready, startup bool
		says           string
	}{
		{"all is well", func(*inputs) {}, true, true, ""},
		{"the app starts", func(in *inputs) { in.App = appInputs{} }, false, false, "the app is not ready"},
		{"the app is down", func(in *inputs) { in.App.Ready, in.App.Reason = false, "it exited" }, false, true, "it exited"},
		// Failing would make all instances unready at once.
		{"the queue has not answered since startup", func(in *inputs) {
			in.Queues[0].Poll.problem.Since = long
		}, true, true, "jobs has not responded for 60 minutes"},
		{"the queue is gone", func(in *inputs) {
			in.Queues[0].Poll.problem.Since, in.Queues[0].Poll.Final = long, true
		}, true, true, "it is shared"},
		{"the queue has not responded for a moment", func(in *inputs) {
			in.Queues[0].Poll.problem.Since = noon.Add(-59 * time.Second)
		}, true, true, ""},
		{"the queue has not responded for a minute", func(in *inputs) {
			in.Queues[0].Poll.problem.Since = noon.Add(-time.Minute)
		}, true, true, "jobs has not responded for 60 seconds"},
		{"its own store is broken", func(in *inputs) { in.Store = "no space left" }, false, true, "no space left"},
		{"draining", func(in *inputs) { in.Draining = true }, false, true, "draining"},
		{"paused", func(in *inputs) { in.Queues[0].Paused = true }, true, true, ""},
		{"failures", func(in *inputs) { in.Queues[0].Deliveries = counts{Server: 1000} }, true, true, ""},
	} {
		in := well()
		c.change(&in)
		checks, started := readyChecks(in), startupChecks(in)
		passes := func(all []Check) bool { return !slices.ContainsFunc(all, func(c Check) bool { return !c.OK }) }
		if passes(checks) != c.ready || passes(started) != c.startup {
			t.Errorf("%s: ready %+v, started %+v", c.name, checks, started)
		}
		var said []string
		for _, check := range checks {
			if !check.OK && check.Detail == "" {
				t.Errorf("%s: %+v", c.name, check)
			}
			if check.Detail != "" {
				said = append(said, check.Detail)
			}
		}
		if all := strings.Join(said, "; "); (c.says == "") != (all == "") || !strings.Contains(all, c.says) {
			t.Errorf("%s: it says %q, not %q", c.name, all, c.says)
		}
	}
	for beat, want := range map[time.Time]bool{{}: true, noon.Add(-59 * time.Second): true,
		noon.Add(-time.Minute): false} {
		if got := liveChecks(beat, noon)[0]; got.OK != want || (got.Detail == "") != want {
			t.Errorf("beat %v: %+v", beat, got)
		}
	}
}

func TestDurationsAreFormattedInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 seconds", time.Second: "1 second", 119 * time.Second: "119 seconds", 2 * time.Minute: "2 minutes",
		119 * time.Minute: "119 minutes", 2 * time.Hour: "2 hours", 47 * time.Hour: "47 hours", 48 * time.Hour: "2 days",
	} {
		if got := ago(d); got != want {
			t.Errorf("%v is %q", d, got)
		}
	}
}

func TestReasonsStartWithACapitalLetter(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"deploying": " Deploying.", "über Nacht": " Über Nacht.", "": ""} {
		in := well()
		if got := in.because(reason); got != want {
			t.Errorf("%q becomes %q, want %q", reason, got, want)
		}
	}
}

func TestReasonOfAProcessThatWasGivenUpAppearsOnce(t *testing.T) {
	t.Parallel()
	in := well()
	in.App.Ready, in.App.Since, in.App.Reason = false, noon.Add(-20*time.Second), "web failed 3 times"
	in.App.Processes = []Process{{Name: "web", GivenUp: true, LastExit: "exit status 7"}}
	want := []string{
		"The app is not ready and receives no messages.",
		"Process web failed too often and is not restarted. Its last run ended with exit status 7.",
	}
	if got := reportOf(causesOf(judge(in))).Causes; !slices.Equal(got, want) {
		t.Errorf("causes %q, want %q", got, want)
	}
}

func TestStatusesHaveTheNumbersOfElasticBeanstalk(t *testing.T) {
	t.Parallel()
	for status, want := range map[Status]int{
		Ok: 0, Info: 1, Pending: 5, "": 5, NoData: 10, Warning: 15, Degraded: 20, Severe: 25,
	} {
		if got := status.Code(); got != want {
			t.Errorf("%q has the number %d, want %d", status, got, want)
		}
	}
}
