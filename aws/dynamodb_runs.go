package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/queue"
)

// fireKept is how long the record of a fire is kept: longer than any instance
// looks back for missed fires.
const fireKept = 30 * 24 * time.Hour

// Fires remembers in a [Table] what became of periodic fires, for queues that
// cannot tell a duplicate by themselves: a try is claimed, sent by the caller,
// and the fire is marked. Who dies between the send and the mark leaves an
// unsettled record; the next leader claims the next try and sends again, with
// the same id. That is the one window for a duplicate.
//
// The fence is in the claim: it is one transaction with a check that the stored
// lease has the claimer's term and was not given back, so that DynamoDB itself
// puts each claim before or after each change of the leader. Term 0, for what a
// person asked for, is not checked. After an error other than
// queue.ErrStaleTerm a call may have been applied; to repeat it is harmless.
type Fires struct {
	table    *Table
	lease    string
	unfenced bool
}

// Fires returns the fires that the holder of the lease called lease may claim.
// They are apart from those of any other lease in the table.
func (t *Table) Fires(lease string) *Fires { return &Fires{table: t, lease: lease} }

// Unfenced returns the same fires for an instance that is declared the only
// one: no lease is held, so that no term is checked. Terms then only tell the
// claims of one process from those of the processes before it.
func (f *Fires) Unfenced() *Fires { return &Fires{table: f.table, lease: f.lease, unfenced: true} }

// Fire is one run of a task, in the words of [Fires].
type Fire struct {
	// ID is the same on every instance for the same task and time.
	ID string
	// Task is the task's name.
	Task string
	// At is the scheduled time, kept in milliseconds.
	At time.Time
	// Path is where on the app its message goes.
	Path string
	// Manual tells that it accounts for no time of the schedule.
	Manual bool
}

// FireRecord is what is known of a fire. The zero value is no record.
type FireRecord struct {
	// Tries is how many tries were claimed, Term the term of the last.
	Tries int
	Term  int64
	// Settled tells that there is nothing left to do: it was sent as MessageID,
	// or left out when that is "".
	Settled   bool
	MessageID string
	// Path is that of the fire as it was last claimed, "" where an older
	// version claimed it, which kept none.
	Path string
}

func (f *Fires) fireKey(id string) string { return "fire:" + f.lease + "/" + id }

func (f *Fires) taskKey(task string) string { return "task:" + f.lease + "/" + task }

// fence checks in a transaction that term is the current one.
func (f *Fires) fence(term int64) []types.TransactWriteItem {
	if term == 0 || f.unfenced {
		return nil
	}
	return []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName:                 &f.table.name,
		Key:                       key(leaseID(f.lease)),
		ConditionExpression:       sdk.String("#term = :term AND #released = :no"),
		ExpressionAttributeNames:  map[string]string{"#term": "term", "#released": "released"},
		ExpressionAttributeValues: attributes{":term": number(term), ":no": truth(false)},
	}}}
}

// Claim enters that try number try, from 1, of a fire is about to be made in
// term, provided that its record has try-1 tries and is not settled; else it
// changes nothing. It returns the record as it is then. A leader whose term is
// not the current one gets queue.ErrStaleTerm, and must not send.
func (f *Fires) Claim(ctx context.Context, term int64, fire Fire, try int) (FireRecord, error) {
	put := &types.Put{
		TableName: &f.table.name,
		Item: attributes{
			"id":      text(f.fireKey(fire.ID)),
			"task":    text(fire.Task),
			"at_ms":   number(fire.At.UnixMilli()),
			"term":    number(term),
			"tries":   number(int64(try)),
			"settled": truth(false),
			"expires": number(time.Now().Add(fireKept).Unix()),
		},
		ConditionExpression:                 sdk.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if fire.Path != "" {
		put.Item["path"] = text(fire.Path)
	}
	if try > 1 {
		put.ConditionExpression = sdk.String("#tries = :before AND #settled = :no")
		put.ExpressionAttributeNames = map[string]string{"#tries": "tries", "#settled": "settled"}
		put.ExpressionAttributeValues = attributes{":before": number(int64(try - 1)), ":no": truth(false)}
	}
	stored, changed, err := f.write(ctx, term, "claiming the fire "+fire.ID, types.TransactWriteItem{Put: put})
	if err != nil {
		return FireRecord{}, err
	}
	if changed {
		return FireRecord{Tries: try, Term: term, Path: fire.Path}, nil
	}
	if stored == nil {
		return f.record(ctx, fire.ID)
	}
	return recordOf(stored), nil
}

// record reads what is known of a fire.
func (f *Fires) record(ctx context.Context, id string) (FireRecord, error) {
	out, err := f.table.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &f.table.name, Key: key(f.fireKey(id)), ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return FireRecord{}, f.table.explain(ctx, "reading the fire "+id, err)
	}
	return recordOf(out.Item), nil
}

// Records returns what is known of the fires called ids; one without a record is
// not in the map.
func (f *Fires) Records(ctx context.Context, ids []string) (map[string]FireRecord, error) {
	byKey := make(map[string]string, len(ids))
	for _, id := range ids {
		byKey[f.fireKey(id)] = id
	}
	items, err := f.table.items(ctx, slices.Sorted(maps.Keys(byKey)))
	if err != nil {
		return nil, err
	}
	records := make(map[string]FireRecord, len(items))
	for _, item := range items {
		records[byKey[stringOf(item["id"])]] = recordOf(item)
	}
	return records, nil
}

func recordOf(item attributes) FireRecord {
	tries, _ := intOf(item["tries"])
	term, _ := intOf(item["term"])
	settled, _ := item["settled"].(*types.AttributeValueMemberBOOL)
	return FireRecord{
		Tries: int(tries), Term: term,
		Settled: settled != nil && settled.Value, MessageID: stringOf(item["message"]),
		Path: stringOf(item["path"]),
	}
}

// write makes one fenced write. changed is false when its own condition does
// not hold; stored is the item then, nil where the server does not show it.
func (f *Fires) write(ctx context.Context, term int64, doing string, item types.TransactWriteItem) (stored attributes,
	changed bool, err error) {
	items := append(f.fence(term), item)
	_, err = f.table.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	if err == nil {
		return nil, true, nil
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(items) {
		return nil, false, f.table.explain(ctx, doing, err)
	}
	const failed = "ConditionalCheckFailed"
	own := cancelled.CancellationReasons[len(items)-1]
	reason := sdk.ToString(own.Code)
	if len(items) == 2 {
		switch fence := sdk.ToString(cancelled.CancellationReasons[0].Code); fence {
		case "", "None":
		case failed:
			return nil, false, &queue.Error{Code: queue.CodeStaleTerm,
				Message: fmt.Sprintf("%s: term %d of lease %s is over", doing, term, f.lease)}
		default:
			reason = fence
		}
	}
	if reason == failed {
		return own.Item, false, nil
	}
	return nil, false, &queue.Error{Code: tableCode(reason, queue.CodeUnreachable),
		Message: fmt.Sprintf("%s in registry table %s: %s; to be tried again", doing, f.table.name, reason)}
}

// Mark settles a fire: it was sent as messageID, or is left out when that is
// "". It accounts for the task's times up to fire.At, unless the fire is
// manual. A settled record stays as it is. Only leaving out is fenced by term:
// that a message was sent is true whoever leads by now.
func (f *Fires) Mark(ctx context.Context, term int64, fire Fire, messageID string) error {
	if messageID != "" {
		term = 0
	}
	_, _, err := f.write(ctx, term, "settling the fire "+fire.ID, types.TransactWriteItem{Update: &types.Update{
		TableName:           &f.table.name,
		Key:                 key(f.fireKey(fire.ID)),
		UpdateExpression:    sdk.String("SET #settled = :yes, #message = :message, #expires = :expires"),
		ConditionExpression: sdk.String("attribute_not_exists(#settled) OR #settled = :no"),
		ExpressionAttributeNames: map[string]string{
			"#settled": "settled", "#message": "message", "#expires": "expires",
		},
		ExpressionAttributeValues: attributes{
			":yes": truth(true), ":no": truth(false), ":message": text(messageID),
			":expires": number(time.Now().Add(fireKept).Unix()),
		},
	}})
	if err != nil || fire.Manual {
		return err
	}
	// After the fire's own record: a crash between the two costs the next
	// leader one claim that finds the fire settled.
	_, err = f.table.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &f.table.name,
		Key:                       key(f.taskKey(fire.Task)),
		UpdateExpression:          sdk.String("SET #last = :at"),
		ConditionExpression:       sdk.String("attribute_not_exists(#last) OR #last < :at"),
		ExpressionAttributeNames:  map[string]string{"#last": "last_ms"},
		ExpressionAttributeValues: attributes{":at": number(fire.At.UnixMilli())},
	})
	var later *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &later) {
		return f.table.explain(ctx, "accounting for the fire "+fire.ID, err)
	}
	return nil
}

// Since returns, for each task of from, the scheduled time up to which its
// fires are accounted for, in milliseconds. A task that is not known is entered
// with its time in from. term is not looked at: the times only move on.
func (f *Fires) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	return f.SinceUnder(ctx, term, from, nil)
}

// SinceUnder is [Fires.Since] for tasks with these schedules, in any words. A
// task that is known with another schedule is accounted for up to its time in
// from at least: earlier times of the new schedule were never due. Of a task
// that has no schedule here, or was entered without one, nothing is compared.
func (f *Fires) SinceUnder(ctx context.Context, _ int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	rows, err := f.last(ctx, slices.Sorted(maps.Keys(from)))
	if err != nil {
		return nil, err
	}
	since := make(map[string]time.Time, len(from))
	for task, at := range from {
		row, schedule := rows[task], schedules[task]
		switch {
		case row.known && (schedule == "" || schedule == row.schedule):
		case row.known && row.schedule != "" && row.at.Before(at):
			row.at, err = f.enter(ctx, task, schedule, at, "SET #last = :at", "#last < :at")
			var later *types.ConditionalCheckFailedException
			if errors.As(err, &later) { // it moved on meanwhile
				row.at, err = f.enter(ctx, task, schedule, at, "SET #last = if_not_exists(#last, :at)", "")
			}
		default:
			row.at, err = f.enter(ctx, task, schedule, at, "SET #last = if_not_exists(#last, :at)", "")
		}
		if err != nil {
			return nil, f.table.explain(ctx, "entering the task "+task, err)
		}
		since[task] = row.at
	}
	return since, nil
}

// enter changes the row of a task, and returns up to when it is accounted for
// then. A schedule of "" is left as it is.
func (f *Fires) enter(ctx context.Context, task, schedule string, at time.Time, update, condition string) (time.Time,
	error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                 &f.table.name,
		Key:                       key(f.taskKey(task)),
		ExpressionAttributeNames:  map[string]string{"#last": "last_ms"},
		ExpressionAttributeValues: attributes{":at": number(at.UnixMilli())},
		ReturnValues:              types.ReturnValueAllNew,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	if schedule != "" {
		update += ", #schedule = :schedule"
		in.ExpressionAttributeNames["#schedule"], in.ExpressionAttributeValues[":schedule"] = "schedule", text(schedule)
	}
	in.UpdateExpression = &update
	out, err := f.table.api.UpdateItem(ctx, in)
	if err != nil {
		return time.Time{}, err
	}
	ms, _ := intOf(out.Attributes["last_ms"])
	return time.UnixMilli(ms).UTC(), nil
}

// taskRow is what the table has of a task.
type taskRow struct {
	known    bool
	at       time.Time
	schedule string // "" where it is not known
}

// last reads the rows of those tasks that are known.
func (f *Fires) last(ctx context.Context, tasks []string) (map[string]taskRow, error) {
	last := map[string]taskRow{}
	byKey := map[string]string{}
	for _, task := range tasks {
		byKey[f.taskKey(task)] = task
	}
	items, err := f.table.items(ctx, slices.Sorted(maps.Keys(byKey)))
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if ms, ok := intOf(item["last_ms"]); ok {
			last[byKey[stringOf(item["id"])]] = taskRow{true, time.UnixMilli(ms).UTC(), stringOf(item["schedule"])}
		}
	}
	return last, nil
}

// items reads those of the items called ids that there are.
func (t *Table) items(ctx context.Context, ids []string) (items []attributes, err error) {
	var keys []attributes
	for _, id := range ids {
		keys = append(keys, key(id))
	}
	for len(keys) > 0 {
		n := min(len(keys), 100) // the most that DynamoDB takes
		some, left, err := t.batch(ctx, keys[:n])
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
		if len(left) == n {
			return nil, &queue.Error{Code: queue.CodeRequestThrottled,
				Message: fmt.Sprintf("reading the last fires: registry table %s is throttled", t.name)}
		}
		keys = append(left, keys[n:]...)
	}
	return items, nil
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

// Known reports whether the fire called id was claimed with a message to path,
// by whichever instance. A fire that was only left out was not.
func (f *Fires) Known(ctx context.Context, id, path string) (bool, error) {
	r, err := f.record(ctx, id)
	if err != nil || r.Tries == 0 && r.MessageID == "" {
		return false, err
	}
	// A record without a path is an older version's: it is known with any, so
	// that what was enqueued before an upgrade goes where it was to go.
	return r.Path == "" || r.Path == path, nil
}
