package broker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tendril/queue"
)

const (
	maxPolicy           = 8192 // in bytes (SQS: 8 KiB)
	maxPermittedActions = 7
	maxPermissionLabel  = 80
	policyVersion       = "2008-10-17"
	policyIDSuffix      = "/SQSDefaultPolicy"
	policyActionsPrefix = "SQS:"
)

// Actions that a permission can allow. As in SQS, an action on a message includes its batch form. Read-only.
var grantable = []string{"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl",
	"ListDeadLetterSourceQueues", "PurgeQueue", "ReceiveMessage", "SendMessage"}

type policyDocument struct {
	Version   string
	ID        string            `json:"Id,omitempty"`
	Statement []json.RawMessage // each a policyStatement or written by hand
}

type policyStatement struct {
	Sid       string
	Effect    string
	Principal struct{ AWS any } // a string, or a list for several accounts
	Action    any
	Resource  string
}

// AddPermission adds a statement to a queue's Policy that allows the accounts (12 digits each) to call the
// actions, such as "SendMessage", or "*" for all grantable ones. label becomes the Sid: 1 to 80 letters, digits,
// hyphens and underscores. For more than seven actions, or a policy over 8,192 bytes, the error is OverLimit;
// without actions, MissingRequiredParameter; for other invalid input, InvalidParameterValue.
func (b *Broker) AddPermission(ctx context.Context, name, label string, accounts, actions []string) error {
	if err := checkPermission(label, accounts, actions); err != nil {
		return err
	}

	return b.editPolicy(ctx, name, func(q *liveQueue, policy *policyDocument) error {
		if policy.index(label) >= 0 {
			return errParameter("Label", label, "Already exists.")
		}
		policy.Statement = append(policy.Statement, rawJSON(newStatement(q.arn, label, accounts, actions)))
		if len(rawJSON(policy)) > maxPolicy {
			return queue.Errorf(queue.CodeOverLimit,
				"The policy of queue %s would be longer than %d bytes; remove a permission first.", name, maxPolicy)
		}
		return nil
	})
}

func (b *Broker) editPolicy(ctx context.Context, name string, edit func(q *liveQueue, p *policyDocument) error) error {
	return b.administer(ctx, name, func(q *liveQueue) error {
		policy, err := policyOf(q)
		if err != nil {
			return err
		}
		if err := edit(q, &policy); err != nil {
			return err
		}
		value := ""
		if len(policy.Statement) > 0 {
			value = string(rawJSON(policy))
		}
		return b.setAttributes(q, map[string]string{"Policy": value})
	})
}

func newStatement(arn, label string, accounts, actions []string) policyStatement {
	s := policyStatement{Sid: label, Effect: "Allow", Resource: arn}
	s.Principal.AWS = oneOrList(accounts, func(a string) string { return "arn:aws:iam::" + a + ":root" })
	s.Action = oneOrList(actions, func(a string) string { return policyActionsPrefix + a })
	return s
}

// RemovePermission removes a statement from a queue's Policy, or the whole attribute if no other statement remains. If
// the statement is missing, the error is InvalidParameterValue.
func (b *Broker) RemovePermission(ctx context.Context, name, label string) error {
	return b.editPolicy(ctx, name, func(_ *liveQueue, policy *policyDocument) error {
		at := policy.index(label)
		if at < 0 {
			return errParameter("Label", label, "can't find label.")
		}
		policy.Statement = slices.Delete(policy.Statement, at, at+1)
		return nil
	})
}

func checkPermission(label string, accounts, actions []string) error {
	if label == "" || len(label) > maxPermissionLabel || strings.ContainsFunc(label, notInName) {
		return errParameter("Label", label,
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if len(actions) > maxPermittedActions {
		return queue.Errorf(queue.CodeOverLimit, "%d Actions were found, maximum allowed is %d.", len(actions),
			maxPermittedActions)
	}
	if len(actions) == 0 {
		return queue.Errorf(queue.CodeMissingRequiredParameter, "The request must contain the parameter Actions.")
	}

	for _, action := range actions {
		if !slices.Contains(grantable, action) {
			return errParameter("ActionName", policyActionsPrefix+action,
				"Only the queue owner is allowed to invoke this action.")
		}
	}

	notDigit := func(c rune) bool { return c < '0' || c > '9' }
	for _, account := range accounts {
		if len(account) != 12 || strings.ContainsFunc(account, notDigit) {
			return errParameter("PrincipalId", "["+account+"]", "Unable to verify.")
		}
	}

	if len(accounts) == 0 {
		return errParameter("PrincipalId", "[]", "Unable to verify.")
	}
	return nil
}

func policyOf(q *liveQueue) (policyDocument, error) {
	value := q.description().attributes["Policy"]
	if value == "" {
		return policyDocument{Version: policyVersion, ID: q.arn + policyIDSuffix}, nil
	}
	policy, err := parsePolicy(value)
	if err != nil {
		return policy, errValue("Policy")
	}
	return policy, nil
}

// parsePolicy also accepts a single statement instead of a list.
func parsePolicy(value string) (policyDocument, error) {
	var written struct {
		Version   string
		ID        string `json:"Id"`
		Statement json.RawMessage
	}
	if err := json.Unmarshal([]byte(value), &written); err != nil {
		return policyDocument{}, err
	}

	p := policyDocument{Version: written.Version, ID: written.ID}
	if len(written.Statement) > 0 && written.Statement[0] == '{' {
		p.Statement = []json.RawMessage{written.Statement}
		return p, nil
	}
	if len(written.Statement) == 0 {
		return p, nil
	}
	return p, json.Unmarshal(written.Statement, &p.Statement)
}

func (p *policyDocument) index(sid string) int {
	return slices.IndexFunc(p.Statement, func(statement json.RawMessage) bool {
		var s struct{ Sid string }
		return json.Unmarshal(statement, &s) == nil && s.Sid == sid
	})
}

func oneOrList(values []string, written func(string) string) any {
	if len(values) == 1 {
		return written(values[0])
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = written(v)
	}
	return list
}

func rawJSON(v any) json.RawMessage {
	text, _ := json.Marshal(v)
	return text
}
