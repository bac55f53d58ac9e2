package api

import (
	"time"
)

// MaxRecording is the maximum duration of a recording.
const MaxRecording = 5 * time.Minute

// Exchange is a request to the app and its response. Header values that may be secrets are redacted.
type Exchange struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue,omitempty"`
	URL       string `json:"url,omitempty"`
	// Request holds the request line and headers.
	Request []string `json:"request"`
	// Body is limited to 64 KiB, BodySize is not.
	Body     string `json:"body"`
	BodySize int    `json:"body_size"`
	// BodyHidden means that bodies and headers were not requested.
	BodyHidden bool `json:"body_hidden,omitempty"`
	// Answer is the response's status line and headers. AnswerBody is limited to 16 KiB.
	Answer     []string  `json:"answer,omitempty"`
	AnswerBody string    `json:"answer_body,omitempty"`
	Error      string    `json:"error,omitempty"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
}

type (
	// RecordRequest is the request body of [Client.RecordExchanges].
	RecordRequest struct {
		// For is a duration, at most 5m.
		For string `json:"for"`
	}
	// Recording is the response to a [RecordRequest].
	Recording struct {
		Until time.Time `json:"until"`
	}
)
