package deliver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	failuresMember   = "batchItemFailures"
	identifierMember = "itemIdentifier"
)

type reply struct {
	failed  map[string]bool // reported IDs
	problem string          // why the report is unreliable, so that the whole batch fails
	note    string          // a warning about failures reported where Lambda ignores them: all messages are done
}

// readReply reads the reply of a function that did not fail. ids are the IDs in its event.
//
//	empty, null, {}, []                      all done
//	failures in the body of an object        all done, with a note
//	an object without batchItemFailures      all done
//	a number, true, false, a plain string    all done
//	batchItemFailures null or []             all done
//	batchItemFailures [{"itemIdentifier"}]   these failed, the others are done
//	anything else                            a problem
//
// A function without partial batch responses may return anything.
func readReply(text []byte, ids []string) reply {
	text = bytes.Trim(text, " \t\r\n")
	switch {
	case len(text) == 0:
		return reply{}
	case !json.Valid(text):
		return reply{problem: "the function's reply is not JSON"}
	case !utf8.Valid(text):
		return reply{problem: "the function's reply is not UTF-8"}
	}

	switch text[0] {
	case '{':
		return readObject(text, ids)
	case '[':
		if !saysNothing(text) {
			return reply{problem: "the function's reply is a list, not an object with " + failuresMember}
		}
	case '"':
		var value string
		if err := json.Unmarshal(text, &value); err != nil || strings.Contains(value, failuresMember) {
			return reply{problem: "the function's reply is a string that contains " + failuresMember +
				": return the object itself"}
		}
	}
	return reply{}
}

func readObject(object []byte, ids []string) reply {
	failed, problem := readReport(object, ids)
	if failed == nil && problem == "" && reportsInBody(object, ids) {
		return reply{note: failuresMember + " is in the reply's body, where Lambda ignores it: return the object itself"}
	}
	return reply{failed: failed, problem: problem}
}

// The body of an API Gateway response is text, base64 or an object.
func reportsInBody(object []byte, ids []string) bool {
	var gateway struct {
		Body     json.RawMessage `json:"body"`
		IsBase64 bool            `json:"isBase64Encoded"`
	}
	if json.Unmarshal(object, &gateway) != nil {
		return false
	}

	body := []byte(gateway.Body)
	if text := ""; json.Unmarshal(body, &text) == nil {
		body = []byte(text)
	}
	if gateway.IsBase64 {
		body, _ = base64.StdEncoding.DecodeString(string(body)) // after an error, the decoded part is not valid JSON
	}

	if !bytes.HasPrefix(body, []byte("{")) || !json.Valid(body) {
		return false
	}
	failed, problem := readReport(body, ids)
	return len(failed) > 0 || problem != ""
}

func readReport(object []byte, ids []string) (failed map[string]bool, problem string) {
	list, err := findReport(object)
	if err != nil {
		return nil, err.Error()
	}
	if list == nil || saysNothing(list) {
		return nil, ""
	}
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil {
		return nil, failuresMember + " is not a list"
	}

	failed = map[string]bool{}
	for _, entry := range entries {
		switch id, ok := identifier(entry); {
		case !ok:
			return nil, failuresMember + " has an entry without an " + identifierMember
		case !slices.Contains(ids, id):
			return nil, failuresMember + " names a message that was not in the event"
		case failed[id]:
			return nil, failuresMember + " names a message twice"
		default:
			failed[id] = true
		}
	}
	return failed, ""
}

func findReport(object []byte) (list json.RawMessage, err error) {
	err = eachMember(object, func(name string, value json.RawMessage) error {
		switch {
		case name == failuresMember && list != nil:
			return errors.New("the function's reply has " + failuresMember + " twice")
		case name == failuresMember:
			list = value
		case looksLikeFailures(name) && !saysNothing(value):
			return errors.New("the function's reply misspells " + failuresMember)
		}
		return nil
	})
	return list, err
}

func identifier(entry json.RawMessage) (string, bool) {
	if entry[0] != '{' {
		return "", false
	}
	id, found := "", 0
	err := eachMember(entry, func(name string, value json.RawMessage) error {
		if name != identifierMember {
			return nil
		}
		found++
		if value[0] != '"' {
			return errors.New("not a string")
		}
		return json.Unmarshal(value, &id)
	})
	return id, err == nil && found == 1 && id != ""
}

func eachMember(object []byte, visit func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return err
	}

	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := token.(string)
		if err := visit(name, value); err != nil {
			return err
		}
	}

	return nil
}

// looksLikeFailures accepts other spellings of batchItemFailures, such as snake case.
func looksLikeFailures(name string) bool {
	return strings.EqualFold(strings.NewReplacer("_", "", "-", "").Replace(name), failuresMember)
}

func saysNothing(value json.RawMessage) bool {
	if string(value) == "null" {
		return true
	}
	var entries []json.RawMessage
	return json.Unmarshal(value, &entries) == nil && len(entries) == 0
}
