package environment

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/aws"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/cron/tasks"
	"tendril/internal/delivery/deliver"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
	"tendril/queue"
)

const (
	targetTimeout = 3 * time.Second
	cloudTimeout  = 15 * time.Second
)

// Examine finds problems with the environment that these options would create. ctx bounds queries.
func (o *Options) Examine(ctx context.Context) doctor.Examination {
	x := &examiner{opts: o, settings: &o.Config.Settings}
	for i := range o.Config.Queues {
		if set := &o.Config.Queues[i]; !o.QueuesOnly {
			planned := o.plannedQueue(set)
			x.addQueue(set, &planned)
		}
	}
	x.addMissingPrograms()
	if o.HasApp() && len(x.facts.Apps) == 0 {
		x.facts.Apps = []doctor.App{{Own: true, Target: o.describedProcesses()[0].Command}}
	}
	x.addPorts()
	return x.examine(ctx)
}

func examineRunning(ctx context.Context, e *Environment) doctor.Examination {
	opts := *e.opts
	x := &examiner{opts: &opts, settings: e.settings.now(), facts: doctor.Facts{Running: true}}
	for _, p := range e.openPorts() {
		if p.Use != "app" {
			x.probePort(ctx, p.Use, p.At)
		}
	}
	x.endpoint = strings.TrimPrefix(e.queues.endpoint, "http://")

	x.addHealth(e)
	if !e.life.running() {
		x.report(doctor.Problem{ID: "state", What: errStarting.Error(),
			Why: "its queues and targets are not known yet", Remedy: "tendril status"})
		return x.examine(ctx)
	}

	opts.Bundle = e.changes.currentBundle()
	x.addMissingPrograms()
	x.addRunningQueues(ctx, e)
	x.addProcesses(ctx, e.Status().App)
	return x.examine(ctx)
}

func (e *examiner) addMissingPrograms() {
	for _, p := range e.opts.MissingPrograms() {
		e.facts.Apps = append(e.facts.Apps, doctor.App{Own: true, Problem: p.Text, Remedy: p.Hint})
	}
}

func (e *examiner) report(p doctor.Problem) { e.facts.Problems = append(e.facts.Problems, p) }

func (e *examiner) addHealth(of *Environment) {
	if of.opts.QueuesOnly {
		of.observe.problems.refresh()
		for _, p := range of.observe.problems.list() {
			e.report(doctor.Problem{ID: "messages", What: p.Text,
				Why: "stored messages may not be processed", Remedy: p.Remedy})
		}
		return
	}

	report := of.observe.monitor.Report()
	e.facts.HealthStatus = string(report.Status)
	for _, c := range report.Each() {
		e.facts.Health = append(e.facts.Health, doctor.Finding{Level: levelOf(c.Status), What: c.Text,
			Why: c.Head(time.Now()), Remedy: c.Remedy})
	}
}

func (e *examiner) addRunningQueues(ctx context.Context, of *Environment) {
	for _, l := range of.work.all {
		described := api.DescribedQueue{Name: l.queue.name, URL: l.queue.url}
		if l.queue.embedded {
			described, _ = of.queues.describeQueue(ctx, l)
		}
		e.addQueue(l.queue.settings(), &described)
	}
}

func (e *examiner) addProcesses(ctx context.Context, processes []api.Process) {
	for _, p := range processes {
		if p.Port != 0 {
			e.probePort(ctx, "app", net.JoinHostPort("localhost", strconv.Itoa(p.Port)))
		}
		app := doctor.App{Own: true, Target: p.Name}
		if !p.Ready {
			app.Problem, app.Remedy = cmp.Or(p.NotReady, p.LastExit, p.State), "tendril logs "+p.Name
		}
		e.facts.Apps = append(e.facts.Apps, app)
	}
}

func levelOf(s health.Status) doctor.Level {
	switch s {
	case health.Severe, health.Degraded:
		return doctor.Error
	case health.Warning, health.NoData:
		return doctor.Warning
	}
	return doctor.OK
}

func (e *examiner) probePort(ctx context.Context, use, address string) {
	ctx, cancel := context.WithTimeout(ctx, targetTimeout)
	defer cancel()
	p := doctor.Port{Name: portName(use), Use: use, At: address}
	if err := doctor.ProbeAddress(ctx, strings.TrimPrefix(address, "https://")); err != nil {
		p.Refused = err.Error()
	}
	e.facts.Ports = append(e.facts.Ports, p)
}

type examiner struct {
	opts     *Options
	settings *config.Settings
	endpoint string
	facts    doctor.Facts
}

func (e *examiner) examine(ctx context.Context) doctor.Examination {
	f := &e.facts
	for _, w := range e.opts.Config.SecretWarnings() {
		f.Secrets = append(f.Secrets, doctor.Problem{ID: "secrets", What: w.String(),
			Why: "others can read the secret and use it", Remedy: w.Hint})
	}
	e.inspectCloud(ctx)
	e.inspectTargets(ctx)
	f.Disk = doctor.InspectDisk(e.settings.DataDir)
	f.Disk.Embedded = e.settings.AnyEmbedded() || e.opts.QueuesOnly
	f.OpenFiles = doctor.OpenFiles{Limit: openFiles(), Needed: ownDescriptors + deliveryDescriptors(e.settings)}
	f.Certificates = e.opts.certificates(e.settings)
	if address, _ := e.settings.ListenOn(); f.Disk.Embedded && address != "" && e.settings.Credentials == "" {
		f.OpenEndpoint = cmp.Or(e.endpoint, address)
		f.OtherUsers = doctor.FindUsers("/etc/passwd", os.Getuid())
	}
	f.Zones = doctor.FindZones()
	f.Zones.App = e.opts.HasApp()
	return doctor.Examination{Environment: e.settings.Name, Running: f.Running, Findings: doctor.Examine(f)}
}

func (o *Options) certificates(s *config.Settings) (all []doctor.Certificate) {
	seen := map[[3]string]bool{}
	add := func(option, file, key string) {
		files := [3]string{option, file, key}
		if file == "" || seen[files] {
			return
		}
		seen[files] = true
		if c, known := doctor.InspectCertificate(option, file, key); known {
			all = append(all, c)
		}
	}

	if s.AnyEmbedded() || o.QueuesOnly {
		add("tls-cert", s.TLSCert, s.TLSKey)
	}
	if s.Console != config.Off {
		add("console-tls-cert", s.ConsoleTLSCert, s.ConsoleTLSKey)
	}
	for i := range s.Queues {
		if set := &s.Queues[i]; strings.HasPrefix(set.Target, "https:") && !o.QueuesOnly {
			add("target-cert", set.TargetCert, set.TargetKey)
			add("target-ca", set.TargetCA, "")
		}
	}
	return all
}

func (e *examiner) addQueue(set *config.QueueSettings, described *api.DescribedQueue) {
	s := e.settings
	q := doctor.Queue{Name: described.Name, URL: cmp.Or(described.URL, set.URL), OnSQS: set.Backend == config.BackendSQS,
		SeveralQueues: len(s.Queues) > 1, Managed: set.Managed, Attributes: described.Attributes, Times: queueTimes(s, set)}
	if !q.OnSQS { // otherwise addActualQueue completes it
		q.Missing = described.Attributes == nil
		if dead := described.DeadLetterQueue; dead != nil {
			q.Dead = &doctor.DeadLetterQueue{Name: dead.Name, URL: dead.URL, Attributes: dead.Attributes,
				Missing: dead.Attributes == nil}
		}
	}
	e.facts.Queues = append(e.facts.Queues, q)
}

func queueTimes(s *config.Settings, set *config.QueueSettings) doctor.Times {
	t := doctor.Times{Visibility: set.VisibilityTimeout, Retention: set.RetentionPeriod, MaxRetries: s.MaxRetries,
		TerminalCodes: set.TerminalCodes,
		Attempt:       set.InactivityTimeout + s.ConnectTimeout, AttemptText: "connect-timeout and inactivity-timeout"}
	switch {
	case set.ToFunction():
		t.Attempt, t.AttemptText = s.FunctionTimeout, "function-timeout"
	case set.Deadline > 0:
		t.Attempt, t.AttemptText = set.Deadline, "deadline"
	}
	backoff := worker.Backoff{Min: s.BackoffMin, Max: s.BackoffMax, Doublings: s.BackoffDoublings}

	t.Pause = func(attempt int) time.Duration {
		switch {
		case s.BackoffMin > 0:
			return backoff.Longest(attempt)
		case set.ErrorVisibilityTimeout != nil:
			return *set.ErrorVisibilityTimeout
		}
		return set.VisibilityTimeout
	}
	return t
}

// addPorts does nothing while an environment with this data directory holds the addresses.
func (e *examiner) addPorts() {
	if _, err := api.ReadInstance(e.settings.DataDir); err == nil {
		return
	}
	state := config.StateFolder(e.opts.AppEnv, os.Geteuid() == 0)
	free := e.opts.choosePorts(state)
	running := api.Running(api.DataDirectories(state))
	for _, planned := range e.opts.plannedPorts() {
		p := doctor.Port{Name: portName(planned.use), Option: planned.option, Use: planned.use, At: planned.address,
			Set: e.opts.Config.IsSet(planned.option), Free: free[planned.option]}
		if !isFree(planned.host, planned.port) {
			_, next := nextFree(planned.host, planned.port, nil)
			p.Holder, p.Free = holderOf(planned.port, running), cmp.Or(p.Free, next)
		}
		e.facts.Ports = append(e.facts.Ports, p)
	}
}

func portName(use string) string {
	word, _, _ := strings.Cut(use, ",")
	return word
}

func holderOf(port int, running []api.Found) string {
	suffix := ":" + strconv.Itoa(port)
	for i := range running {
		found := &running[i]
		if found.AppPort == port || strings.HasSuffix(found.Console, suffix) || strings.HasSuffix(found.Endpoint, suffix) {
			return "environment " + strconv.Quote(found.Name)
		}
	}

	if taken, ok := errors.AsType[*supervisor.PortError](supervisor.CheckPort("", port)); ok && taken.Holder != "" {
		return taken.Holder
	}
	return "another program"
}

func (e *examiner) inspectTargets(ctx context.Context) {
	seen := map[string]bool{}
	for i := range e.settings.Queues {
		set := &e.settings.Queues[i]
		if set.Target == "" || seen[set.Target] || e.opts.QueuesOnly {
			continue
		}
		seen[set.Target] = true
		e.inspectTarget(ctx, set)
	}
}

func (e *examiner) inspectTarget(ctx context.Context, set *config.QueueSettings) {
	ctx, cancel := context.WithTimeout(ctx, targetTimeout)
	defer cancel()
	app := doctor.App{Target: withoutSecret(set.Target)}
	answer, err := doctor.InspectServer(ctx, set.Target, &http.Transport{TLSClientConfig: e.targetTLS(set)})
	if err != nil {
		app.Problem = err.Error()
	}
	e.facts.Apps = append(e.facts.Apps, app)

	local := isLocal(set.Target)
	if answer.Dated && !local {
		e.facts.Clocks = append(e.facts.Clocks, doctor.Clock{Server: app.Target, Ahead: answer.Ahead})
	}
	if p, found := doctor.FindProxy(app.Target, answer.Server, e.proxyFiles(local)...); found {
		p.Attempt = cmp.Or(set.Deadline, set.InactivityTimeout)
		e.facts.Proxies = append(e.facts.Proxies, p)
	}
}

func (e *examiner) targetTLS(set *config.QueueSettings) *tls.Config {
	client, err := deliver.NewClient(&deliver.Options{Target: set.Target, Version: e.opts.Version, TLS: targetFiles(set)})
	if err != nil {
		return nil
	}
	defer client.Close()
	return client.TLSConfig()
}

func (e *examiner) proxyFiles(local bool) (patterns []string) {
	if e.opts.Bundle != nil {
		dir := filepath.Join(e.opts.Bundle.Dir, ".platform", "nginx")
		patterns = append(patterns, filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "conf.d", "*.conf"),
			filepath.Join(dir, "conf.d", "*", "*.conf"))
	}
	if local {
		patterns = append(patterns, "/etc/nginx/nginx.conf", "/etc/nginx/conf.d/*.conf", "/etc/nginx/conf.d/*/*.conf",
			"/etc/nginx/sites-enabled/*")
	}
	return patterns
}

func isLocal(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "unix" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

func (e *examiner) inspectCloud(ctx context.Context) {
	usesAWS := len(cloud.PolicyFor(e.opts.Config, &cloud.Use{}).Statement) > 0
	if e.opts.QueuesOnly || !usesAWS {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	found, err := e.opts.listCloud(ctx)
	if err != nil {
		e.report(doctor.Problem{ID: "aws",
			What: "reading the resources on AWS failed: " + err.Error(), Why: "'tendril up' needs it",
			Remedy: "check the identity of these credentials: aws sts get-caller-identity"})
		return
	}

	for i := range e.facts.Queues {
		if q := &e.facts.Queues[i]; q.OnSQS {
			e.addActualQueue(q, found)
		}
	}

	if table := e.settings.RegistryTable; table != "" && !e.settings.RegistryCreate && resource(found, table, "") == nil {
		e.report(doctor.Problem{ID: "registry-table", What: "table " + table + " does not exist in DynamoDB",
			Why:    "without it, the instances cannot elect a leader, and no periodic task runs",
			Remedy: "tendril up --registry-create"})
	}

	e.inspectArchives(ctx)
	sqsEndpoint := e.inspectSQS(ctx)
	if err := e.checkPermissions(ctx, sqsEndpoint); err != nil {
		e.facts.Unchecked = err.Error()
	}
}

func (e *examiner) inspectArchives(ctx context.Context) {
	bucket, _ := e.settings.VersionsBucket()
	if bucket == "" {
		return
	}
	s3, err := e.opts.openS3(ctx, e.settings)
	if err == nil {
		defer s3.Close()
		err = s3.CheckBucket(ctx, bucket)
	}
	if err != nil {
		e.report(doctor.Problem{ID: "versions", What: err.Error(),
			Why:    "versions deployed to all instances cannot be stored or fetched",
			Remedy: "create the bucket, or allow the actions that 'tendril generate iam' prints"})
	}
}

func resource(found []cloud.Resource, name, url string) *cloud.Resource {
	for i := range found {
		if r := &found[i]; r.Name == name || url != "" && r.URL == url {
			return r
		}
	}
	return nil
}

func (e *examiner) addActualQueue(q *doctor.Queue, found []cloud.Resource) {
	r := resource(found, q.Name, q.URL)
	q.Missing = r == nil
	if q.Missing {
		return
	}

	q.URL, q.Attributes = r.URL, r.Attributes
	if r.Attributes == nil {
		e.report(doctor.Problem{ID: "attributes", What: "queue " + q.Name + ": " + r.Note,
			Why: "they are not compared with the settings", Remedy: "allow these credentials sqs:GetQueueAttributes"})
	}

	dead, _ := queue.ParseRedrivePolicy(q.Attributes["RedrivePolicy"])
	if dead == "" {
		return
	}

	q.Dead = &doctor.DeadLetterQueue{Name: dead, Missing: true}
	if r = resource(found, dead, ""); r != nil {
		*q.Dead = doctor.DeadLetterQueue{Name: dead, URL: r.URL, Attributes: r.Attributes}
	}
}

// inspectSQS also returns the endpoint, or "".
func (e *examiner) inspectSQS(ctx context.Context) (endpoint string) {
	if !e.settings.AnyOnSQS() || strings.HasPrefix(e.settings.EndpointURL, "unix:") {
		return ""
	}

	opts := e.opts.aws()
	opts.Endpoint = e.settings.EndpointURL
	sqs, err := aws.OpenSQS(ctx, opts)
	if err != nil {
		return ""
	}
	defer sqs.Close()

	i := slices.IndexFunc(e.facts.Queues, func(q doctor.Queue) bool { return q.OnSQS })
	q := &e.facts.Queues[i]
	if endpoint, err = sqs.Endpoint(ctx, cmp.Or(q.URL, q.Name)); err != nil {
		return ""
	}

	if answer, err := doctor.InspectServer(ctx, endpoint, &http.Transport{Proxy: http.ProxyFromEnvironment}); err == nil &&
		answer.Dated {
		e.facts.Clocks = append(e.facts.Clocks,
			doctor.Clock{Server: "the queue server, " + endpoint, Ahead: answer.Ahead, Signed: true})
	}

	return endpoint
}

func (e *examiner) checkPermissions(ctx context.Context, sqsEndpoint string) error {
	iam, err := aws.OpenIAM(ctx, e.opts.aws())
	if err != nil {
		return err
	}
	defer iam.Close()
	isAWS := sqsEndpoint == "" || strings.Contains(sqsEndpoint, ".amazonaws.com")
	if !isAWS && !iam.Configured() {
		return nil
	}
	caller, err := iam.Caller(ctx)
	if err != nil {
		return err
	}

	names := resourceNames{account: caller.Account, region: cmp.Or(iam.Region(), e.settings.Region),
		dead: map[string]string{}}
	for _, q := range e.facts.Queues {
		if q.Dead != nil {
			names.dead[cloud.UnknownDeadLetterQueue+q.Name] = q.Dead.Name
		}
	}
	for _, statement := range cloud.PolicyFor(e.opts.Config, e.opts.cloudUse()).Statement {
		for _, pattern := range statement.Resource {
			if err := e.simulate(ctx, iam, caller, &statement, names.concrete(pattern)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *Options) cloudUse() *cloud.Use {
	use := &cloud.Use{}
	if o.CronFile() == "" {
		return use
	}
	if file, err := tasks.Read(o.CronFile()); err == nil {
		for _, t := range file.Tasks {
			use.TaskQueues = append(use.TaskQueues, t.Queue)
		}
	}
	return use
}

func (e *examiner) simulate(ctx context.Context, iam *aws.IAM, caller aws.Caller, s *cloud.Statement, on string) error {
	if strings.Contains(on, cloud.UnknownDeadLetterQueue) {
		return nil
	}
	denied, err := iam.Denied(ctx, caller, s.Action, on, s.Condition["StringEquals"])
	if err != nil {
		return err
	}
	for _, action := range s.Action {
		e.facts.Permissions = append(e.facts.Permissions, doctor.Permission{Action: action, Resource: on, Feature: s.Sid,
			Allowed: !slices.Contains(denied, action)})
	}
	return nil
}

type resourceNames struct {
	account, region string
	dead            map[string]string // by placeholder
}

// concrete replaces placeholders of dead-letter queues, and wildcards that the IAM policy simulator does not accept.
func (r *resourceNames) concrete(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return arn
	}
	if parts[3] == "*" {
		parts[3] = r.region
	}
	if parts[4] == "*" {
		parts[4] = r.account
	}
	parts[5] = cmp.Or(r.dead[parts[5]], parts[5])
	return strings.Join(parts, ":")
}
