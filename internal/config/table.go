package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tendril/internal/bundle"
)

const (
	// SQS's maximum visibility timeout
	twelveHours = 12 * time.Hour
	// SQS's maximum retention period
	twoWeeks = 14 * 24 * time.Hour
)

func queueOptions(s *Settings) []Option {
	return []Option{{
		Name: "queue-url", essential: true, block: "Queue", label: "Worker queue", Example: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
		Beanstalk: "WorkerQueueURL", DaemonKey: "queue_url",
		cloneVariables: []string{"SQSD_QUEUE_URL"},
		DefaultNote:    "none: the queue is embedded",
		Help:           "URL or ARN of the Amazon SQS queue to receive from, standard or FIFO.",
		value:          checked(&s.QueueURL, "an http or https URL that ends in the queue's name, or an ARN", queueURL),
	}, {
		Name: "queue", Example: "jobs",
		cloneVariables: []string{"SQSD_QUEUE_NAME"},
		DefaultNote:    "the environment's name",
		Help:           "Name of the queue, embedded or (with --backend sqs) on Amazon SQS.",
		Detail:         "A name ending in .fifo creates a FIFO queue.",
		value:          checked(&s.Queue, allowedQueueName, queueName),
	}, {
		Name: "queues", essential: true, Example: "payments:3,submissions:2,default:1",
		OtherVariables: []string{"WORKERLESS_QUEUES"}, list: true,
		DefaultNote: "the queue of --queue or --queue-url",
		Help:        "Several queues, in strict priority order or each with a weight.",
		Detail:      "The weight is a queue's share of free slots.",
		value:       queueList(&s.Queues),
	}, {
		Name: "name", essential: true, Example: "jobs", OtherVariables: []string{"WORKERLESS_NAME"},
		DefaultNote: "environment-name, else the app's folder, else tendril",
		Help:        "Name of the environment.",
		Detail:      "Also names the embedded queue and the CloudWatch namespace.",
		value:       checked(&s.Name, "1 to 64 letters, digits, \"_\" and \"-\"", environmentName),
	}, {
		Name: "backend", Default: backendAuto, PerQueue: true,
		Help:   "Where the queue lives: embedded or sqs.",
		Detail: "Auto means sqs with a URL, an ARN or --function. With sqs, a --name and no queue, tendril creates the queue.",
		value:  choice(&s.Backend, backendAuto, BackendEmbedded, BackendSQS),
	}, {
		Name: "region", Default: "us-east-1", DefaultNote: "or the one in the queue's URL or ARN",
		Serve:          true,
		OtherVariables: []string{"AWS_REGION", "AWS_DEFAULT_REGION"},
		cloneVariables: []string{"SQSD_QUEUE_REGION", "SQSD_QUEUE_REGION_NAME"},
		Help:           "AWS region of the queue.",
		Detail:         "Also in the ARNs of embedded queues, and given to the app.",
		value:          checked(&s.Region, "lower-case letters, digits and \"-\", such as eu-west-1", region),
	}, {
		Name: "endpoint-url", Example: "http://127.0.0.1:4566",
		DefaultNote:    "AWS_ENDPOINT_URL_SQS, else Amazon's",
		cloneVariables: []string{"SQSD_AWS_ENDPOINT"},
		Help:           "URL of an SQS-compatible server to use instead of Amazon's.",
		Detail:         "unix:PATH is a socket of tendril serve.",
		value:          checked(&s.EndpointURL, "an http or https URL, or unix:PATH", endpointURL),
	}, {
		Name: "wait-time", DaemonKey: "sqs_wait_time_seconds", Default: "20s",
		Aliases: []string{"poll-for"}, OtherVariables: []string{"WORKERLESS_POLL_FOR"},
		cloneVariables: []string{"SQSD_QUEUE_WAIT_TIME", "SQSD_WAIT_TIME_SECONDS"},
		Help:           "Maximum wait of one receive for a message (long polling).",
		Detail:         "Values below one second are rounded up.",
		value:          duration(&s.WaitTime, 0, 20*time.Second),
	}, {
		Name: "sleep", Default: "0s", DefaultNote: "off", OtherVariables: []string{"WORKERLESS_SLEEP"},
		Help:  "Pause after all queues were empty; 0 disables it.",
		value: duration(&s.Sleep, 0, time.Hour),
	}, {
		Name: "max-wait", Default: "0s", DefaultNote: "off", PerQueue: true,
		Help:  "Age at which a message is delivered next, before other queues; 0 disables it.",
		value: duration(&s.MaxWait, 0, twoWeeks),
	}, {
		Name: "delete-linger", Default: "100ms",
		Help:   "Maximum time a delete waits to share a call with other deletes.",
		Detail: "One call deletes up to ten messages. FIFO queues never wait.",
		value:  duration(&s.DeleteLinger, 0, time.Second),
	}}
}

func deliveryOptions(s *Settings) []Option {
	return []Option{{
		Name: "target", essential: true, PerQueue: true, Example: "http://127.0.0.1:8080",
		DefaultNote:    "the app started by tendril, on its port",
		cloneVariables: []string{"SQSD_HTTP_URL", "SQSD_WORKER_HTTP_URL", "SQSD_WORKER_HTTP_HOST"},
		Help:           "URL of an app that is already running.",
		Detail:         "A path in the URL sets http-path.",
		value:          checked(&s.Target, "http://HOST:PORT, https://HOST:PORT or unix:///PATH", targetURL),
	}, {
		Name: "target-ca", PerQueue: true, Example: "/etc/tendril/ca.crt", DefaultNote: "the system's",
		Help:  "PEM CA certificates that verify the certificate of an https target.",
		value: optionalFile(&s.TargetCA),
	}, {
		Name: "target-cert", PerQueue: true, Example: "/etc/tendril/client.crt",
		Help:  "PEM certificate presented to an https target, with its chain.",
		value: optionalFile(&s.TargetCert),
	}, {
		Name: "target-key", PerQueue: true, Example: "/etc/tendril/client.key",
		Help:  "PEM private key for target-cert.",
		value: optionalFile(&s.TargetKey),
	}, {
		Name: "http-path", essential: true, block: "Messages", Live: true, PerQueue: true, Beanstalk: "HttpPath", DaemonKey: "http_path",
		Default:        "/",
		cloneVariables: []string{"SQSD_WORKER_HTTP_PATH"},
		Help:           "Path to which messages are posted.",
		value: checked(&s.HTTPPath, "a path on the app, such as /jobs, without .., // and #, up to 2048 "+
			"bytes", httpPath),
	}, {
		Name: "mime-type", block: "Messages", Live: true, PerQueue: true, Beanstalk: "MimeType", DaemonKey: "mime_type",
		Default:        "application/json",
		cloneVariables: []string{"SQSD_HTTP_CONTENT_TYPE", "SQSD_WORKER_HTTP_REQUEST_CONTENT_TYPE"},
		Help:           "Content-Type of POSTs with one message.",
		value:          checked(&s.MimeType, "1 to 255 printable ASCII characters", mimeType),
	}, {
		Name: "http-connections", essential: true, block: "Messages", Live: true, Beanstalk: "HttpConnections",
		DaemonKey: "http_connections", Default: "50",
		Aliases: []string{"concurrency"}, OtherVariables: []string{"WORKERLESS_CONCURRENCY"},
		cloneVariables: []string{"SQSD_HTTP_MAX_CONNS", "SQSD_WORKER_CONCURRENCY"},
		Help:           "Maximum messages in flight, over all queues.",
		Detail:         "With batches, it limits the invocations and POSTs.",
		value:          integer(&s.HTTPConnections, 1, 1000),
	}, {
		Name: "success-codes", Live: true, Default: "200", list: true,
		Help:  "HTTP statuses that mean success; the message is then deleted.",
		value: checked(&s.SuccessCodes, "statuses, ranges and classes from 200 to 599, such as 200,202-204 or 2xx", normalizeCodes),
	}, {
		Name: "terminal-codes", Live: true, PerQueue: true, Example: "400,404,410-422",
		DefaultNote: "off: failed messages are retried", list: true,
		Help:   "HTTP statuses that send a message to the dead-letter queue at once.",
		Detail: "On Amazon SQS this needs sqs:SendMessage on that queue. Without a dead-letter queue they are retried.",
		value:  checked(&s.TerminalCodes, "off, or statuses, ranges and classes from 200 to 599, such as 400,404,410-422", terminalCodes),
	}, {
		Name: "header-budget", Default: "8KiB",
		Help:   "Maximum bytes of headers with message attributes.",
		Detail: "Attributes beyond it are omitted and counted in a header.",
		value:  size(&s.HeaderBudget, 256, 64<<10),
	}, {
		Name: "keepalive", DaemonKey: "keepalive", Default: "true",
		Help:  "Reuse connections to the app.",
		value: onOff(&s.Keepalive),
	}, {
		Name: "filter", Live: true, PerQueue: true, Example: exampleFilter,
		DefaultNote: "none: all messages are delivered",
		Help:        "JSON pattern of the messages to deliver, or its file; other messages are deleted.",
		Detail:      "It has the syntax of a Lambda event source mapping; see filters.md.",
		value:       filterValue(&s.Filter),
	}, {
		Name: "signing-secret", secretFile: &s.SigningSecretFile, Live: true, PerQueue: true, list: true,
		DefaultNote: "none: POSTs are not signed",
		Help:        "Keys that sign every POST according to Standard Webhooks, newest first.",
		Detail:      "Every key signs. Do not use a flag: other users can see it.",
		value: secret(list(&s.SigningSecret, "whsec_ and 24 to 64 bytes in base64, or whsk_ and a private ed25519 key, "+
			"comma-separated, or off", signingKey), newSigningKey),
	}, {
		Name: "via-sns", DaemonKey: "via_sns", Default: "false", PerQueue: true,
		Help:  "Deliver SNS notifications without their envelope.",
		value: onOff(&s.ViaSNS),
	}, {
		Name: "s3-payloads", Example: "my-payloads",
		DefaultNote: "off: pointers are delivered unchanged", list: true,
		Help:   "S3 buckets from which large message bodies are fetched.",
		Detail: "Messages pointing to other buckets are rejected.",
		value:  list(&s.S3Payloads, "bucket names, comma-separated, or off", bucketName),
	}}
}

func timeoutOptions(s *Settings) []Option {
	return []Option{{
		Name: "connect-timeout", block: "Advanced options", label: "Connection timeout", Live: true, Beanstalk: "ConnectTimeout",
		DaemonKey: "connect_timeout", Default: "5s",
		beanstalkAliases: []string{"ConnectionTimeout", "Connection timeout"},
		Help:             "Time limit for connecting to the app.",
		value:            duration(&s.ConnectTimeout, time.Second, time.Minute),
	}, {
		Name: "inactivity-timeout", essential: true, block: "Advanced options", Live: true, PerQueue: true, Beanstalk: "InactivityTimeout",
		DaemonKey: "inactivity_timeout", Default: "180s",
		Help:   "Maximum time without a byte from the app before an attempt fails.",
		Detail: "Each byte restarts the timeout.",
		value:  duration(&s.InactivityTimeout, time.Second, 36000*time.Second),
	}, {
		Name: "deadline", Live: true, PerQueue: true, Default: "0s", DefaultNote: "off",
		Help:  "Total time limit of one attempt; 0 disables it.",
		value: duration(&s.Deadline, 0, twelveHours),
	}, {
		Name: "visibility-timeout", block: "Messages", Live: true, PerQueue: true, Beanstalk: "VisibilityTimeout",
		DaemonKey: "visibility_timeout", Default: "300s",
		Help:   "Period in which a received message is hidden from other consumers.",
		Detail: "It is extended while the app works.",
		value:  duration(&s.VisibilityTimeout, 0, twelveHours),
	}, {
		Name: "error-visibility-timeout", block: "Messages", Live: true, PerQueue: true, Example: "30s",
		Beanstalk: "ErrorVisibilityTimeout", DaemonKey: "error_visibility_timeout", Default: unset,
		Help:   "Period in which a failed message is hidden before the next attempt.",
		Detail: "By default, the remaining visibility timeout of the receive.",
		value:  optionalDuration(&s.ErrorVisibilityTimeout, 0, twelveHours),
	}, {
		Name: "retention-period", block: "Advanced options", Live: true, PerQueue: true, Beanstalk: "RetentionPeriod",
		DaemonKey: "retention_period", Default: "345600s",
		Help:   "Period after a message's first receive in which it is attempted.",
		Detail: "Then it is deleted.",
		value:  duration(&s.RetentionPeriod, time.Minute, twoWeeks),
	}}
}

func retryOptions(s *Settings) []Option {
	return []Option{{
		Name: "max-retries", essential: true, block: "Advanced options", Live: true, Beanstalk: "MaxRetries", Default: "10",
		Help:   "Maximum receives of a message before it goes to the dead-letter queue.",
		Detail: "A queue of yours on Amazon SQS keeps its redrive policy.",
		value:  integer(&s.MaxRetries, 1, 1000),
	}, {
		Name: "dead-letter-reasons", Default: "false",
		Help:   "Record the reason of the last failure in an attribute of each dead letter on Amazon SQS.",
		Detail: "This needs sqs:SendMessage on the dead-letter queue; see queues.md. The embedded queue always records it.",
		value:  onOff(&s.DeadLetterReasons),
	}, {
		Name: "respect-retry-after", Live: true, Default: "false",
		Help:  "Use the Retry-After header of a failed response as the pause before the next attempt.",
		value: onOff(&s.RespectRetryAfter),
	}, {
		Name: "backoff-min", Live: true, Default: "0s", DefaultNote: "off",
		Help:  "Pause after the first failure of a message, doubled after each further one; 0 disables it.",
		value: duration(&s.BackoffMin, 0, twelveHours),
	}, {
		Name: "backoff-max", Live: true, Default: "3600s",
		Help:  "Maximum pause between two attempts.",
		value: duration(&s.BackoffMax, 0, twelveHours),
	}, {
		Name: "backoff-doublings", Live: true, Default: "16",
		Help:  "Number of doublings; the pause then grows linearly.",
		value: integer(&s.BackoffDoublings, 0, 16),
	}, {
		Name: "backoff-jitter", Live: true, Default: "0",
		Help:   "Random reduction of each pause, in percent.",
		Detail: "It spreads messages that failed together.",
		value:  integer(&s.BackoffJitter, 0, 100),
	}}
}

func functionOptions(s *Settings) []Option {
	return []Option{{
		Name: "function", essential: true, Example: "resize-images", OtherVariables: []string{"WORKERLESS_FUNCTION"},
		PerQueue:    true,
		DefaultNote: "none: messages go to an app",
		Help:        "AWS Lambda function that receives the messages instead of an app.",
		value:       checked(&s.Function, "name or ARN of a function, optionally ending in :VERSION or :ALIAS", functionName),
	}, {
		Name: "lambda", Example: "./bootstrap", PerQueue: true,
		Help:  "Shell command of a local Lambda function that receives the messages instead of an app.",
		value: checked(&s.Lambda, "a command line of up to 4096 bytes", commandLine),
	}, {
		Name: "function-timeout", Default: "900s",
		Help:   "Time limit of one invocation.",
		Detail: "A function on AWS also has its own limit.",
		value:  duration(&s.FunctionTimeout, time.Second, 900*time.Second),
	}, {
		Name: "batch-size", Default: "1", DefaultNote: "as Workerless; AWS's own trigger uses 10",
		PerQueue: true,
		Help:     "Maximum messages per invocation or POST; 1 disables batching.",
		Detail:   "An app gets the JSON of a function; see handler.md.",
		value:    integer(&s.BatchSize, 1, 10),
	}, {
		Name: "batch-window", Default: "0s", DefaultNote: "off", PerQueue: true,
		Help:  "Maximum wait of an invocation or POST for batch-size messages; 0 disables it.",
		value: duration(&s.BatchWindow, 0, 300*time.Second),
	}}
}

func limitOptions(s *Settings) []Option {
	return []Option{{
		Name: "rate", Default: "0", DefaultNote: "off",
		Help: "Maximum messages delivered per second, minute or hour; 0 disables it.",
		Detail: "After a pause, allows a burst of one batch (at most a second's messages), or a tenth of a second's " +
			"messages if that is more.",
		value: rate(&s.Rate),
	}, {
		Name: "adaptive-concurrency", Default: "false",
		Help:  "Adapt the concurrency to the app's speed, up to http-connections.",
		value: onOff(&s.AdaptiveConcurrency),
	}, {
		Name: "breaker", Default: "0", DefaultNote: "off",
		Help:  "Failure percentage at which deliveries stop for breaker-delay; 0 disables it.",
		value: integer(&s.Breaker, 0, 100),
	}, {
		Name: "breaker-window", Default: "30s",
		Help:  "Period over which the breaker counts failures.",
		value: duration(&s.BreakerWindow, time.Second, 600*time.Second),
	}, {
		Name: "breaker-delay", Default: "15s",
		Help:  "Period without deliveries before a trial.",
		value: duration(&s.BreakerDelay, time.Second, time.Hour),
	}}
}

func metricsOptions(s *Settings) []Option {
	return []Option{{
		Name: "cloudwatch", Default: auto,
		Help:   "Send metrics to CloudWatch, which costs money.",
		Detail: "Auto means on if a name is set and a queue or function is on AWS itself.",
		value:  autoSwitch(&s.CloudWatch),
	}, {
		Name: "metrics-interval", Default: "60s", DaemonKey: "cloudwatch_interval",
		OtherVariables: []string{"WORKERLESS_METRICS_INTERVAL"},
		Help:           "Interval at which metrics are sent to CloudWatch.",
		value:          duration(&s.MetricsInterval, time.Second, time.Hour),
	}, {
		Name: "environment-name", Example: "orders-worker", DaemonKey: "environment_name",
		Help:   "Elastic Beanstalk environment whose health is sent to CloudWatch.",
		Detail: "Also the default of name.",
		value:  checked(&s.EnvironmentName, "1 to 64 letters, digits, \"_\" and \"-\"", environmentName),
	}}
}

// Options returns every option, in table order. The caller owns the slice.
func Options() []Option {
	var all []Option
	for _, o := range table(&Settings{}) {
		all = append(all, *o)
	}
	return all
}

func table(s *Settings) []*Option {
	var all []*Option
	for _, group := range []struct {
		name    string
		options []Option
	}{
		{"Queue", queueOptions(s)}, {"Delivery", deliveryOptions(s)}, {"Functions", functionOptions(s)},
		{"Timeouts", timeoutOptions(s)}, {"Retries", retryOptions(s)}, {"Limits", limitOptions(s)},
		{"App", slices.Concat(appOptions(s), ownAppOptions(s))}, {"Scaling", scalingOptions(s)},
		{"Embedded queue", embeddedOptions(s)}, {"Periodic tasks", periodicOptions(s)}, {"Fleet", slices.Concat(fleetOptions(s), inNamespace(bundle.NamespaceCommand, rolloutOptions(s)))},
		{"Console", consoleOptions(s)}, {"Metrics", metricsOptions(s)}, {"Output", outputOptions(s)}, {"Stop", stopOptions(s)},
	} {
		for i := range group.options {
			o := &group.options[i]
			o.complete(group.name)
			all = append(all, o)
			if o.IsSecret() {
				all = append(all, o.fileOption())
			}
		}
	}

	return all
}

func inNamespace(namespace string, options []Option) []Option {
	for i := range options {
		options[i].Namespace = namespace
	}
	return options
}

func (o *Option) complete(group string) {
	o.Group = group
	o.Variable = "TENDRIL_" + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
	if o.Default == "" {
		o.DefaultNote = cmp.Or(o.DefaultNote, "none")
	}
	if o.Name != "config" {
		o.Key = strings.ReplaceAll(o.Name, "-", "_")
	}
	if o.Beanstalk != "" && o.Namespace == "" {
		o.Namespace = bundle.NamespaceWorker
	}
}

// Lookup finds an option by any of its names in any notation.
func Lookup(name string) (Option, bool) {
	if o := findByName(table(&Settings{}), name); o != nil {
		return *o, true
	}
	return Option{}, false
}
