package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

func openTable(t testing.TB, transport http.RoundTripper) *Table {
	t.Helper()
	table, err := OpenTable(context.Background(), "registry", &Options{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	table.api = newClient(rewired(table, transport))
	return table
}

type ledger struct {
	answers []*http.Response
	asked   []string
}

func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	l.asked = append(l.asked, action+" "+string(body))
	if len(l.answers) == 0 {
		return nil, errors.New("connection reset by the test")
	}
	answer := l.answers[0]
	l.answers = l.answers[1:]
	answer.Request = r
	return answer, nil
}

func (l *ledger) actions() string {
	var actions []string
	for _, a := range l.asked {
		action, _, _ := strings.Cut(a, " ")
		actions = append(actions, action)
	}
	return strings.Join(actions, " ")
}

func refuseTable(status int, shape, rest string) *http.Response {
	return reply(status,
		fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"said Amazon"%s}`, shape, rest))
}

func TestTableErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer *http.Response
		code   string
		says   []string
	}{
		{"no table", refuseTable(400, "ResourceNotFoundException", ""), queue.CodeResourceNotFound,
			[]string{"registry table registry does not exist", "--registry-create"}},
		{"denied", refuseTable(400, "AccessDeniedException", ""), queue.CodeAccessDenied,
			[]string{"denied access", "dynamodb:GetItem"}},
		{"expired", refuseTable(400, "ExpiredTokenException", ""), queue.CodeAccessDenied, []string{"denied access"}},
		{"throttled", refuseTable(400, "ProvisionedThroughputExceededException", ""), queue.CodeRequestThrottled,
			[]string{"throttled", "on-demand"}},
		{"throttled otherwise", refuseTable(400, "ThrottlingException", ""), queue.CodeRequestThrottled,
			[]string{"throttled"}},
		{"broken", refuseTable(500, "InternalServerError", ""), queue.CodeUnreachable, []string{"said Amazon"}},
		{"a proxy", reply(502, "<html>"), queue.CodeUnreachable, []string{"registry"}},
		{"nobody", nil, queue.CodeUnreachable, []string{"did not respond", "AWS_ENDPOINT_URL_DYNAMODB"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asked := &ledger{}
			if test.answer != nil {
				asked.answers = []*http.Response{test.answer}
			}
			table := openTable(t, asked)
			_, _, err := registry.NewLeases(table).Swap(context.Background(), "jobs", queue.Lease{}, queue.Lease{Version: "a", Term: 1})
			if !isCode(err, test.code) {
				t.Errorf("the error is %v, want code %s", err, test.code)
			}
			for _, say := range test.says {
				if err != nil && !strings.Contains(err.Error(), say) {
					t.Errorf("the error %q does not say %q", err, say)
				}
			}
			if len(asked.asked) != 1 {
				t.Errorf("asked %d times: a write of a lease is never repeated below its holder", len(asked.asked))
			}
		})
	}
}

func TestTableCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := openTable(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := registry.NewLeases(table).Read(ctx, "jobs")
		if !isCode(err, queue.CodeUnreachable) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "did not respond in time") {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		if _, err := registry.NewLeases(table).Read(ctx, "jobs"); err != context.Canceled {
			t.Errorf("the error of a cancelled read is %v", err)
		}
	})
}

// A write repeated after a lost response fails, although the stored item is the caller's own.
func TestSwapKnowsItsOwn(t *testing.T) {
	t.Parallel()
	const item = `{"id":{"S":"lease:jobs"},"owner":{"S":"me"},"version":{"S":"b"},"term":{"N":"7"},"duration_ms":{"N":"15000"},"released":{"BOOL":false},"data":{"S":""}}`
	next := queue.Lease{Owner: "me", Version: "b", Term: 7, Duration: 15 * time.Second}
	for name, answers := range map[string][]*http.Response{
		"the refusal shows the item": {refuseTable(400, "ConditionalCheckFailedException", `,"Item":`+item)},
		"the refusal shows nothing": {refuseTable(400, "ConditionalCheckFailedException", ""),
			reply(200, `{"Item":`+item+`}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := &ledger{answers: answers}
			table := openTable(t, asked)
			won, current, err := registry.NewLeases(table).Swap(context.Background(), "jobs", queue.Lease{Version: "a"}, next)
			if !won || err != nil || current != next {
				t.Errorf("Swap returned %v, %+v, %v", won, current, err)
			}
			if !strings.Contains(asked.asked[0], `"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`) {
				t.Errorf("did not ask for the item: %s", asked.asked[0])
			}
		})
	}
}

func TestForeignItemIsAnError(t *testing.T) {
	t.Parallel()
	for _, item := range []string{
		`{"id":{"S":"lease:jobs"}}`,
		`{"id":{"S":"lease:jobs"},"version":{"S":"a"},"term":{"S":"1"},"duration_ms":{"N":"1"},"released":{"BOOL":false}}`,
		`{"id":{"S":"lease:jobs"},"version":{"S":"a"},"term":{"N":"1.5"},"duration_ms":{"N":"1"},"released":{"BOOL":false}}`,
		`{"id":{"S":"lease:jobs"},"version":{"S":"a"},"term":{"N":"1"},"duration_ms":{"N":"1"}}`,
	} {
		asked := &ledger{answers: []*http.Response{reply(200, `{"Item":`+item+`}`)}}
		if l, err := registry.NewLeases(openTable(t, asked)).Read(context.Background(), "jobs"); err == nil ||
			!strings.Contains(err.Error(), "is not a lease") {
			t.Errorf("%s was read as %+v, %v", item, l, err)
		}
		if !strings.Contains(asked.asked[0], `"ConsistentRead":true`) {
			t.Errorf("read from a replica that may be old: %s", asked.asked[0])
		}
	}
}

func TestFencedChangeRefusals(t *testing.T) {
	t.Parallel()
	reasons := func(fence, own string) *http.Response {
		return refuseTable(400, "TransactionCanceledException",
			fmt.Sprintf(`,"CancellationReasons":[{"Code":%q},{"Code":%q,"Item":{"tries":{"N":"1"},"term":{"N":"2"}}}]`, fence,
				own))
	}
	for _, test := range []struct {
		name, fence, own string
		code             string
	}{
		{"the term is over", "ConditionalCheckFailed", "None", queue.CodeStaleTerm},
		{"the term is over and it was sent", "ConditionalCheckFailed", "ConditionalCheckFailed", queue.CodeStaleTerm},
		{"sent already", "None", "ConditionalCheckFailed", ""},
		{"a conflict at the lease", "TransactionConflict", "None", queue.CodeRequestThrottled},
		{"a conflict hides the fence", "TransactionConflict", "ConditionalCheckFailed", queue.CodeRequestThrottled},
		{"throttled", "None", "ThrottlingError", queue.CodeRequestThrottled},
		{"something new", "None", "Whatever", queue.CodeUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			table := openTable(t, &ledger{answers: []*http.Response{reasons(test.fence, test.own)}})
			stored, err := table.Swap(context.Background(), registry.Fence{Lease: "jobs", Term: 3}, tried("jobs/t@1", 0, 3))
			if len(stored) > 0 && stored[0].Fields["term"] == int64(3) {
				t.Error("changed")
			}
			if test.code == "" && err != nil || test.code != "" && !isCode(err, test.code) {
				t.Errorf("the error is %v, want code %q", err, test.code)
			}
		})
	}
}

func TestSinceReadsInHundreds(t *testing.T) {
	t.Parallel()
	from := map[string]registry.Start{}
	var known []string
	for i := range 150 {
		from[fmt.Sprint("t-", i)] = registry.Start{At: time.UnixMilli(1)}
		known = append(known, fmt.Sprintf(`{"id":{"S":"task:jobs/t-%d"},"last_ms":{"N":"%d"}}`, i, 1700000000000+i))
	}
	answer := func(items []string) *http.Response {
		return reply(200, `{"Responses":{"registry":[`+strings.Join(items, ",")+`]},"UnprocessedKeys":{}}`)
	}
	runs := func(asked *ledger) *registry.Runs {
		return registry.NewSentRuns(openTable(t, asked), registry.Scope{Name: "jobs"}, nil, nil)
	}
	asked := &ledger{answers: []*http.Response{answer(known[:100]), answer(known[100:])}}
	since, err := runs(asked).Since(context.Background(), 1, from)
	if err != nil || len(since) != 150 || since["t-149"].UpTo.UnixMilli() != 1700000000149 {
		t.Fatalf("Since returned %d tasks, %v", len(since), err)
	}
	if n, m := strings.Count(asked.asked[0], `"S"`), strings.Count(asked.asked[1], `"S"`); n != 100 || m != 50 {
		t.Errorf("asked for %d and %d items", n, m)
	}
	starved := &ledger{answers: []*http.Response{reply(200,
		`{"Responses":{},"UnprocessedKeys":{"registry":{"Keys":[{"id":{"S":"task:jobs/t"}},{"id":{"S":"task:jobs/u"}}]}}}`)}}
	if _, err := runs(starved).Since(context.Background(), 1,
		map[string]registry.Start{"t": {}, "u": {}}); !isCode(err, queue.CodeRequestThrottled) {
		t.Errorf("Since of a table that reads nothing: %v", err)
	}
}

func TestItemsKeepTheirFormat(t *testing.T) {
	t.Parallel()
	ok := func() *http.Response { return reply(200, `{}`) }
	asked := &ledger{answers: []*http.Response{ok(), ok(), ok(), ok()}}
	table := openTable(t, asked)
	ctx := context.Background()
	lease := queue.Lease{Owner: "me", Version: "b", Term: 7, Duration: 15 * time.Second, Data: "d"}
	if _, _, err := registry.NewLeases(table).Swap(ctx, "periodic:jobs", queue.Lease{Version: "a"}, lease); err != nil {
		t.Fatal(err)
	}
	expires := time.Unix(1_700_000_000, 0)
	changes := []registry.Change{tried("periodic:jobs/t@1", 0, 3),
		{Old: registry.Record{Kind: registry.KindTask, Key: "periodic:jobs/t", Fields: registry.Fields{"last_ms": int64(1)}},
			Next: registry.Record{Kind: registry.KindTask, Key: "periodic:jobs/t",
				Fields: registry.Fields{"last_ms": int64(2), "from_ms": int64(1), "schedule": "daily"}}},
		{Old: registry.Record{Kind: registry.KindPauses, Key: "periodic:jobs",
			Fields: registry.Fields{"task:t": "why", "task:u": ""}},
			Next: registry.Record{Kind: registry.KindPauses, Key: "periodic:jobs", Fields: registry.Fields{"task:u": ""}}}}
	changes[0].Next.Expires = expires
	if _, err := table.Swap(ctx, registry.Fence{}, changes...); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{
		{`"id":{"S":"lease:periodic:jobs"}`, `"owner"`, `"version"`, `"term"`, `"duration_ms"`, `"released"`, `"data"`,
			`{"N":"15000"}`, `{"BOOL":false}`, `"ConditionExpression":"#5 = :old5"`},
		{`"id":{"S":"fire:periodic:jobs/t@1"}`, `"task"`, `"tries"`, `"settled"`, `"expires"`, `{"N":"1700000000"}`,
			`"ConditionExpression":"attribute_not_exists(id)"`},
		{`"id":{"S":"task:periodic:jobs/t"}`, `"last_ms"`, `"from_ms"`, `"schedule"`,
			`"ConditionExpression":"attribute_not_exists(#0) AND #1 = :old1 AND attribute_not_exists(#2)"`},
		{`"id":{"S":"pauses:periodic:jobs"}`, `"UpdateExpression":"SET #1 = :new1 REMOVE #0"`, `"task:t"`},
	} {
		for _, part := range want {
			if !strings.HasPrefix(asked.asked[i], "UpdateItem ") || !strings.Contains(asked.asked[i], part) {
				t.Errorf("call %d lacks %s: %s", i, part, asked.asked[i])
			}
		}
	}
}

func tried(key string, before, term int64) registry.Change {
	record := func(n int64) registry.Record {
		r := registry.Record{Kind: registry.KindRun, Key: key}
		if n == 0 {
			return r
		}
		return r.With(registry.Fields{"task": "t", "term": term, "tries": n, "settled": false})
	}
	return registry.Change{Old: record(before), Next: record(before + 1)}
}

func TestCreateWaitsForTheTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := func(status string) *http.Response {
			return reply(200, fmt.Sprintf(
				`{"Table":{"TableStatus":%q,"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}}`, status))
		}
		asked := &ledger{answers: []*http.Response{
			reply(200, `{}`), refuseTable(400, "ResourceNotFoundException", ""), table("CREATING"), table("ACTIVE"),
		}}
		if err := openTable(t, asked).Create(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		want := "CreateTable DescribeTable DescribeTable DescribeTable"
		if got := asked.actions(); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	})
}

func TestExpire(t *testing.T) {
	t.Parallel()
	ttl := func(status, attribute string) *http.Response {
		return reply(200, fmt.Sprintf(`{"TimeToLiveDescription":{"TimeToLiveStatus":%q,"AttributeName":%q}}`, status,
			attribute))
	}
	denied := func() *http.Response { return refuseTable(400, "AccessDeniedException", "") }
	for _, test := range []struct {
		name    string
		answers []*http.Response
		asked   string
		says    string
	}{
		{"off", []*http.Response{ttl("DISABLED", ""), reply(200, `{}`)}, "DescribeTimeToLive UpdateTimeToLive", ""},
		{"on", []*http.Response{ttl("ENABLED", "expires")}, "DescribeTimeToLive", ""},
		{"on soon", []*http.Response{ttl("ENABLING", "expires")}, "DescribeTimeToLive", ""},
		{"on for another", []*http.Response{ttl("ENABLED", "ttl")}, "DescribeTimeToLive", `has the TTL attribute "ttl"`},
		{"another was faster",
			[]*http.Response{ttl("DISABLED", ""), refuseTable(400, "ValidationException", ""), ttl("ENABLING", "expires")},
			"DescribeTimeToLive UpdateTimeToLive DescribeTimeToLive", ""},
		{"may not look", []*http.Response{denied()}, "DescribeTimeToLive", "UpdateTimeToLive and DescribeTimeToLive"},
		{"may not set", []*http.Response{ttl("DISABLED", ""), denied(), ttl("DISABLED", "")},
			"DescribeTimeToLive UpdateTimeToLive DescribeTimeToLive", "setting the table's time to live"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asked := &ledger{answers: test.answers}
			err := openTable(t, asked).Expire(context.Background())
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("the error is %v, want %q in it", err, test.says)
			}
			if got := asked.actions(); got != test.asked {
				t.Errorf("asked %s, want %s", got, test.asked)
			}
		})
	}
}

func TestCheckRefusesAnotherKey(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{
		`"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]`,
		`"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"N"}]`,
		`"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]`,
	} {
		asked := &ledger{answers: []*http.Response{reply(200, `{"Table":{"TableStatus":"ACTIVE",`+keys+`}}`)}}
		if err := openTable(t, asked).Check(context.Background()); !isCode(err, queue.CodeInvalidParameterValue) {
			t.Errorf("%s: %v", keys, err)
		}
	}
}

func TestOpenTableRefuses(t *testing.T) {
	for _, name := range []string{"", "ab", "arn:aws:dynamodb:eu-west-1:1:table/x", "a b c", strings.Repeat("a", 256)} {
		if _, err := OpenTable(context.Background(), name, nil); !isCode(err, queue.CodeInvalidParameterValue) ||
			!strings.Contains(err.Error(), "is not a valid") {
			t.Errorf("OpenTable(%q): %v", name, err)
		}
	}
	if _, err := OpenTable(context.Background(), "registry", nil); !isCode(err, queue.CodeInvalidParameterValue) ||
		!strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("OpenTable without a region: %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	table, err := OpenTable(context.Background(), "registry", nil)
	if err != nil {
		t.Fatal(err)
	}
	table.Close()
	if table.service.host != "http://127.0.0.1:1" {
		t.Errorf("the endpoint of the environment was not taken: %s", table.service.host)
	}
}

func TestSecretsStayOutOfTableErrors(t *testing.T) {
	t.Parallel()
	var seen bytes.Buffer
	table := openTable(t, &ledger{answers: []*http.Response{reply(403,
		`{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"does not match.\nx-amz-security-token:SECRET"}`)}})
	_, err := registry.NewLeases(table).Read(context.Background(), "jobs")
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintln(&seen, err)
	}
	if seen.Len() == 0 || strings.Contains(seen.String(), "SECRET") {
		t.Errorf("the errors say %q", seen.String())
	}
}
