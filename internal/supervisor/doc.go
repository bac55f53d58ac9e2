// Package supervisor runs the user's app and keeps it healthy.
//
// A [Supervisor] is made of [Process] values, started once and stopped once:
//
//	s, err := supervisor.New([]supervisor.Process{{
//		Name: "web", Shell: "python3 app.py", Port: 5000, User: "nobody",
//		Env:  []string{"PATH=/usr/bin:/bin", "PORT=5000"},
//	}}, nil)
//	...
//	err = s.Start(ctx)
//	...
//	err = s.Stop(ctx)
//
// Every process goes through the same states, one goroutine (processloop.go) each:
//
//	           port free           check passes
//	Starting ------------> Running -----------> Running, ready
//	   ^  |                   |                      |
//	   |  | no such program,  | ends by itself,      | Stop, or Restart
//	   |  | port taken        | with whatever status |
//	   |  v                   v                      v
//	   | Start fails       Ending: what it       Ending: TERM to it and all
//	   | (first start)     started gets TERM,    that it started, KILL after
//	   |                   KILL after the grace  the grace
//	   |      pause           |                      |
//	   +--- Waiting <---------+                      v
//	   |                      | too often         Stopped
//	   |  RetryAfter          v
//	   +------------------- Failed
//
// # Invariants
//
//   - Nothing of a process outlives it, also what left its process group: see
//     below. Nothing of it is alive when it is started again.
//   - No foreign process is ever signalled. A process group is signalled only while
//     its leader is not reaped; any other process is held by a handle while we
//     look whether it is ours.
//   - A process that ends by itself has failed, even with status 0: it should keep running. One with
//     [Process.MayFinish] has finished with status 0, and is started again only when that is asked for.
//   - A process is started only when its port is free, and is ready only while
//     what listens there is its own. A foreign listener on the port is named in a
//     [PortError] and gets nothing.
//   - The [Gate] is open only while every process with a check passes it. It
//     closes before a process is asked to end.
//   - The environment and the open files of a process are those given to it:
//     nothing else is inherited. A variable TENDRIL_RUN may be added, and with
//     a [Process.User] HOME, USER and LOGNAME are set.
//   - User and limits hold from the first instruction of the program on.
//   - Output is always drained. Control characters are escaped, long lines cut,
//     floods thinned and what is lost counted, so that no output can freeze a
//     process, fill the memory or drive the terminal. A [LogFolder] that takes
//     it is bounded as well.
//   - Stop is bounded: by the grace, by its context and [Options.Hurry], and by five
//     seconds after KILL. So is the end of what a start that fails had started.
//
// # What belongs to a process
//
// All that it started, in one of two ways on Linux (processtree.go). Where we may make a
// control group (version 2) inside our own, each run gets one: nothing leaves it
// by itself, and the kernel ends it in one stroke. Elsewhere each run has a mark
// in its environment, which children inherit, and /proc is searched for it, for
// the process group, and for children of what was found. Only a program that
// daemonises and also wipes or overwrites its environment escapes that search.
// Where it is not Linux the process group is all there is.
//
// # When this process dies
//
// A kill -9 of ours leaves no child. On Linux the kernel kills the processes we
// started: they carry a parent-death signal, and since that is tied to the thread
// that started them, one locked thread starts them all. Their own children have
// no such signal. Therefore a small shell ([procgroup.Guard]) waits at the end of a pipe,
// and when the pipe closes it kills what is left: groups, control groups, and
// what carries a mark.
//
// # When the app fails
//
// A restart comes after a pause that doubles with every failure in the window,
// from RestartMin to RestartMax; an end that [Options.Excused] excuses does not
// count. When the window holds more failures than RestartLimit the process is given up:
// [Events.GaveUp] tells, and it is in the state [Failed], with its gate closed and the
// rest running; a single try every RetryAfter may bring it back. A process that is not
// ready is never killed for it: its gate stays closed, and [Events.ReadyLate] tells.
//
// # Runs on their own
//
// A [Runner] starts processes for a caller that keeps account of them by itself, as package
// runtimeapi does with the processes of a function, and package app with hooks: with the same
// user, limits, output and guard, and the same ways to find all that they started. What one
// leaves behind can go on, and belongs to the runner then. A [Run] also knows whether the
// program at the other end of a connection belongs to it.
//
// # Process 1
//
// As process 1, as in a container, orphans are reaped (reaper_linux.go). Exit statuses
// are safe: a child that any code of this program waits for has a handle among our open
// files, and such a child is never touched.
//
// A [Meter] reads what processes use, together with all that they started.
//
// # Its size
//
// The package has more than 4,000 lines because it has one way for each system to find all that a process started, to
// signal it, to limit it and to measure it: by control groups, by /proc, and by process groups alone.
//
// # What it does not do
//
// It limits by the limits of processes, not by those of control groups. No
// sockets are handed over. Processes do not wait for each other. A program that
// gets itself moved into the control group of another service, as a container
// engine does with its containers, is that service's. A setuid program loses the
// parent-death signal; the guard remains.
package supervisor
