package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/internal/registry"
	"tendril/queue"
)

type attributeValues = map[string]types.AttributeValue

var kindNames = map[registry.Kind]string{registry.KindLease: "the lease", registry.KindRun: "the run",
	registry.KindTask: "the tasks", registry.KindPauses: "the paused tasks"}

func itemID(kind registry.Kind, key string) string { return string(kind) + ":" + key }

func keyOf(id string) attributeValues {
	return attributeValues{"id": &types.AttributeValueMemberS{Value: id}}
}

// Read implements [registry.Store].
func (t *Table) Read(ctx context.Context, kind registry.Kind, keys ...string) ([]registry.Record, error) {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = itemID(kind, key)
	}
	items, err := t.readItems(ctx, "reading "+kindNames[kind], ids)
	if err != nil {
		return nil, err
	}

	records := make([]registry.Record, len(keys))
	for i, key := range keys {
		records[i] = recordOf(kind, key, items[ids[i]])
	}
	return records, nil
}

func (t *Table) readItems(ctx context.Context, doing string, ids []string) (map[string]attributeValues, error) {
	if len(ids) == 1 {
		out, err := t.api.get().GetItem(ctx,
			&dynamodb.GetItemInput{TableName: &t.name, Key: keyOf(ids[0]), ConsistentRead: sdk.Bool(true)})
		if err != nil {
			return nil, t.explain(ctx, doing, err)
		}
		return map[string]attributeValues{ids[0]: out.Item}, nil
	}

	var keys []attributeValues
	for _, id := range ids {
		keys = append(keys, keyOf(id))
	}

	items := make(map[string]attributeValues, len(ids))
	for len(keys) > 0 {
		n := min(len(keys), 100) // the limit of BatchGetItem
		out, err := t.api.get().BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{t.name: {Keys: keys[:n], ConsistentRead: sdk.Bool(true)}},
		})
		if err != nil {
			return nil, t.explain(ctx, doing, err)
		}

		for _, item := range out.Responses[t.name] {
			id, _ := decodeValue(item["id"]).(string)
			items[id] = item
		}

		left := out.UnprocessedKeys[t.name].Keys
		if len(left) == n {
			return nil, queue.Errorf(queue.CodeRequestThrottled, "%s: registry table %s is throttled", doing, t.name)
		}
		keys = append(left, keys[n:]...)
	}
	return items, nil
}

// Swap implements [registry.Store]. With a fence, each change and its check of the lease are one transaction.
func (t *Table) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) ([]registry.Record, error) {
	if len(changes) == 0 && fence != (registry.Fence{}) {
		return nil, t.transact(ctx, "checking the lease", fence, nil)
	}

	stored := make([]registry.Record, len(changes))
	for i, change := range changes {
		var err error
		if stored[i], err = t.swap(ctx, fence, change); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

func (t *Table) swap(ctx context.Context, fence registry.Fence, change registry.Change) (registry.Record, error) {
	kind, key := change.Old.Kind, change.Old.Key
	doing := "writing " + kindNames[kind]
	var err error
	if fence == (registry.Fence{}) {
		err = t.update(ctx, doing, t.updateOf(change))
	} else {
		err = t.transact(ctx, doing, fence, t.updateOf(change))
	}

	var differs *differsError
	switch {
	case err == nil:
		return change.Next, nil
	case !errors.As(err, &differs):
		return registry.Record{}, err
	case differs.item != nil:
		return recordOf(kind, key, differs.item), nil
	}

	records, err := t.Read(ctx, kind, key)
	if err != nil {
		return registry.Record{}, err
	}
	return records[0], nil
}

// differsError means that an update's condition failed. item is nil if the server did not return it.
type differsError struct{ item attributeValues }

func (e *differsError) Error() string { return "the stored item differs from the expected one" }

func (t *Table) update(ctx context.Context, doing string, u *types.Update) error {
	in := &dynamodb.UpdateItemInput{TableName: u.TableName, Key: u.Key,
		UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure}
	_, err := t.api.get().UpdateItem(ctx, in)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return &differsError{refused.Item}
	}
	return t.explain(ctx, doing, err)
}

// transact checks the lease and, unless u is nil, updates an item.
func (t *Table) transact(ctx context.Context, doing string, fence registry.Fence, u *types.Update) error {
	items := []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName:                 &t.name,
		Key:                       keyOf(itemID(registry.KindLease, fence.Lease)),
		ConditionExpression:       sdk.String("#term = :term AND #released = :no"),
		ExpressionAttributeNames:  map[string]string{"#term": "term", "#released": "released"},
		ExpressionAttributeValues: attributeValues{":term": encodeValue(fence.Term), ":no": encodeValue(false)},
	}}}
	if u != nil {
		items = append(items, types.TransactWriteItem{Update: u})
	}

	_, err := t.api.get().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(items) {
		return t.explain(ctx, doing, err)
	}

	differs := &differsError{}
	for i, reason := range cancelled.CancellationReasons {
		switch code := sdk.ToString(reason.Code); {
		case code == "" || code == "None":
		case code != "ConditionalCheckFailed":
			return queue.Errorf(tableCode(code, queue.CodeUnreachable), "%s in registry table %s: %s; retry later", doing,
				t.name, code)
		case i == 0:
			return fence.Refuse(registry.Record{}, "The change")
		default:
			differs.item = reason.Item
		}
	}
	return differs
}

// updateOf requires a field in the change: DynamoDB rejects empty expressions.
func (t *Table) updateOf(change registry.Change) *types.Update {
	all := itemFields(change.Old)
	maps.Copy(all, itemFields(change.Next))
	e := expressions{attributes: slices.Sorted(maps.Keys(all)), names: map[string]string{}, values: attributeValues{}}
	for i, attribute := range e.attributes {
		e.names[fmt.Sprint("#", i)] = attribute
	}

	return &types.Update{TableName: &t.name, Key: keyOf(itemID(change.Next.Kind, change.Next.Key)),
		UpdateExpression:                    e.update(change.Next),
		ConditionExpression:                 e.condition(change.Old),
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
}

type expressions struct {
	attributes []string // #0 stands for attributes[0]
	names      map[string]string
	values     attributeValues
}

func (e *expressions) update(next registry.Record) *string {
	fields := itemFields(next)
	var sets, removes []string
	for i, attribute := range e.attributes {
		if value, keep := fields[attribute]; keep {
			sets = append(sets, e.equals(i, ":new", value))
		} else {
			removes = append(removes, fmt.Sprint("#", i))
		}
	}

	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return sdk.String(strings.Join(parts, " "))
}

// condition compares the version or, if old has none, all attributes except the expiry.
func (e *expressions) condition(old registry.Record) *string {
	if old.Fields == nil {
		return sdk.String("attribute_not_exists(id)")
	}

	fields := itemFields(old)
	var conditions []string
	for i, attribute := range e.attributes {
		value, had := fields[attribute]
		switch {
		case attribute == expiryAttribute, old.Version != "" && attribute != "version":
		case had:
			conditions = append(conditions, e.equals(i, ":old", value))
		default:
			conditions = append(conditions, fmt.Sprintf("attribute_not_exists(#%d)", i))
		}
	}
	return sdk.String(strings.Join(conditions, " AND "))
}

func (e *expressions) equals(i int, prefix string, value any) string {
	placeholder := fmt.Sprint(prefix, i)
	e.values[placeholder] = encodeValue(value)
	return fmt.Sprintf("#%d = %s", i, placeholder)
}

func itemFields(r registry.Record) registry.Fields {
	all := registry.Fields{}
	if r.Version != "" {
		all["version"] = r.Version
	}
	if !r.Expires.IsZero() {
		all[expiryAttribute] = r.Expires.Unix()
	}
	return r.With(all).Fields
}

func recordOf(kind registry.Kind, key string, item attributeValues) registry.Record {
	r := registry.Record{Kind: kind, Key: key}
	if len(item) == 0 {
		return r
	}

	r.Fields = registry.Fields{}
	for name, value := range item {
		switch v := decodeValue(value); {
		case name == "id" || v == nil:
		case name == "version":
			r.Version, _ = v.(string)
		case name == expiryAttribute:
			seconds, _ := v.(int64)
			r.Expires = time.Unix(seconds, 0)
		default:
			r.Fields[name] = v
		}
	}
	return r
}

func encodeValue(v any) types.AttributeValue {
	switch v := v.(type) {
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	}
	return &types.AttributeValueMemberS{Value: fmt.Sprint(v)}
}

func decodeValue(value types.AttributeValue) any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberN:
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n
		}
	}
	return nil
}
