package instances

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// App is the app's desired version: Current or, on instances to which it has been rolled out, Next.
type App struct {
	Current AppVersion `json:"current"`
	// Next is the version being rolled out, or nil. Instances with IDs up to Until run it.
	Next    *AppVersion `json:"next,omitempty"`
	Until   string      `json:"until,omitempty"`
	Rollout Rollout     `json:"rollout,omitzero"`
	// Earlier contains former and failed versions, newest first.
	Earlier []AppVersion `json:"earlier,omitempty"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (a *App) UnmarshalJSON(text []byte) error {
	type plain App
	return a.unknown.decode(text, (*plain)(a))
}

// MarshalJSON includes unknown fields.
func (a App) MarshalJSON() ([]byte, error) {
	type plain App
	return a.unknown.encode(plain(a))
}

// AppVersion is a deployed version of the app.
type AppVersion struct {
	// Number counts from 1. Of is the version that a rollback restores; 0 for a deployment.
	Number int `json:"number"`
	Of     int `json:"of,omitempty"`
	// Digest is the archive's SHA-256 in hexadecimal, Name its file name.
	Digest string    `json:"digest"`
	Size   int64     `json:"size"`
	Name   string    `json:"name,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	// Withdrawn means that no delivery may start on the version. Error is the reason that its rollout failed, or "".
	Withdrawn bool   `json:"withdrawn,omitempty"`
	Error     string `json:"error,omitempty"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (v *AppVersion) UnmarshalJSON(text []byte) error {
	type plain AppVersion
	return v.unknown.decode(text, (*plain)(v))
}

// MarshalJSON includes unknown fields.
func (v AppVersion) MarshalJSON() ([]byte, error) {
	type plain AppVersion
	return v.unknown.encode(plain(v))
}

func (v AppVersion) String() string { return fmt.Sprintf("version %d (%s)", v.Number, v.Name) }

// Rollout describes how a version or settings are rolled out.
type Rollout struct {
	// If BatchPercent and BatchSize are 0, all instances change at once.
	BatchPercent int `json:"batch_percent,omitempty"`
	BatchSize    int `json:"batch_size,omitempty"`
	// Timeout is how long a batch may take to apply the change and, without IgnoreHealth, to become healthy.
	Timeout      time.Duration `json:"timeout"`
	IgnoreHealth bool          `json:"ignore_health,omitempty"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (r *Rollout) UnmarshalJSON(text []byte) error {
	type plain Rollout
	return r.unknown.decode(text, (*plain)(r))
}

// MarshalJSON includes unknown fields.
func (r Rollout) MarshalJSON() ([]byte, error) {
	type plain Rollout
	return r.unknown.encode(plain(r))
}

const (
	// KeptVersions is the maximum number of earlier versions kept for a rollback.
	KeptVersions = 5
	// These limits keep the desired state below the registry's 16 KiB.
	listedVersions   = 10
	maxVersionText   = 120
	maxVersionReason = 300
	// settleTime is how long a batch must stay healthy. It covers two reports.
	settleTime = 20 * time.Second
)

// Wanted returns an instance's desired version. id is "" before the instance has joined.
func (a *App) Wanted(id string) AppVersion {
	if a.Next != nil && (id != "" && id <= a.Until || a.Current.Withdrawn) {
		return *a.Next
	}
	return a.Current
}

// Withdrawn reports whether no delivery may start on a version. An unlisted version counts as withdrawn: only instances
// that were disconnected for a long time run it.
func (a *App) Withdrawn(number int) bool {
	switch {
	case number == 0 || a.Next != nil && number == a.Next.Number:
		return false
	case number == a.Current.Number:
		return a.Current.Withdrawn
	}
	i := slices.IndexFunc(a.Earlier, func(v AppVersion) bool { return v.Number == number })
	return i < 0 || a.Earlier[i].Withdrawn
}

// Restorable returns up to [KeptVersions] earlier versions whose rollouts did not fail, newest first.
func (a *App) Restorable() (kept []AppVersion) {
	for _, v := range a.Earlier {
		if v.Error == "" && len(kept) < KeptVersions {
			kept = append(kept, v)
		}
	}
	return kept
}

// Unneeded returns the digests of earlier versions that are not needed, however the rollout in progress ends. It must
// not be called without a rollout.
func (a *App) Unneeded() (digests []string) {
	failed := a.fail("failed")
	needed := append(failed.Restorable(), a.Current, *a.Next)
	for _, v := range a.Earlier {
		isSame := func(other AppVersion) bool { return other.Digest == v.Digest }
		if !slices.ContainsFunc(needed, isSame) && !slices.Contains(digests, v.Digest) {
			digests = append(digests, v.Digest)
		}
	}
	return digests
}

// begin withdraws the current version for a rollback.
func (a App) begin(v AppVersion, how Rollout) App {
	v.Name = clipText(v.Name, maxVersionText)
	v.By = clipText(v.By, maxVersionText)
	v.Number = a.NextNumber()
	if a.Current.Number == 0 {
		return App{Current: v}
	}

	a.Next = &v
	a.Until = ""
	a.Rollout = how
	a.Current.Withdrawn = v.Of != 0
	return a
}

// NextNumber returns the next version's number, which changes only when a rollout ends.
func (a *App) NextNumber() int {
	next := a.Current.Number + 1
	for _, old := range a.Earlier {
		next = max(next, old.Number+1)
	}
	return next
}

func (a App) finish() App {
	next := *a.Next
	a.endRollout(a.Current)
	a.Current = next
	return a
}

func (a *App) endRollout(former AppVersion) {
	all := append([]AppVersion{former}, a.Earlier...)
	a.Earlier = all[:min(len(all), listedVersions)]
	a.Next = nil
	a.Until = ""
	a.Rollout = Rollout{}
}

func (a App) fail(reason string) App {
	failed := *a.Next
	failed.Withdrawn = true
	failed.Error = clipText(reason, maxVersionReason)
	a.endRollout(failed)
	a.Current.Withdrawn = false
	return a
}

// Errors of rollouts.
var (
	ErrRolloutInProgress = errors.New("another version is being deployed")
	ErrNoRollout         = errors.New("no deployment is in progress")
)

// BeginRollout starts the rollout of a version during a [DesiredState.Change], and returns the version with its number.
// With ErrRolloutInProgress, it returns the version in progress.
func (d *Desired) BeginRollout(v AppVersion, how Rollout) (AppVersion, error) {
	app := App{}
	if d.App != nil {
		app = *d.App
	}
	if app.Next != nil {
		return *app.Next, ErrRolloutInProgress
	}

	app = app.begin(v, how)
	d.App = &app
	if app.Next == nil {
		return app.Current, nil
	}
	return *app.Next, nil
}

// AbortRollout ends the rollout and returns all instances to the current version, or returns [ErrNoRollout].
func (d *Desired) AbortRollout(reason string) error {
	if d.App == nil || d.App.Next == nil {
		return ErrNoRollout
	}
	app := d.App.fail(reason)
	d.App = &app
	return nil
}

// AppReport is the part of a record about the app.
type AppReport struct {
	// Takes means that the instance takes part in rollouts. Number is the running version, or 0 if it was deployed only
	// on this instance.
	Takes  bool `json:"takes,omitempty"`
	Number int  `json:"number,omitempty"`
	// Failed is the version that did not start here, or 0.
	Failed int    `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Conductor advances a rollout on the leader. Except for its times, everything is in the desired state and the records,
// so that the next leader can continue.
type Conductor struct {
	number  int
	until   string
	since   time.Time
	healthy time.Time // when the batch became healthy, or zero
}

// Next returns a rollout's next state, and whether it changed.
func (c *Conductor) Next(app App, all []Instance, now time.Time, healthy func(*Record) bool) (next App, changed bool) {
	if app.Next == nil {
		return app, false
	}
	if c.number != app.Next.Number || c.until != app.Until {
		*c = Conductor{number: app.Next.Number, until: app.Until, since: now}
	}

	switched, rest := rolloutMembers(app.Until, all)
	for i := range switched {
		if one := &switched[i]; one.App.Failed == c.number {
			return app.fail(one.Name + ": " + one.App.Error), true
		}
	}

	waiting := app.waitingFor(switched, healthy)
	if len(switched) == 0 && len(rest) == 0 {
		waiting = []string{"no instance is reachable"}
	}
	if waiting != nil {
		c.healthy = time.Time{}
		if now.Sub(c.since) >= app.Rollout.Timeout {
			reason := fmt.Sprintf("not complete after %s: %s", app.Rollout.Timeout, strings.Join(waiting, "; "))
			return app.fail(reason), true
		}
		return app, false
	}

	if c.healthy.IsZero() {
		c.healthy = now
	}
	if app.Until != "" && !app.Rollout.IgnoreHealth && now.Sub(c.healthy) < settleTime {
		return app, false
	}

	if len(rest) == 0 {
		return app.finish(), true
	}
	app.Until = rest[min(app.Rollout.batchSize(len(switched)+len(rest)), len(rest))-1].ID
	return app, true
}

func (a *App) waitingFor(switched []Instance, healthy func(*Record) bool) (reasons []string) {
	for i := range switched {
		one := &switched[i]
		switch {
		case one.App.Number != a.Next.Number:
			reasons = append(reasons, one.Name+" has not applied it")
		case !a.Rollout.IgnoreHealth && !healthy(&one.Record):
			reason := fmt.Sprintf("%s is %s:", one.Name, cmp.Or(one.Health, "of unknown health"))
			if len(one.Causes) > 0 {
				reason += " " + one.Causes[0].Text
			}
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// NextSettings is like Next for settings. failed is the reason that the settings must be rolled back, or "".
func (c *Conductor) NextSettings(s Settings, all []Instance, now time.Time, healthy func(*Record) bool,
) (next Settings, failed string, changed bool) {
	if s.Rollout == nil {
		return s, "", false
	}

	// Settings are rolled out like a version with their revision as its number.
	rollout := *s.Rollout
	version := AppVersion{Number: int(s.Revision)}
	app := App{Next: &version, Until: rollout.Until, Rollout: rollout.How}
	app, changed = c.Next(app, reportSettingsAsApp(all), now, healthy)
	switch {
	case app.Next != nil:
		rollout.Until = app.Until
		s.Rollout = &rollout
	case app.Current.Number == version.Number:
		s.Rollout = nil
	default:
		failed = app.Earlier[0].Error
	}
	return s, failed, changed
}

func reportSettingsAsApp(all []Instance) []Instance {
	all = slices.Clone(all)
	for i := range all {
		one := &all[i].Record
		one.App = AppReport{Takes: one.State == "running" && slices.Contains(one.Applies, PartSettings),
			Number: int(one.SettingsRevision)}
		if one.Rejected != "" {
			one.App.Failed, one.App.Error = one.App.Number, one.Rejected
		}
	}
	return all
}

// rolloutMembers omits instances that are unreachable, unauthenticated, or do not take part in rollouts. switched
// contains the instances with IDs up to until; rest contains the others, ordered by ID.
func rolloutMembers(until string, all []Instance) (switched, rest []Instance) {
	for i := range all {
		one := &all[i]
		switch {
		case !one.App.Takes || !one.Counts():
		case until != "" && one.ID <= until:
			switched = append(switched, *one)
		default:
			rest = append(rest, *one)
		}
	}
	slices.SortFunc(rest, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return switched, rest
}

// InBatches reports whether instances switch in batches, not all at once.
func (r Rollout) InBatches() bool { return r.BatchSize > 0 || r.BatchPercent > 0 }

func (r Rollout) batchSize(all int) int {
	switch {
	case r.BatchSize > 0:
		return r.BatchSize
	case r.BatchPercent > 0:
		return max(1, all*r.BatchPercent/100)
	}
	return all
}
