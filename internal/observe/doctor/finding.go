package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Level says how bad a finding is.
type Level string

// The levels, the worst first.
const (
	Error   Level = "error"   // messages stop, or are lost
	Warning Level = "warning" // they will be one day, or run twice
	OK      Level = "ok"
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level `json:"level"`
	// ID names the rule, for programs.
	ID string `json:"id"`
	// What says what is so, Why what follows from it, and Remedy what to type. The last two are "" when all is in order.
	What   string `json:"what"`
	Why    string `json:"why,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Examination is what was found out about one environment.
type Examination struct {
	Environment string `json:"environment"`
	// Running is whether a process was examined, and not what would be started.
	Running bool `json:"running"`
	// Findings are ordered by their level, the worst first.
	Findings []Finding `json:"findings"`
}

// Add puts findings among the others.
func (e *Examination) Add(more ...Finding) {
	e.Findings = append(e.Findings, more...)
	slices.SortStableFunc(e.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
}

func rank(l Level) int { return slices.Index([]Level{Error, Warning, OK}, l) }

// findings gathers what the rules find.
type findings []Finding

func (f *findings) ok(id, format string, args ...any) {
	*f = append(*f, Finding{Level: OK, ID: id, What: fmt.Sprintf(format, args...)})
}

func (f *findings) add(level Level, id, what, why, remedy string) {
	*f = append(*f, Finding{level, id, what, why, remedy})
}

// shown is a duration for people, as options have it: whole seconds as "90s", longer ones as "1h30m".
func shown(d time.Duration) string {
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

// seconds is a duration as an option or an attribute takes it, rounded up.
func seconds(d time.Duration) string { return fmt.Sprint(int64((d + time.Second - 1) / time.Second)) }
