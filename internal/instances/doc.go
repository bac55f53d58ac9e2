// Package instances records every instance of an environment in the shared registry, and reads the records of the
// others.
//
//	Member: joins, reports --> slot 0, 1, 2 ... <-- reads: Roster
//	                 \           roster          /
//	                  '--- free slots, count ---'
//
// Each instance owns one slot, which is a lease of the registry, so that every registry of every version stores it. The
// roster is one more lease: it counts the slots and lists the free ones, which the next instances reuse.
//
// A record is written when its status changes, and every minute with the current load. Clocks of machines differ, so
// the age of a record is the time since the reader last saw it change, on the reader's monotonic clock. An instance
// that has not changed its record for [FreshFor] is unreachable; the leader frees its slot after [ForgetAfter].
package instances
