package web

import (
	"math"
	"strings"
	"testing"

	"tendril/internal/observe/series"
)

func TestSparklineDrawsPeriodsThatAreOver(t *testing.T) {
	none := float32(math.NaN())
	for _, test := range []struct {
		name    string
		in, out series.Values
		want    *sparkline
	}{
		{"no curves", nil, nil, nil},
		{"only the period that is not over", series.Values{none, none, 5}, series.Values{none, none, 5}, nil},
		{"rising", series.Values{0, 5, 10, 99}, series.Values{0, 0, 0, 99}, &sparkline{
			"M0.0 19.0h.1L50.0 10.0L100.0 1.0", "M0.0 19.0h.1L50.0 19.0L100.0 19.0",
			"Last 15 minutes: at most 10 in and 0 out per second"}},
		{"a gap", series.Values{2, none, 2, 0}, series.Values{none, none, none, 0}, &sparkline{
			"M0.0 1.0h.1M100.0 1.0h.1", "", "Last 15 minutes: at most 2.0 in and 0 out per second"}},
	} {
		got := sparklineOf(series.Traffic{In: test.in, Out: test.out})
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestSparklineAveragesNeighbours(t *testing.T) {
	v := make(series.Values, 181)
	for i := range v {
		v[i] = float32(i % 3)
	}
	columns := means(v)
	if len(columns) != sparkColumns || columns[0] != 1 || columns[sparkColumns-1] != 1 {
		t.Errorf("%d columns of %v", len(columns), columns)
	}
}

func TestRatesOfQueues(t *testing.T) {
	for want, rate := range map[string]float32{"–": float32(math.NaN()), "0": 0, "0.1": 0.12, "9.9": 9.94, "12": 12.4,
		"1,234": 1234, "12.3 k": 12_345} {
		if got := perSecond(series.Values{rate, 77}); got != want {
			t.Errorf("%v is shown as %q, want %q", rate, got, want)
		}
	}
}

func TestOverviewShowsWhatComesInAQueue(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	page := s.get("/")
	if !strings.Contains(page, `data-label="In/s">–</td>`) || strings.Contains(page, `<svg class="spark`) {
		t.Errorf("without curves the table has %s", page)
	}
	asked := 0
	s.series = func(string) (series.Curves, bool) {
		asked++
		return series.Curves{Queues: map[string]series.Traffic{"jobs": {In: series.Values{0, 3.5, 9},
			Out: series.Values{0, 1, 9}}}}, true
	}
	page = s.get("/")
	for _, part := range []string{`data-label="In/s">3.5</td>`, `data-label="Out/s">1.0</td>`, `role="img"`,
		"at most 3.5 in and 1.0 out per second", ` d="M0.0 19.0h.1L100.0 1.0"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the overview does not have %s", part)
		}
	}
	if s.get("/queues"); asked != 1 {
		t.Errorf("the curves were read %d times for two pages", asked)
	}
}
