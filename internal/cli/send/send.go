package send

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type sendFlags struct {
	where       *target.Flags
	file        string
	ndjson, raw bool
	attributes  []string
	delay, at   string
	group       string
	dedup       string
	wait        bool
	verbose     bool
	timeout     time.Duration
	format      *base.Format
}

// NewSend returns the command 'tendril send'.
func NewSend(c *base.CLI) *cobra.Command {
	f := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send [BODY]",
		Short: "Send messages",
		Long: `Sends one message: BODY, or the content of --file, or standard input, byte for byte.
Prints the message ID once the queue has stored it.

With --ndjson each line is one message. An object with the key "body" is read in the form
printed by 'tendril dead export' and 'tendril peek -o json':

  {"body": "...", "attributes": {"kind": "thumb", "n": 3,
   "level": {"type": "Number.int", "value": "3"},
   "key": {"type": "Binary", "base64": "AAE="}},
   "group_id": "a", "dedup_id": "b", "delay_seconds": 10,
   "not_before": "2026-12-24T18:00:00Z"}

Any other JSON value is itself the body. With --raw each line is a body, JSON or not.
--attr, --delay, --at and --group are defaults for lines that do not set them.

The limit for delays is 100 years on the embedded queue, 15 minutes on Amazon SQS. A message delayed
by more than 15 minutes counts as sent when the delay ends: its age and retention start then.`,
		Example: `  tendril send '{"order": 42}'
  tendril send --wait --attr kind=thumb --attr width:Number=160 '{"image": "a.png"}'
  tendril send --wait -v '{"order": 42}'
  tendril send --delay 3h '{"reminder": 42}'
  tendril send --at 2026-12-24T18:00:00Z '{"reminder": 43}'
  tendril send --ndjson --file orders.ndjson
  tendril dead export | tendril send --ndjson \
      --queue https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
		Args: cobra.MaximumNArgs(1),
	}

	f.where = target.AddQueue(c, cmd, target.OnlyQueue)
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "File with the body, or the lines; - is standard input.")
	flags.BoolVar(&f.ndjson, "ndjson", false, "Send one message per line of JSON.")
	flags.BoolVar(&f.raw, "raw", false, "Send one message per line, as is.")
	flags.StringArrayVarP(&f.attributes, "attr", "a", nil,
		"Message attribute: name=text, name:Number=3, name:Binary=BASE64; repeatable.")
	flags.StringVar(&f.delay, "delay", "",
		"Delay before the message becomes visible, such as 30s or 72h (default: the queue's).")
	flags.StringVar(&f.at, "at", "", "Time at which the message becomes visible, such as 18:30 or "+
		"2026-12-24T18:00:00Z.")
	flags.StringVarP(&f.group, "group", "g", "", "Message group, required for FIFO queues.")
	flags.StringVar(&f.dedup, "dedup", "", "Deduplication ID, for FIFO queues without content-based deduplication.")
	flags.BoolVarP(&f.wait, "wait", "w", false,
		"Wait for the first attempt and print its outcome; exit status 1 if it failed.")
	flags.BoolVarP(&f.verbose, "verbose", "v", false,
		"With --wait: print the posted request and the app's response.")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "Maximum wait for each message with --wait.")
	f.format = base.AddOutput(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		return planSend(ctx, c, args, f)
	})
}

const recordingMargin = 10 * time.Second

func planSend(ctx context.Context, c *base.CLI, args []string, f *sendFlags) (*base.Plan, error) {
	if f.verbose && !f.wait {
		return nil, base.Usagef("--verbose has no effect without --wait").Hint("add --wait")
	}

	template, err := f.template()
	if err != nil {
		return nil, err
	}

	input, err := openInput(c, args, f)
	if err != nil {
		return nil, err
	}

	if input != nil {
		c.AtEnd(func() { _ = input.Close() })
	}

	p, err := f.where.Find(ctx)
	if err != nil {
		return nil, err
	}

	o := &batchSender{c: c, to: p, format: *f.format, many: f.many(), wait: f.wait, verbose: f.verbose,
		bar: c.Progress(-1, "sent", f.many())}
	var watch *api.Client
	if f.wait {
		if watch, err = dialReceiver(f.where, p); err != nil {
			return nil, err
		}
		o.embedded = embeddedNames(watch, p)
	}

	messages, err := f.messages(args, input, template)
	if err != nil {
		return nil, err
	}

	return base.PlanOf(func() ([]string, error) { return wouldSend(ctx, p, messages) },
		func() error {
			if o.verbose {
				if err := watch.RecordExchanges(ctx, f.timeout+recordingMargin); err != nil {
					return err
				}
			}
			err := o.send(ctx, messages)
			if err == nil && watch != nil {
				err = o.awaitOutcomes(ctx, watch, f.timeout)
			}
			return err
		}), nil
}

func wouldSend(ctx context.Context, to *target.Queue, messages iter.Seq2[line, error]) ([]string, error) {
	if to.Remote == nil {
		if _, err := to.Client.Queue(ctx, to.Name); err != nil {
			return nil, err
		}
	}
	n, bytes := 0, 0
	for l, err := range messages {
		if err != nil {
			return nil, err
		}
		n, bytes = n+1, bytes+l.msg.Size()
	}
	return []string{fmt.Sprintf("send %s, %s, to queue %s", base.Plural(n, "message"), base.Size(bytes), to.Name)}, nil
}

func (f *sendFlags) messages(args []string, input io.Reader, template queue.Outgoing) (iter.Seq2[line, error], error) {
	switch {
	case f.many():
		return withDefaults(messagesIn(input, f.raw), template), nil
	case input == nil:
		return single(args[0], template), nil
	}
	body, err := io.ReadAll(io.LimitReader(input, MaxLine))
	if err != nil {
		return nil, unreadable(err)
	}
	return single(string(body), template), nil
}

func (f *sendFlags) many() bool { return f.ndjson || f.raw }

func (f *sendFlags) template() (queue.Outgoing, error) {
	attributes, err := parseAttributes(f.attributes)
	if err != nil {
		return queue.Outgoing{}, err
	}

	if f.many() && f.dedup != "" {
		return queue.Outgoing{},
			base.Usagef("--dedup would give all lines the same deduplication ID").Hint(`write "dedup_id" into each line`)
	}

	out := queue.Outgoing{Attributes: attributes, GroupID: f.group, DedupID: f.dedup}
	switch {
	case f.delay != "" && f.at != "":
		return out, base.Usagef("--delay and --at both set when the message becomes visible").Hint("use only one of them")
	case f.at != "":
		out.NotBefore, err = parseAt(f.at, time.Now())
	case f.delay != "":
		var delay time.Duration
		if delay, err = parseDelay(f.delay); delay > target.MaxDelay {
			out.NotBefore = time.Now().Add(delay)
		} else {
			out.Delay = &delay
		}
	}

	return out, err
}

// parseAt takes a time of day as its next occurrence. Without a time zone, the time is local.
func parseAt(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}

	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}

	for _, layout := range []string{"15:04", "15:04:05"} {
		clock, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		for day := now.Day(); ; day++ {
			at := time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			if at.After(now) {
				return at, nil
			}
		}
	}

	return time.Time{}, base.Usagef("invalid --at %q", text).
		Hint("use a time such as 18:30, 2026-12-24 18:00 or 2026-12-24T18:00:00Z")
}

func parseDelay(text string) (time.Duration, error) {
	delay, err := time.ParseDuration(text)
	if seconds, bare := strconv.Atoi(text); bare == nil {
		delay, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || delay < 0 || delay%time.Second != 0 {
		return 0, base.Usagef("--delay %s is out of range", text).
			Hint("use whole seconds, such as 30s, 15m or 72h")
	}
	return delay, nil
}

func openInput(c *base.CLI, args []string, f *sendFlags) (io.ReadCloser, error) {
	switch {
	case len(args) == 1 && (f.file != "" || f.many()):
		return nil, base.Usagef("the body is given both as an argument and as a file or lines").
			Hint("use only one of them")
	case len(args) == 1 && args[0] != "-":
		return nil, nil // the body is the argument
	case f.file != "" && f.file != "-":
		file, err := os.Open(f.file)
		if err != nil {
			return nil, unreadable(err)
		}
		return file, nil
	case f.file == "" && len(args) == 0 && c.TtyIn:
		return nil, base.Usagef("no body given").
			Hint(`give it as an argument: tendril send '{"order": 42}'`, "or as a file with --file, or through a pipe")
	}
	return io.NopCloser(c.In), nil
}

func unreadable(err error) error {
	return base.Usagef("reading the body: %w", err).Hint("name a readable file with --file, or - for standard input")
}

func single(body string, template queue.Outgoing) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		template.Body = body
		yield(line{msg: template}, nil)
	}
}

func withDefaults(lines iter.Seq2[line, error], template queue.Outgoing) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for l, err := range lines {
			addDefaults(&l.msg, template)
			if !yield(l, err) {
				return
			}
		}
	}
}

func addDefaults(m *queue.Outgoing, template queue.Outgoing) {
	for _, a := range template.Attributes {
		if !slices.ContainsFunc(m.Attributes, func(own queue.Attribute) bool { return own.Name == a.Name }) {
			m.Attributes = append(m.Attributes, a)
		}
	}
	if m.Delay == nil && m.NotBefore.IsZero() {
		m.Delay, m.NotBefore = template.Delay, template.NotBefore
	}
	if m.GroupID == "" {
		m.GroupID = template.GroupID
	}
}
