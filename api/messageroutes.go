package api

import (
	"net/url"
	"strconv"
	"time"
)

// Selection says which messages of a queue are meant. The zero value is all of them.
type Selection struct {
	// IDs are those of the messages; nil for any.
	IDs []string `json:"ids,omitempty"`
	// Match is contained in the body.
	Match string `json:"match,omitempty"`
	// Attribute is the name of a message attribute, and Value its value; "" for any value.
	Attribute string `json:"attribute,omitempty"`
	Value     string `json:"value,omitempty"`
	// DeadSince and DeadUntil bound when the message was dead-lettered: not before the first, and before the second.
	DeadSince time.Time `json:"dead_since,omitzero"`
	DeadUntil time.Time `json:"dead_until,omitzero"`
	// Reason is that of the [ReasonGroup] to which the message belongs; nil for any.
	Reason *string `json:"reason,omitempty"`
	// Through is the place of the newest message that may match, see [Queue].Newest; 0 for any.
	Through int64 `json:"through,omitempty"`
}

// IsZero reports whether the selection means all messages.
func (s *Selection) IsZero() bool {
	return s.IDs == nil && s.Match == "" && s.Attribute == "" && s.DeadSince.IsZero() && s.DeadUntil.IsZero() &&
		s.Reason == nil && s.Through == 0
}

// query is the selection in the parameters of a request.
func (s *Selection) query() url.Values {
	query := url.Values{}
	if s.Match != "" {
		query.Set("match", s.Match)
	}
	if s.Attribute != "" {
		query.Set("attribute", s.Attribute)
		if s.Value != "" {
			query.Set("attribute", s.Attribute+"="+s.Value)
		}
	}
	if s.Reason != nil {
		query.Set("reason", *s.Reason)
	}
	if s.Through > 0 {
		query.Set("through", strconv.FormatInt(s.Through, 10))
	}
	if !s.DeadSince.IsZero() {
		query.Set("dead_since", s.DeadSince.Format(time.RFC3339Nano))
	}
	if !s.DeadUntil.IsZero() {
		query.Set("dead_until", s.DeadUntil.Format(time.RFC3339Nano))
	}
	return query
}

// Total is how many messages a selection means.
type Total struct {
	N int64 `json:"n"`
	// Exact is false when there are more than N: counting would have taken too long.
	Exact bool `json:"exact"`
}

// DelayRequest is the body of a delay.
type DelayRequest struct {
	// Seconds is how long the message is hidden from now: 0 to 43200.
	Seconds int `json:"seconds"`
}

// Placed is where a message is after an act on it.
type Placed struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// VisibleAt is zero for a visible message.
	VisibleAt time.Time `json:"visible_at,omitzero"`
}

// EditRequest is the body of an edit: the message that takes the place of another.
type EditRequest struct {
	Message Outgoing `json:"message"`
	// To is the name of the queue to send it to; "" means the one that the old message was dead-lettered from.
	To string `json:"to,omitempty"`
}
