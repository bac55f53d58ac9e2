// Package supervisor runs the user's app and keeps it healthy.
//
// Each [Process] of a [Supervisor] has a goroutine (processloop.go) that moves it through these states:
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
// A process is never killed for not being ready. A [Runner] starts processes for callers with their own bookkeeping.
//
// # Invariants
//
//   - No descendant outlives a Supervisor's process, even outside the process group.
//   - Foreign processes are never signaled. A process group is signaled only until its leader is reaped. Other
//     processes are checked and signaled through a pidfd, if the kernel supports it.
//   - A process that exits has failed. Status 0 counts as a success only if [Process.MayFinish] is set.
//   - A process is started only if its port is free. It is not ready while another program listens there; only Linux
//     can tell.
//   - The [Gate] closes before a process is stopped.
//   - A process inherits neither environment nor open files, but its environment may get TENDRIL_RUN and, with a
//     [Process.User], HOME, USER and LOGNAME.
//   - User and limits apply from the program's first instruction.
//   - Output is always drained, so it can neither block a process for long nor fill the memory.
//   - Stop waits for at most the grace period, or until its context or [Options.Hurry] is done, plus a few seconds.
//
// # Descendants
//
// On Linux, each run gets a version 2 control group if tendril can create one: unprivileged processes cannot leave it,
// and the kernel kills it as a whole. Otherwise, each run has a mark in its environment, for which /proc is searched;
// only a daemon that erases its environment escapes that search. Other systems only have process groups.
//
// After kill -9 of tendril, no child survives. On Linux, a parent-death signal, tied to the one locked thread that
// starts all processes, kills direct children. A small shell ([procgroup.Guard]) kills their descendants when the pipe
// from tendril closes.
//
// As process 1, tendril reaps orphans (reaper_linux.go), but never a child that other code waits for.
package supervisor
