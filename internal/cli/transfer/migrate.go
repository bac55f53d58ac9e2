package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/internal/migrate"
	"tendril/queue"
)

type migrateFlags struct {
	from, to, region string
	queues           []string
	all, cutDelays   bool
	uncertain        string
	wait             time.Duration
	format           *base.Format
}

// NewMigrate returns the command 'tendril migrate'.
func NewMigrate(c *base.CLI) *cobra.Command {
	f := &migrateFlags{}
	cmd := &cobra.Command{
		Use:   "migrate --from {embedded | sqs} --to {sqs | embedded} [QUEUE...]",
		Short: "Move queues with their messages to Amazon SQS, or back",
		Long: `Creates missing queues at the destination, each with its dead-letter queue and its attributes, and moves the
messages of the named queues, by default of all embedded queues. On Amazon SQS, name the queues or add --all.

A message is deleted at the source once the destination has accepted it and a journal in the data directory records
that. If the command is interrupted or killed, run it again to continue. At the end it compares the counts of both
sides; the exit status is 1 if they differ.

Stop the environment first, on every machine: nothing may receive from the queues during the migration.`,
		Example: `  tendril migrate --from embedded --to sqs --region eu-west-1 --dry-run
  tendril migrate --from embedded --to sqs --region eu-west-1
  tendril migrate --from sqs --to embedded orders`,
	}

	base.AddDataDir(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "Source of the messages: embedded or sqs (required).")
	flags.StringVar(&f.to, "to", "", "Destination of the messages: sqs or embedded (required).")
	flags.StringVar(&f.region, "region", "", "AWS region of the queues (default: from the AWS configuration).")
	flags.StringSliceVarP(&f.queues, "queue", "q", nil, "Queues to move, like the arguments, comma-separated.")
	flags.BoolVar(&f.all, "all", false, "Move all queues of the region to the embedded queue.")
	base.AddDryRun(cmd)
	flags.BoolVar(&f.cutDelays, "cut-delays", false,
		"Send messages due in more than 15m with a 15m delay, instead of leaving them.")
	flags.StringVar(&f.uncertain, "uncertain", "",
		"FIFO messages possibly sent before a crash: send or drop (default: stop and report them).")
	flags.DurationVar(&f.wait, "wait", 15*time.Minute, "Maximum wait for messages in flight or delayed at the source.")
	base.Complete(cmd, "from", target.BackendEmbedded, target.BackendSQS)
	base.Complete(cmd, "to", target.BackendEmbedded, target.BackendSQS)
	base.Complete(cmd, "uncertain", string(migrate.Resend), string(migrate.Drop))
	f.format = base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		return migrateQueues(ctx, c, cmd, slices.Concat(args, f.queues), f)
	})
	return cmd
}

func (f *migrateFlags) check(args []string) error {
	known := func(name string) bool { return name == target.BackendEmbedded || name == target.BackendSQS }
	switch {
	case !known(f.from) || !known(f.to) || f.from == f.to:
		return base.Usagef("invalid --from and --to: use embedded and sqs, or sqs and embedded").
			Hint("such as tendril migrate --from embedded --to sqs --region eu-west-1")
	case f.from == target.BackendSQS && len(args) == 0 && !f.all:
		return base.Usagef("no queue given").
			Hint("name queues on Amazon SQS, or add --all for all of the region")
	case f.all && len(args) > 0:
		return base.Usagef("queue names cannot be combined with --all").Hint("give queue names or --all, not both")
	case f.uncertain != "" && f.uncertain != string(migrate.Resend) && f.uncertain != string(migrate.Drop):
		return base.Usagef("invalid --uncertain %q", f.uncertain).Hint("use send or drop")
	}
	return base.CheckWait(f.wait)
}

func migrateQueues(ctx context.Context, c *base.CLI, cmd *cobra.Command, args []string, f *migrateFlags) (err error) {
	if err := f.check(args); err != nil {
		return err
	}

	b, dir, err := openBroker(c, cmd, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	sqs, err := aws.OpenSQS(ctx, &aws.Options{Region: f.region})
	if err != nil {
		return err
	}
	defer sqs.Close()

	p := &migration{c: c, f: f, b: b, sqs: sqs, dir: dir, toSQS: f.to == target.BackendSQS}
	if err := p.plan(ctx, args); err != nil {
		return err
	}
	if !base.IsDryRun(cmd) {
		return p.run(ctx)
	}
	err = base.PrintValue(c, *f.format, p.all, plannedList.View(c, p.printNotes))
	c.PrintErrln(base.Unchanged)
	return err
}

func openBroker(c *base.CLI, cmd *cobra.Command, f *migrateFlags) (*broker.Broker, string, error) {
	dir, err := c.DataDir(cmd)
	if err != nil {
		return nil, "", err
	}

	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return nil, "", err
	}

	if _, err := os.Stat(filepath.Join(dir, "queues.db")); err != nil && f.from == target.BackendEmbedded {
		return nil, "", base.NotFoundf("no embedded queues in %s", dir).
			Hint("name the environment with -e, or its data directory with --data-dir")
	}

	b, err := broker.Open(dir, &broker.Options{Region: cfg.Region, AccountID: cfg.AccountID})
	if errors.Is(err, broker.ErrInUse) {
		name := dir
		if i, err := api.ReadInstance(dir); err == nil {
			name = "environment " + i.Environment
		}
		return nil, "", base.Conflictf("%s is running: %w", name, err).
			Hint("stop it first (Ctrl-C, or systemctl stop): its queues must not be used during the migration")
	}

	return b, dir, err
}

type planned struct {
	Queue  string `json:"queue"`
	Target string `json:"destination"`
	// Exists means that the destination already has the queue, which keeps its attributes.
	Exists     bool              `json:"exists"`
	Count      migrate.Count     `json:"messages"`
	Attributes map[string]string `json:"attributes,omitempty"`
	DeadLetter string            `json:"dead_letter_queue,omitempty"`
	Notes      []string          `json:"notes,omitempty"`

	maxReceives int
	from, to    queueEnd // to is nil until the queue exists
	tags        map[string]string
}

const notCarried = "Messages get a new message ID, sender ID, sent timestamp and receive count, and their retention " +
	"period restarts. FIFO messages keep their group and order; their deduplication ID is derived from the old message ID."

type migration struct {
	c     *base.CLI
	f     *migrateFlags
	b     *broker.Broker
	sqs   *aws.SQS
	dir   string
	toSQS bool
	arns  string // prefix of ARNs on Amazon SQS; "" until known
	all   []*planned
}

func (p *migration) plan(ctx context.Context, names []string) error {
	names, err := p.names(ctx, names)
	if err != nil {
		return err
	}

	known := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if known[nameOf(name)] {
			continue
		}
		q, err := p.planQueue(ctx, name)
		if err != nil {
			return err
		}
		known[q.Queue] = true
		p.all = append(p.all, q)
		if q.DeadLetter != "" {
			names = append(names, q.DeadLetter)
		}
	}

	rank := map[string]int{}
	for _, q := range p.all {
		rank[q.DeadLetter] = 1
	}
	slices.SortStableFunc(p.all, func(a, b *planned) int { return cmp.Compare(rank[a.Queue], rank[b.Queue]) })
	return p.checkUnused()
}

func nameOf(reference string) string {
	return queue.NameInARN(reference[strings.LastIndexByte(reference, '/')+1:])
}

func (p *migration) names(ctx context.Context, names []string) ([]string, error) {
	switch {
	case len(names) > 0:
		return names, nil
	case p.toSQS:
		if names = p.b.ListQueues(""); len(names) == 0 {
			return nil, base.NotFoundf("no queues in %s", p.dir)
		}
		return names, nil
	}
	found, err := p.sqs.List(ctx, "")
	for _, q := range found {
		names = append(names, q.URL())
	}
	return names, err
}

func (p *migration) planQueue(ctx context.Context, reference string) (*planned, error) {
	q := &planned{Queue: nameOf(reference), Target: "Amazon SQS"}
	embedded := &embeddedEnd{b: p.b, name: q.Queue, arnOf: p.arnOf}
	if p.toSQS {
		reference = q.Queue
	}
	found, err := p.sqs.Queue(ctx, reference)
	isMissing := p.toSQS && errors.Is(err, queue.ErrNoQueue)
	if err != nil && !isMissing {
		return nil, err
	}

	if p.toSQS {
		q.from = embedded
		q.tags, err = p.b.Tags(q.Queue)
	} else {
		q.from, q.to = &sqsEnd{found}, embedded
		q.tags, err = found.Tags(ctx)
	}
	if err != nil {
		return nil, err
	}

	if p.toSQS && !isMissing {
		q.to = &sqsEnd{found}
	}
	if q.to != nil {
		q.Target = q.to.URL()
	}
	if err := q.readSource(ctx); err != nil {
		return nil, err
	}
	return q, p.readDestination(ctx, q)
}

func (q *planned) readSource(ctx context.Context) error {
	has, err := q.from.Attributes(ctx)
	if err != nil {
		return err
	}
	q.DeadLetter, q.maxReceives = queue.ParseRedrivePolicy(has["RedrivePolicy"])
	var missing []string
	q.Attributes, missing = migrate.Attributes(has)
	for _, name := range missing {
		q.Notes = append(q.Notes, name+" is not carried over")
	}

	q.Count, err = q.from.Count(ctx)
	if q.Count.InFlight > 0 {
		q.Notes = append(q.Notes, base.Plural(q.Count.InFlight, "message")+" in flight")
	}
	return err
}

func (p *migration) readDestination(ctx context.Context, q *planned) error {
	if q.to == nil {
		return nil
	}

	has, err := q.to.Attributes(ctx)
	if errors.Is(err, queue.ErrNoQueue) {
		return nil
	}
	if err != nil {
		return err
	}

	q.Exists = true
	for _, name := range migrate.Differing(q.Attributes, has) {
		q.Notes = append(q.Notes, fmt.Sprintf("%s stays %s; the source has %s", name, has[name], q.Attributes[name]))
	}

	if p.toSQS {
		p.learnARNs(has, q.Queue)
	}
	return nil
}

func (p *migration) learnARNs(attributes map[string]string, queueName string) {
	p.arns = strings.TrimSuffix(attributes["QueueArn"], queueName)
}

func (p *migration) arnOf(name string) string { return p.arns + name }

func (p *migration) checkUnused() error {
	for _, running := range api.Running(api.DataDirectories(p.c.StateFolder())) {
		for _, q := range running.Queues {
			if slices.ContainsFunc(p.all, func(m *planned) bool { return !q.Embedded && q.URL == m.from.URL() }) {
				return base.Conflictf("environment %q uses %s", running.Name, q.Name).
					Hint("stop it first, on every machine: nothing may receive from the queues during the migration")
			}
		}
	}
	return nil
}

var plannedList = base.List[*planned]{
	Heading: []string{"QUEUE", "TO", "ACTION", "WAITING", "DELAYED", "IN FLIGHT"},
	Name:    func(q **planned) string { return (*q).Queue },
	Row: func(at **planned) []string {
		q := *at
		action := "create"
		if q.Exists {
			action = "add to"
		}
		return []string{q.Queue, q.Target, action, fmt.Sprint(q.Count.Visible), fmt.Sprint(q.Count.Delayed),
			fmt.Sprint(q.Count.InFlight)}
	},
}

func (p *migration) printNotes(all []*planned) error {
	for _, q := range all {
		p.printEach(q.Queue, q.Notes)
	}
	p.c.PrintErrln(notCarried)
	return nil
}

func (p *migration) printEach(queueName string, lines []string) {
	for _, line := range lines {
		p.c.PrintErrf("%s: %s\n", queueName, base.Plain(line))
	}
}

// run creates dead-letter queues first, but moves their messages last.
func (p *migration) run(ctx context.Context) error {
	for _, q := range slices.Backward(p.all) {
		if q.Exists {
			continue
		}
		if err := p.create(ctx, q); err != nil {
			return fmt.Errorf("creating %s: %w", q.Queue, err)
		}
	}

	results, failed := p.moveAll(ctx)
	if err := base.PrintValue(p.c, *p.f.format, results, resultList.View(p.c, p.printDetails)); err != nil {
		return err
	}

	const again = "run the same command again to continue"
	switch {
	case failed != nil && ctx.Err() != nil:
		return base.Interrupted("interrupted", again)
	case errors.Is(failed, migrate.ErrUncertain):
		return base.Fail(base.ExitFailed, failed,
			"add --uncertain send if duplicates are better than losses, else --uncertain drop")
	case failed != nil:
		return base.Fail(base.ExitFailed, failed, again)
	case slices.ContainsFunc(results, func(r *migrate.Result) bool { return !r.Balanced() }):
		return base.Failedf("the counts do not balance").Hint("the journal of sent messages stays in " +
			filepath.Join(p.dir, "migrate") + "; the same command continues with it and counts again")
	}
	return nil
}

func (p *migration) moveAll(ctx context.Context) (results []*migrate.Result, err error) {
	for _, q := range p.all {
		result, err := p.move(ctx, q)
		if result != nil {
			results = append(results, result)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

func (p *migration) create(ctx context.Context, q *planned) error {
	if q.DeadLetter != "" {
		dead := p.all[slices.IndexFunc(p.all, func(d *planned) bool { return d.Queue == q.DeadLetter })]
		has, err := dead.to.Attributes(ctx)
		if err != nil {
			return err
		}
		q.Attributes["RedrivePolicy"] = migrate.RedrivePolicy(has["QueueArn"], q.maxReceives)
	}

	if !p.toSQS {
		return p.b.CreateQueue(ctx, q.Queue, q.Attributes, q.tags)
	}
	created, err := p.sqs.Create(ctx, q.Queue, q.Attributes, q.tags)
	if err != nil {
		return err
	}
	q.to = &sqsEnd{created}
	has, err := created.Attributes(ctx)
	p.learnARNs(has, q.Queue)
	return err
}

const migrateConcurrency = 16

func (p *migration) move(ctx context.Context, q *planned) (*migrate.Result, error) {
	folder := filepath.Join(p.dir, "migrate")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	journal, err := migrate.OpenJournal(filepath.Join(folder, q.Queue+".to-"+p.f.to+".journal"), q.from.URL(),
		q.to.URL())
	if err != nil {
		return nil, err
	}

	o := migrate.Options{FIFO: queue.IsFIFO(q.Queue), SourceExact: p.toSQS, DestinationExact: !p.toSQS,
		CutDelays: p.f.cutDelays, Wait: p.f.wait, Uncertain: migrate.Decision(p.f.uncertain), Concurrency: migrateConcurrency}
	if p.toSQS {
		o.MaxDelay = target.MaxDelay
	}

	if journal.Begun() {
		p.c.PrintErrf("%s: continuing, %s already sent\n", q.Queue, base.Plural(journal.Sent(), "message"))
	}

	watch := newMigrateWatch(p.c, q.Queue, journal.SourceBefore())
	o.Progress, o.Waiting = watch.progress, watch.waiting
	result, err := migrate.Run(ctx, q.from, q.to, journal, o)
	watch.end()
	result.Queue = q.Queue
	if err == nil && result.Balanced() {
		return result, journal.Remove()
	}

	return result, errors.Join(err, journal.Close())
}

var resultList = base.List[*migrate.Result]{
	Heading: []string{"QUEUE", "SOURCE", "SENT", "DELETED", "SKIPPED", "LEFT", "DESTINATION", "BALANCED"},
	Name:    func(r **migrate.Result) string { return (*r).Queue },
	Row: func(at **migrate.Result) []string {
		r := *at
		balanced := "yes"
		if !r.Balanced() {
			balanced = "NO"
		}
		return []string{r.Queue, fmt.Sprint(r.SourceCount), fmt.Sprint(r.Sent), fmt.Sprint(r.Deleted), fmt.Sprint(r.Skipped),
			fmt.Sprint(r.Left), fmt.Sprintf("%d -> %d", r.DestinationBefore, r.DestinationCount), balanced}
	},
}

func (p *migration) printDetails(results []*migrate.Result) error {
	for _, r := range results {
		p.printEach(r.Queue, r.Lines())
	}
	return nil
}
