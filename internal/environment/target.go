package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/delivery"
	"tendril/internal/delivery/deliver"
	"tendril/internal/delivery/envelope"
	"tendril/internal/delivery/runtimeapi"
	"tendril/internal/observe/logging"
	"tendril/internal/observe/telemetry"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
	"tendril/queue"
)

type target struct {
	queue     *workQueue
	deliverer worker.Deliverer
	// name is used in metrics and does not change. For an app over HTTP, base is its address without the path.
	name, base string
	isOwnApp   bool   // an app whose replicas run here
	renew      func() // applies the current settings; nil if none affect it
	probe      func(context.Context) error
	checked    bool // a probe sends a health check instead of only connecting
	close      func()
	paused     atomic.Bool // set by the pipeline
}

func (t *target) current() string {
	if t.base == "" {
		return t.name
	}
	path := pathWithoutQuery(t.queue.settings().HTTPPath)
	if last, found := strings.CutPrefix(t.name, t.base); found && last == path {
		return t.name // every delivery asks, and the path hardly ever changes
	}
	return t.base + path
}

// await returns false if ctx is done before the target responds. It logs each new reason.
func (t *target) await(ctx context.Context, log *slog.Logger) bool {
	logged := ""
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := t.probe(ctx)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("target does not respond", "component", "worker", "target", t.name, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

type targetOpener struct {
	opts      *Options
	life      *lifecycle
	settings  *settings
	observe   *observer
	programs  *programs
	tracker   *delivery.Tracker
	known     delivery.Registry // nil if every message is trusted
	account   func() delivery.RunAccount
	payloads  *envelope.Opener
	functions delivery.Functions
}

func (t *targetOpener) openBuckets(ctx context.Context) error {
	s := t.settings.now()
	buckets := s.S3Payloads
	if len(buckets) == 0 {
		return nil
	}

	s3, err := t.opts.openS3(ctx, s)
	if err != nil {
		return invalidSettings(err)
	}

	t.life.onStop("the connections to S3", func(context.Context) error { s3.Close(); return nil })
	t.payloads = &envelope.Opener{Fetcher: s3, Buckets: buckets}
	return nil
}

func (t *targetOpener) open(ctx context.Context, q *workQueue) (*target, error) {
	opts := &delivery.Options{
		FIFO: q.fifo, SNS: q.settings().ViaSNS, Payloads: t.payloads, Postponed: t.opts.Logger.Postponed(q.name),
		Account: t.account, Known: t.known, Tracker: t.tracker, Logger: t.opts.log("worker").With("queue", q.name),
	}
	if embedded, ok := q.source.(*broker.Queue); ok {
		opts.Posting = embedded.Posting
	}

	opened := &target{queue: q}
	opts.Paused = opened.paused.Load
	var err error
	switch set := q.settings(); {
	case set.Function != "":
		err = t.openFunction(ctx, opened, opts)
	case set.Lambda != "":
		err = t.openLocalFunction(opened, opts)
	default:
		err = t.openApp(opened, opts)
	}
	if err != nil {
		return nil, err
	}

	d := delivery.ForWorker(opts)
	opened.deliverer = d
	opened.probe = d.Probe
	return opened, nil
}

func (t *targetOpener) openApp(to *target, opts *delivery.Options) error {
	q, s := to.queue, t.settings.now()
	address := cmp.Or(q.settings().Target, ownAddress(s))
	to.base = strings.TrimSuffix(address, "/")
	to.name = to.current()

	opts.Deadline = func() time.Duration { return q.settings().Deadline }
	opts.OneByOne = q.settings().BatchSize == 1
	opts.Tracer = t.observe.otlp.Tracer(telemetry.TracerOptions{Queue: q.name, QueueURL: q.url,
		Target: logging.TargetAddress(address)})
	if s.LogFormat == config.LogSQSD {
		base := strings.TrimSuffix(logging.TargetAddress(address), "/")
		opts.Begun = func(path string) {
			t.opts.Logger.Sent(func() string { return base + pathWithoutQuery(cmp.Or(path, q.settings().HTTPPath)) })
		}
	}

	onOutcomeIgnored := t.opts.Logger.OutcomeIgnored(q.name)
	open := func(address string) (*deliver.Client, error) { return t.openHTTP(to, address, onOutcomeIgnored) }
	if q.settings().ToOwnApp() && t.programs.app != nil {
		route := t.programs.app.Route(open, q.name, q.fifo)
		opts.Target = route
		to.close = route.Close
		to.renew = route.Close
		to.isOwnApp = true
		return nil
	}
	return t.openRemote(to, opts, address, func() (*deliver.Client, error) { return open(address) })
}

func (t *targetOpener) openRemote(to *target, opts *delivery.Options, address string,
	open func() (*deliver.Client, error)) error {
	s := t.settings.now()
	var check supervisor.Check
	if s.Healthcheck != "" && to.base == strings.TrimSuffix(s.Target, "/") {
		parsed, err := supervisor.ParseCheck(s.Healthcheck)
		if err != nil {
			return err
		}
		check = delivery.CheckAt(parsed, address)
		to.checked = true
	}

	remote, err := delivery.NewRemote(open, check)
	if err != nil {
		return fmt.Errorf("app address: %w", err)
	}
	opts.Target = remote
	to.close = remote.Close
	to.renew = func() {
		if err := remote.Renew(); err != nil {
			opts.Logger.Error("connections not renewed, the previous ones stay in use", "target", to.current(), "err", err)
		}
	}
	return nil
}

func ownAddress(s *config.Settings) string { return fmt.Sprintf("http://localhost:%d", s.Port) }

func (t *targetOpener) openHTTP(to *target, address string, onOutcomeIgnored func(problem string),
) (*deliver.Client, error) {
	s := t.settings.now()
	q := to.queue
	opts, err := httpOptions(s, q.settings(), q.name)
	if err != nil {
		return nil, err
	}
	opts.Target = address
	opts.Version = t.opts.Version
	opts.Paused = to.paused.Load
	if q.settings().BatchSize > 1 {
		opts.QueueARN = q.arn
	}

	opts.Trace = telemetry.Propagate
	opts.Events = t.observe.telemetry.Deliver(q.name, to.name)
	opts.Events.CertificateRead = func(c deliver.CertificateRead) { t.logCertificate(q.name, c) }
	opts.Events.OutcomeIgnored = onOutcomeIgnored
	if !s.Quiet {
		opts.Events.Record = t.recorder(q, strings.TrimSuffix(address, "/"))
	}
	return deliver.NewClient(opts)
}

func (t *targetOpener) recorder(q *workQueue, address string) func(*queue.Message) func(*deliver.Exchange) {
	return func(m *queue.Message) func(*deliver.Exchange) {
		if !t.observe.shown.RecordsExchanges() {
			return nil
		}
		return func(x *deliver.Exchange) { t.observe.shown.AddExchange(exchangeOf(x, q.name, address, m.ID)) }
	}
}

func exchangeOf(x *deliver.Exchange, queueName, address, id string) api.Exchange {
	shown := api.Exchange{MessageID: id, Queue: queueName, URL: address, Request: x.Head, Body: x.Body,
		BodySize: len(x.Body), Answer: x.Answer, AnswerBody: x.AnswerBody, At: x.Began,
		DurationMS: x.Duration.Milliseconds()}
	if x.Err != nil {
		shown.Error = x.Err.Error()
	}
	return shown
}

func targetFiles(set *config.QueueSettings) deliver.TLSFiles {
	return deliver.TLSFiles{CA: set.TargetCA, Cert: set.TargetCert, Key: set.TargetKey}
}

func (t *targetOpener) logCertificate(queue string, c deliver.CertificateRead) {
	log := t.opts.log("worker").With("queue", queue)
	switch {
	case c.Err != nil:
		log.Error("certificate for the target not replaced", "err", c.Err)
	case c.Soon && time.Until(c.Expires) <= 0:
		log.Error("certificate for the target has expired", "expires", c.Expires.UTC(), "hint", renewHint)
	case c.Soon:
		log.Warn("certificate for the target expires soon", "expires", c.Expires.UTC(), "hint", renewHint)
	default:
		log.Info("certificate for the target replaced", "expires", c.Expires.UTC())
	}
}

const renewHint = "replace the files of target-ca, target-cert and target-key: they are reloaded when they change"

func httpOptions(s *config.Settings, set *config.QueueSettings, queue string) (*deliver.Options, error) {
	codes, err := deliver.ParseStatusSet(s.SuccessCodes)
	if err != nil {
		return nil, fmt.Errorf("success codes %w", err)
	}

	terminal, err := terminalCodes(set)
	if err != nil {
		return nil, err
	}

	opts := &deliver.Options{
		Path: set.HTTPPath, MimeType: set.MimeType, QueueName: queue,
		ConnectTimeout: s.ConnectTimeout, InactivityTimeout: set.InactivityTimeout, Deadline: set.Deadline,
		SuccessCodes: codes, TerminalCodes: terminal, HeaderBudget: int(s.HeaderBudget),
		SigningKeys: set.SigningSecret, TLS: targetFiles(set),
	}
	if !s.Keepalive {
		opts.KeepAlive = -1
	}

	return opts, nil
}

func terminalCodes(set *config.QueueSettings) (deliver.StatusSet, error) {
	if set.TerminalCodes == "" {
		return deliver.StatusSet{}, nil
	}
	codes, err := deliver.ParseStatusSet(set.TerminalCodes)
	if err != nil {
		err = fmt.Errorf("terminal codes %w", err)
	}
	return codes, err
}

const (
	functionCheckTimeout = 10 * time.Second
	functionMargin       = 5 * time.Second // beyond the function's own timeout
)

func (t *targetOpener) openFunction(ctx context.Context, to *target, opts *delivery.Options) error {
	set := to.queue.settings()
	client := aws.LambdaOptions{Client: *t.opts.aws(), Function: set.Function,
		Timeout: t.settings.now().FunctionTimeout + functionMargin}
	function, err := aws.OpenLambda(ctx, &client)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	to.name = "lambda:" + set.Function
	to.close = function.Close
	if err := t.checkFunction(ctx, function, to.queue); err != nil {
		function.Close()
		return err
	}
	return t.invokeBy(to, opts, function)
}

// checkFunction returns an error only for a missing function. Other problems may be temporary, and the worker waits for
// the function.
func (t *targetOpener) checkFunction(ctx context.Context, function *aws.Lambda, q *workQueue) error {
	ctx, cancel := context.WithTimeout(ctx, functionCheckTimeout)
	defer cancel()
	timeout, err := function.FunctionTimeout(ctx) // may be denied
	if err != nil {
		if err := function.Check(ctx); errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			return fmt.Errorf("%w: queue %s: %w; use another one with --function or --region", ErrTarget, q.name, err)
		}
		return nil
	}

	set := q.settings()
	if timeout > set.VisibilityTimeout {
		t.opts.log("aws").Info("function may run longer than the visibility timeout, which is extended",
			"queue", q.name, "function", set.Function, "timeout", timeout.String(),
			"visibility_timeout", set.VisibilityTimeout.String())
	}
	return nil
}

func (t *targetOpener) openLocalFunction(to *target, opts *delivery.Options) error {
	command := to.queue.settings().Lambda
	f, err := t.functions.Open(command, func() (*runtimeapi.Pool, error) { return t.programs.startFunction(command) })
	if err != nil {
		return err
	}
	to.name = f.Name
	to.close = func() {}
	return t.invokeBy(to, opts, f)
}

func (t *targetOpener) invokeBy(to *target, opts *delivery.Options, invoker deliver.Invoker) error {
	function, err := deliver.NewLambda(invoker, to.queue.arn, to.paused.Load)
	if err != nil {
		return err
	}
	opts.Target = function
	if t.settings.now().LogFormat == config.LogSQSD {
		opts.Begun = func(path string) { t.opts.Logger.Sent(func() string { return to.name + path }) }
	}
	opts.Tracer = t.observe.otlp.Tracer(telemetry.TracerOptions{Queue: to.queue.name, QueueURL: to.queue.url,
		Function: to.name})
	return nil
}
