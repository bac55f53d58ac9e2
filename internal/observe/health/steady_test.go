package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func letter(s Status) string {
	return map[Status]string{Ok: "o", Info: "i", Warning: "w", Degraded: "d", Severe: "s", Pending: "p", NoData: "n"}[s]
}

func findingsOf(c rune) []finding {
	for _, s := range []Status{Info, Warning, Degraded, Severe, Pending, NoData} {
		if letter(s) == strings.ToLower(string(c)) {
			return []finding{{Cause: Cause{Kind: "k", Status: s, Text: "Cause " + letter(s) + "."}, measured: letter(s) == string(c)}}
		}
	}
	return nil
}

func settled(in string, every time.Duration) string {
	var s smoother
	var out strings.Builder
	for i, c := range in {
		var r Report
		s, r = s.smooth(findingsOf(c), noon.Add(time.Duration(i)*every), true)
		out.WriteString(letter(r.Status))
	}
	return out.String()
}

func TestWorseOfTwoFindingsWithOneIDCounts(t *testing.T) {
	t.Parallel()
	found := []finding{
		{Cause: Cause{Kind: "k", Status: Severe, Text: "Worse."}, measured: true},
		{Cause: Cause{Kind: "k", Status: Warning, Text: "Better."}, measured: true},
	}
	for range 2 {
		var s smoother
		var r Report
		s, _ = s.smooth(nil, noon, true)
		for i := range minAgreeing {
			s, r = s.smooth(found, noon.Add(time.Duration(i+1)*time.Second), true)
		}
		if r.Status != Severe {
			t.Errorf("found in the order %q: %s", []string{found[0].Text, found[1].Text}, r.Status)
		}
		slices.Reverse(found)
	}
}

func TestSteady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		every          time.Duration
	}{
		{"well", "oooo", "oooo", 0},
		{"one bad check", "oooosooooooooo", "oooooooooooooo", 0},
		{"two of six", "ooosoosoosoooo", "oooooooooooooo", 0},
		{"three of six", "ooososoooooooo", "oooooooooooooo", 0},
		{"three in a minute", "ooososso", "ooooooss", 0},
		{"worse in steps", "ooowwwsss", "ooooowwws", 0},
		{"three of mixed badness", "ooowsdoo", "ooooowww", 0},
		{"better after a minute", "ooosssoooooooo", "ooooossssssooo", 0},
		{"better in steps", "ooossswwwwwwwwooooooo", "ooooosssssswwwwwwwwoo", 0},
		{"to and fro", "sosososososososososososo", "oooossssssssssssssssssss", 0},
		{"the first checks count as good", "wwwo", "ooww", 0},
		{"certain", "ooSo", "ooss", 0},
		{"certain at the start", "S", "s", 0},
		{"a pause", "ooIIoooooooo", "ooiioooooooo", 0},
		{"a start", "ppppoo", "ppppoo", 0},
		{"a start that fails", "pppSss", "pppsss", 0},
		{"a silence", "ooosssnnnooo", "ooooosnnnooo", 0},
		{"rare checks", "ossso", "oosss", 30 * time.Second},
		{"very rare checks", "osowo", "osowo", 5 * time.Minute},
		{"two checks a third of a minute apart", "ss", "os", 20 * time.Second},
		{"two checks that are nearer", "ss", "oo", 20*time.Second - 1},
		{"Info at the start", "ii", "ii", 0},
		{"Info while one check is worse", "iiiwi", "iiiii", 0},
		{"an Info that is over while one check is worse", "iiiooooow", "iiioooooo", 0},
		{"frequent checks", "osssooooooooooooo", "ooossssssssssssss", time.Second},
	} {
		every := c.every
		if every == 0 {
			every = 10 * time.Second
		}
		if got := settled(c.in, every); got != c.want {
			t.Errorf("%s:\n%s became\n%s, want\n%s", c.name, c.in, got, c.want)
		}
	}
}

func TestCausesHaveTheirOwnTimes(t *testing.T) {
	t.Parallel()
	at := func(check int) time.Time { return noon.Add(time.Duration(check) * 10 * time.Second) }
	var s smoother
	var r Report
	pause := finding{Cause: Cause{Kind: KindPaused, Name: "jobs", Status: Info, Text: "Paused.", Since: noon.Add(-time.Hour)}}
	disk := finding{Cause: Cause{Kind: "disk", Status: Warning, Text: "Full."}}
	for i, c := range "oooddddow" {
		found := append(findingsOf(c), pause)
		if i >= 1 && i < 7 {
			found = append(found, disk)
		}
		s, r = s.smooth(found, at(i), true)
	}
	want := []Cause{
		{Kind: "k", Status: Degraded, Text: "Cause w.", Since: at(3)},
		{Kind: "disk", Status: Warning, Text: "Full.", Since: at(1), Until: at(7)},
		{Kind: KindPaused, Name: "jobs", Status: Info, Text: "Paused.", Since: noon.Add(-time.Hour)},
	}
	if diff := cmp.Diff(want, r.Details); diff != "" || r.Status != Degraded || !r.Since.Equal(at(5)) {
		t.Error(r.Status, r.Since, diff)
	}
	if got := want[1].Head(at(8)); got != "Warning for 60 seconds, until 10 seconds ago" {
		t.Error(got)
	}
}

func TestCauseCountsFromWhenItBecameAtLeastAsBad(t *testing.T) {
	t.Parallel()
	var s smoother
	var r Report
	for i, want := range map[int]string{4: "Warning for 20 seconds", 7: "Severe for 0 seconds", 9: "Severe for 20 seconds",
		13: "Severe for 60 seconds", 14: "Warning for 2 minutes"} {
		s, r = smoother{}, Report{}
		now := noon
		for check, c := range "oowwwsssswwwwwww"[:i+1] {
			now = noon.Add(time.Duration(check) * 10 * time.Second)
			s, r = s.smooth(findingsOf(c), now, true)
		}
		if len(r.Details) != 1 || r.Details[0].Head(now) != want {
			t.Errorf("at check %d: %+v, want %s", i, r.Details, want)
		}
	}
}

func TestCausesOfQueuesAreIndependent(t *testing.T) {
	t.Parallel()
	in := well()
	in.Queues = append(in.Queues, in.Queues[0])
	in.Queues[1].Name, in.Queues[1].Deliveries = "mail", counts{Server: 20}
	_, r := smoother{}.smooth(judge(in), noon, true)
	if len(r.Details) != 1 || r.Details[0].Name != "mail" || r.Status != Severe {
		t.Errorf("%+v", r)
	}
}

func TestSteadyNeverFlaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringMatching(`[oiwds]{1,60}`).Draw(t, "in")
		out := settled(in, 10*time.Second)
		const order = "oiwds"
		for i := range in {
			window := in[max(0, i-5) : i+1]
			shown := strings.IndexByte(order, out[i])
			worst := 0
			for _, c := range window {
				worst = max(worst, strings.IndexRune(order, c))
			}
			if shown > worst && i > 0 && shown > strings.IndexByte(order, out[i-1]) {
				t.Fatalf("%s became %s: worse than the window at %d", in, out, i)
			}
			if i >= 6 && shown > worst {
				t.Fatalf("%s became %s: worse than all of the last minute at %d", in, out, i)
			}
			if i > 0 && shown > strings.IndexByte(order, out[i-1]) {
				as := 0
				for _, c := range window {
					if strings.IndexRune(order, c) >= shown {
						as++
					}
				}
				if as < 3 {
					t.Fatalf("%s became %s: worse at %d by %d checks", in, out, i, as)
				}
			}
		}
	})
}

func TestGreenStatusMentionsNoFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*inputs)
		want   Status
	}{
		{"all deliveries fail", func(in *inputs) { in.Queues[0].Deliveries = counts{Server: 12} }, Severe},
		{"all deliveries are refused", func(in *inputs) { in.Queues[0].Deliveries = counts{Client: 12} }, Severe},
		{"none reaches the app", func(in *inputs) { in.Queues[0].Deliveries = counts{Unreached: 12} }, Severe},
		{"too few for a judgement", func(in *inputs) { in.Queues[0].Deliveries = counts{Server: 2} }, Info},
		{"too few for more than a Warning", func(in *inputs) { in.Queues[0].Deliveries = counts{Server: 9} }, Warning},
		{"the app is not ready for ten seconds", func(in *inputs) { in.App.Ready, in.App.Since = false, noon.Add(-10*time.Second) }, Warning},
		{"the app is not ready for twenty seconds", func(in *inputs) { in.App.Ready, in.App.Since = false, noon.Add(-notReadyGrace) }, Severe},
		{"a restart", func(in *inputs) { in.App.Processes = []Process{{Name: "web", Restarts: 1}} }, Warning},
		{"a dead letter", func(in *inputs) { in.Queues[0].DeadLetters, in.Queues[0].NewDeadLetters = 1, 1 }, Warning},
		{"a moment's load", func(in *inputs) { in.Host.CPU, in.Host.Load = known(100), known(12) }, Ok},
	} {
		var s smoother
		s, _ = s.smooth(judge(well()), noon, true)
		in := well()
		c.change(&in)
		if _, r := s.smooth(judge(in), noon, true); r.Status != c.want || (r.Status == Ok) != (len(r.Causes) == 0) {
			t.Errorf("%s: %v", c.name, r)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var s smoother
		for i, c := range rapid.StringMatching(`[oiwdsIWDS]{1,60}`).Draw(t, "in") {
			var r Report
			s, r = s.smooth(findingsOf(c), noon.Add(time.Duration(i)*10*time.Second), true)
			if r.Status != Ok && len(r.Causes) == 0 {
				t.Fatalf("check %d: %v has no cause", i, r)
			}
			for _, cause := range r.Details {
				if cause.Status.rank() > r.Status.rank() {
					t.Fatalf("check %d: %v", i, r)
				}
			}
		}
	})
}
