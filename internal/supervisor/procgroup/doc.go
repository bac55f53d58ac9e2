// Package procgroup starts processes in their own process groups, which are killed when tendril exits.
//
//	Thread.Do(cmd.Start) ---> leader of a new process group <--- PDEATHSIG, when we die
//	                             '-- its children            <--- Guard: KILL to the group
//	Leader.Await ... Leader.Reap
//
// # Invariants
//
//   - A group is signalled only while its leader is not reaped: from then on its
//     number may belong to somebody else. So [Leader.Await] leaves it unreaped where
//     the system can do that, and [Guard.Remove] comes before [Leader.Reap].
//   - A [Guard] that is gone is replaced, and the new one knows the runs of the old.
//
// # Platforms
//
// Only Linux has the parent-death signal, and waits without reaping; elsewhere the
// guard alone clears up after us.
package procgroup
