package console

import "time"

// The states of a deployment, as [Deployment] names them, in their order.
const (
	// DeployPreparing: hooks and build commands run.
	DeployPreparing = "preparing"
	// DeployStarting: the new version comes up beside the old one.
	DeployStarting = "starting"
	// DeployDraining: the new version has the messages; the old one finishes.
	DeployDraining = "draining"
	// DeployFinishing: the old version is gone; the last hooks run.
	DeployFinishing = "finishing"
	// DeployDone: it went well.
	DeployDone = "done"
	// DeployRolledBack: the previous version is still serving.
	DeployRolledBack = "rolled back"
	// DeployFailed: the new version serves, and something after that failed.
	DeployFailed = "failed"
)

// Deployment is a change of the app's version, under way or over.
type Deployment struct {
	// State is one of the Deploy constants.
	State string `json:"state"`
	// Step is the hook or build command that runs now, or that failed; "" for
	// none.
	Step string `json:"step,omitempty"`
	// From and To name the version that served before and the new one.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Since is when it began; Ended when it was over, zero while it is under way.
	Since time.Time `json:"since"`
	Ended time.Time `json:"ended,omitzero"`
	// Error is why it went wrong; "" when it did not.
	Error string `json:"error,omitempty"`
}

// Over reports whether the deployment has ended.
func (d *Deployment) Over() bool {
	return d.State == DeployDone || d.State == DeployRolledBack || d.State == DeployFailed
}

// Isolation is what is known of messages that end the app.
type Isolation struct {
	// Suspects counts the messages that are tried alone, Killers those of them
	// that were seen to end the app.
	Suspects int `json:"suspects"`
	Killers  int `json:"killers"`
	// Broken tells that whatever message it gets ends the app, so that it is the
	// app and not the messages.
	Broken bool `json:"broken,omitempty"`
}

// Limit is how one target is protected.
type Limit struct {
	// Target is the URL or function, as in [Worker].
	Target string `json:"target"`
	// Rate is the most messages a second; 0 for no limit.
	Rate float64 `json:"rate,omitempty"`
	// InWork is how many deliveries it has, a batch being one.
	InWork int `json:"in_work"`
	// Concurrency is the most deliveries at once that it is given now: what it
	// was found to take, or less while it comes back; 0 for no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Breaker is "closed", "open" or "half-open"; "" for none. TrialAt is when
	// the open one lets a trial begin.
	Breaker string    `json:"breaker,omitempty"`
	TrialAt time.Time `json:"trial_at,omitzero"`
	// Failing is the share of its deliveries that failed lately, 0 to 1.
	Failing float64 `json:"failing,omitempty"`
	// Refused counts how often a message was kept back since the start.
	Refused int64 `json:"refused"`
}
