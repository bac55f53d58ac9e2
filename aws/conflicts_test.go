package aws

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConflicts(t *testing.T) {
	t.Parallel()
	settings := Settings{Retention: 96 * time.Hour, Visibility: 300 * time.Second, Inactivity: 180 * time.Second}
	good := map[string]string{
		"MessageRetentionPeriod": "345600", "VisibilityTimeout": "30", "DelaySeconds": "0",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:dead","maxReceiveCount":10}`,
	}
	with := func(name, value string) map[string]string {
		attrs := map[string]string{}
		for k, v := range good {
			attrs[k] = v
		}
		attrs[name] = value
		return attrs
	}
	tests := []struct {
		name     string
		settings Settings
		attrs    map[string]string
		want     []string
		says     string
	}{
		{"all fits", settings, good, nil, ""},
		{"queue keeps longer", settings, with("MessageRetentionPeriod", "1209600"), []string{"retention-shorter"},
			"96h0m0s after its first receive, though the queue keeps it for 336h0m0s"},
		{"queue keeps shorter", settings, with("MessageRetentionPeriod", "60"), []string{"retention-longer"},
			"drops it 1m0s after it was sent"},
		{"no retention of the worker", Settings{Visibility: time.Hour}, with("MessageRetentionPeriod", "60"), nil, ""},
		{"short visibility", Settings{Retention: settings.Retention, Visibility: time.Minute, Inactivity: 3 * time.Minute},
			good,
			[]string{"visibility-short"}, "visibility timeout 1m0s is shorter than the inactivity timeout 3m0s"},
		{"visibility that equals", Settings{Visibility: time.Minute, Inactivity: time.Minute}, good, nil, ""},
		{"visibility of zero", Settings{Inactivity: time.Minute}, good, []string{"visibility-short"}, "above 1m0s"},
		{"no dead-letter queue", settings, with("RedrivePolicy", ""), []string{"no-dead-letter-queue"},
			"has no dead-letter queue"},
		{"no dead-letter queue for terminal codes", Settings{Visibility: time.Hour, TerminalCodes: true},
			with("RedrivePolicy", ""), []string{"no-dead-letter-queue"}, "always fails (also with one of terminal-codes)"},
		{"one receive", settings, with("RedrivePolicy", `{"maxReceiveCount":1}`), []string{"one-receive"},
			"set it to 3 or more"},
		{"one receive, as a string", settings, with("RedrivePolicy", `{"maxReceiveCount":"1"}`), []string{"one-receive"},
			""},
		{"odd policy", settings, with("RedrivePolicy", `{"maxReceiveCount":"many"}`), []string{"policy-unreadable"},
			`"many" is not a number`},
		{"broken policy", settings, with("RedrivePolicy", `{`), []string{"policy-unreadable"}, ""},
		{"FIFO", settings, with("FifoQueue", "true"), []string{"fifo-order"}, "one at a time and in order"},
		{"delay", settings, with("DelaySeconds", "900"), []string{"delayed-delivery"}, "15m0s"},
		{"attributes that could not be read", settings, map[string]string{}, []string{"no-dead-letter-queue"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var texts []string
			for _, c := range Conflicts(test.settings, test.attrs) {
				got, texts = append(got, c.Name), append(texts, c.Text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if text := strings.Join(texts, "\n"); !strings.Contains(text, test.says) || strings.Contains(text, "%!") {
				t.Errorf("the text %q does not say %q", text, test.says)
			}
		})
	}
}

func TestConflictsOfAFIFOQueue(t *testing.T) {
	t.Parallel()
	got := Conflicts(Settings{},
		map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "false",
			"RedrivePolicy": `{"maxReceiveCount":5}`})
	if len(got) != 2 || got[0].Name != "fifo-order" || got[1].Name != "fifo-deduplication" ||
		!got[0].Fact || !got[1].Fact {
		t.Errorf("got %v", got)
	}
	if got = Conflicts(Settings{}, nil); len(got) != 1 || got[0].Fact {
		t.Errorf("got %v, want a missing dead-letter queue that is no mere fact", got)
	}
}
