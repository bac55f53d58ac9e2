// Package series records the time series for the overview page of the console.
//
//	counters ── Read, every 5 s ──> Recorder ──┬─ 15m   5 s ──┐
//	(worker, broker, depth, health)            ├─ 3h    1 min ├─> Curves(range)
//	                                           └─ 24h   8 min ┘
//
// # Invariants
//
//   - Recording adds no cost per message.
//   - Memory is bounded: 19 KB for the environment and 4.4 KB for each of at most 64 queues.
//   - A point's percentile is computed from all its deliveries, not as an average of percentiles.
//
// Nothing is written to disk.
package series
