package messages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"tendril/api"
	"tendril/internal/cli/base"
)

func messagesWith(bodies ...string) []sourceMessage {
	var all []sourceMessage
	for _, body := range bodies {
		all = append(all, sourceMessage{Message: api.Message{ID: "id-" + body, Body: body}})
	}
	return all
}

func TestSelectionChooses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		selector selector
		want     string
		done     bool
	}{
		{"all", selector{all: true}, "a ab b c", false},
		{"a match", selector{filter: api.Selection{Match: "a"}}, "a ab", false},
		{"a limit", selector{limit: 2}, "a ab", true},
		{"a match and a limit", selector{filter: api.Selection{Match: "b"}, limit: 1}, "ab", true},
		{"ids", selector{ids: []string{"id-c", "id-a"}}, "a c", true},
		{"an id that is not there", selector{ids: []string{"id-c", "id-x"}}, "c", false},
		{"nothing matches", selector{filter: api.Selection{Match: "z"}}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.selector.begin()
			var got []string
			for _, portion := range [][]sourceMessage{messagesWith("a", "ab"), nil, messagesWith("b", "c")} {
				if p.done() {
					break
				}
				for _, m := range p.choose(portion) {
					got = append(got, m.Body)
				}
			}
			if strings.Join(got, " ") != c.want || p.done() != c.done {
				t.Errorf("took %v, done %v; want %q, %v", got, p.done(), c.want, c.done)
			}
			if lost := p.notFound([]string{"dead"}); (lost != nil) != (len(p.missing) > 0) || lost != nil &&
				(!strings.Contains(lost.Error(), "id-x") || base.ExitCode(lost) != base.ExitNotFound) {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}

func TestMissingMessagesAreNamedWithTheirQueues(t *testing.T) {
	for _, c := range []struct {
		ids, queues []string
		want        string
	}{
		{[]string{"x"}, []string{"a-dead"}, "queue a-dead has no message x"},
		{[]string{"y", "x"}, []string{"a-dead", "b-dead"}, "queues a-dead, b-dead have no messages x, y"},
		{nil, []string{"a-dead"}, ""},
	} {
		err := (&selector{ids: c.ids}).begin().notFound(c.queues)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v in %v: %v, want %q", c.ids, c.queues, err, c.want)
		}
	}
}

// If a message that fails again were selected again, the command might never end.
func TestSelectorTakesNoMessageTwice(t *testing.T) {
	t.Parallel()
	p := (&selector{all: true}).begin()
	if n := len(p.choose(messagesWith("a", "b"))); n != 2 || p.done() {
		t.Fatalf("took %d, done %v", n, p.done())
	}
	if n := len(p.choose(messagesWith("a", "c"))); n != 1 || p.done() {
		t.Errorf("took %d of a revenant and a new one, done %v", n, p.done())
	}
	if n := len(p.choose(messagesWith("b", "c"))); n != 0 || !p.done() {
		t.Errorf("took %d revenants, done %v", n, p.done())
	}
}

func TestSelectorIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		selector selector
		args     []string
		want     string
	}{
		{selector{}, nil, "no messages selected"},
		{selector{all: true}, []string{"m1"}, "use only one of them"},
		{selector{limit: 1}, []string{"m1"}, "use only one of them"},
		{selector{limit: -1}, nil, "out of range"},
		{selector{all: true, attribute: "=x"}, nil, `invalid attribute filter "=x"`},
		{selector{attribute: "="}, nil, `invalid attribute filter "="`},
		{selector{}, []string{"m1"}, ""},
		{selector{all: true, filter: api.Selection{Match: "x"}, limit: 3}, nil, ""},
	} {
		err := base.Explained(c.selector.parse(c.args))
		said := fmt.Sprint(err, base.HintsOf(err))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(said, c.want) || base.ExitCode(err) != base.ExitUsage) {
			t.Errorf("%+v %v: %v, want %q", c.selector, c.args, said, c.want)
		}
	}
}

func TestSelectorInWords(t *testing.T) {
	t.Parallel()
	got := []string{}
	for _, p := range []selector{{all: true}, {ids: []string{"a"}}, {filter: api.Selection{Match: "x"}}, {limit: 3}, {limit: 1, filter: api.Selection{Match: "x"}}} {
		got = append(got, p.text())
	}
	want := []string{"all messages", "1 message", `all messages containing "x"`, "the oldest 3 messages",
		`at most 1 message containing "x"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for _, c := range []struct {
		selector selector
		want     int
	}{{selector{all: true}, 50}, {selector{limit: 7}, 7}, {selector{limit: 70}, 50}, {selector{filter: api.Selection{Match: "x"}}, -1},
		{selector{ids: []string{"a", "b"}}, 2}} {
		if got := c.selector.expectedCount(50); got != c.want {
			t.Errorf("%s of 50: expects %d, want %d", c.selector.text(), got, c.want)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rate.Limit{"": rate.Inf, "50": 50, "50/s": 50, "0.5/s": 0.5} {
		if got, err := parseRate(text); got != want || err != nil {
			t.Errorf("parseRate(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "x", "50/m", "Inf", "NaN", "/s"} {
		if _, err := parseRate(text); base.ExitCode(err) != base.ExitUsage {
			t.Errorf("parseRate(%q): %v, want a usage error", text, err)
		}
	}
}
