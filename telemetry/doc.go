// Package telemetry turns events into metrics and traces.
//
//	worker, deliver, periodic, leader, supervisor, broker
//	   | Events                                    ^
//	   v                                           | asked at a reading
//	Telemetry ---- counters, histograms        Sources: in flight, depth, age,
//	   |                    |                      |     limit, breaker, up ...
//	   |                    +----- registry <------+
//	   |                              |
//	   |                           Handler  <--- GET /metrics --- Prometheus
//	   +--> CloudWatch: sums of an interval ---> Putter --------> Amazon
//	   +--> OTLP: histograms --------------------> exporter ----> collector
//	                                                 ^
//	courier --> Tracer: a span for each delivery ----+  bounded queue
//
// A [Telemetry] has one method for each package that reports events; it returns
// that package's Events with the fields set for which there is something to
// count. Whoever builds the parts calls these beside its own listeners:
//
//	counted := tel.Worker(queue, target)
//	events.Settled = func(s worker.Settled) { counted.Settled(s); show(s) }
//	events.Deleted = counted.Deleted
//
// What changes without an event, and what would cost too much to follow, is read
// from [Sources] when somebody looks.
//
// What each file is about:
//
//   - telemetry.go, catalogue.go: the registry, and what is in it, for the
//     documentation.
//   - worker.go: counting deliveries, the one place that runs for every message;
//     listeners.go: the other packages.
//   - sources.go, reading.go, collector.go: what is read instead of counted.
//   - cloudwatch.go, interval.go: statistic sets; the second is pure.
//   - otlp.go, otlp_settings.go, otlp_metrics.go: OpenTelemetry's way out.
//   - trace.go, xray.go: spans, and the contexts that messages carry; semantics.go
//     has all names of OpenTelemetry's conventions.
//   - sink.go: noticing that a way out is shut.
//
// # Invariants
//
//   - Nothing here makes a delivery wait for a network, a disk or a lock that is
//     held for longer than a few additions. Counting one allocates nothing.
//   - Whatever waits is bounded: 15 intervals of figures, 2048 spans, one
//     outstanding question to each source.
//   - The values of labels are bounded: names from the settings, words of fixed
//     lists, classes of statuses, and of the names of embedded queues the first
//     200. No message id is a label.
//   - No body, attribute or answer of a message is told to anybody; its id, in
//     spans only.
//
// # When something fails
//
//   - A source does not answer within two seconds: its metrics are absent from
//     this reading, and it is not asked again before it has answered. An old
//     value is never shown as a new one.
//   - CloudWatch does not answer: figures wait and are sent again, less and less
//     often; old intervals are added together, so sums stay right. Figures that
//     it refuses as such are dropped.
//   - A collector of OTLP does not answer: spans wait, then are dropped; metrics
//     are cumulative and lose nothing.
//   - Each of these is an error counted, and one line in the log when it begins
//     and one when it ends.
//
// # What it does not do
//
// It decides nothing about messages, and raises no alarm: package health does.
// It knows nothing of Amazon's client ([Putter] is filled elsewhere) and starts
// no listener of its own. It writes no log lines about messages.
package telemetry
