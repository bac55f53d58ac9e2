package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// selector says which messages of a source are meant. The zero value means none.
type selector struct {
	ids   []string
	all   bool
	match string
	// reason selects those that failed last for it, on an embedded queue; nil for any, "" for none that was recorded.
	reason *string
	limit  int // at most so many; 0 for no bound
	// allUnlessNamed: a selector that names nothing means all.
	allUnlessNamed bool
}

// addSelector gives a verb the flags of a selector.
func addSelector(cmd *cobra.Command) *selector {
	p := &selector{}
	cmd.Flags().BoolVar(&p.all, "all", false, "Select every message.")
	addMatch(cmd, p)
	return p
}

// addMatch gives a verb the flags that narrow a selector down.
func addMatch(cmd *cobra.Command, p *selector) {
	cmd.Flags().StringVar(&p.match, "match", "", "Select the messages whose body contains this text.")
	addReason(cmd, p)
	cmd.Flags().IntVarP(&p.limit, "limit", "n", 0, "Maximum messages to select, the oldest first.")
}

// addReason gives a verb the flag that selects by reason.
func addReason(cmd *cobra.Command, p *selector) {
	cmd.Flags().Func("reason", "Select those of one reason that 'tendril dead reasons' shows (embedded queue only).",
		func(text string) error {
			p.reason = &text
			return nil
		})
}

// knownBy refuses a reason where the queue keeps none.
func (p *selector) knownBy(q *targetQueue) error {
	if p.reason != nil && q.remote != nil {
		return fail(exitUsage, errors.New("--reason works on the embedded queue only"),
			"Amazon SQS does not know why a message failed")
	}
	return nil
}

// isEverything reports whether every message is selected.
func (p *selector) isEverything() bool {
	return p.all && p.match == "" && p.reason == nil && p.limit == 0
}

func (p *selector) check(args []string) error {
	p.ids = args
	broad := p.all || p.match != "" || p.reason != nil || p.limit != 0
	if p.allUnlessNamed && len(args) == 0 && !broad {
		p.all, broad = true, true
	}
	switch {
	case p.limit < 0:
		return fail(exitUsage, fmt.Errorf("--limit %d is out of range", p.limit), "use 1 or more")
	case len(p.ids) > 0 && broad:
		return fail(exitUsage, errors.New("messages are named by id and by --all, --match, --reason or --limit"),
			"give only one of them")
	case len(p.ids) == 0 && !broad:
		return fail(exitUsage, errors.New("no messages are named"),
			"give ids, or --all, --match TEXT, --reason TEXT or --limit N")
	}
	return nil
}

func (p *selector) text() string {
	kind := ""
	if p.match != "" {
		kind += fmt.Sprintf(" containing %q", p.match)
	}
	if p.reason != nil {
		kind += fmt.Sprintf(" that failed with %q", *p.reason)
	}
	switch {
	case len(p.ids) > 0:
		return plural(len(p.ids), "message")
	case p.limit > 0 && kind != "":
		return "at most " + plural(p.limit, "message") + kind
	case p.limit > 0:
		return "the oldest " + plural(p.limit, "message")
	}
	return "all messages" + kind
}

// selection is a selector while a source is gone through.
type selection struct {
	*selector
	missing map[string]bool // ids that did not come by yet
	met     map[string]bool // ids that came by
	taken   int
	stale   bool // the last portion held nothing new
}

func (p *selector) begin() *selection {
	missing := map[string]bool{}
	for _, id := range p.ids {
		missing[id] = true
	}
	return &selection{selector: p, missing: missing, met: map[string]bool{}}
}

// take returns those of a portion that are selected. A message that comes by
// again, because it died once more meanwhile, is left alone.
func (p *selection) take(portion []held) []held {
	var chosen []held
	p.stale = len(portion) > 0
	for _, m := range portion {
		if p.met[m.ID] {
			continue
		}
		p.met[m.ID], p.stale = true, false
		if p.full() || len(p.ids) > 0 && !p.missing[m.ID] || !strings.Contains(m.Body, p.match) {
			continue
		}
		delete(p.missing, m.ID)
		p.taken++
		chosen = append(chosen, m)
	}
	return chosen
}

func (p *selection) full() bool {
	return len(p.ids) > 0 && len(p.missing) == 0 || p.limit > 0 && p.taken >= p.limit
}

// done reports whether nothing more is to be selected.
func (p *selection) done() bool { return p.full() || p.stale }

// lost is the error of ids that never came by.
func (p *selection) lost(queueName string) error {
	if len(p.missing) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(p.missing)), ", ")
	return fail(exitNotFound, fmt.Errorf("queue %s holds no message %s", queueName, names),
		"'tendril dead list' shows what it holds")
}

// portion is how many messages are read at once.
func (p *selector) portion() int {
	if p.limit > 0 {
		return min(p.limit, largePortion)
	}
	return largePortion
}

// expect is how many messages an act will meet, where the queue holds count.
func (p *selector) expect(count int) int {
	switch {
	case len(p.ids) > 0:
		return len(p.ids)
	case p.match != "" || p.reason != nil:
		return -1
	case p.limit > 0:
		return min(p.limit, count)
	}
	return count
}

// The sizes of portions: what one request moves, and what is read ahead while only a bounded number is wanted.
const (
	largePortion = 100
	smallPortion = 10
)
