package deliver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"time"

	"tendril/queue"
)

// batchHeader says how many messages a POST has that has several.
const batchHeader = "X-Tendril-Batch-Size"

// appendBatch renders the head for a POST of several messages.
func (h *requestHead) appendBatch(b []byte, p *content, trace *TraceContext) []byte {
	b = append(b, h.batch...)
	b = trace.append(appendNumber(b, batchHeader, len(p.batch)), h.budget)
	if h.signer != nil {
		b = h.signer.AppendHeaders(b, batchID(p.batch), p.body, time.Now())
	}
	return append(appendNumber(b, "Content-Length", len(p.body)), "\r\n"...)
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
func (p *content) readFailures(a *answer) (problem string) {
	if !a.whole {
		return "answer to a batch longer than 64 KiB"
	}
	if !json.Valid(a.first) && !bytes.Contains(a.first, []byte(failuresMember)) {
		return ""
	}
	ids := make([]string, len(p.batch))
	for i, m := range p.batch {
		ids[i] = m.ID
	}
	p.failed, problem, _ = readReply(a.first, ids)
	return strings.NewReplacer("the function's reply", "the answer", "the event", "the batch").Replace(problem)
}

// behindReason is why a message of a FIFO queue is not done that waits for another one.
const behindReason = "an earlier message of its group is not done"

// InParts hands messages over in their order: those that travel alone one by one, and those between them together. It
// returns one result for each message. deliver returns the results of the first messages of a part, at least one; the
// others come again in the next part.
//
// On a FIFO queue it holds back the later messages of a group behind one that is not done. When a part did not reach
// the target, or was throttled, the rest is not handed over either.
func InParts(ms []*queue.Message, fifo bool, alone func(*queue.Message) bool,
	deliver func(part []*queue.Message) []queue.Result) []queue.Result {
	results := make([]queue.Result, len(ms))
	stopped := map[string]queue.Result{} // by group, for its later messages
	for next := 0; next < len(ms); {
		var part []*queue.Message
		var places []int
		end := next
		for ; end < len(ms); end++ {
			m := ms[end]
			if behind, found := stopped[m.GroupID]; found {
				results[end] = behind
				continue
			}
			if len(part) > 0 && (alone(m) || alone(part[0])) {
				break
			}
			part = append(part, m)
			places = append(places, end)
		}
		if len(part) == 0 {
			break
		}

		delivered := deliver(part)
		if next = end; len(delivered) < len(part) {
			next = places[len(delivered)]
		}
		for i, r := range delivered {
			results[places[i]] = r
			group := part[i].GroupID
			if _, found := stopped[group]; fifo && group != "" && !found && r.Outcome != queue.Done {
				stopped[group] = queue.Result{Outcome: r.Outcome, RetryAfter: r.RetryAfter, Reason: behindReason,
					Unsent: r.Outcome == queue.Failed}
			}
		}
		if first := delivered[0]; first.Outcome == queue.Throttled || first.Outcome == queue.Unreached {
			first.Duration = 0
			for ; next < len(ms); next++ {
				results[next] = first
			}
		}
	}
	return results
}
