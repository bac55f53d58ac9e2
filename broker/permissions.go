package broker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tendril/queue"
)

const (
	maxPolicy           = 8192 // bytes (SQS: 8 KiB)
	mostPermitted       = 7    // actions of one permission
	maxPermissionLabel  = 80
	policyVersion       = "2008-10-17"
	policyIDSuffix      = "/SQSDefaultPolicy"
	policyActionsPrefix = "SQS:"
)

// grantable are the actions that a permission may allow; the others are the owner's alone. An action on a
// message stands for its batch form too. The list is never written to.
var grantable = []string{"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl",
	"ListDeadLetterSourceQueues", "PurgeQueue", "ReceiveMessage", "SendMessage"}

// policyDocument is the attribute Policy of a queue.
type policyDocument struct {
	Version   string
	ID        string            `json:"Id,omitempty"`
	Statement []json.RawMessage // each a policyStatement, or what a person wrote
}

// policyStatement is the statement that one AddPermission makes, in the words of SQS.
type policyStatement struct {
	Sid       string
	Effect    string
	Principal struct{ AWS any } // a text, or a list of more than one
	Action    any               // a text, or a list of more than one
	Resource  string
}

// AddPermission adds a statement to the attribute Policy of a queue: it allows the accounts (12 digits each) the
// actions, named as "SendMessage" or "*" for all that may be granted. label is its Sid, 1 to 80 letters, digits,
// hyphens and underscores. Errors: OverLimit for more than seven actions or a policy of more than 8,192 bytes,
// InvalidParameterValue for everything else that is wrong, a label that is there already included.
// The broker stores the policy; whoever knows the caller evaluates it, by [Broker.Policy].
func (b *Broker) AddPermission(ctx context.Context, name, label string, accounts, actions []string) error {
	if err := checkPermission(label, accounts, actions); err != nil {
		return err
	}

	return b.administer(ctx, name, func(q *liveQueue) error {
		policy, err := policyOf(q)
		if err != nil {
			return err
		}
		if policy.index(label) >= 0 {
			return errParameter("Label", label, "Already exists.")
		}
		s := policyStatement{Sid: label, Effect: "Allow", Resource: q.arn}
		s.Principal.AWS = oneOrList(accounts, func(a string) string { return "arn:aws:iam::" + a + ":root" })
		s.Action = oneOrList(actions, func(a string) string { return policyActionsPrefix + a })
		policy.Statement = append(policy.Statement, rawJSON(s))
		value := string(rawJSON(policy))
		if len(value) > maxPolicy {
			return queue.Errorf(queue.CodeOverLimit,
				"The policy of queue %s would be longer than %d bytes; remove a permission first.", name, maxPolicy)
		}
		return b.setAttributes(q, map[string]string{"Policy": value})
	})
}

// RemovePermission removes the statement with a label from the attribute Policy of a queue, and the attribute with
// its last statement. Without such a statement it returns InvalidParameterValue.
func (b *Broker) RemovePermission(ctx context.Context, name, label string) error {
	return b.administer(ctx, name, func(q *liveQueue) error {
		policy, err := policyOf(q)
		if err != nil {
			return err
		}
		at := policy.index(label)
		if at < 0 {
			return errParameter("Label", label, "can't find label.")
		}
		value := ""
		if policy.Statement = slices.Delete(policy.Statement, at, at+1); len(policy.Statement) > 0 {
			value = string(rawJSON(policy))
		}
		return b.setAttributes(q, map[string]string{"Policy": value})
	})
}

// checkPermission refuses the parameters of AddPermission, with the texts of SQS.
func checkPermission(label string, accounts, actions []string) error {
	if label == "" || len(label) > maxPermissionLabel || strings.ContainsFunc(label, notInName) {
		return errParameter("Label", label,
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if len(actions) > mostPermitted {
		return queue.Errorf(queue.CodeOverLimit, "%d Actions were found, maximum allowed is %d.", len(actions),
			mostPermitted)
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

	isNoDigit := func(c rune) bool { return c < '0' || c > '9' }
	for _, account := range accounts {
		if len(account) != 12 || strings.ContainsFunc(account, isNoDigit) {
			return errParameter("PrincipalId", "["+account+"]", "Unable to verify.")
		}
	}

	if len(accounts) == 0 {
		return errParameter("PrincipalId", "[]", "Unable to verify.")
	}
	return nil
}

// policyOf reads the attribute Policy of a queue; without one it returns what AddPermission begins with.
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

// parsePolicy reads a policy as a person may have written it: with a list of statements, or a single one.
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

// index returns the place of the statement with a Sid; -1 when there is none.
func (p *policyDocument) index(sid string) int {
	return slices.IndexFunc(p.Statement, func(statement json.RawMessage) bool {
		var s struct{ Sid string }
		return json.Unmarshal(statement, &s) == nil && s.Sid == sid
	})
}

// oneOrList is how a policy writes values: one as a text, several as a list.
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

// rawJSON encodes what always can be encoded.
func rawJSON(v any) json.RawMessage {
	text, _ := json.Marshal(v)
	return text
}
