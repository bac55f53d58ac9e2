package aws

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/registry"
	"tendril/queue"
)

const environmentTag = "tendril:environment"

// Tags returns the tags of a resource that belongs to environment.
func Tags(environment string) map[string]string {
	return map[string]string{environmentTag: environment}
}

// OwnerOf returns the name of the environment that owns a resource with these tags, or "".
func OwnerOf(tags map[string]string) string { return tags[environmentTag] }

// Tags returns the queue's tags.
func (q *Queue) Tags(ctx context.Context) (map[string]string, error) {
	out, err := callSDK(ctx, q, q.sqs.api.ListQueueTags, &sqs.ListQueueTagsInput{QueueUrl: &q.url})
	if err != nil {
		return nil, err
	}
	return out.Tags, nil
}

// TableInfo describes a DynamoDB table.
type TableInfo struct {
	ARN string
	// DynamoDB updates Items about every six hours.
	Items int64
	Tags  map[string]string
}

// Describe returns the table's ARN, size and tags. If reading the tags is denied, the error is queue.ErrDenied, and the
// ARN and size are valid.
func (t *Table) Describe(ctx context.Context) (info TableInfo, err error) {
	out, err := t.api.get().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name})
	if err != nil {
		return info, t.explain(ctx, "describing the table", err)
	}

	info = TableInfo{ARN: sdk.ToString(out.Table.TableArn), Items: sdk.ToInt64(out.Table.ItemCount)}
	tags := map[string]string{}
	in := &dynamodb.ListTagsOfResourceInput{ResourceArn: &info.ARN}
	for more := true; more; more = sdk.ToString(in.NextToken) != "" {
		page, err := t.api.get().ListTagsOfResource(ctx, in)
		if err != nil {
			return info, t.explain(ctx, "reading the table's tags", err)
		}
		for _, tag := range page.Tags {
			tags[sdk.ToString(tag.Key)] = sdk.ToString(tag.Value)
		}
		in.NextToken = page.NextToken
	}

	info.Tags = tags
	return info, nil
}

// Leases returns the names of all leases, sorted. It scans the whole table.
func (t *Table) Leases(ctx context.Context) (names []string, err error) {
	prefix := itemID(registry.KindLease, "")
	in := &dynamodb.ScanInput{
		TableName: &t.name, ConsistentRead: sdk.Bool(true),
		FilterExpression:          sdk.String("begins_with(id, :lease)"),
		ProjectionExpression:      sdk.String("id"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":lease": encodeValue(prefix)},
	}

	for more := true; more; more = in.ExclusiveStartKey != nil {
		page, err := t.api.get().Scan(ctx, in)
		if err != nil {
			return nil, t.explain(ctx, "looking for leases", err)
		}
		for _, item := range page.Items {
			id, _ := decodeValue(item["id"]).(string)
			names = append(names, strings.TrimPrefix(id, prefix))
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}

	slices.Sort(names)
	return names, nil
}

// Delete deletes the table and its items. The error code for a missing table is queue.CodeResourceNotFound.
func (t *Table) Delete(ctx context.Context) error {
	_, err := t.api.get().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &t.name})
	var busy *types.ResourceInUseException
	if errors.As(err, &busy) {
		return queue.Errorf(queue.CodeUnreachable, "registry table %s is being created or changed: try again in a minute",
			t.name)
	}
	return t.explain(ctx, "deleting the table", err)
}
