// Package leader elects at most one leader using a lease.
//
// Instances share a [Store] that contains one small record. Each runs an [Elector] and calls [Elector.Term] immediately
// before doing anything that only the leader may do.
//
//	                     never written, released,
//	                     ours from a lost term, or
//	                     unchanged for its duration
//	          +--> read --------------------------> take ----+
//	          |     ^  |                        (term + 1)   | won, and still
//	   others |     |  | unchanged,                  |       | within trust
//	   renew  +-----+  | not yet for its duration    | lost  v
//	                ^  +-- wait, then read           |    leading ---+
//	                |                                |       |  ^     | renew: same
//	                +--------------------------------+-------+  +-----+ term, new version
//	                  trust ended, another won, suspended
//
//	one lease on the holder's clock:
//
//	attempt starts                    renew            trust ends      others may take it
//	|---------------------------------|----------------|---------------|
//	0                                 5 s              12 s            15 s at the earliest
//
// The record contains no time of day. Every write stores a new version token, which other instances watch on their own
// monotonic clocks. The holder's trust in the lease counts from before the write and ends a margin earlier, so clock
// rates must agree within Margin / Lease.
//
// # Invariants
//
//   - At any instant, Term is ok on at most one instance.
//   - Once a term is not ok, it never is again. The same instance leads again only in a higher term.
//   - While Term is ok, the stored lease has that term. Effects that are accepted only with the stored term (fencing)
//     cannot come from two leaders, not even if one was suspended before the effect.
//   - The gate closes before listeners are called, and does not wait for them.
//
// # Failures
//
//   - Lost response: the write is repeated with the same token and recognized if it was applied.
//   - Store unavailable: the leader retries until its trust ends.
//   - Suspension: a late timer, or a difference between the wall clock and the monotonic clock, ends the term at once.
//   - Process killed: another instance leads within Lease + Renew, unless [Options].Watch is longer.
//   - Record deleted: the term ends at the next renewal. The next term is higher.
package leader
