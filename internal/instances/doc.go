// Package instances records every instance of an environment in the shared registry, and reads the records of the
// others.
//
//	Member: joins, reports --> slot 0, 1, 2 ... <-- reads: Watcher
//	                 \           roster          /
//	                  '--- free slots, count ---'
//
// Each instance owns one slot, stored as a lease. The roster, another lease, counts the slots and lists the free ones.
//
// An instance writes its record when its status changes, and at least every minute. Machines' clocks differ, so a
// record's age is the time since the reader last saw it change. After [FreshFor], an instance counts as unreachable;
// after [ForgetAfter], the leader frees its slot.
package instances
