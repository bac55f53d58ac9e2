// Package telemetry turns events into metrics and traces.
//
//	worker, deliver, periodic, leader, supervisor, broker
//	   | Events                                    ^
//	   v                                           | called when metrics are read
//	Telemetry ---- counters, histograms        Sources: in flight, depth, age,
//	   |                    |                      |     limit, breaker, up ...
//	   |                    +----- registry <------+
//	   |                              |
//	   |                           Handler  <--- GET /metrics --- Prometheus
//	   +--> CloudWatch: sums of an interval ---> aws -----------> Amazon
//	   +--> OTLP: histograms --------------------> exporter ----> collector
//	                                                 ^
//	delivery --> Tracer: a span for each delivery ---+  bounded queue
//
// A [Telemetry] has one method for each package that reports events. The method
// returns that package's Events with listeners that count. The code that builds the
// packages calls them beside its own listeners:
//
//	counters := tel.Worker(queue, target)
//	events.Settled = func(s worker.Settled) { counters.Settled(s); show(s) }
//	events.Deleted = counters.Deleted
//
// State that changes without an event, or too often to follow, is read from
// [Sources] when the metrics are read.
//
// # Invariants
//
//   - No delivery waits for a network, a disk or a lock that is held for longer than a
//     few additions. Counting a delivery allocates nothing.
//   - Everything that waits is bounded: 15 intervals of statistic sets, 2048 spans, one
//     outstanding call of each source.
//   - Label values are bounded: names from the settings, fixed words, classes of
//     HTTP statuses, and the names of the first 200 embedded queues. No message id is a
//     label.
//   - No body, attribute or answer of a message is exported. Its id is exported in
//     spans only.
//
// # When something fails
//
//   - A source does not answer within two seconds: its metrics are absent from this
//     reading, and it is not called again before it has answered. An old value is never
//     reported as a new one.
//   - CloudWatch does not answer: statistic sets wait and are sent again after growing
//     delays. Old intervals are merged, so sums stay right. Sets that CloudWatch rejects
//     as invalid are dropped.
//   - An OTLP collector does not answer: spans wait and are then dropped. Metrics are
//     cumulative, so nothing is lost.
//   - Each failure is counted as an error. The log has one line when failures start and
//     one when they end.
//
// # What it does not do
//
// It decides nothing about messages and raises no alarm: package health does. It does
// not contain Amazon's client, which is in package aws, and opens no listener.
// It logs nothing about messages.
package telemetry
