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

// batchID depends only on the messages, so that it is the same for every attempt with them.
func batchID(batch []*queue.Message) string {
	sum := sha256.New()
	for _, m := range batch {
		io.WriteString(sum, m.ID+"\n")
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// readFailures sets p.failed. It ignores text without batchItemFailures, because many apps just return "OK". A problem
// means that the report is unreliable.
func (p *content) readFailures(res *response) (problem string) {
	if !res.bodyComplete {
		return "response to a batch longer than 64 KiB"
	}
	if !json.Valid(res.bodyStart) && !bytes.Contains(res.bodyStart, []byte(failuresMember)) {
		return ""
	}
	reply := readReply(res.bodyStart, messageIDs(p.batch))
	p.failed = reply.failed
	return strings.NewReplacer("the function's reply", "the response", "the event", "the batch").Replace(reply.problem)
}

func messageIDs(ms []*queue.Message) []string {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

const behindReason = "an earlier message of its group is not done"

// InParts delivers messages in order. A message for which alone returns true is a part of its own. If deliver returns
// fewer results than messages, it is called again with the rest.
//
// On a FIFO queue, an unfinished message holds back its group in later parts. After a part that is throttled
// or does not reach the target, nothing more is sent.
func InParts(ms []*queue.Message, fifo bool, alone func(*queue.Message) bool,
	deliver func(part []*queue.Message) []queue.Result) []queue.Result {
	p := parts{ms: ms, fifo: fifo, alone: alone, results: make([]queue.Result, len(ms)),
		heldBack: map[string]queue.Result{}}
	for next := 0; next < len(ms); {
		indexes, end := p.nextPart(next)
		if len(indexes) == 0 {
			break
		}

		delivered := deliver(p.messages(indexes))
		for i, r := range delivered {
			p.record(indexes[i], r)
		}
		next = end
		if len(delivered) < len(indexes) {
			next = indexes[len(delivered)]
		}
		if first := delivered[0]; first.Outcome == queue.Throttled || first.Outcome == queue.Unreached {
			p.endWith(first, next)
			break
		}
	}
	return p.results
}

type parts struct {
	ms       []*queue.Message
	fifo     bool
	alone    func(*queue.Message) bool
	results  []queue.Result
	heldBack map[string]queue.Result // results behind an unfinished message, by group
}

func (p *parts) nextPart(start int) (indexes []int, end int) {
	for end = start; end < len(p.ms); end++ {
		m := p.ms[end]
		if result, found := p.heldBack[m.GroupID]; found {
			p.results[end] = result
			continue
		}
		if len(indexes) > 0 && (p.alone(m) || p.alone(p.ms[indexes[0]])) {
			break
		}
		indexes = append(indexes, end)
	}
	return indexes, end
}

func (p *parts) messages(indexes []int) []*queue.Message {
	part := make([]*queue.Message, len(indexes))
	for i, index := range indexes {
		part[i] = p.ms[index]
	}
	return part
}

func (p *parts) record(index int, r queue.Result) {
	p.results[index] = r
	group := p.ms[index].GroupID
	_, found := p.heldBack[group]
	if p.fifo && group != "" && !found && r.Outcome != queue.Done {
		p.heldBack[group] = queue.Result{Outcome: r.Outcome, RetryAfter: r.RetryAfter, Reason: behindReason,
			Unsent: r.Outcome == queue.Failed}
	}
}

func (p *parts) endWith(r queue.Result, next int) {
	r.Duration = 0
	for ; next < len(p.ms); next++ {
		p.results[next] = r
	}
}
