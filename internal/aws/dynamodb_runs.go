package aws

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// runRetention is how long the record of a run is kept: longer than any instance
// looks back for missed runs.
const runRetention = 30 * 24 * time.Hour

// Runs is a [periodic.Store] in a [Table], for queues that cannot tell a duplicate by
// themselves: a try is claimed, sent by the caller, and the run is marked. Who dies between
// the send and the mark leaves an unsettled record; the next leader claims the next try and
// sends again, with the same id. That is the one window for a duplicate.
//
// The fence is in the claim: it is one transaction with a check that the stored
// lease has the claimer's term and was not given back, so that DynamoDB itself
// puts each claim before or after each change of the leader. Term 0, for what a
// person asked for, is not checked. After an error other than
// queue.ErrStaleTerm a call may have been applied; to repeat it is harmless.
type Runs struct {
	table *Table
	lease string
	// process is recorded in the place of the term of the only instance, which is the same
	// after each start; 0 where a leader is elected. A claim that an earlier process left
	// unsettled is another's by it: it takes a second try to send again, which is counted,
	// and on a FIFO queue not made too late.
	process int64
}

// Runs returns the runs that the holder of the lease called lease may claim.
// They are apart from those of any other lease in the table.
func (t *Table) Runs(lease string) *Runs { return &Runs{table: t, lease: lease} }

// LocalRuns returns the same runs for an instance that is declared the only one: nobody
// writes a lease that could fence its claims.
func (t *Table) LocalRuns(lease string) *Runs {
	return &Runs{table: t, lease: lease, process: time.Now().UnixNano()}
}

func (f *Runs) runKey(id string) string { return "fire:" + f.lease + "/" + id }

func (f *Runs) taskKey(task string) string { return "task:" + f.lease + "/" + task }

// Claim implements [periodic.Store].
func (f *Runs) Claim(ctx context.Context, term int64, run periodic.ScheduledRun, try int) (periodic.Claim, error) {
	put := &types.Put{
		TableName: &f.table.name,
		Item: attributeValues{
			"id":      stringValue(f.runKey(run.ID)),
			"task":    stringValue(run.Task),
			"at_ms":   numberValue(run.ScheduledAt.UnixMilli()),
			"term":    numberValue(f.recorded(term)),
			"tries":   numberValue(int64(try)),
			"settled": boolValue(false),
			"expires": numberValue(time.Now().Add(runRetention).Unix()),
		},
		ConditionExpression:                 sdk.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if run.Path != "" {
		put.Item["path"] = stringValue(run.Path)
	}
	if try > 1 {
		put.ConditionExpression = sdk.String("#tries = :before AND #settled = :no")
		put.ExpressionAttributeNames = map[string]string{"#tries": "tries", "#settled": "settled"}
		put.ExpressionAttributeValues = attributeValues{":before": numberValue(int64(try - 1)), ":no": boolValue(false)}
	}
	doing := "claiming the run " + run.ID
	stored, changed, err := f.write(ctx, term, doing, types.TransactWriteItem{Put: put})
	switch {
	case changed:
		stored = put.Item
	case err == nil && stored == nil:
		stored, err = f.table.readItem(ctx, doing, f.runKey(run.ID))
	}
	claim := claimOf(stored)
	switch {
	case claim.Term == f.recorded(term):
		claim.Term = term
	case f.process != 0:
		claim.Term = 0
	}
	return claim, err
}

// recorded returns the term that a record has for one of this instance.
func (f *Runs) recorded(term int64) int64 {
	if f.process != 0 && term != 0 {
		return f.process
	}
	return term
}

// Records implements [periodic.Store].
func (f *Runs) Records(ctx context.Context, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	keys := make([]string, len(runs))
	for i := range runs {
		keys[i] = f.runKey(runs[i].ID)
	}
	items, err := f.table.readItems(ctx, keys)
	records := make(map[string]periodic.Claim, len(items))
	for i, key := range keys {
		if item := items[key]; item != nil {
			records[runs[i].ID] = claimOf(item)
		}
	}
	return records, err
}

func claimOf(item attributeValues) periodic.Claim {
	tries, _ := intOf(item["tries"])
	term, _ := intOf(item["term"])
	settled, _ := item["settled"].(*types.AttributeValueMemberBOOL)
	return periodic.Claim{Tries: int(tries), Term: term, Settled: settled != nil && settled.Value,
		MessageID: stringOf(item["message"])}
}

// write makes one write, fenced by a check that term is the current one. changed is false when
// its own condition does not hold; stored is the item then, nil where the server does not show it.
func (f *Runs) write(ctx context.Context, term int64, doing string, item types.TransactWriteItem) (
	stored attributeValues, changed bool, err error) {
	items := []types.TransactWriteItem{item}
	if term != 0 && f.process == 0 {
		items = append(items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName:                 &f.table.name,
			Key:                       keyOf(leaseID(f.lease)),
			ConditionExpression:       sdk.String("#term = :term AND #released = :no"),
			ExpressionAttributeNames:  map[string]string{"#term": "term", "#released": "released"},
			ExpressionAttributeValues: attributeValues{":term": numberValue(term), ":no": boolValue(false)},
		}})
		slices.Reverse(items)
	}
	_, err = f.table.api.get().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
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
			return nil, false, queue.Errorf(queue.CodeStaleTerm, "%s: term %d of lease %s is over", doing, term, f.lease)
		default:
			reason = fence
		}
	}
	if reason == failed {
		return own.Item, false, nil
	}
	return nil, false, queue.Errorf(tableCode(reason, queue.CodeUnreachable),
		"%s in registry table %s: %s; to be tried again", doing, f.table.name, reason)
}

// Mark implements [periodic.Store]. Only leaving out is fenced by term: that a message was sent
// is true whoever leads by now.
func (f *Runs) Mark(ctx context.Context, term int64, run periodic.ScheduledRun, messageID string) error {
	if messageID != "" {
		term = 0
	}
	_, _, err := f.write(ctx, term, "settling the run "+run.ID, types.TransactWriteItem{Update: &types.Update{
		TableName:                &f.table.name,
		Key:                      keyOf(f.runKey(run.ID)),
		UpdateExpression:         sdk.String("SET #settled = :yes, #message = :message, #expires = :expires"),
		ConditionExpression:      sdk.String("attribute_not_exists(#settled) OR #settled = :no"),
		ExpressionAttributeNames: map[string]string{"#settled": "settled", "#message": "message", "#expires": "expires"},
		ExpressionAttributeValues: attributeValues{":yes": boolValue(true), ":no": boolValue(false),
			":message": stringValue(messageID), ":expires": numberValue(time.Now().Add(runRetention).Unix())},
	}})
	if err != nil || run.Manual {
		return err
	}
	// After the run's own record: a crash between the two costs the next
	// leader one claim that finds the run settled.
	accounted := periodic.Start{At: run.ScheduledAt}
	_, err = f.enter(ctx, run.Task, accounted, "SET #last = :at", "attribute_not_exists(#last) OR #last < :at")
	var later *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &later) {
		return f.table.explain(ctx, "accounting for the run "+run.ID, err)
	}
	return nil
}

// Since implements [periodic.Store]. term is not looked at: any instance may enter when it had a task.
func (f *Runs) Since(ctx context.Context, _ int64, starts map[string]periodic.Start) (map[string]queue.TaskTimes,
	error) {
	var keys []string
	for task := range maps.Keys(starts) {
		keys = append(keys, f.taskKey(task))
	}
	rows, err := f.table.readItems(ctx, slices.Sorted(slices.Values(keys)))
	if err != nil {
		return nil, err
	}
	known := make(map[string]queue.TaskTimes, len(starts))
	for task, start := range starts {
		if known[task], err = f.since(ctx, task, start, rows[f.taskKey(task)]); err != nil {
			return nil, f.table.explain(ctx, "entering the task "+task, err)
		}
	}
	return known, nil
}

// since makes the row of a task right for its start. Of a task that has no schedule here, or was entered without
// one, no schedule is compared.
func (f *Runs) since(ctx context.Context, task string, start periodic.Start, row attributeValues) (
	queue.TaskTimes, error) {
	const first, begin = "SET #last = if_not_exists(#last, :at)", ", #from = :at"
	times, schedule := timesOf(row), stringOf(row["schedule"])
	switch {
	case times.UpTo.IsZero():
		return f.enter(ctx, task, start, first+begin, "")
	case start.Schedule != "" && schedule == "":
		return f.enter(ctx, task, start, first, "")
	case start.Schedule != "" && start.Schedule != schedule:
		if times.UpTo.Before(start.At) {
			moved, err := f.enter(ctx, task, start, "SET #last = :at"+begin, "#last < :at")
			var later *types.ConditionalCheckFailedException
			if !errors.As(err, &later) {
				return moved, err
			} // it moved on meanwhile
		}
		return f.enter(ctx, task, start, first+begin, "")
	case start.At.UnixMilli() < times.From.UnixMilli():
		return f.enter(ctx, task, start, first+begin, "")
	}
	return times, nil
}

// timesOf reads the row of a task. UpTo is zero when there is none.
func timesOf(row attributeValues) (times queue.TaskTimes) {
	if ms, ok := intOf(row["last_ms"]); ok {
		times.UpTo = time.UnixMilli(ms).UTC()
	}
	if ms, ok := intOf(row["from_ms"]); ok {
		times.From = time.UnixMilli(ms).UTC()
	}
	return times
}

// enter changes the row of a task, and returns its times then. A schedule of "" is left as it is.
func (f *Runs) enter(ctx context.Context, task string, start periodic.Start, update, condition string) (
	queue.TaskTimes, error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                 &f.table.name,
		Key:                       keyOf(f.taskKey(task)),
		ExpressionAttributeNames:  map[string]string{"#last": "last_ms"},
		ExpressionAttributeValues: attributeValues{":at": numberValue(start.At.UnixMilli())},
		ReturnValues:              types.ReturnValueAllNew,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	if strings.Contains(update, "#from") {
		in.ExpressionAttributeNames["#from"] = "from_ms"
	}
	if start.Schedule != "" {
		update += ", #schedule = :schedule"
		in.ExpressionAttributeNames["#schedule"] = "schedule"
		in.ExpressionAttributeValues[":schedule"] = stringValue(start.Schedule)
	}
	in.UpdateExpression = &update
	out, err := f.table.api.get().UpdateItem(ctx, in)
	if err != nil {
		return queue.TaskTimes{}, err
	}
	return timesOf(out.Attributes), nil
}

// Known reports whether the run called id was claimed with a message to path,
// by whichever instance. A run that was only left out was not.
func (f *Runs) Known(ctx context.Context, id, path string) (bool, error) {
	item, err := f.table.readItem(ctx, "reading the run "+id, f.runKey(id))
	if claim := claimOf(item); err != nil || claim.Tries == 0 && claim.MessageID == "" {
		return false, err
	}
	// A record without a path is an older version's: it is known with any, so
	// that what was enqueued before an upgrade goes where it was to go.
	recorded := stringOf(item["path"])
	return recorded == "" || recorded == path, nil
}

// pausePrefix begins the attributes that hold a paused task's reason, so that
// no task's name is taken for an attribute of another meaning.
const pausePrefix = "task:"

func (f *Runs) pausesID() string { return "pauses:" + f.lease }

// SetPaused notes for every instance that shares the runs' lease that a person
// paused a task, and why, or that it goes on.
func (f *Runs) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &f.table.name, Key: keyOf(f.pausesID()),
		UpdateExpression:         sdk.String("REMOVE #task"),
		ExpressionAttributeNames: map[string]string{"#task": pausePrefix + task},
	}
	if paused {
		in.UpdateExpression = sdk.String("SET #task = :reason")
		in.ExpressionAttributeValues = attributeValues{":reason": stringValue(reason)}
	}
	_, err := f.table.api.get().UpdateItem(ctx, in)
	return f.table.explain(ctx, "pausing the task "+task, err)
}

// Paused returns the paused tasks and the reason of each.
func (f *Runs) Paused(ctx context.Context) (map[string]string, error) {
	item, err := f.table.readItem(ctx, "reading the paused tasks", f.pausesID())
	if err != nil {
		return nil, err
	}
	paused := map[string]string{}
	for name, reason := range item {
		if task, ok := strings.CutPrefix(name, pausePrefix); ok {
			paused[task] = stringOf(reason)
		}
	}
	return paused, nil
}
