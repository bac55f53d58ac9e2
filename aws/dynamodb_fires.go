package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/queue"
)

// fireKept is how long the record of a fire is kept: longer than any instance
// looks back for missed fires.
const fireKept = 30 * 24 * time.Hour

// Fires remembers in a [Table] which periodic fires were sent, for queues that
// cannot tell a duplicate by themselves. A fire is claimed, sent by the caller,
// and marked. Who dies between the send and the mark leaves a claimed fire that
// the next leader claims and sends again, with the same id: that is the one
// window for a duplicate.
//
// The fence is in the claim: it is one transaction with a check that the stored
// lease has the claimer's term and was not given back, so that DynamoDB itself
// puts each claim before or after each change of the leader. Of a fire, every
// claim but the first is of a later term, or is a repeat by the same leader.
type Fires struct {
	table *Table
	lease string
}

// Fires returns the fires that the holder of the lease called lease may claim.
// They are apart from those of any other lease in the table.
func (t *Table) Fires(lease string) *Fires { return &Fires{t, lease} }

func (f *Fires) fireKey(fireID string) string { return "fire:" + f.lease + "/" + fireID }

func (f *Fires) taskKey(task string) string { return "task:" + f.lease + "/" + task }

// Claim takes a fire for the leader of term. fireID names it: the same on every
// instance for the same task and time. It returns false when the fire was
// marked as sent already. A leader whose term is not the current one gets
// queue.ErrStaleTerm, and must not send. After any other error the claim may
// have been applied; to repeat it is harmless.
func (f *Fires) Claim(ctx context.Context, fireID, task string, at time.Time, term int64) (claimed bool, err error) {
	t := f.table
	_, err = t.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName:                 &t.name,
			Key:                       key(leaseID(f.lease)),
			ConditionExpression:       sdk.String("#term = :term AND #released = :no"),
			ExpressionAttributeNames:  map[string]string{"#term": "term", "#released": "released"},
			ExpressionAttributeValues: attributes{":term": number(term), ":no": truth(false)},
		}},
		{Put: &types.Put{
			TableName: &t.name,
			Item: attributes{
				"id":      text(f.fireKey(fireID)),
				"task":    text(task),
				"at_ms":   number(at.UnixMilli()),
				"term":    number(term),
				"sent":    truth(false),
				"expires": number(time.Now().Add(fireKept).Unix()),
			},
			ConditionExpression:       sdk.String("attribute_not_exists(id) OR (#sent = :no AND #term <= :term)"),
			ExpressionAttributeNames:  map[string]string{"#term": "term", "#sent": "sent"},
			ExpressionAttributeValues: attributes{":term": number(term), ":no": truth(false)},
		}},
	}})
	if err == nil {
		return true, nil
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
		return false, t.explain(ctx, "claiming a fire", err)
	}
	return false, f.refused(fireID, term, cancelled)
}

// refused tells why a claim was cancelled: nil when the fire was sent already.
func (f *Fires) refused(fireID string, term int64, cancelled *types.TransactionCanceledException) error {
	const failed = "ConditionalCheckFailed"
	fence, own := sdk.ToString(cancelled.CancellationReasons[0].Code), sdk.ToString(cancelled.CancellationReasons[1].Code)
	switch {
	case fence == failed:
		return &queue.Error{Code: queue.CodeStaleTerm,
			Message: fmt.Sprintf("fire %s was not claimed: term %d of lease %s is over", fireID, term, f.lease)}
	case own == failed && (fence == "None" || fence == ""):
		return nil
	}
	reason := fence
	if reason == "None" || reason == "" {
		reason = own
	}
	return &queue.Error{Code: tableCode(reason, queue.CodeUnreachable),
		Message: fmt.Sprintf("claiming fire %s in registry table %s: %s; to be tried again", fireID, f.table.name, reason)}
}

// Mark records that a claimed fire was sent, as the message with the id given,
// so that nobody claims it again, and moves task's last fire on to at. A mark
// of a fire that has one already changes nothing that matters. It is not
// fenced: that a message was sent is true whoever leads by now. With task "" no
// last fire is moved: for fires outside the schedule.
func (f *Fires) Mark(ctx context.Context, fireID, task string, at time.Time, messageID string) error {
	t := f.table
	_, err := t.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &t.name,
		Key:                      key(f.fireKey(fireID)),
		UpdateExpression:         sdk.String("SET #sent = :yes, #message = :message, #expires = :expires"),
		ExpressionAttributeNames: map[string]string{"#sent": "sent", "#message": "message", "#expires": "expires"},
		ExpressionAttributeValues: attributes{
			":yes": truth(true), ":message": text(messageID), ":expires": number(time.Now().Add(fireKept).Unix()),
		},
	})
	if err != nil {
		return t.explain(ctx, "marking a fire as sent", err)
	}
	if task == "" {
		return nil
	}
	// After the fire's own mark: a crash between the two costs the next leader
	// one claim that says "sent already".
	_, err = t.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &t.name,
		Key:                       key(f.taskKey(task)),
		UpdateExpression:          sdk.String("SET #last = :at"),
		ConditionExpression:       sdk.String("attribute_not_exists(#last) OR #last < :at"),
		ExpressionAttributeNames:  map[string]string{"#last": "last_ms"},
		ExpressionAttributeValues: attributes{":at": number(at.UnixMilli())},
	})
	var later *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &later) {
		return t.explain(ctx, "moving a task's last fire on", err)
	}
	return nil
}

// Last returns the time of the last fire of each task that was marked; a task
// without one is not in the map.
func (f *Fires) Last(ctx context.Context, tasks []string) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	byKey := map[string]string{}
	var keys []attributes
	for _, task := range tasks {
		if id := f.taskKey(task); byKey[id] == "" {
			byKey[id] = task
			keys = append(keys, key(id))
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), 100) // the most that DynamoDB takes
		items, left, err := f.table.batch(ctx, keys[:n])
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if ms, ok := intOf(item["last_ms"]); ok {
				last[byKey[stringOf(item["id"])]] = time.UnixMilli(ms).UTC()
			}
		}
		if len(left) == n {
			return nil, &queue.Error{Code: queue.CodeRequestThrottled,
				Message: fmt.Sprintf("reading the last fires: registry table %s is throttled", f.table.name)}
		}
		keys = append(left, keys[n:]...)
	}
	return last, nil
}

// batch reads items; left are the keys that DynamoDB did not get to.
func (t *Table) batch(ctx context.Context, keys []attributes) (items, left []attributes, err error) {
	out, err := t.api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{t.name: {Keys: keys, ConsistentRead: sdk.Bool(true)}},
	})
	if err != nil {
		return nil, nil, t.explain(ctx, "reading the last fires", err)
	}
	return out.Responses[t.name], out.UnprocessedKeys[t.name].Keys, nil
}
