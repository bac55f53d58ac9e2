package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func instancesWith(statuses ...Status) (all []InstanceHealth) {
	for i, s := range statuses {
		one := InstanceHealth{Name: fmt.Sprintf("host-%d", i), Status: s}
		if s != Ok {
			one.Causes = []Cause{{Status: s, Text: "It is " + string(s) + "."}}
		}
		all = append(all, one)
	}
	return all
}

func several(n int, s Status) []Status { return slices.Repeat([]Status{s}, n) }

func TestShareOfBadInstancesDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []Status
		want Status
	}{
		{"no instance", nil, NoData},
		{"all are Ok", several(3, Ok), Ok},
		{"one has Info", []Status{Ok, Info, Ok}, Info},
		{"one alone counts fully", []Status{Severe}, Severe},
		{"one of five, as in Amazon's example", append(several(4, Ok), Severe), Warning},
		{"one of twenty", append(several(19, Ok), Severe), Info},
		{"one of ten", append(several(9, Ok), Severe), Warning},
		{"one of three", []Status{Ok, Ok, Severe}, Degraded},
		{"one of two", []Status{Ok, Severe}, Degraded},
		{"two of three", []Status{Ok, Severe, Severe}, Severe},
		{"none is worse than Warning", several(3, Warning), Warning},
		{"none is worse than Degraded", several(3, Degraded), Degraded},
		{"a Degraded one adds to a Severe one", []Status{Ok, Ok, Ok, Ok, Degraded, Severe}, Degraded},
		{"one Warning of five", append(several(4, Ok), Warning), Warning},
		{"one unreachable of five", append(several(4, Ok), NoData), Warning},
		{"one unreachable of three", []Status{Ok, Ok, NoData}, Degraded},
		{"none is reachable, as in Amazon's example", several(3, NoData), Severe},
		{"all start", several(3, Pending), Pending},
		{"one starts", []Status{Ok, Pending}, Info},
		{"one starts and one is bad", []Status{Ok, Pending, Severe}, Degraded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := EnvironmentOf(instancesWith(c.all...))
			if got.Status != c.want || got.Color != c.want.Color() || got.Total() != len(c.all) {
				t.Errorf("%v is %s (%s) of %d instances, want %s", c.all, got.Status, got.Color, got.Total(), c.want)
			}
			if bad := slices.ContainsFunc(c.all, func(s Status) bool { return s != Ok }); bad != (len(got.Causes) > 0) {
				t.Errorf("the causes are %+v", got.Causes)
			}
		})
	}
}

func TestWorseInstanceNeverImprovesTheEnvironment(t *testing.T) {
	t.Parallel()
	statuses := []Status{Ok, Info, Warning, Degraded, Severe, NoData}
	for n := range 7776 {
		all := make([]Status, 5)
		for i, rest := 0, n; i < 5; i, rest = i+1, rest/6 {
			all[i] = statuses[rest%6]
		}
		before := EnvironmentOf(instancesWith(all...)).Status
		for i := range all {
			worse := slices.Clone(all)
			worse[i] = Severe
			if after := EnvironmentOf(instancesWith(worse...)).Status; after.rank() < before.rank() {
				t.Fatalf("%v is %s, but %v is %s", all, before, worse, after)
			}
		}
	}
}

func TestEachCauseIsListedOnceWithItsInstances(t *testing.T) {
	t.Parallel()
	all := []InstanceHealth{
		{"a", Warning, []Cause{{Kind: "process", Name: "web", Status: Warning, Text: "Process web was restarted 1 time in the last 5 minutes."}}},
		{"b", Degraded, []Cause{{Kind: "process", Name: "web", Status: Degraded,
			Text: "Process web was restarted 4 times in the last 5 minutes."}, {Status: Degraded, Text: "Only on b."}}},
		{"c", Ok, nil},
		Unreachable("d", 95*time.Second),
		Unreachable("e", 7*time.Minute),
	}
	for i := range 20 {
		all = append(all, InstanceHealth{fmt.Sprint("many-", i), Warning, []Cause{{Status: Warning, Text: "The disk is full."}}})
	}
	got := EnvironmentOf(all)
	var lines []string
	for _, c := range got.Causes {
		lines = append(lines, fmt.Sprintf("%s: %s %d: %s", c.Status, c.Text, c.Count, c.Affected()))
	}
	want := []string{
		"No Data: No data. Last seen 95 seconds ago. 2: d, e; figures of d",
		"Degraded: Process web was restarted 4 times in the last 5 minutes. 2: a, b; figures of b",
		"Degraded: Only on b. 1: b",
		"Warning: The disk is full. 20: many-0, many-1, many-2, many-3, many-4 and 15 more",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the causes are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if text := got.Counts(); text != "2 of 25 instances No Data, 1 Degraded, 21 Warning, 1 Ok" {
		t.Errorf("the counts are %q", text)
	}
}

func TestCauseOfMoreInstancesComesFirst(t *testing.T) {
	t.Parallel()
	rare, common := Cause{Status: Warning, Text: "Rare."}, Cause{Status: Warning, Text: "Common."}
	got := EnvironmentOf([]InstanceHealth{{"a", Warning, []Cause{rare, common}}, {"b", Warning, []Cause{common}}})
	if len(got.Causes) != 2 || got.Causes[0].Text != "Common." || got.Causes[0].Count != 2 {
		t.Errorf("the causes are %+v", got.Causes)
	}
}

func TestInformChangesOkOnly(t *testing.T) {
	t.Parallel()
	for before, want := range map[Status]Status{Ok: Info, Warning: Warning, NoData: NoData} {
		e := Environment{Status: before}
		e.Inform("The settings differ.", "a", "b")
		if e.Status != want || len(e.Causes) != 1 || e.Causes[0].Status != Info || e.Causes[0].Affected() != "a, b" {
			t.Errorf("%s became %+v", before, e)
		}
	}
}

func TestUnknownEnvironmentNamesTheReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"": "No data.", "access denied.": "No data. Reason: access denied."} {
		if e := UnknownEnvironment("No data.", reason); e.Status != NoData || e.Causes[0].Text != want {
			t.Errorf("for the reason %q: %+v", reason, e)
		}
	}
}

func TestEnvironmentOfOneInstanceIsNotShared(t *testing.T) {
	t.Parallel()
	one := EnvironmentOf(instancesWith(Severe))
	two := EnvironmentOf(instancesWith(Ok, Ok))
	for _, c := range []struct {
		name string
		e    *Environment
		want bool
	}{
		{"absent", nil, false}, {"one instance", &one, false}, {"two instances", &two, true},
		{"unknown instances", UnknownEnvironment("No data.", ""), true},
	} {
		if got := c.e.IsShared(); got != c.want {
			t.Errorf("%s: shared is %v", c.name, got)
		}
	}
}

func TestASharedCauseLastsAsLongAsOnAllItsInstances(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	on := func(name string, status Status, since, until time.Time) InstanceHealth {
		return InstanceHealth{name, status, []Cause{{Kind: "disk", Status: status, Text: "Full.", Since: since, Until: until}}}
	}
	for name, c := range map[string]struct {
		all          []InstanceHealth
		since, until time.Time
	}{
		"one restarted":         {[]InstanceHealth{on("a", Warning, at(9), time.Time{}), on("b", Warning, at(1), time.Time{})}, at(1), time.Time{}},
		"it ended on one":       {[]InstanceHealth{on("a", Warning, at(1), time.Time{}), on("b", Warning, at(2), at(3))}, at(1), time.Time{}},
		"it ended on both":      {[]InstanceHealth{on("a", Warning, at(1), at(3)), on("b", Warning, at(2), at(4))}, at(1), at(4)},
		"an unknown start":      {[]InstanceHealth{on("a", Warning, at(1), time.Time{}), on("b", Warning, time.Time{}, time.Time{})}, time.Time{}, time.Time{}},
		"it is worse elsewhere": {[]InstanceHealth{on("a", Warning, at(1), time.Time{}), on("b", Severe, at(5), time.Time{})}, at(5), time.Time{}},
		"it is better on one":   {[]InstanceHealth{on("a", Severe, at(5), time.Time{}), on("b", Warning, at(1), time.Time{})}, at(5), time.Time{}},
	} {
		got := EnvironmentOf(c.all).Causes[0]
		if !got.Since.Equal(c.since) || !got.Until.Equal(c.until) || got.Count != 2 {
			t.Errorf("%s: since %v until %v, want %v and %v", name, got.Since, got.Until, c.since, c.until)
		}
	}
}

func TestCausesOfAnEnvironmentStayShort(t *testing.T) {
	t.Parallel()
	var all []InstanceHealth
	for i := range 40 {
		text := strings.Repeat(string(rune('a'+i)), 1000)
		all = append(all, InstanceHealth{strings.Repeat("ü", 100), Severe, []Cause{{Status: Severe, Text: text}}})
	}
	got := EnvironmentOf(all)
	if len(got.Causes) != maxShared || len(got.Causes[0].Text) > maxSharedText || len(got.Causes[0].Instances[0]) > maxName {
		t.Errorf("%d causes, the first is %+v", len(got.Causes), got.Causes[0])
	}
}

func TestSameEnvironmentDiffersInMeasurementsOnly(t *testing.T) {
	t.Parallel()
	before := EnvironmentOf([]InstanceHealth{{Name: "a", Status: Ok}, Unreachable("b", 91*time.Second)})
	later := EnvironmentOf([]InstanceHealth{{Name: "a", Status: Ok}, Unreachable("b", 5*time.Minute)})
	other := EnvironmentOf([]InstanceHealth{{Name: "b", Status: Ok}, Unreachable("a", 91*time.Second)})
	if !before.Same(&later) {
		t.Error("an environment changes with the age of a report")
	}
	if before.Same(&other) || before.Same(nil) || !(*Environment)(nil).Same(nil) {
		t.Error("different environments are the same")
	}
}

func TestLogsOfASharedCauseAreReadFromAllInstances(t *testing.T) {
	t.Parallel()
	warning := InstanceHealth{"a", Warning, []Cause{{Kind: "process", Status: Warning, Text: "Text.", Remedy: logsOf("web")}}}
	for _, c := range []struct {
		all  []InstanceHealth
		want string
	}{
		{[]InstanceHealth{warning}, "tendril logs web"},
		{[]InstanceHealth{warning, {"b", Ok, nil}}, "tendril logs web --fleet"},
		{[]InstanceHealth{warning, warning}, "tendril logs web --fleet"},
		{[]InstanceHealth{{"a", NoData, noData("Text.").Details}, {"b", Ok, nil}}, "tendril logs --fleet"},
	} {
		if got := EnvironmentOf(c.all).Causes[0].Remedy; got != c.want {
			t.Errorf("the remedy among %d instances is %q, want %q", len(c.all), got, c.want)
		}
	}
}
