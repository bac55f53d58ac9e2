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
	// Region defaults to the region of the environment or the profile. A region in a URL or ARN takes precedence.
	Region string
	// Profile is one of the shared AWS configuration files; "" means AWS_PROFILE or "default".
	Profile string
	// Endpoint is the URL of a compatible server; "" means the service's variable, such as AWS_ENDPOINT_URL_SQS, then
	// AWS_ENDPOINT_URL, then the AWS endpoint. For SQS, it can also be unix:PATH.
	Endpoint string
	Events   *Events
	Log      LogFunc
}

// Events contains listeners for calls to SQS. Each may be nil. They may be called concurrently and must not block.
type Events struct {
	// Corrupted is called for every message or batch entry with a wrong checksum.
	Corrupted func(Corruption)
	// ClockAdjusted is called after AWS rejects a signature because the local clock is wrong. Later signing times
	// include offset.
	ClockAdjusted func(offset time.Duration)
}

// Corruption describes a message damaged in transit. A damaged received message becomes visible again after its
// visibility timeout.
type Corruption struct {
	Queue, MessageID string
	// Part is "body" or "attributes".
	Part string
	// Sent is false for a received message.
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

// The rest of a message can contain the SDK's chain of causes or, for a rejected signature, the canonical request with
// the session token.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
