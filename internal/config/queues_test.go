package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	someURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
	someARN = "arn:aws:sqs:eu-central-1:123456789012:mails.fifo"
)

func TestParseQueues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]QueueSettings{
		"a":                                 {{Name: "a"}},
		"a, b ,c":                           {{Name: "a"}, {Name: "b"}, {Name: "c"}},
		"a:3,b:2,c:1":                       {{Name: "a", Weight: 3}, {Name: "b", Weight: 2}, {Name: "c", Weight: 1}},
		"a:1000":                            {{Name: "a", Weight: 1000}},
		"a.fifo":                            {{Name: "a.fifo"}},
		someURL:                             {{Name: "jobs", URL: someURL}},
		someURL + ":7":                      {{Name: "jobs", URL: someURL, Weight: 7}},
		someARN:                             {{Name: "mails.fifo", URL: someARN}},
		someARN + ":7":                      {{Name: "mails.fifo", URL: someARN, Weight: 7}},
		"arn:aws:sqs:r:1:9":                 {{Name: "9", URL: "arn:aws:sqs:r:1:9"}},
		"http://h:9324/000000000000/jobs":   {{Name: "jobs", URL: "http://h:9324/000000000000/jobs"}},
		"http://h:9324/000000000000/jobs:2": {{Name: "jobs", URL: "http://h:9324/000000000000/jobs", Weight: 2}},
		"a," + someURL + "," + someARN:      {{Name: "a"}, {Name: "jobs", URL: someURL}, {Name: "mails.fifo", URL: someARN}},
	} {
		got, err := parseQueues(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
		if got := formatQueues(got); got != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%q is written %q", text, got)
		}
	}
}

func TestQueuesThatAreRefused(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("q", i))
		}
		return strings.Join(names, ",")
	}
	if _, err := parseQueues(many(64)); err != nil {
		t.Errorf("64 queues: %v", err)
	}
	for text, c := range map[string]struct{ want, fixed string }{
		"":                          {"a comma without a queue", ""},
		"a,":                        {"a comma without a queue", ""},
		",":                         {"a comma without a queue", ""},
		"a b":                       {`names "a b"`, ""},
		":3":                        {`names ""`, ""},
		"a:":                        {`the weight "" for a`, ""},
		"a:0":                       {"the weight 0 for a", ""},
		"a:1001":                    {"the weight 1001 for a", ""},
		"a:+3":                      {"the weight +3 for a", ""},
		"a:-1":                      {"the weight -1 for a", ""},
		"a:x":                       {"the weight x for a", ""},
		"a:1:2":                     {"names a:1, which is not a URL", ""},
		someARN + ":x":              {"the weight x for " + someARN, ""},
		"arn:aws:sns:r:1:topic":     {"is not an ARN of a queue", ""},
		"https://sqs.amazonaws.com": {"does not end with a queue name", ""},
		"https://u:secret@h/1/q":    {"names https://u:xxxxx@h/1/q, which contains a user name", ""},
		"https://u:secret@h/q?k=s":  {"names https://u:xxxxx@h/q?(hidden), which contains a user name", ""},
		"a:1,b":                     {"a weight for a but not for b", "a:1,b:1"},
		"a,b:2":                     {"a weight for b but not for a", "a:1,b:2"},
		"a,b,a":                     {"two queues with the name a", "a,b"},
		"jobs," + someURL:           {"two queues with the name jobs", "jobs"},
		many(65):                    {"has 65 queues, more than 64", ""},
	} {
		_, err := parseQueues(text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", text, err, c.want)
		}
		if got := fixQueues(text); got != c.fixed {
			t.Errorf("%q is corrected to %q, want %q", text, got, c.fixed)
		}
	}
}

func TestQueuesKeepTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weighted := rapid.Bool().Draw(t, "weighted")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_-]{1,20}(\.fifo)?`), 1, 10,
			rapid.ID[string]).Draw(t, "names")
		var items []string
		for _, n := range names {
			item := rapid.SampledFrom([]string{"", "http://127.0.0.1:9324/000000000000/",
				"arn:aws:sqs:eu-west-1:123456789012:"}).Draw(t, "place") + n
			if weighted {
				item += fmt.Sprint(":", rapid.IntRange(1, maxWeight).Draw(t, "weight"))
			}
			items = append(items, item)
		}
		text := strings.Join(items, ",")
		queues, err := parseQueues(text)
		if err != nil || len(queues) != len(names) || formatQueues(queues) != text {
			t.Fatalf("%q is read as %+v, %v", text, queues, err)
		}
		for i, n := range names {
			if queues[i].Name != n || queues[i].FIFO() != strings.HasSuffix(n, ".fifo") || (queues[i].Weight > 0) != weighted {
				t.Fatalf("%q: %+v is to be %s", text, queues[i], n)
			}
		}
	})
}

func FuzzQueues(f *testing.F) {
	for _, text := range []string{"a,b", "a:3,b:2", someURL + ":2," + someARN + ":1", "a::1", "arn:,://:",
		"https://u:p@h/q:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		queues, err := parseQueues(text)
		if err != nil {
			if fixed := fixQueues(text); fixed != "" {
				if _, err := parseQueues(fixed); err != nil {
					t.Fatalf("the advice %q for %q %v", fixed, text, err)
				}
			}
			return
		}
		again, err := parseQueues(formatQueues(queues))
		if diff := cmp.Diff(queues, again); diff != "" || err != nil {
			t.Fatalf("%q is written %q: %v\n%s", text, formatQueues(queues), err, diff)
		}
	})
}
