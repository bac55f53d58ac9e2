package base

import (
	"cmp"
	"context"
	"strings"
	"time"

	"tendril/api"
)

const revisionPoll = 2 * time.Second

// AwaitRevision waits until all reachable instances have applied a change, for at most wait after the last batch, and
// prints which ones are unreachable. An error of failed ends the wait.
func AwaitRevision(ctx context.Context, c *CLI, client *api.Client, wait time.Duration,
	applied func(*api.Instances, *api.KnownInstance) bool, failed func(*api.Instances) error) error {
	lastBatches := ""
	deadline := time.Now().Add(wait)
	for {
		all, err := client.Instances(ctx)
		if err := cmp.Or(err, failed(&all)); err != nil {
			return err
		}
		done, behind, unreachable := all.Applied(func(one *api.KnownInstance) bool { return applied(&all, one) })

		batches := all.Batches()
		if batches != "" {
			deadline = time.Now().Add(wait)
		}
		if batches != "" && batches != lastBatches {
			c.PrintErrln(batches)
			lastBatches = batches
		}

		if behind == nil && all.Unread == "" {
			for _, name := range unreachable {
				c.PrintErrf("%s is unreachable: it applies this once it reaches the registry\n", Plain(name))
			}
			c.PrintErrf("applied by %s\n", Plural(done, "instance"))
			return nil
		}

		late := time.Now().After(deadline)
		switch {
		case late && all.Unread != "":
			return Conflictf("applied by this instance; the state of the others is unknown: %s", Plain(all.Unread)).
				Hint("they follow once the registry responds; 'tendril instances' shows when")
		case late:
			return Conflictf("applied by %s, not yet by %s", Plural(done, "instance"), strings.Join(behind, ", ")).
				Hint("'tendril instances' shows when they follow")
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(revisionPoll):
		}
	}
}
