package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tendril/internal/host/terminal"
)

// RestartedProcess is the answer of a restart: the process that runs in the place of the one that was named.
type RestartedProcess struct {
	Process string `json:"process"`
}

// VersionList is the answer of the versions.
type VersionList struct {
	Versions []AppVersion `json:"versions"`
}

// RollbackRequest names a version by its number; 0 is the one that served last.
type RollbackRequest struct {
	Version int `json:"version"`
}

// ScaleDecisions are the last decisions about the size.
type ScaleDecisions struct {
	// Advice is true where nothing is scaled: the decisions are for an external scaler that reads /api/v1/scale.
	Advice bool `json:"advice,omitempty"`
	// Decisions are the last hundred, the newest first, with what each was decided by.
	Decisions []ScaleDecision `json:"decisions"`
}

// ScaleInputs are what a decision was made by. What was not known is left out.
type ScaleInputs struct {
	Ready         int      `json:"ready"`                    // how many could work
	Backlog       *float64 `json:"backlog,omitempty"`        // messages that wait
	OldestSeconds *float64 `json:"oldest_seconds,omitempty"` // the age of the oldest of them
	BusyPercent   *float64 `json:"busy_percent,omitempty"`   // of the slots for deliveries
	CPUPercent    *float64 `json:"cpu_percent,omitempty"`    // of all processors of this machine
	Hold          string   `json:"hold,omitempty"`           // why the size was to be kept
}

// Instances are the instances of the environment, as far as this one knows.
type Instances struct {
	// Instances has this instance first.
	Instances []KnownInstance `json:"instances"`
	// Election says how instances agree on a leader; "" when nothing needs one.
	Election string `json:"election,omitempty"`
	// Notes say what cannot be known from here, and why.
	Notes []string `json:"notes,omitempty"`
}

// KnownInstance is one instance of the environment. What is not known of it is left out.
type KnownInstance struct {
	// Name is the host and process, or the id in a group of instances.
	Name string `json:"name"`
	// This is whether it is the one that answers. Source is where it is known from: "process", "lease", or "asg:" and
	// the name of a group.
	This   bool   `json:"this,omitempty"`
	Source string `json:"source"`
	// State is one of the State constants, or for an instance of a group its state there.
	State string `json:"state,omitempty"`
	// Leads is whether it holds the lease of the leader in Term. LeaseAgeSeconds is how long ago this instance saw the
	// lease renewed.
	Leads           bool    `json:"leads,omitempty"`
	Term            int64   `json:"term,omitempty"`
	LeaseAgeSeconds float64 `json:"lease_age_seconds,omitempty"`
	// Version is that of tendril, AppVersion names the version of the app.
	Version    string    `json:"version,omitempty"`
	AppVersion string    `json:"app_version,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	Console    string    `json:"console,omitempty"` // host:port, as the instance names it
	InFlight   *int      `json:"in_flight,omitempty"`
	// Unhealthy is what its group says of it. Protected is whether it is kept from scale-in; nil where that is not known.
	Unhealthy bool  `json:"unhealthy,omitempty"`
	Protected *bool `json:"protected,omitempty"`
	// SeenAt is when its group said so; zero for what is known at once.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

// ChooseVersion returns the version of a list, newest first, to roll back to: the one with that number, or for 0 the
// last one that served before the one that serves now.
func ChooseVersion(all []AppVersion, wanted int) (AppVersion, error) {
	var kept []string
	for _, v := range all {
		if v.State == VersionKept && v.Folder != "" && !v.InPlace {
			kept = append(kept, fmt.Sprint(v.Number))
			if wanted == 0 || wanted == v.Number {
				return v, nil
			}
		}
	}
	refusal := &Error{Status: http.StatusNotFound, Hint: "use one of " + strings.Join(kept, ", ") +
		"; 'tendril versions' lists them"}
	if len(kept) == 0 {
		refusal.Hint = "'tendril deploy' deploys a folder or an archive, and keeps the last five"
	}
	i := slices.IndexFunc(all, func(v AppVersion) bool { return v.Number == wanted })
	again := slices.IndexFunc(all, func(v AppVersion) bool { return slices.Contains(v.Replaced, wanted) })
	live := slices.IndexFunc(all, func(v AppVersion) bool { return v.State == VersionLive })
	switch {
	case wanted == 0 && live >= 0 && all[live].InPlace:
		refusal.Message = "there is no version to roll back to: " + all[live].inPlaceText()
		refusal.Status, refusal.Hint = http.StatusConflict, inPlaceHint(all[live].Folder)
	case wanted == 0:
		refusal.Message, refusal.Status = "there is no version to roll back to", http.StatusConflict
	case i < 0 && again >= 0 && all[again].InPlace:
		refusal.Message = fmt.Sprintf("the files of version %d are not kept: %s", wanted, all[again].inPlaceText())
		refusal.Hint = inPlaceHint(all[again].Folder)
	case i < 0 && again >= 0:
		refusal.Message = fmt.Sprintf("version %d is now version %d: it was rolled back to", wanted, all[again].Number)
	case i < 0:
		refusal.Message = fmt.Sprintf("there is no version %d, or it was removed", wanted)
	case all[i].State == VersionLive:
		refusal.Message, refusal.Status = fmt.Sprintf("version %d is serving already", wanted), http.StatusConflict
	case all[i].State == VersionFailed:
		refusal.Message = fmt.Sprintf("version %d failed, so that nothing of it was kept", wanted)
	case all[i].InPlace:
		refusal.Message, refusal.Hint = "the files of that version are not kept: "+all[i].inPlaceText(), inPlaceHint(all[i].Folder)
	default:
		refusal.Message = fmt.Sprintf("version %d has no folder: it is the same command", wanted)
	}
	return AppVersion{}, refusal
}

// inPlaceText says of a version that runs in place why no earlier one is left.
func (v *AppVersion) inPlaceText() string {
	return fmt.Sprintf("version %d was started in place in %s, of which no copy was made", v.Number, v.Folder)
}

// inPlaceHint says how to get earlier files of a folder to run.
func inPlaceHint(folder string) string {
	return "restore the files there and type 'tendril deploy " + terminal.ShellWord(folder) + "', which keeps a copy"
}
