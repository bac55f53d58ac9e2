package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/aws"
)

// targetQueue is a queue and where it lives: in a running environment, or on Amazon
// SQS. Exactly one of client and remote is set.
type targetQueue struct {
	name   string
	client *api.Client
	sqs    *aws.SQS
	remote *aws.Queue
}

// queueFlags are the flags that say which queue is meant.
type queueFlags struct {
	queue, backend string
}

// The values of --backend.
const (
	backendAuto     = "auto"
	backendEmbedded = "embedded"
	backendSQS      = "sqs"
)

func addWhere(cmd *cobra.Command) *queueFlags {
	w := &queueFlags{}
	addDataDir(cmd)
	cmd.Flags().StringVar(&w.backend, "backend", backendAuto,
		"Where a queue name is looked up: embedded (also auto), or sqs for Amazon SQS.")
	complete(cmd, "backend", backendAuto, backendEmbedded, backendSQS)
	return w
}

// The queues that a verb means where none is named.
const (
	onlyQueue      = "the only one of the environment"
	allQueues      = "all are searched"
	allDeadLetters = "all dead-letter queues"
)

// addQueue gives a verb the flag that names its queue; unnamed is what it means without.
func addQueue(cmd *cobra.Command, unnamed string) *queueFlags {
	w := addWhere(cmd)
	cmd.Flags().StringVarP(&w.queue, "queue", "q", "",
		"Queue: a name, URL or ARN (default: "+unnamed+").")
	return w
}

// isNamed reports whether a queue is named, or has to be.
func (w *queueFlags) isNamed() bool { return w.queue != "" || w.backend == backendSQS }

// findQueues finds the queue that is named, or all that the running environment works on.
func findQueues(c *cli, ctx context.Context, cmd *cobra.Command, w *queueFlags) ([]*targetQueue, error) {
	names := []string{w.queue}
	if !w.isNamed() {
		client, err := c.dial(cmd)
		if err != nil {
			return nil, err
		}
		if all := client.Instance.Queues; len(all) > 0 {
			names = nil
			for _, q := range all {
				names = append(names, q.Name)
			}
		}
	}
	var queues []*targetQueue
	for _, name := range names {
		p, err := findQueue(c, ctx, cmd, &queueFlags{queue: name, backend: w.backend})
		if err != nil {
			return nil, err
		}
		queues = append(queues, p)
	}
	return queues, nil
}

// queueList is the names of queues, with commas between.
func queueList(queues []*targetQueue) string {
	names := make([]string, len(queues))
	for i, p := range queues {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// findQueue finds a queue by its name in the running environment, or by its URL or
// ARN on Amazon SQS; "" is the only one that the running environment works on.
func findQueue(c *cli, ctx context.Context, cmd *cobra.Command, w *queueFlags) (*targetQueue, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	ref, err := parseQueue(w.queue)
	if err != nil {
		return nil, err
	}
	if ref.Remote() {
		if client := servedHere(c, cmd, ref); client != nil {
			return &targetQueue{name: ref.Name, client: client}, nil
		}
	}
	if ref.Remote() || w.backend == backendSQS {
		if w.queue == "" {
			return nil, fail(exitUsage, errors.New("no queue is named"), "name one on Amazon SQS, by name, URL or ARN")
		}
		return findOnSQS(ctx, w.queue)
	}
	client, err := c.dial(cmd)
	if err != nil {
		return nil, err
	}
	if w.queue == "" && len(client.Instance.Queues) > 1 {
		return nil, severalQueues(cmd, &client.Instance)
	}
	return ownQueue(ctx, client, ref.Name)
}

// severalQueues refuses a verb that works on one queue, where the environment has several and none is named.
func severalQueues(cmd *cobra.Command, i *api.Instance) error {
	command := cmd.CommandPath() + " "
	if cmd.Flags().Lookup("queue") != nil {
		command += "--queue "
	}
	return fail(exitUsage, fmt.Errorf("environment %q works on several queues: %s", i.Environment, queueNames(i, "")),
		"name one: "+command+i.Queues[0].Name)
}

func (w *queueFlags) check() error {
	switch w.backend {
	case backendAuto, backendEmbedded, backendSQS:
		return nil
	}
	return fail(exitUsage, fmt.Errorf("--backend %s is not known", w.backend), "use auto, embedded or sqs")
}

// parseQueue reads a queue's name, URL or ARN; "" is the zero reference.
func parseQueue(text string) (aws.Reference, error) {
	if text == "" {
		return aws.Reference{}, nil
	}
	ref, err := aws.ParseReference(text)
	if err != nil {
		return ref, fail(exitUsage, err)
	}
	return ref, nil
}

// servedHere returns a client when a URL is one of the running environment's
// own, so that its queues can be named by what it prints.
func servedHere(c *cli, cmd *cobra.Command, ref aws.Reference) *api.Client {
	client, err := c.dial(cmd)
	if err != nil || !client.Instance.Embedded() || !strings.HasPrefix(ref.URL, client.Instance.Endpoint+"/") {
		return nil
	}
	return client
}

func ownQueue(ctx context.Context, client *api.Client, name string) (*targetQueue, error) {
	instance := client.Instance
	own := instance.Queue(name)
	if name == "" {
		name = own.Name
	}
	switch {
	case name == "":
		return nil, fail(exitUsage, fmt.Errorf("environment %q works on no queue of its own", instance.Environment),
			"name a queue; 'tendril queues list' shows the queues")
	case own.URL != "" && !own.Embedded:
		return findOnSQS(ctx, own.URL)
	case instance.Embedded():
		return &targetQueue{name: name, client: client}, nil
	}
	return nil, fail(exitNotFound, fmt.Errorf("environment %q works on Amazon SQS and has no queue %s of its own",
		instance.Environment, name), "give the queue's URL or ARN, or add --backend sqs")
}

func findOnSQS(ctx context.Context, reference string) (*targetQueue, error) {
	sqs, err := aws.OpenSQS(ctx, nil)
	if err != nil {
		return nil, err
	}
	q, err := sqs.Queue(ctx, reference)
	if err != nil {
		return nil, err
	}
	return &targetQueue{name: q.Name(), sqs: sqs, remote: q}, nil
}

// source is what the messages of the picked queue are read from.
func (p *targetQueue) source(which *selector) messageSource {
	if p.remote == nil {
		sel, _ := which.selection() // check has refused what it cannot be
		return &embeddedSource{client: p.client, queue: p.name, filter: api.Filter{Selection: sel}, ids: which.ids}
	}
	return &sqsSource{
		name: p.name, from: p.remote, fifo: p.remote.FIFO(),
		open: func(ctx context.Context, reference string) (sender, error) { return p.openRemote(ctx, reference) },
	}
}

// address tells queues apart: of the environment by name, on Amazon SQS by URL.
func (p *targetQueue) address() string {
	if p.remote != nil {
		return p.remote.URL()
	}
	return p.name
}

// workedOnBy reports whether an environment receives from the queue.
func (p *targetQueue) workedOnBy(i *api.Instance) bool {
	return slices.ContainsFunc(i.Queues, func(q api.InstanceQueue) bool {
		return p.client != nil && q.Embedded && q.Name == p.name || p.remote != nil && q.URL == p.remote.URL()
	})
}

// openRemote finds a queue on Amazon SQS: by name beside this one, or by URL or ARN.
func (p *targetQueue) openRemote(ctx context.Context, reference string) (*aws.Queue, error) {
	if !strings.ContainsAny(reference, ":/") {
		reference = siblingURL(p.remote.URL(), reference)
	}
	return p.sqs.Queue(ctx, reference)
}

// siblingURL is the URL of a queue of the same account, region and server: that
// is where SQS wants dead-letter queues to be.
func siblingURL(queueURL, name string) string {
	return queueURL[:strings.LastIndexByte(queueURL, '/')+1] + name
}
