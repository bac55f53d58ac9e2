package autoscale

import (
	"time"
)

// QueueState is the load of a queue and its worker.
type QueueState struct {
	Name string
	// Backlog excludes messages in flight, and is valid if Known. Oldest is the oldest waiting message's age, valid if
	// HasAge.
	Known   bool
	Backlog int64
	Oldest  time.Duration
	HasAge  bool
	// ServiceTime is the average duration of a delivery; 0 if unknown. PerSecond is the rate of completed deliveries.
	InWork      int
	ServiceTime time.Duration
	PerSecond   float64
	Paused      bool
}

// Gauge measures the load.
//
// A slot is room for one delivery in flight. The limit, http-connections, applies to the instance with all its
// replicas, because it protects the services that the app depends on. A replica's slots are its share at the maximum
// number of replicas; with fewer replicas, it may exceed that share.
type Gauge struct {
	Queues func() []QueueState
	// Slots returns the number of slots of one replica, or of this instance if instances are scaled. Settings can change
	// it.
	Slots func() int
	// Ready returns the number of ready replicas; nil means 1.
	Ready     func() int
	CPU       func() Reading
	Deploying func() bool
}

// Read returns the current measures, except Desired and Ready. If any queue's load is unknown, so is the total.
func (g *Gauge) Read() Inputs {
	in, _ := g.Measure()
	return in
}

// Measure is like Read, but also returns the measures as a sample for other instances.
func (g *Gauge) Measure() (Inputs, Sample) {
	queues, slots := g.Queues(), g.Slots()
	total := combinedState(queues)

	s := Sample{
		CPU:         g.CPU(),
		OldestAge:   Reading{total.Oldest.Seconds(), total.HasAge},
		Slots:       slots,
		InWork:      total.InWork,
		ServiceTime: averageServiceTime(queues),
		Deploying:   g.Deploying(),
		Paused:      total.Paused,
	}
	if g.Ready != nil {
		s.Slots *= g.Ready()
	}

	in := Inputs{
		Slots:       slots,
		CPU:         s.CPU,
		Backlog:     Reading{float64(total.Backlog), total.Known},
		OldestAge:   s.OldestAge,
		Busy:        s.busy(),
		ServiceTime: s.ServiceTime,
	}
	switch {
	case s.Deploying:
		in.Hold = "a deployment is in progress"
	case s.Paused:
		in.Hold = "receiving is paused"
	}
	return in, s
}

// The total is known, has an age or is paused only if this applies to all queues.
func combinedState(queues []QueueState) QueueState {
	exists := len(queues) > 0
	total := QueueState{Known: exists, HasAge: exists, Paused: exists}
	for i := range queues {
		q := &queues[i]
		total.Backlog += q.Backlog
		total.Oldest = max(total.Oldest, q.Oldest)
		total.InWork += q.InWork
		total.Known = total.Known && q.Known
		total.HasAge = total.HasAge && q.Known && q.HasAge
		total.Paused = total.Paused && q.Paused
	}
	return total
}

func averageServiceTime(queues []QueueState) float64 {
	var sum, weights float64
	for i := range queues {
		q := &queues[i]
		if q.ServiceTime <= 0 {
			continue
		}
		weight := max(q.PerSecond, 1e-9)
		sum += weight * q.ServiceTime.Seconds()
		weights += weight
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// Scale is the response to an external scaler such as KEDA's metrics-api. Its JSON names must not change.
type Scale struct {
	Queues map[string]QueueLoad `json:"queues"`
	QueueLoad
	Desired int `json:"desired"`
}

// QueueLoad is a queue's load. It excludes messages in flight.
type QueueLoad struct {
	Backlog       int64 `json:"backlog"`
	OldestSeconds int64 `json:"oldestSeconds"`
}

// NewScale combines the queues with known loads. desired is [Status].Desired, or the current size before the first
// decision.
func NewScale(queues []QueueState, desired int) Scale {
	s := Scale{Queues: map[string]QueueLoad{}, Desired: max(desired, 1)}
	for _, q := range queues {
		if !q.Known {
			continue
		}
		load := QueueLoad{Backlog: q.Backlog, OldestSeconds: int64(q.Oldest / time.Second)}
		s.Queues[q.Name] = load
		s.Backlog += load.Backlog
		s.OldestSeconds = max(s.OldestSeconds, load.OldestSeconds)
	}
	return s
}
