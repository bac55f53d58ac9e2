package deliver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// batchHeader says how many messages a POST has that has several.
const batchHeader = "X-Tendril-Batch-Size"

// DeliverBatch posts several messages to the app in one request, with the body that a function gets, and returns one
// result for each. The app may answer with batchItemFailures, as a function does. Scheduled runs are posted alone, as
// Deliver does, and so is every message where the options name no queue. On a FIFO queue nothing more of a group is
// posted behind a message of it that is not done.
func (h *Client) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	isAlone := func(m *queue.Message) bool { return h.record == "" || m.Run != nil }
	return InParts(ms, h.fifo, isAlone, func(part []*queue.Message) []queue.Result {
		if isAlone(part[0]) {
			return []queue.Result{h.Deliver(ctx, part[0])}
		}
		return h.deliverPart(ctx, part)
	})
}

// deliverPart makes one POST.
func (h *Client) deliverPart(ctx context.Context, part []*queue.Message) []queue.Result {
	r := content{message: &queue.Message{}, batch: part, body: h.records(part)}
	all := h.deliver(ctx, &r)
	results := slices.Repeat([]queue.Result{all}, len(part))
	for i, m := range part {
		if r.failed[m.ID] {
			results[i] = queue.Result{Status: all.Status, Reason: "reported in batchItemFailures", Duration: all.Duration}
		}
	}
	return results
}

// records renders the body of a POST with several messages.
func (h *Client) records(part []*queue.Message) string {
	size := len(eventStart) + len(eventEnd)
	for _, m := range part {
		size += recordSize(m)
	}
	b := append(make([]byte, 0, size), eventStart...)
	for i, m := range part {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, m, h.record)
	}
	return string(append(b, eventEnd...))
}

// appendBatch renders the head for a POST of several messages.
func (h *requestHead) appendBatch(b []byte, r *content, trace *TraceContext) []byte {
	b = append(b, h.batch...)
	b = trace.append(appendNumber(b, batchHeader, len(r.batch)), h.budget)
	if h.signer != nil {
		b = h.signer.AppendHeaders(b, batchID(r.batch), r.body, time.Now())
	}
	return append(appendNumber(b, "Content-Length", len(r.body)), "\r\n"...)
}

// batchID is the id under which a batch is signed: the same where the same messages come together again.
func batchID(batch []*queue.Message) string {
	sum := sha256.New()
	for _, m := range batch {
		io.WriteString(sum, m.ID+"\n")
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// readFailures reads what a success says about the single messages. A text that is no JSON and does not name the
// member says nothing: many apps answer "OK".
func (r *content) readFailures(a *answer) (problem string) {
	if !a.whole {
		return "answer to a batch longer than 64 KiB"
	}
	if !json.Valid(a.first) && !bytes.Contains(a.first, []byte(failuresMember)) {
		return ""
	}
	ids := make([]string, len(r.batch))
	for i, m := range r.batch {
		ids[i] = m.ID
	}
	r.failed, problem, _ = readReply(a.first, ids)
	return strings.NewReplacer("the function's reply", "the answer", "the event", "the batch").Replace(problem)
}

// InParts hands messages over in their order: those that travel alone one by one, and those between them together. On
// a FIFO queue it holds back the later messages of a group behind one that is not done. When a part did not reach the
// target, or was throttled, the rest is not handed over either. It returns one result for each message.
func InParts(ms []*queue.Message, fifo bool, alone func(*queue.Message) bool,
	deliver func(part []*queue.Message) []queue.Result) []queue.Result {
	results, stopped := make([]queue.Result, len(ms)), map[string]queue.Result{}
	for next := 0; next < len(ms); {
		var part []*queue.Message
		var places []int
		for ; next < len(ms); next++ {
			m := ms[next]
			if behind, found := stopped[m.GroupID]; found {
				results[next] = behind
				continue
			}
			if len(part) > 0 && (alone(m) || alone(part[0])) {
				break
			}
			part, places = append(part, m), append(places, next)
		}
		if len(part) == 0 {
			break
		}
		for i, r := range deliver(part) {
			results[places[i]] = r
			group := part[i].GroupID
			if _, found := stopped[group]; fifo && group != "" && !found && r.Outcome != queue.Done {
				stopped[group] = queue.Result{Outcome: r.Outcome, RetryAfter: r.RetryAfter,
					Reason: "an earlier message of its group is not done", Unsent: r.Outcome == queue.Failed}
			}
		}
		if first := results[places[0]]; first.Outcome == queue.Throttled || first.Outcome == queue.Unreached {
			first.Duration = 0
			for ; next < len(ms); next++ {
				results[next] = first
			}
		}
	}
	return results
}

// content is what one POST carries, and what its answer says about the single messages.
type content struct {
	message *queue.Message
	run     *scheduledRun    // nil for an ordinary message
	batch   []*queue.Message // nil for a single message
	body    string
	failed  map[string]bool // of a batch, by id
}

// deliver makes the one POST.
func (h *Client) deliver(ctx context.Context, r *content) queue.Result {
	var end time.Time
	if h.deadline > 0 {
		end = time.Now().Add(h.deadline)
	}
	if err := h.acquire(ctx, end); err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: h.reasons.unsentReason(ctx, end), Err: err}
	}
	defer func() { <-h.slots }()
	start := time.Now()
	result, now := h.attempt(ctx, r, start, end)
	result.Duration = now.Sub(start)
	return result
}
