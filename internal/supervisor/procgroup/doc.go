// Package procgroup starts processes in their own process groups, which are killed when tendril exits.
//
//	Thread.Do(cmd.Start) ---> leader of a new process group <--- PDEATHSIG, when tendril dies
//	                             '-- its children            <--- Guard: KILL to the group
//	Leader.Await ... Leader.Reap
//
// A group is signaled only until its leader is reaped, because its number may be reused afterwards. So [Guard.Remove]
// comes before [Leader.Reap]. Only on Linux, this package uses the parent-death signal and waits without reaping; other
// systems rely on the guard.
package procgroup
