// Package series keeps the curves that the overview of the console shows.
//
// A [Recorder] reads counters every five seconds and keeps what they say in three ranges, each of 180 points: the
// last 15 minutes by 5 seconds, 3 hours by the minute, and 24 hours by 8 minutes.
//
//	counters ── Read, every 5 s ──> Recorder ──┬─ 15m   5 s ─┐
//	(worker, broker, depth, health)            ├─ 3h    1 min ├─> Curves(range)
//	                                           └─ 24h   8 min ┘
//
// What holds:
//
//   - It counts nothing itself: a message costs no more than without it.
//   - Its memory does not grow: 19 KB for the environment, and 4.4 KB for each queue, of which it keeps at most 64.
//   - Each range is computed from the readings themselves. A percentile of an hour is that of the deliveries of
//     the hour, not an average of percentiles.
//   - The newest point covers a period that is not over, and changes with each reading.
//   - Where nothing was read, or nothing is known, the value is NaN, null in JSON.
//
// What it does not do: it writes nothing to disk, so the curves begin with the process.
package series
