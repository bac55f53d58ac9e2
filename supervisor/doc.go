// Package supervisor runs the user's app and keeps it healthy.
//
// A [Supervisor] is made of [Process] values, started once and stopped once:
//
//	s, err := supervisor.New([]supervisor.Process{{
//		Name: "web", Shell: "python3 app.py", Port: 5000,
//		Env:  []string{"PATH=/usr/bin:/bin", "PORT=5000"},
//	}}, nil)
//	...
//	err = s.Run(ctx)
//
// Every process goes through the same states, one goroutine (keeper.go) each:
//
//	           port free           check passes
//	Starting ------------> Running -----------> Running, ready
//	   ^  |                   |                      |
//	   |  | no such program,  | ends by itself,      | Stop
//	   |  | port taken        | with whatever status |
//	   |  v                   v                      v
//	   | Start fails       Ending: the rest of    Ending: TERM to the group,
//	   | (first start)     its group gets TERM,   KILL after the grace
//	   |                   KILL after the grace      |
//	   |      pause           |                      v
//	   +--- Waiting <---------+                   Stopped
//	                          | too often
//	                          v
//	                       Failed
//
// # Invariants
//
//   - A process leads its own process group, and the group is signalled as one:
//     what a shell or a "go run" started ends with it. It is signalled only while
//     its leader is not reaped, so never a stranger that got the same number.
//   - A process ended is a process failed, also with status 0: it should run on.
//     Nothing of its group is alive when it is started again.
//   - A process is started only when its port is free. A stranger on the port
//     is named in a [PortError] and never taken for the app.
//   - The [Gate] is open only while every process with a check passes it. It
//     closes before a process is asked to end.
//   - The environment and the open files of a process are those given to it:
//     nothing else is inherited.
//   - Output is always drained. Control characters are escaped, long lines cut,
//     floods thinned and what is lost counted, so that no output can freeze a
//     process, fill the memory or drive the terminal.
//   - Stop is bounded: by the grace, by its context, and by five seconds after
//     KILL.
//
// # When this process dies
//
// A kill -9 of ours leaves no child. On Linux the kernel kills the processes we
// started: they carry a parent-death signal, and since that is tied to the thread
// that started them, one locked thread starts them all. Their own children have
// no such signal. Therefore a small shell (guard.go) waits at the end of a pipe,
// and when the pipe closes it kills the groups that are left.
//
// # When the app fails
//
// A restart comes after a pause that doubles with every failure in the window,
// from RestartMin to RestartMax. When the window holds more failures than
// RestartLimit the process is given up: [Events.GaveUp], [Supervisor.Failed], and
// a [FailedError] from Run. A process that is not ready is never killed for it:
// its gate stays closed, and [Events.ReadyLate] tells.
//
// # What it does not do
//
// A descendant that makes its own session (setsid) has left the group: it
// outlives a stop, cut off from our output. There are no limits on memory or CPU,
// no change of user, no sockets handed over, and orphans are not reaped when we
// are process 1. Processes do not wait for each other.
package supervisor
