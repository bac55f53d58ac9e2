package api

import (
	"time"
)

// MaxRecording is the longest that one request has exchanges recorded.
const MaxRecording = 5 * time.Minute

// Exchange is the request that was posted for a message, and the answer of the app. Values of headers that may be
// secrets are hidden.
type Exchange struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue,omitempty"`
	// URL is where the request went; Request its first line and its headers, Body what follows, at most 64 KiB of it.
	URL     string   `json:"url,omitempty"`
	Request []string `json:"request"`
	Body    string   `json:"body"`
	// BodySize is the size of the whole body.
	BodySize int `json:"body_size"`
	// BodyHidden is whether the bodies and the headers are left out since bodies are shown on request only.
	BodyHidden bool `json:"body_hidden,omitempty"`
	// Answer is the first line and the headers of the answer, none where there was none; AnswerBody the first 16 KiB
	// of its body.
	Answer     []string  `json:"answer,omitempty"`
	AnswerBody string    `json:"answer_body,omitempty"`
	Error      string    `json:"error,omitempty"` // why there is no whole answer
	At         time.Time `json:"at"`              // when the request began
	DurationMS int64     `json:"duration_ms"`
}

type (
	// RecordRequest is the body of the request to record exchanges.
	RecordRequest struct {
		// For is how long exchanges are recorded, up to 5m.
		For string `json:"for"`
	}
	// Recording is the answer of the request to record exchanges.
	Recording struct {
		Until time.Time `json:"until"`
	}
)
