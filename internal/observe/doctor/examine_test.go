package doctor

import (
	"strings"
	"testing"
	"time"
)

func fitting() Queue {
	return Queue{Name: "jobs", URL: "https://sqs.eu-west-1.amazonaws.com/1/jobs", OnSQS: true,
		Attributes: map[string]string{"MessageRetentionPeriod": "345600", "QueueArn": "arn:aws:sqs:eu-west-1:1:jobs",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead","maxReceiveCount":10}`},
		Dead: &DeadLetterQueue{Name: "dead", URL: "https://sqs.eu-west-1.amazonaws.com/1/dead",
			Attributes: map[string]string{"MessageRetentionPeriod": "1209600"}},
		Times: Times{Visibility: 300 * time.Second, Retention: 96 * time.Hour, Attempt: 185 * time.Second,
			AttemptText: "connect-timeout and inactivity-timeout", MaxRetries: 10,
			Pause: func(int) time.Duration { return 300 * time.Second }},
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	attribute := func(name, value string) func(*Queue) {
		return func(q *Queue) { q.Attributes[name] = value }
	}
	for name, c := range map[string]struct {
		change func(*Queue)
		want   string
		says   string
	}{
		"all fits": {func(*Queue) {}, "ok queue", "are consistent"},
		"short visibility": {func(q *Queue) { q.Times.Attempt = 900 * time.Second },
			"warning visibility-short", "--visibility-timeout=900s"},
		"short visibility of one of several": {func(q *Queue) { q.Times.Attempt, q.SeveralQueues = 900*time.Second, true },
			"warning visibility-short", "below the queue jobs: visibility_timeout: 900s"},
		"visibility that equals": {func(q *Queue) { q.Times.Attempt = q.Times.Visibility }, "ok queue", ""},
		"no visibility": {func(q *Queue) { q.Times.Visibility = 0 },
			"error visibility-short", "--visibility-timeout=185s"},
		"no dead-letter queue": {func(q *Queue) { q.Attributes["RedrivePolicy"], q.Dead = "", nil },
			"warning no-dead-letter-queue", `\"deadLetterTargetArn\": \"arn:aws:sqs:eu-west-1:1:jobs-dead\"`},
		"no dead-letter queue of a FIFO queue": {func(q *Queue) {
			q.Name, q.Attributes["QueueArn"] = "jobs.fifo", "arn:aws:sqs:eu-west-1:1:jobs.fifo"
			q.Attributes["RedrivePolicy"], q.Dead = "", nil
		}, "warning no-dead-letter-queue", "tendril queues create jobs-dead.fifo "},
		"no dead-letter queue for terminal codes": {func(q *Queue) {
			q.Attributes["RedrivePolicy"], q.Dead, q.Times.TerminalCodes = "", nil, "422"
		}, "warning no-dead-letter-queue", "so that terminal-codes 422 has no effect"},
		"no dead-letter queue here": {func(q *Queue) { q.OnSQS, q.Attributes["RedrivePolicy"] = false, "" },
			"warning no-dead-letter-queue", "restart"},
		"unknown attributes": {func(q *Queue) { q.Attributes, q.Dead = nil, nil }, "ok queue", ""},
		"one receive": {attribute("RedrivePolicy", `{"deadLetterTargetArn":"a:dead","maxReceiveCount":"1"}`),
			"warning one-receive", `\"deadLetterTargetArn\": \"arn:aws:sqs:eu-west-1:1:dead\", \"maxReceiveCount\": \"3\"`},
		"one receive here": {func(q *Queue) {
			q.OnSQS, q.Attributes["RedrivePolicy"] = false, `{"deadLetterTargetArn":"a:dead","maxReceiveCount":"1"}`
		}, "warning one-receive", "set max-retries to 3"},
		"broken policy": {attribute("RedrivePolicy", `{`), "error policy-unreadable", "set-queue-attributes"},
		"odd policy": {attribute("RedrivePolicy", `{"maxReceiveCount":"many"}`), "error policy-unreadable",
			"set-queue-attributes"},
		"missing dead-letter queue": {func(q *Queue) { *q.Dead = DeadLetterQueue{Name: "dead", Missing: true} },
			"error dead-letter-queue", "tendril queues create dead --backend sqs"},
		"missing dead-letter queue here": {func(q *Queue) {
			q.OnSQS, *q.Dead = false, DeadLetterQueue{Name: "dead", Missing: true}
		}, "error dead-letter-queue", "tendril queues create dead --no-dead-letter-queue"},
		"a queue that was deleted here": {func(q *Queue) { q.OnSQS, q.Missing, q.Attributes, q.Dead = false, true, nil, nil },
			"error queue-missing", "restart the environment"},
		"dead letters kept as long as messages": {func(q *Queue) { q.Dead.Attributes["MessageRetentionPeriod"] = "345600" },
			"warning dead-letter-retention",
			"--queue-url https://sqs.eu-west-1.amazonaws.com/1/dead --attributes MessageRetentionPeriod=1209600"},
		"dead letters of a FIFO queue begin a new age": {func(q *Queue) {
			q.Dead.Attributes["MessageRetentionPeriod"], q.Attributes["FifoQueue"] = "345600", "true"
		}, "ok fifo-order", "one at a time and in order"},
		"the queue keeps longer": {attribute("MessageRetentionPeriod", "604800"), "warning retention-shorter",
			"--retention-period=604800s"},
		"the queue keeps shorter": {attribute("MessageRetentionPeriod", "7200"), "warning retention-longer",
			"MessageRetentionPeriod=345600, or tendril up --retention-period=7200s"},
		"more attempts than time": {func(q *Queue) {
			q.Times.Pause = func(n int) time.Duration { return time.Duration(n) * 3 * time.Hour }
		}, "warning retention-short", "--retention-period=489600s"},
		"attempts that just fit": {func(q *Queue) {
			q.Times.Pause = func(int) time.Duration { return 96 * time.Hour / 9 }
		}, "ok queue", ""},
		"pauses that nothing fits": {func(q *Queue) { q.Times.Pause = func(int) time.Duration { return 40 * 24 * time.Hour } },
			"warning retention-short", "backoff-max"},
		"attempts by the settings, without a policy": {func(q *Queue) {
			q.Attributes, q.Dead, q.Times.MaxRetries = nil, nil, 1000
			q.Times.Pause = func(int) time.Duration { return 12 * time.Minute }
		}, "warning retention-short", "retention-period"},
		"a queue that up creates": {func(q *Queue) { q.Missing, q.Managed, q.Attributes, q.Dead = true, true, nil, nil },
			"ok queue", "creates it"},
		"a queue that nobody creates": {func(q *Queue) { q.Missing = true }, "error queue-missing",
			"tendril queues create jobs --backend sqs"},
		"content without deduplication": {func(q *Queue) {
			q.Attributes["FifoQueue"], q.Attributes["ContentBasedDeduplication"] = "true", "false"
		}, "ok fifo-order, ok fifo-deduplication", ""},
		"delay": {attribute("DelaySeconds", "900"), "ok delayed-delivery", "15m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := fitting()
			c.change(&q)
			hold(t, Examine(&Facts{Queues: []Queue{q}}), c.want, c.says)
		})
	}
	q := fitting()
	q.Times.Visibility = time.Second
	hold(t, Examine(&Facts{Queues: []Queue{q}, Running: true}), "warning visibility-short",
		"tendril config set visibility-timeout=185s")
	hold(t, q.Examine(), "warning visibility-short", "visibility-timeout=185s")
}

func hold(t *testing.T, found []Finding, want, says string) {
	t.Helper()
	var got []string
	text := ""
	for _, f := range found {
		got = append(got, string(f.Level)+" "+f.ID)
		text += f.What + "\n" + f.Remedy + "\n"
		if (f.Level == OK) != (f.Why == "" && f.Remedy == "") {
			t.Errorf("%s %s has the reason %q and the remedy %q", f.Level, f.ID, f.Why, f.Remedy)
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if !strings.Contains(text, says) || strings.Contains(text, "%!") {
		t.Errorf("the text does not say %q:\n%s", says, text)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	disk := Disk{Path: "/data", Free: 50 << 30, Total: 100 << 30, Sync: time.Millisecond, Embedded: true}
	with := func(change func(*Disk)) Facts {
		d := disk
		change(&d)
		return Facts{Disk: d}
	}
	port := Port{Name: "queues", Option: "listen", Use: "queues", At: "127.0.0.1:9324", Holder: "nginx (pid 3)"}
	for name, c := range map[string]struct {
		facts      Facts
		want, says string
	}{
		"nothing is known": {Facts{}, "", ""},
		"no answer from AWS": {Facts{Problems: []Problem{{"aws", "no credentials", "up needs them", "aws login"}}},
			"error aws", "aws login"},
		"an app that answers": {Facts{Apps: []App{{Target: "http://a"}}}, "ok app", "http://a responds"},
		"an app of ours":      {Facts{Apps: []App{{Target: "./app", Own: true}}}, "ok app", "can be started: ./app"},
		"an app that runs": {Facts{Running: true, Apps: []App{{Target: "web", Own: true}}}, "ok app",
			"web of the app is ready"},
		"an app that is down":  {Facts{Apps: []App{{Target: "http://a", Problem: "refused"}}}, "error app", "--target URL"},
		"our app is not ready": {Facts{Apps: []App{{Own: true, Problem: "it exited"}}}, "error app", "tendril logs"},
		"allowed": {Facts{Permissions: []Permission{{"sqs:A", "r", "Receive", true}}}, "ok permissions",
			"all 1 checked actions"},
		"denied": {Facts{Permissions: []Permission{{"sqs:A", "r", "CountDeadLetters", false}, {"sqs:B", "r", "Receive", true},
			{"sqs:C", "r", "CountDeadLetters", false}}}, "error permissions", "the role does not allow sqs:A, sqs:C on r"},
		"not checked":     {Facts{Unchecked: "denied"}, "warning permissions", "iam:SimulatePrincipalPolicy"},
		"a right clock":   {Facts{Clocks: []Clock{{"s", -5 * time.Second, true}}}, "ok clock", "agrees with s"},
		"a clock behind":  {Facts{Clocks: []Clock{{"s", 6 * time.Second, true}}}, "warning clock", "6s behind s"},
		"a wrong clock":   {Facts{Clocks: []Clock{{"s", -5 * time.Minute, true}}}, "error clock", "300s ahead of s"},
		"of no signature": {Facts{Clocks: []Clock{{"s", time.Hour, false}}}, "warning clock", "set-ntp"},
		"a patient proxy": {Facts{Proxies: []Proxy{{"t", "nginx", "f:3", time.Minute, time.Minute}}}, "ok proxy-timeout",
			"set in f:3"},
		"an impatient proxy": {Facts{Proxies: []Proxy{{"t", "nginx", "", time.Minute, 180 * time.Second}}},
			"warning proxy-timeout", "proxy_read_timeout 185s;"},
		"a free port":  {Facts{Ports: []Port{{Name: "queues", Use: "queues", At: "a:1"}}}, "ok port-queues", "a:1 is free"},
		"our own port": {Facts{Running: true, Ports: []Port{port}}, "ok port-queues", "127.0.0.1:9324"},
		"a taken port that was set": {
			Facts{Ports: []Port{{Name: "queues", Option: "listen", At: "a:1", Holder: "x", Set: true}}},
			"error port-queues", "--listen=ADDRESS"},
		"a taken default port": {Facts{Ports: []Port{{Name: "app", Option: "port", At: ":5000", Holder: "x", Free: "5001"}}},
			"ok port-app", "would use 5001"},
		"taken ports only": {Facts{Ports: []Port{port}}, "error port-queues", "nginx (pid 3)"},
		"a disk":           {Facts{Disk: disk}, "ok disk, ok sync-time", "50.0 GiB of 100.0 GiB"},
		"a full disk":      {with(func(d *Disk) { d.Free = 1 << 20 }), "error disk, ok sync-time", "1 MiB of"},
		"a disk getting full": {with(func(d *Disk) { d.Free = 500 << 20 }), "warning disk, ok sync-time",
			"500 MiB of"},
		"a small disk with more than its reserve": {with(func(d *Disk) { d.Total, d.Free = 320<<20, 24<<20 }),
			"warning disk, ok sync-time", "24 MiB of"},
		"a small disk that is full": {with(func(d *Disk) { d.Total, d.Free = 320<<20, 19<<20 }), "error disk, ok sync-time",
			"19 MiB of 320 MiB"},
		"what to delete": {with(func(d *Disk) { d.Free = 1 << 20 }), "error disk, ok sync-time",
			"delete unneeded messages, or files on that disk, but none in the data directory (du -xh --max-depth=2 /)"},
		"what to delete without embedded queues": {with(func(d *Disk) { d.Free, d.Embedded = 1<<20, false }), "warning disk",
			"delete files on that disk, but none in the data directory (du -xh --max-depth=2 /)"},
		"a port on which nothing listens": {Facts{Running: true, Ports: []Port{{Name: "app", Use: "app", At: "localhost:5000",
			Refused: "connection refused"}}}, "error port-app", "tendril up --port N"},
		"a console that does not answer": {Facts{Running: true, Ports: []Port{{Name: "console", Use: "console", At: "a:1",
			Refused: "i/o timeout"}}}, "error port-console", "no response at a:1: i/o timeout"},
		"good health": {Facts{Running: true, HealthStatus: "Ok"}, "ok health", "is Ok"},
		"bad health": {Facts{Running: true, HealthStatus: "Severe", Health: []Finding{{Error, "", "42 % fail.", "Severe for 3 minutes", "tendril dead reasons"},
			{Warning, "", "old.", "Warning for 3 minutes", "tendril top"}, {OK, "", "1 message.", "", ""}}}, "error health, warning health, ok health", "tendril dead reasons"},
		"an endpoint for one user": {Facts{OpenEndpoint: "127.0.0.1:9324"}, "ok local-users", "no other user can log in"},
		"an endpoint for several users": {Facts{OpenEndpoint: "127.0.0.1:9324", OtherUsers: []string{"ann", "bob"}},
			"warning local-users", "--credentials FILE"},
		"a full disk without queues": {with(func(d *Disk) { d.Free, d.Embedded = 0, false }), "warning disk", "--data-dir"},
		"a slow disk": {with(func(d *Disk) { d.Sync = 21 * time.Millisecond }), "warning sync-time, ok disk",
			"takes 21ms"},
		"a disk over a network": {with(func(d *Disk) { d.Kind = "NFS" }), "warning file-system, ok disk, ok sync-time",
			"on NFS"},
		"a folder that cannot be written": {with(func(d *Disk) { d.Problem = "permission denied" }), "error data-directory",
			"permission denied"},
		"a valid certificate": {
			Facts{Certificates: []Certificate{{"tls-cert", "a.crt", time.Unix(0, 0), 14 * 24 * time.Hour}}},
			"ok certificate", "tls-cert: the certificate in a.crt expires on 1970-01-01 at 00:00 UTC"},
		"a certificate near its end": {
			Facts{Certificates: []Certificate{{"tls-cert", "a.crt", time.Unix(0, 0), 14*24*time.Hour - 1}}},
			"warning certificate", "a.crt expires on 1970-01-01 at 00:00 UTC"},
		"an expired certificate": {Facts{Certificates: []Certificate{{"tls-cert", "a.crt", time.Unix(0, 0), 0}}},
			"warning certificate", "a.crt expired on 1970-01-01 at 00:00 UTC"},
		"many open files": {Facts{OpenFiles: OpenFiles{1024, 106}}, "ok open-files", "1024"},
		"few open files":  {Facts{OpenFiles: OpenFiles{256, 200}}, "warning open-files", "ulimit -n 65536"},
		"zones":           {Facts{Zones: Zones{true, "/zones", true}}, "ok time-zones", "/zones"},
		"no zones":        {Facts{Zones: Zones{true, "", false}}, "ok time-zones", "its own"},
		"no zones for the app": {Facts{Zones: Zones{true, "", true}}, "warning time-zones",
			"apt-get install tzdata"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold(t, Examine(&c.facts), c.want, c.says)
		})
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	hold(t, []Finding{Versions("1.0.0", "1.0.0", "")}, "ok version", "1.0.0")
	hold(t, []Finding{Versions("1.1.0", "1.0.0", "")}, "warning version", "runs 1.0.0")
	hold(t, []Finding{Versions("1.0.0", "1.0.0", "/usr/bin/tendril (deleted)")}, "warning version", "(deleted)")
}

func TestWorstFindingComesFirst(t *testing.T) {
	t.Parallel()
	var e Examination
	e.Add(Finding{Level: OK, ID: "a"})
	e.Add(Finding{Level: Warning, ID: "b"}, Finding{Level: OK, ID: "c"}, Finding{Level: Error, ID: "d"})
	got := ""
	for _, f := range e.Findings {
		got += f.ID
	}
	if got != "dbac" {
		t.Errorf("ordered %s", got)
	}
}
