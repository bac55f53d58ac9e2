package aws

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/smithy-go/logging"
)

// Options say where a service is, and how it is called. A nil *Options is valid.
// Credentials are not among them on purpose: they come from where every AWS tool takes
// them, never from a flag or a settings file of ours.
type Options struct {
	// Region is where the service is called; "" means what the environment or the
	// profile says. A queue given by URL or ARN lives in the region written there, and so
	// does a function given by ARN.
	Region string
	// Profile names a profile of the shared AWS configuration files; "" means
	// AWS_PROFILE, else "default".
	Profile string
	// Endpoint is the URL of a server that speaks the service's protocol; "" means the
	// service's variable, such as AWS_ENDPOINT_URL_SQS, then AWS_ENDPOINT_URL, else
	// Amazon's own. For SQS it can be unix:PATH. Where one is set, S3 names the bucket in the path, not in the host name.
	Endpoint string
	// Events are the listeners of the calls to SQS; nil for none.
	Events *Events
	// Log takes what the SDK logs; nil drops it.
	Log LogFunc
}

// Events are the listeners of the calls to Amazon SQS. Every field may be nil.
// They are called from the goroutine of the call, at the same time as each
// other, and must not block.
type Events struct {
	// Corrupted is called for every message or entry whose checksum did not
	// match its contents.
	Corrupted func(Corruption)
	// ClockAdjusted is called when Amazon refused a signature because of the
	// local clock. The offset is what is added to it from now on.
	ClockAdjusted func(offset time.Duration)
}

// Corruption tells of a message that was damaged on its way. A received one
// is neither handed out nor deleted: SQS shows it again after its visibility
// timeout.
type Corruption struct {
	// Queue is the queue's name, MessageID the id that SQS gave the message.
	Queue, MessageID string
	// Part is "body" or "attributes".
	Part string
	// Sent tells a damaged send from a damaged receive.
	Sent bool
}

// LogFunc takes what the SDK has to say besides the errors that it returns. It is
// called from several goroutines at once.
type LogFunc func(level slog.Level, text string)

// Logf is the method by which the SDK's clients log.
func (f LogFunc) Logf(kind logging.Classification, format string, values ...any) {
	level := slog.LevelDebug
	if kind == logging.Warn {
		level = slog.LevelWarn
	}
	f(level, firstLine(fmt.Sprintf(format, values...)))
}

// firstLine keeps a sentence and drops what may follow it: the SDK's chains of
// causes, and, when Amazon refuses a signature, the request as it should have
// been signed, with the session token in it.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
