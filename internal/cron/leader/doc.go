// Package leader elects at most one leader by a lease.
//
// Several instances share a [Store] with one small row. Each runs an [Elector]
// over it and asks [Elector.Term] right before doing what only one may do.
//
//	                     never written, given back,
//	                     ours from a lost term, or
//	                     unchanged for its duration
//	          +--> look --------------------------> take ----+
//	          |     ^  |                        (term + 1)   | won, and still
//	   others |     |  | unchanged,                  |       | within trust
//	   renew  +-----+  | not yet for its duration    | lost  v
//	                ^  +-- wait, then look           |    leading ---+
//	                |                                |       |  ^     | renew: same
//	                +--------------------------------+-------+  +-----+ term, new version
//	                       trust ended, another won, stood still
//
//	one lease on the holder's clock:
//
//	attempt begins                    renew            trust ends      others may take it
//	|---------------------------------|----------------|---------------|
//	0                                 5 s              12 s            15 s at the earliest
//
// # No clocks are compared
//
// The row holds no time of day. Every write puts a new version token into it,
// and who waits for the lease watches one token on its own monotonic clock: when
// it has not changed for the duration written beside it, its holder has stopped
// trusting it, since the holder counts from before the write and stops a margin
// earlier. Only the rates of the clocks have to agree, to within Margin / Lease
// (a fifth).
//
// # Invariants
//
//   - At one instant at most one instance has Term ok.
//   - A term belongs to one instance and is one unbroken time: what was not ok
//     once is never ok again. Leading again means a new, higher term.
//   - Whenever Term is ok, the stored lease has that term. An effect that is
//     accepted only with the stored term and an unreleased lease (the fence) can
//     therefore never come from two leaders, not even from one that was stopped
//     between the question and the effect.
//   - The gate closes before listeners are called, and does not wait for them.
//
// The first three are checked over every interleaving, up to a dozen steps, of
// three instances and a store that may apply a write and report failure.
//
// # When something fails
//
//   - A reply is lost: the same write is tried again with the same token. If it
//     had been applied, it is recognised as one's own, and the trust window
//     counts from the first try.
//   - The store is away, throttled, slow or has no table: the leader retries
//     until its trust ends, the others until the store answers, with growing,
//     spread pauses. There is no leader rather than two. [Elector.Status] and
//     the Failed event say why.
//   - The process or the machine stood still: a timer that is late, or a wall
//     clock that parted from the monotonic one, which stands still in a
//     suspended machine. The term ends at once, before the store is asked. If no
//     instance took the lease meanwhile, the next term starts with the next call.
//   - The process is killed: another one leads within Lease + Renew. Each of the others looks
//     once more when the lease has ended, and the first of them takes it: few write in vain.
//   - The process is stopped: it releases the lease, and another one leads
//     with its next look, within Renew.
//   - The row is removed: the term is over at the next renewal. The next term
//     is higher than any that its holder has seen.
//
// # Work that is done once
//
// [Work] is for what one instance does once, such as preparing a version of the app: the first instance does it and
// renews a lease like a term, the others wait and then learn that it is done. It is taken over by the same rules, since
// both have one core and one [holder] that makes its calls.
//
// # What it does not do
//
// It does not fence: the receiver of an effect has to compare the term. It does
// not choose a good leader, only one. It does not say how many instances there
// are.
package leader
