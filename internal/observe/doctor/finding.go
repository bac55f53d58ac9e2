package doctor

import (
	"fmt"
	"slices"
	"time"
)

// Level is the severity of a finding.
type Level string

// Levels, worst first.
const (
	Error   Level = "error"   // messages are stuck or lost
	Warning Level = "warning" // messages will eventually be stuck, lost or processed twice
	OK      Level = "ok"
)

// Finding is the result of one check.
type Finding struct {
	Level Level  `json:"level"`
	ID    string `json:"id"`
	// Why is the consequence of What. Why and Remedy are "" if Level is OK.
	What   string `json:"what"`
	Why    string `json:"why,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Examination lists the findings about an environment.
type Examination struct {
	Environment string    `json:"environment"`
	Running     bool      `json:"running"`
	Findings    []Finding `json:"findings"`
}

// Add adds findings, sorted by level.
func (e *Examination) Add(more ...Finding) {
	e.Findings = append(e.Findings, more...)
	sortByLevel(e.Findings)
}

func sortByLevel(found []Finding) {
	rank := func(f Finding) int { return slices.Index([]Level{Error, Warning, OK}, f.Level) }
	slices.SortStableFunc(found, func(a, b Finding) int { return rank(a) - rank(b) })
}

type findings []Finding

func (f *findings) ok(id, format string, args ...any) {
	*f = append(*f, Finding{Level: OK, ID: id, What: fmt.Sprintf(format, args...)})
}

func (f *findings) add(level Level, id, what, why, remedy string) {
	*f = append(*f, Finding{level, id, what, why, remedy})
}

func durationText(d time.Duration) string {
	switch {
	case d < time.Minute && d%time.Second != 0:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	}

	text := ""
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.length; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.name)
		}
		d %= unit.length
	}

	return text
}

func ceilSeconds(d time.Duration) string {
	return fmt.Sprint(int64((d + time.Second - 1) / time.Second))
}
