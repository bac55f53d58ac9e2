package console

import (
	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

func fromAttempts(kept []broker.Attempt) (all []api.Attempt) {
	for _, a := range kept {
		all = append(all, api.Attempt{At: a.At, Instance: a.Instance, Outcome: a.Outcome, Status: a.Status, Reason: a.Reason,
			Answer: a.Answer, DurationMS: a.Duration.Milliseconds(), ReceiveCount: a.ReceiveCount, RetryAt: a.RetryAt})
	}
	return all
}

func fromStored(s *broker.Stored) api.Message {
	m := api.FromMessage(&s.Message, s.Queue)
	m.Attributes = queue.SortedAttributes(m.Attributes)
	m.VisibleAt = s.Until
	m.DeadAt = s.DeadAt
	m.Attempts = fromAttempts(s.Attempts)
	m.State = string(s.State)
	if s.State == broker.InFlight {
		m.State = api.MessageInFlight
	}
	return m
}
