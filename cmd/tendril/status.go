package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tendril/console"
)

func (c *cli) newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running environment: health, queues, ledger, worker, app",
		Long: `Shows what the environment is doing. The ledger accounts for every message that
was ever accepted: sent = done + dead-lettered + expired + purged + live, where
dead-lettered are those that lie in a dead-letter queue now.`,
		Args: cobra.NoArgs,
	}
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		st, err := client.Status(ctx)
		if err != nil {
			return err
		}
		if *f == asJSON {
			return c.printJSON(st)
		}
		return c.printStatus(&st)
	})
	return cmd
}

func (c *cli) printStatus(st *console.Status) error {
	fmt.Fprintf(c.out, "%s: %s\n", st.Environment, healthText(st))
	fmt.Fprintf(c.out, "tendril %s, process %d, up %s\n", st.Version, st.PID, since(st.StartedAt))
	for _, check := range st.Checks {
		if !check.OK {
			fmt.Fprintf(c.out, "not ready: %s: %s\n", check.Name, plain(check.Detail, false))
		}
	}
	for _, line := range append(breakerLines(st), stateLines(st)...) {
		fmt.Fprintln(c.out, line)
	}
	if len(st.Queues) > 0 {
		if err := c.printSection(queueTable(st.Queues)); err != nil {
			return err
		}
	}
	if st.Ledger != nil {
		fmt.Fprintf(c.out, "\nledger: %s\n", accountText(*st.Ledger))
	}
	for i := range st.Workers {
		fmt.Fprintf(c.out, "\nworker: %s\n", workerText(&st.Workers[i]))
	}
	for i := range st.Limits {
		fmt.Fprintf(c.out, "\nlimit: %s\n", limitText(&st.Limits[i]))
	}
	if st.Scaling != nil {
		fmt.Fprintf(c.out, "\nscaling of %s\n", scalingText(st.Scaling))
	}
	if st.Tasks != nil {
		fmt.Fprintf(c.out, "\nperiodic tasks: %s\n", tasksText(st.Tasks))
	}
	if len(st.App) > 0 {
		if err := c.printSection(appTable(st.App)); err != nil {
			return err
		}
	}
	if len(st.Problems) > 0 {
		return c.printSection(problemTable(st.Problems))
	}
	return nil
}

// printSection prints a table below an empty line.
func (c *cli) printSection(rows [][]string) error {
	fmt.Fprintln(c.out)
	return c.printTable(rows)
}

// healthText is the first line: the state, and whether it is ready.
func healthText(st *console.Status) string {
	words := []string{}
	if st.State != "" {
		words = append(words, st.State)
	}
	if st.Ready {
		words = append(words, "ready")
	} else {
		words = append(words, "NOT READY")
	}
	words = append(words, pauses(st.Workers)...)
	return strings.Join(words, ", ")
}

// pauses says what a person paused: all queues with one reason, or each by name.
func pauses(workers []console.Worker) (words []string) {
	for _, w := range workers {
		if w.Paused {
			words = append(words, pausedText(true, w.PauseReason)+" ("+w.Queue+")")
		}
	}
	if len(workers) == 1 {
		for i := range words {
			words[i] = pausedText(true, workers[0].PauseReason)
		}
	}
	return words
}

func accountText(a console.Account) string {
	text := fmt.Sprintf("sent %d = done %d + dead-lettered %d + expired %d + purged %d + live %d",
		a.Sent, a.Done, a.DeadLettered, a.Expired, a.Purged, a.Live)
	if off := a.Off(); off != 0 {
		text += fmt.Sprintf(" (DOES NOT BALANCE: off by %d; please report this)", off)
	}
	return text
}

func workerText(w *console.Worker) string {
	state := "receiving from " + w.Queue
	if !w.Receiving {
		state = "NOT " + state
	}
	if len(w.GateReasons) > 0 {
		state += ": " + plain(strings.Join(w.GateReasons, "; "), false)
	}
	text := fmt.Sprintf("%s\n        %d of %d in work, %d waiting for a slot\n"+
		"        received %d, done %d, failed %d, unreached %d, given back %d, expired %d",
		state, w.InWork, w.Concurrency, w.Prefetched, w.Received, w.Done, w.Failed, w.Unreached, w.Returned, w.Expired)
	if w.Throttled > 0 {
		text += fmt.Sprintf(", throttled %d", w.Throttled)
	}
	if w.PerSecond > 0 {
		text += fmt.Sprintf(", %.1f/s", w.PerSecond)
	}
	if pace := paceText(w); pace != "" {
		text += "\n        " + pace
	}
	if w.LastError != "" {
		text += "\n        last error: " + plain(w.LastError, false)
	}
	return text
}

func appTable(app []console.Process) [][]string {
	rows := [][]string{{"PROCESS", "STATE", "READY", "PID", "SINCE", "RESTARTS", "LAST EXIT"}}
	for _, p := range app {
		ready, pid := "no", "-"
		if p.Ready {
			ready = "yes"
		}
		if p.PID != 0 {
			pid = fmt.Sprint(p.PID)
		}
		rows = append(rows, []string{p.Name, p.State, ready, pid, since(p.Since), fmt.Sprint(p.Restarts),
			or(plain(p.LastExit, false))})
	}
	return rows
}

func problemTable(problems []console.Problem) [][]string {
	rows := [][]string{{"FAILED", "QUEUE", "LAST", "REASON", "LAST MESSAGE"}}
	for _, p := range problems {
		rows = append(rows, []string{fmt.Sprint(p.Count), p.Queue, since(p.Last) + " ago", plain(p.Reason, false),
			p.LastMessageID})
	}
	return rows
}
