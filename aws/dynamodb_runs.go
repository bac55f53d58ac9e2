package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/queue"
)

// runRetention is how long the record of a run is kept: longer than any instance
// looks back for missed runs.
const runRetention = 30 * 24 * time.Hour

// Runs remembers in a [Table] what became of periodic runs, for queues that
// cannot tell a duplicate by themselves: a try is claimed, sent by the caller,
// and the run is marked. Who dies between the send and the mark leaves an
// unsettled record; the next leader claims the next try and sends again, with
// the same id. That is the one window for a duplicate.
//
// The fence is in the claim: it is one transaction with a check that the stored
// lease has the claimer's term and was not given back, so that DynamoDB itself
// puts each claim before or after each change of the leader. Term 0, for what a
// person asked for, is not checked. After an error other than
// queue.ErrStaleTerm a call may have been applied; to repeat it is harmless.
type Runs struct {
	table    *Table
	lease    string
	unfenced bool
}

// Runs returns the runs that the holder of the lease called lease may claim.
// They are apart from those of any other lease in the table.
func (t *Table) Runs(lease string) *Runs { return &Runs{table: t, lease: lease} }

// Unfenced returns the same runs for an instance that is declared the only
// one: no lease is held, so that no term is checked. Terms then only tell the
// claims of one process from those of the processes before it.
func (f *Runs) Unfenced() *Runs { return &Runs{table: f.table, lease: f.lease, unfenced: true} }

// Run is one run of a task, in the words of [Runs].
type Run struct {
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

// RunRecord is what is known of a run. The zero value is no record.
type RunRecord struct {
	// Tries is how many tries were claimed, Term the term of the last.
	Tries int
	Term  int64
	// Settled tells that there is nothing left to do: it was sent as MessageID,
	// or left out when that is "".
	Settled   bool
	MessageID string
	// Path is that of the run as it was last claimed, "" where an older
	// version claimed it, which kept none.
	Path string
}

func (f *Runs) runKey(id string) string { return "fire:" + f.lease + "/" + id }

func (f *Runs) taskKey(task string) string { return "task:" + f.lease + "/" + task }

// fence checks in a transaction that term is the current one.
func (f *Runs) fence(term int64) []types.TransactWriteItem {
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

// Claim enters that try number try, from 1, of a run is about to be made in
// term, provided that its record has try-1 tries and is not settled; else it
// changes nothing. It returns the record as it is then. A leader whose term is
// not the current one gets queue.ErrStaleTerm, and must not send.
func (f *Runs) Claim(ctx context.Context, term int64, run Run, try int) (RunRecord, error) {
	put := &types.Put{
		TableName: &f.table.name,
		Item: attributes{
			"id":      text(f.runKey(run.ID)),
			"task":    text(run.Task),
			"at_ms":   number(run.At.UnixMilli()),
			"term":    number(term),
			"tries":   number(int64(try)),
			"settled": truth(false),
			"expires": number(time.Now().Add(runRetention).Unix()),
		},
		ConditionExpression:                 sdk.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if run.Path != "" {
		put.Item["path"] = text(run.Path)
	}
	if try > 1 {
		put.ConditionExpression = sdk.String("#tries = :before AND #settled = :no")
		put.ExpressionAttributeNames = map[string]string{"#tries": "tries", "#settled": "settled"}
		put.ExpressionAttributeValues = attributes{":before": number(int64(try - 1)), ":no": truth(false)}
	}
	stored, changed, err := f.write(ctx, term, "claiming the run "+run.ID, types.TransactWriteItem{Put: put})
	if err != nil {
		return RunRecord{}, err
	}
	if changed {
		return RunRecord{Tries: try, Term: term, Path: run.Path}, nil
	}
	if stored == nil {
		return f.record(ctx, run.ID)
	}
	return recordOf(stored), nil
}

// record reads what is known of a run.
func (f *Runs) record(ctx context.Context, id string) (RunRecord, error) {
	out, err := f.table.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &f.table.name, Key: key(f.runKey(id)), ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return RunRecord{}, f.table.explain(ctx, "reading the run "+id, err)
	}
	return recordOf(out.Item), nil
}

// Records returns what is known of the runs called ids; one without a record is
// not in the map.
func (f *Runs) Records(ctx context.Context, ids []string) (map[string]RunRecord, error) {
	byKey := make(map[string]string, len(ids))
	for _, id := range ids {
		byKey[f.runKey(id)] = id
	}
	items, err := f.table.items(ctx, slices.Sorted(maps.Keys(byKey)))
	if err != nil {
		return nil, err
	}
	records := make(map[string]RunRecord, len(items))
	for _, item := range items {
		records[byKey[stringOf(item["id"])]] = recordOf(item)
	}
	return records, nil
}

func recordOf(item attributes) RunRecord {
	tries, _ := intOf(item["tries"])
	term, _ := intOf(item["term"])
	settled, _ := item["settled"].(*types.AttributeValueMemberBOOL)
	return RunRecord{
		Tries: int(tries), Term: term,
		Settled: settled != nil && settled.Value, MessageID: stringOf(item["message"]),
		Path: stringOf(item["path"]),
	}
}

// write makes one fenced write. changed is false when its own condition does
// not hold; stored is the item then, nil where the server does not show it.
func (f *Runs) write(ctx context.Context, term int64, doing string, item types.TransactWriteItem) (stored attributes,
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

// Mark settles a run: it was sent as messageID, or is left out when that is
// "". It accounts for the task's times up to run.At, unless the run is
// manual. A settled record stays as it is. Only leaving out is fenced by term:
// that a message was sent is true whoever leads by now.
func (f *Runs) Mark(ctx context.Context, term int64, run Run, messageID string) error {
	if messageID != "" {
		term = 0
	}
	_, _, err := f.write(ctx, term, "settling the run "+run.ID, types.TransactWriteItem{Update: &types.Update{
		TableName:           &f.table.name,
		Key:                 key(f.runKey(run.ID)),
		UpdateExpression:    sdk.String("SET #settled = :yes, #message = :message, #expires = :expires"),
		ConditionExpression: sdk.String("attribute_not_exists(#settled) OR #settled = :no"),
		ExpressionAttributeNames: map[string]string{
			"#settled": "settled", "#message": "message", "#expires": "expires",
		},
		ExpressionAttributeValues: attributes{
			":yes": truth(true), ":no": truth(false), ":message": text(messageID),
			":expires": number(time.Now().Add(runRetention).Unix()),
		},
	}})
	if err != nil || run.Manual {
		return err
	}
	// After the run's own record: a crash between the two costs the next
	// leader one claim that finds the run settled.
	_, err = f.table.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &f.table.name,
		Key:                       key(f.taskKey(run.Task)),
		UpdateExpression:          sdk.String("SET #last = :at"),
		ConditionExpression:       sdk.String("attribute_not_exists(#last) OR #last < :at"),
		ExpressionAttributeNames:  map[string]string{"#last": "last_ms"},
		ExpressionAttributeValues: attributes{":at": number(run.At.UnixMilli())},
	})
	var later *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &later) {
		return f.table.explain(ctx, "accounting for the run "+run.ID, err)
	}
	return nil
}

// Since returns, for each task of from, the scheduled time up to which its
// runs are accounted for, in milliseconds. A task that is not known is entered
// with its time in from. term is not looked at: the times only move on.
func (f *Runs) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	return f.SinceUnder(ctx, term, from, nil)
}

// SinceUnder is [Runs.Since] for tasks with these schedules, in any words. A
// task that is known with another schedule is accounted for up to its time in
// from at least: earlier times of the new schedule were never due. Of a task
// that has no schedule here, or was entered without one, nothing is compared.
func (f *Runs) SinceUnder(ctx context.Context, _ int64, from map[string]time.Time,
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
func (f *Runs) enter(ctx context.Context, task, schedule string, at time.Time, update, condition string) (time.Time,
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
func (f *Runs) last(ctx context.Context, tasks []string) (map[string]taskRow, error) {
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
				Message: fmt.Sprintf("reading the last runs: registry table %s is throttled", t.name)}
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
		return nil, nil, t.explain(ctx, "reading the last runs", err)
	}
	return out.Responses[t.name], out.UnprocessedKeys[t.name].Keys, nil
}

// Known reports whether the run called id was claimed with a message to path,
// by whichever instance. A run that was only left out was not.
func (f *Runs) Known(ctx context.Context, id, path string) (bool, error) {
	r, err := f.record(ctx, id)
	if err != nil || r.Tries == 0 && r.MessageID == "" {
		return false, err
	}
	// A record without a path is an older version's: it is known with any, so
	// that what was enqueued before an upgrade goes where it was to go.
	return r.Path == "" || r.Path == path, nil
}

// pausePrefix begins the attributes that hold a paused task's reason, so that
// no task's name is taken for an attribute of another meaning.
const pausePrefix = "task:"

func pausesID(lease string) string { return "pauses:" + lease }

// SetPaused notes for every instance that shares the runs' lease that a person
// paused a task, and why, or that it goes on.
func (f *Runs) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &f.table.name, Key: key(pausesID(f.lease)),
		UpdateExpression:         sdk.String("REMOVE #task"),
		ExpressionAttributeNames: map[string]string{"#task": pausePrefix + task},
	}
	if paused {
		in.UpdateExpression = sdk.String("SET #task = :reason")
		in.ExpressionAttributeValues = attributes{":reason": text(reason)}
	}
	if _, err := f.table.api.UpdateItem(ctx, in); err != nil {
		return f.table.explain(ctx, "pausing the task "+task, err)
	}
	return nil
}

// Paused returns the paused tasks and the reason of each.
func (f *Runs) Paused(ctx context.Context) (map[string]string, error) {
	out, err := f.table.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &f.table.name, Key: key(pausesID(f.lease)), ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return nil, f.table.explain(ctx, "reading the paused tasks", err)
	}
	paused := map[string]string{}
	for name, reason := range out.Item {
		if task, ok := strings.CutPrefix(name, pausePrefix); ok {
			paused[task] = stringOf(reason)
		}
	}
	return paused, nil
}
