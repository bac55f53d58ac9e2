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

type selector struct {
	ids       []string
	all       bool
	match     string
	attribute string
	// since and until are durations before now, or times. They limit when a message was dead-lettered.
	since, until   string
	reason         *string // nil means any reason, and "" no recorded reason
	limit          int     // 0 means no limit
	allUnlessNamed bool    // an empty selector selects all messages
}

func addSelector(cmd *cobra.Command) *selector {
	p := &selector{}
	cmd.Flags().BoolVar(&p.all, "all", false, "Select every message.")
	addMatch(cmd, p)
	return p
}

func addMatch(cmd *cobra.Command, p *selector) {
	cmd.Flags().StringVar(&p.match, "match", "", "Select messages whose body contains this text.")
	addReason(cmd, p)
	cmd.Flags().IntVarP(&p.limit, "limit", "n", 0, "Maximum messages to select, oldest first.")
}

func addReason(cmd *cobra.Command, p *selector) {
	cmd.Flags().Func("reason", "Select messages with this reason from 'tendril dead reasons'.",
		func(text string) error {
			p.reason = &text
			return nil
		})
}

func addDeadFilter(cmd *cobra.Command, p *selector) {
	cmd.Flags().StringVar(&p.attribute, "attribute", "", "Select messages with this attribute: NAME, or NAME=VALUE.")
	cmd.Flags().StringVar(&p.since, "since", "",
		"Select messages dead since this time, such as 90m or a date (embedded queue only).")
	cmd.Flags().StringVar(&p.until, "until", "",
		"Select messages dead before this time, such as 24h or a date (embedded queue only).")
}

func (p *selector) narrow() bool {
	return p.match != "" || p.attribute != "" || p.reason != nil || p.since != "" || p.until != ""
}

func (p *selector) isEverything() bool { return p.all && !p.narrow() && p.limit == 0 }

func (p *selector) isTask() bool { return len(p.ids) == 0 && p.limit == 0 }

func (p *selector) selection() (sel api.Selection, err error) {
	sel.Match, sel.Reason = p.match, p.reason
	sel.Attribute, sel.Value, _ = strings.Cut(p.attribute, "=")
	if sel.DeadSince, err = timeBefore("--since", p.since); err == nil {
		sel.DeadUntil, err = timeBefore("--until", p.until)
	}
	return sel, err
}

// timeBefore parses a duration before now, or a time. It returns the zero time for "".
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

func (p *selector) knownBy(q *target.Queue) error {
	if q.Remote != nil && (p.since != "" || p.until != "") {
		return base.Usagef("--since and --until work on the embedded queue only").
			Hint("Amazon SQS does not record when a message was dead-lettered")
	}
	return nil
}

func (p *selector) matches(m *held) bool {
	name, value, _ := strings.Cut(p.attribute, "=")
	has := func(a queue.Attribute) bool { return a.Name == name && (value == "" || a.Value == value) }
	return (p.reason == nil || m.receipt == "" || *p.reason == failureGroup(&m.Message)) && strings.Contains(m.Body, p.match) && (name == "" || slices.ContainsFunc(m.Attributes, has))
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
		return base.Usagef("messages are selected by ID and by --all, --match, --reason, --limit or another filter").
			Hint("use only one of them")
	case len(p.ids) == 0 && !broad:
		return base.Usagef("no messages selected").
			Hint("give IDs, or --all, --match TEXT, --reason TEXT, --limit N or another filter")
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

type selection struct {
	selector *selector
	missing  map[string]bool
	met      map[string]bool
	taken    int
	stale    bool // the last batch contained only messages seen before
}

func (p *selector) begin() *selection {
	missing := map[string]bool{}
	for _, id := range p.ids {
		missing[id] = true
	}
	return &selection{selector: p, missing: missing, met: map[string]bool{}}
}

// take ignores messages that reappear because they failed again.
func (s *selection) take(portion []held) []held {
	var chosen []held
	s.stale = len(portion) > 0
	for _, m := range portion {
		if s.met[m.ID] {
			continue
		}
		s.met[m.ID], s.stale = true, false
		if s.wants(&m) {
			delete(s.missing, m.ID)
			s.taken++
			chosen = append(chosen, m)
		}
	}
	return chosen
}

func (s *selection) wants(m *held) bool {
	named := len(s.selector.ids) == 0 || s.missing[m.ID]
	return !s.full() && named && s.selector.matches(m)
}

func (s *selection) full() bool {
	return len(s.selector.ids) > 0 && len(s.missing) == 0 || s.selector.limit > 0 && s.taken >= s.selector.limit
}

func (s *selection) done() bool { return s.full() || s.stale }

func (s *selection) lost(queueName string) error {
	if len(s.missing) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(s.missing)), ", ")
	return base.NotFoundf("queue %s has no message %s", queueName, names).
		Hint("'tendril dead list' lists its messages")
}

func (p *selector) portion() int {
	if p.limit > 0 {
		return min(p.limit, largePortion)
	}
	return largePortion
}

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

// Numbers of messages per request. smallPortion applies if the rate is limited.
const (
	largePortion = 100
	smallPortion = 10
)
