package autoscale

// Scale is the answer for an external scaler such as KEDA's metrics-api. Its JSON names
// are a stable interface.
type Scale struct {
	// Queues are the loads by queue name.
	Queues map[string]QueueLoad `json:"queues"`
	// Backlog is the sum over all queues.
	Backlog int64 `json:"backlog"`
	// OldestSeconds is the maximum over all queues.
	OldestSeconds int64 `json:"oldestSeconds"`
	// Desired is the desired size, at least 1.
	Desired int `json:"desired"`
}

// QueueLoad is the load of one queue.
type QueueLoad struct {
	// Backlog is the number of waiting messages, without those in work.
	Backlog int64 `json:"backlog"`
	// OldestSeconds is the age of the oldest of them, in whole seconds.
	OldestSeconds int64 `json:"oldestSeconds"`
}

// NewScale adds up the queues. desired is [Status].Desired, or the current size before
// the first decision.
func NewScale(queues map[string]QueueLoad, desired int) Scale {
	s := Scale{Queues: map[string]QueueLoad{}, Desired: max(desired, 1)}
	for name, q := range queues {
		s.Queues[name] = q
		s.Backlog += q.Backlog
		s.OldestSeconds = max(s.OldestSeconds, q.OldestSeconds)
	}
	return s
}
