package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"tendril/queue"
)

// Table is a DynamoDB table in which the instances of a fleet keep what they
// must agree on: leases, and what became of periodic runs. It has one string
// hash key, id, as the registry of an Elastic Beanstalk worker environment has,
// and may be that very table: the ids of ours begin with "lease:", "fire:",
// "task:" and "pauses:". All methods are safe for concurrent use.
//
// Nothing here repeats a call: whoever holds a lease has to know when its
// writes began. Errors are [queue.Error] and say what to do; that of a missing
// table has queue.CodeResourceNotFound.
type Table struct {
	api       *dynamodb.Client
	transport *http.Transport
	name      string
	host      string
}

// TableOptions configure [OpenTable]. A nil *TableOptions is valid. As with
// SQS, credentials come from where every AWS tool takes them.
type TableOptions struct {
	// Region is where the table is; "" means what the environment or the
	// profile says.
	Region string
	// Profile names a profile of the shared AWS configuration files; "" means
	// AWS_PROFILE, else "default".
	Profile string
	// Endpoint is the URL of a server that speaks the DynamoDB protocol; ""
	// means AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL, else Amazon's own.
	Endpoint string
	// Log takes what the SDK logs; nil drops it.
	Log LogFunc
}

var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// OpenTable reads the AWS configuration for the table called name. It calls
// nobody: [Table.Check] and [Table.Create] do. The error names the variable or
// the file at fault.
func OpenTable(ctx context.Context, name string, opts *TableOptions) (*Table, error) {
	if opts == nil {
		opts = &TableOptions{}
	}
	if !tableName.MatchString(name) {
		return nil, &queue.Error{Code: queue.CodeInvalidParameterValue, Message: fmt.Sprintf(
			"registry table %q is no name of a DynamoDB table: give 3 to 255 letters, digits, '-', '_' and '.', not an ARN "+
				"or a URL", name)}
	}
	cfg, err := loadConfig(ctx, opts.Region, opts.Profile, opts.Log)
	if err != nil {
		return nil, err
	}
	transport := newTransport(cfg.HTTPClient, 4)
	api := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: keepRedirect}
		o.Retryer = sdk.NopRetryer{}
		chooseEndpoint(opts.Endpoint, &o.BaseEndpoint, &o.Region)
	})
	t := &Table{api: api, transport: transport, name: name}
	o := api.Options()
	if o.Region == "" {
		return nil, &queue.Error{Code: queue.CodeInvalidParameterValue, Message: fmt.Sprintf(
			"no AWS region for registry table %s: set AWS_REGION, or a region in the profile", name)}
	}
	t.host = "DynamoDB in " + o.Region
	if o.BaseEndpoint != nil {
		t.host = *o.BaseEndpoint
	}
	return t, nil
}

// Close drops the idle connections. Calls under way end as they would.
func (t *Table) Close() { t.transport.CloseIdleConnections() }

// Read returns the lease stored under name, the zero value when there is none.
func (t *Table) Read(ctx context.Context, name string) (queue.Lease, error) {
	out, err := t.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, Key: key(leaseID(name)), ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return queue.Lease{}, t.explain(ctx, "reading the lease", err)
	}
	return t.lease(name, out.Item)
}

// Swap stores next under name if the Version stored there is old.Version ("" when
// nothing is stored), and returns whether it won and what is stored after the
// call. A Swap whose next is stored already has won: it repeats a call whose
// answer was lost. After an error the write may have been applied, or may still
// be.
func (t *Table) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease,
	err error) {
	if next.Version == "" {
		return false, queue.Lease{}, &queue.Error{Code: queue.CodeInvalidParameterValue,
			Message: fmt.Sprintf("lease %s was to be written without a version", name)}
	}
	put := &dynamodb.PutItemInput{
		TableName:                           &t.name,
		Item:                                leaseItem(name, next),
		ConditionExpression:                 sdk.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if old.Version != "" {
		put.ConditionExpression = sdk.String("#version = :old")
		put.ExpressionAttributeNames = map[string]string{"#version": "version"}
		put.ExpressionAttributeValues = attributes{":old": text(old.Version)}
	}
	_, err = t.api.PutItem(ctx, put)
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return true, next, nil
	case !errors.As(err, &refused):
		return false, queue.Lease{}, t.explain(ctx, "writing the lease", err)
	case refused.Item != nil:
		current, err = t.lease(name, refused.Item)
	default: // nothing is stored, or the server does not tell
		current, err = t.Read(ctx, name)
	}
	return err == nil && current.Version == next.Version, current, err
}

// attributes is an item, or a part of one.
type attributes = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func truth(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func key(id string) attributes { return attributes{"id": text(id)} }

func leaseID(name string) string { return "lease:" + name }

func leaseItem(name string, l queue.Lease) attributes {
	return attributes{
		"id":          text(leaseID(name)),
		"owner":       text(l.Owner),
		"version":     text(l.Version),
		"term":        number(l.Term),
		"duration_ms": number(l.Duration.Milliseconds()),
		"released":    truth(l.Released),
		"data":        text(l.Data),
	}
}

// lease reads an item; none is the zero lease. An item that nobody of ours
// wrote is an error: to take it for a free lease would make a second leader.
func (t *Table) lease(name string, item attributes) (queue.Lease, error) {
	if len(item) == 0 {
		return queue.Lease{}, nil
	}
	l := queue.Lease{Owner: stringOf(item["owner"]), Version: stringOf(item["version"]), Data: stringOf(item["data"])}
	term, termOK := intOf(item["term"])
	ms, msOK := intOf(item["duration_ms"])
	released, boolOK := item["released"].(*types.AttributeValueMemberBOOL)
	if l.Version == "" || !termOK || !msOK || !boolOK {
		return queue.Lease{},
			fmt.Errorf("item %q of registry table %s is no lease: delete it, or use another table", leaseID(name), t.name)
	}
	l.Term, l.Duration, l.Released = term, time.Duration(ms)*time.Millisecond, released.Value
	return l, nil
}

func stringOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func intOf(v types.AttributeValue) (int64, bool) {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil
}
