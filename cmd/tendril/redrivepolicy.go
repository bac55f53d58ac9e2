package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// deadLetterARN is the target of a RedrivePolicy attribute; "" without one.
func deadLetterARN(policy string) string {
	var p struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return ""
	}
	return p.Target
}

// redrivePolicy is the attribute that sends messages to a dead-letter queue
// after so many receives.
func redrivePolicy(arn string, maxReceives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn, maxReceives)
}

// counted is the number of messages in a queue by its SQS attributes.
func counted(attributes map[string]string) int {
	return number(attributes, visibleCount) + number(attributes, delayedCount) + number(attributes, inFlightCount)
}

// The attributes that count messages.
const (
	visibleCount  = "ApproximateNumberOfMessages"
	delayedCount  = "ApproximateNumberOfMessagesDelayed"
	inFlightCount = "ApproximateNumberOfMessagesNotVisible"
)

func number(attributes map[string]string, name string) int {
	n, _ := strconv.Atoi(attributes[name])
	return n
}

// moment is a time for people, with its age; "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	local := t.Local().Format("2006-01-02 15:04:05")
	if d := time.Until(t); d > 0 {
		return local + " (in " + age(d) + ")"
	}
	return local + " (" + since(t) + " ago)"
}
