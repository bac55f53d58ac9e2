package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/send"
	"tendril/internal/cli/target"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/queue"
)

// NewReplay returns the command 'tendril replay'.
func NewReplay(c *base.CLI) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "replay MESSAGE|FILE",
		Short: "Post a message to a URL again and show the request and response",
		Long: `Posts a message exactly like a delivery, with the settings of the running environment, and
prints the request and the response. Queues do not change. The exit status is 1 unless the response
is a success.

MESSAGE is the ID of a message in a queue or dead-letter queue of the running environment.
FILE holds messages as printed by 'tendril dead export' and 'tendril receive -o json', one per
line; - is standard input. They go to the app of their queue, or to the URL of --to. Without a
running environment, the settings of the working folder apply. Header values that may be secrets
are hidden.`,
		Example: `  tendril replay 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11
  tendril replay 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11 --to http://127.0.0.1:8080/jobs
  tendril dead export | tendril replay - --to http://127.0.0.1:8080/jobs`,
		Args: cobra.ExactArgs(1),
	}

	w := target.AddQueue(c, cmd, target.AllQueues)
	cmd.Flags().StringVar(&to, "to", "", "URL to post to (default: the target of the message's queue).")
	base.Complete(cmd, "to") // not a queue
	f := base.AddOutput(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		p := &replay{c: c, to: to, queue: w.Queue, format: *f, posters: map[string]*environment.Poster{}}
		messages, err := p.load(ctx, w, args[0])
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) { return p.steps(ctx, messages) },
			func() error { return p.postAll(ctx, messages) }), nil
	})
}

// load needs no running environment for a file if the user gave a URL.
func (p *replay) load(ctx context.Context, w *target.Flags, name string) ([]api.Message, error) {
	if name == "-" {
		return p.loadFrom(w, p.c.In)
	}

	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		client, m, err := findMessage(ctx, w, name)
		p.client = client
		return []api.Message{m}, err
	}
	if err != nil {
		return nil, base.Fail(base.ExitUsage, err)
	}
	defer file.Close()
	return p.loadFrom(w, file)
}

func (p *replay) loadFrom(w *target.Flags, in io.Reader) ([]api.Message, error) {
	client, err := w.Dial()
	if err != nil && p.to == "" {
		return nil, err
	}
	p.client = client
	return readMessages(in)
}

func readMessages(r io.Reader) (messages []api.Message, err error) {
	for m, err := range send.ReadLines(r, func(_ int, text []byte) (api.Message, error) {
		m, _, err := send.ParseMessage(text)
		return m, err
	}) {
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, base.Usagef("no message to post").Hint("give one message per line")
	}
	return messages, nil
}

type replay struct {
	c      *base.CLI
	client *api.Client
	to     string // "" means the queue's own
	// queue is used for messages without a queue, or from queues that the environment does not receive from.
	queue   string
	format  base.Format
	status  *api.Status
	posters map[string]*environment.Poster
}

type replayAnswer struct {
	MessageID  string        `json:"message_id"`
	URL        string        `json:"url"`
	Outcome    string        `json:"outcome"`
	Status     int           `json:"status,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	DurationMS int64         `json:"duration_ms"`
	Exchange   *api.Exchange `json:"exchange,omitempty"`
}

func (p *replay) close() {
	for _, poster := range p.posters {
		poster.Close()
	}
}

func (p *replay) steps(ctx context.Context, messages []api.Message) (steps []string, err error) {
	defer p.close()
	for i := range messages {
		poster, err := p.poster(ctx, p.queueOf(&messages[i]))
		if err != nil {
			return nil, err
		}
		steps = append(steps, "post message "+deliveredAs(&messages[i]).ID+" to "+poster.URL)
	}
	return steps, nil
}

func (p *replay) postAll(ctx context.Context, messages []api.Message) error {
	defer p.close()
	failed := 0
	for i := range messages {
		ok, err := p.post(ctx, &messages[i])
		if err != nil {
			return err
		}
		if !ok {
			failed++
		}
	}
	if failed > 0 {
		return base.Failedf("%d of %s failed", failed, base.Plural(len(messages), "message"))
	}
	return nil
}

func (p *replay) post(ctx context.Context, m *api.Message) (ok bool, err error) {
	poster, err := p.poster(ctx, p.queueOf(m))
	if err != nil {
		return false, err
	}
	posted := deliveredAs(m)
	result, exchange := poster.Post(ctx, posted)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	a := replayAnswer{MessageID: posted.ID, URL: poster.URL, Outcome: result.Outcome.String(), Status: result.Status,
		Reason: result.Reason, DurationMS: result.Duration.Milliseconds(), Exchange: exchange}
	return result.Outcome == queue.Done, p.print(&a)
}

func (p *replay) print(a *replayAnswer) error {
	if p.format != base.AsTable {
		return p.format.PrintEach(p.c, a, a.MessageID, "")
	}
	if a.Exchange != nil {
		if err := send.PrintExchange(p.c, a.Exchange); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s posted to %s: %s", a.MessageID, a.URL, a.Outcome)
	if a.Reason != "" {
		text += ": " + a.Reason
	} else if a.Status != 0 {
		text += fmt.Sprintf(", HTTP %d", a.Status)
	}
	_, err := p.c.PrintErrf("%s\n", base.Plain(text))
	return err
}

// queueOf returns "" for an unknown queue.
func (p *replay) queueOf(m *api.Message) string {
	if p.client == nil {
		return m.Queue
	}

	i := &p.client.Instance
	for _, name := range []string{queue.NameInARN(m.DeadLetterSource), m.Queue, queueBefore(i, m.Queue)} {
		if name != "" && i.Queue(name).Name != "" {
			return name
		}
	}

	if ref, err := target.ParseQueue(p.queue); err == nil && ref.Name != "" {
		return ref.Name
	}
	if len(i.Queues) == 1 {
		return i.Queues[0].Name
	}
	return ""
}

func queueBefore(i *api.Instance, deadLetterQueue string) string {
	for _, q := range i.Queues {
		if deadLetterQueue != "" && q.DeadLetterQueue == deadLetterQueue {
			return q.Name
		}
	}
	return ""
}

func (p *replay) poster(ctx context.Context, name string) (*environment.Poster, error) {
	if poster := p.posters[name]; poster != nil {
		return poster, nil
	}

	if name == "" && p.client != nil && len(p.client.Instance.Queues) > 1 {
		return nil, base.Usagef("the message does not record its queue").
			Hint("name the queue with --queue: one of " + target.QueueNames(&p.client.Instance, ""))
	}

	set, err := p.settings(ctx, name)
	if err != nil {
		return nil, err
	}

	to := p.to
	if to == "" {
		if to, err = p.targetURL(ctx, name); err != nil {
			return nil, err
		}
	}

	address, path, err := splitURL(to)
	if err != nil {
		return nil, err
	}

	poster, err := environment.NewPoster(&set.Settings, &set.Queues[0], name, p.c.Version, address, path)
	if err != nil {
		return nil, base.Fail(base.ExitUsage, err)
	}

	p.posters[name] = poster
	return poster, nil
}

var postOptions = []string{"http-path", "mime-type", "via-sns", "inactivity-timeout", "visibility-timeout", "deadline",
	"success-codes", "header-budget", "connect-timeout", "keepalive", "target-ca", "target-cert", "target-key"}

// signingVariables are read here, because the running environment does not reveal its signing keys.
var signingVariables = []string{"TENDRIL_SIGNING_SECRET", "TENDRIL_SIGNING_SECRET_FILE"}

func (p *replay) settings(ctx context.Context, name string) (*config.Config, error) {
	if p.client == nil {
		return config.Load(config.Sources{Environ: p.c.Environ, Root: os.Geteuid() == 0})
	}

	now, err := p.client.Configuration(ctx)
	if err != nil {
		return nil, err
	}

	given := p.givenOptions(&now, name)
	if p.signsDeliveries(&now, name) && p.c.Env(signingVariables[0]) == "" && p.c.Env(signingVariables[1]) == "" {
		p.c.PrintWarnings(yamlfile.Problem{Text: "the environment's signing keys are not available here: the POST is " +
			"not signed",
			Hint: "set " + strings.Join(signingVariables, " or ")})
	}

	environ := slices.DeleteFunc(slices.Clone(p.c.Environ), func(entry string) bool {
		variable, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(variable, "TENDRIL_") && !slices.Contains(signingVariables, variable)
	})
	return config.Load(config.Sources{Flags: given, Environ: environ, File: &config.File{Path: now.File},
		Root: os.Geteuid() == 0})
}

// givenOptions warns of hidden query parameters, which it omits.
func (p *replay) givenOptions(now *api.Configuration, queueName string) map[string]string {
	given := map[string]string{}
	for _, option := range postOptions {
		o := now.Option(option)
		if ofQueue := now.Option(option + " of " + queueName); ofQueue != nil {
			o = ofQueue
		}
		if o == nil || o.Value == "" || o.Value == o.Default {
			continue
		}

		shown, _, hidden := strings.Cut(o.Value, "?(hidden)")
		if hidden && p.to == "" {
			p.c.PrintWarnings(yamlfile.Problem{Text: "the query of " + option + " is hidden, and omitted here",
				Hint: "add the full URL with --to"})
		}
		given[option] = shown
	}
	return given
}

func (p *replay) signsDeliveries(now *api.Configuration, name string) bool {
	for _, option := range []string{"signing-secret of " + name, "signing-secret"} {
		if o := now.Option(option); o != nil && o.Value != "" {
			return o.Value != o.Default && o.Value != "off"
		}
	}
	return false
}

// targetURL replaces the first replica's port, which the worker's URL has, with a ready replica's.
func (p *replay) targetURL(ctx context.Context, queueName string) (string, error) {
	if p.status == nil {
		st, err := p.client.Status(ctx)
		if err != nil {
			return "", err
		}
		p.status = &st
	}

	to := ""
	if i := slices.IndexFunc(p.status.Workers, func(w api.Worker) bool { return w.Queue == queueName }); i >= 0 {
		to = p.status.Workers[i].Target
	}
	u, err := url.Parse(to)
	if to == "" || err != nil || !slices.Contains([]string{"http", "https", "unix", "http+unix"}, u.Scheme) {
		return "", base.Usagef("the messages of %s are not posted to a URL", cmp.Or(queueName, "this environment")).
			Hint("add the URL with --to")
	}

	first, ready := p.client.Instance.AppPort, readyPort(p.status.App)
	if first == 0 || ready == 0 || u.Host != fmt.Sprintf("localhost:%d", first) {
		return to, nil
	}
	u.Host = fmt.Sprintf("localhost:%d", ready)
	return u.String(), nil
}

func readyPort(replicas []api.Process) int {
	for i := range replicas {
		if replicas[i].Ready && replicas[i].Port != 0 {
			return replicas[i].Port
		}
	}
	return 0
}

func splitURL(text string) (address, path string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return "", "", base.Usagef("invalid URL %q", text).Hint("use a URL such as http://127.0.0.1:8080/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return text, "", nil
	}
	path = u.EscapedPath()
	if u.RawQuery != "" {
		path = cmp.Or(path, "/") + "?" + u.RawQuery
	}
	u.Path = ""
	u.RawPath = ""
	u.RawQuery = ""
	return u.String(), path, nil
}

const noID = "00000000-0000-0000-0000-000000000000"

// deliveredAs restores the original's ID and counts in a message that tendril dead-lettered as a copy.
func deliveredAs(m *api.Message) *queue.Message {
	attributes, before := queue.CutReason(m.Attributes)
	out := &queue.Message{ID: cmp.Or(m.ID, noID), Body: m.Body, Attributes: attributes,
		ReceiveCount: max(m.ReceiveCount, 1), Attempt: max(len(m.Attempts), 1), SentAt: m.SentAt,
		FirstReceivedAt: m.FirstReceivedAt, SenderID: m.SenderID, GroupID: m.GroupID, DedupID: m.DedupID,
		SequenceNumber: m.SequenceNumber, TraceHeader: m.TraceHeader, DeadLetterSource: m.DeadLetterSource}
	if before != nil {
		out.ID = before.MessageID
		out.SentAt = before.SentAt
		out.ReceiveCount = max(before.Receives, 1)
		out.Attempt = max(before.Attempts, 1)
	}
	return out
}
