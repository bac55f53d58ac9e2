package environment

import (
	"context"
	"strings"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
	"tendril/internal/observe/telemetry"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
)

type observer struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	work     *pipelines
	programs *programs
	cron     *schedule
	scale    *sizing
	members  *members
	instance *instance

	telemetry *telemetry.Telemetry
	otlp      *telemetry.OTLP
	monitor   *health.Monitor
	curves    *curves
	problems  *problems
	history   *history
	shown     *console.Deliveries
}

func (o *observer) openTelemetry(ctx context.Context) (err error) {
	o.otlp, err = telemetry.OpenOTLP(ctx, &telemetry.OTLPOptions{Version: o.opts.Version, Service: o.settings.now().Name,
		Logger: o.opts.Logger.Logger})
	if err != nil {
		return invalidSettings(err)
	}
	if o.otlp != nil {
		o.life.onStop("the telemetry collector", o.otlp.Close)
	}
	cloud, err := o.openCloudWatch(ctx)
	o.telemetry = telemetry.New(&telemetry.Options{
		Version: o.opts.Version, CloudWatch: cloud, OTLP: o.otlp, Logger: o.opts.Logger.Logger, Sources: o.metricSources(),
	})
	return err
}

func (o *observer) metricSources() telemetry.Sources {
	sources := telemetry.Sources{
		Workers: o.work.workerReadings, Queues: o.work.queueReadings, Limits: o.work.limitReadings, Leader: o.cron.leads,
		Certificates: func() (all []telemetry.Certificate) {
			for _, c := range o.opts.certificates(o.settings.now()) {
				all = append(all, telemetry.Certificate{Option: c.Option, File: c.File, Expires: c.Expires})
			}
			return all
		},
		Processes: func() []supervisor.Status {
			if !o.life.running() || o.programs.app == nil {
				return nil
			}
			return o.programs.app.Processes()
		},
		Tasks: func() []periodic.TaskStatus {
			if m := o.cron.running(); m != nil {
				return m.Readings()
			}
			return nil
		},
	}
	if !o.opts.QueuesOnly {
		sources.Desired = func() int { return o.scale.scale().Desired }
	}

	return sources
}

func (o *observer) report() health.Report {
	r := o.monitor.Report()
	r.Environment = o.members.environment()
	return r
}

func (o *observer) publicHealth(host *health.Host) telemetry.Health {
	r, cpu := o.monitor.Report(), host.Read().CPU
	h := telemetry.Health{Green: r.Color == health.Green, Code: r.Status.Code(), HasCode: true,
		Periodic: o.cron.any(), Leads: o.cron.leads(), CPU: cpu.Value, HasCPU: cpu.Known}
	if o.members.mayShare() {
		environment := o.members.ownRecord().Environment
		h.HasCode = environment != nil
		if h.HasCode {
			h.Code = environment.Status.Code()
		}
	}
	return h
}

func (o *observer) newMonitor(host *health.Host) *health.Monitor {
	s := o.settings.now()
	return health.NewMonitor(health.Options{
		Began: o.instance.began, StartLimit: s.AppReadyTimeout, Started: o.life.started, AppReady: o.life.ready,
		Draining: o.life.draining, Host: host, IgnoreClientErrors: s.HealthIgnoreClientErrors,
		Queues: o.work.queueStates, Problems: o.problems.list,
		App: func() (health.AppState, bool) { return appState(o.programs.app, o.settings.now().DeployTimeout) },
		Leader: func() health.LeaderState {
			if !o.cron.any() {
				return health.LeaderState{Known: true}
			}
			return leaderState(o.cron.tasks)
		},
		Tasks: func() []health.TaskState {
			if m := o.cron.running(); m != nil {
				return taskStates(m.Status().Tasks)
			}
			return nil
		},
		Scaling: func() string {
			if !o.life.running() {
				return ""
			}
			return o.scale.heldScaleIn()
		},
		DataDir:      o.instance.dataDirState,
		RegistryLost: func() string { return o.members.lost.text() },
		Log:          o.opts.log("health"),
	})
}

func (o *observer) openCloudWatch(ctx context.Context) (*telemetry.CloudWatch, error) {
	s := o.settings.now()
	if s.CloudWatch != config.On || o.opts.QueuesOnly {
		return nil, nil
	}

	client, err := aws.OpenCloudWatch(ctx, o.opts.aws())
	if err != nil {
		return nil, invalidSettings(err)
	}

	host := health.NewHost("")
	host.Read() // begins the first interval
	cloud := telemetry.NewCloudWatch(client, &telemetry.CloudWatchOptions{
		Name: s.Name, Interval: s.MetricsInterval, Environment: s.EnvironmentName,
		Health: func() telemetry.Health { return o.publicHealth(host) }, Logger: o.opts.Logger.Logger,
	})
	o.life.runUntilStop("the CloudWatch metrics", func(ctx context.Context) {
		cloud.Run(ctx) // limits its last call itself
		client.Close()
	})

	return cloud, nil
}

func (o *observer) workerEvents(l *pipeline) *worker.Events {
	w := l.queue
	return worker.JoinEvents(o.opts.Logger.Worker(w.name, l.target.name), o.telemetry.Worker(w.name, l.target.name),
		&worker.Events{
			Received:     func(worker.Received) { o.monitor.PollAnswered(w.name) },
			Settled:      func(s worker.Settled) { o.settled(l, &s) },
			DeadLettered: func(d worker.DeadLettered) { o.deadLettered(w, d) },
			GateChanged: func(g worker.GateChanged) {
				o.work.recordReceiving(l, g)
				o.monitor.JudgeSoon()
			},
			PollFailed: func(p worker.PollFailed) { o.monitor.PollFailed(w.name, p.Err, p.Permanent) },
			Expired:    func(x worker.Expired) { o.expired(w, x) },
			Filtered: func(x worker.Filtered) {
				o.history.messageEnded(eventlog.Ending{MessageID: x.ID, Queue: w.name, Outcome: eventlog.Filtered,
					Receives: x.ReceiveCount})
			},
		})
}

func (o *observer) deadLettered(w *workQueue, d worker.DeadLettered) {
	to := o.work.deadLetterQueue(w)
	o.opts.Logger.DeadLettered(w.name, to, d)
	if d.Err != nil {
		return
	}
	o.programs.forget(d.ID)
	if w.embedded { // on Amazon SQS, the last attempt recorded the loss
		o.history.lost.addLoss(deadText, w.name, to, d.Reason, 1)
	}
}

func (o *observer) expired(w *workQueue, x worker.Expired) {
	o.monitor.Expired(w.name, 1)
	o.history.lost.addLoss(expiredText, w.name, "", "", 1)
	if !w.embedded {
		o.history.messageEnded(eventlog.Ending{MessageID: x.ID, Queue: w.name, Outcome: api.MessageExpired,
			Receives: x.ReceiveCount})
	}
}

func (o *observer) settled(l *pipeline, s *worker.Settled) {
	w := l.queue
	next := o.work.afterFailure(w, s)
	d := api.Delivery{
		MessageID: s.ID, Queue: w.name, Outcome: s.Outcome.String(), Status: s.Status, Reason: s.Reason, Answer: s.Answer,
		Attempt: s.Attempt, ReceiveCount: s.ReceiveCount, DurationMS: s.Duration.Milliseconds(),
		WaitMS: s.Wait.Milliseconds(), At: time.Now(), RetryAt: s.NextRetry,
	}
	if next.DeadLetterQueue != "" {
		d.RetryAt = time.Time{}
		d.DeadLetterQueue = next.DeadLetterQueue
	}
	if o.settings.now().Quiet {
		d.Answer = ""
		s.Excerpt = ""
	}

	if w.embedded && isFailedAttempt(s) {
		o.queues.broker.RecordAttempt(w.name, s.ID, attemptOf(s, &d))
	}
	o.history.failed.record(w, &d)
	o.history.recordEnding(w, s, next.DeadLetterQueue)
	if class, counts := deliveryClass(s, w.settings().ToFunction()); counts {
		o.monitor.Delivered(w.name, class, s.Duration,
			health.Failure{MessageID: s.ID, Reason: strings.TrimSpace(s.Reason + " " + d.Answer)})
	}
	o.opts.Logger.Settled(w.name, l.target.current(), s, next)
}

func (o *observer) brokerEvents() *broker.Events {
	counts, logged := o.telemetry.Broker(), o.opts.Logger.Broker()
	return &broker.Events{
		Removed: o.history.recordRemovals,
		DeadLettered: func(from, to string, ids []string) {
			counts.DeadLettered(from, to, ids)
			for _, id := range ids {
				o.programs.forget(id)
			}
			logged.DeadLettered(from, to, ids)
			o.history.lost.addLoss(deadText, from, to, "", len(ids))
		},
		Expired: func(name string, n int) {
			counts.Expired(name, n)
			o.monitor.Expired(name, int64(n))
			logged.Expired(name, n)
			o.history.lost.addLoss(expiredText, name, "", "", n)
		},
	}
}
