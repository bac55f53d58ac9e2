package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// States of a queue with a worker.
const (
	QueueRunning = "Running"
	QueueWaiting = "Waiting" // nothing is delivered; see [Progress].Why
	QueuePaused  = "Paused"
	QueueFailing = "Failing" // the latest call to the queue failed
)

// Progress describes whether a queue's messages are being delivered, and why not; zero without a worker.
type Progress struct {
	// Why is the reason for State, or for messages that wait although others are delivered.
	State       string    `json:"state,omitempty"`
	Why         string    `json:"why,omitempty"`
	Paused      bool      `json:"paused"` // by a person, a hook or a signal
	PauseReason string    `json:"pause_reason,omitempty"`
	PausedBy    string    `json:"paused_by,omitempty"`
	PausedAt    time.Time `json:"paused_at,omitzero"`
	// DrainSeconds is the estimated time to deliver the waiting messages, at the last minute's rate; 0 if unknown, or
	// if the backlog is not shrinking.
	DrainSeconds           float64 `json:"drain_seconds,omitempty"`
	LongestDeliverySeconds float64 `json:"longest_delivery_seconds,omitempty"`
	LongestMessageID       string  `json:"longest_message_id,omitempty"`
}

// Explain sets State and Why of all workers, which share slots and limits.
func Explain(workers []Worker, limits []Limit) {
	for i := range workers {
		w := &workers[i]
		w.State, w.Why = w.explain(workers, limits)
	}
}

func (w *Worker) explain(all []Worker, limits []Limit) (state, why string) {
	switch {
	case w.Paused:
		return QueuePaused, pauseText(w.PausedBy, w.PausedAt, w.PauseReason)
	case !w.Receiving && len(w.GateReasons) > 0:
		return QueueWaiting, w.GateReasons[0]
	case w.LastError != "":
		return QueueFailing, w.LastError
	}
	if why = w.obstacle(all, limits); why != "" && w.InWork == 0 {
		return QueueWaiting, why
	}
	return QueueRunning, cmp.Or(why, w.hiddenText())
}

func (w *Worker) hiddenText() string {
	switch {
	case w.InWork > 0 || w.Waiting > 0 || w.InFlight == 0:
		return ""
	case w.InFlight == 1:
		return "1 message waits for its next attempt, or another consumer has it"
	}
	return fmt.Sprintf("%d messages wait for their next attempt, or another consumer has them", w.InFlight)
}

func pauseText(by string, at time.Time, reason string) string {
	var words []string
	if by != "" {
		words = append(words, "by "+by)
	}
	if !at.IsZero() {
		layout := "15:04 UTC"
		if time.Since(at) > 12*time.Hour {
			layout = "2006-01-02 15:04 UTC"
		}
		words = append(words, "since "+at.UTC().Format(layout))
	}
	text := strings.Join(words, " ")
	if reason != "" {
		text = strings.TrimPrefix(text+": "+reason, ": ")
	}
	return text
}

func (w *Worker) obstacle(all []Worker, limits []Limit) string {
	switch {
	case w.LimitedBy != "":
		return w.limitText(limits)
	case w.Waiting == 0:
		return ""
	case w.InWork > 0 && w.InWork >= w.Concurrency:
		return fmt.Sprintf("at its maximum of %d in flight", w.Concurrency)
	case w.Limit > 0 && w.InWork >= w.Limit:
		return fmt.Sprintf("resuming gradually after an outage: at most %d in flight", w.Limit)
	}
	if full := w.slotHolders(all); full != "" {
		return "no free slot: " + full
	}
	return w.groupText()
}

func (w *Worker) limitText(limits []Limit) string {
	var limit Limit
	if i := slices.IndexFunc(limits, func(l Limit) bool { return slices.Contains(l.Queues, w.Queue) }); i >= 0 {
		limit = limits[i]
	}
	switch {
	case w.LimitedBy == "rate" && limit.Rate > 0:
		return "rate limited to " + strconv.FormatFloat(limit.Rate, 'g', 4, 64) + "/s"
	case w.LimitedBy == "concurrency" && limit.Concurrency > 0:
		return fmt.Sprintf("limited to %d in flight until the app responds faster", limit.Concurrency)
	case w.LimitedBy == "limit":
		return "held back by the limits"
	}
	return "held back by the limit of " + w.LimitedBy
}

// slotHolders returns text such as "payments holds 15 and mail 5 of 20", or "" if a slot is free.
func (w *Worker) slotHolders(all []Worker) string {
	var holders []*Worker
	used := 0
	for i := range all {
		if all[i].InWork > 0 {
			holders = append(holders, &all[i])
			used += all[i].InWork
		}
	}
	if w.Slots == 0 || used < w.Slots {
		return ""
	}

	slices.SortStableFunc(holders, func(a, b *Worker) int { return cmp.Compare(b.InWork, a.InWork) })
	text := fmt.Sprintf("%s holds %d", holders[0].Queue, holders[0].InWork)
	for i, h := range holders[1:] {
		separator := ", "
		if i == len(holders)-2 {
			separator = " and "
		}
		text += fmt.Sprintf("%s%s %d", separator, h.Queue, h.InWork)
	}
	return fmt.Sprintf("%s of %d", text, w.Slots)
}

// groupText explains that a message group blocks others, or returns "". It ignores deliveries of less than a second.
func (w *Worker) groupText() string {
	switch {
	case w.LongestGroup != "" && w.LongestDeliverySeconds >= 1:
		return fmt.Sprintf("blocked by message group %q, in flight for %ds", w.LongestGroup, int(w.LongestDeliverySeconds))
	case w.FIFO && w.InWork == 0 && w.InFlight > 0:
		return "blocked by a message group: its first message is hidden until its next attempt"
	}
	return ""
}
