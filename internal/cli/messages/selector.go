package messages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

// selector says which messages of a source are meant. The zero value means none.
type selector struct {
	ids   []string
	all   bool
	match string
	// attribute is NAME or NAME=VALUE; "" for any.
	attribute string
	// since and until bound when a message was dead-lettered, as written: a duration before now, or a time.
	since, until string
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

// addDeadFilter gives a verb the flags that choose dead letters.
func addDeadFilter(cmd *cobra.Command, p *selector) {
	cmd.Flags().StringVar(&p.attribute, "attribute", "", "Select those with this attribute: NAME, or NAME=VALUE.")
	cmd.Flags().StringVar(&p.since, "since", "",
		"Select those dead since then: a duration such as 90m, or a time (embedded queue only).")
	cmd.Flags().StringVar(&p.until, "until", "",
		"Select those dead before then: a duration such as 24h, or a time (embedded queue only).")
}

// narrow reports whether a part of the messages is selected by what they are.
func (p *selector) narrow() bool {
	return p.match != "" || p.attribute != "" || p.reason != nil || p.since != "" || p.until != ""
}

// isEverything reports whether every message is selected.
func (p *selector) isEverything() bool { return p.all && !p.narrow() && p.limit == 0 }

// isTask reports whether the queue itself can find what is selected, and work through it.
func (p *selector) isTask() bool { return len(p.ids) == 0 && p.limit == 0 }

// selection is the selector in the words of the console.
func (p *selector) selection() (sel api.Selection, err error) {
	sel.Match, sel.Reason = p.match, p.reason
	sel.Attribute, sel.Value, _ = strings.Cut(p.attribute, "=")
	if sel.DeadSince, err = timeBefore("--since", p.since); err == nil {
		sel.DeadUntil, err = timeBefore("--until", p.until)
	}
	return sel, err
}

// timeBefore reads a duration before now, or a time; "" is the zero time.
func timeBefore(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, base.Usagef("invalid %s: %s", flag, text).
			Hint("use a duration such as 90m, or a time such as 2006-01-02T15:04:05Z")
	}
	return at, nil
}

// knownBy refuses what Amazon SQS does not tell of a message.
func (p *selector) knownBy(q *target.Queue) error {
	switch {
	case q.Remote == nil:
		return nil
	case p.reason != nil:
		return base.Usagef("--reason works on the embedded queue only").
			Hint("Amazon SQS does not know why a message failed")
	case p.since != "" || p.until != "":
		return base.Usagef("--since and --until work on the embedded queue only").
			Hint("Amazon SQS does not say when a message was dead-lettered")
	}
	return nil
}

// matches reports whether a message is selected by what it says.
func (p *selector) matches(m *api.Message) bool {
	name, value, _ := strings.Cut(p.attribute, "=")
	has := func(a queue.Attribute) bool { return a.Name == name && (value == "" || a.Value == value) }
	return strings.Contains(m.Body, p.match) && (name == "" || slices.ContainsFunc(m.Attributes, has))
}

func (p *selector) check(args []string) error {
	p.ids = args
	if _, err := p.selection(); err != nil {
		return err
	}

	broad := p.all || p.narrow() || p.limit != 0
	if p.allUnlessNamed && len(args) == 0 && !broad {
		p.all, broad = true, true
	}

	switch {
	case p.limit < 0:
		return base.Usagef("--limit %d is out of range", p.limit).Hint("use 1 or more")
	case len(p.ids) > 0 && broad:
		return base.Usagef("messages are named by id and by --all, --match, --reason, --limit or another filter").
			Hint("give only one of them")
	case len(p.ids) == 0 && !broad:
		return base.Usagef("no messages are named").
			Hint("give ids, or --all, --match TEXT, --reason TEXT, --limit N or another filter")
	}

	return nil
}

func (p *selector) text() string {
	if len(p.ids) > 0 {
		return base.Plural(len(p.ids), "message")
	}

	text := "all messages"
	switch {
	case p.limit > 0 && p.narrow():
		text = "at most " + base.Plural(p.limit, "message")
	case p.limit > 0:
		return "the oldest " + base.Plural(p.limit, "message")
	}

	if p.match != "" {
		text += fmt.Sprintf(" containing %q", p.match)
	}

	if p.attribute != "" {
		text += " with the attribute " + p.attribute
	}

	if p.reason != nil {
		text += fmt.Sprintf(" that failed with %q", *p.reason)
	}

	if p.since != "" {
		text += " dead since " + p.since
	}

	if p.until != "" {
		text += " dead until " + p.until
	}

	return text
}

// selection is a selector while a source is gone through.
type selection struct {
	selector *selector
	missing  map[string]bool // ids that did not come by yet
	met      map[string]bool // ids that came by
	taken    int
	stale    bool // the last portion held nothing new
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
func (s *selection) take(portion []held) []held {
	var chosen []held
	s.stale = len(portion) > 0
	for _, m := range portion {
		if s.met[m.ID] {
			continue
		}
		s.met[m.ID], s.stale = true, false
		if s.full() || len(s.selector.ids) > 0 && !s.missing[m.ID] || !s.selector.matches(&m.Message) {
			continue
		}
		delete(s.missing, m.ID)
		s.taken++
		chosen = append(chosen, m)
	}
	return chosen
}

func (s *selection) full() bool {
	return len(s.selector.ids) > 0 && len(s.missing) == 0 || s.selector.limit > 0 && s.taken >= s.selector.limit
}

// done reports whether nothing more is to be selected.
func (s *selection) done() bool { return s.full() || s.stale }

// lost is the error of ids that never came by.
func (s *selection) lost(queueName string) error {
	if len(s.missing) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(s.missing)), ", ")
	return base.NotFoundf("queue %s holds no message %s", queueName, names).
		Hint("'tendril dead list' shows what it holds")
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
	case p.narrow():
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
