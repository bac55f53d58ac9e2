package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml", "\nretention_period: 1d\n")
	cfg := mustLoad(t, Sources{
		Dir:     dir,
		Environ: home("TENDRIL_SQSD_RetentionPeriod=7200", "TENDRIL_RETENTION_PERIOD=2h"),
		Flags:   map[string]string{"retention-period": "14400"},
	})
	e, err := cfg.Explain("RetentionPeriod")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tendril.yaml")
	want := []Setting{
		{Origin{}, "345600s"},
		{Origin{fromFile, file + ":2"}, "86400s"},
		{Origin{fromEnvironment, "TENDRIL_SQSD_RetentionPeriod"}, "7200s"},
		{Origin{fromEnvironment, "TENDRIL_RETENTION_PERIOD"}, "7200s"},
		{Origin{fromFlag, "--retention-period"}, "14400s"},
	}
	if diff := cmp.Diff(want, e.Chain); diff != "" {
		t.Error(diff)
	}
	text := `retention-period
  Period after a message's first receive in which it is attempted.
  Then it is deleted.

  value              14400s, that is 4 hours (--retention-period)
  default            4d
  allowed            1m to 14d; a bare number is seconds
  flag               --retention-period
  variable           TENDRIL_RETENTION_PERIOD
  key                retention_period
  Elastic Beanstalk  RetentionPeriod
  aws-sqsd           retention_period

  set by (the last one wins):
    default      345600s
    file         86400s (` + file + `:2)
    environment  7200s (TENDRIL_SQSD_RetentionPeriod)
    environment  7200s (TENDRIL_RETENTION_PERIOD)
    flag         14400s (--retention-period)`
	if diff := cmp.Diff(text, e.String()); diff != "" {
		t.Error(diff)
	}
}

func TestExplainEveryOption(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, Sources{Environ: home()})
	for _, o := range Options() {
		for _, name := range o.names() {
			e, err := cfg.Explain(name)
			if err != nil || e.Option.Name != o.Name {
				t.Errorf("%s: %v", name, err)
				continue
			}
			last := e.Chain[len(e.Chain)-1]
			if e.Value != o.get(&cfg.Settings) || e.Value != last.Value || e.From != last.Origin {
				t.Errorf("%s is %q from %s, and the chain ends in %+v", name, e.Value, e.From, last)
			}
			if !strings.HasPrefix(e.String(), o.Name+"\n") {
				t.Errorf("%s: %s", name, e)
			}
		}
	}
}

func TestExplainUnknown(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, Sources{Environ: home()})
	for name, want := range map[string]string{
		"http-conections": "unknown option http-conections: did you mean http-connections or HttpConnections?",
		"--htpt-path":     "unknown option --htpt-path: did you mean http-path or HttpPath?",
		"frobnicate":      "unknown option frobnicate: docs/options.md lists them all",
		"":                `unknown option "": docs/options.md lists them all`,
	} {
		if _, err := cfg.Explain(name); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
	if got := cfg.Origin("frobnicate"); got != (Origin{}) {
		t.Errorf("an unknown option is from %+v", got)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5s": "5s", "90s": "90s", "150s": "150s", "180s": "180s, that is 3 minutes", "3600s": "3600s, that is 1 hour",
		"86400s":  "86400s, that is 1 day",
		"345600s": "345600s, that is 4 days", "5400s": "5400s, that is 90 minutes", "unset": "unset", "": "",
	} {
		if got := (&Option{value: value{kind: kindDuration}}).withLongUnit(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
	if got := (&Option{value: value{kind: kindText}}).withLongUnit("300"); got != "300" {
		t.Errorf("a text reads %q", got)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"http-path", "http-connections", "name", "port", "HttpPath"}
	for name, want := range map[string]string{
		"htpt-path": "http-path", "HTTP_PATH": "http-path", "nmae": "name", "prot": "port", "http_conns": "", "xxxx": "",
		"":                               "",
		strings.Repeat("http-path", 100): "",
	} {
		if got := nearestOne(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
	if got := orList([]string{"a", "b", "c"}); got != "a, b or c" {
		t.Errorf("a list of three reads %q", got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1},
		{"kitten", "sitting", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q are %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}
