// Package procgroup starts processes in their own process groups, which are killed when tendril exits.
//
//	Thread.Do(cmd.Start) ---> leader of a new process group <--- PDEATHSIG, when tendril dies
//	                             '-- its children            <--- Guard: KILL to the group
//	Leader.Await ... Leader.Reap
//
// A group is signaled only until its leader is reaped, because its number may be reused afterwards. So [Guard.Remove]
// comes before [Leader.Reap]. Only Linux has the parent-death signal and can wait without reaping; other systems rely on
// the guard.
package procgroup
