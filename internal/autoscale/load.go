package autoscale

import (
	"slices"
	"time"
)

// QueueState is the load of one queue and of the worker that receives from it.
type QueueState struct {
	Name string
	// Known tells that the queue was counted. Backlog is the number of waiting messages,
	// without those in work, and Oldest the age of the oldest one, known if HasAge is true.
	Known   bool
	Backlog int64
	Oldest  time.Duration
	HasAge  bool
	// InWork is the number of deliveries in work, ServiceTime the average duration of one, 0
	// when unknown, and PerSecond how many end in a second.
	InWork      int
	ServiceTime time.Duration
	PerSecond   float64
	// Paused tells that a person has paused receiving.
	Paused bool
}

// Gauge measures the load.
//
// A slot is the right to have one delivery in work. What may be in work at once,
// http-connections, belongs to the whole instance, however many replicas of the app share
// it: that is what the option means to Elastic Beanstalk, and what protects whatever is
// behind the app. So the slots of an instance are that number, and those of one replica an
// equal share of it at the largest size. A replica counts as full with its share in work.
// It may get more while it is the only one, and then the size grows.
type Gauge struct {
	// Queues returns the state of the queues whose messages the target works on.
	Queues func() []QueueState
	// Slots are those of one replica, or of this instance.
	Slots int
	// Ready returns how many replicas can work now; nil means 1.
	Ready func() int
	// CPU returns the CPU usage in percent.
	CPU func() Reading
	// Deploying reports whether a deployment is under way.
	Deploying func() bool
}

// Read returns the current measures, without Desired and Ready. One queue that is not known
// leaves the sum unknown.
func (g *Gauge) Read() Inputs {
	queues := g.Queues()
	in := Inputs{Slots: g.Slots, CPU: g.CPU()}
	var backlog int64
	var oldest time.Duration
	inWork := 0
	known := len(queues) > 0
	aged, paused := known, known
	var serviceTime, weights float64 // the average of the queues by how much each settles

	for _, q := range queues {
		backlog += q.Backlog
		oldest = max(oldest, q.Oldest)
		inWork += q.InWork
		known = known && q.Known
		aged = aged && q.Known && q.HasAge
		paused = paused && q.Paused

		if q.ServiceTime > 0 {
			weight := max(q.PerSecond, 1e-9)
			serviceTime += weight * q.ServiceTime.Seconds()
			weights += weight
		}
	}

	in.Backlog = Reading{float64(backlog), known}
	in.OldestAge = Reading{oldest.Seconds(), aged}
	if weights > 0 {
		in.ServiceTime = serviceTime / weights
	}

	slots := g.Slots
	if g.Ready != nil {
		slots *= g.Ready()
	}
	if slots > 0 {
		in.Busy = of(min(100*float64(inWork)/float64(slots), 100))
	}

	switch {
	case g.Deploying():
		in.Hold = "a deployment is under way"
	case paused:
		in.Hold = "receiving is paused"
	}
	return in
}

// Scale is the answer for an external scaler such as KEDA's metrics-api. Its JSON names
// are a stable interface.
type Scale struct {
	// Queues are the loads by queue name.
	Queues map[string]QueueLoad `json:"queues"`
	// QueueLoad has the sum of the backlogs, and the age of the oldest message of all queues.
	QueueLoad
	// Desired is the desired size, at least 1.
	Desired int `json:"desired"`
}

// QueueLoad is the load of one queue: the waiting messages, without those in work, and the age
// of the oldest of them in whole seconds.
type QueueLoad struct {
	Backlog       int64 `json:"backlog"`
	OldestSeconds int64 `json:"oldestSeconds"`
}

// NewScale adds up the queues that are known. desired is [Status].Desired, or the current
// size before the first decision.
func NewScale(queues []QueueState, desired int) Scale {
	s := Scale{Queues: map[string]QueueLoad{}, Desired: max(desired, 1)}
	for _, q := range slices.DeleteFunc(queues, func(q QueueState) bool { return !q.Known }) {
		load := QueueLoad{Backlog: q.Backlog, OldestSeconds: int64(q.Oldest / time.Second)}
		s.Queues[q.Name] = load
		s.Backlog += load.Backlog
		s.OldestSeconds = max(s.OldestSeconds, load.OldestSeconds)
	}
	return s
}
