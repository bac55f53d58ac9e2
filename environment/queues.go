package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/config"
	"tendril/datadir"
	"tendril/httplimit"
	"tendril/queue"
	"tendril/sqsapi"
	"tendril/worker"
)

// queueRetention is the retention of embedded queues that tendril makes for
// itself: the longest there is, so that a long outage loses nothing.
const queueRetention = 14 * 24 * time.Hour

const fifoSuffix = ".fifo"

// queueRef is the worker's queue, wherever it lives.
type queueRef struct {
	worker.Queue
	name, url, arn string
	dead           string // the dead-letter queue's name; "" for none
	fifo           bool
}

// openQueues makes and serves the environment's own embedded queues, and finds
// those on Amazon SQS.
func (e *Environment) openQueues(ctx context.Context) error {
	if e.broker != nil {
		if err := e.serveBroker(ctx); err != nil {
			return err
		}
	}
	if e.s.AnyOnSQS() {
		if err := e.openSQS(ctx); err != nil {
			return err
		}
	}
	for i := range e.s.Queues {
		if err := e.openLine(ctx, &e.s.Queues[i]); err != nil {
			return err
		}
	}
	return e.openTaskQueues(ctx)
}

func (e *Environment) openLine(ctx context.Context, set *config.QueueSettings) error {
	l := newLine(set)
	open := e.findOnSQS
	if l.embedded {
		open = e.createOwnQueue
	}
	if err := open(ctx, l); err != nil {
		return err
	}
	e.lines = append(e.lines, l)
	return nil
}

// openTaskQueues makes the embedded queues that periodic tasks name and that no
// worker would work on otherwise: then a task's queue needs no more than its
// name. What holds for the first queue holds for them.
func (e *Environment) openTaskQueues(ctx context.Context) error {
	if e.firstTasks.read == nil {
		return nil
	}
	for _, t := range e.firstTasks.read.Tasks {
		if t.Queue == "" {
			continue
		}
		if e.lineOf(t.Queue) != nil || !e.home().embedded {
			continue
		}
		set := *e.home().settings()
		set.Name = t.Queue
		for _, l := range e.lines {
			set.Weight = max(set.Weight, l.settings().Weight)
		}
		if err := e.openLine(ctx, &set); err != nil {
			return err
		}
		e.lines[len(e.lines)-1].forTask = true
	}
	return nil
}

// lineOf returns the line of a queue by its name; nil when there is none.
func (e *Environment) lineOf(name string) *line {
	for _, l := range e.lines {
		if l.queue.name == name {
			return l
		}
	}
	return nil
}

// openBroker opens the embedded queues, where there are any.
func (e *Environment) openBroker(context.Context) error {
	if !e.QueuesOnly && !e.s.AnyEmbedded() {
		return nil
	}
	b, err := broker.Open(e.s.DataDir, &broker.Options{
		Region: e.s.Region, AccountID: e.s.AccountID, Logger: e.Logger.Logger, Events: e.brokerEvents(),
	})
	if errors.Is(err, broker.ErrInUse) {
		return conflict(fmt.Errorf("%w; a second environment needs its own --data-dir, --listen, --console and --port", err))
	}
	if errors.Is(err, datadir.ErrUnsafe) {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if err != nil {
		return fmt.Errorf("opening the embedded queues: %w", err)
	}
	e.broker = b
	e.steps.push("the embedded queues", func(context.Context) error { return b.Close() })
	return nil
}

// serveBroker serves the embedded queues over the SQS protocol.
func (e *Environment) serveBroker(context.Context) error {
	l, err := listen("listen", e.s.Listen, true)
	if err != nil {
		return err
	}
	e.endpoint = "http://" + l.Addr().String()
	handler := sqsapi.New(e.broker, nil)
	most, _ := connectionShares(openFiles(), e.deliveryDescriptors())
	server := sqsapi.Server(handler)
	server.Handler = httplimit.NewBodies(endpointBodies, sqsapi.MaxBody).Handler(handler)
	e.serve("the queue endpoint", server, l, most, handler.Stop)
	return nil
}

// serve runs an HTTP server until the stop reaches it, with so many connections
// at most; before is called first.
func (e *Environment) serve(name string, server *http.Server, l net.Listener, most int, before func()) {
	server.ErrorLog = newErrorLog(e.Logger.Logger, name)
	l = e.limitConnections(name, server, l, most)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			e.fail(fmt.Errorf("serving %s: %w", name, err))
		}
	}()
	e.steps.push(name, func(ctx context.Context) error {
		before()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
}

// listen binds an address; the error names the option that gave it. With
// localOnly, the address must be one that only this machine reaches: a name may
// stand for another one than it says.
func listen(option, address string, localOnly bool) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, conflict(fmt.Errorf("--%s %s: the port is in use; stop what listens there, or give another port (0 "+
			"takes any free one)", option, address))
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", option, address, err)
	}
	if bound := addressOf(l); localOnly && !bound.Addr().IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("%w: --%s %s: the name stands for %s, which other machines can reach; write 127.0.0.1:%d",
			ErrSettings, option, address, bound.Addr(), bound.Port())
	}
	return l, nil
}

// addressOf is the address that a listener is bound to.
func addressOf(l net.Listener) netip.AddrPort {
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
}

// localAddress is the address at which this machine reaches a listener: that of
// loopback where it is bound to every address.
func localAddress(l net.Listener) string {
	bound := addressOf(l)
	if bound.Addr().IsUnspecified() {
		bound = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), bound.Port())
	}
	return bound.String()
}

// createOwnQueue makes a worker queue and its dead-letter queue, or brings the
// redrive policy of existing ones up to date.
func (e *Environment) createOwnQueue(ctx context.Context, l *line) error {
	name := l.settings().Name
	dead := strings.TrimSuffix(name, fifoSuffix) + "-dead"
	attrs := map[string]string{"MessageRetentionPeriod": seconds(queueRetention)}
	fifo := strings.HasSuffix(name, fifoSuffix)
	if fifo {
		dead += fifoSuffix
		attrs["FifoQueue"] = "true"
	}
	nameExists := &queue.Error{Code: queue.CodeQueueNameExists}
	for _, q := range []string{dead, name} {
		if err := e.broker.CreateQueue(ctx, q, attrs, nil); err != nil && !errors.Is(err, nameExists) {
			return fmt.Errorf("creating the queue %s: %w", q, err)
		}
	}
	own := map[string]string{
		"VisibilityTimeout": seconds(l.settings().VisibilityTimeout),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, e.broker.ARN(dead),
			e.s.MaxRetries),
	}
	if err := e.broker.SetAttributes(ctx, name, own); err != nil {
		return fmt.Errorf("setting up the queue %s: %w", name, err)
	}
	l.queue = queueRef{Queue: e.broker.Queue(name), name: name, url: e.endpoint + "/" + e.s.AccountID + "/" + name,
		arn: e.broker.ARN(name), dead: dead, fifo: fifo}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// openSQS opens the way to Amazon SQS.
func (e *Environment) openSQS(ctx context.Context) error {
	opts := &aws.Options{Endpoint: e.s.EndpointURL, Connections: e.s.HTTPConnections + 16, Events: e.Logger.AWS(),
		Log: e.report.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	client, err := aws.OpenSQS(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	e.sqs = client
	e.steps.push("the connections to SQS", func(context.Context) error { client.Close(); return nil })
	return nil
}

// findOnSQS finds a queue on Amazon SQS, checks that it can be read and warns
// where its own attributes and the settings do not fit together.
func (e *Environment) findOnSQS(ctx context.Context, l *line) error {
	reference := cmp.Or(l.settings().URL, l.settings().Name)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q, err := e.sqs.Queue(ctx, reference)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	attrs, err := q.Attributes(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return fmt.Errorf("%w: %s: %w", ErrQueue, reference, err)
	}
	e.warnOfConflicts(l, q, attrs, err)
	dead, _ := aws.RedrivePolicy(attrs)
	l.queue = queueRef{Queue: q, name: q.Name(), url: q.URL(), arn: queueARN(attrs, q.URL(), l.settings()),
		fifo: q.FIFO(), dead: dead}
	return nil
}

// warnOfConflicts prints what the queue's owner should know. Reading the
// attributes needs a permission of its own; without it the worker still works.
func (e *Environment) warnOfConflicts(l *line, q *aws.Queue, attrs map[string]string, denied error) {
	if denied != nil {
		e.report.note(slog.LevelWarn, "aws",
			fmt.Sprintf("the attributes of %s cannot be read (%v), so its settings are not compared; allow "+
				"sqs:GetQueueAttributes to have that", q.Name(), denied),
			slog.String("queue", q.Name()))
		return
	}
	settings := aws.Settings{Retention: l.settings().RetentionPeriod, Visibility: l.settings().VisibilityTimeout,
		Inactivity: l.settings().InactivityTimeout}
	for _, c := range aws.Conflicts(settings, attrs) {
		level := slog.LevelWarn
		if c.Fact {
			level = slog.LevelInfo
		}
		e.report.note(level, "aws", fmt.Sprintf("%s: %s", q.Name(), c.Text), slog.String("queue", q.Name()),
			slog.String("reason", string(c.Name)))
	}
}

// queueARN is the queue's ARN: what SQS says, or, where that may not be read,
// what follows from the URL, whose last two segments are account and name.
func queueARN(attrs map[string]string, url string, set *config.QueueSettings) string {
	if arn := attrs["QueueArn"]; arn != "" {
		return arn
	}
	if strings.HasPrefix(set.URL, "arn:") {
		return set.URL
	}
	account, name := "000000000000", set.Name
	if parts := strings.Split(url, "/"); len(parts) >= 2 && len(parts[len(parts)-2]) == len(account) {
		account = parts[len(parts)-2]
	}
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", set.Region, account, name)
}
