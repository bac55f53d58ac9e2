package api

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// Selection selects messages of a queue. The zero value selects all.
type Selection = queue.Selection

func selectionQuery(s *Selection) url.Values {
	query := url.Values{}
	set(query, "match", s.Match)
	setNumber(query, "through", s.Through)
	setTime(query, "dead_since", s.DeadSince)
	setTime(query, "dead_until", s.DeadUntil)

	if s.Reason != nil {
		query.Set("reason", *s.Reason)
	}
	set(query, "attribute", s.Attribute)
	if s.Value != "" {
		query.Set("attribute", s.Attribute+"="+s.Value)
	}

	return query
}

// ParseAttributeFilter parses NAME or NAME=VALUE of a [Selection].
func ParseAttributeFilter(text string) (name, value string, err error) {
	name, value, _ = strings.Cut(text, "=")
	if name == "" && text != "" {
		return "", "", BadRequest("invalid attribute filter "+strconv.Quote(text), "use NAME or NAME=VALUE")
	}
	return name, value, nil
}

// Total is the number of messages in a [Selection].
type Total struct {
	N     int64 `json:"n"`
	Exact bool  `json:"exact"` // false if counting ended early, so N is a minimum
}

// DelayRequest is the request body of [Client.Delay].
type DelayRequest struct {
	Seconds int `json:"seconds"` // from now, 0 to 43200
}

// MessageTaken is the state of a message that left the queue between the change and its response.
const MessageTaken = "taken"

// Placed is a message's state after a retry or delay.
type Placed struct {
	ID    string `json:"id"`
	State string `json:"state"` // as in [Message], or [MessageTaken]
	// VisibleAt is zero for a visible or taken message.
	VisibleAt time.Time `json:"visible_at,omitzero"`
}

// EditRequest is the request body of [Client.Edit].
type EditRequest struct {
	Message Outgoing `json:"message"`
	To      string   `json:"to,omitempty"` // "" means the queue that the message was dead-lettered from
}
