package periodic

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLegalStepsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, list string }{
		{"0 0 */31 * *", "0 0 1 * *"},
		{"0 0 1 */12 *", "0 0 1 1 *"},
		{"1-5/10 * * * *", "1 * * * *"},
		{"*/45 * * * *", "0,45 * * * *"},
		{"0 */23 * * *", "0 0,23 * * *"},
		{"0 0 * * */7", "0 0 * * 0"},
		{"0 0 * * mon-fri/2", "0 0 * * 1,3,5"},
		{"0 0 * jan-jul/3 *", "0 0 * 1,4,7 *"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			t.Parallel()
			s, err := parseSchedule(c.expression, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			want, err := parseSchedule(c.list, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			from := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
			if got, want := fmt.Sprint(s.Upcoming(from, 20)), fmt.Sprint(want.Upcoming(from, 20)); got != want {
				t.Errorf("due %s, want %s", got, want)
			}
			if s.String() != c.expression {
				t.Errorf("written as %q", s)
			}
		})
	}
}

func TestOnlyABareStarLeavesTheDayToTheOtherField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression string
		everyDay   bool
	}{
		{"0 0 *,1 * 1", true}, {"0 0 1,* * 1", true}, {"0 0 */1 * 1", true}, {"0 0 1 * */1", true},
		{"0 0 1-31 * 1", true}, {"0 0 * * 1", false}, {"0 0 1 * *", false}, {"0 0 1 * 1", false},
	} {
		t.Run(c.expression, func(t *testing.T) {
			t.Parallel()
			s, err := parseSchedule(c.expression, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			days := s.Upcoming(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), 10)
			if everyDay := days[9].Sub(days[0]) == 9*24*time.Hour; everyDay != c.everyDay {
				t.Errorf("%s, want every day %t", days, c.everyDay)
			}
		})
	}
}

func TestAdviceForRangesThatRunBackwards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, advice string }{
		{"0 0 * * sat-sun", "sat-7"},
		{"0 0 * * sat-sun/2", "sat-7/2"},
		{"0 0 * * fri-mon/2", "5,0"},
		{"0 22-2 * * *", "22-23,0-2"},
		{"0 22-2/2 * * *", "22,0,2"},
		{"50-10/20 * * * *", "50,10"},
		{"0 0 * 11-2 *", "11-12,1-2"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			t.Parallel()
			_, err := parseSchedule(c.expression, time.UTC)
			if err == nil || !strings.Contains(err.Error(), "a reversed range ("+c.advice+"?)") {
				t.Fatalf("%v, want the advice %s", err, c.advice)
			}
			words := strings.Fields(c.expression)
			for i, w := range words {
				if strings.Contains(w, "-") {
					words[i] = c.advice
				}
			}
			if _, err := parseSchedule(strings.Join(words, " "), time.UTC); err != nil {
				t.Errorf("the advice is refused: %v", err)
			}
		})
	}
}

func TestFileOfAThousandTasksIsRead(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\ncron:\n")
	for i := range maxTasks {
		fmt.Fprintf(&b, " - name: \"task-%04d\"\n   url: \"/tasks/of/the/shop/%04d\"\n   schedule: \"*/5 8-18 * * mon-fri\"\n"+
			"   timezone: Europe/Berlin\n   jitter: 30s\n   overlap: skip\n   missed: all\n   grace: 5m\n"+
			"   attributes:\n    kind: report\n    region: north\n", i, i)
	}
	f, err := ParseFile("cron.yaml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%d bytes: %.300v", b.Len(), err)
	}
	if len(f.Tasks) != maxTasks {
		t.Errorf("%d tasks, want %d", len(f.Tasks), maxTasks)
	}
}

func TestFileThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	_, err := ParseFile("cron.yaml", []byte("version: 1\n"+strings.Repeat("# a comment\n", MaxFile/12)))
	if err == nil || !strings.Contains(err.Error(), "the file is larger than 524288 bytes") {
		t.Errorf("%v", err)
	}
}

func TestListWithoutItsKeyIsNamed(t *testing.T) {
	t.Parallel()
	const task = "- name: \"backup-job\"\n  url: \"/backup\"\n  schedule: \"0 */12 * * *\"\n"
	for name, text := range map[string]string{
		"indented":          "version: 1\n " + strings.ReplaceAll(task, "\n  ", "\n   "),
		"at the margin":     "version: 1\n" + task,
		"without a version": task,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseFile("cron.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), `the key "cron" is missing above the tasks`) ||
				!strings.Contains(err.Error(), `write "cron:"`) || strings.Count(err.Error(), "cron.yaml") != 1 {
				t.Errorf("%v", err)
			}
		})
	}
}
