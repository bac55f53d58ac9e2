package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "300": 5 * time.Minute, "0.5": 500 * time.Millisecond, "5s": 5 * time.Second,
		"100ms": 100 * time.Millisecond, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "12h": 12 * time.Hour,
		"4d": 96 * time.Hour, "0.5d": 12 * time.Hour, "0s": 0, "007": 7 * time.Second,
		"-5": -5 * time.Second, "-5s": -5 * time.Second, "-1d": -24 * time.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, outOfRange := range map[string]bool{
		"": false, "soon": false, "5 s": false, "1e3": false, "0x10": false, "1_000": false, "inf": false, "NaN": false,
		"5x": false,
		"d":  false, "--5": false, "1.2.3": false, "٣": false,
		"99999999999999999999": true, "999999999d": true,
	} {
		if got, err := ParseDuration(text); err == nil || errors.Is(err, errRange) != outOfRange {
			t.Errorf("%q is %v, %v; want an error, out of range: %v", text, got, err, outOfRange)
		}
	}
}

func TestNumbersHaveNoPlusSign(t *testing.T) {
	t.Parallel()
	for option, values := range map[string][]string{
		"max-retries": {"+5"}, "sleep": {"+5", "+5s", "+1h"}, "header-budget": {"+512", "+8KiB"}, "rate": {"+5", "+5/s"},
		"scale-upper-threshold": {"+5"}, "port": {"+5000"}, "queues": {"a:+5"}, "success-codes": {"+200"},
		"console": {"+9325"}, "target": {"http://127.0.0.1:+80"},
	} {
		for _, value := range values {
			if _, err := Load(Sources{Environ: home(), Flags: map[string]string{option: value}}); err == nil {
				t.Errorf("--%s=%s is accepted", option, value)
			}
			plain := strings.Replace(value, "+", "", 1)
			if _, err := Load(Sources{Environ: home(), Flags: map[string]string{option: plain}}); err != nil {
				t.Errorf("--%s=%s: %v", option, plain, err)
			}
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 5 * time.Minute: "300s", 96 * time.Hour: "345600s",
		100 * time.Millisecond: "100ms", 1500 * time.Millisecond: "1.5s"} {
		got := formatDuration(d)
		if back, err := ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v is written %q and read back as %v, %v; want %q", d, got, back, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "512": 512, "512B": 512, "8KiB": 8192, "8 KiB": 8192,
		"1MiB": 1 << 20, "2GiB": 2 << 30} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "8K", "8KB", "8kib", "1.5KiB", "many", "-9223372036854775807KiB",
		"9223372036854775807KiB", "99999999999999999999"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
	for n, want := range map[int64]string{0: "0B", 512: "512B", 8192: "8KiB", 8193: "8193B", 1 << 20: "1MiB",
		3 << 30: "3GiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		perSecond float64
		usual     string
	}{
		"0": {0, "0"}, "10": {10, "10/s"}, "10/s": {10, "10/s"}, "600/m": {10, "10/s"}, "36000/h": {10, "10/s"},
		"30/m": {0.5, "30/m"}, "0.5": {0.5, "30/m"},
		"1/m": {1.0 / 60, "1/m"}, "7/h": {7.0 / 3600, "7/h"}, "2.5 /s": {2.5, "150/m"}, "1000000": {1e6, "1000000/s"},
		"1.001": {1.001, "1.001/s"}, "-5": {-5, "-5/s"},
	} {
		got, err := parseRate(text)
		if err != nil || got != want.perSecond {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want.perSecond)
		}
		if got := formatRate(want.perSecond); got != want.usual {
			t.Errorf("%q is written %q, want %q", text, got, want.usual)
		}
		if back, err := parseRate(want.usual); err != nil || formatRate(back) != want.usual {
			t.Errorf("%q is read back as %v, %v", want.usual, back, err)
		}
	}
	for _, text := range []string{"", "/s", "fast", "10/d", "10/min", "1e3", "0x1", "inf", "NaN", "10/", "1_0"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestRateKeepsItsText(t *testing.T) {
	t.Parallel()
	o, _ := Lookup("rate")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{1,4})?(/s|/m|/h)?`).Draw(t, "rate")
		var s, again Settings
		if o.set(&s, text) != nil {
			return
		}
		usual := o.get(&s)
		if err := o.set(&again, usual); err != nil || o.get(&again) != usual {
			t.Fatalf("%q is written %q, which %v or changes to %q", text, usual, err, o.get(&again))
		}
	})
}

func TestParseSwitch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "True": true, "yes": true, "on": true, "1": true,
		"false": false, "NO": false, "off": false, "0": false} {
		if got, err := parseSwitch(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "maybe", "2", "t"} {
		if _, err := parseSwitch(text); err == nil {
			t.Errorf("%q is a switch", text)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ least, most, below, above string }{
		"wait-time":                          {"0", "20", "-1", "21"},
		"delete-linger":                      {"0", "1s", "-1ms", "1001ms"},
		"http-connections":                   {"1", "1000", "0", "1001"},
		"sleep":                              {"0", "1h", "-1", "3601"},
		"max-wait":                           {"0", "14d", "-1", "1209601"},
		"function-timeout":                   {"1", "900", "0", "901"},
		"batch-size":                         {"1", "10", "0", "11"},
		"batch-window":                       {"0", "300", "-1", "301"},
		"rate":                               {"0", "1000000", "-1", "1000001"},
		"breaker":                            {"0", "100", "-1", "101"},
		"breaker-window":                     {"1", "600", "0", "601"},
		"breaker-delay":                      {"1", "3600", "0", "3601"},
		"metrics-interval":                   {"1", "3600", "0", "3601"},
		"log-sample":                         {"0", "100000", "-1", "100001"},
		"rollout-timeout":                    {"1", "3600", "0", "3601"},
		"rollout-batch-size":                 {"1", "10000", "0", "10001"},
		"deploy-timeout":                     {"1", "43200", "0", "43201"},
		"processes-min":                      {"1", "64", "0", "65"},
		"processes-max":                      {"1", "64", "0", "65"},
		"app-log-rate":                       {"1", "1000000", "0", "1000001"},
		"scale-drain-within":                 {"1", "1d", "0", "86401"},
		"scale-target-busy":                  {"1", "100", "0", "101"},
		"scale-min-size":                     {"1", "10000", "0", "10001"},
		"scale-max-size":                     {"1", "10000", "0", "10001"},
		"scale-cooldown":                     {"0", "10000", "-1", "10001"},
		"scale-lower-threshold":              {"0", "20000000", "-0.5", "20000000.5"},
		"scale-upper-threshold":              {"0", "20000000", "-1", "20000001"},
		"scale-lower-breach-scale-increment": {"-10000", "-1", "-10001", "0"},
		"scale-upper-breach-scale-increment": {"1", "10000", "0", "10001"},
		"scale-period":                       {"1", "600m", "0", "36001"},
		"scale-evaluation-periods":           {"1", "600", "0", "601"},
		"scale-breach-duration":              {"0", "600m", "-1", "36001"},
		"header-budget":                      {"256", "64KiB", "255", "65537"},
		"connect-timeout":                    {"1", "60", "0", "61"},
		"inactivity-timeout":                 {"1", "36000", "0", "36001"},
		"deadline":                           {"0", "12h", "-1", "43201"},
		"visibility-timeout":                 {"0", "43200", "-1", "43201"},
		"error-visibility-timeout":           {"0", "43200", "-1", "43201"},
		"retention-period":                   {"60", "14d", "59", "1209601"},
		"max-retries":                        {"1", "1000", "0", "1001"},
		"backoff-min":                        {"0", "43200", "-1", "43201"},
		"backoff-max":                        {"0", "43200", "-1", "43201"},
		"backoff-doublings":                  {"0", "16", "-1", "17"},
		"backoff-jitter":                     {"0", "100", "-1", "101"},
		"port":                               {"1", "65535", "0", "65536"},
		"app-ready-timeout":                  {"0", "43200", "-1", "43201"},
		"app-grace":                          {"0", "43200", "-1", "43201"},
		"restart-limit":                      {"0", "1000", "-1", "1001"},
		"restart-window":                     {"1", "86400", "0", "86401"},
		"shutdown-timeout":                   {"0", "43200", "-1", "43201"},
	} {
		o, _ := Lookup(name)
		var s Settings
		for _, text := range []string{c.least, c.most} {
			if err := o.set(&s, text); err != nil {
				t.Errorf("%s: %s %v", name, text, err)
			}
		}
		for _, text := range []string{c.below, c.above} {
			err := o.set(&s, text)
			if !errors.Is(err, errRange) {
				t.Errorf("%s: %s gave %v, want out of range", name, text, err)
			}
			advice := o.value.nearest(text)
			if err := o.set(&s, advice); err != nil {
				t.Errorf("%s: instead of %s the advice is %q, which %v", name, text, advice, err)
			}
		}
	}
	for _, o := range Options() {
		if slices.Contains([]string{kindDuration, kindInteger, kindSize, kindRate, kindNumber}, o.Kind()) {
			if err := o.set(&Settings{}, "999999999"); !errors.Is(err, errRange) {
				t.Errorf("%s has no upper bound: %v", o.Name, err)
			}
		}
	}
}

func TestHumanDuration(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[string]string{"0s": "0s", "30s": "30s", "90s": "90s", "180s": "3m", "240s": "4m",
		"5400s": "90m", "36000s": "10h", "345600s": "4d", "1209600s": "14d", "100ms": "100ms"} {
		d, err := ParseDuration(seconds)
		if err != nil {
			t.Fatal(err)
		}
		got := HumanDuration(d)
		if back, err := ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%s is %q, read back as %v, %v; want %q", seconds, got, back, err, want)
		}
	}
	if got := humanDurations("0s to 43200s, or unset"); got != "0s to 12h, or unset" {
		t.Errorf("a range reads %q", got)
	}
}
