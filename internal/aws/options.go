package aws

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/smithy-go/logging"
)

// Options configure a client. A nil *Options is valid. Credentials come from the standard AWS configuration.
type Options struct {
	// Region defaults to the region of the environment or the profile. A region in a URL or ARN takes precedence.
	Region string
	// Profile names a shared AWS configuration profile; "" means AWS_PROFILE or "default".
	Profile string
	// Endpoint is a compatible server's URL; "" means the configured one (the service's variable such as
	// AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL or the profile), or AWS. For SQS, it can also be unix:PATH.
	Endpoint string
	Events   *Events
	Log      LogFunc
}

// Events are listeners for calls to SQS; each may be nil. They may be called concurrently and must not block.
type Events struct {
	// Corrupted is called for every message or batch entry with a wrong checksum.
	Corrupted func(Corruption)
	// ClockAdjusted is called after SQS has rejected a signature because of the local clock. Later signing times
	// include offset.
	ClockAdjusted func(offset time.Duration)
}

// Corruption describes a message damaged in transit. A received one becomes visible again after its visibility timeout.
type Corruption struct {
	Queue, MessageID string
	// Part is "body" or "attributes".
	Part string
	// Sent is false for a received message.
	Sent bool
}

// LogFunc receives the SDK's log messages. It must be safe for concurrent use.
type LogFunc func(level slog.Level, text string)

// Logf implements the SDK's logging.Logger.
func (f LogFunc) Logf(kind logging.Classification, format string, values ...any) {
	level := slog.LevelDebug
	if kind == logging.Warn {
		level = slog.LevelWarn
	}
	f(level, firstLine(fmt.Sprintf(format, values...)))
}

// Further lines can contain the SDK's chain of causes or, for a rejected signature, the session token.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
