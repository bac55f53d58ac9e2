package migrate

import (
	"context"
	"fmt"
	"time"
)

// Reason is why a message stays at the source.
type Reason string

// The reasons.
const (
	Refused  Reason = "refused"   // by the destination
	Behind   Reason = "behind"    // a rejected message of its group comes first
	DueLater Reason = "due_later" // its delay exceeds the destination's maximum
)

// Result is the outcome of a migration over all runs.
type Result struct {
	Queue string `json:"queue"`
	FIFO  bool   `json:"fifo"`
	// SourceCount is the source's message count before the first run, Left the one after the last. Arrived is the number
	// of messages that arrived in between.
	SourceCount int `json:"source_count"`
	Arrived     int `json:"arrived"`
	Left        int `json:"left"`
	// Sent counts messages that the destination accepted, or that count as accepted, such as by [Drop].
	Sent    int `json:"sent"`
	Deleted int `json:"deleted"`
	// Resent counts repeated sends of messages with an unknown outcome. On a standard queue, they may be duplicates.
	Resent            int            `json:"resent"`
	Skipped           int            `json:"skipped"`
	Reasons           map[Reason]int `json:"reasons,omitempty"`
	DelaysCut         int            `json:"delays_cut,omitempty"`
	DestinationBefore int            `json:"destination_before"`
	DestinationCount  int            `json:"destination_count"`
	Problems          []string       `json:"problems,omitempty"`
	Refusals          []string       `json:"refusals,omitempty"`
}

const maxRefusals = 5

func (r *Result) refused(id string, why error) {
	if len(r.Refusals) < maxRefusals {
		r.Refusals = append(r.Refusals, fmt.Sprintf("%s: %v", id, why))
	}
}

// Balanced reports whether the counts agree.
func (r *Result) Balanced() bool { return len(r.Problems) == 0 }

// Lines describes arrivals, possible duplicates, shortened delays, skipped messages and problems.
func (r *Result) Lines() (lines []string) {
	line := func(n int, what string) {
		if n > 0 {
			lines = append(lines, messages(n)+" "+what)
		}
	}
	line(r.Arrived, "arrived at the source in the meantime")
	if !r.FIFO {
		line(r.Resent, "sent again after an interruption: there may be two of them")
	}
	line(r.DelaysCut, "due later: they become visible after the destination's longest delay")
	line(r.Reasons[DueLater], "left: due later than the destination can delay them; run this again when they are due, or "+
		"add --cut-delays")
	line(r.Reasons[Refused], "left: rejected by the destination")
	line(r.Reasons[Behind], "left: behind a rejected message of the same group")
	return append(append(lines, r.Refusals...), r.Problems...)
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// Amazon SQS's counts take about a minute to become correct.
const settleTime = 90 * time.Second

func (r *run) finish(ctx context.Context, settle bool) error {
	for began := time.Now(); ; {
		if err := r.compareCounts(ctx); err != nil {
			r.result.Problems = []string{"not compared: the final counts are unknown"}
			return err
		}
		if r.result.Balanced() || !settle || r.options.SourceExact && r.options.DestinationExact || time.Since(began) > settleTime {
			return nil
		}

		if err := pause(ctx, 5*pollInterval); err != nil {
			return err
		}
	}
}

func (r *run) compareCounts(ctx context.Context) (err error) {
	r.result.SourceCount = r.journal.SourceBefore()
	r.result.DestinationBefore = r.journal.DestinationBefore()
	r.result.Sent = r.journal.Sent()
	r.result.Resent, r.result.Deleted = r.journal.counts()
	r.result.DelaysCut = len(r.cut)
	r.result.Skipped = len(r.skipped)
	r.result.Reasons = map[Reason]int{}
	for _, why := range r.skipped {
		r.result.Reasons[why]++
	}

	r.result.Left, r.result.DestinationCount, err = r.counts(ctx)
	if err == nil {
		r.result.Reconcile(r.journal.Uncertain())
	}
	return err
}

// Reconcile compares the counts. uncertain is the number of messages with an unknown outcome. Only a standard queue may
// have copies of resent messages. Reconcile sets Deleted, Arrived and Problems.
//
//	before + arrived = sent + left                      at the source
//	before + sent <= count <= ... + resent + uncertain  at the destination
func (r *Result) Reconcile(uncertain int) {
	r.Problems = nil
	problem := func(n int, what string) { r.Problems = append(r.Problems, messages(n)+" "+what) }
	if r.Left <= r.Skipped {
		r.Deleted = r.Sent // a killed process may have deleted more than it recorded
	}

	r.Arrived = max(0, r.Deleted+r.Left-r.SourceCount)
	if missing := r.SourceCount - r.Sent - r.Left; missing > 0 {
		problem(missing, "gone from the source and not sent: received by something else, or expired")
	}
	if left := r.Left - r.Skipped; left > 0 {
		problem(left, "still at the source")
	}

	copies := r.Resent
	if r.FIFO {
		copies = 0
	}
	switch more := r.DestinationCount - r.DestinationBefore - r.Sent; {
	case more < 0:
		problem(-more, "missing at the destination: something receives from it")
	case more > copies+uncertain:
		problem(more, "too many at the destination: something else sends to it, or they are copies")
	}
}
