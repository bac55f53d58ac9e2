package aws

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/smithy-go/logging"
)

// Options configure a service's client. A nil *Options is valid. Credentials are deliberately not included: they come
// from the standard AWS configuration, never from a flag or a settings file of tendril.
type Options struct {
	// Region is the service's region; "" means the environment's or the profile's. The region in a queue's URL or
	// ARN, or in a function's ARN, takes precedence.
	Region string
	// Profile is a profile of the shared AWS configuration files; "" means AWS_PROFILE, or else "default".
	Profile string
	// Endpoint is the URL of a compatible server; "" means the service's variable, such as AWS_ENDPOINT_URL_SQS, then
	// AWS_ENDPOINT_URL, then Amazon's endpoint. SQS also accepts unix:PATH. With an endpoint, S3 bucket names are in
	// the path instead of the host name.
	Endpoint string
	// Events contains listeners for calls to SQS; may be nil.
	Events *Events
	// Log receives the SDK's log messages; nil discards them.
	Log LogFunc
}

// Events contains listeners for calls to SQS; each may be nil. They run in the goroutine of the call, possibly
// concurrently, and must not block.
type Events struct {
	// Corrupted is called for every message or batch entry with a wrong checksum.
	Corrupted func(Corruption)
	// ClockAdjusted is called when AWS rejected a signature because of the local clock. From now on, offset is added
	// to the time in signatures.
	ClockAdjusted func(offset time.Duration)
}

// Corruption describes a message damaged in transit. A damaged message that was received is neither returned nor
// deleted: it becomes visible again after its visibility timeout.
type Corruption struct {
	Queue, MessageID string
	// Part is "body" or "attributes".
	Part string
	// Sent is true if the message was sent, false if it was received.
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

// firstLine drops everything after the first line: the SDK's chains of causes, and the expected canonical request
// that AWS includes when it rejects a signature, which contains the session token.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
