package config

import (
	"errors"
	"strings"
	"testing"

	"tendril/internal/bundle"
)

func TestClearQueueURLs(t *testing.T) {
	t.Parallel()
	const (
		refused = "refused"
		warned  = "warned"
		silent  = "silent"
	)
	for address, want := range map[string][2]string{ // outcomes in a bundle and as a flag
		"http://queue.example/123456789012/jobs":                 {refused, warned},
		"http://10.0.0.7:9324/000000000000/jobs":                 {refused, warned},
		"http://localhost.example/000000000000/jobs":             {refused, warned},
		"http://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs":  {refused, warned},
		"https://queue.example/123456789012/jobs":                {silent, silent},
		"http://127.0.0.1:4566/000000000000/jobs":                {silent, silent},
		"http://127.8.9.1:4566/000000000000/jobs":                {silent, silent},
		"http://[::1]:4566/000000000000/jobs":                    {silent, silent},
		"http://localhost:4566/000000000000/jobs":                {silent, silent},
		"http://sqs.eu-west-1.amazonaws.com/123456789012/jobs":   {silent, silent}, // the SDK always uses TLS
		"arn:aws:sqs:eu-west-1:123456789012:jobs":                {silent, silent},
		"https://sqs.eu-west-1.amazonaws.com/123456789012/jobs":  {silent, silent},
		"https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs": {silent, silent},
	} {
		bundled := withSettings(setting(bundle.NamespaceWorker, "WorkerQueueURL", address, 3))
		for i, src := range []Sources{
			{Environ: home(), Bundle: bundled},
			{Environ: home(), Bundle: bundled, Flags: map[string]string{"queue-url": address}},
		} {
			got := silent
			cfg, err := loadIsolated(t, src)
			var bad *Error
			switch {
			case errors.As(err, &bad):
				got = refused
				if p := bad.Problems[0]; len(bad.Problems) != 1 || p.Where != "/app/.ebextensions/worker.config:3" ||
					!strings.Contains(p.Hint, "--queue-url="+address) {
					t.Errorf("%s: %+v", address, bad.Problems)
				}
			case strings.Contains(problemTexts(cfg.Warnings), "not encrypted"):
				got = warned
			}
			if got != want[i] {
				t.Errorf("%s, by source %d: %s, want %s (%v)", address, i, got, want[i], err)
			}
		}
	}
}

func TestClearEndpointIsWarnedOf(t *testing.T) {
	t.Parallel()
	const queue = "http://queue.example/123456789012/jobs"
	for endpoint, want := range map[string]bool{"http://sqs.example:9324": true, "https://sqs.example": false,
		"http://127.0.0.1:9324": false} {
		for _, src := range []Sources{
			{Environ: home(), Flags: map[string]string{"queue-url": queue, "endpoint-url": endpoint}},
			{Environ: home("AWS_ENDPOINT_URL_SQS=" + endpoint), Flags: map[string]string{"queue-url": queue}},
		} {
			if got := strings.Contains(problemTexts(mustLoad(t, src).Warnings),
				"calls to "+endpoint+" are not encrypted"); got != want {
				t.Errorf("%s: told %v", endpoint, got)
			}
		}
	}
}

func problemTexts(all []Problem) string {
	var text strings.Builder
	for _, p := range all {
		text.WriteString(p.Text + "\n")
	}
	return text.String()
}
