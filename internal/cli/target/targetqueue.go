package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/queue"
)

// Queue is a queue in a running environment, with a Client, or on Amazon SQS, with Sqs and Remote.
type Queue struct {
	Name   string
	Client *api.Client
	Sqs    *aws.SQS
	Remote *aws.Queue
}

// Flags select a queue.
type Flags struct {
	Queue, Backend string

	cli *base.CLI
	cmd *cobra.Command
}

// Values of --backend.
const (
	backendAuto     = "auto"
	BackendEmbedded = "embedded"
	BackendSQS      = "sqs"
)

// AddWhere adds the flags that determine where queues are looked up.
func AddWhere(c *base.CLI, cmd *cobra.Command) *Flags {
	w := &Flags{cli: c, cmd: cmd}
	base.AddDataDir(cmd)
	cmd.Flags().StringVar(&w.Backend, "backend", backendAuto,
		"Where to look up a queue name: embedded (also auto), or sqs for Amazon SQS.")
	base.Complete(cmd, "backend", backendAuto, BackendEmbedded, BackendSQS)
	return w
}

// Descriptions of the default of --queue, for [AddQueue].
const (
	OnlyQueue      = "the only one of the environment"
	AllQueues      = "all queues"
	AllDeadLetters = "all dead-letter queues"
)

// AddQueue adds the flag --queue. unnamed describes its default.
func AddQueue(c *base.CLI, cmd *cobra.Command, unnamed string) *Flags {
	w := AddWhere(c, cmd)
	w.addQueue(unnamed)
	return w
}

// AddQueueArgument is like [AddQueue] for a command whose only object is a queue, which can also be an argument. If
// unnamed is "", a queue is required.
func AddQueueArgument(c *base.CLI, cmd *cobra.Command, unnamed string) *Flags {
	w := AddQueue(c, cmd, unnamed)
	w.takeArgument(unnamed == "")
	return w
}

// AddReceivedQueue adds --queue and an argument for a queue that the running environment receives from.
func AddReceivedQueue(cmd *cobra.Command) *Flags {
	w := &Flags{cmd: cmd}
	w.addQueue(AllQueues)
	w.takeArgument(false)
	return w
}

func (w *Flags) addQueue(unnamed string) {
	text := "Queue: a name, URL or ARN (default: " + unnamed + ")."
	if unnamed == "" {
		text = "Queue: a name, URL or ARN."
	}
	w.cmd.Flags().StringVarP(&w.Queue, "queue", "q", "", text)
}

func (w *Flags) takeArgument(required bool) {
	w.cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
			return err
		}
		switch argument := base.Argument(args); {
		case argument == "" && required && w.Queue == "":
			return base.Usagef("no queue given").Hint("name one: " + cmd.CommandPath() + " QUEUE")
		case argument != "" && w.Queue != "" && argument != w.Queue:
			return base.Usagef("two queues given: %s and %s", argument, w.Queue).Hint("name one, as an argument or with --queue")
		case argument != "":
			w.Queue = argument
		}
		return nil
	}
}

// Dial returns a client of the environment that the command selects.
func (w *Flags) Dial() (*api.Client, error) { return w.cli.Dial(w.cmd) }

// CommandPath returns the full name of the command.
func (w *Flags) CommandPath() string { return w.cmd.CommandPath() }

// IsNamed reports whether the user named a queue, or must name one.
func (w *Flags) IsNamed() bool { return w.Queue != "" || w.Backend == BackendSQS }

// FindAll finds the named queue, or all queues that the running environment receives from.
func (w *Flags) FindAll(ctx context.Context) ([]*Queue, error) {
	names := []string{w.Queue}
	if !w.IsNamed() {
		client, err := w.Dial()
		if err != nil {
			return nil, err
		}
		if all := client.Instance.Queues; len(all) > 0 {
			names = queueNames(all)
		}
	}

	var queues []*Queue
	for _, name := range names {
		one := *w
		one.Queue = name
		p, err := one.Find(ctx)
		if err != nil {
			return nil, err
		}
		queues = append(queues, p)
	}

	return queues, nil
}

// NamesOf returns the names of queues.
func NamesOf(queues []*Queue) []string {
	return base.Named(func(p **Queue) string { return (*p).Name })(queues)
}

// Find finds a queue of the running environment by name or URL, or on Amazon SQS by URL, by ARN or, with --backend sqs,
// by name. The default is the only queue that the running environment receives from.
func (w *Flags) Find(ctx context.Context) (*Queue, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	ref, err := ParseQueue(w.Queue)
	if err != nil {
		return nil, err
	}

	switch {
	case ref.Remote():
		if client := w.servedHere(ref); client != nil {
			return &Queue{Name: ref.Name, Client: client}, nil
		}
		return findOnSQS(ctx, w.Queue)
	case w.Backend != BackendSQS:
		return w.findByName(ctx, ref.Name)
	case w.Queue == "":
		return nil, base.Usagef("no queue given").Hint("name one on Amazon SQS, by name, URL or ARN")
	}
	return findOnSQS(ctx, w.Queue)
}

func (w *Flags) findByName(ctx context.Context, name string) (*Queue, error) {
	client, err := w.Dial()
	if err != nil {
		return nil, err
	}
	i := &client.Instance

	switch {
	case name != "":
	case len(i.Queues) == 1:
		name = i.Queues[0].Name
	case len(i.Queues) > 1:
		return nil, w.severalQueues(i)
	default:
		return nil, base.Usagef("environment %q has no queue of its own", i.Environment).
			Hint("name a queue; 'tendril queues list' lists the queues")
	}

	url, err := urlOnSQS(ctx, client, name)
	switch {
	case err != nil:
		return nil, err
	case url != "":
		return findOnSQS(ctx, url)
	case i.Embedded():
		return &Queue{Name: name, Client: client}, nil
	}
	return nil, base.NotFoundf("environment %q has no embedded queues, and does not receive from %s",
		i.Environment, name).Hint("use the queue's URL or ARN, or add --backend sqs")
}

// urlOnSQS also finds the dead-letter queue of a queue on Amazon SQS.
func urlOnSQS(ctx context.Context, client *api.Client, name string) (string, error) {
	queues := client.Instance.Queues
	received := client.Instance.Queue(name)
	isOnSQS := func(q api.InstanceQueue) bool { return !q.Embedded }
	switch {
	case received.Embedded || !slices.ContainsFunc(queues, isOnSQS):
		return "", nil
	case received.Name != "":
		return received.URL, nil
	}

	st, err := client.Status(ctx)
	for _, q := range st.Queues {
		if q.Name == name && q.URL != "" {
			return q.URL, nil
		}
	}
	return "", err
}

// OpenServer returns a client of the selected environment, or of Amazon SQS with --backend sqs.
func (w *Flags) OpenServer(ctx context.Context) (client *api.Client, sqs *aws.SQS, err error) {
	if w.Backend == BackendSQS {
		sqs, err = aws.OpenSQS(ctx, nil)
	} else if err = w.check(); err == nil {
		client, err = w.Dial()
	}
	return client, sqs, err
}

func (w *Flags) severalQueues(i *api.Instance) error {
	return base.Usagef("environment %q uses several queues: %s", i.Environment, QueueNames(i, "")).
		Hint("name one: " + w.CommandPath() + " --queue " + i.Queues[0].Name)
}

func (w *Flags) check() error {
	switch w.Backend {
	case backendAuto, BackendEmbedded, BackendSQS:
		return nil
	}
	return base.Usagef("invalid --backend %q", w.Backend).Hint("use auto, embedded or sqs")
}

// ParseQueue parses a queue's name, URL or ARN. It returns the zero value for "".
func ParseQueue(text string) (aws.Reference, error) {
	if text == "" {
		return aws.Reference{}, nil
	}
	ref, err := aws.ParseReference(text)
	if err != nil {
		return ref, base.Fail(base.ExitUsage, err)
	}
	return ref, nil
}

func (w *Flags) servedHere(ref aws.Reference) *api.Client {
	client, err := w.Dial()
	if err != nil || !client.Instance.Embedded() || !strings.HasPrefix(ref.URL, client.Instance.Endpoint+"/") {
		return nil
	}
	return client
}

func findOnSQS(ctx context.Context, reference string) (*Queue, error) {
	sqs, err := aws.OpenSQS(ctx, nil)
	if err != nil {
		return nil, err
	}
	q, err := sqs.Queue(ctx, reference)
	if err != nil {
		return nil, err
	}
	return OnSQS(sqs, q), nil
}

// OnSQS returns a queue on Amazon SQS.
func OnSQS(sqs *aws.SQS, q *aws.Queue) *Queue { return &Queue{Name: q.Name(), Sqs: sqs, Remote: q} }

// Address returns the queue's name if it is embedded, otherwise its URL.
func (p *Queue) Address() string {
	if p.Remote != nil {
		return p.Remote.URL()
	}
	return p.Name
}

// WorkedOnBy reports whether the environment receives from the queue.
func (p *Queue) WorkedOnBy(i *api.Instance) bool {
	return slices.ContainsFunc(i.Queues, func(q api.InstanceQueue) bool {
		return p.Client != nil && q.Embedded && q.Name == p.Name || p.Remote != nil && q.URL == p.Remote.URL()
	})
}

// OpenRemote opens an Amazon SQS queue by URL or ARN, or by name if it is in the same account and region.
func (p *Queue) OpenRemote(ctx context.Context, reference string) (*aws.Queue, error) {
	if !strings.ContainsAny(reference, ":/") {
		reference = SiblingURL(p.Remote.URL(), reference)
	}
	return p.Sqs.Queue(ctx, reference)
}

// SiblingURL returns the URL of a queue in the same account and region, where SQS requires dead-letter queues to be.
func SiblingURL(queueURL, name string) string {
	return queueURL[:strings.LastIndexByte(queueURL, '/')+1] + name
}

// DeadLetterQueue opens this queue's dead-letter queue, which has the given name.
func (p *Queue) DeadLetterQueue(ctx context.Context, name string) (*Queue, error) {
	if p.Remote == nil {
		return &Queue{Name: name, Client: p.Client}, nil
	}
	dead, err := p.OpenRemote(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("finding the dead-letter queue of %s: %w", p.Name, err)
	}
	return OnSQS(p.Sqs, dead), nil
}

// DeadLetterSources returns the names of the queues that use this one as their dead-letter queue.
func (p *Queue) DeadLetterSources(ctx context.Context) (names []string, err error) {
	if p.Remote == nil {
		q, err := p.Client.Queue(ctx, p.Name)
		return q.DeadLetterSources, err
	}
	urls, err := p.Remote.DeadLetterSources(ctx)
	for _, url := range urls {
		names = append(names, url[strings.LastIndexByte(url, '/')+1:])
	}
	return names, err
}

// QueueNames returns name or, if it is "", the names of all queues of the environment.
func QueueNames(i *api.Instance, name string) string {
	if name != "" {
		return name
	}
	return strings.Join(queueNames(i.Queues), ", ")
}

var queueNames = base.Named(func(q *api.InstanceQueue) string { return q.Name })

// Describe returns the queue's counts and attributes. On Amazon SQS, counts are approximate, and DeadLetterSources is
// empty.
func (p *Queue) Describe(ctx context.Context) (api.Queue, error) {
	if p.Remote == nil {
		return p.Client.Queue(ctx, p.Name)
	}

	attributes, err := p.Remote.Attributes(ctx)
	q := api.Queue{Name: p.Name, URL: p.Remote.URL(), ARN: attributes["QueueArn"], FIFO: p.Remote.FIFO(),
		Attributes: attributes, Ledger: Counts(attributes)}
	q.DeadLetterQueue, q.MaxReceives = queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	return q, err
}

// CountText describes the number of messages in the queue.
func (p *Queue) CountText(ctx context.Context) (string, error) {
	q, err := p.Describe(ctx)
	text := base.Plural(int(q.Ledger.Live), "message")
	if p.Remote != nil {
		text = "about " + text
	}
	return text, err
}

// Counts returns the counts of live messages in the attributes of an SQS queue.
func Counts(attributes map[string]string) queue.Ledger {
	count := func(name string) int64 {
		n, _ := strconv.ParseInt(attributes[name], 10, 64)
		return n
	}
	l := queue.Ledger{Visible: count("ApproximateNumberOfMessages"), Delayed: count("ApproximateNumberOfMessagesDelayed"),
		InFlight: count("ApproximateNumberOfMessagesNotVisible")}
	l.Live = l.Visible + l.Delayed + l.InFlight
	return l
}

// Receive receives messages from the queue.
func (p *Queue) Receive(ctx context.Context, req api.ReceiveRequest) ([]api.ReceivedMessage, error) {
	if p.Remote == nil {
		return p.Client.Receive(ctx, p.Name, req)
	}
	got, err := p.Remote.Receive(ctx, req.ToQueue())
	received := make([]api.ReceivedMessage, len(got))
	for i := range got {
		received[i] = api.ReceivedMessage{Message: api.FromMessage(&got[i], p.Name),
			ReceiptHandle: got[i].ReceiptHandle}
	}
	return received, err
}

// Acknowledge deletes messages by their receipt handles.
func (p *Queue) Acknowledge(ctx context.Context, messages []api.ReceivedMessage) error {
	handles := make([]string, len(messages))
	for i := range messages {
		handles[i] = messages[i].ReceiptHandle
	}
	if p.Remote != nil {
		return errors.Join(p.Remote.Delete(ctx, handles)...)
	}
	n, err := p.Client.Acknowledge(ctx, p.Name, handles)
	if err == nil && n < len(handles) {
		err = fmt.Errorf("%s not deleted: the visibility timeout had expired", base.Plural(len(handles)-n, "message"))
	}
	return err
}

// Sender is a queue that accepts messages.
type Sender interface {
	Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error)
}

// MaxBatchBytes is the maximum total size of the messages in one send.
const MaxBatchBytes = 1 << 20

// Send sends up to ten messages to the queue.
func (p *Queue) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	if p.Remote != nil {
		msgs, err := ForSQS(msgs)
		if err != nil {
			return nil, err
		}
		return p.Remote.Send(ctx, msgs)
	}
	return p.Client.Send(ctx, p.Name, msgs)
}

// MaxDelay is SQS's maximum.
const MaxDelay = 15 * time.Minute

// ForSQS converts the NotBefore times of messages to delays. A delay of more than MaxDelay is an error.
func ForSQS(messages []queue.Outgoing) ([]queue.Outgoing, error) {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.NotBefore.IsZero() {
			continue
		}
		wait := time.Until(m.NotBefore)
		if wait > MaxDelay {
			return nil, base.Usagef("a message on Amazon SQS cannot be delayed until %s: the limit is 15 minutes",
				m.NotBefore.Format(time.RFC3339)).Hint("send it to an embedded queue, which has no limit",
				"or use a periodic task to send it when it is due: see docs/periodic.md")
		}
		wait = max(0, wait+time.Second-1).Truncate(time.Second)
		m.Delay, m.NotBefore = &wait, time.Time{}
	}
	return out, nil
}
