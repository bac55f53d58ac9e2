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
// # Invariants
//
//   - Deliveries never wait for a network, a disk or a long-held lock. Counting a delivery does not allocate.
//   - Pending data is bounded: 15 intervals of statistic sets, 2048 spans, one running call per source.
//   - Label values are bounded: configured names, fixed words, classes of HTTP statuses, and the names of the first 200
//     embedded queues.
//   - Message bodies, attributes and responses are never exported. Message IDs appear only in spans.
package telemetry
