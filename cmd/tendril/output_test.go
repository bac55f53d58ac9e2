package main

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/host/terminal"
)

func TestPlainIsSafeForATerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"héllo 世界":    "héllo 世界",
		"\x1b[31mred": `\x1b[31mred`,
		"a\nb\tc":     "a\nb\tc",
		"a\r\x00\x7f": `a\r\x00\x7f`,
		"\xff\xfe":    `\xff\xfe`,
		"\u202eevil":  `\u202eevil`,
		"\u009b31m":   `\u009b31m`,
		"\ufffd":      "\ufffd",
	} {
		if got := terminal.Plain(in, true); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
	if got := plain("a\nb"); got != `a\nb` {
		t.Errorf("on one line: %q", got)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"0123456789", "0123456789"},
		{"0123456789x", "012345678… (11 B)"},
		{"ééééééééééé", "ééééééééé… (22 B)"},
		{"\x1b\x1b\x1b", "\\x1b\\x1b\\… (3 B)"},
		{strings.Repeat("x", 3<<20), "xxxxxxxxx… (3.0 MiB)"},
		{strings.Repeat("x", 2000), "xxxxxxxxx… (2.0 KiB)"},
	} {
		if got := preview(c.in, 10); got != c.want {
			t.Errorf("preview(%.20q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m",
		59*time.Minute + 59*time.Second: "59m",
		time.Hour:                       "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 1000 * time.Hour: "41d",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %s, want %s", d, got, want)
		}
	}
	if since(time.Time{}) != "-" || moment(time.Time{}) != "" || cmp.Or("", "-") != "-" {
		t.Error("nothing is not shown as nothing")
	}
	if got := moment(time.Now().Add(90 * time.Minute)); !strings.Contains(got, "in 1h") {
		t.Errorf("a moment to come: %s", got)
	}
}

func TestFormatFlag(t *testing.T) {
	t.Parallel()
	var f format
	for _, name := range []string{"table", "json", "yaml", "name"} {
		if err := f.Set(name); err != nil || f.String() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Set("toml"); err == nil || !strings.Contains(err.Error(), "table, json, yaml or name") {
		t.Errorf("toml: %v", err)
	}
}

func TestStatusTexts(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		healthText(&api.Status{State: "running",
			Ready: true}): "running, ready",
		healthText(&api.Status{State: "draining",
			Workers: []api.Worker{{Paused: true}}}): "draining, NOT READY, PAUSED",
		healthText(&api.Status{Workers: []api.Worker{{Paused: true,
			PauseReason: "n\x1bight"}}}): `NOT READY, PAUSED: n\x1bight`,
		accountText(api.Account{Sent: 9, Done: 3, DeadLettered: 1, Expired: 2, Purged: 1,
			Live: 2}): "sent 9 = done 3 + dead-lettered 1 + expired 2 + purged 1 + live 2",
		accountText(api.Account{Sent: 9}): "sent 9 = done 0 + dead-lettered 0 + expired 0 + purged 0 + live 0 (DOES " +
			"NOT BALANCE: off by 9; please report this)",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "done", Status: 200, DurationMS: 12,
			WaitMS: 3}): "m1 done: status 200 in 12 ms, 15 ms after the send",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "failed", Reason: "status 500",
			ReceiveCount: 2}): "m1 failed: status 500 (receive 2)",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "unreached", Reason: "connection refused",
			RetryAt: time.Unix(0, 0)}): "m1 unreached: connection refused, next attempt at " +
			time.Unix(0, 0).Format("15:04:05"),
		deliveryText(api.Delivery{MessageID: "m1", Outcome: api.InWork, Attempt: 2,
			DurationMS: 900}): "m1 in work: attempt 2 has been running for 900 ms",
		deliveryText(api.Delivery{MessageID: "m1", Outcome: "failed", Reason: "status 500", Answer: "oops",
			DeadLetterQueue: "jobs-dead"}): `m1 failed: status 500 "oops", the last attempt: it goes to jobs-dead`,
		plural(1, "message"): "1 message",
		plural(0, "message"): "0 messages",
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestAttemptsError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failed, running, unknown int
		want                     string
	}{
		{0, 0, 0, ""}, {2, 0, 0, "first attempt: 2 messages failed"}, {0, 0, 1, "1 message not attempted in time"},
		{0, 2, 0, "2 messages still in work"}, {1, 0, 1, "first attempt: 1 message failed, 1 message not attempted in time"},
	} {
		err := attemptsError(c.failed, c.running, c.unknown)
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || exitCode(err) != exitFailed || len(hintsOf(err)) == 0) {
			t.Errorf("attemptsError(%d, %d, %d) = %v, want %q", c.failed, c.running, c.unknown, err, c.want)
		}
	}
}

func TestDescribedLeader(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]api.Leader{
		"none known":                 {},
		"this instance":              {Local: true},
		"this instance: a, term 3":   {Leading: true, Holder: "a", Term: 3},
		"another instance: b":        {Holder: "b"},
		"none known; PROBLEM: timed": {Error: "timed"},
	} {
		if got := describedLeader(&l); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}
