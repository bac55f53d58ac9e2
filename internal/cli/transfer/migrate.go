package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/internal/config"
	"tendril/internal/migrate"
	"tendril/queue"
)

type migrateFlags struct {
	from, to, region string
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
	cmd.RunE = base.Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return migrateQueues(ctx, c, cmd, args, f)
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
		return base.Usagef("queue names cannot be combined with --all").Hint("use only one of them")
	case f.uncertain != "" && f.uncertain != string(migrate.Resend) && f.uncertain != string(migrate.Drop):
		return base.Usagef("invalid --uncertain %q", f.uncertain).Hint("use send or drop")
	case f.wait < 0:
		return base.Usagef("--wait %s is out of range", f.wait).Hint("use 0s or more")
	}
	return nil
}

func migrateQueues(ctx context.Context, c *base.CLI, cmd *cobra.Command, args []string, f *migrateFlags) error {
	if err := f.check(args); err != nil {
		return err
	}

	b, dir, err := openQueues(c, cmd, f)
	if err != nil {
		return err
	}

	defer func() { _ = b.Close() }() // after an error; otherwise, the broker is closed below
	sqs, err := aws.OpenSQS(ctx, &aws.Options{Region: f.region})
	if err != nil {
		return err
	}

	defer sqs.Close()
	p := &migration{c: c, f: f, b: b, sqs: sqs, dir: dir, toSQS: f.to == target.BackendSQS}
	if err := p.plan(ctx, args); err != nil {
		return err
	}

	if base.IsDryRun(cmd) {
		err := p.show()
		c.PrintErrln(base.Unchanged)
		return err
	}

	err = p.run(ctx)
	return errors.Join(err, b.Close())
}

func openQueues(c *base.CLI, cmd *cobra.Command, f *migrateFlags) (*broker.Broker, string, error) {
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
	isDead      bool
	from, to    queueEnd
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

// plan puts dead-letter queues last.
func (p *migration) plan(ctx context.Context, names []string) error {
	names, err := p.names(ctx, names)
	if err != nil {
		return err
	}

	known := map[string]*planned{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if known[afterSlash(name)] != nil {
			continue
		}
		q, err := p.look(ctx, name)
		if err != nil {
			return err
		}
		known[q.Queue] = q
		p.all = append(p.all, q)
		if q.DeadLetter != "" {
			names = append(names, q.DeadLetter)
		}
	}

	for _, q := range p.all {
		if dead := known[q.DeadLetter]; dead != nil {
			dead.isDead = true
		}
	}

	slices.SortStableFunc(p.all, func(a, b *planned) int {
		if a.isDead == b.isDead {
			return 0
		}
		if a.isDead {
			return 1
		}
		return -1
	})
	return p.notServed()
}

func afterSlash(reference string) string {
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

func (p *migration) look(ctx context.Context, name string) (*planned, error) {
	q := &planned{Queue: afterSlash(name)}
	embedded := &embeddedEnd{b: p.b, name: q.Queue, arnOf: p.arnOf}
	var remote *sqsEnd
	found, err := p.sqs.Queue(ctx, name)
	if p.toSQS {
		found, err = p.sqs.Queue(ctx, q.Queue)
	}

	if err == nil {
		remote = &sqsEnd{found}
	} else if !p.toSQS || !errors.Is(err, queue.ErrNoQueue) {
		return nil, err
	}

	q.Target = "Amazon SQS"
	q.from = queueEnd(embedded)
	if !p.toSQS {
		q.from, q.Target = remote, embedded.address()
	}

	has, err := q.from.attributes(ctx)
	if err != nil {
		return nil, err
	}

	q.DeadLetter, q.maxReceives = queue.ParseRedrivePolicy(has["RedrivePolicy"])
	var missing []string
	q.Attributes, missing = migrate.Attributes(has)
	for _, name := range missing {
		q.Notes = append(q.Notes, name+" is not carried over")
	}

	if q.Count, err = q.from.Count(ctx); err != nil {
		return nil, err
	}

	if q.Count.InFlight > 0 {
		q.Notes = append(q.Notes, base.Plural(q.Count.InFlight, "message")+" in flight")
	}

	if q.tags, err = p.tags(ctx, q.Queue, remote); err != nil {
		return nil, err
	}

	switch {
	case !p.toSQS:
		q.to = embedded
	case remote != nil:
		q.to, q.Target = remote, remote.address()
	}

	return q, p.compare(ctx, q)
}

func (p *migration) tags(ctx context.Context, name string, remote *sqsEnd) (map[string]string, error) {
	if p.toSQS {
		return p.b.Tags(name)
	}
	return remote.q.Tags(ctx)
}

func (p *migration) compare(ctx context.Context, q *planned) error {
	if q.to == nil {
		return nil
	}

	has, err := q.to.attributes(ctx)
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
		p.arns = strings.TrimSuffix(has["QueueArn"], q.Queue)
	}

	return nil
}

func (p *migration) arnOf(name string) string { return p.arns + name }

func (p *migration) notServed() error {
	dirs := api.DataDirectories(config.StateFolder(p.c.Environ, os.Geteuid() == 0))
	for _, running := range api.Running(dirs) {
		for _, q := range running.Queues {
			if slices.ContainsFunc(p.all, func(m *planned) bool { return !q.Embedded && q.URL == m.from.address() }) {
				return base.Conflictf("environment %q uses %s", running.Environment, q.Name).
					Hint("stop it first, on every machine: nothing may receive from the queues during the migration")
			}
		}
	}
	return nil
}

func (p *migration) show() error {
	return p.f.format.Print(p.c, p.all, base.Named(func(q **planned) string { return (*q).Queue })(p.all), p.showTable)
}

func (p *migration) showTable() error {
	rows := [][]string{{"QUEUE", "TO", "ACTION", "VISIBLE", "DELAYED", "IN FLIGHT"}}
	for _, q := range p.all {
		action := "create"
		if q.Exists {
			action = "add to"
		}
		rows = append(rows, []string{q.Queue, q.Target, action, fmt.Sprint(q.Count.Visible), fmt.Sprint(q.Count.Delayed),
			fmt.Sprint(q.Count.InFlight)})
	}

	if err := p.c.PrintTable(rows); err != nil {
		return err
	}

	for _, q := range p.all {
		for _, note := range q.Notes {
			p.c.PrintErrf("%s: %s\n", q.Queue, base.Plain(note))
		}
	}

	p.c.PrintErrln(notCarried)
	return nil
}

// run creates dead-letter queues first, but moves their messages last.
func (p *migration) run(ctx context.Context) error {
	for _, q := range slices.Backward(p.all) {
		if err := p.create(ctx, q); err != nil {
			return fmt.Errorf("creating %s: %w", q.Queue, err)
		}
	}

	var results []*migrate.Result
	var failed error
	for _, q := range p.all {
		result, err := p.move(ctx, q)
		if result != nil {
			results = append(results, result)
		}
		failed = err
		if err != nil {
			break
		}
	}

	if err := p.print(results); err != nil {
		return err
	}

	again := "run the same command again to continue"
	switch {
	case failed != nil && ctx.Err() != nil:
		return base.Fail(base.ExitSignal+int(syscall.SIGINT), errors.New("interrupted"), again)
	case errors.Is(failed, migrate.ErrUncertain):
		return base.Fail(base.ExitFailed, failed,
			"add --uncertain send if duplicates are better than losses, else --uncertain drop")
	case failed != nil:
		return base.Fail(base.ExitFailed, failed, again)
	}

	for _, r := range results {
		if !r.Balanced() {
			return base.Failedf("the counts do not balance").Hint("the journal of sent messages stays in " +
				filepath.Join(p.dir, "migrate") + "; the same command continues with it and counts again")
		}
	}

	return nil
}

func (p *migration) create(ctx context.Context, q *planned) error {
	if q.Exists {
		return nil
	}

	attributes := q.Attributes
	if q.DeadLetter != "" {
		i := slices.IndexFunc(p.all, func(d *planned) bool { return d.Queue == q.DeadLetter })
		has, err := p.all[i].to.attributes(ctx)
		if err != nil {
			return err
		}
		attributes["RedrivePolicy"] = migrate.RedrivePolicy(has["QueueArn"], q.maxReceives)
	}

	if !p.toSQS {
		return p.b.CreateQueue(ctx, q.Queue, attributes, q.tags)
	}

	made, err := p.sqs.Create(ctx, q.Queue, attributes, q.tags)
	if err != nil {
		return err
	}

	end := &sqsEnd{made}
	q.to = end
	has, err := end.attributes(ctx)
	p.arns = strings.TrimSuffix(has["QueueArn"], q.Queue)
	return err
}

const migrateConcurrency = 16

func (p *migration) move(ctx context.Context, q *planned) (*migrate.Result, error) {
	folder := filepath.Join(p.dir, "migrate")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	journal, err := migrate.OpenJournal(filepath.Join(folder, q.Queue+".to-"+p.f.to+".journal"), q.from.address(),
		q.to.address())
	if err != nil {
		return nil, err
	}

	o := migrate.Options{FIFO: strings.HasSuffix(q.Queue, target.FifoSuffix), SourceExact: p.toSQS, DestinationExact: !p.toSQS,
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

func (p *migration) print(results []*migrate.Result) error {
	names := base.Named(func(r **migrate.Result) string { return (*r).Queue })(results)
	return p.f.format.Print(p.c, results, names, func() error { return p.printTable(results) })
}

func (p *migration) printTable(results []*migrate.Result) error {
	rows := [][]string{{"QUEUE", "SOURCE", "SENT", "DELETED", "SKIPPED", "LEFT", "DESTINATION", "BALANCED"}}
	for _, r := range results {
		balanced := "yes"
		if !r.Balanced() {
			balanced = "NO"
		}
		rows = append(rows, []string{r.Queue, fmt.Sprint(r.SourceCount), fmt.Sprint(r.Sent), fmt.Sprint(r.Deleted),
			fmt.Sprint(r.Skipped), fmt.Sprint(r.Left),
			fmt.Sprintf("%d -> %d", r.DestinationBefore, r.DestinationCount), balanced})
	}

	if err := p.c.PrintTable(rows); err != nil {
		return err
	}

	for _, r := range results {
		for _, line := range r.Lines() {
			p.c.PrintErrf("%s: %s\n", r.Queue, base.Plain(line))
		}
	}

	return nil
}
