package messages

import (
	"context"
	"errors"
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
	ids    []string
	all    bool
	filter api.Selection
	// parse adds these flags to filter.
	attribute, since, until string
	limit                   int  // 0 means no limit
	allUnlessNamed          bool // an empty selector selects all messages
}

func addSelector(cmd *cobra.Command) *selector {
	p := &selector{}
	cmd.Flags().BoolVar(&p.all, "all", false, "Select every message.")
	addMatch(cmd, p)
	return p
}

func addMatch(cmd *cobra.Command, p *selector) {
	cmd.Flags().StringVar(&p.filter.Match, "match", "", "Select messages whose body contains this text.")
	addReason(cmd, p)
	cmd.Flags().IntVarP(&p.limit, "limit", "n", 0, "Maximum messages to select, oldest first.")
}

func addReason(cmd *cobra.Command, p *selector) {
	cmd.Flags().Func("reason", "Select messages with this reason from 'tendril dead reasons'.",
		func(text string) error {
			p.filter.Reason = &text
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

func (p *selector) hasFilter() bool { return !p.filter.IsZero() }

func (p *selector) isEverything() bool { return p.all && !p.hasFilter() && p.limit == 0 }

func (p *selector) fitsTask() bool { return len(p.ids) == 0 && p.limit == 0 }

func (p *selector) parseFilter() (err error) {
	if p.filter.Attribute, p.filter.Value, err = api.ParseAttributeFilter(p.attribute); err != nil {
		return err
	}
	if p.filter.DeadSince, err = parseTimeOrAge("--since", p.since); err != nil {
		return err
	}
	p.filter.DeadUntil, err = parseTimeOrAge("--until", p.until)
	return err
}

func parseTimeOrAge(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return time.Now().Add(-age), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, base.Usagef("invalid %s: %s", flag, text).
			Hint("use a duration such as 90m, or a time such as 2006-01-02T15:04:05Z")
	}
	return at, nil
}

func (p *selector) checkSupportedBy(q *target.Queue) error {
	if q.Remote != nil && (p.since != "" || p.until != "") {
		return base.Usagef("--since and --until work on the embedded queue only").
			Hint("Amazon SQS does not record when a message was dead-lettered")
	}
	return nil
}

// matches ignores the reason of an embedded message, because the server filters by it.
func (p *selector) matches(m *sourceMessage) bool {
	f := &p.filter
	embedded := m.receipt == ""
	hasAttribute := func(a queue.Attribute) bool { return a.Name == f.Attribute && (f.Value == "" || a.Value == f.Value) }
	return strings.Contains(m.Body, f.Match) && (f.Attribute == "" || slices.ContainsFunc(m.Attributes, hasAttribute)) &&
		(f.Reason == nil || embedded || *f.Reason == failureGroup(&m.Message))
}

// parse fails unless either args or flags select messages.
func (p *selector) parse(args []string) error {
	p.ids = args
	if err := p.parseFilter(); err != nil {
		return err
	}

	broad := p.all || p.hasFilter() || p.limit != 0
	if p.allUnlessNamed && len(args) == 0 && !broad {
		p.all = true
		broad = true
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
	case p.limit > 0 && p.hasFilter():
		text = "at most " + base.Plural(p.limit, "message")
	case p.limit > 0:
		return "the oldest " + base.Plural(p.limit, "message")
	}

	words := base.Words{text}
	if p.filter.Match != "" {
		words.Add(fmt.Sprintf("containing %q", p.filter.Match))
	}
	words.AddIf(p.attribute != "", "with the attribute "+p.attribute)
	if p.filter.Reason != nil {
		words.Add(fmt.Sprintf("that failed with %q", *p.filter.Reason))
	}
	words.AddIf(p.since != "", "dead since "+p.since)
	words.AddIf(p.until != "", "dead until "+p.until)
	return words.Join(" ")
}

type selection struct {
	selector *selector
	missing  map[string]bool // IDs that were not found yet
	seen     map[string]bool
	taken    int
	stale    bool // the last batch contained only messages seen before
}

func (p *selector) begin() *selection {
	missing := map[string]bool{}
	for _, id := range p.ids {
		missing[id] = true
	}
	return &selection{selector: p, missing: missing, seen: map[string]bool{}}
}

// choose ignores messages that reappear because they failed again.
func (s *selection) choose(batch []sourceMessage) (chosen []sourceMessage) {
	s.stale = len(batch) > 0
	for _, m := range batch {
		if s.seen[m.ID] {
			continue
		}
		s.seen[m.ID] = true
		s.stale = false
		if s.wants(&m) {
			delete(s.missing, m.ID)
			s.taken++
			chosen = append(chosen, m)
		}
	}
	return chosen
}

func (s *selection) forEachBatch(ctx context.Context, from messageSource, size int,
	do func([]sourceMessage) error) (err error) {
	defer func() { err = errors.Join(err, from.release(ctx)) }()
	for batch, err := range from.read(ctx, size) {
		if err != nil {
			return err
		}
		if chosen := s.choose(batch); len(chosen) > 0 {
			if err := do(chosen); err != nil {
				return err
			}
		}
		if s.done() {
			break
		}
	}
	return nil
}

func (s *selection) wants(m *sourceMessage) bool {
	named := len(s.selector.ids) == 0 || s.missing[m.ID]
	return !s.full() && named && s.selector.matches(m)
}

func (s *selection) full() bool {
	return len(s.selector.ids) > 0 && len(s.missing) == 0 || s.selector.limit > 0 && s.taken >= s.selector.limit
}

func (s *selection) done() bool { return s.full() || s.stale }

func (s *selection) notFound(queues []string) error {
	if len(s.missing) == 0 {
		return nil
	}
	noun := "message"
	if len(s.missing) > 1 {
		noun = "messages"
	}
	return base.NotFoundf("%s no %s %s", queuesHave(queues), noun, s.missingIDs()).
		Hint("'tendril dead list' lists the dead letters")
}

func (s *selection) missingIDs() string {
	return strings.Join(slices.Sorted(maps.Keys(s.missing)), ", ")
}

func queuesHave(names []string) string {
	if len(names) == 1 {
		return "queue " + names[0] + " has"
	}
	return "queues " + strings.Join(names, ", ") + " have"
}

func (p *selector) batchSize() int {
	if p.limit > 0 {
		return min(p.limit, largeBatch)
	}
	return largeBatch
}

// oldest applies the limit to messages of several sources. Any source may have the oldest.
func (p *selector) oldest(messages []api.Message) []api.Message {
	return messages[:min(len(messages), p.limit)]
}

func (p *selector) expectedCount(count int) int {
	switch {
	case len(p.ids) > 0:
		return len(p.ids)
	case p.hasFilter():
		return -1 // unknown
	case p.limit > 0:
		return min(p.limit, count)
	}
	return count
}

// Numbers of messages per request. smallBatch applies if the rate is limited.
const (
	largeBatch = 100
	smallBatch = 10
)
