package telemetry

type labels = []string

var durationBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180,
	300, 900, 3600} // seconds

func countedMetrics() []metricInfo {
	return []metricInfo{
		{"tendril_messages_received_total", "counter", labels{"queue"},
			"Messages received; repeated receives count again."},
		{"tendril_deliveries_total", "counter", labels{"queue", "target", "outcome", "code"},
			"Deliveries by outcome. ok: success. dropped: deleted at the app's request. retry: failed and " +
				"retried. dead_letter: dead-lettered at once. unreached: the app was down. throttled: the target " +
				"asked to slow down. expired: past its retention, deleted undelivered. handed_back: returned to " +
				"the queue undelivered. filtered: not matched by the filter, deleted. code is the class of the " +
				"HTTP status, 1xx to 5xx, or none."},
		{"tendril_delivery_duration_seconds", "histogram", labels{"queue", "target"},
			"Duration of deliveries that got a response or failed."},
		{"tendril_message_wait_seconds", "histogram", labels{"queue"},
			"Time from the send of a message to the start of its first attempt."},
		{"tendril_message_attempts", "histogram", labels{"queue"}, "Number of attempts until a message was done."},
		{"tendril_queue_polls_total", "counter", labels{"queue", "result"},
			"Receives by result: messages, empty or failed."},
		{"tendril_visibility_extensions_total", "counter", labels{"queue", "result"},
			"Visibility timeout extensions of messages in flight by result: ok or failed."},
		{"tendril_deletes_total", "counter", labels{"queue", "result"},
			"Deletes by result: ok, failed (and retried), or lost; then the message may be delivered again."},
		{"tendril_duplicates_total", "counter", labels{"queue"},
			"Messages received again while in flight or after they were done, and not delivered again."},
		{"tendril_late_deliveries_total", "counter", labels{"queue"},
			"Deliveries that ended after the visibility timeout of their message."},
		{"tendril_receipts_lapsed_total", "counter", labels{"queue"},
			"Messages whose visibility timeout expired while tendril held them."},
		{"tendril_stalls_total", "counter", labels{"queue"},
			"Number of times the process was stalled: stopped, suspended or starved of CPU."},
		{"tendril_attributes_dropped_total", "counter", labels{"queue"},
			"Message attributes that do not fit into a header."},
		{"tendril_app_connects_total", "counter", labels{"target", "result"}, "New connections to the app: ok or failed."},
		{"tendril_app_reconnects_total", "counter", labels{"target"},
			"Deliveries whose keep-alive connection had been closed."},
		{"tendril_app_restarts_total", "counter", labels{"process", "reason"},
			"Restarts of a failed process by reason: exit, signal or not_started."},
		{"tendril_app_given_up_total", "counter", labels{"process"},
			"Processes that failed too often; some are retried later."},
		{"tendril_app_output_lines_dropped_total", "counter", labels{"process"},
			"Dropped lines of the output of the app and of deployment steps."},
		{"tendril_cron_runs_total", "counter", labels{"task", "outcome"},
			"Scheduled runs on this instance: enqueued, or not because missed, overlap, paused, uncertain, " +
				"already or other. failed counts unconfirmed sends."},
		{"tendril_cron_registry_errors_total", "counter", nil, "Failed reads of the registry of periodic tasks."},
		{"tendril_cron_lateness_seconds", "histogram", nil, "Delay between the due time of a scheduled run and its " +
			"enqueueing."},
		{"tendril_leader_terms_total", "counter", nil, "Number of times this instance became the leader."},
		{"tendril_leader_store_errors_total", "counter", nil,
			"Failed calls of the lease store."},
		{"tendril_dead_lettered_total", "counter", labels{"queue", "reason"},
			"Messages moved to the dead-letter queue by an embedded queue or the worker. receives: received " +
				"too often. app: requested by the app. status: one of terminal-codes."},
		{"tendril_dead_letter_send_failures_total", "counter", labels{"queue"},
			"Messages the worker could not send to the dead-letter queue."},
		{"tendril_queue_expired_total", "counter", labels{"queue"},
			"Messages deleted by an embedded queue at the end of their retention period."},
		{"tendril_config_last_reload_successful", "gauge", nil,
			"Whether the last reload succeeded, 1 or 0; 1 before the first."},
		{"tendril_config_last_reload_timestamp_seconds", "gauge", nil,
			"Time of the last successful reload or start, in seconds since 1970."},
		{"tendril_build_info", "gauge", labels{"version", "goversion"}, "The running version; always 1."},
	}
}

func readMetrics() []metricInfo {
	return []metricInfo{
		{"tendril_inflight", "gauge", labels{"queue", "target"}, "Deliveries in flight."},
		{"tendril_waiting", "gauge", labels{"queue"}, "Received messages waiting for a free slot."},
		{"tendril_receiving", "gauge", labels{"queue"}, "Whether the worker is receiving, 1 or 0."},
		{"tendril_receiving_blocked", "gauge", labels{"queue", "reason"},
			"1 for each reason why the worker is not receiving, such as paused, not_ready, app_down, " +
				"delete_refused, breaker, draining; absent while it is receiving."},
		{"tendril_concurrency_limit", "gauge", labels{"target"},
			"Current maximum of concurrent deliveries to a target."},
		{"tendril_queue_longest_wait_seconds", "gauge", labels{"queue"},
			"Longest time from the send of a message to the start of its delivery in the last minute; 0 " +
				"without deliveries."},
		{"tendril_queue_oldest_inflight_seconds", "gauge", labels{"queue"},
			"Age of the oldest message that was received and is not done; 0 without one."},
		{"tendril_queue_messages", "gauge", labels{"queue", "state"},
			"Messages in a queue: visible, inflight or delayed. Amazon SQS reports approximate numbers."},
		{"tendril_queue_oldest_message_age_seconds", "gauge", labels{"queue"},
			"Age of the oldest message in a queue, 0 if empty; embedded queues only."},
		{"tendril_app_up", "gauge", labels{"process"}, "Whether a process of the app is running and healthy, 1 or 0."},
		{"tendril_cron_next_run_timestamp_seconds", "gauge", labels{"task"},
			"Next due time of a periodic task, in seconds since 1970; absent while it is paused."},
		{"tendril_desired_capacity", "gauge", nil,
			"Number of processes, instances or pods needed for the load, as in /api/v1/scale."},
		{"tendril_certificate_expiry_timestamp_seconds", "gauge", labels{"option", "file"},
			"Expiry of the certificate in a TLS file, in seconds since 1970; absent while the file is unusable."},
		{"tendril_leader", "gauge", nil, "Whether this instance is the leader and enqueues scheduled runs, 1 or 0."},
		{"tendril_breaker_state", "gauge", labels{"target", "state"},
			"1 for the current state of a target's breaker (closed, open or half_open), 0 for the others."},
		{"tendril_rate_limited_total", "counter", labels{"target"},
			"Number of times a delivery waited for the rate limit."},
		{"tendril_limit_refusals_total", "counter", labels{"target", "reason"},
			"Number of times a delivery waited for a limit: rate, concurrency or breaker."},
		{"tendril_sink_errors_total", "counter", labels{"sink"},
			"Failed calls of a telemetry sink: cloudwatch, otlp_traces or otlp_metrics."},
		{"tendril_sink_dropped_total", "counter", labels{"sink"},
			"Dropped spans, or dropped statistic sets for CloudWatch."},
	}
}
