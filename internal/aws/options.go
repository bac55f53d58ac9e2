package aws

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/smithy-go/logging"
)

// Options configure a client. A nil *Options is valid. Credentials always come from the standard AWS configuration.
type Options struct {
	// Region is the service's region; "" means the environment's or profile's. A region in a URL or ARN takes
	// precedence.
	Region string
	// Profile of the shared AWS configuration files; "" means AWS_PROFILE or "default".
	Profile string
	// Endpoint is the URL of a compatible server; "" means the service's variable, such as AWS_ENDPOINT_URL_SQS, then
	// AWS_ENDPOINT_URL, then Amazon's endpoint. SQS accepts unix:PATH. With an endpoint, S3 bucket names are in the
	// path.
	Endpoint string
	Events   *Events
	Log      LogFunc
}

// Events contains listeners for calls to SQS; each may be nil. They may run concurrently and must not block.
type Events struct {
	// Corrupted is called for every message or batch entry with a wrong checksum.
	Corrupted func(Corruption)
	// ClockAdjusted is called when AWS rejected a signature because of the local clock. offset is added from now on.
	ClockAdjusted func(offset time.Duration)
}

// Corruption describes a message damaged in transit. A damaged received message becomes visible again after its
// visibility timeout.
type Corruption struct {
	Queue, MessageID string
	// Part is "body" or "attributes".
	Part string
	// true for a sent message
	Sent bool
}

// LogFunc receives the SDK's log messages. It must be safe for concurrent use.
type LogFunc func(level slog.Level, text string)

// Logf implements the SDK's Logger interface.
func (f LogFunc) Logf(kind logging.Classification, format string, values ...any) {
	level := slog.LevelDebug
	if kind == logging.Warn {
		level = slog.LevelWarn
	}
	f(level, firstLine(fmt.Sprintf(format, values...)))
}

// firstLine drops the SDK's chains of causes, and the canonical request that AWS returns for a rejected signature,
// which contains the session token.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
