package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/deploy"
	"tendril/internal/cli/queues"
	"tendril/internal/cli/tasks"
	"tendril/internal/config"
	"tendril/internal/observe/health"
)

// NewStatus returns the command 'tendril status'.
func NewStatus(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running environment: health, queues, ledger, worker, app",
		Long: `Shows the current state of the environment. The ledger accounts for every message ever accepted:
sent = done + dead-lettered + expired + purged + live, where dead-lettered counts the
messages currently in a dead-letter queue.`,
		Args: cobra.NoArgs,
	}
	instance := base.AddInstance(cmd)
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (api.Status, error) {
		on, err := instance.Client(ctx, client)
		if err != nil {
			return api.Status{}, err
		}
		return on.Status(ctx)
	}, base.ViewOf(func(st api.Status) error { return printStatus(c, &st) },
		func(st api.Status) []string { return []string{st.Environment} }))
	base.AddWatch(c, cmd)
	return cmd
}

func printStatus(c *base.CLI, st *api.Status) error {
	if err := base.PrintCells(c, base.Cells{base.Bold.Text(st.Environment), base.PlainText.Text(": "),
		base.ReadyStyle(st).Text(healthText(st))}); err != nil {
		return err
	}

	c.Printf("tendril %s, process %d, up %s\n", st.Version, st.PID, base.Since(st.StartedAt))
	for _, check := range st.Checks {
		if !check.OK {
			c.Printf("not ready: %s: %s\n", check.Name, base.Plain(check.Detail))
		}
	}

	for _, line := range breakerLines(st) {
		c.Println(line)
	}
	if st.Health != nil {
		if err := printReport(c, "health: ", st.Health); err != nil {
			return err
		}
	}
	if st.Deployment != nil {
		c.Printf("deployment: %s\n", deploymentText(st.Deployment))
	}
	if st.PoisonMessages != nil {
		c.Println(poisonText(st.PoisonMessages))
	}

	if len(st.Queues) > 0 {
		if err := c.PrintSection(queues.List.Table(st.Queues)); err != nil {
			return err
		}
	}

	if st.Ledger != nil {
		c.Printf("\nledger: %s\n", accountText(*st.Ledger))
	}

	for i := range st.Workers {
		c.Printf("\nworker: %s\n", workerText(&st.Workers[i]))
	}

	for i := range st.Limits {
		c.Printf("\nlimit: %s\n", limitText(&st.Limits[i]))
	}

	if st.Scaling != nil {
		c.Printf("\nscaling of %s\n", scalingLines(st.Scaling).Join(indented))
	}

	if st.Tasks != nil {
		c.Printf("\nperiodic tasks: %s\n", tasks.Summary(st.Tasks))
	}

	if len(st.App) > 0 {
		if err := c.PrintSection(appTable(st.App)); err != nil {
			return err
		}
	}

	if len(st.Problems) > 0 {
		return c.PrintSection(problemTable(st.Problems))
	}

	return nil
}

func healthText(st *api.Status) string {
	var words base.Words
	words.Add(st.State)
	words.AddIf(st.Ready, "ready")
	words.AddIf(!st.Ready, "NOT READY")
	for _, w := range st.Workers {
		text := base.QueueText(&w.Progress)
		if len(st.Workers) > 1 {
			text += " (" + w.Queue + ")"
		}
		words.AddIf(w.Paused, text)
	}
	return words.Join(", ")
}

func accountText(a api.Account) string {
	text := fmt.Sprintf("sent %d = done %d + dead-lettered %d + expired %d + purged %d + live %d",
		a.Sent, a.Done, a.DeadLettered, a.Expired, a.Purged, a.Live)
	if off := a.Off(); off != 0 {
		text += fmt.Sprintf(" (DOES NOT BALANCE: off by %d; please report this)", off)
	}
	return text
}

const indented = "\n        "

func workerText(w *api.Worker) string {
	state := "receiving from " + w.Queue
	if !w.Receiving {
		state = "NOT " + state
	}
	if len(w.GateReasons) > 0 {
		state += ": " + base.Plain(strings.Join(w.GateReasons, "; "))
	}

	counts := base.Words{fmt.Sprintf("received %d, done %d, failed %d, unreached %d, returned %d, expired %d", w.Received,
		w.Done, w.Failed, w.Unreached, w.Returned, w.Expired)}
	counts.AddIf(w.Filtered > 0, fmt.Sprintf("filtered out %d", w.Filtered))
	counts.AddIf(w.Throttled > 0, fmt.Sprintf("throttled %d", w.Throttled))
	counts.AddIf(w.PerSecond > 0, fmt.Sprintf("%.1f/s", w.PerSecond))

	lines := base.Words{state, fmt.Sprintf("%d of %d in flight, %d waiting for a slot", w.InWork, w.Concurrency, w.Prefetched),
		counts.Join(", ")}
	lines.Add(paceText(w))
	lines.AddIf(w.LastError != "", "last error: "+base.Plain(w.LastError))
	return lines.Join(indented)
}

func appTable(app []api.Process) [][]string {
	rows := [][]string{{"PROCESS", "STATE", "READY", "PID", "SINCE", "RESTARTS", "LAST EXIT"}}
	for _, p := range app {
		ready, pid := "no", "-"
		if p.Ready {
			ready = "yes"
		}
		if p.PID != 0 {
			pid = fmt.Sprint(p.PID)
		}
		rows = append(rows, []string{p.Name, p.State, ready, pid, base.Since(p.Since), fmt.Sprint(p.Restarts),
			cmp.Or(base.Plain(p.LastExit), "-")})
	}
	return rows
}

func problemTable(problems []api.Problem) [][]string {
	rows := [][]string{{"FAILED", "QUEUE", "FIRST", "LAST", "REASON", "LAST MESSAGE"}}
	for _, p := range problems {
		rows = append(rows, []string{fmt.Sprint(p.Count), p.Queue, base.Since(p.First) + " ago", base.Since(p.Last) + " ago",
			base.Plain(p.Reason), p.LastMessageID})
	}
	return rows
}

func breakerLines(st *api.Status) (lines []string) {
	for i := range st.Limits {
		if st.Limits[i].Breaker == "open" {
			lines = append(lines, openBreakerLines(&st.Limits[i], st.Workers)...)
		}
	}
	return lines
}

func openBreakerLines(l *api.Limit, workers []api.Worker) (lines []string) {
	var stopped, trying []string
	for i := range workers {
		w := &workers[i]
		switch {
		case !slices.Contains(l.Queues, w.Queue):
		case w.Receiving:
			trying = append(trying, w.Queue)
		default:
			stopped = append(stopped, w.Queue)
		}
	}

	trial := cmp.Or(nextTrial(l), "the next message is a trial")
	if len(stopped) > 0 {
		lines = append(lines, "NOT receiving from "+strings.Join(stopped, ", ")+": the breaker is open, "+trial)
	}
	if len(trying) > 0 {
		lines = append(lines, "receiving from "+strings.Join(trying, ", ")+" for a trial: the breaker is open")
	}
	if len(lines) == 0 {
		lines = append(lines, "NOT delivering to "+base.Plain(l.Target)+": the breaker is open, "+trial)
	}
	return lines
}

func nextTrial(l *api.Limit) string {
	left := time.Until(l.TrialAt)
	if left <= 0 {
		return ""
	}
	return "next trial in " + base.Age(left+time.Second)
}

func deploymentText(d *api.Deployment) string {
	to := base.Plain(d.To)
	switch {
	case d.State == api.DeployDone:
		return to + ", " + base.Since(d.Ended) + " ago"
	case d.Aborted:
		return to + " was aborted " + base.Since(d.Ended) + " ago: " + base.Plain(d.Error)
	case d.State == api.DeployRolledBack:
		return to + " was rolled back " + base.Since(d.Ended) + " ago: " + base.Plain(d.Error)
	case d.Over():
		return to + " has the messages, but failed " + base.Since(d.Ended) + " ago: " + base.Plain(d.Error)
	}
	return deploy.StepText(d) + ", for " + base.Since(d.Since)
}

func poisonText(p *api.PoisonMessages) string {
	if p.Broken {
		return "every message crashes the app: the app itself is broken"
	}
	return fmt.Sprintf("suspected poison messages: %d in quarantine, %d confirmed", p.Quarantined, p.Poison)
}

func paceText(w *api.Worker) string {
	var words base.Words
	words.AddIf(w.Why != "" && w.Receiving && w.State != api.QueueFailing, base.Plain(w.Why))
	words.AddIf(w.DrainSeconds > 0, "drains in "+base.Seconds(w.DrainSeconds))
	words.AddIf(w.LongestDeliverySeconds >= 1, "longest delivery "+base.Seconds(w.LongestDeliverySeconds))
	words.AddIf(w.TurnShare > 0 && w.TurnShare < 1, fmt.Sprintf("%.0f%% of the deliveries in the last minute", 100*w.TurnShare))
	words.AddIf(w.LongestWaitSeconds >= 1, "waited up to "+base.Seconds(w.LongestWaitSeconds)+" in the last minute")
	return words.Join(", ")
}

func limitText(l *api.Limit) string {
	words := base.Words{fmt.Sprintf("%d in flight", l.InWork)}
	if l.Concurrency > 0 {
		words[0] = fmt.Sprintf("%d of %d in flight", l.InWork, l.Concurrency)
	}
	words.AddIf(l.Rate > 0, fmt.Sprintf("at most %g/s", l.Rate))
	if l.Breaker != "" {
		words.Add("breaker " + l.Breaker)
		words.Add(nextTrial(l))
	}
	words.AddIf(l.Failing > 0, fmt.Sprintf("%.0f%% failing", 100*l.Failing))
	words.AddIf(l.Refused > 0, fmt.Sprintf("held back %d times", l.Refused))
	return base.Plain(l.Target) + indented + words.Join(", ")
}

func scalingLines(s *api.Scaling) base.Words {
	if s.Target == config.ScaleNone {
		return base.Words{"nothing: " + base.Plain(s.Problem)}
	}

	desired := "no decision yet"
	if s.Desired > 0 {
		desired = fmt.Sprintf("%d desired", s.Desired)
	}
	text := fmt.Sprintf("%s: %s (%d to %d), %d ready", scaledThing(s.Target), desired, s.MinSize, s.MaxSize, s.Ready)
	if !s.IsLeader {
		text += ", another instance is the leader"
	}

	lines := base.Words{text}
	i := slices.IndexFunc(s.Decisions, func(d api.ScaleDecision) bool { return d.From != d.Desired && d.Applied })
	if i >= 0 {
		d := &s.Decisions[i]
		lines.Add(fmt.Sprintf("last change %s ago, from %d to %d: %s", base.Since(d.At), d.From, d.Desired, base.Plain(d.Why)))
	}
	lines.AddIf(s.Problem != "", "PROBLEM: "+base.Plain(s.Problem))
	return lines
}

func scaledThing(target string) string {
	group, isGroup := strings.CutPrefix(target, config.ScaleGroup)
	service, isService := strings.CutPrefix(target, config.ScaleService)
	switch {
	case target == config.ScaleAuto:
		return "its Auto Scaling group or ECS service, else processes"
	case isGroup:
		return "the group " + base.Plain(group)
	case isService:
		return "the service " + base.Plain(service)
	case target == config.ScalePublish:
		return "instances, by published metrics"
	}
	return "processes on this machine"
}

// NewHealth returns the command 'tendril health'.
func NewHealth(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show the health of the environment, with its causes",
		Long: `Shows the health with the names of Elastic Beanstalk (Ok, Info, Warning, Degraded, Severe,
Pending or No Data), and its causes. The exit status suits monitoring systems: 0 for Ok and Info,
1 for Warning, 2 for Degraded and Severe, 3 for unknown, 6 if no environment is running. If several
instances share a registry, the health of all is shown first. The exit status is this instance's, or
with --fleet the environment's.`,
		Args: cobra.NoArgs,
	}

	var fleet bool
	cmd.Flags().BoolVar(&fleet, "fleet", false, "The exit status is the environment's instead of this instance's")
	base.AddDataDir(cmd)
	f := base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, _ []string) error {
		client, err := c.Dial(cmd)
		if err != nil {
			return err
		}
		report, err := client.Health(ctx)
		if err != nil {
			return err
		}
		name := client.Instance.Environment
		if err := f.Print(c, report, []string{name}, func() error { return printReport(c, "", &report) }); err != nil {
			return err
		}

		status := report.Status
		if fleet && report.Environment != nil {
			status = report.Environment.Status
		}
		if code := status.ExitCode(); code != base.ExitOK {
			return base.Fail(code, fmt.Errorf("environment %q is %s", name, status))
		}
		return nil
	})
	return cmd
}

func sinceText(s health.Status, color health.Color, since time.Time) string {
	text := fmt.Sprintf("%s (%s)", s, color)
	if !since.IsZero() {
		text += " for " + base.Since(since)
	}
	return text
}

func printReport(c *base.CLI, prefix string, r *health.Report) error {
	if r.Environment.IsShared() {
		prefix = "this instance: "
		if err := printSharedHealth(c, r.Environment); err != nil {
			return err
		}
	}

	if err := base.PrintCells(c, base.Cells{base.PlainText.Text(prefix),
		base.HealthStyle(r.Status).Text(sinceText(r.Status, r.Color, r.Since))}); err != nil {
		return err
	}
	for _, cause := range r.Each() {
		if err := printCause(c, &cause, cause.Text); err != nil {
			return err
		}
	}
	return nil
}

func printSharedHealth(c *base.CLI, e *health.Environment) error {
	cells := base.Cells{base.PlainText.Text("environment: "),
		base.HealthStyle(e.Status).Text(sinceText(e.Status, e.Color, e.Since))}
	if counts := e.Counts(); counts != "" {
		cells = append(cells, base.PlainText.Text(": "+counts))
	}
	if err := base.PrintCells(c, cells); err != nil {
		return err
	}
	for i := range e.Causes {
		if err := printCause(c, &e.Causes[i].Cause, sharedText(&e.Causes[i])); err != nil {
			return err
		}
	}
	return nil
}

func printCause(c *base.CLI, cause *health.Cause, text string) error {
	const indent = "        "
	err := base.PrintCells(c, base.Cells{base.PlainText.Text(indent),
		base.HealthStyle(cause.Status).Text(cause.Head(time.Now()) + ":"), base.PlainText.Text(" " + text)})
	if err == nil && cause.Remedy != "" {
		_, err = c.Println(indent + "    hint: " + base.Plain(cause.Remedy))
	}
	return err
}

func sharedText(cause *health.SharedCause) string {
	if names := cause.Affected(); names != "" {
		return cause.Text + " [" + names + "]"
	}
	return cause.Text
}
