package console

import "time"

// ShownDecisions is the most decisions that a [Scaling] holds.
const ShownDecisions = 20

// Scaling is how the size is chosen.
type Scaling struct {
	// Target is what has the size: "processes" for the app's processes on this
	// machine, "asg:" and a name for an Auto Scaling group, "publish" where figures
	// are published for something else to scale by.
	Target string `json:"target"`
	// MinSize and MaxSize bound the size.
	MinSize int `json:"min_size"`
	MaxSize int `json:"max_size"`
	// Desired is the size that is wanted, 0 before the first decision; Ready how
	// many can work now.
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
	// InCharge is whether this instance sets the size, or publishes: of those that
	// share a queue only one does. Always true for processes.
	InCharge bool `json:"in_charge"`
	// Problem is the last call that failed and has not worked since; "" for none.
	Problem string `json:"problem,omitempty"`
	// Decisions are the last ones, at most [ShownDecisions], newest first.
	Decisions []ScaleDecision `json:"decisions,omitempty"`
}

// ScaleDecision is one decision about the size, or the same one made several
// times in a row.
type ScaleDecision struct {
	// At is when it was made first, Until when last, and Times how often.
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	Times int       `json:"times"`
	// From is the size that was found, Desired the one that is wanted; they are
	// equal where nothing was to be done.
	From    int `json:"from"`
	Desired int `json:"desired"`
	// Rule is one word for what decided, Why the sentence.
	Rule string `json:"rule"`
	Why  string `json:"why"`
	// Applied is whether the size was set; NotApplied says why not, where it was
	// to be.
	Applied    bool   `json:"applied"`
	NotApplied string `json:"not_applied,omitempty"`
}
