// Package instances records every instance of an environment in the shared registry, and reads the records of the
// others.
//
//	Member: joins, reports --> slot 0, 1, 2 ... <-- reads: Roster
//	                 \           roster          /
//	                  '--- free slots, count ---'
//
// Each instance owns one slot, which is stored as a lease, so that registries of all versions support it. The roster is
// another lease: it counts the slots and lists the free ones, which new instances reuse.
//
// An instance writes its record when its status changes, and every minute with its current load. Clocks of machines
// differ, so the age of a record is the time since the reader last saw it change, on the reader's monotonic clock. An
// instance whose record has not changed for [FreshFor] is unreachable; the leader frees its slot after [ForgetAfter].
package instances
