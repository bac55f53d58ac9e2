package environment

import (
	"context"

	"tendril/httplimit"
	"tendril/sqsapi"
	"tendril/worker"
)

// openBroker opens the embedded queues, where there are any.
func (e *Environment) openBroker(context.Context) error {
	if !e.QueuesOnly && !e.s.AnyEmbedded() {
		return nil
	}
	return e.pipelines.openBroker(e.brokerEvents())
}

// serveBroker serves the embedded queues over the SQS protocol.
func (e *Environment) serveBroker(context.Context) error {
	l, err := listen("listen", e.s.Listen, true)
	if err != nil {
		return err
	}
	e.endpoint = "http://" + l.Addr().String()
	handler := sqsapi.New(e.broker, nil)
	most, _ := connectionShares(openFiles(), deliveryDescriptors(e.s))
	server := sqsapi.Server(handler)
	server.Handler = httplimit.NewBodies(endpointBodies, sqsapi.MaxBody).Handler(handler)
	e.servers.serve("the queue endpoint", server, l, most, handler.Stop)
	return nil
}

// openQueues serves the embedded queues, and opens those that the workers receive from.
func (e *Environment) openQueues(ctx context.Context) error {
	if e.broker != nil {
		if err := e.serveBroker(ctx); err != nil {
			return err
		}
	}
	var named []string
	if e.cronFile.Tasks != nil {
		for _, t := range e.cronFile.Tasks.Tasks {
			named = append(named, t.Queue)
		}
	}
	return e.pipelines.openQueues(ctx, named)
}

// buildWorkers makes the workers and opens their targets.
func (e *Environment) buildWorkers(ctx context.Context) error {
	e.openPool()
	for _, l := range e.inOrder() {
		d, err := e.opener.open(ctx, l)
		if err != nil {
			return err
		}
		tuning, events := e.tuning(l), worker.JoinEvents(e.workerEvents(l), e.telemetry.Worker(l.queue.name, l.target))
		l.worker = worker.New(l.queue, d, e.workerOptions(l, &tuning, events))
	}
	return nil
}

// runWorkers lets the workers run. They start after the app, so that they stop before
// it: the app must live while deliveries finish.
func (e *Environment) runWorkers(context.Context) error {
	e.pipelines.runWorkers(e.finishDrain)
	return nil
}
