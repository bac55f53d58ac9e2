// Package supervisor runs the user's app and keeps it healthy.
//
// A [Supervisor] consists of [Process] values. It is started once and stopped once:
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
// Each process has a goroutine (processloop.go) that moves it through these states:
//
//	           port free           check passes
//	Starting ------------> Running -----------> Running, ready
//	   ^  |                   |                      |
//	   |  | no such program,  | exits with           | Stop, or Restart
//	   |  | port taken        | any status           |
//	   |  v                   v                      v
//	   | Start fails       Ending: TERM to its   Ending: TERM to it and its
//	   | (first start)     descendants, KILL     descendants, KILL after the
//	   |                   after the grace       grace period
//	   |      pause           |                      |
//	   +--- Waiting <---------+                      v
//	   |                      | too often         Stopped
//	   |  RetryAfter          v
//	   +------------------- Failed
//
// The pause before a restart doubles with every failure in the window. A process that is not ready is never killed for
// that. A [Runner] starts processes for callers with their own bookkeeping, such as packages runtimeapi and app.
//
// # Invariants
//
//   - No descendant outlives its process, even outside the process group (see below). All of them are gone before a
//     restart.
//   - Foreign processes are never signaled. A process group is signaled only until its leader is reaped; other
//     processes are pinned by a handle while their identity is checked.
//   - A process that exits has failed, even with status 0, because it should keep running. With [Process.MayFinish],
//     status 0 means it has finished, and only an explicit restart starts it again.
//   - A process is started only if its port is free, and is ready only while it listens there itself. A [PortError]
//     reports a foreign listener.
//   - The [Gate] is open only while every process with a check passes it. It closes before a process is stopped.
//   - A process inherits neither environment nor open files. TENDRIL_RUN may be added to its environment, and HOME,
//     USER and LOGNAME with a [Process.User].
//   - User and limits apply from the program's first instruction.
//   - Output is always drained. Control characters are escaped, long lines truncated, and excess lines dropped and
//     counted, so output can neither block a process nor fill the memory.
//   - Stop is bounded by the grace period, its context and [Options.Hurry], plus five seconds after KILL. So is the
//     cleanup after a failed start.
//
// # Descendants
//
// On Linux, descendants are found in one of two ways (processtree.go). If tendril can create a version 2 control
// group inside its own, each run gets one: processes cannot leave it, and the kernel kills it as a whole. Otherwise
// each run has a mark in its environment, which children inherit, and /proc is searched for the mark, for the process
// group and for children of the processes found. Only a daemon that also erases its environment escapes that search.
// Other systems only have process groups.
//
// After kill -9 of tendril, no child survives. On Linux the kernel kills direct children through a parent-death
// signal. That signal is tied to the parent thread, so one locked thread starts all processes. For their descendants,
// a small shell ([procgroup.Guard]) waits at the end of a pipe and, when it closes, kills the remaining groups, control
// groups and marked processes.
//
// As process 1, as in a container, tendril reaps orphans (reaper_linux.go). It never reaps a child that other code
// waits for: such a child has a handle among tendril's open files.
//
// # Limits
//
// Resource limits are those of processes, not of control groups. A program moved into the control group of another
// service belongs to that service. A setuid program loses the parent-death signal, but the guard still works.
package supervisor
