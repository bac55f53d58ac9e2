package environment

import (
	"context"
	"time"

	"tendril/aws"
	"tendril/depth"
)

// buildDepths makes what counts the messages that wait in the queues.
func (e *Environment) buildDepths(context.Context) error {
	var queues []depth.Queue
	for _, l := range e.lines {
		onSQS, _ := l.queue.Queue.(*aws.Queue)
		queues = append(queues, depth.Queue{
			Name: l.queue.name, DeadLetterQueue: l.queue.dead, OnSQS: onSQS, SetMaxReceives: l.worker.SetMaxReceives,
			Held: func() (int, time.Duration) {
				st := l.worker.Status()
				return st.Prefetched + st.Waiting, st.LongestWait
			},
		})
	}
	e.depths = depth.New(queues, e.broker, func(ctx context.Context, name string) (*aws.Queue, error) {
		return e.sqs.Queue(ctx, name)
	})
	return nil
}

// countDepths asks the queues on Amazon SQS from now on.
func (e *Environment) countDepths(context.Context) error {
	e.steps.background("the counts of the queues", e.depths.Run)
	return nil
}
