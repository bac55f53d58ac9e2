package console

import (
	"context"
	"log/slog"

	"tendril/broker"
)

// Options configure a [Server]. The zero value is a server that knows its
// health and nothing else.
type Options struct {
	// Environment is the environment's name, Version the program's; both are
	// shown as they are.
	Environment, Version string
	// Status returns what only the environment knows: state, worker, app. The
	// server adds name, version, process id, the queues of Broker, the problems
	// of Deliveries and the checks of Ready. Nil means none of it.
	Status func() Status
	// Ready returns the checks behind /readyz; all of them must be OK. Nil
	// means always ready.
	Ready func() []Check
	// Pause stops receiving from a queue for a reason given by a person; an
	// empty queue means every queue. Nil means that this process has no
	// worker. An error is shown to the caller.
	Pause func(queue, reason string) error
	// Resume undoes Pause. Nil as for Pause.
	Resume func(queue string) error
	// Drain begins to drain and stop the environment, unless it has begun, and
	// waits until all work is settled or ctx is done. It returns nil when
	// drained and ctx.Err() when ctx was done first; the drain then goes on. It
	// must return before the environment stops the console.
	// Nil means that the process cannot be drained.
	Drain func(ctx context.Context) error
	// Broker is the embedded queue; nil when the environment works on Amazon
	// SQS, and the queue routes then answer 409.
	Broker *broker.Broker
	// Deliveries remembers outcomes; nil for none, and the routes that show
	// outcomes then answer 409.
	Deliveries *Deliveries
	// Tasks are the periodic tasks; nil when the environment has none, and the
	// routes of tasks then answer 409.
	Tasks *TaskOptions
	// Token is what "Authorization: Bearer TOKEN" must carry, see [NewToken].
	// Without one every protected route answers 401.
	Token string
	// Hosts are host names that a request may address beside localhost and
	// loopback IP addresses; ports do not matter.
	Hosts []string
	// Logger gets a line for every act and what the HTTP server has to say;
	// nil discards both.
	Logger *slog.Logger
}
