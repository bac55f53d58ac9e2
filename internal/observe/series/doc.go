// Package series records the time series for the overview page of the console.
//
// A [Recorder] reads counters every five seconds and stores them in three ranges of 180 points each: 15 minutes in
// steps of 5 seconds, 3 hours in steps of a minute, and 24 hours in steps of 8 minutes.
//
//		counters ── Read, every 5 s ──> Recorder ──┬─ 15m   5 s ─┐
//		(worker, broker, depth, health)            ├─ 3h    1 min ├─> Curves(range)
//		                                           └─ 24h   8 min ┘
//
//	  - Recording adds no cost per message.
//	  - Memory is bounded: 19 KB for the environment and 4.4 KB for each of at most 64 queues.
//	  - Each range is computed from the readings. A percentile of an hour is the percentile of that hour's deliveries, not
//	    an average of percentiles.
//	  - The newest point covers a period still in progress and changes with each reading.
//	  - Unknown values are NaN, or null in JSON.
//
// Nothing is written to disk, so the series start with the process.
package series
