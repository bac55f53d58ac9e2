package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tendril/internal/host/terminal"
	"tendril/internal/observe/health"
)

// RestartedProcess is the response to [Client.RestartProcess]: the replacement's name.
type RestartedProcess struct {
	Process string `json:"process"`
}

// VersionList is the response to GET /api/v1/versions.
type VersionList struct {
	Versions []AppVersion `json:"versions"`
}

// RollbackRequest is the request body of [Client.Rollback]. Version 0 means the previous one.
type RollbackRequest struct {
	Version int `json:"version"`
}

// ScaleDecisions holds the last hundred scaling decisions, newest first.
type ScaleDecisions struct {
	Advice    bool            `json:"advice,omitempty"`
	Decisions []ScaleDecision `json:"decisions"`
}

// ScaleInputs are a scaling decision's inputs. Unknown values are omitted.
type ScaleInputs struct {
	Ready         int      `json:"ready"`
	Backlog       *float64 `json:"backlog,omitempty"`
	OldestSeconds *float64 `json:"oldest_seconds,omitempty"`
	BusyPercent   *float64 `json:"busy_percent,omitempty"` // delivery slots in use
	CPUPercent    *float64 `json:"cpu_percent,omitempty"`  // of all processors
	Hold          string   `json:"hold,omitempty"`         // the reason if the size must not change
}

// Instances are the environment's known instances, starting with the console's own.
type Instances struct {
	Instances []KnownInstance `json:"instances"`
	// Election describes how the leader is elected; "" if no leader is needed.
	Election string `json:"election,omitempty"`
	// Revision is the latest known revision of the desired state; 0 without a fleet key.
	Revision int64 `json:"revision,omitempty"`
	// Shared is nil without a fleet key.
	Shared *SharedSettings `json:"shared,omitempty"`
	Unread string          `json:"unread,omitempty"`
	Notes  []string        `json:"notes,omitempty"`
}

// SourceRegistry is the Source of instances with a registry record.
const SourceRegistry = "registry"

// Applied returns the number of instances that has accepts, and the names of the others with a registry record. Instances
// whose records are not authenticated count as behind, or as unreachable.
func (all *Instances) Applied(has func(*KnownInstance) bool) (done int, behind, unreachable []string) {
	for i := range all.Instances {
		switch one := &all.Instances[i]; {
		case has(one) && !one.NotAuthenticated:
			done++
		case one.Unreachable:
			unreachable = append(unreachable, one.Name)
		case one.This || one.Source == SourceRegistry:
			behind = append(behind, one.Name)
		}
	}
	return done, behind, unreachable
}

// Batches describes the progress of a settings change in batches, or returns "".
func (all *Instances) Batches() string {
	s := all.Shared
	if s == nil || !s.InBatches || all.Unread != "" {
		return ""
	}
	done, behind, _ := all.Applied(func(one *KnownInstance) bool { return one.SettingsRevision >= s.Revision })
	return fmt.Sprintf("Settings of revision %d: applied by %d of %d reachable instances, in batches.", s.Revision, done, done+len(behind))
}

// Rollout describes which instances run a version, and returns the names of unreachable ones. It omits records that are
// not authenticated, as the rollout itself does.
func (all *Instances) Rollout(number int) (text string, unreachable []string) {
	if all.Unread != "" {
		return fmt.Sprintf("version %d: the instances that run it are unknown: %s", number, all.Unread), nil
	}
	var waiting []string
	running := 0
	for i := range all.Instances {
		switch one := &all.Instances[i]; {
		case !one.TakesVersions, one.NotAuthenticated:
		case one.Unreachable:
			unreachable = append(unreachable, one.Name)
		case one.AppNumber == number:
			running++
		default:
			waiting = append(waiting, one.Name)
		}
	}

	noun := "instances"
	if running+len(waiting) == 1 {
		noun = "instance"
	}
	text = fmt.Sprintf("version %d runs on %d of %d %s", number, running, running+len(waiting), noun)
	const shown = 5
	if len(waiting) > 0 && len(waiting) <= shown {
		text += ", not yet on " + strings.Join(waiting, ", ")
	}
	return text, unreachable
}

// KnownInstance is an instance. Unknown values are omitted.
type KnownInstance struct {
	// ID is new at each start; "" without a registry record. See [Client.On].
	ID string `json:"id,omitempty"`
	// NoDetails is the reason the console cannot read from this instance, or "".
	NoDetails string `json:"no_details,omitempty"`
	// Name is the host and process ID, the ID in the Auto Scaling group, or both.
	Name   string `json:"name"`
	Member string `json:"member,omitempty"` // the ID in the Auto Scaling group; "" if unknown
	// This marks the console's own instance. Source is "process", "registry", "lease", or "asg:" and an Auto Scaling
	// group's name.
	This   bool   `json:"this,omitempty"`
	Source string `json:"source"`
	State  string `json:"state,omitempty"`
	// Leads marks the leader of Term. LeaseAgeSeconds is the time since the console's instance last saw the lease
	// renewed.
	Leads           bool           `json:"leads,omitempty"`
	Term            int64          `json:"term,omitempty"`
	LeaseAgeSeconds float64        `json:"lease_age_seconds,omitempty"`
	Version         string         `json:"version,omitempty"`
	AppVersion      string         `json:"app_version,omitempty"`
	StartedAt       time.Time      `json:"started_at,omitzero"`
	Console         string         `json:"console,omitempty"` // host:port, reported by the instance
	Health          string         `json:"health,omitempty"`
	Causes          []health.Cause `json:"causes,omitempty"`
	// InFlight counts running deliveries, Slots is their maximum, and LongestSeconds the age of the oldest.
	InFlight       *int     `json:"in_flight,omitempty"`
	Slots          int      `json:"slots,omitempty"`
	LongestSeconds int      `json:"longest_seconds,omitempty"`
	CPUPercent     *float64 `json:"cpu_percent,omitempty"` // of all processors
	PausedQueues   []string `json:"paused_queues,omitempty"`
	Deploying      bool     `json:"deploying,omitempty"`
	// Revision is the applied revision of the desired state; 0 without a fleet key.
	Revision int64 `json:"revision,omitempty"`
	// SettingsRevision is the applied revision of the shared settings or, if Rejected is set, the rejected one.
	SettingsRevision int64  `json:"settings_revision,omitempty"`
	Rejected         string `json:"rejected,omitempty"`
	// TakesVersions means that the instance runs the app version set for all instances.
	TakesVersions bool `json:"takes_versions,omitempty"`
	// AppNumber is that version's number; 0 for one of this instance only.
	AppNumber int `json:"app_number,omitempty"`
	// Unreachable means that the instance's record has not changed for 90 s. RecordAgeSeconds is the time since the
	// console's instance last saw it change; 0 without a record, or after the first read.
	Unreachable      bool    `json:"unreachable,omitempty"`
	RecordAgeSeconds float64 `json:"record_age_seconds,omitempty"`
	// NotAuthenticated means that the console's instance has a fleet key, but the record is not signed with it,
	// belongs elsewhere or is outdated. The other fields may be false and are not used in decisions.
	NotAuthenticated bool `json:"not_authenticated,omitempty"`
	// Unhealthy is the health status in the Auto Scaling group. Protected is the scale-in protection; nil if unknown.
	Unhealthy bool  `json:"unhealthy,omitempty"`
	Protected *bool `json:"protected,omitempty"`
	// SeenAt is the time of the group's report; zero for the console's own instance.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

// ChooseVersion returns the wanted version, or the previous one for 0. all must be sorted newest first.
func ChooseVersion(all []AppVersion, wanted int) (AppVersion, error) {
	var kept []string
	for _, v := range all {
		if v.State == VersionKept && (v.Folder != "" && !v.InPlace || v.Digest != "") {
			kept = append(kept, fmt.Sprint(v.Number))
			if wanted == 0 || wanted == v.Number {
				return v, nil
			}
		}
	}

	hint := "use one of " + strings.Join(kept, ", ") + "; 'tendril versions' lists them"
	if len(kept) == 0 {
		hint = "'tendril deploy' deploys a folder or an archive, and keeps the last five"
	}
	if wanted == 0 {
		return AppVersion{}, errNoPrevious(all, hint)
	}
	return AppVersion{}, errNotKept(all, wanted, hint)
}

func errNoPrevious(all []AppVersion, hint string) *Error {
	const text = "no version to roll back to"
	if i := slices.IndexFunc(all, func(v AppVersion) bool { return v.InPlace }); i >= 0 {
		return Conflict(text+": "+all[i].inPlaceText(), all[i].inPlaceHint())
	}
	return Conflict(text, hint)
}

func errNotKept(all []AppVersion, wanted int, hint string) *Error {
	refusal := &Error{Status: http.StatusNotFound, Hint: hint}
	i := slices.IndexFunc(all, func(v AppVersion) bool { return v.Number == wanted })
	again := slices.IndexFunc(all, func(v AppVersion) bool { return slices.Contains(v.Replaced, wanted) })
	switch {
	case i < 0 && again < 0:
		refusal.Message = fmt.Sprintf("version %d not found: it may have been removed", wanted)
	case i < 0 && all[again].InPlace:
		refusal.Message = fmt.Sprintf("the files of version %d were not kept: %s", wanted, all[again].inPlaceText())
		refusal.Hint = all[again].inPlaceHint()
	case i < 0:
		refusal.Message = fmt.Sprintf("version %d is now version %d after a rollback", wanted, all[again].Number)
	case all[i].State == VersionLive:
		refusal.Message = fmt.Sprintf("version %d is already serving", wanted)
		refusal.Status = http.StatusConflict
	case all[i].State == VersionFailed:
		refusal.Message = fmt.Sprintf("version %d failed and was not kept", wanted)
	case all[i].InPlace:
		refusal.Message = "the files of that version were not kept: " + all[i].inPlaceText()
		refusal.Hint = all[i].inPlaceHint()
	default:
		refusal.Message = fmt.Sprintf("version %d has no folder: it is the same command", wanted)
	}
	return refusal
}

func (v *AppVersion) inPlaceText() string {
	return fmt.Sprintf("version %d was started in place in %s, and not copied", v.Number, v.Folder)
}

func (v *AppVersion) inPlaceHint() string {
	return "restore the files there and type 'tendril deploy " + terminal.ShellWord(v.Folder) + "', which keeps a copy"
}
