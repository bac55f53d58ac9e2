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
// For each package that reports events, a method of [Telemetry] returns that package's Events with listeners that
// count. Callers combine them with their own listeners. State without events is read from [Sources].
//
//   - Deliveries never wait for a network, a disk or a long-held lock. Counting a delivery does not allocate.
//   - Everything pending is bounded: 15 intervals of statistic sets, 2048 spans, one running call per source.
//   - Label values are bounded: configured names, fixed words, classes of HTTP statuses, and the names of the first 200
//     embedded queues. Message IDs are never labels.
//   - Message bodies, attributes and responses are never exported. Message IDs appear only in spans.
//   - If a source does not answer within two seconds, its metrics are absent. Stale values are never reported.
//   - If CloudWatch does not respond, statistic sets are retried after growing delays. Old intervals are merged, so
//     sums stay correct. If an OTLP collector does not respond, spans are eventually dropped; metrics are cumulative.
//   - The log has one line when failures start and one when they end.
package telemetry
