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

// creationPoll is the time between two questions whether a new table is ready.
const creationPoll = 500 * time.Millisecond

// Check asks whether there are credentials, and whether the table is there and
// has the right key. Its error says what to do otherwise.
func (t *Table) Check(ctx context.Context) error {
	if err := t.credentials(ctx); err != nil {
		return err
	}
	_, err := t.describe(ctx)
	return err
}

func (t *Table) credentials(ctx context.Context) error {
	provider := t.api.Options().Credentials
	if provider == nil {
		return noCredentials(errors.New("none are configured"))
	}
	if _, err := provider.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return noCredentials(err)
	}
	return nil
}

// describe returns whether the table is ready to be used.
func (t *Table) describe(ctx context.Context) (ready bool, err error) {
	out, err := t.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name})
	if err != nil {
		return false, t.explain(ctx, "looking at the table", err)
	}
	keys := out.Table.KeySchema
	right := len(keys) == 1 && sdk.ToString(keys[0].AttributeName) == "id"
	for _, a := range out.Table.AttributeDefinitions {
		if sdk.ToString(a.AttributeName) == "id" && a.AttributeType != types.ScalarAttributeTypeS {
			right = false
		}
	}
	if !right {
		return false, &queue.Error{Code: queue.CodeInvalidParameterValue, Message: fmt.Sprintf(
			"registry table %s has another key than ours: it needs the hash key \"id\" of type string and no sort key; name "+
				"another table", t.name)}
	}
	status := out.Table.TableStatus
	return status == types.TableStatusActive || status == types.TableStatusUpdating, nil
}

// Create makes the table, paid per request, unless it exists, and waits until
// it can be used.
func (t *Table) Create(ctx context.Context) error {
	if err := t.credentials(ctx); err != nil {
		return err
	}
	_, err := t.api.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &t.name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: sdk.String("id"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: sdk.String("id"), KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return t.explain(ctx, "creating the table", err)
	}
	for {
		ready, err := t.describe(ctx)
		if err != nil && !isCode(err, queue.CodeResourceNotFound) {
			return err
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return t.explain(ctx, "waiting for the new table", ctx.Err())
		case <-time.After(creationPoll):
		}
	}
}

// expiryAttribute holds when a record is past its time.
const expiryAttribute = "expires"

// Expires reports whether DynamoDB deletes the records that are past their
// time, such as those of old runs. Else they stay for ever. by is the
// attribute by which the table deletes items, "" when it deletes none.
func (t *Table) Expires(ctx context.Context) (yes bool, by string, err error) {
	out, err := t.api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name})
	if err != nil {
		return false, "", t.explain(ctx, "looking at the table's time to live", err)
	}
	if d := out.TimeToLiveDescription; d != nil &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		by = sdk.ToString(d.AttributeName)
	}
	return by == expiryAttribute, by, nil
}

// Expire has DynamoDB delete the records that are past their time, unless it
// does so already. A table that deletes items by another attribute stays as it
// is: it can have one only.
func (t *Table) Expire(ctx context.Context) error {
	yes, by, err := t.Expires(ctx)
	switch {
	case yes || err != nil:
		return err
	case by != "":
		return &queue.Error{Code: queue.CodeInvalidParameterValue, Message: fmt.Sprintf(
			"registry table %s deletes items by the attribute %q, and a table can have one such attribute only: ours is %q; "+
				"name another table", t.name, by, expiryAttribute)}
	}
	_, err = t.api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: sdk.String(expiryAttribute),
			Enabled: sdk.Bool(true)},
	})
	if err == nil {
		return nil
	}
	err = t.explain(ctx, "setting the table's time to live", err)
	if yes, _, _ := t.Expires(ctx); yes { // another instance was faster
		return nil
	}
	return err
}

func isCode(err error, code string) bool { return errors.Is(err, &queue.Error{Code: code}) }

// explain turns any error of a call into a [*queue.Error] that says which table
// and what to do. The cancelling of the caller's own context stays what it is.
func (t *Table) explain(ctx context.Context, doing string, err error) error {
	refused := answer(err)
	what := "registry table " + t.name
	if action := operation("dynamodb", err); action != "" {
		what = action + " on " + what
	}
	if cause := ctx.Err(); cause != nil && refused == nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return &queue.Error{Code: queue.CodeUnreachable, Err: cause, Message: fmt.Sprintf(
			"%s (%s): %s did not answer in time; check the network, the region and AWS_ENDPOINT_URL_DYNAMODB", doing, what,
			t.host)}
	}
	if refused == nil {
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"%s (%s): %s did not answer: %s; check the network, the region, the credentials and AWS_ENDPOINT_URL_DYNAMODB",
			doing, what, t.host, firstLine(plain(err).Error()))}
	}
	code, message := tableCode(refused.shape, refused.code()), refused.Error()
	switch {
	case refused.foreign():
		message = fmt.Sprintf("%s (%s): %s", doing, what,
			refused.foreignAnswer(t.host, "DynamoDB", "AWS_ENDPOINT_URL_DYNAMODB"))
	case code == queue.CodeResourceNotFound:
		message = fmt.Sprintf("registry table %s does not exist at %s: check its name and the region, or create it with "+
			"--registry-create "+
			"(registry_create: true)", t.name, t.host)
	case code == queue.CodeAccessDenied:
		message = fmt.Sprintf("%s: %s refused access to registry table %s: %s; allow these credentials dynamodb:GetItem, "+
			"BatchGetItem, PutItem, "+
			"UpdateItem, ConditionCheckItem and DescribeTable on it, and CreateTable, UpdateTimeToLive and "+
			"DescribeTimeToLive where it is to be created",
			doing, t.host, t.name, message)
	case code == queue.CodeRequestThrottled:
		message = fmt.Sprintf("%s: registry table %s is throttled: %s; use on-demand capacity, or at least 5 write and "+
			"read units", doing, t.name, message)
	case code == queue.CodeUnreachable:
		message = fmt.Sprintf("%s (%s): %s failed: %s; try again later", doing, what, t.host, message)
	default:
		message = fmt.Sprintf("%s (%s): %s refused: %s; check that no other program writes to this table, or name another "+
			"one", doing, what, t.host, message)
	}
	return &queue.Error{Code: code, Message: message, Err: refused}
}

// tableCode names the kinds of refusal that DynamoDB has and SQS has not.
func tableCode(theirs, known string) string {
	switch theirs {
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingError",
		"TransactionConflictException", "TransactionConflict", "TransactionInProgressException",
		"LimitExceededException", "ReplicatedWriteConflictException":
		return queue.CodeRequestThrottled
	case "InternalServerError":
		return queue.CodeUnreachable
	}
	return known
}
