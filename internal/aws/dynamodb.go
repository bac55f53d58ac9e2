package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"tendril/queue"
)

// Table is a DynamoDB table that implements [registry.Store]. Its key is the string hash key "id", as in the table of
// an Elastic Beanstalk worker environment, which it can share: tendril's IDs start with "lease:", "fire:", "task:" or
// "pauses:". Table is safe for concurrent use.
//
// Calls are not retried, because a lease holder must know when each write started. The error code for a missing table
// is queue.CodeResourceNotFound.
type Table struct {
	service service
	api     client[dynamodb.Client]
	name    string
}

// Close closes idle connections.
func (t *Table) Close() { t.service.close() }

// OpenTable checks the upper bound: {3,255} would be compiled to 255 copies of the class at each start.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,}$`)

// OpenTable creates a client from the AWS configuration.
func OpenTable(ctx context.Context, name string, opts *Options) (*Table, error) {
	if len(name) > 255 || !tableName.MatchString(name) {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue, "registry table %q is not a valid DynamoDB table name: "+
			"use 3 to 255 letters, digits, '-', '_' and '.', not an ARN or a URL", name)
	}

	cfg, service, err := loadWithRegion(ctx, opts, "DynamoDB", "registry table "+name)
	if err != nil {
		return nil, err
	}

	api := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = sdk.NopRetryer{} })
	return &Table{service, newClient(api), name}, nil
}

// Check verifies the credentials and the table's key schema.
func (t *Table) Check(ctx context.Context) error {
	if err := checkCredentials(ctx, t.api.get().Options().Credentials); err != nil {
		return err
	}
	_, err := t.checkKeySchema(ctx)
	return err
}

func (t *Table) checkKeySchema(ctx context.Context) (ready bool, err error) {
	out, err := t.api.get().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name})
	if err != nil {
		return false, t.explain(ctx, "describing the table", err)
	}
	if !hasKeySchema(out.Table) {
		return false, queue.Errorf(queue.CodeInvalidParameterValue, "registry table %s has a different key: it needs the "+
			"hash key \"id\" of type string and no sort key; name another table", t.name)
	}
	status := out.Table.TableStatus
	return status == types.TableStatusActive || status == types.TableStatusUpdating, nil
}

func hasKeySchema(table *types.TableDescription) bool {
	keys := table.KeySchema
	if len(keys) != 1 || sdk.ToString(keys[0].AttributeName) != "id" {
		return false
	}
	return !slices.ContainsFunc(table.AttributeDefinitions, func(a types.AttributeDefinition) bool {
		return sdk.ToString(a.AttributeName) == "id" && a.AttributeType != types.ScalarAttributeTypeS
	})
}

// Create creates the table with on-demand billing and waits until it is ready. An existing table stays unchanged.
func (t *Table) Create(ctx context.Context, tags map[string]string) error {
	if err := checkCredentials(ctx, t.api.get().Options().Credentials); err != nil {
		return err
	}

	var tagList []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		tagList = append(tagList, types.Tag{Key: &key, Value: sdk.String(tags[key])})
	}

	_, err := t.api.get().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &t.name,
		Tags:        tagList,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: sdk.String("id"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: sdk.String("id"), KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return t.explain(ctx, "creating the table", err)
	}
	return t.waitUntilReady(ctx)
}

func (t *Table) waitUntilReady(ctx context.Context) error {
	for {
		ready, err := t.checkKeySchema(ctx)
		// DescribeTable may not find a table that was just created.
		if err != nil && !errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			return err
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return t.explain(ctx, "waiting for the new table", ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

const expiryAttribute = "expires"

// Expires reports whether the table deletes expired records. by is the attribute used for time to live, or "".
func (t *Table) Expires(ctx context.Context) (yes bool, by string, err error) {
	out, err := t.api.get().DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name})
	if err != nil {
		return false, "", t.explain(ctx, "reading the table's time to live", err)
	}
	if d := out.TimeToLiveDescription; d != nil &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		by = sdk.ToString(d.AttributeName)
	}
	return by == expiryAttribute, by, nil
}

// Expire enables time to live. It fails if the table uses another time-to-live attribute.
func (t *Table) Expire(ctx context.Context) error {
	yes, by, err := t.Expires(ctx)
	switch {
	case yes || err != nil:
		return err
	case by != "":
		return queue.Errorf(queue.CodeInvalidParameterValue, "registry table %s has the TTL attribute %q, but "+
			"tendril needs %q, and a table has only one; name another table", t.name, by, expiryAttribute)
	}

	_, err = t.api.get().UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: sdk.String(expiryAttribute),
			Enabled: sdk.Bool(true)},
	})
	if err == nil {
		return nil
	}
	if yes, _, _ := t.Expires(ctx); yes { // another instance may have enabled it
		return nil
	}
	return t.explain(ctx, "setting the table's time to live", err)
}

func (t *Table) explain(ctx context.Context, doing string, err error) error {
	what := "registry table " + t.name
	var op *smithy.OperationError
	if errors.As(err, &op) && op.OperationName != "" {
		what = "dynamodb:" + op.OperationName + " on " + what
	}

	return t.service.explain(ctx, fmt.Sprintf("%s (%s)", doing, what), err, func(refused *refusal) (code, message string) {
		code = tableCode(refused.shape, refused.queueCode())
		switch code {
		case queue.CodeResourceNotFound:
			message = fmt.Sprintf("registry table %s does not exist at %s: check its name and the region, or create it with "+
				"--registry-create (registry_create: true)", t.name, t.service.host)
		case queue.CodeAccessDenied:
			message = fmt.Sprintf("%s denied access: %s; allow these credentials dynamodb:GetItem, BatchGetItem, "+
				"UpdateItem, ConditionCheckItem and DescribeTable on the table, and CreateTable, TagResource, "+
				"UpdateTimeToLive and DescribeTimeToLive where it is to be created ('tendril check --iam' prints a policy)",
				t.service.host, refused)
		case queue.CodeRequestThrottled:
			message = fmt.Sprintf("the table is throttled: %s; use on-demand capacity, or at least 5 read and write units",
				refused)
		case queue.CodeUnreachable:
			message = fmt.Sprintf("%s failed: %s; try again later", t.service.host, refused)
		default:
			message = fmt.Sprintf("%s rejected the call: %s; check that no other program writes to this table, or use another table",
				t.service.host, refused)
		}
		return code, message
	})
}

func tableCode(code, fallback string) string {
	switch code {
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingError",
		"TransactionConflictException", "TransactionConflict", "TransactionInProgressException",
		"LimitExceededException", "ReplicatedWriteConflictException":
		return queue.CodeRequestThrottled
	case "InternalServerError":
		return queue.CodeUnreachable
	}
	return fallback
}
