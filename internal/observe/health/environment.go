package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Environment is the health of an environment, derived from its instances.
type Environment struct {
	Status    Status         `json:"status"`
	Color     Color          `json:"color"`
	Since     time.Time      `json:"since,omitzero"`
	Instances map[Status]int `json:"instances,omitempty"`
	Causes    []SharedCause  `json:"causes,omitempty"` // worst first
}

// SharedCause is a cause reported by one or more instances.
type SharedCause struct {
	Cause
	// Instances names up to five of Count instances.
	Count     int      `json:"count,omitempty"`
	Instances []string `json:"instances,omitempty"`
	// FiguresOf is the instance whose figures are in the text, if they differ between instances.
	FiguresOf string `json:"figures_of,omitempty"`
}

// InstanceHealth is an instance's health as known to the leader.
type InstanceHealth struct {
	Name   string
	Status Status
	Causes []Cause
}

const (
	maxShared     = 10
	maxNames      = 5
	maxName       = 64
	maxSharedText = 300
)

// The environment has a status if at least this percentage of instances is as bad. The percentages match the examples
// in docs.aws.amazon.com/elasticbeanstalk/latest/dg/health-enhanced-status.html, which does not document thresholds.
var environmentLevels = []level{{10, Warning}, {30, Degraded}, {60, Severe}}

// EnvironmentOf derives an environment's health. As in Elastic Beanstalk, starting instances make it at most Info;
// unreachable ones count as Severe.
func EnvironmentOf(all []InstanceHealth) Environment {
	e := Environment{Status: Ok, Instances: map[Status]int{}}
	for _, one := range all {
		e.Instances[one.Status]++
	}

	switch pending := e.Instances[Pending]; {
	case len(all) == 0:
		e.Status = NoData
	case pending == len(all):
		e.Status = Pending
	case countAtLeast(Info, all) > 0 || pending > 0:
		e.Status = Info
	}
	for _, l := range environmentLevels {
		if n := countAtLeast(l.status, all); n > 0 && 100*float64(n) >= l.at*float64(len(all)) {
			e.Status = l.status
		}
	}
	e.Color = e.Status.Color()
	e.Causes = sharedCauses(all)
	return e
}

func countAtLeast(s Status, all []InstanceHealth) (n int) {
	for _, one := range all {
		if one.Status.weight() >= s.weight() {
			n++
		}
	}
	return n
}

// Unreachable returns the health of an instance last seen age ago.
func Unreachable(name string, age time.Duration) InstanceHealth {
	return InstanceHealth{name, NoData, []Cause{{Kind: "unreachable", Status: NoData, Remedy: "tendril instances",
		Text: "No data. Last seen " + ago(age) + " ago."}}}
}

// Inform adds a cause with the status Info. It changes Ok to Info.
func (e *Environment) Inform(text string, instances ...string) {
	if e.Status == Ok {
		e.Status = Info
	}
	e.Causes = append(e.Causes, SharedCause{Cause: Cause{Kind: text, Status: Info, Text: text, Remedy: "tendril instances"},
		Count: len(instances), Instances: instances[:min(len(instances), maxNames)]})
}

// UnknownEnvironment returns the health of an environment whose instances are unknown. reason may be "".
func UnknownEnvironment(text, reason string) *Environment {
	if reason != "" {
		text += " Reason: " + strings.TrimRight(reason, ".") + "."
	}
	return &Environment{Status: NoData, Color: Grey, Causes: []SharedCause{{Cause: Cause{Kind: "no-data",
		Status: NoData, Text: text, Remedy: "tendril instances"}}}}
}

func (s Status) weight() int {
	if s == NoData {
		return Severe.rank()
	}
	return s.rank()
}

func sharedCauses(all []InstanceHealth) []SharedCause {
	var groups []*causeGroup
	byID := map[causeID]*causeGroup{}
	for _, one := range all {
		for _, cause := range one.Causes {
			id := cause.id()
			if byID[id] == nil {
				byID[id] = &causeGroup{}
				groups = append(groups, byID[id])
			}
			byID[id].add(cause, clip(one.Name, maxName))
		}
	}

	slices.SortStableFunc(groups, func(a, b *causeGroup) int {
		return cmp.Or(b.Status.weight()-a.Status.weight(), b.Count-a.Count)
	})
	var causes []SharedCause
	for _, g := range groups[:min(len(groups), maxShared)] {
		if len(all) > 1 && strings.HasPrefix(g.Remedy, "tendril logs") {
			g.Remedy += " --fleet" // other instances, which may show it, have other logs
		}
		causes = append(causes, g.SharedCause)
	}
	return causes
}

type causeGroup struct {
	SharedCause
	shownOf string
}

func (g *causeGroup) add(cause Cause, instance string) {
	cause.Text = clip(cause.Text, maxSharedText)
	figuresDiffer := g.FiguresOf != "" || g.Count > 0 && cause.Text != g.Text
	switch {
	case g.Count == 0 || cause.Status.weight() > g.Status.weight():
		g.Cause = cause
		g.shownOf = instance
	case cause.Status.weight() == g.Status.weight():
		g.extendTo(&cause)
	}
	if figuresDiffer {
		g.FiguresOf = g.shownOf
	}
	g.Count++
	if len(g.Instances) < maxNames {
		g.Instances = append(g.Instances, instance)
	}
}

// An unknown start counts as the earliest, a missing end as the latest.
func (g *causeGroup) extendTo(cause *Cause) {
	if cause.Since.Before(g.Since) {
		g.Since = cause.Since
	}
	if cause.Until.IsZero() || !g.Until.IsZero() && cause.Until.After(g.Until) {
		g.Until = cause.Until
	}
}

func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

var measurement = regexp.MustCompile(`\d[\d.,]*( [a-z]+)?`)

func withoutMeasurements(text string) string { return measurement.ReplaceAllString(text, "#") }

// Total returns the number of instances.
func (e *Environment) Total() (n int) {
	for _, count := range e.Instances {
		n += count
	}
	return n
}

// IsShared reports whether e shows more than a single instance's health.
func (e *Environment) IsShared() bool { return e != nil && (e.Total() > 1 || e.Status == NoData) }

// Counts returns text such as "1 of 3 instances Severe, 2 Ok".
func (e *Environment) Counts() string {
	statuses := []Status{Severe, NoData, Degraded, Warning, Pending, Info, Ok}
	var words []string
	for _, s := range statuses {
		n := e.Instances[s]
		switch {
		case n == 0:
		case n == e.Total():
			return fmt.Sprintf("%s %s", count(int64(n), "instance"), s)
		case words == nil:
			words = append(words, fmt.Sprintf("%d of %s %s", n, count(int64(e.Total()), "instance"), s))
		default:
			words = append(words, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(words, ", ")
}

// Affected names the affected instances; may be "".
func (c *SharedCause) Affected() string {
	if c.Count == 0 {
		return ""
	}
	names := strings.Join(c.Instances, ", ")
	if more := c.Count - len(c.Instances); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if c.FiguresOf != "" {
		names += "; figures of " + c.FiguresOf
	}
	return names
}

// Same reports whether e and other differ at most in times and measurements.
func (e *Environment) Same(other *Environment) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Status == other.Status && e.Counts() == other.Counts() &&
		slices.EqualFunc(e.Causes, other.Causes, func(a, b SharedCause) bool {
			return a.Status == b.Status && a.id() == b.id() && slices.Equal(a.Instances, b.Instances) && a.Count == b.Count
		})
}
