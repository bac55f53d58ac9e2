package autoscale

// Scale is what a scaler outside reads, KEDA's metrics-api for one. The names
// in JSON are its interface.
type Scale struct {
	// Queues are the loads by the name of the queue.
	Queues map[string]QueueLoad `json:"queues"`
	// Backlog is the sum of the queues'.
	Backlog int64 `json:"backlog"`
	// OldestSeconds is the largest of the queues'.
	OldestSeconds int64 `json:"oldestSeconds"`
	// Desired is the size wanted, at least 1.
	Desired int `json:"desired"`
}

// QueueLoad is what waits in one queue.
type QueueLoad struct {
	// Backlog is how many messages wait, those in work not among them.
	Backlog int64 `json:"backlog"`
	// OldestSeconds is how long the oldest of them waits, in whole seconds.
	OldestSeconds int64 `json:"oldestSeconds"`
}

// NewScale adds the queues up. desired is [Status].Desired, or the size there
// is where nothing was decided yet.
func NewScale(queues map[string]QueueLoad, desired int) Scale {
	s := Scale{Queues: map[string]QueueLoad{}, Desired: max(desired, 1)}
	for name, q := range queues {
		s.Queues[name] = q
		s.Backlog += q.Backlog
		s.OldestSeconds = max(s.OldestSeconds, q.OldestSeconds)
	}
	return s
}
