package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/console"
)

// watcher finds the environment that works on a queue, so that it can be asked
// for outcomes.
func (c *cli) watcher(cmd *cobra.Command, p *place) (*console.Client, error) {
	client, err := c.dial(cmd)
	if err != nil {
		return nil, fmt.Errorf("--wait asks the environment that works on the queue: %w", err)
	}
	i := client.Instance
	var names []string
	for _, q := range i.Queues {
		if p.client != nil && q.Embedded && q.Name == p.name || p.remote != nil && q.URL == p.remote.URL() {
			return client, nil
		}
		names = append(names, q.Name)
	}
	works := "on no queue"
	if len(names) > 0 {
		works = "on queue " + strings.Join(names, ", ")
	}
	return nil, fail(exitUsage,
		fmt.Errorf("--wait would wait in vain: environment %q works %s, not on %s", i.Environment, works, p.name),
		"leave --wait out, or name the --data-dir of the environment that works on it")
}

// await prints what became of each message that was sent. The error says how
// many did not succeed in time.
func (c *cli) await(ctx context.Context, watch *console.Client, o *outbox, timeout time.Duration) error {
	failed, running, unknown := 0, 0, 0
	for _, id := range o.sent {
		d, known, err := watch.Outcome(ctx, id, timeout)
		if err != nil {
			return err
		}
		switch {
		case !known:
			unknown++
			d = console.Delivery{MessageID: id, Outcome: "unknown", Reason: "no attempt within " + timeout.String()}
		case d.Outcome == console.InWork:
			running++
		case !d.Tried():
			unknown++
		case !d.Done():
			failed++
		}
		if err := c.printOutcome(d, o.format); err != nil {
			return err
		}
	}
	return verdict(failed, running, unknown)
}

func (c *cli) printOutcome(d console.Delivery, f format) error {
	if f == asJSON {
		return printLineJSON(c.programs(), d)
	}
	_, err := fmt.Fprintln(c.out, plain(deliveryText(d), false))
	return err
}

// verdict is the error of messages that did not succeed.
func verdict(failed, running, unknown int) error {
	switch {
	case failed+running+unknown == 0:
		return nil
	case running+unknown == 0:
		return fail(exitFailed, fmt.Errorf("the first attempt of %s failed", plural(failed, "message")),
			"it is tried again until it is dead-lettered; see 'tendril status'")
	case failed+running == 0:
		return fail(exitFailed, fmt.Errorf("%s not attempted in time", plural(unknown, "message")),
			"see 'tendril status' for what holds the worker up")
	case failed+unknown == 0:
		return fail(exitFailed, fmt.Errorf("%s still in work", plural(running, "message")),
			"the app has not answered yet; wait longer with --timeout")
	}
	return fail(exitFailed,
		fmt.Errorf("%s failed, %d still in work, %d not attempted in time", plural(failed, "message"), running, unknown),
		"see 'tendril status'")
}

// deliveryText is a line for people about one attempt.
func deliveryText(d console.Delivery) string {
	text := fmt.Sprintf("%s %s", d.MessageID, d.Outcome)
	if d.Done() {
		return fmt.Sprintf("%s: status %d in %d ms, %d ms after the send", text, d.Status, d.DurationMS,
			d.WaitMS+d.DurationMS)
	}
	if d.Outcome == console.InWork {
		return text + fmt.Sprintf(": attempt %d has been running for %d ms", d.Attempt, d.DurationMS)
	}
	text += ": " + d.Reason
	if d.Answer != "" {
		text += ` "` + d.Answer + `"`
	}
	if d.ReceiveCount > 0 {
		text += fmt.Sprintf(" (receive %d)", d.ReceiveCount)
	}
	switch {
	case d.DeadLetterQueue != "":
		text += ", the last attempt: it goes to " + d.DeadLetterQueue
	case !d.RetryAt.IsZero():
		text += ", next attempt at " + d.RetryAt.Local().Format("15:04:05")
	}
	return text
}
