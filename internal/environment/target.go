package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tendril/broker"
	"tendril/internal/app"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/console"
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

// targetOpener opens what the messages of pipelines go to.
type targetOpener struct {
	*pipelines
	telemetry *telemetry.Telemetry
	otlp      *telemetry.OTLP // nil when no collector is named
	app       *app.App        // nil when no app runs here
	shown     *console.Deliveries
	tracker   *delivery.Tracker // nil where nobody asks for the deliveries in flight
	known     delivery.Registry // nil when every message is trusted
	account   func() delivery.RunAccount
	start     func(command string) (*runtimeapi.Pool, error)
	payloads  *envelope.Opener // nil when no bucket is named
	functions delivery.Functions
}

func (t *targetOpener) openBuckets(ctx context.Context) error {
	if len(t.s.S3Payloads) == 0 {
		return nil
	}
	opts := t.aws()
	s3, err := aws.OpenS3(ctx, opts)
	if err != nil && t.Config.Origin("region") != (config.Origin{}) {
		opts.Region = t.s.Region // the one in the queue's URL
		s3, err = aws.OpenS3(ctx, opts)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	t.steps.push("the connections to S3", func(context.Context) error { s3.Close(); return nil })
	t.payloads = &envelope.Opener{Fetcher: s3, Buckets: t.s.S3Payloads}
	return nil
}

// open opens the target of a queue's messages and returns what delivers to it.
func (t *targetOpener) open(ctx context.Context, l *pipeline) (worker.Deliverer, error) {
	opts := &delivery.Options{
		FIFO: l.fifo, SNS: l.settings().ViaSNS, Payloads: t.payloads, Postponed: t.Logger.Postponed,
		Account: t.account, Known: t.known, Tracker: t.tracker, Logger: t.Logger.With("component", "worker"),
	}
	if embedded, ok := l.Queue.(*broker.Queue); ok {
		opts.Posting = embedded.Posting
	}
	var err error
	switch set := l.settings(); {
	case set.Function != "":
		err = t.openFunction(ctx, l, opts)
	case set.Lambda != "":
		err = t.openLocalFunction(l, opts)
	default:
		err = t.openApp(l, opts)
	}
	if err != nil {
		return nil, err
	}
	d := delivery.ForWorker(opts)
	l.probe = d.Probe
	return d, nil
}

// openApp opens the connections to an app, or the balancer of the one that runs here.
func (t *targetOpener) openApp(l *pipeline, opts *delivery.Options) error {
	target := l.settings().Target
	if target == "" {
		target = ownAddress(t.s)
	}
	l.base = strings.TrimSuffix(target, "/")
	l.target = l.goesTo()
	opts.Deadline = func() time.Duration { return l.settings().Deadline }
	opts.OneByOne = l.settings().BatchSize == 1
	opts.Tracer = t.otlp.Tracer(telemetry.TracerOptions{Queue: l.name, QueueURL: l.url,
		Target: logging.TargetAddress(target)})
	if t.s.LogFormat == config.LogSQSD {
		base := strings.TrimSuffix(logging.TargetAddress(target), "/")
		opts.Begun = func(path string) {
			t.Logger.Sent(func() string {
				path, _, _ := strings.Cut(cmp.Or(path, l.settings().HTTPPath), "?")
				return base + path
			})
		}
	}
	ignored := t.Logger.OutcomeIgnored(l.name)
	open := func(address string) (*deliver.Client, error) { return t.openHTTP(l, address, ignored) }
	if l.settings().ToOwnApp() && t.app != nil {
		l.route = t.app.Route(open, l.fifo)
		opts.Target, l.close, l.renew = l.route, l.route.Close, l.route.Close
		return nil
	}
	var check supervisor.Check
	if t.s.Healthcheck != "" && l.base == strings.TrimSuffix(t.s.Target, "/") {
		parsed, err := supervisor.ParseCheck(t.s.Healthcheck)
		if err != nil {
			return err
		}
		check, l.checked = delivery.CheckAt(parsed, target), true
	}
	remote, err := delivery.NewRemote(func() (*deliver.Client, error) { return open(target) }, check)
	if err != nil {
		return fmt.Errorf("the app's address: %w", err)
	}
	opts.Target, l.close = remote, remote.Close
	l.renew = func() {
		if err := remote.Renew(); err != nil {
			opts.Logger.Error("connections not renewed, the old ones stay in use", "target", l.goesTo(), "err", err)
		}
	}
	return nil
}

// ownAddress is where the app that runs here listens.
func ownAddress(s *config.Settings) string { return fmt.Sprintf("http://localhost:%d", s.Port) }

func (t *targetOpener) openHTTP(l *pipeline, address string, ignored func(problem string)) (*deliver.Client, error) {
	opts, err := httpOptions(t.inForce(), l.settings(), l.name)
	if err != nil {
		return nil, err
	}
	opts.Target, opts.Version = address, t.Version
	if l.settings().BatchSize > 1 {
		opts.QueueARN = l.arn
	}
	opts.Trace, opts.Events = telemetry.Propagate, t.telemetry.Deliver(l.name, l.target)
	opts.Events.CertificateRead = func(c deliver.CertificateRead) { t.logCertificate(l.name, c) }
	if !t.s.Quiet {
		opts.Events.Record = t.recorder(l, strings.TrimSuffix(address, "/"))
	}
	opts.Events.OutcomeIgnored = ignored
	return deliver.NewClient(opts)
}

// recorder remembers what is posted to an address while somebody asked for that.
func (t *targetOpener) recorder(l *pipeline, address string) func(*queue.Message) func(*deliver.Exchange) {
	return func(m *queue.Message) func(*deliver.Exchange) {
		if !t.shown.RecordsExchanges() {
			return nil
		}
		return func(x *deliver.Exchange) { t.shown.AddExchange(exchangeOf(x, l.name, address, m.ID)) }
	}
}

// exchangeOf is an exchange in the words of the console.
func exchangeOf(x *deliver.Exchange, queueName, address, id string) console.Exchange {
	shown := console.Exchange{MessageID: id, Queue: queueName, URL: address, Request: x.Head, Body: x.Body,
		BodySize: len(x.Body),
		Answer:   x.Answer, AnswerBody: x.AnswerBody, At: x.Began, DurationMS: x.Duration.Milliseconds()}
	if x.Err != nil {
		shown.Error = x.Err.Error()
	}
	return shown
}

// targetFiles are the PEM files for the target of a queue.
func targetFiles(set *config.QueueSettings) deliver.TLSFiles {
	return deliver.TLSFiles{CA: set.TargetCA, Cert: set.TargetCert, Key: set.TargetKey}
}

// logCertificate says what became of the certificates for a target.
func (t *targetOpener) logCertificate(queue string, c deliver.CertificateRead) {
	log := t.Logger.With("component", "worker", "queue", queue)
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

const renewHint = "replace the files of target-ca, target-cert and target-key: they are read again when they change"

// httpOptions are what settings, and those of one queue, say about a POST.
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
		Credentials: deliver.Credentials{SigningKeys: set.SigningSecret, TLS: targetFiles(set)},
	}
	if !s.Keepalive {
		opts.KeepAlive = -1
	}
	return opts, nil
}

// terminalCodes are the statuses that send a message of a queue to the dead-letter queue.
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

func (t *targetOpener) openFunction(ctx context.Context, l *pipeline, opts *delivery.Options) error {
	client := aws.LambdaOptions{Options: *t.aws(), Function: l.settings().Function, Connections: l.settings().Concurrency,
		Timeout: t.s.FunctionTimeout + 5*time.Second} // beyond the function's own limit
	function, err := aws.OpenLambda(ctx, &client)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	l.target, l.close = "lambda:"+l.settings().Function, function.Close
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	timeout, err := function.FunctionTimeout(ctx) // which may need a permission that nothing else does
	if err != nil {
		// Only a function that does not exist ends the start: anything else may pass, and the worker waits for it.
		if err := function.Check(ctx); errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			function.Close()
			return fmt.Errorf("%w: queue %s: %w; name another one with --function or --region", ErrTarget, l.name, err)
		}
	} else if timeout > l.settings().VisibilityTimeout {
		t.Logger.Info("function may run for longer than the visibility timeout: it is extended meanwhile",
			"component", "aws", "queue", l.name, "function", l.settings().Function,
			"timeout", timeout.String(), "visibility_timeout", l.settings().VisibilityTimeout.String())
	}
	return t.invokeBy(l, opts, function)
}

// openLocalFunction opens a function on this machine. Queues with the same command share its processes.
func (t *targetOpener) openLocalFunction(l *pipeline, opts *delivery.Options) error {
	command := l.settings().Lambda
	f, err := t.functions.Open(command, func() (*runtimeapi.Pool, error) { return t.start(command) })
	if err != nil {
		return err
	}
	l.target, l.close = f.Name, func() {}
	return t.invokeBy(l, opts, f)
}

// invokeBy makes events of a queue's messages and hands them to a function.
func (t *targetOpener) invokeBy(l *pipeline, opts *delivery.Options, invoker deliver.Invoker) error {
	function, err := deliver.NewLambda(invoker, l.arn)
	if err != nil {
		return err
	}
	opts.Target = function
	if t.s.LogFormat == config.LogSQSD {
		opts.Begun = func(path string) { t.Logger.Sent(func() string { return l.target + path }) }
	}
	opts.Tracer = t.otlp.Tracer(telemetry.TracerOptions{Queue: l.name, QueueURL: l.url, Function: l.target})
	return nil
}
