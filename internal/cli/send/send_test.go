package send

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

func TestParseAt(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 3, 31, 18, 30, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"2026-12-24T18:00:00Z": time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC),
		"2026-12-24T18:00":     time.Date(2026, 12, 24, 18, 0, 0, 0, zone),
		"2026-12-24 18:00:05":  time.Date(2026, 12, 24, 18, 0, 5, 0, zone),
		"18:31":                time.Date(2026, 3, 31, 18, 31, 0, 0, zone),
		"18:30":                time.Date(2026, 4, 1, 18, 30, 0, 0, zone),
		"07:00:30":             time.Date(2026, 4, 1, 7, 0, 30, 0, zone),
	} {
		if got, err := parseAt(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "25:00", "2026-12-24", "3h"} {
		var coded *base.ExitError
		if got, err := parseAt(text, now); !errors.As(err, &coded) || coded.Code != base.ExitUsage {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestScheduledMessagesForAmazonSQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) queue.Outgoing { return queue.Outgoing{Body: "x", NotBefore: time.Now().Add(d)} }
		given := []queue.Outgoing{{Body: "x"}, in(-time.Hour), in(90500 * time.Millisecond), in(15 * time.Minute)}
		out, err := target.ForSQS(given)
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Delay != nil || *out[1].Delay != 0 || *out[2].Delay != 91*time.Second || *out[3].Delay != 15*time.Minute {
			t.Errorf("delays %v, %v, %v, %v", out[0].Delay, *out[1].Delay, *out[2].Delay, *out[3].Delay)
		}
		if given[1].Delay != nil {
			t.Error("the messages themselves were changed")
		}
		if _, err := target.ForSQS([]queue.Outgoing{in(15*time.Minute + time.Second)}); err == nil {
			t.Error("a delay of more than 15 minutes was accepted")
		}
	})
}
