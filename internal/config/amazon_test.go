package config

import (
	"slices"
	"strings"
	"testing"
)

func TestMetricsAreOnByDefaultOnlyForQueuesOnAWS(t *testing.T) {
	t.Parallel()
	const (
		arn      = "arn:aws:sqs:us-east-1:123456789012:jobs"
		amazon   = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
		loopback = "http://127.0.0.1:9324/000000000000/jobs"
	)
	for name, c := range map[string]struct {
		environ []string
		flags   map[string]string
		want    string
	}{
		"Amazon's URL":  {flags: map[string]string{"queue-url": amazon}, want: On},
		"an ARN":        {flags: map[string]string{"queue-url": arn}, want: On},
		"a name on SQS": {flags: map[string]string{"queue": "jobs", "backend": "sqs"}, want: On},
		"an endpoint of a VPC": {flags: map[string]string{"queue-url": amazon,
			"endpoint-url": "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"}, want: On},
		"the newer domain": {
			flags: map[string]string{"queue-url": "https://sqs.eu-west-1.api.aws/123456789012/jobs"}, want: On},
		"a domain that ends like it": {
			flags: map[string]string{"queue-url": "https://sqs.notamazonaws.com/123456789012/jobs"}, want: Off},
		"a loopback URL":            {flags: map[string]string{"queue-url": loopback}, want: Off},
		"a loopback URL, asked for": {flags: map[string]string{"queue-url": loopback, "cloudwatch": "on"}, want: On},
		"a loopback URL beside": {flags: map[string]string{"queues": "http://127.0.0.1:9324/000000000000/mails," +
			amazon}, want: On},
		"another endpoint": {flags: map[string]string{"queue": "jobs", "backend": "sqs",
			"endpoint-url": "http://127.0.0.1:4566"}, want: Off},
		"a variable for SQS": {environ: []string{"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324"},
			flags: map[string]string{"queue-url": amazon}, want: Off},
		"a variable for all": {environ: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566"},
			flags: map[string]string{"queue-url": arn}, want: Off},
		"variables to be ignored": {environ: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566",
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, flags: map[string]string{"queue-url": arn}, want: On},
		"the own one before that": {environ: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566",
			"AWS_ENDPOINT_URL_SQS=https://sqs.eu-west-1.amazonaws.com"}, flags: map[string]string{"queue-url": arn}, want: On},
		"a function": {flags: map[string]string{"queue": "jobs", "backend": "embedded", "function": "f"},
			want: On},
		"a function elsewhere": {environ: []string{"AWS_ENDPOINT_URL_LAMBDA=http://127.0.0.1:3001"},
			flags: map[string]string{"queue": "jobs", "backend": "embedded", "function": "f"}, want: Off},
		"another CloudWatch": {environ: []string{"AWS_ENDPOINT_URL_CLOUDWATCH=http://127.0.0.1:4566"},
			flags: map[string]string{"queue-url": loopback}, want: On},
		"another CloudWatch, no more": {environ: []string{"AWS_ENDPOINT_URL_CLOUDWATCH=http://127.0.0.1:4566"},
			flags: map[string]string{"queue": "jobs"}, want: Off},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.flags["name"] = "letters"
			if cfg := mustLoad(t, Sources{Environ: home(c.environ...), Flags: c.flags}); cfg.CloudWatch != c.want {
				t.Errorf("cloudwatch is %s (%s), want %s", cfg.CloudWatch, cfg.Origin("cloudwatch"), c.want)
			}
		})
	}
}

func TestMaxRetriesIsUsedWhereTendrilCreatesAQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		idle  bool
	}{
		"embedded":              {flags: map[string]string{"queue": "jobs"}},
		"created on Amazon SQS": {flags: map[string]string{"backend": "sqs"}},
		"named on Amazon SQS":   {flags: map[string]string{"backend": "sqs", "queue": "jobs"}, idle: true},
	} {
		c.flags["name"], c.flags["max-retries"] = "letters", "3"
		cfg := mustLoad(t, Sources{Environ: home(), Flags: c.flags})
		idle := slices.ContainsFunc(cfg.Warnings, func(p Problem) bool { return strings.Contains(p.Text, "max-retries 3") })
		if idle != c.idle {
			t.Errorf("%s: max-retries has no effect: %t", name, idle)
		}
	}
}

func TestServerOfAQueueIsNamedUnlessItIsOnAWS(t *testing.T) {
	t.Parallel()
	for queueURL, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/123456789012/jobs": "", "arn:aws:sqs:us-east-1:123456789012:jobs": "",
		"http://127.0.0.1:9324/000000000000/jobs": "127.0.0.1:9324", "https://queues.example.com/1/jobs": "queues.example.com",
	} {
		if got := OtherServer(queueURL); got != want {
			t.Errorf("%s: %q, want %q", queueURL, got, want)
		}
	}
}
