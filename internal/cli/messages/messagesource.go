package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type sourceMessage struct {
	api.Message
	receipt string // "" for embedded queues
}

// recordedFailure returns the failure that tendril recorded while dead-lettering a message itself, or nil.
func recordedFailure(m *api.Message) *queue.Failure {
	if m.DeadLetterSource != "" {
		return nil
	}
	_, failure := queue.CutReason(m.Attributes)
	return failure
}

func sourceARN(m *api.Message) string {
	if f := recordedFailure(m); f != nil {
		return f.Source
	}
	return m.DeadLetterSource
}

func lastAttempt(m *api.Message) *api.Attempt {
	if f := recordedFailure(m); f != nil {
		return &api.Attempt{At: f.FailedAt, Instance: f.Instance, Status: f.Status, Reason: f.Reason, Answer: f.Answer}
	}
	if len(m.Attempts) == 0 {
		return nil
	}
	return &m.Attempts[len(m.Attempts)-1]
}

func failureGroup(m *api.Message) string {
	if a := lastAttempt(m); a != nil {
		return queue.FailureGroup(a.Status, a.Reason, a.Answer)
	}
	return ""
}

type messageSource interface {
	// read returns batches of at most n messages. It stops after an error.
	read(ctx context.Context, n int) iter.Seq2[[]sourceMessage, error]
	// redrive returns the number of messages moved. If to is "", each message returns to its source queue.
	redrive(ctx context.Context, messages []sourceMessage, to string) (int, error)
	remove(ctx context.Context, messages []sourceMessage) (int, error)
	release(ctx context.Context) error
}

type embeddedSource struct {
	client *api.Client
	queue  string
	filter api.Filter
	ids    []string
}

func (p *embeddedSource) read(ctx context.Context, n int) iter.Seq2[[]sourceMessage, error] {
	if len(p.ids) > 0 {
		return p.readByID(ctx)
	}

	return func(yield func([]sourceMessage, error) bool) {
		f := p.filter
		f.Limit = n
		for {
			page, next, err := p.client.Messages(ctx, p.queue, f)
			if err != nil {
				yield(nil, err)
				return
			}
			batch := make([]sourceMessage, len(page))
			for i := range page {
				batch[i].Message = page[i]
			}
			if !yield(batch, nil) || next == "" {
				return
			}
			f.After = next
		}
	}
}

func (p *embeddedSource) readByID(ctx context.Context) iter.Seq2[[]sourceMessage, error] {
	return func(yield func([]sourceMessage, error) bool) {
		for _, id := range p.ids {
			m, err := p.client.Message(ctx, p.queue, id)
			if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
				continue
			}
			if !yield([]sourceMessage{{Message: m}}, err) || err != nil {
				return
			}
		}
	}
}

func (p *embeddedSource) redrive(ctx context.Context, messages []sourceMessage, to string) (int, error) {
	return p.client.Move(ctx, p.queue, to, ids(messages))
}

func (p *embeddedSource) remove(ctx context.Context, messages []sourceMessage) (int, error) {
	return p.client.Delete(ctx, p.queue, ids(messages), int64(len(messages)))
}

func (p *embeddedSource) release(context.Context) error { return nil }

func ids(messages []sourceMessage) []string {
	all := make([]string, len(messages))
	for i := range messages {
		all[i] = messages[i].ID
	}
	return all
}

const (
	// holdTime hides messages being inspected. They are usually released earlier.
	holdTime = 5 * time.Minute
	// A queue counts as empty if it returns no messages for emptyTime.
	emptyTime      = time.Second
	releaseTimeout = 10 * time.Second
)

type receiver interface {
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	Delete(ctx context.Context, receipts []string) []error
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
}

// sqsSource receives messages, because Amazon SQS has no other way to read them. Receiving increments receive counts
// and hides messages until they are released.
type sqsSource struct {
	name   string
	from   receiver
	fifo   bool
	open   func(ctx context.Context, reference string) (target.Sender, error)
	source string // destination of messages without a known source; may be ""
	// failures returns the attempts that the running environment remembers, by message ID.
	failures func(ctx context.Context) map[string][]api.Attempt
	sources  func(ctx context.Context) ([]string, error)
	// beforeRead may be nil.
	beforeRead func()

	holding map[string]string // receipt handles by message ID
	seen    map[string]bool   // IDs of messages returned before, and of their copies
	opened  map[string]target.Sender
	history map[string][]api.Attempt
	known   []string // queues that dead-letter to this one; nil until the first use
}

func (p *sqsSource) read(ctx context.Context, n int) iter.Seq2[[]sourceMessage, error] {
	p.holding = map[string]string{}
	p.seen = map[string]bool{}
	p.opened = map[string]target.Sender{}
	if p.beforeRead != nil {
		p.beforeRead()
	}
	if p.failures != nil {
		p.history = p.failures(ctx)
	}
	return func(yield func([]sourceMessage, error) bool) {
		for {
			batch, err := p.receive(ctx, min(n, queue.MaxBatch))
			atEnd := err == nil && len(batch) == 0
			if atEnd || !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// receive returns no messages at the end of the queue, or if it received only messages that it has already returned.
func (p *sqsSource) receive(ctx context.Context, n int) ([]sourceMessage, error) {
	messages, err := p.from.Receive(ctx, queue.ReceiveRequest{Max: n, Wait: new(emptyTime), Visibility: new(holdTime)})
	var batch []sourceMessage
	for i := range messages {
		m := &messages[i]
		p.holding[m.ID] = m.ReceiptHandle
		if p.seen[m.ID] {
			continue
		}
		p.seen[m.ID] = true
		one := sourceMessage{api.FromMessage(m, p.name), m.ReceiptHandle}
		one.Attempts = p.history[m.ID]
		batch = append(batch, one)
	}
	return batch, err
}

// remove leaves messages that it cannot delete hidden until they are released.
func (p *sqsSource) remove(ctx context.Context, messages []sourceMessage) (int, error) {
	receipts := make([]string, len(messages))
	for i := range messages {
		receipts[i] = messages[i].receipt
	}

	errs := p.from.Delete(ctx, receipts)
	removed := 0
	var cause error
	for i := range messages {
		if errs != nil && errs[i] != nil {
			cause = errs[i]
			continue
		}
		delete(p.holding, messages[i].ID)
		removed++
	}

	if cause != nil {
		return removed, fmt.Errorf("deleting %s: %w", base.Plural(len(messages)-removed, "message"), cause)
	}

	return removed, nil
}

// redrive deletes a message once the destination has accepted it, so an interruption may leave it in both queues.
func (p *sqsSource) redrive(ctx context.Context, messages []sourceMessage, to string) (int, error) {
	moved := 0
	for len(messages) > 0 {
		target, err := p.destination(ctx, &messages[0], to)
		if err != nil {
			return moved, err
		}
		n := p.sameDestination(messages, to)
		accepted, sendErr := p.resend(ctx, target, messages[:n])
		removed, removeErr := p.remove(ctx, accepted)
		moved += removed
		if err := errors.Join(sendErr, removeErr); err != nil {
			return moved, err
		}
		messages = messages[n:]
	}
	return moved, nil
}

// sameDestination returns how many of the first messages to send together. FIFO messages are sent one by one, so that
// the next message of a group cannot overtake a rejected one.
func (p *sqsSource) sameDestination(messages []sourceMessage, to string) int {
	if p.fifo {
		return 1
	}
	n := 1
	for n < len(messages) && (to != "" || p.origin(&messages[n]) == p.origin(&messages[0])) {
		n++
	}
	return n
}

func (p *sqsSource) origin(m *sourceMessage) string {
	return cmp.Or(queue.NameInARN(sourceARN(&m.Message)), p.source)
}

func (p *sqsSource) destination(ctx context.Context, m *sourceMessage, to string) (string, error) {
	if to != "" {
		return to, nil
	}
	origin := p.origin(m)
	if origin == "" {
		return "", base.Usagef("message %s does not record its source queue", m.ID).
			Hint("name the destination with --to QUEUE")
	}
	trusted, err := p.isTrusted(ctx, m, origin)
	if err != nil {
		return "", err
	}
	if !trusted {
		return "", base.Failedf("message %s came from %s, which does not use this dead-letter queue",
			m.ID, origin).Hint("name the destination with --to QUEUE")
	}
	return origin, nil
}

// isTrusted accepts tendril's source attribute only if that queue uses this one as its dead-letter queue, because
// senders can set any attribute.
func (p *sqsSource) isTrusted(ctx context.Context, m *sourceMessage, origin string) (bool, error) {
	if m.DeadLetterSource != "" || origin == p.source || p.sources == nil {
		return true, nil
	}
	if p.known == nil {
		names, err := p.sources(ctx)
		if err != nil {
			return false, fmt.Errorf("finding the queues that send dead letters here: %w", err)
		}
		p.known = append([]string{}, names...)
	}
	return slices.Contains(p.known, origin), nil
}

func (p *sqsSource) resend(ctx context.Context, target string, messages []sourceMessage) (accepted []sourceMessage, err error) {
	to, err := p.senderTo(ctx, target)
	for err == nil && len(messages) > 0 {
		batch := copies(messages, queue.IsFIFO(target))
		sent, sendErr := to.Send(ctx, batch)
		err = sendErr
		for i := range sent {
			if sent[i].Err != nil {
				err = errors.Join(err, fmt.Errorf("message %s was rejected: %w", messages[i].ID, sent[i].Err))
				continue
			}
			p.seen[sent[i].ID] = true
			accepted = append(accepted, messages[i])
		}
		messages = messages[len(batch):]
	}
	return accepted, err
}

// copies returns as many messages as fit into one send. FIFO queues would drop a copy with the same deduplication ID. A
// repeated redrive uses the same one, derived from the message ID.
func copies(messages []sourceMessage, fifo bool) []queue.Outgoing {
	var out []queue.Outgoing
	bytes := 0
	for _, m := range messages[:min(len(messages), queue.MaxBatch)] {
		attributes, _ := queue.CutReason(m.Attributes)
		one := queue.Outgoing{Body: m.Body, Attributes: attributes, GroupID: m.GroupID, TraceHeader: m.TraceHeader}
		if fifo {
			one.DedupID = "redrive-" + m.ID
		}
		bytes += one.Size()
		if bytes > target.MaxBatchBytes && len(out) > 0 {
			break
		}
		out = append(out, one)
	}
	return out
}

func (p *sqsSource) senderTo(ctx context.Context, reference string) (target.Sender, error) {
	if q := p.opened[reference]; q != nil {
		return q, nil
	}
	q, err := p.open(ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("finding the destination queue: %w", err)
	}
	p.opened[reference] = q
	return q, nil
}

// release works even if the command was interrupted. It gives up after releaseTimeout without progress.
func (p *sqsSource) release(ctx context.Context) error {
	var changes []queue.VisibilityChange
	for _, receipt := range p.holding {
		changes = append(changes, queue.VisibilityChange{ReceiptHandle: receipt})
	}

	clear(p.holding)

	failed := 0
	var cause error
	deadline := time.Now().Add(releaseTimeout)
	for batch := range slices.Chunk(changes, queue.MaxBatch) {
		refused := 0
		for _, err := range p.changeBefore(ctx, deadline, batch) {
			if err != nil {
				refused++
				cause = err
			}
		}
		if refused < len(batch) {
			deadline = time.Now().Add(releaseTimeout)
		}
		failed += refused
	}

	if failed > 0 {
		return fmt.Errorf("returning %s, which will be visible again within %s: %w", base.Plural(failed, "message"),
			holdTime, cause)
	}

	return nil
}

func (p *sqsSource) changeBefore(ctx context.Context, deadline time.Time, changes []queue.VisibilityChange) []error {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return p.from.ChangeVisibility(ctx, changes)
}

func sourceOf(p *target.Queue, which *selector) messageSource {
	if p.Remote == nil {
		return &embeddedSource{client: p.Client, queue: p.Name, filter: api.Filter{Selection: which.filter}, ids: which.ids}
	}
	return &sqsSource{
		name: p.Name, from: p.Remote, fifo: p.Remote.FIFO(),
		open: func(ctx context.Context, reference string) (target.Sender, error) {
			return p.OpenRemote(ctx, reference)
		},
	}
}
