package config

import "time"

func functionOptions() []Option {
	return []Option{{
		Name: "function", Group: GroupFunction, Example: "resize-images", OtherVariables: []string{"WORKERLESS_FUNCTION"},
		PerQueue:    true,
		DefaultNote: "none: messages go to an app",
		Help:        "The AWS Lambda function that gets the messages in place of an app.",
		value: checked(func(s *Settings) *string {
			return &s.Function
		}, "a function's name or ARN, of which the end may be :VERSION or :ALIAS", functionName),
	}, {
		Name: "lambda", Group: GroupFunction, Example: "./bootstrap", PerQueue: true,
		DefaultNote: "none",
		Help: "The command, for a shell, of a Lambda function to run on this machine, which gets the messages in " +
			"place of an app.",
		value: checked(func(s *Settings) *string { return &s.Lambda }, "a command line of up to 4096 bytes", commandLine),
	}, {
		Name: "function-timeout", Group: GroupFunction, Default: "900s",
		Help:  "How long one invocation may take before it has failed; a function on AWS also has its own limit.",
		value: duration(func(s *Settings) *time.Duration { return &s.FunctionTimeout }, time.Second, 900*time.Second),
	}, {
		Name: "batch-size", Group: GroupFunction, Default: "1", DefaultNote: "as Workerless; AWS's own trigger has 10",
		PerQueue: true,
		Help:     "The most messages that one invocation gets.",
		value:    integer(func(s *Settings) *int { return &s.BatchSize }, 1, 10),
	}, {
		Name: "batch-window", Group: GroupFunction, Default: "0s", DefaultNote: "off", PerQueue: true,
		Help:  "How long an invocation may wait for more messages when it has fewer than batch-size; 0 is off.",
		value: duration(func(s *Settings) *time.Duration { return &s.BatchWindow }, 0, 300*time.Second),
	}}
}

func limitOptions() []Option {
	return []Option{{
		Name: "rate", Group: GroupLimits, Default: "0", DefaultNote: "off",
		Help: "The most messages whose delivery begins in a second, a minute or an hour; 0 is off. After a rest one " +
			"message, one batch or a tenth of a second's worth, whichever is most, comes on top.",
		value: rate(func(s *Settings) *float64 { return &s.Rate }, maxRate),
	}, {
		Name: "adaptive-concurrency", Group: GroupLimits, Default: "false",
		Help:  "Whether to look for the concurrency at which the app is quickest, up to http-connections.",
		value: onOff(func(s *Settings) *bool { return &s.AdaptiveConcurrency }),
	}, {
		Name: "breaker", Group: GroupLimits, Default: "0", DefaultNote: "off",
		Help:  "The per cent of failures within breaker-window at which deliveries stop for breaker-delay; 0 is off.",
		value: integer(func(s *Settings) *int { return &s.Breaker }, 0, 100),
	}, {
		Name: "breaker-window", Group: GroupLimits, Default: "30s",
		Help:  "The time over which the breaker counts failures.",
		value: duration(func(s *Settings) *time.Duration { return &s.BreakerWindow }, time.Second, 600*time.Second),
	}, {
		Name: "breaker-delay", Group: GroupLimits, Default: "15s",
		Help:  "How long deliveries stay stopped before one is tried.",
		value: duration(func(s *Settings) *time.Duration { return &s.BreakerDelay }, time.Second, time.Hour),
	}}
}

func metricsOptions() []Option {
	return []Option{{
		Name: "cloudwatch", Group: GroupMetrics, Default: Auto,
		Help: "Whether metrics are sent to CloudWatch, which costs money; auto is on when a name was set and a queue or " +
			"a function is Amazon's own, not that of another server.",
		value: autoSwitch(func(s *Settings) *string { return &s.CloudWatch }),
	}, {
		Name: "metrics-interval", Group: GroupMetrics, Default: "60s", DaemonKey: "cloudwatch_interval",
		OtherVariables: []string{"WORKERLESS_METRICS_INTERVAL"},
		Help:           "The time between two sendings of metrics to CloudWatch.",
		value:          duration(func(s *Settings) *time.Duration { return &s.MetricsInterval }, time.Second, time.Hour),
	}, {
		Name: "environment-name", Group: GroupMetrics, Example: "orders-worker", DaemonKey: "environment_name",
		DefaultNote: "none",
		Help: "The Elastic Beanstalk environment whose Health is sent to CloudWatch; also the name, where no other " +
			"is set.",
		value: checked(func(s *Settings) *string {
			return &s.EnvironmentName
		}, "1 to 64 letters, digits, \"_\" and \"-\"", environmentName),
	}}
}
