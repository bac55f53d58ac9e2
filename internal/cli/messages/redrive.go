package messages

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
)

func newDeadRedrive(c *base.CLI) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "redrive {ID... | --all | --match TEXT | --limit N | FILTER}",
		Short: "Move dead letters back to their source queues",
		Long: `Moves dead letters back to their source queues, or to --to. On the embedded queue a message
keeps its ID, and can be received --max-retries times again; --all and the filters skip messages
in flight, and interrupting the command cancels the move. On Amazon SQS --all is a message move task of SQS,
cancelled in the same way. Other selections, and --to, send a copy with the same body, attributes
and group under a new ID, and delete the dead letter once the copy is accepted. Dead letters with
a recorded reason (--dead-letter-reasons) are also copied, because SQS does not know their source
queue. A copy has no reason.`,
		Example: `  tendril dead redrive 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11
  tendril dead redrive --all --rate 50/s
  tendril dead redrive --attribute tenant=7 --since 2h
  tendril dead redrive --match '"tenant":7' --to orders-slow`,
	}

	which := addSelector(cmd)
	addDeadFilter(cmd, which)
	cmd.Flags().StringVar(&to, "to", "", "Destination queue: a name, or on Amazon SQS a URL or ARN (default: the "+
		"source queue).")
	limit := addRate(cmd, "moved")
	return changesDead(c, cmd, which, "moved", func(dlq *deadLetterQueue, messages string) string {
		return "move " + messages + " from " + dlq.queue.Name + " to " + cmp.Or(to, "the source queue")
	}, func(ctx context.Context, dlq *deadLetterQueue, selection *selection) (int, error) {
		return dlq.redrive(ctx, selection, to, *limit)
	})
}

func (dlq *deadLetterQueue) redrive(ctx context.Context, selection *selection, to string, limit rate.Limit) (int, error) {
	which := selection.selector
	perSecond, supported := taskRate(limit)
	if supported && dlq.queue.Remote == nil && which.fitsTask() {
		task, err := dlq.queue.Client.Redrive(ctx, dlq.queue.Name, to, perSecond, which.filter, 0)
		if err != nil {
			return 0, err
		}
		return followTask(ctx, dlq.cli, &embeddedTask{queue: dlq.queue}, int(task.ToMove), "moved")
	}

	moved := 0
	if supported && dlq.queue.Remote != nil && which.isEverything() && to == "" {
		n, err := dlq.redriveOnSQS(ctx, perSecond)
		if !errors.Is(err, errCopyRest) {
			return n, err
		}
		moved = n
	}

	from := dlq.contents(which)
	redrive := func(ctx context.Context, messages []sourceMessage) (int, error) {
		return from.redrive(ctx, messages, to)
	}
	copied, err := dlq.process(ctx, from, selection, limit, "moved", redrive)
	return moved + copied, err
}

func addRate(cmd *cobra.Command, done string) *rate.Limit {
	var limit rate.Limit
	text := cmd.Flags().String("rate", "", "Maximum messages "+done+" per second, such as 50/s (default: no limit).")
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		limit, err = parseRate(*text)
		return err
	}
	return &limit
}

const maxTaskRate = 500 // messages per second

// taskRate returns 0 for no limit. Move tasks support whole numbers from 1 to maxTaskRate.
func taskRate(limit rate.Limit) (perSecond int, supported bool) {
	if limit == rate.Inf {
		return 0, true
	}
	perSecond = int(limit)
	return perSecond, rate.Limit(perSecond) == limit && perSecond >= 1 && perSecond <= maxTaskRate
}

func (dlq *deadLetterQueue) deleteByTask(ctx context.Context, which *selector, perSecond int, yes bool) (int, error) {
	sel := which.filter
	sel.Through = dlq.newest
	total, err := dlq.queue.Client.Count(ctx, dlq.queue.Name, sel, countTime)
	if err != nil {
		return 0, err
	}

	if total.N > 1 {
		act := fmt.Sprintf("delete %s from %s: %s", which.text(), dlq.queue.Name, base.Plural(int(total.N), "message"))
		if err := dlq.cli.Confirm(act, strconv.FormatInt(total.N, 10), "--yes", yes); err != nil {
			return 0, err
		}
	}

	task, err := dlq.queue.Client.DeleteMatching(ctx, dlq.queue.Name, sel, perSecond, total.N)
	if err != nil {
		return 0, err
	}
	return followTask(ctx, dlq.cli, &embeddedTask{queue: dlq.queue}, int(task.ToMove), "deleted")
}

const countTime = 20 * time.Second

// changesDead adds a change of dead letters to cmd. would describes the change of a queue's messages.
func changesDead(c *base.CLI, cmd *cobra.Command, which *selector, done string,
	would func(dlq *deadLetterQueue, messages string) string,
	do func(context.Context, *deadLetterQueue, *selection) (int, error)) *cobra.Command {
	w := target.AddQueue(c, cmd, target.AllDeadLetters)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		dead, err := selectDead(ctx, c, w, which, args)
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) {
			return dead.steps(ctx, which, would)
		}, func() error {
			n, err := dead.forEach(ctx, which, do)
			return c.Summary(done, n, err)
		}), nil
	})
}

func selectDead(ctx context.Context, c *base.CLI, w *target.Flags, which *selector, args []string) (
	deadLetterQueues, error) {
	if err := which.parse(args); err != nil {
		return nil, err
	}
	dead, err := findDeadLetterQueues(ctx, c, w, which)
	if err != nil {
		return nil, err
	}
	return dead, dead.refuseLimit(w, which)
}

func (d deadLetterQueues) steps(ctx context.Context, which *selector,
	would func(dlq *deadLetterQueue, messages string) string) (steps []string, err error) {
	if len(which.ids) > 0 {
		return d.stepsOfIDs(ctx, which, would)
	}
	for _, dlq := range d {
		count, err := dlq.countSelected(ctx, which)
		if err != nil {
			return nil, err
		}
		steps = append(steps, would(dlq, which.text())+": "+count)
	}
	return steps, nil
}

// stepsOfIDs looks messages up in embedded queues, which come first. The others may be on Amazon SQS, where looking
// them up would be a receive.
func (d deadLetterQueues) stepsOfIDs(ctx context.Context, which *selector,
	would func(dlq *deadLetterQueue, messages string) string) (steps []string, err error) {
	selection := which.begin()
	for _, dlq := range d {
		if dlq.queue.Remote == nil {
			messages, err := collect(ctx, dlq.contents(which), selection)
			if err != nil {
				return nil, err
			}
			if len(messages) > 0 {
				steps = append(steps, would(dlq, base.Plural(len(messages), "message")))
			}
		} else if n := len(selection.missing); n > 0 {
			steps = append(steps, would(dlq, base.Plural(n, "message"))+", if found there: "+selection.missingIDs())
		}
	}

	if d[len(d)-1].queue.Remote == nil {
		err = selection.notFound(d.names())
	}
	return steps, err
}

// countSelected returns an estimate on Amazon SQS, because inspecting messages would be a receive.
func (dlq *deadLetterQueue) countSelected(ctx context.Context, which *selector) (string, error) {
	if dlq.queue.Remote != nil {
		if n := which.expectedCount(dlq.count); n >= 0 {
			return "about " + base.Plural(n, "message"), nil
		}
		return "some of about " + base.Plural(dlq.count, "message"), nil
	}

	total, err := dlq.queue.Client.Count(ctx, dlq.queue.Name, which.filter, countTime)
	text := base.Plural(int(total.N), "message")
	switch {
	case which.limit > 0 && int64(which.limit) < total.N:
		text = base.Plural(which.limit, "message")
	case !total.Exact:
		text = "at least " + text
	}

	return text, err
}

func newDeadDelete(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete {ID... | --all | --match TEXT | --limit N | FILTER}",
		Short: "Delete dead letters permanently",
		Long: `Deletes dead letters. Unless they are given by ID, it asks you to type the number of messages
(on Amazon SQS the name of the queue). --yes skips the question.`,
		Example: `  tendril dead delete 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11
  tendril dead export --file dead.ndjson && jq -r .id dead.ndjson | xargs tendril dead delete`,
	}

	which := addSelector(cmd)
	addDeadFilter(cmd, which)
	limit := addRate(cmd, "deleted")
	yes := base.AddYes(cmd)
	return changesDead(c, cmd, which, "deleted", func(dlq *deadLetterQueue, messages string) string {
		return "delete " + messages + " from " + dlq.queue.Name
	}, func(ctx context.Context, dlq *deadLetterQueue, selection *selection) (int, error) {
		if perSecond, supported := taskRate(*limit); supported && dlq.queue.Remote == nil && which.fitsTask() {
			return dlq.deleteByTask(ctx, which, perSecond, *yes)
		}
		if len(which.ids) == 0 {
			if err := c.Confirm("delete "+which.text()+" from "+dlq.queue.Name, dlq.queue.Name, "--yes", *yes); err != nil {
				return 0, err
			}
		}
		from := dlq.contents(which)
		return dlq.process(ctx, from, selection, *limit, "deleted", from.remove)
	})
}

func newDeadExport(c *base.CLI) *cobra.Command {
	var path string
	which := &selector{allUnlessNamed: true}
	cmd := &cobra.Command{
		Use:   "export [ID...]",
		Short: "Export dead letters as JSON lines",
		Long: `Writes each dead letter as one line of JSON, with its body, attributes, metadata and recorded
attempts. The dead letters stay in their queue. 'tendril send --ndjson' sends such lines again,
without the attempts. Without IDs, --match, --reason or --limit, all are exported.`,
		Example: `  tendril dead export --file dead.ndjson
  tendril dead export --match tenant-7 | jq -r .body`,
	}

	addMatch(cmd, which)
	addDeadFilter(cmd, which)
	cmd.Flags().StringVarP(&path, "file", "f", "",
		"New file to write, readable only by its owner (default: standard output).")
	w := target.AddQueue(c, cmd, target.AllDeadLetters)
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		dead, err := selectDead(ctx, c, w, which, args)
		if err != nil {
			return err
		}
		n, err := exportDead(ctx, c, dead, which, path)
		return c.Summary("exported", n, err)
	})

	return cmd
}

func exportDead(ctx context.Context, c *base.CLI, dead deadLetterQueues, which *selector, path string) (int, error) {
	base.OutliveReader() // messages must be released even if the reader is gone
	if path == "" || path == "-" {
		return dead.writeTo(ctx, c.DataOut(), which)
	}

	n, created := 0, false
	err := base.CreateNew(path, 0o600, func(file io.Writer) (err error) {
		created = true
		n, err = dead.writeTo(ctx, file, which)
		return err
	})
	switch {
	case err == nil:
		return n, nil
	case created:
		return 0, err
	case errors.Is(err, fs.ErrExist):
		return 0, base.Conflictf("%s exists", path).Hint("name a new file, or use standard output")
	}
	return 0, base.Usagef("--file: %w", err)
}

func (d deadLetterQueues) writeTo(ctx context.Context, to io.Writer, which *selector) (int, error) {
	buffered := bufio.NewWriter(to)
	write := func(_ context.Context, messages []sourceMessage) (int, error) {
		for i := range messages {
			if err := base.PrintLineJSON(buffered, &messages[i].Message); err != nil {
				return i, base.Written(err)
			}
		}
		return len(messages), nil
	}

	n, err := d.forEach(ctx, which, func(ctx context.Context, dlq *deadLetterQueue, s *selection) (int, error) {
		return dlq.process(ctx, dlq.contents(which), s, rate.Inf, "exported", write)
	})
	return n, errors.Join(err, base.Written(buffered.Flush()))
}

func (dlq *deadLetterQueue) process(ctx context.Context, from messageSource, selection *selection, limit rate.Limit,
	what string, do func(context.Context, []sourceMessage) (int, error)) (n int, err error) {
	bar := dlq.cli.Progress(selection.selector.expectedCount(dlq.count), what, true)
	defer func() { _ = bar.Finish() }()

	batchSize := selection.selector.batchSize()
	if limit != rate.Inf {
		batchSize = max(1, min(smallBatch, int(math.Ceil(float64(limit)))))
	}
	pace := rate.NewLimiter(limit, batchSize)
	err = selection.forEachBatch(ctx, from, batchSize, func(chosen []sourceMessage) error {
		if err := pace.WaitN(ctx, len(chosen)); err != nil {
			return err
		}
		done, err := do(ctx, chosen)
		n += done
		_ = bar.Add(done)
		return err
	})
	return n, err
}

func parseRate(text string) (rate.Limit, error) {
	if text == "" {
		return rate.Inf, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0, base.Usagef("invalid --rate %q", text).Hint("use messages per second, such as 50/s or 0.5/s")
	}
	return rate.Limit(n), nil
}

// NewDead returns the command 'tendril dead'.
func NewDead(c *base.CLI) *cobra.Command {
	return base.Family("dead", "List, show, redrive, delete and export dead letters",
		`Messages received too often move to the dead-letter queue. --queue names the source queue or
the dead-letter queue itself; the default is all dead-letter queues of the environment. An
embedded queue keeps the last failed attempts with each message.

On Amazon SQS these commands receive from the dead-letter queue: each message shown counts as a
receive and is hidden until the command exits, for at most 5 minutes.`,
		newDeadList(c), newDeadReasons(c), newDeadShow(c), newDeadRedrive(c), newDeadDelete(c), newDeadExport(c))
}
