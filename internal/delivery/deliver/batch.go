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

const batchHeader = "X-Tendril-Batch-Size"

func (h *requestHead) appendBatchHead(b []byte, p *content, trace *TraceContext) []byte {
	b = append(b, h.batch...)
	b = appendNumber(b, batchHeader, len(p.batch))
	b = trace.append(b, h.budget)
	if h.signer != nil {
		b = h.signer.AppendHeaders(b, batchID(p.batch), p.body, time.Now())
	}
	b = appendNumber(b, "Content-Length", len(p.body))
	return append(b, "\r\n"...)
}

// batchID returns the ID with which a batch is signed, the same for the same messages.
func batchID(batch []*queue.Message) string {
	sum := sha256.New()
	for _, m := range batch {
		io.WriteString(sum, m.ID+"\n")
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// readFailures ignores a body without failures, because many apps just return "OK".
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

const behindReason = "an earlier message of its group is not done"

// InParts delivers messages in order: those for which alone returns true one by one, the others together. If deliver
// returns fewer results than messages, it is called again with the rest.
//
// On a FIFO queue, a message that is not done holds back later messages of its group. If a part is throttled or does
// not reach the target, the remaining messages are not sent.
func InParts(ms []*queue.Message, fifo bool, alone func(*queue.Message) bool,
	deliver func(part []*queue.Message) []queue.Result) []queue.Result {
	results := make([]queue.Result, len(ms))
	stopped := map[string]queue.Result{} // for messages behind an unfinished one, by group
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
		next = end
		if len(delivered) < len(part) {
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
