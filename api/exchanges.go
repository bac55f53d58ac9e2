package api

import (
	"time"
)

// MaxRecording is the maximum duration of a recording.
const MaxRecording = 5 * time.Minute

// Exchange is a request to the app and its answer. Header values that may be secrets are hidden.
type Exchange struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue,omitempty"`
	URL       string `json:"url,omitempty"`
	// Request holds the request line and headers, Body up to 64 KiB.
	Request  []string `json:"request"`
	Body     string   `json:"body"`
	BodySize int      `json:"body_size"`
	// BodyHidden means that bodies and headers were not requested.
	BodyHidden bool `json:"body_hidden,omitempty"`
	// Answer holds the status line and headers, AnswerBody up to 16 KiB.
	Answer     []string  `json:"answer,omitempty"`
	AnswerBody string    `json:"answer_body,omitempty"`
	Error      string    `json:"error,omitempty"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
}

type (
	// RecordRequest is the request to record exchanges.
	RecordRequest struct {
		// For is the duration, up to 5m.
		For string `json:"for"`
	}
	// Recording is the answer to a [RecordRequest].
	Recording struct {
		Until time.Time `json:"until"`
	}
)
