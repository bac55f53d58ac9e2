package aws

import (
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

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
