package acceptance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestSentencesSettings(t *testing.T) {
	t.Parallel()
	dir := writeBundle(t, map[string]string{"Procfile": "web: python3 app.py\n"})
	explain := func(option string) string {
		out, _ := tendril(t, dir, nil, "explain", option)
		return out
	}
	accepts := func(t *testing.T, args ...string) {
		t.Helper()
		if out, code := tendril(t, dir, nil, append([]string{"check"}, args...)...); code != 0 {
			t.Errorf("%v: exit status %d\n%s", args, code, out)
		}
	}
	refuses := func(t *testing.T, allowed string, args ...string) {
		t.Helper()
		out, code := tendril(t, dir, nil, append([]string{"check"}, args...)...)
		if code != 2 || !strings.Contains(out, "allowed: "+allowed) {
			t.Errorf("%v: exit status %d, want 2 and the range %s\n%s", args, code, allowed, out)
		}
	}
	bounds := func(id, option string, least, most int, allowed, byDefault string) {
		row(t, id, func(t *testing.T) {
			accepts(t, fmt.Sprintf("--%s=%d", option, least))
			accepts(t, fmt.Sprintf("--%s=%d", option, most))
			refuses(t, allowed, fmt.Sprintf("--%s=%d", option, least-1))
			refuses(t, allowed, fmt.Sprintf("--%s=%d", option, most+1))
			if byDefault != "" && !regexp.MustCompile(`(?m)^  value +`+byDefault+`[ ,].*\(default`).MatchString(explain(option)) {
				t.Errorf("the default of %s is not %s:\n%s", option, byDefault, explain(option))
			}
		})
	}
	bounds("A62", "http-connections", 1, 1000, "1 to 1000", "50")
	bounds("A64", "visibility-timeout", 0, 43200, "0s to 12h", "")
	bounds("B2", "visibility-timeout", 0, 43200, "0s to 12h", "300s")
	bounds("A66", "error-visibility-timeout", 0, 43200, "0s to 12h", "")
	bounds("A67", "max-retries", 1, 1000, "1 to 1000", "10")
	bounds("B16", "max-retries", 1, 1000, "1 to 1000", "")
	bounds("A68", "connect-timeout", 1, 60, "1s to 1m", "5s")
	bounds("A69", "inactivity-timeout", 1, 36000, "1s to 10h", "180s")
	bounds("B15", "inactivity-timeout", 1, 36000, "1s to 10h", "")
	bounds("A70", "retention-period", 60, 1209600, "1m to 14d", "345600s")
	row(t, "A29", func(t *testing.T) {
		accepts(t, "--max-retries=100")
		refuses(t, "1 to 1000", "--max-retries=0")
	})
	row(t, "A76", func(t *testing.T) {
		bundle := writeBundle(t, map[string]string{"Procfile": "web: python3 app.py\n", ".ebextensions/a.config": "option_settings:\n" +
			"  aws:elasticbeanstalk:sqsd:\n    ConnectTimeout: 61\n"})
		if out, code := tendril(t, bundle, nil, "check"); code != 2 || !strings.Contains(out, "a.config:3") ||
			!strings.Contains(out, "allowed: 1") {
			t.Errorf("exit status %d\n%s", code, out)
		}
	})
	row(t, "E19", func(t *testing.T) { matches(t, explain("metrics-interval"), `^  value +60s[ ,].*\(default`) })
	row(t, "E3", func(t *testing.T) {
		out, _ := tendril(t, dir, []string{"WORKERLESS_CONCURRENCY=7"}, "explain", "http-connections")
		matches(t, out, `^  value +7 \(WORKERLESS_CONCURRENCY\)`)
		if out, code := tendril(t, dir, nil, "check", "--concurrency=9"); code != 0 {
			t.Errorf("--concurrency: %s", out)
		}
	})

	cron := func(text string) (string, int) {
		return tendril(t, writeBundle(t, map[string]string{"Procfile": "web: python3 app.py\n", "cron.yaml": text}), nil, "check")
	}
	task := func(name, url, schedule string) string {
		return fmt.Sprintf(" - {name: %q, url: %q, schedule: %q}\n", name, url, schedule)
	}
	const head = "version: 1\ncron:\n"
	row(t, "A34", func(t *testing.T) {
		if out, code := cron(head + task("a", "/a", "0 1 * * *") + task("a", "/b", "0 2 * * *")); code == 0 || !strings.Contains(out, "two tasks have the name a") {
			t.Errorf("two tasks of one name: exit status %d\n%s", code, out)
		}
	})
	row(t, "B13", func(t *testing.T) {
		if out, code := cron(head + task("a", "/a", "0 1 * * *") + task("b", "/a", "0 1 * * *")); code != 0 {
			t.Errorf("equal URLs and schedules: exit status %d\n%s", code, out)
		}
		for _, missing := range []string{"name", "url", "schedule"} {
			text := regexp.MustCompile(missing+`: "[^"]*",? ?`).ReplaceAllString(head+task("a", "/a", "0 1 * * *"), "")
			if out, code := cron(text); code == 0 || !strings.Contains(out, "the task has no "+missing) {
				t.Errorf("without %s: exit status %d\n%s", missing, code, out)
			}
		}
	})
	row(t, "B12", func(t *testing.T) {
		out, code := cron(head + task("a", "/a", "*/15 9-17 1,15 jan-mar mon"))
		if code != 0 || !strings.Contains(out, "every 15 minutes past hours 9") && !strings.Contains(out, "every 15 minutes") {
			t.Errorf("exit status %d\n%s", code, out)
		}
		if out, code := cron(head + task("a", "/a", "0 25 * * *")); code == 0 || !strings.Contains(out, "25") {
			t.Errorf("the hour 25: exit status %d\n%s", code, out)
		}
	})
	row(t, "B17", func(t *testing.T) {
		both := writeBundle(t, map[string]string{"Procfile": "web: python3 app.py\nsite: python3 site.py\n"})
		if out, code := tendril(t, both, nil, "check"); code != 0 {
			t.Errorf("exit status %d\n%s", code, out)
		}
	})
}
